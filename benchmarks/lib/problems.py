"""The problems: generated data on which nearly every point becomes a support vector, USPS and spambase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from shared_data import has_data, load

GENERATED = [(2, 100), (16, 2600), (64, 2600), (256, 3400), (784, 13000)]
GENERATED_QUICK = [(2, 100), (16, 300)]
LARGEST_BATCH = 10_000


@dataclass(frozen=True)
class Problem:
    """Training data, the SVC's parameters, the SVC trained on them by scikit-learn, and rows to predict."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    parameters: dict[str, Any]
    svc: SVC
    rows: NDArray[np.float64]

    @property
    def n_vectors(self) -> int:
        return len(self.svc.support_vectors_)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])


def problems(quick: bool, wanted: list[str]) -> Iterator[Problem]:
    """One problem after another, each trained only when its turn comes; `wanted` names a part of them."""
    for d, m in GENERATED_QUICK if quick else GENERATED:
        if not wanted or f"generated-{d}" in wanted:
            yield generated(d, m)
    for name, make in (("usps", usps), ("spambase", spambase)):
        if name in wanted or not (wanted or quick):
            if has_data():
                yield make()
            else:
                print(f"\n{name}: skipped, the data folder ../shared/data is not beside this checkout")


def trained(name: str, X: Any, y: Any, rows: Any, **parameters: Any) -> Problem:
    """The problem with its SVC, after checks that there is something to decide."""
    X, rows = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(rows, dtype=np.float64)
    svc = SVC(cache_size=2000, **parameters).fit(X, y)
    share = np.unique(svc.predict(rows[:500]), return_counts=True)[1].max() / min(500, len(rows))
    if share > 0.95:
        raise RuntimeError(f"{name}: {share:.0%} of the answers are one class, which is no fair problem.")
    return Problem(name, X, y, parameters, svc, rows)


def generated(d: int, m: int) -> Problem:
    """Normal data with random labels, as many of each: with a small C all points are support vectors at their bound."""
    rng = np.random.default_rng(d)
    X, y = rng.standard_normal((m, d)), rng.permutation(np.arange(m) % 2)
    problem = trained(f"generated-{d}", X, y, rng.standard_normal((LARGEST_BATCH, d)), C=0.01, gamma=1 / d)
    if problem.n_vectors < 0.95 * m:
        raise RuntimeError(f"{problem.name}: {problem.n_vectors} support vectors where about {m} were to be.")
    return problem


def usps() -> Problem:
    """Ten classes, one-vs-one."""
    data = load("usps")
    rows = drawn(np.vstack([data["X_test"], data["X_train"]]))
    return trained("usps", data["X_train"], data["y_train"], rows, C=10, gamma=1 / 128)


def spambase() -> Problem:
    """Two classes, standardised features."""
    data = load("spambase")
    X = StandardScaler().fit_transform(data["X"].astype(np.float64))
    return trained("spambase", X, data["y"], drawn(X), C=10, gamma=0.005)


def drawn(X: NDArray[Any]) -> NDArray[Any]:
    """LARGEST_BATCH rows of X, with repeats."""
    return X[np.random.default_rng(0).integers(0, len(X), LARGEST_BATCH)]

"""The sets on which machines are compressed and compared: how each is split, and the SVM that is its parent.

All sets of the data folder whose SVM has 100 support vectors or more, and two that scikit-learn makes. Left out:
banana, titanic, ripley and wisconsin (87, 70, 78 and 40 support vectors), and abalone, which is abalone_gsvc before it
got classes. C and γ are those that the data folder names with the papers that used a set, or the other benchmarks have.
Others: heart and segment by a search over C = 0.1 … 100 and six values of γ in five folds of one split; thyroid and
w7a as the best of three and four pairs on three splits; reuters as is usual for texts, without a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from lib.problems import has_data, load

MOST_TEST_ROWS = 20_000
FOLDS = 5


@dataclass(frozen=True)
class Sample:
    """One split: what the parent is trained on, what is held out for compress (if anything), and what nobody sees."""

    X: Any
    y: Any
    validation: tuple[Any, Any] | None
    X_test: Any
    y_test: Any


@dataclass(frozen=True)
class Set:
    """A set: rows to train on, rows held out for compress beside them (none: folds), and the parent's parameters.

    `n_train` of None stands for the splits that the set comes with; all other sets are split anew in every repeat,
    train and test part pooled, in the proportion of the classes.
    """

    name: str
    n_train: int | None
    parameters: dict[str, float]
    n_validation: int = 0
    scale: bool = False
    repeats: int = 20

    @property
    def large(self) -> bool:
        return self.n_validation > 0

    def draw(self, seed: int) -> Sample:
        """One split of the set. Scaling uses the training rows alone."""
        if self.n_train is None:
            data = load(self.name, seed)
            X, y, X_test, y_test = (data[part] for part in ("X_train", "y_train", "X_test", "y_test"))
        else:
            X, y, X_test, y_test = _split(*pooled(self.name), self.n_train + self.n_validation, seed)
        if not self.large:
            return _scaled(self.scale, X, y, None, X_test, y_test)
        X, y, X_held, y_held = _split(X, y, self.n_train or 0, seed)
        return _scaled(self.scale, X, y, (X_held, y_held), X_test, y_test)


def _split(X: Any, y: Any, n_train: int, seed: int) -> tuple[Any, Any, Any, Any]:
    rest = min(MOST_TEST_ROWS, len(y) - n_train)
    X, X_rest, y, y_rest = train_test_split(X, y, train_size=n_train, test_size=rest, stratify=y, random_state=seed)
    return X, y, X_rest, y_rest


def _scaled(scale: bool, X: Any, y: Any, held: tuple[Any, Any] | None, X_test: Any, y_test: Any) -> Sample:
    scaler = StandardScaler().fit(X) if scale else None

    def double(part: Any) -> Any:
        part = part.astype(np.float64)
        return part if scaler is None else scaler.transform(part)

    return Sample(double(X), y, held and (double(held[0]), held[1]), double(X_test), y_test)


@lru_cache(maxsize=1)
def pooled(name: str) -> tuple[Any, Any]:
    """All rows of a set and their labels; some need a word."""
    if name in MAKE:
        return MAKE[name]()
    data = load(name)
    if "X" in data:
        return data["X"], data["y"]
    return np.vstack([data["X_train"], data["X_test"]]), np.concatenate([data["y_train"], data["y_test"]])


def _connect4() -> tuple[Any, Any]:
    """Wins against losses, as in the papers: draws are dropped."""
    data = load("connect4")
    decided = data["y"] != 1
    return data["X"][decided], data["y"][decided]


def _heart() -> tuple[Any, Any]:
    """The rows without missing values."""
    data = load("heart_cleveland")
    whole = ~np.isnan(data["X"]).any(axis=1)
    return data["X"][whole], data["y"][whole]


def _mnist() -> tuple[Any, Any]:
    """Pixels in [0, 1]."""
    data = load("mnist")
    X = np.vstack([data[part].reshape(len(data[part]), -1) for part in ("X_train", "X_test")])
    return X / np.float32(255), np.concatenate([data["y_train"], data["y_test"]])


def _reuters() -> tuple[Any, Any]:
    """The largest category against the rest; rows of tf-idf with norm one, sparse."""
    data = load("reuters21578")
    counts = sparse.vstack([data["X_train"], data["X_test"]]).tocsr()
    y = np.concatenate([np.asarray(data[part])[:, 0] for part in ("y_train", "y_test")])
    return sparse.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(counts)), np.where(y > 0, 1, -1)


def _segment() -> tuple[Any, Any]:
    """Without the column that is constant."""
    data = load("segment")
    return np.delete(data["X"], 2, axis=1), data["y"]


def _digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X / 8 - 1, y


def _moons() -> tuple[Any, Any]:
    return make_moons(3000, noise=0.35, random_state=0)


MAKE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "connect4": _connect4,
    "heart_cleveland": _heart,
    "mnist": _mnist,
    "reuters21578": _reuters,
    "segment": _segment,
    "digits": _digits,
    "moons": _moons,
}


def rbf(C: float, gamma: float) -> dict[str, float]:
    return {"C": C, "gamma": gamma}


SETS = {
    one.name: one
    for one in (
        Set("ida_breast_cancer", None, rbf(15.19, 1 / 50)),
        Set("ida_diabetis", None, rbf(1.0, 1 / 20)),
        Set("ida_german", None, rbf(3.162, 1 / 55)),
        Set("ida_image", None, rbf(500.0, 1 / 30)),
        Set("ida_waveform", None, rbf(1.0, 1 / 20)),
        Set("sonar", 139, rbf(10.0, 1 / 50), scale=True),
        Set("heart_cleveland", 198, rbf(0.1, 1 / 52), scale=True),
        Set("ionosphere", 234, rbf(10.0, 0.45)),
        Set("pima", 512, rbf(10.0, 1 / 50), scale=True),
        Set("kwok", 500, rbf(10.0, 0.5)),
        Set("segment", 1540, rbf(100.0, 1 / 36), scale=True),
        Set("abalone_gsvc", 2507, rbf(10.0, 1 / (2 * 1.1**2))),
        Set("spambase", 3000, rbf(10.0, 0.005), scale=True),
        Set("waveform", 4000, rbf(1.0, 1 / (2 * 8.7**2))),
        Set("thyroid_ann", 5001, rbf(100.0, 1 / 50), n_validation=1000, scale=True, repeats=5),
        Set("usps", 5791, rbf(10.0, 1 / 128), n_validation=1500, repeats=5),
        Set("reuters21578", 6000, rbf(10.0, 1.0), n_validation=2000, repeats=5),
        Set("w7a", 20_000, rbf(10.0, 0.05), n_validation=5000, repeats=2),
        Set("a9a", 20_000, rbf(1.0, 0.05), n_validation=5000, repeats=2),
        Set("covtype", 20_000, rbf(10.0, 0.05), n_validation=5000, scale=True, repeats=2),
        Set("connect4", 20_000, rbf(4.5, 0.2), n_validation=5000, repeats=2),
        Set("mnist", 20_000, rbf(10.0, 0.02), n_validation=5000, repeats=2),
    )
}
GENERATED = {
    one.name: one
    for one in (
        Set("moons", 250, rbf(1.0, 1.0), repeats=2),
        Set("digits", 900, rbf(10.0, 1 / 32), n_validation=400, repeats=1),
    )
}


def chosen(wanted: list[str], quick: bool) -> list[Set]:
    """The sets named, or all; the generated ones where time is short or the data are missing."""
    known = GENERATED | SETS
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"There is no set {unknown[0]}. There are {', '.join(known)}.")
    if wanted:
        return [known[name] for name in wanted]
    if quick or not has_data():
        print("The generated sets only (--quick, or no ../shared/data beside this checkout).", flush=True)
        return list(GENERATED.values())
    return list(SETS.values())

"""Sparse large margin machines beside what users would do instead, at the same number of vectors.

The rivals: Nystroem features of m components and a LinearSVC; an SVC on a subsample of the data, as large as leaves it
about m support vectors. All take the kernel and the C of the full SVM named with each problem.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import slimsvm
from lib.problems import has_data, load
from lib.report import Target

SIZES = (20, 50, 100, 200, 500)
OWN, NYSTROEM, SUBSAMPLED = "slimsvm", "Nystroem + LinearSVC", "subsampled SVC"
RIVALS = (NYSTROEM, SUBSAMPLED)


@dataclass(frozen=True)
class Task:
    """Splits to train and test on, the full SVM's parameters, and the sizes up to half its support vectors."""

    name: str
    splits: list[tuple[Any, Any, Any, Any]]
    parameters: dict[str, Any]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Contest:
    """Test errors at one size, and for each rival by how much its error is higher than ours, with a standard error."""

    task: str
    size: int
    errors: dict[str, float]
    seconds: dict[str, float]
    lead: dict[str, tuple[float, float]]


def tasks(quick: bool, wanted: list[str]) -> Iterator[Task]:
    """One problem after another; `wanted` names some of them."""
    if quick or not has_data():
        X, y = load_digits(return_X_y=True)
        split = train_test_split(X / 8 - 1, y, train_size=1200, stratify=y, random_state=0)
        yield Task("scikit-learn's digits", [arranged(*split)], {"C": 10.0, "gamma": 1 / 32}, (20, 50))
        return
    for make in (banana, spambase, a9a, covtype, mnist):
        if not wanted or make.__name__ in wanted:
            yield make()


def arranged(X: Any, X_test: Any, y: Any, y_test: Any) -> tuple[Any, Any, Any, Any]:
    """train_test_split's order made X, y, X_test, y_test, in double precision."""
    return X.astype(np.float64), y, X_test.astype(np.float64), y_test


def scaled(X: Any, X_test: Any, y: Any, y_test: Any) -> tuple[Any, Any, Any, Any]:
    """The same with the features standardised by the training part."""
    scaler = StandardScaler().fit(X.astype(np.float64))
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def banana() -> Task:
    """Rätsch's first ten splits and parameters: 87 support vectors."""
    splits = []
    for split in range(10):
        data = load("ida_banana", split)
        splits.append(tuple(data[name] for name in ("X_train", "y_train", "X_test", "y_test")))
    return Task("banana", splits, {"C": 316.2, "gamma": 1.0}, SIZES[:1])


def spambase() -> Task:
    """Five random halves."""
    data = load("spambase")
    splits = [scaled(*train_test_split(data["X"], data["y"], train_size=3000, random_state=s)) for s in range(5)]
    return Task("spambase", splits, {"C": 10.0, "gamma": 0.005}, SIZES[:4])


def a9a() -> Task:
    """The official split."""
    data = load("a9a")
    X, X_test = (np.asarray(data[name].todense() if hasattr(data[name], "todense") else data[name], dtype=np.float64)
                 for name in ("X_train", "X_test"))  # fmt: skip
    return Task("a9a", [(X, data["y_train"], X_test, data["y_test"])], {"C": 1.0, "gamma": 0.05}, SIZES)


def covtype(rows: int = 100_000) -> Task:
    """Type 2 against the rest, standardised: so many random rows to train on, and 100,000 others to test on."""
    data = load("covtype")
    split = train_test_split(
        data["X"], data["y"], train_size=rows, test_size=min(100_000, len(data["y"]) - rows), random_state=0
    )
    return Task("covtype", [scaled(*split)], {"C": 10.0, "gamma": 0.05}, SIZES)


def mnist() -> Task:
    """Ten classes, pixels in [0, 1], the official split."""
    data = load("mnist")
    X, X_test = (data[name].reshape(len(data[name]), -1) / 255.0 for name in ("X_train", "X_test"))
    return Task("mnist", [(X, data["y_train"], X_test, data["y_test"])], {"C": 10.0, "gamma": 0.02}, SIZES)


def sparse_machine(size: int, parameters: dict[str, Any], seed: int) -> Any:
    """Ours."""
    return slimsvm.SparseLargeMarginClassifier(size, loss="squared_hinge", random_state=seed, **parameters)


def nystroem(size: int, parameters: dict[str, Any], seed: int) -> Any:
    """The first rival."""
    features = Nystroem(gamma=parameters["gamma"], n_components=size, random_state=seed)
    return make_pipeline(features, LinearSVC(C=parameters["C"], random_state=seed))


def subsampled(size: int, parameters: dict[str, Any], seed: int, X: Any, y: Any) -> SVC:
    """The second: the SVC on the largest of a few subsamples that leaves at most `size` support vectors."""
    most = X.shape[0]
    order = np.random.default_rng(seed).permutation(most)
    classes, least, best, n = len(np.unique(y)), 0, None, size
    for _ in range(8):
        rows = order[:n]
        if len(np.unique(y[rows])) < classes:
            least, n = n, min(2 * n, most)
            continue
        svc = SVC(cache_size=1000, **parameters).fit(X[rows], y[rows])
        if len(svc.support_) <= size:
            least, best = n, svc
        else:
            most = n - 1
        guess = int(n * size / len(svc.support_))
        n = min(max(guess, least + 1), most)
        if least >= most:
            break
    return best if best is not None else svc


def wrong(model: Any, X: Any, y: Any) -> NDArray[np.float64]:
    """One for every test sample that is answered wrongly."""
    return (model.predict(X) != y).astype(np.float64)


def contest(task: Task, size: int) -> Contest:
    """All three at one size, on all splits."""
    made: dict[str, list[NDArray[np.float64]]] = {OWN: [], **{name: [] for name in RIVALS}}
    seconds = dict.fromkeys(made, 0.0)
    for seed, (X, y, X_test, y_test) in enumerate(task.splits):
        for name in made:
            start = time.perf_counter()
            if name == OWN:
                model = sparse_machine(size, task.parameters, seed).fit(X, y)
            elif name == NYSTROEM:
                model = nystroem(size, task.parameters, seed).fit(X, y)
            else:
                model = subsampled(size, task.parameters, seed, X, y)
            seconds[name] += (time.perf_counter() - start) / len(task.splits)
            made[name].append(wrong(model, X_test, y_test))
    errors = {name: float(np.mean([w.mean() for w in wrongs])) for name, wrongs in made.items()}
    lead = {name: paired(made[name], made[OWN]) for name in RIVALS}
    return Contest(task.name, size, errors, seconds, lead)


def paired(theirs: list[NDArray[np.float64]], own: list[NDArray[np.float64]]) -> tuple[float, float]:
    """The mean difference, and its standard error: over splits where there are several, else over test samples."""
    if len(own) > 1:
        differences = np.array([a.mean() - b.mean() for a, b in zip(theirs, own, strict=True)])
    else:
        differences = theirs[0] - own[0]
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))


def contests(quick: bool, wanted: list[str]) -> list[Contest]:
    """Every problem and size, printed as they come."""
    print("\nTest errors in %, and by how many standard errors of the paired difference ours is lower")
    print(
        f"  {'':<22}{'vectors':>7}  {OWN:>8}  {NYSTROEM:>28}  {SUBSAMPLED:>24}  {'seconds, in this order':>28}",
        flush=True,
    )
    found = []
    for task in tasks(quick, wanted):
        for size in task.sizes:
            one = contest(task, size)
            found.append(one)
            shown = [f"{100 * one.errors[name]:.2f} ({in_errors(one.lead[name]):+.1f})" for name in RIVALS]
            times = "  ".join(f"{one.seconds[name]:8.1f}" for name in one.seconds)
            own = f"{100 * one.errors[OWN]:.2f}"
            print(f"  {task.name:<22}{size:>7}  {own:>8}  {shown[0]:>28}  {shown[1]:>24}  {times:>28}", flush=True)
    return found


def in_errors(lead: tuple[float, float]) -> float:
    """A lead in its standard errors."""
    difference, error = lead
    return difference / error if error > 0 else float(np.sign(difference)) * np.inf if difference else 0.0


def contest_targets(found: list[Contest]) -> Iterator[Target]:
    """Never worse by more than two standard errors, better by more than two in at least half."""
    leads = [in_errors(one.lead[name]) for one in found for name in RIVALS]
    worst, better = min(leads), sum(lead > 2 for lead in leads)
    yield Target("never worse than a rival by more than two standard errors", f"{worst:+.1f}", worst >= -2)
    yield Target("better by more than two in at least half", f"{better} of {len(leads)}", 2 * better >= len(leads))

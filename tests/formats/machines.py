"""Machines that every format is tried on, rows to try them with, and how far another program may be off.

`random_cases` draws machines of every kernel, head, answer and number of classes by a seed; `real_case` trains small
ones on real data. A `Case` knows its rows: ordinary ones, rows at and near the machine's points, the zero row, and
rows that lie on the border between two answers. `check_scores` and `check_labels` are the comparisons: scores within
1e-9 Σ|coef| in double and 1e-5 Σ|coef| in float (times the largest kernel value where that is above 1), labels equal
wherever errors of that size could not change them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from oracles.benchmark_data import need_data
from oracles.random_machines import KINDS, LEARNED, random_machine, with_zeros_where_ignored
from shared_data import load
from slimsvm.answers import Classes, Value
from slimsvm.heads import MirrorHead, StagedHead
from slimsvm.kernels import KERNELS
from slimsvm.machine import KernelMachine
from slimsvm.methods import ReducedSet

FloatArray = NDArray[np.float64]
SHARE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
REAL = ("iris", "diabetes", "ripley", "ripley one-class", "usps", "usps pairs", "spambase")
NEEDS_DATA = ("ripley", "ripley one-class", "usps", "usps pairs", "spambase")


@dataclass(frozen=True)
class Case:
    """A machine and rows (n, d) to try it with, in float64; all of them are finite."""

    name: str
    machine: KernelMachine
    X: FloatArray

    @cached_property
    def in_float32(self) -> Case:
        """The same machine with rows that float32 holds exactly, for programs that take float32."""
        return Case(self.name, self.machine, self.X.astype(np.float32).astype(np.float64))

    @cached_property
    def scores(self) -> FloatArray:
        """The machine's own scores of the rows, (n, s), in float64."""
        return self.machine.scores(self.X, precision="float64")

    @cached_property
    def probabilities(self) -> FloatArray | None:
        """The machine's own probabilities of the rows, (n, k), where it has any."""
        machine = self.machine
        return None if machine.calibration is None else machine.predict_proba(self.X, precision="float64")

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The machine's own answers to the rows."""
        return self.machine.predict(self.X, precision="float64")

    def __repr__(self) -> str:
        return self.name


def random_cases(
    n: int = 200,
    seed: int = 0,
    *,
    kernels: Sequence[str] = tuple(KERNELS),
    heads: Sequence[str] = ("linear", "pairs", "pairwise", "mirror", "staged"),
    answers: Sequence[str] = ("classes", "value", "inlier"),
    **wishes: Any,
) -> Iterator[Case]:
    """n machines, every kind with every kernel in turn; `wishes` go to `random_machine` (input_map="none", …)."""
    kinds = [kind for kind in KINDS if kind[0] in heads and kind[2] in answers]
    pairs = [(kind, kernel) for kind in kinds for kernel in kernels if (kind[0], kernel) != ("mirror", "sigmoid")]
    order = np.random.default_rng(seed).permutation(len(pairs))
    for i in range(n):
        (head, outputs, answer), kernel = pairs[order[i % len(pairs)]]
        rng = np.random.default_rng([seed, i])
        machine = random_machine(rng, kernel=kernel, head=head, outputs=outputs, answer=answer, **wishes)
        yield Case(f"{i}: {machine!r}", machine, rows_to_try(rng, machine))


def learned_cases(n: int = 100, seed: int = 0, **wishes: Any) -> Iterator[Case]:
    """n machines with maps as training a metric makes them: scales, projections and full matrices in turn.

    Of the scales, some ignore features in which the points differ, and some features in which all points are zero.
    """
    drawn = [random_cases(n, seed, input_map=kind, **wishes) for kind in LEARNED]
    for i in range(n):
        case = next(drawn[i % len(LEARNED)])
        if i % (2 * len(LEARNED)) == 0:
            case = Case(case.name, with_zeros_where_ignored(case.machine), case.X)
        yield case


@cache
def real_case(name: str) -> Case:
    """One of REAL: a small machine trained on real data; those of NEEDS_DATA skip the test without the data."""
    if name in NEEDS_DATA:
        need_data()
    model, X = _trained(name)
    machine: KernelMachine = model.machine_
    rng = np.random.default_rng(0)
    return Case(f"{name}: {machine!r}", machine, np.vstack([np.asarray(X, float), rows_to_try(rng, machine, 0)]))


def _trained(name: str) -> tuple[Any, Any]:
    """A fitted slimsvm estimator and test rows."""
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        labels = np.array(["setosa", "versicolor", "virginica"])[y]
        return slimsvm.compress(make_pipeline(StandardScaler(), SVC(gamma=0.3)).fit(X, labels), fuse=True), X
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return slimsvm.compress(SVR(C=100, gamma=5.0).fit(X, y), n_vectors=30, random_state=0), X
    if name.startswith("ripley"):
        data = load("ripley")
        X, y = data["X_train"], data["y_train"]
        parent = OneClassSVM(gamma=1.0, nu=0.3).fit(X) if "one" in name else SVC(C=100, gamma=1.0).fit(X, y)
        return slimsvm.compress(parent, n_vectors=12, random_state=0), data["X_test"][::5]
    if name == "spambase":
        data = load("spambase")
        X, y = data["X"][::4], data["y"][::4]
        parent = make_pipeline(StandardScaler(), SVC(C=10, gamma=0.01)).fit(X, y)
        return slimsvm.compress(parent, n_vectors=40, random_state=0, fuse=True), data["X"][1::40]
    data = load("usps")
    X, y = data["X_train"][::8].astype(float), data["y_train"][::8]
    svc = SVC(C=10, gamma=1 / 128)
    parent = (svc if name == "usps pairs" else OneVsRestClassifier(svc)).fit(X, y)
    return slimsvm.compress(parent, n_vectors=60, method=ReducedSet(solver="select")), data["X_test"][::20]


def rows_to_try(rng: np.random.Generator, machine: KernelMachine, n: int = 16) -> FloatArray:
    """n ordinary rows, the zero row, rows at and near some points, and rows on borders between answers."""
    ordinary = rng.normal(size=(max(n, 8), machine.n_features))
    points = _before_the_map(machine)[rng.permutation(machine.n_vectors)[:4]]
    near = points + 1e-3 * rng.normal(size=points.shape)
    return np.vstack([ordinary[:n], np.zeros((1, machine.n_features)), points, near, _borders(machine, ordinary)])


def _before_the_map(machine: KernelMachine) -> FloatArray:
    """Rows (m, d) that the input map takes to the points, or as near to them as it can."""
    Z = np.asarray(machine.points.todense() if hasattr(machine.points, "todense") else machine.points)
    if machine.input_map is None:
        return Z
    shift, scale, offset = machine.input_map.shift, machine.input_map.scale, machine.input_map.offset
    A = np.diag(scale) if machine.input_map.is_diagonal else scale
    return np.asarray((Z - offset) @ np.linalg.pinv(A).T + shift)


def _borders(machine: KernelMachine, X: FloatArray) -> FloatArray:
    """Rows half-way between differing answers, by 45 bisections: the two ends differ in the last digits only."""
    if isinstance(machine.answer, Value):
        return X[:0]
    labels = machine.predict(X)
    start = X[1:][labels[1:] != labels[0]][:3]
    here, there = np.repeat(X[:1], len(start), axis=0), start
    for _ in range(45 if len(start) else 0):
        middle = (here + there) / 2
        stay = (machine.predict(middle) == labels[0])[:, None]
        here, there = np.where(stay, middle, here), np.where(stay, there, middle)
    return np.vstack([here, there])


def tolerance(machine: KernelMachine, X: FloatArray, dtype: Any = np.float64) -> FloatArray:
    """(n,): how far the scores of each row may be off, in double or in float.

    1e-9 or 1e-5 times Σ|coef|, times the largest kernel value (or feature-space distance) where it is above 1, and
    the rounding of the intercepts. A mirror
    head's distances are square roots: one of d² with the error u has the error min(√u, u/d), which is added.
    """
    share, floor = SHARE[np.dtype(dtype)], 8 * np.finfo(dtype).eps * (1 + np.abs(machine.head.intercept).sum())
    mapped = X if machine.input_map is None else machine.input_map.apply(X)
    coef = np.abs(machine.head.coef).sum(axis=1)
    head = machine.head
    if not isinstance(head, MirrorHead):
        K = machine.kernel.gram_numpy(mapped, machine.points, machine.gammas)
        return np.asarray(share * coef.sum() * np.abs(K).max(axis=1, initial=1.0) + floor)
    d = machine.kernel.feature_distance(mapped, machine.points, np.array(head.places), head.scale)
    own = machine.kernel.diagonal(machine.points)[np.array(head.places)] * head.scale**2
    u = 64 * np.finfo(dtype).eps * (machine.kernel.diagonal(mapped)[:, None] + own)
    rooted = np.minimum(np.sqrt(u), u / np.maximum(d, 1e-300))
    return np.asarray(share * coef.sum() * d.max(axis=1, initial=1.0) + rooted @ coef + floor)


def settled(machine: KernelMachine, X: FloatArray, slack: FloatArray) -> NDArray[np.bool_]:
    """(n,): whether no stage of a staged head is within the slack (n,) of its threshold; true for every other head."""
    head = machine.head
    if not isinstance(head, StagedHead):
        return np.ones(len(X), dtype=bool)
    mapped = X if machine.input_map is None else machine.input_map.apply(X)
    K = machine.kernel.gram_numpy(mapped, machine.points, machine.gammas)
    sure = np.ones(len(X), dtype=bool)
    for t in range(head.n_stages - 1):
        o = K @ head.coef[:, head.columns(t)] + head.intercept[head.columns(t)]
        if head.lower is None:
            two = np.partition(o, -2, axis=1)[:, -2:]
            sure &= np.abs(two[:, 1] - two[:, 0] - head.upper[t]) > 2 * slack
        else:
            sure &= (np.abs(o[:, 0] - head.upper[t]) > slack) & (np.abs(o[:, 0] - head.lower[t]) > slack)
    return sure


def clear(machine: KernelMachine, X: FloatArray, slack: FloatArray) -> NDArray[np.bool_]:
    """(n,): whether errors of the scores of up to the slack (n,) leave the answer as it is.

    A machine of pairs must have every pair clear of zero. Otherwise each score is moved by twice the slack and more,
    up and down: an answer that stays is not near a tie.
    """
    scores = machine.scores(X, precision="float64")
    sure = settled(machine, X, slack)
    if isinstance(machine.answer, Value):
        return sure
    if machine.head.gives_pairs:
        sure &= (np.abs(scores) > slack[:, None]).all(axis=1)
    answers = machine._answers(scores)
    for c in range(scores.shape[1]):
        for sign in (-2.0, 2.0):
            moved = scores.copy()
            moved[:, c] += sign * scores.shape[1] * slack
            sure &= machine._answers(moved) == answers
    return sure


def check_scores(case: Case, theirs: Any, dtype: Any = np.float64, label: str = "") -> None:
    """The scores (n, s) that another program has for `case.X`, computed in `dtype`."""
    slack = tolerance(case.machine, case.X, dtype)
    sure = settled(case.machine, case.X, slack)
    off = np.abs(np.asarray(theirs, dtype=float).reshape(case.scores.shape) - case.scores).max(axis=1)
    worst = int(np.argmax(np.where(sure, off / slack, 0.0)))
    assert off[worst] <= slack[worst] or not sure[worst], (
        f"{label} {case}: row {worst} is off by {off[worst]:.3g}, more than {slack[worst]:.3g}"
    )


def check_labels(case: Case, theirs: Any, dtype: Any = np.float64, label: str = "") -> int:
    """The answers (n,) of another program; the number of rows that were compared."""
    if isinstance(case.machine.answer, Value):
        check_scores(case, theirs, dtype, label)
        return len(case.X)
    sure = clear(case.machine, case.X, tolerance(case.machine, case.X, dtype))
    wrong = np.flatnonzero(sure & (np.asarray(theirs) != case.labels))
    assert not len(wrong), (
        f"{label} {case}: rows {wrong[:5]} are {np.asarray(theirs)[wrong[:5]]} instead of {case.labels[wrong[:5]]}"
    )
    return int(sure.sum())


def check_probabilities(case: Case, theirs: Any, dtype: Any = np.float64, label: str = "") -> None:
    """The probabilities (n, k): within what the tolerated errors of the scores do to them, and 1e-7 (float 1e-5)."""
    assert case.probabilities is not None
    assert isinstance(case.machine.answer, Classes)
    slack = tolerance(case.machine, case.X, dtype)
    reach = np.full_like(case.probabilities, 1e-7 if np.dtype(dtype) == np.float64 else 1e-5)
    for c in range(case.scores.shape[1]):
        for sign in (-2.0, 2.0):
            moved = case.scores.copy()
            moved[:, c] += sign * slack
            reach = reach + np.abs(case.machine._probabilities(moved) - case.probabilities)
    off = np.abs(np.asarray(theirs, dtype=float) - case.probabilities)
    worst = np.unravel_index(int(np.argmax(off / reach)), off.shape)
    assert (off <= reach).all(), f"{label} {case}: P{list(map(int, worst))} is off by {off[worst]:.3g}"

"""Early exit: a machine that decides clear samples by its first few vectors.

The vectors are ordered, and prefixes of them, the *stages*, have their own coefficients. A sample passes from stage to
stage until one is sure (Parrado-Hernández et al. 2003, section 3.3, FC-GSVC). With one output o_t,

    T₊(t) = largest o_t over the samples of the first class that the full machine gets right,
    T₋(t) = smallest o_t over such samples of the second class,

and stage t answers if o_t > T₊(t) (the second class) or o_t < T₋(t) (the first). If T₊(t) < T₋(t), one threshold
between the two replaces both. With several outputs a stage answers if its best score leads the second best by more than
for any sample that the stage gets wrong and the full machine right. No such sample is lost to rounding: thresholds have
a margin for the error of kernel values on any instruction set, times Σ|coef|.

Symbols: N samples, m vectors, q outputs, K (N, m) kernel values, F (N, q) the full machine's scores.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, column_or_1d

from slimsvm._record import FloatArray
from slimsvm._unwrap import split_pipeline
from slimsvm._warn import warn_user
from slimsvm.answers import Classes
from slimsvm.arrays import evenly
from slimsvm.estimator import MachineClassifier, Prefit, wrap
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead, StagedHead
from slimsvm.importers import import_model
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import BLOCK_VALUES
from slimsvm.optim import calm_blas, factor, forward_selection

VALUE_ERROR = 1e-11  # of a kernel value in float64, however it is computed
FIT_VALUES = 2**24  # kernel values, at most, for ordering and refitting: 128 MiB; else an even sample is used
RIDGE = 1e-9  # of the mean diagonal, added to the normal equations
STEP = 4  # vectors of the first stage; fewer in the smallest machines
NEVER = float(np.finfo(np.float64).max) / 4  # a threshold that no score crosses; the sum of two is finite

Stage = tuple[FloatArray, FloatArray]  # coefficients (n, q) of the first n vectors, and intercepts (q,)


def add_early_exit(small: Any, X: Any, y: Any, *, stages: int | Sequence[int] = 24) -> Any:
    """The classifier with early exit: most samples are decided by a few of its vectors.

    The vectors are sorted so that the first ones explain most of the machine's own scores on X (orthogonal least
    squares), the coefficients of each prefix are fitted to these scores, and thresholds are set so that no sample of X
    and y that the machine gets right is lost. Samples that no prefix decides get the machine's own answer.

    Parameters
    ----------
    small : estimator, Pipeline or KernelMachine
        A fitted classifier of slimsvm, or a model that `slimsvm.compress` accepts, with a score per class (one score
        for two classes).
    X : (N, d), dense or CSR, and y : (N,)
        Labelled data, ideally all data that the machine was trained on, because thresholds are extremes over them. For
        a Pipeline, in the form that its `predict` accepts.
    stages : int or sequence of int, default=24
        The largest number of stages, or the numbers of vectors after which a stage may decide. Few, large stages are
        safer, because each stage can be wrong on new data.

    Returns
    -------
    An estimator, Pipeline or KernelMachine, like `small`; for a scikit-learn model, a SlimClassifier. Its
    `decision_function` returns the score of the stage that decided, and `kernel_evaluations(X)` the number of vectors
    used. A calibration is dropped, with a warning, because it needs full scores.
    """
    if isinstance(small, KernelMachine):
        return _add_stages(small, X, y, stages)
    imported = import_model(small)
    for _, step in imported.steps:
        X = X if step is None or isinstance(step, str) else step.transform(X)
    fast = _wrap_like(split_pipeline(small)[1], imported.machine, _add_stages(imported.machine, X, y, stages))
    return Pipeline([*imported.steps, (imported.name, fast)]) if imported.steps else fast


def _wrap_like(model: Any, old: KernelMachine, machine: KernelMachine) -> Any:
    """The estimator `model` around another machine; what is none of slimsvm's becomes a SlimClassifier."""
    if not isinstance(model, MachineClassifier) or model.machine_ is not old:
        return wrap(machine)
    if isinstance(model, Prefit):
        return type(model)(machine, n_jobs=model.n_jobs, precision=model.precision)
    fast = copy.copy(model)
    fast.machine_ = machine
    return fast


def _add_stages(machine: KernelMachine, X: Any, y: Any, stages: int | Sequence[int]) -> KernelMachine:
    if machine.preparation is not None:
        made = _add_stages(machine.without_preparation(), machine.preparation.apply(X), y, stages)
        return replace(made, preparation=machine.preparation)
    machine = _require_linear_classifier(machine)
    X, y = _check_data(machine, X, y)
    sizes = stage_sizes(stages, machine.n_vectors)
    rows = evenly(len(y), max(1, FIT_VALUES // max(1, machine.n_vectors)))
    with calm_blas(float(len(rows)) * machine.n_vectors**2):
        order, prefixes = _fit_prefixes(machine, X[rows], sizes)
        return staged_machine(_reorder(machine, order), prefixes, X, y)


def staged_machine(machine: KernelMachine, prefixes: Sequence[Stage], X: Any, y: NDArray[Any]) -> KernelMachine:
    """A machine with early exit, from a machine with a linear head and coefficients of prefixes of its points.

    Thresholds are set on X (N, d), in the form that the machine accepts, and labels y (N,). `prefixes` are in rising
    size; those that are not smaller than the machine are left out. The last stage is the machine's own head.
    """
    machine = _require_linear_classifier(machine)
    stages = [stage for stage in prefixes if len(stage[0]) < machine.n_vectors]
    stages = [*stages, (machine.head.coef, machine.head.intercept)]
    place = np.searchsorted(machine.classes, y)
    search = (_OneOutput if machine.head.n_scores == 1 else _SeveralOutputs)(stages)
    for rows, K in _kernel_values(machine, X):
        search.update(K, place[rows])
    upper, lower = search.thresholds()
    return replace(machine, head=StagedHead.of(stages, upper, lower))


def stage_sizes(stages: int | Sequence[int], m: int) -> list[int]:
    """The sizes of all stages but the last, which has m vectors: 4, 8, 16, 24, …, which suit processors."""
    if isinstance(stages, (int, np.integer)) and not isinstance(stages, bool):
        if stages < 1:
            raise ValueError(f"stages of add_early_exit must be at least 1. Got {stages}.")
        small = max(1, min(STEP, m // STEP))
        step = 2 * small * max(1, -(-m // (2 * small * max(1, stages - 2))))
        return [n for n in (small, *range(2 * small, m, step)) if n < m][: stages - 1]
    given = np.ravel(stages)
    sizes = [int(size) for size in given] if given.dtype.kind in "iuf" and np.isfinite(given).all() else []
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1 or not np.array_equal(sizes, given):
        raise ValueError(f"stages of add_early_exit must be a number, or numbers of vectors that rise. Got {stages!r}.")
    return [size for size in sizes if size < m]


def _require_linear_classifier(machine: KernelMachine) -> KernelMachine:
    """The machine without stages and calibration; an error if early exit does not work for it."""
    machine = machine.without_early_exit()
    single = isinstance(machine.answer, Classes) and machine.answer.n_models is None
    if not single or not isinstance(machine.head, LinearHead):
        raise UnsupportedModelError(
            f"Early exit needs a classifier with a score per class, or one score for two classes (a linear head). Got "
            f"{machine!r}. Train one class against the rest: OneVsRestClassifier, or a trainer of slimsvm."
        )
    if machine.calibration is None:
        return machine
    if machine.calibration.decides:
        raise UnsupportedModelError("This machine answers by its probabilities, which early exit has none of.")
    warn_user("Early exit drops the calibration: probabilities need full scores.")
    return replace(machine, calibration=None)


def _check_data(machine: KernelMachine, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    X = wrap(machine)._validated(X).astype(np.float64, copy=False)
    y = column_or_1d(y)
    check_consistent_length(X, y)
    unknown = np.setdiff1d(y, machine.classes)
    if len(unknown):
        raise ValueError(
            f"y of add_early_exit must hold the machine's classes {machine.classes.tolist()}. Got {unknown[0]!r} too."
        )
    return X, y


def _reorder(machine: KernelMachine, order: NDArray[np.intp]) -> KernelMachine:
    """The machine with its points in another order."""
    return replace(
        machine,
        points=machine.points[order],
        head=LinearHead(machine.head.coef[order], machine.head.intercept),
        gammas=None if machine.gammas is None else machine.gammas[order],
    )


def _kernel_values(machine: KernelMachine, X: Any) -> Iterator[tuple[slice, FloatArray]]:
    """(rows of X, their kernel values), block by block."""
    step = max(1, BLOCK_VALUES // max(1, machine.n_vectors))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        mapped = X[rows] if machine.input_map is None else machine.input_map.apply(X[rows])
        yield rows, np.asarray(machine.kernel.gram(mapped, machine.points, machine.gammas), dtype=np.float64)


def _fit_prefixes(machine: KernelMachine, X: Any, sizes: list[int]) -> tuple[NDArray[np.intp], list[Stage]]:
    """An order of the points, and the coefficients of its prefixes: least squares to the scores on X.

    With A = K − k̄ centred, the Cholesky factor of AᵀA in this order contains the factors of all prefixes.
    """
    K = np.concatenate([K for _, K in _kernel_values(machine, X)])
    scores = K @ machine.head.coef
    k_mean, f_mean = K.mean(axis=0), scores.mean(axis=0)
    K -= k_mean
    G, B = K.T @ K, K.T @ (scores - f_mean)
    order = forward_selection(G, B)
    G, B, k_mean = G[np.ix_(order, order)], B[order], k_mean[order]
    size = float(np.trace(G)) / max(1, len(G)) or 1.0
    L, _ = factor(G + RIDGE * size * np.eye(len(G)))
    forward = solve_triangular(L, B, lower=True)
    stages = []
    for n in sizes:
        beta = solve_triangular(L[:n, :n], forward[:n], lower=True, trans="T")
        stages.append((beta, f_mean - k_mean[:n] @ beta + machine.head.intercept))
    return order, stages


class _ThresholdSearch(ABC):
    """A search for the thresholds of all stages over blocks of kernel values."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self._sizes = np.array([(np.abs(coef).sum(axis=0)).max(initial=0.0) for coef, _ in stages])
        self._offsets = np.array([np.abs(b).max() for _, b in stages])
        self._largest = 1.0

    def update(self, K: FloatArray, place: NDArray[np.intp]) -> None:
        """Take account of samples with the kernel values K (n, m) and the places (n,) of their classes."""
        self._largest = max(self._largest, float(np.abs(K).max(initial=0.0)))
        scores = [K[:, : len(coef)] @ coef + b for coef, b in self._stages]
        right = self._is_right(scores[-1], place, 4 * self._margins()[-1])
        for t, o in enumerate(scores[:-1]):
            self._update_stage(t, o[right], place[right])

    def _margins(self) -> FloatArray:
        """The largest error of the scores of each stage, (S,)."""
        return np.asarray(VALUE_ERROR * (self._largest * self._sizes + self._offsets))

    @abstractmethod
    def _is_right(self, scores: FloatArray, place: NDArray[np.intp], margin: float) -> NDArray[np.bool_]:
        """Which samples the full machine gets right if its scores have errors up to `margin`, (n,)."""

    @abstractmethod
    def _update_stage(self, t: int, scores: FloatArray, place: NDArray[np.intp]) -> None:
        """Take account of the scores (n, q) of stage t for samples that the full machine gets right."""

    @abstractmethod
    def thresholds(self) -> tuple[FloatArray, FloatArray | None]:
        """upper and lower, (S − 1,)."""


class _OneOutput(_ThresholdSearch):
    """Thresholds of one output: the extreme scores of both classes."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        super().__init__(stages)
        self._highest = np.full(len(stages) - 1, -np.inf)
        self._lowest = np.full(len(stages) - 1, np.inf)

    def _is_right(self, scores: FloatArray, place: NDArray[np.intp], margin: float) -> NDArray[np.bool_]:
        return np.asarray(np.where(place == 1, scores[:, 0] >= -margin, scores[:, 0] <= margin))

    def _update_stage(self, t: int, scores: FloatArray, place: NDArray[np.intp]) -> None:
        self._highest[t] = max(self._highest[t], scores[place == 0, 0].max(initial=-np.inf))
        self._lowest[t] = min(self._lowest[t], scores[place == 1, 0].min(initial=np.inf))

    def thresholds(self) -> tuple[FloatArray, FloatArray]:
        margins = 2 * self._margins()[:-1]
        upper, lower = self._highest + margins, self._lowest - margins
        alone = ~np.isfinite(upper) | ~np.isfinite(lower)  # the machine gets none of a class right: no stage decides
        upper, lower = np.where(alone, NEVER, upper), np.where(alone, -NEVER, lower)
        middle = 0.5 * lower + 0.5 * upper
        apart = upper < lower
        return np.where(apart, middle, upper), np.where(apart, middle, lower)


class _SeveralOutputs(_ThresholdSearch):
    """Thresholds of several outputs: the largest lead of a wrong class."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        super().__init__(stages)
        self._lead = np.zeros(len(stages) - 1)

    def _is_right(self, scores: FloatArray, place: NDArray[np.intp], margin: float) -> NDArray[np.bool_]:
        return np.asarray(scores[np.arange(len(place)), place] >= scores.max(axis=1) - margin)

    def _update_stage(self, t: int, scores: FloatArray, place: NDArray[np.intp]) -> None:
        two = np.partition(scores, -2, axis=1)[:, -2:]
        wrong = scores.argmax(axis=1) != place
        self._lead[t] = max(self._lead[t], (two[:, 1] - two[:, 0])[wrong].max(initial=0.0))

    def thresholds(self) -> tuple[FloatArray, None]:
        return self._lead + 8 * self._margins()[:-1], None

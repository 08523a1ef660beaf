"""Reduced sets: a machine's expansion Ψ approximated by m vectors, far fewer than its support vectors.

    minimise ρ² = ‖Ψ − Σ_j β_j φ(z_j)‖²  over vectors z_j and coefficients β_j

Suttorp & Igel, "Resilient approximation of kernel classifiers" (ICANN 2007), extended: all vectors at once by L-BFGS,
merging, selection; several outputs on shared vectors; every kernel; and exact machines where these cost nothing. It
needs no data.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray, is_sparse
from slimsvm._warn import warn_user
from slimsvm._words import plural
from slimsvm.answers import Value
from slimsvm.arrays import evenly
from slimsvm.heads import LinearHead, PairsHead
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.reduced_set import descent
from slimsvm.methods.reduced_set.expansion import Expansion, expansion_of
from slimsvm.methods.reduced_set.incremental import Incremental, Search
from slimsvm.methods.reduced_set.linear import Directions
from slimsvm.methods.reduced_set.merge import Merging
from slimsvm.methods.reduced_set.select import Selection
from slimsvm.methods.reduced_set.starts import STARTS
from slimsvm.optim import Result, Status, calm_blas, pivoted_cholesky
from slimsvm.parameters import check_choice, check_count

Solver = Literal["auto", "irprop", "fixed_point", "lbfgs", "merge", "select"]
Init = Literal["auto", "random", "alpha", "kernel_kmeans", "weighted_kmeans"]
Refine = bool | Literal["lbfgs", "irprop"]
SOLVERS, INITS, REFINES = get_args(Solver), get_args(Init), (True, False, "lbfgs", "irprop")

BATCH = 64  # starts drawn at a time while the size is not known yet
OFFSET_POINTS = 5000  # support vectors, at most, over which the offset is averaged
THIN = 1 / 16  # of the values: points with fewer nonzeros are not moved, which would make them dense
DEPENDENT = 1e-13  # of the largest k(x, x): support vectors nearer than this to the span of others depend on them
EXACT = 1e-10  # of ‖Ψ‖²: a smaller ρ² is rounding
BASIS_WORK = 1e9  # multiplications that the search for dependent support vectors may take
ROUNDING = 1e-12  # of ‖Ψ‖²: a smaller ρ² is no different from zero
REFINE_STEPS = 100
DISTANCE = "the share of ‖Ψ‖² that may be lost"  # what max_distance is
EXPENSIVE = 1024  # vectors above which only the start is tried that was better at the last size


@dataclass(frozen=True)
class ReducedSetSettings:
    """How a reduced set is made; `compress` and `ReducedSetClassifier` document the parameters."""

    solver: Solver = "auto"
    init: Init = "auto"
    refine: Refine = True
    n_init: int = 1
    max_iter: int = 200

    def check(self, whose: str) -> None:
        """Refuse what no run can work with, in the name of `whose`."""
        check_choice(self.solver, "solver", whose, SOLVERS)
        check_choice(self.init, "init", whose, INITS)
        check_choice(self.refine, "refine", whose, REFINES)
        check_count(self.n_init, "n_init", whose)
        check_count(self.max_iter, "max_iter", whose)


@dataclass(frozen=True)
class ReducedMachine:
    """A small machine, the part of ‖Ψ‖² that it explains, its history (a dict per step), and its centred vectors."""

    machine: KernelMachine
    gain: float
    history: list[dict[str, Any]]
    Z: Any = None


class VectorSolver(Protocol):
    """The contract of a solver: sets of vectors of any size, and a history of the steps that led to the last set."""

    history: list[dict[str, Any]]

    def vectors(self, m: int) -> Any:
        """m vectors, or fewer if these explain everything."""


def reduce_machine(
    machine: KernelMachine,
    sizes: Sequence[int] | None,
    settings: ReducedSetSettings,
    rng: np.random.Generator,
    *,
    max_distance: float | None = None,
    verbose: int = 0,
    target: Expansion | None = None,
) -> list[ReducedMachine]:
    """The machine with each of the given numbers of vectors, or with as few as keep ρ²/‖Ψ‖² ≤ `max_distance`.

    For a size of at least the number of distinct support vectors this is the machine itself, its equal points merged.
    `target` is the machine's expansion, if the caller has it already.
    """
    target = target or expansion_of(machine)
    work = target.n_points * target.X.shape[1] * max(sizes or (BATCH,))
    with Progress("reduced set", verbose) as progress, calm_blas(work):
        reduction = Reduction(machine.without_early_exit(), target, settings, progress)
        with keeping_best(reduction.so_far):
            reduction.prepare()
            if max_distance is not None:
                return [reduction.reduce_within(max_distance, rng)]
            return reduction.reduce_to_sizes(list(sizes or ()), rng)


class Reduction:
    """The reduction of one machine: its expansion, and the best vectors so far."""

    def __init__(
        self, machine: KernelMachine, target: Expansion, settings: ReducedSetSettings, progress: Progress
    ) -> None:
        self.machine, self.target, self.progress = machine, target, progress
        self.settings = replace(settings, solver=_resolve_solver(settings.solver, target))
        self._best: Any = None
        self._steps, self._tolerance = 0, descent.TOLERANCE
        self._done: ReducedMachine | None = None  # the best machine finished
        self._anchors = evenly(target.n_points, OFFSET_POINTS)

    def prepare(self) -> None:
        """Compute what every result needs, which may take long: Ψ at the support vectors of eq. 9."""
        self._anchor_values = self.target.function(self.target.X[self._anchors])

    def reduce_to_sizes(self, sizes: list[int], rng: np.random.Generator) -> list[ReducedMachine]:
        """The machine of each size. The largest is made first: an incremental solver meets all others on its way."""
        lesser = [m for m in sizes if m < self.target.n_points]
        exact = self._independent(max(lesser)) if lesser else None
        solvers = [self.make_solver(max(lesser), seed) for seed in rng.spawn(self.settings.n_init)] if lesser else []
        made: dict[int, ReducedMachine] = {}
        for m in sorted(set(sizes), reverse=True):
            if m >= self.target.n_points:
                made[m] = self.whole()
            elif exact is not None and exact.machine.n_vectors <= m:  # equal points merged, dependent ones left out
                made[m] = exact
            else:
                made[m] = self.best_of(solvers, m)
        for smaller, m in itertools.pairwise(sorted(made)):
            if self._descends and made[m].gain < made[smaller].gain - ROUNDING * self.target.scale:
                made[m] = self._enlarge(made[smaller], m, rng)
        _warn_of_stuck(solvers)
        return [replace(made[m], history=list(made[m].history)) for m in sizes]

    @property
    def _descends(self) -> bool:
        """Whether each size ends with a descent of its own, which may end worse than that of a smaller size."""
        solver, linear = self.settings.solver, isinstance(self.target.kernel, Linear)
        return not linear and (solver == "lbfgs" or (bool(self.settings.refine) and solver != "select"))

    def reduce_within(self, max_distance: float, rng: np.random.Generator) -> ReducedMachine:
        """The smallest machine with ρ²/‖Ψ‖² ≤ max_distance: sizes are doubled until one is enough, then bisected."""
        n, enough = self.target.n_points, max(max_distance, ROUNDING) * abs(self.target.square)
        self._tolerance = min(self._tolerance, max_distance / 100 or ROUNDING)
        solvers = [self.make_solver(BATCH, seed) for seed in rng.spawn(self.settings.n_init)]
        low, high, best = 0, 1, self._independent(n - 1) or self.whole()
        n = best.machine.n_vectors
        loss = {0: abs(self.target.square), n: 0.0}
        while high < n:
            found = self.best_of(solvers, high)
            loss[high] = self.target.distance(found.gain)
            if loss[high] <= enough:
                best = found
                break
            low, high = high, 2 * high
        high = min(high, n)
        while high - low > 1:
            middle = _between(low, high, loss[low], loss[high], enough)
            found = self.best_of(solvers, middle)
            loss[middle] = self.target.distance(found.gain)
            if loss[middle] <= enough:
                high, best = middle, found
            else:
                low = middle
        _warn_of_stuck(solvers)
        return best

    def _enlarge(self, smaller: ReducedMachine, m: int, rng: np.random.Generator) -> ReducedMachine:
        """A machine of m vectors that explains no less than a smaller one: its vectors and others, moved together."""
        more = STARTS["alpha"](self.target, m - smaller.Z.shape[0], rng)
        found = self.descend(np.vstack([smaller.Z, more]), "lbfgs", REFINE_STEPS)
        steps = [*smaller.history, self._step(m, -found.value, refined=True, **_ending(found))]
        return self._make(found.x, steps)

    def so_far(self) -> ReducedMachine | None:
        """The best machine when the work is interrupted, or None."""
        found = [] if self._done is None else [self._done]
        if self._best is not None and self._best.shape[0]:
            found.append(self._make(self._best, []))
        return max(found, key=lambda reduced: reduced.gain, default=None)

    def keep(self, Z: Any) -> None:
        """Remember vectors as the best so far of the present solver."""
        self._best = Z
        self._steps += 1
        self.progress.tell("step %d, %d of %s", self._steps, Z.shape[0], plural(self.target.n_points, "vector"))

    def descend(self, Z: FloatArray, how: str, max_iter: int) -> Result:
        """The result of moving all vectors together, by L-BFGS or by the paper's final descent."""
        if how == "irprop":
            return descent.descend_jointly(self.target, Z, self.keep)
        return descent.descend(self.target, Z, max_iter, self.keep, self._tolerance)

    def make_solver(self, most: int, rng: np.random.Generator) -> VectorSolver:
        solver, init = self.settings.solver, self.settings.init
        if isinstance(self.target.kernel, Linear):
            return Directions(self.target)
        if solver == "select":
            return Selection(self.target, most, rng, self.keep)
        if solver == "merge":
            return Merging(self.target)
        if solver == "lbfgs":
            return _JointSolver(self, init, rng)
        search: Search = "fixed_point" if solver == "fixed_point" else "irprop"
        return Incremental(self.target, STARTS["random" if init == "auto" else init], most, rng, search, self.keep)

    def best_of(self, solvers: list[VectorSolver], m: int) -> ReducedMachine:
        """The best machine of m vectors, over several solvers."""
        made = [self._finish(solver, m) for solver in solvers]
        return max(made, key=lambda reduced: reduced.gain)

    def _finish(self, solver: VectorSolver, m: int) -> ReducedMachine:
        Z = solver.vectors(m)
        self.keep(Z)
        steps = [self._step(**step) for step in solver.history if step["n_vectors"] <= m]
        reduced = self._make(Z, steps, solver.rows(m) if isinstance(solver, Selection) else None)
        refine = self.settings.refine
        if refine and isinstance(solver, (Incremental, Merging)):
            found = self.descend(Z, "irprop" if refine == "irprop" else "lbfgs", REFINE_STEPS)
            step = self._step(len(Z), -found.value, refined=True, **_ending(found))
            reduced = max(self._make(found.x, [*steps, step]), reduced, key=lambda one: one.gain)
        made, relative = reduced.machine.n_vectors, reduced.history[-1]["relative"]
        self.progress.tell(
            "%d of %s, ρ²/‖Ψ‖² %.3g", made, plural(self.target.n_points, "vector"), relative, always=True
        )
        if self._done is None or reduced.gain > self._done.gain:
            self._done = reduced
        return reduced

    def _step(self, n_vectors: int, gain: float, **more: Any) -> dict[str, Any]:
        """An entry of the history. ρ² is NaN if ‖Ψ‖² would cost more kernel values than everything else."""
        known = self.target.has_square
        rho2 = self.target.distance(gain) if known else np.nan
        relative = rho2 / self.target.square if known and self.target.square else 0.0 if known else np.nan
        return {"n_vectors": n_vectors, "rho2": rho2, "relative": relative, **more}

    def _make(self, Z: Any, steps: list[dict[str, Any]], rows: NDArray[np.intp] | None = None) -> ReducedMachine:
        """The machine on vectors Z, with the best coefficients and the offset of eq. 9.

        If the vectors are points of the machine, `rows` says which. The last entry of the history is of this machine.
        """
        B, gain = self.target.project(Z)
        points = self.target.add_centre(Z) if rows is None else self.target.given[rows]
        made = self._machine(points, B, self._offset(Z, B))
        last = self._step(len(B), gain)
        known = steps and steps[-1]["n_vectors"] == len(B)
        steps = [*steps[:-1], {**steps[-1], **last}] if known else [*steps, last]
        return ReducedMachine(made, gain, steps, Z)

    def _offset(self, Z: Any, B: FloatArray) -> FloatArray:
        """b′_c = b_c + mean of Ψ_c − Ψ′_c over the support vectors that output c has (eq. 9)."""
        target, anchors = self.target, self._anchors
        small = KernelMachine(target.kernel, Z, LinearHead(B, np.zeros(B.shape[1])), Value(flat=False))
        error = self._anchor_values - small.scores(target.X[anchors], n_jobs=-1)
        member = (target.A[anchors] != 0) * target.counts[anchors, None]
        counts = np.maximum(member.sum(axis=0), 1)
        return np.asarray(self.machine.head.intercept + np.sum(error * member, axis=0) / counts)

    def _machine(self, points: Any, B: FloatArray, intercept: FloatArray) -> KernelMachine:
        head = (PairsHead if self.machine.head.gives_pairs else LinearHead)(B, intercept)
        return replace(self.machine, points=points, head=head)

    def whole(self) -> ReducedMachine:
        """The machine itself; if points repeat, with each of them once."""
        target, machine = self.target, self.machine
        if target.n_points < machine.n_vectors:
            machine = self._machine(target.given, target.A, machine.head.intercept)
        history = [{"n_vectors": target.n_points, "rho2": 0.0, "relative": 0.0}]
        return ReducedMachine(machine, np.inf, history, target.X)

    def _independent(self, most: int) -> ReducedMachine | None:
        """An exact machine of at most `most` support vectors, if so few span the others in feature space."""
        target = self.target
        n = target.n_points
        most = min(most, int(np.sqrt(BASIS_WORK / n)))
        if isinstance(target.kernel, Linear) or most < 1:
            return None
        some = evenly(n, 2 * most)
        if n > 2 * len(some) and not self._spanned(some, most)[1]:  # what holds for all holds for some
            return None
        taken, spanned = self._spanned(np.arange(n), most)
        if not spanned or not len(taken):
            return None
        taken = np.sort(taken)
        reduced = self._make(target.X[taken], [], taken)
        return reduced if abs(target.square - reduced.gain) <= EXACT * target.scale else None

    def _spanned(self, rows: NDArray[np.intp], most: int) -> tuple[NDArray[np.intp], bool]:
        """Up to `most` of these rows of X, and whether they span the other ones in feature space."""
        X = self.target.X[rows]

        def column(i: int) -> FloatArray:
            return self.target.inner(X, X[[i]])[:, 0]

        return pivoted_cholesky(column, self.target.own(X), most, DEPENDENT)


class _JointSolver:
    """`solver="lbfgs"`: m starts, moved together.

    By default the starts are the centres of weighted k-means. If the kernel is so narrow that no support vector is near
    the centres, a selection of support vectors explains more than the moved centres, and is moved instead.
    """

    def __init__(self, reduction: Reduction, init: Init, rng: np.random.Generator) -> None:
        self._reduction, self._init, self._rng = reduction, init, rng
        self._selection: Selection | None = None  # its first vectors are the selection of any smaller size
        self._selected: bool | None = None  # whether the selection was the better start at the last size
        self.history: list[dict[str, Any]] = []

    def vectors(self, m: int) -> FloatArray:
        """m vectors, moved together."""
        found = self._descend_from_better_start(m) if self._init == "auto" else self._descend_from(self._init, m)
        self.history = [{"n_vectors": len(found.x), "gain": -found.value, **_ending(found)}]
        return found.x

    def _descend_from_better_start(self, m: int) -> Result:
        if self._selected and m > EXPENSIVE:
            return self._descend(self._select(m)[0])
        found = self._descend_from("weighted_kmeans", m)
        if self._selected is None or m <= EXPENSIVE:
            chosen, gain = self._select(m, -found.value)
            self._selected = gain > -found.value
            if self._selected:
                return self._descend(chosen)
        return found

    def _select(self, m: int, hoped: float = -np.inf) -> tuple[FloatArray, float]:
        """A selection and how much of ‖Ψ‖² it explains; only part of it if it cannot explain as much as `hoped`."""
        self._selection = self._selection or Selection(self._reduction.target, m, self._rng)
        return np.asarray(dense(self._selection.vectors(m, hoped)), dtype=np.float64), self._selection.gain(m)

    def _descend_from(self, init: str, m: int) -> Result:
        return self._descend(STARTS[init](self._reduction.target, m, self._rng))

    def _descend(self, start: FloatArray) -> Result:
        return self._reduction.descend(start, "lbfgs", self._reduction.settings.max_iter)


def _between(low: int, high: int, above: float, below: float, enough: float) -> int:
    """A size between two: where a loss that falls by a constant factor per vector would reach `enough`."""
    if not above > enough >= below > 0.0:
        return (low + high) // 2
    share = np.log(above / enough) / np.log(above / below)
    return int(np.clip(np.ceil(low + share * (high - low)), low + 1, high - 1))


def _ending(found: Result) -> dict[str, Any]:
    return {"n_iter": found.n_iter, "converged": found.status is Status.CONVERGED}


def _resolve_solver(solver: Solver, target: Expansion) -> Solver:
    """The solver; for "auto" L-BFGS if the kernel allows it and the points are dense enough, else selection."""
    kernel = target.kernel
    if solver != "auto":
        if solver != "select" and not isinstance(kernel, Linear):
            kernel.require_gradient(f"solver={solver!r}")
            kernel.require_definite(f"solver={solver!r}")
        return solver
    thin = is_sparse(target.X) and target.X.nnz < THIN * target.X.shape[0] * target.X.shape[1]
    return "select" if thin or not (kernel.differentiable and kernel.definite) else "lbfgs"


def _warn_of_stuck(solvers: list[VectorSolver]) -> None:
    stuck = [
        step["stuck"]
        for solver in solvers
        if isinstance(solver, Incremental)
        for step in solver.history
        if step["stuck"]
    ]
    if stuck:
        warn_user(
            f"The fixed-point iteration got stuck from {sum(stuck)} starts, at {plural(len(stuck), 'vector')}; other "
            f"starts, or iRprop+, took their place. solver='irprop' or 'lbfgs' does not get stuck.",
            ConvergenceWarning,
        )

"""Reduced sets: a machine's expansion Ψ approximated by m vectors, m much smaller than its support vectors.

    minimise ρ² = ‖Ψ − Σ_j β_j φ(z_j)‖²  over vectors z_j and coefficients β_j

Suttorp & Igel, "Resilient approximation of kernel classifiers" (ICANN 2007), and beyond it: all vectors at once by
L-BFGS, merging, selection; several outputs on shared vectors; every kernel; exact where exact is free. No data are
needed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Value
from slimsvm.exceptions import Interrupted
from slimsvm.heads import LinearHead, PairsHead
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods import descent
from slimsvm.methods.directions import Directions
from slimsvm.methods.expansion import Expansion, expansion_of
from slimsvm.methods.incremental import Incremental, Search
from slimsvm.methods.merge import Merging
from slimsvm.methods.points import evenly
from slimsvm.methods.progress import Progress
from slimsvm.methods.select import Selection
from slimsvm.methods.starts import STARTS
from slimsvm.optim import Result, Status, calm_blas, pivoted_cholesky

Solver = Literal["auto", "irprop", "fixed_point", "lbfgs", "merge", "select"]
Init = Literal["auto", "random", "alpha", "kernel_kmeans", "weighted_kmeans"]
Refine = bool | Literal["lbfgs", "irprop"]
SOLVERS, INITS, REFINES = get_args(Solver), get_args(Init), (True, False, "lbfgs", "irprop")

BATCH = 64  # starts drawn at a time where the size is yet to be found
OFFSET_POINTS = 5000  # support vectors over which the offset is averaged at most
THIN = 1 / 16  # of the points' values: sparser points are not moved, which would fill them
DEPENDENT = 1e-13  # of the largest k(x, x): support vectors nearer than this to the span of others depend on them
EXACT = 1e-10  # of ‖Ψ‖²: a ρ² that is rounding
BASIS_WORK = 1e9  # multiplications that the search for dependent support vectors may take
ROUNDING = 1e-12  # of ‖Ψ‖²: a smaller ρ² cannot be told from none
REFINE_STEPS = 100
DEAR = 1024  # vectors beyond which only that start is tried which was the better one at the last size


@dataclass(frozen=True)
class Settings:
    """How a reduced set is made; `compress` and `ReducedSetClassifier` document the parameters."""

    solver: Solver = "auto"
    init: Init = "auto"
    refine: Refine = True
    n_init: int = 1
    max_iter: int = 200

    def check(self, whose: str) -> None:
        """Refuse what no run can work with, in the name of `whose`."""
        for name, allowed in (("solver", SOLVERS), ("init", INITS), ("refine", REFINES)):
            value = getattr(self, name)
            if not isinstance(value, (str, bool, np.bool_)) or value not in allowed:
                raise ValueError(f"{name} of {whose} must be one of {', '.join(map(repr, allowed))}. Got {value!r}.")
        for name in ("n_init", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} of {whose} must be a whole number of at least 1. Got {value!r}.")


@dataclass(frozen=True)
class Reduced:
    """A small machine, its vectors about the centre, what of ‖Ψ‖² it explains, and its history: a dict per step."""

    machine: KernelMachine
    gain: float
    history: list[dict[str, Any]]
    Z: Any = None


class Provider(Protocol):
    """What a solver is: vectors of any size, and a history of the steps that led to the last ones asked for."""

    history: list[dict[str, Any]]

    def vectors(self, m: int) -> Any:
        """m vectors, or fewer where these explain everything."""


def reduce_machine(
    machine: KernelMachine,
    sizes: Sequence[int] | None,
    settings: Settings,
    rng: np.random.Generator,
    *,
    max_distance: float | None = None,
    verbose: int = 0,
    target: Expansion | None = None,
) -> list[Reduced]:
    """The machine with each of the given numbers of vectors, or with as few as keep ρ²/‖Ψ‖² ≤ `max_distance`.

    A size of at least the distinct support vectors gives the machine itself, its equal points merged. `target` is the
    machine's expansion, where the caller has it.
    """
    target = target or expansion_of(machine)
    work = target.n_points * target.X.shape[1] * max(sizes or (BATCH,))
    with Progress("reduced set", verbose) as progress, calm_blas(work):
        run = Run(machine.without_early_exit(), target, settings, progress)
        try:
            run.prepare()
            return run.of_sizes(list(sizes or ()), rng) if max_distance is None else [run.within(max_distance, rng)]
        except KeyboardInterrupt:
            raise Interrupted(run.so_far()) from None


class Run:
    """One job: a machine, its expansion, and the best vectors met so far."""

    def __init__(self, machine: KernelMachine, target: Expansion, settings: Settings, progress: Progress) -> None:
        self.machine, self.target, self.progress = machine, target, progress
        self.settings = replace(settings, solver=_chosen(settings.solver, target))
        self._best: Any = None
        self._steps, self._tolerance = 0, descent.TOLERANCE
        self._done: Reduced | None = None  # the best machine finished
        self._anchors = evenly(target.n_points, OFFSET_POINTS)

    def prepare(self) -> None:
        """What every result needs and may take long: Ψ at the support vectors of eq. 9."""
        self._anchor_values = self.target.function(self.target.X[self._anchors])

    def of_sizes(self, sizes: list[int], rng: np.random.Generator) -> list[Reduced]:
        """The machine of each size. The largest is made first: one incremental run holds all smaller ones."""
        lesser = [m for m in sizes if m < self.target.n_points]
        exact = self._independent(max(lesser)) if lesser else None
        runs = [self.provider(max(lesser), seed) for seed in rng.spawn(self.settings.n_init)] if lesser else []
        made: dict[int, Reduced] = {}
        for m in sorted(set(sizes), reverse=True):
            if m >= self.target.n_points:
                made[m] = self.whole()
            elif exact is not None and exact.machine.n_vectors <= m:  # equal points merged, dependent ones left out
                made[m] = exact
            else:
                made[m] = self.best_of(runs, m)
        for smaller, m in itertools.pairwise(sorted(made)):
            if self._descends and made[m].gain < made[smaller].gain - ROUNDING * self.target.scale:
                made[m] = self._enlarged(made[smaller], m, rng)
        _warn_of_stuck(runs)
        return [replace(made[m], history=list(made[m].history)) for m in sizes]

    @property
    def _descends(self) -> bool:
        """Whether each size ends with a descent of its own, which may miss what that of a smaller one found."""
        solver, linear = self.settings.solver, isinstance(self.target.kernel, Linear)
        return not linear and (solver == "lbfgs" or (bool(self.settings.refine) and solver != "select"))

    def within(self, max_distance: float, rng: np.random.Generator) -> Reduced:
        """The smallest machine with ρ²/‖Ψ‖² ≤ max_distance: sizes are doubled until one serves, then halved between."""
        n, enough = self.target.n_points, max(max_distance, ROUNDING) * abs(self.target.square)
        self._tolerance = min(self._tolerance, max_distance / 100 or ROUNDING)
        runs = [self.provider(BATCH, seed) for seed in rng.spawn(self.settings.n_init)]
        low, high, best = 0, 1, self._independent(n - 1) or self.whole()
        n = best.machine.n_vectors
        loss = {0: abs(self.target.square), n: 0.0}
        while high < n:
            found = self.best_of(runs, high)
            loss[high] = self.target.distance(found.gain)
            if loss[high] <= enough:
                best = found
                break
            low, high = high, 2 * high
        high = min(high, n)
        while high - low > 1:
            middle = _between(low, high, loss[low], loss[high], enough)
            found = self.best_of(runs, middle)
            loss[middle] = self.target.distance(found.gain)
            if loss[middle] <= enough:
                high, best = middle, found
            else:
                low = middle
        _warn_of_stuck(runs)
        return best

    def _enlarged(self, smaller: Reduced, m: int, rng: np.random.Generator) -> Reduced:
        """m vectors that explain no less than a smaller set, which a descent of their own missed: that set and more."""
        more = STARTS["alpha"](self.target, m - smaller.Z.shape[0], rng)
        found = self.descend(np.vstack([smaller.Z, more]), "lbfgs", REFINE_STEPS)
        steps = [*smaller.history, self._step(m, -found.value, refined=True, **_ending(found))]
        return self._small(found.x, steps)

    def so_far(self) -> Reduced | None:
        """The best that there was when the job was interrupted."""
        found = [] if self._done is None else [self._done]
        if self._best is not None and self._best.shape[0]:
            found.append(self._small(self._best, []))
        return max(found, key=lambda reduced: reduced.gain, default=None)

    def keep(self, Z: Any) -> None:
        """Remember vectors as the best so far of the run at hand."""
        self._best = Z
        self._steps += 1
        self.progress.tell("step %d, %d of %d vectors", self._steps, Z.shape[0], self.target.n_points)

    def descend(self, Z: FloatArray, how: str, max_iter: int) -> Result:
        """All vectors moved together, by L-BFGS or the paper's finishing descent."""
        if how == "irprop":
            return descent.joint(self.target, Z, self.keep)
        return descent.eliminated(self.target, Z, max_iter, self.keep, self._tolerance)

    def provider(self, most: int, rng: np.random.Generator) -> Provider:
        solver, init = self.settings.solver, self.settings.init
        if isinstance(self.target.kernel, Linear):
            return Directions(self.target)
        if solver == "select":
            return Selection(self.target, most, rng, self.keep)
        if solver == "merge":
            return Merging(self.target)
        if solver == "lbfgs":
            return _AllAtOnce(self, init, rng)
        search: Search = "fixed_point" if solver == "fixed_point" else "irprop"
        return Incremental(self.target, STARTS["random" if init == "auto" else init], most, rng, search, self.keep)

    def best_of(self, runs: list[Provider], m: int) -> Reduced:
        """The best of several runs at one size."""
        made = [self._finished(run, m) for run in runs]
        return max(made, key=lambda reduced: reduced.gain)

    def _finished(self, run: Provider, m: int) -> Reduced:
        Z = run.vectors(m)
        self.keep(Z)
        steps = [self._step(**step) for step in run.history if step["n_vectors"] <= m]
        reduced = self._small(Z, steps, run.rows(m) if isinstance(run, Selection) else None)
        refine = self.settings.refine
        if refine and isinstance(run, (Incremental, Merging)):
            found = self.descend(Z, "irprop" if refine == "irprop" else "lbfgs", REFINE_STEPS)
            step = self._step(len(Z), -found.value, refined=True, **_ending(found))
            reduced = max(self._small(found.x, [*steps, step]), reduced, key=lambda one: one.gain)
        made, relative = reduced.machine.n_vectors, reduced.history[-1]["relative"]
        self.progress.tell("%d of %d vectors, ρ²/‖Ψ‖² %.3g", made, self.target.n_points, relative, always=True)
        if self._done is None or reduced.gain > self._done.gain:
            self._done = reduced
        return reduced

    def _step(self, n_vectors: int, gain: float, **more: Any) -> dict[str, Any]:
        """A line of the history. Where ‖Ψ‖² would cost more kernel values than all the rest, ρ² is left out."""
        known = self.target.has_square
        rho2 = self.target.distance(gain) if known else np.nan
        relative = rho2 / self.target.square if known and self.target.square else 0.0 if known else np.nan
        return {"n_vectors": n_vectors, "rho2": rho2, "relative": relative, **more}

    def _small(self, Z: Any, steps: list[dict[str, Any]], rows: NDArray[np.intp] | None = None) -> Reduced:
        """The machine on vectors Z (`rows` of the points), with the best coefficients and the offset of eq. 9.

        The last step of the history tells what this machine's own coefficients give.
        """
        B, gain = self.target.project(Z)
        points = self.target.away(Z) if rows is None else self.target.given[rows]
        made = self._machine(points, B, self._offset(Z, B))
        last = self._step(len(B), gain)
        known = steps and steps[-1]["n_vectors"] == len(B)
        steps = [*steps[:-1], {**steps[-1], **last}] if known else [*steps, last]
        return Reduced(made, gain, steps, Z)

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

    def whole(self) -> Reduced:
        """The machine itself, or, where points repeat, the same with each of them once."""
        target, machine = self.target, self.machine
        if target.n_points < machine.n_vectors:
            machine = self._machine(target.given, target.A, machine.head.intercept)
        history = [{"n_vectors": target.n_points, "rho2": 0.0, "relative": 0.0}]
        return Reduced(machine, np.inf, history, target.X)

    def _independent(self, most: int) -> Reduced | None:
        """An exact machine of at most `most` support vectors, if those span the others in feature space."""
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
        reduced = self._small(target.X[taken], [], taken)
        return reduced if abs(target.square - reduced.gain) <= EXACT * target.scale else None

    def _spanned(self, rows: NDArray[np.intp], most: int) -> tuple[NDArray[np.intp], bool]:
        """Up to `most` of the rows of X that span the others of them, and whether they do."""
        X = self.target.X[rows]

        def column(i: int) -> FloatArray:
            return self.target.inner(X, X[[i]])[:, 0]

        return pivoted_cholesky(column, self.target.own(X), most, DEPENDENT)


class _AllAtOnce:
    """`solver="lbfgs"`: m starts, moved together.

    By default the starts are the centres of weighted k-means. Where a kernel is so narrow that nothing is near them, a
    mere selection of support vectors explains more than what they come to, and is moved in their place.
    """

    def __init__(self, run: Run, init: Init, rng: np.random.Generator) -> None:
        self._run, self._init, self._rng = run, init, rng
        self._selection: Selection | None = None  # the first vectors of it are the selection of any smaller size
        self._selected: bool | None = None  # whether the selection was the better start, at the last size
        self.history: list[dict[str, Any]] = []

    def vectors(self, m: int) -> FloatArray:
        """m vectors, by a descent of their own."""
        found = self._of_two(m) if self._init == "auto" else self._from(self._init, m)
        self.history = [{"n_vectors": len(found.x), "gain": -found.value, **_ending(found)}]
        return found.x

    def _of_two(self, m: int) -> Result:
        if self._selected and m > DEAR:
            return self._moved(self._choice(m)[0])
        found = self._from("weighted_kmeans", m)
        if self._selected is None or m <= DEAR:
            chosen, gain = self._choice(m, -found.value)
            self._selected = gain > -found.value
            if self._selected:
                return self._moved(chosen)
        return found

    def _choice(self, m: int, hoped: float = -np.inf) -> tuple[FloatArray, float]:
        """A selection, and how much it explains where it is; part of one that will not explain as much as is hoped."""
        self._selection = self._selection or Selection(self._run.target, m, self._rng)
        return np.asarray(dense(self._selection.vectors(m, hoped)), dtype=np.float64), self._selection.gain(m)

    def _from(self, init: str, m: int) -> Result:
        return self._moved(STARTS[init](self._run.target, m, self._rng))

    def _moved(self, start: FloatArray) -> Result:
        return self._run.descend(start, "lbfgs", self._run.settings.max_iter)


def _between(low: int, high: int, above: float, below: float, enough: float) -> int:
    """A size between two, where a loss that falls by a constant factor per vector would reach `enough`."""
    if not above > enough >= below > 0.0:
        return (low + high) // 2
    share = np.log(above / enough) / np.log(above / below)
    return int(np.clip(np.ceil(low + share * (high - low)), low + 1, high - 1))


def _ending(found: Result) -> dict[str, Any]:
    return {"n_iter": found.n_iter, "converged": found.status is Status.CONVERGED}


def _chosen(solver: Solver, target: Expansion) -> Solver:
    """What "auto" stands for: moved vectors where the kernel allows it and the points are not thinly filled."""
    kernel = target.kernel
    if solver != "auto":
        if solver != "select" and not isinstance(kernel, Linear):
            kernel.require_gradient(f"solver={solver!r}")
            kernel.require_definite(f"solver={solver!r}")
        return solver
    thin = is_sparse(target.X) and target.X.nnz < THIN * target.X.shape[0] * target.X.shape[1]
    return "select" if thin or not (kernel.differentiable and kernel.definite) else "lbfgs"


def _warn_of_stuck(runs: list[Provider]) -> None:
    stuck = [step["stuck"] for run in runs if isinstance(run, Incremental) for step in run.history if step["stuck"]]
    if stuck:
        warnings.warn(
            f"The fixed-point iteration got stuck from {sum(stuck)} starts, at {len(stuck)} vectors; other starts, or "
            f"iRprop+, took their place. solver='irprop' or 'lbfgs' does not get stuck.",
            ConvergenceWarning,
            stacklevel=5,
        )

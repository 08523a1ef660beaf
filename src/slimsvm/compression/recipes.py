"""Recipes: the ways to make a small machine from a model and data.

A recipe says whether it applies to a source (`reason_against`), and makes machines of any size in a `Workshop`, which
keeps what was made: incremental recipes go on where they were, others share what they start from.
"""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Classes, Inlier
from slimsvm.compression import effort
from slimsvm.compression.source import Source
from slimsvm.exceptions import Interrupted, UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.kernels import Linear
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.early_exit import add_early_exit
from slimsvm.methods.growing import GrowingSVC
from slimsvm.methods.margin import LOOSE
from slimsvm.methods.mirroring import Limit, mirror_machine
from slimsvm.methods.mirroring import Settings as MirrorSettings
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Reduced, Settings
from slimsvm.methods.reductions import Reductions
from slimsvm.methods.sparse_search import DEAR, descend, descend_in_batches, work_of_a_step
from slimsvm.methods.starts import k_means
from slimsvm.methods.stochastic import Plan
from slimsvm.methods.training import kernel_parameters
from slimsvm.optim import Result, calm_blas
from slimsvm.optim.margin_problem import Loss

EXACT_WORK = 3e9  # N m² q up to which the hinge loss is solved exactly; beyond that it is squared, which is much faster
ITERATIONS = (12, 60)  # of L-BFGS on the margin, at least and at most
REDUCTIONS = (10, 200)  # of L-BFGS on a reduced set
PER_SAMPLE = 2500  # what a step on the margin takes for every sample and output, whatever m
PER_BATCH = 0.3  # of the products of a mini-batch
HINGE, SQUARE = (3.5e4, 6.0), (5e3, 1.0)  # of coefficients, for every sample and output: by itself, and times m²
TOLERANCE = 1e-3  # of the margin that an iteration must gain
STEPS = (300, 1500)  # of mini-batches, at least and at most
STEP_SHARE = 1.6e-3  # of N N_SV / m: so many steps take less than half the time in which the parent was trained
BATCH = 256  # samples in each of these
FEW = 3000  # samples up to which the margin search may start from several places
CHEAP = 5e6  # N m (q m + d), the work of a step up to which the margin search starts from several places
CLUSTERED = 20  # samples per centre that k-means looks at, and 2,000 at least
REDUCED_WORK = 3e7  # N_SV m d q up to which the margin search starts at the reduced set, beyond that at k-means
LARGE = 5e5  # N_SV d q of a parent without data whose reduced sets get as few iterations as a margin search
WIDE = 1024  # features of sparse data beyond which moved vectors, which are dense, would be too large
GROWING_STEPS = 12  # in which a machine grows to its size
EARLY_EXIT = "+early_exit"
LAST_RESORT = "reduced_set"  # which always applies, and whose work does not grow with the data


class Workshop:
    """Where the small machines of one source are made, by any recipe and of any size.

    Parameters
    ----------
    source : the parent and its data.
    seed : of all randomness; each recipe has a generator of its own, so that none depends on the others.
    settings : of reduced sets.
    options : of mirror points, by the names of `MirrorPointClassifier`.
    progress : to tell how far the work is.
    free : the work that a machine may take whatever its parent took (`effort.py`).
    """

    def __init__(
        self,
        source: Source,
        seed: int = 0,
        *,
        settings: Settings | None = None,
        options: dict[str, Any] | None = None,
        progress: Progress | None = None,
        free: float = effort.FREE,
    ) -> None:
        self.source, self.seed = source, int(seed)
        self.allowed = max(free, effort.SHARE * effort.training(source))
        self.settings, self.options = settings or Settings(), options or {}
        self.progress = progress or Progress("compress", 0)
        self._makers: dict[str, Maker] = {}
        self._made: dict[tuple[str, int], KernelMachine] = {}
        self.histories: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def machine(self, recipe: str, m: int) -> KernelMachine:
        """A machine of at most m vectors, made by the recipe of that name; the parent itself where it has no more."""
        key = recipe, int(m)
        if key not in self._made:
            self._made[key] = self._make(recipe, int(m))
        return self._made[key]

    @property
    def made(self) -> list[KernelMachine]:
        """All machines so far, the last one last."""
        return list(self._made.values())

    def history(self, recipe: str, m: int) -> list[dict[str, Any]]:
        """The steps that led to a machine: a list of dicts whose keys depend on the recipe."""
        return self.histories.get((recipe.removesuffix(EARLY_EXIT), int(m)), [])

    def _make(self, recipe: str, m: int) -> KernelMachine:
        if recipe.endswith(EARLY_EXIT):
            samples = self.source.samples
            assert samples is not None
            staged: KernelMachine = add_early_exit(
                self.machine(recipe.removesuffix(EARLY_EXIT), m), samples.X, samples.y
            )
            return staged
        if recipe not in self._makers:
            rng = np.random.default_rng([self.seed, list(RECIPES).index(recipe)])
            self._makers[recipe] = RECIPES[recipe].maker(self, rng)
        made, history = self._makers[recipe].make(m)
        self.histories[recipe, m] = history
        return made


class Maker(ABC):
    """Makes machines of one recipe for one source."""

    def __init__(self, shop: Workshop, rng: np.random.Generator) -> None:
        self.shop, self.source, self.rng = shop, shop.source, rng

    @abstractmethod
    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        """A machine of at most m vectors, and its history."""


class Recipe(ABC):
    """One way to make small machines."""

    name: ClassVar[str]
    maker: ClassVar[type[Maker]]
    automatic: ClassVar[bool] = True  # whether "auto" may choose it

    def reason_against(self, source: Source) -> str:
        """Why this recipe is not for the source; empty where it is."""
        try:
            source.target  # noqa: B018 what cannot be expanded has no small machine by any recipe
        except UnsupportedModelError as error:
            return f"does not apply: {error}"
        return self._against(source)

    @abstractmethod
    def _against(self, source: Source) -> str:
        """What else stands in the way."""

    @abstractmethod
    def work(self, source: Source, m: int) -> float:
        """The least work that a machine of m vectors takes, roughly, in multiplications."""


class _Reduction(Maker):
    def __init__(self, shop: Workshop, rng: np.random.Generator, settings: Settings | None = None) -> None:
        super().__init__(shop, rng)
        self.reductions = Reductions(
            self.source.machine, settings or shop.settings, rng, shop.progress, target=self.source.target
        )

    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        reduced = self.reduced(m)
        return reduced.machine, list(reduced.history)

    def reduced(self, m: int) -> Reduced:
        """The reduced set; what Ctrl-C leaves of it is the machine alone."""
        try:
            return self.reductions.of_size(m, self._iterations(m))
        except Interrupted as stop:
            found: Any = stop.best
            raise Interrupted(found and found.machine) from None

    def _iterations(self, m: int) -> int:
        source, target = self.source, self.source.target
        least, most = REDUCTIONS
        if source.samples is None:
            return ITERATIONS[1] if target.n_points * target.X.shape[1] * target.n_outputs > LARGE else most
        return effort.iterations(self.shop.allowed / 2, _reduction_step(source, m), least, most)


def _reduction_step(source: Source, m: int) -> float:
    """The work of one iteration on a reduced set: N_SV m (d + 50)."""
    return float(source.n_vectors) * m * (effort.width(source) + effort.PER_VALUE)


class ReducedSet(Recipe):
    """The parent's expansion by few vectors, all moved together (Suttorp & Igel 2007, and beyond); no data needed."""

    name, maker = "reduced_set", _Reduction

    def _against(self, source: Source) -> str:
        return ""

    def work(self, source: Source, m: int) -> float:
        return 2 * REDUCTIONS[0] * _reduction_step(source, m)  # where the vectors start takes as much again


class _Refitted(Maker):
    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        small = self.shop.machine("reduced_set", m)
        return refitted(self.source, small), self.shop.history("reduced_set", m)


class RefittedReducedSet(Recipe):
    """The vectors of the reduced set with coefficients of the largest margin (Wu, Schölkopf & Bakır 2005)."""

    name, maker = "reduced_set+refit", _Refitted

    def _against(self, source: Source) -> str:
        return source.untaught

    def work(self, source: Source, m: int) -> float:
        return RECIPES["reduced_set"].work(source, m) + _refit_work(source, m)


class _Margin(Maker):
    """Vectors that start at the reduced set, at k-means of the data or at a smaller machine, and move to where the
    margin is largest; of several starts, where these are cheap, the best.

    They move by the squared hinge, which is several times faster and leads to vectors as good; the coefficients on them
    are then those of the parent's own loss, where these are not dear.
    """

    def __init__(self, shop: Workshop, rng: np.random.Generator) -> None:
        super().__init__(shop, rng)
        self._found: dict[int, FloatArray] = {}

    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        lesson = self.source.lesson
        m = min(m, lesson.points.n_points, self.source.n_vectors)
        with calm_blas(float(m) * np.prod(lesson.points.X.shape)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what the machine is worth is measured
            runs = [self._moved(start) for start in self._starts(m)]
            Z, history = min(runs, key=lambda run: run[0].value)
            fits = [lesson.fit(Z.x, loss, LOOSE) for loss in losses_for(self.source, m)]
        self._found[m] = Z.x
        return nearest(self.source, [lesson.taught(lesson.points.away(Z.x), fit) for fit in fits]), history

    def _moved(self, start: FloatArray) -> tuple[Result, list[dict[str, Any]]]:
        lesson, history = self.source.lesson, list[dict[str, Any]]()
        points, problem = lesson.points, lesson.problem
        loss: Loss = "hinge" if isinstance(self.source.machine.answer, Inlier) else "squared_hinge"
        told: Any = {"history": history, "progress": self.shop.progress}
        m = len(start)
        if work_of_a_step(points, problem, m) > DEAR:
            steps = int(np.clip(STEP_SHARE * points.n_points * self.source.n_vectors / m, *STEPS))
            plan = Plan(max(1, -(-steps * BATCH // points.n_points)), BATCH)
            return descend_in_batches(points, problem, start, loss, plan, self.rng, **told), history
        most = effort.iterations(self.shop.allowed, _margin_step(self.source, m), *ITERATIONS)
        return descend(points, problem, start, loss, max_iter=most, tol=TOLERANCE, **told), history

    def _starts(self, m: int) -> list[FloatArray]:
        """Where vectors start: three places where searches are cheap, else one."""
        source, lesson = self.source, self.source.lesson
        starts = []
        if float(source.n_vectors) * m * lesson.points.X.shape[1] * source.target.n_outputs < REDUCED_WORK:
            starts.append(np.asarray(dense(lesson.near(self.shop.machine("reduced_set", m).points)), dtype=np.float64))
        smaller = [size for size in self._found if size < m]
        many = lesson.points.n_points <= FEW and work_of_a_step(lesson.points, lesson.problem, m) < CHEAP
        if not starts or many:
            starts.append(self._centres(m))
        if smaller and many:
            Z = self._found[max(smaller)]
            starts.append(np.vstack([Z, self._centres(m - len(Z))]))
        return starts

    def _centres(self, m: int) -> FloatArray:
        points, costs = self.source.lesson.points, self.source.lesson.costs
        chosen = self.rng.permutation(points.n_points)[: max(2000, CLUSTERED * m)]
        return k_means(points.X[chosen], costs[chosen], m, self.rng)


def _margin_step(source: Source, m: int) -> float:
    """The work of one iteration on the margin: N m (q m + d + 50) and more."""
    points, problem = source.lesson.points, source.lesson.problem
    values, outputs = points.n_points * m * effort.PER_VALUE, points.n_points * problem.sign.shape[1]
    return float(work_of_a_step(points, problem, m) + values + PER_SAMPLE * outputs)


class SparseMargin(Recipe):
    """Vectors placed where the margin on the data is largest (Wu, Schölkopf & Bakır 2005), or its twins for values and
    for one class.
    """

    name, maker = "sparse_margin", _Margin

    def _against(self, source: Source) -> str:
        kernel = source.machine.kernel
        if isinstance(kernel, Linear):
            return "is not for the linear kernel, which needs no more vectors than outputs"
        if not kernel.differentiable:
            return f"needs a kernel with a gradient, which the {kernel.name} kernel has not"
        wide = source.samples is not None and is_sparse(source.samples.X) and source.samples.X.shape[1] > WIDE
        return source.untaught or (f"would fill sparse vectors of more than {WIDE} features" if wide else "")

    def work(self, source: Source, m: int) -> float:
        points, problem = source.lesson.points, source.lesson.problem
        moving = ITERATIONS[0] * _margin_step(source, m)
        if work_of_a_step(points, problem, m) > DEAR:
            moving = PER_BATCH * STEPS[0] * BATCH / points.n_points * work_of_a_step(points, problem, m)
        return moving + _refit_work(source, m)


class _Grown(Maker):
    """A run of `GrowingSVC` holds machines of all sizes on its way."""

    def __init__(self, shop: Workshop, rng: np.random.Generator) -> None:
        super().__init__(shop, rng)
        self._steps: dict[int, Any] = {}

    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        near = [size for size in self._steps if 0.9 * m <= size <= m]
        if not near:
            self._run(m)
        step = self._steps[max(size for size in self._steps if size <= m)]
        source, grown = self.source, step["machine"]
        head, answer = grown.head, source.lesson.answer
        small = KernelMachine(
            grown.kernel, grown.points, head, answer, None, source.machine.input_map, None, source.machine.feature_names
        )
        return small, [dict(step)]

    def _run(self, m: int) -> None:
        lesson, k = self.source.lesson, len(self.source.machine.classes)
        step = max(1, round(m / (GROWING_STEPS * k)))
        samples = self.source.samples
        assert samples is not None
        grown = GrowingSVC(
            C=1.0,
            **kernel_parameters(lesson.points.kernel),
            start_per_class=step,
            vectors_per_class=step,
            max_vectors=m,
            validation_fraction=0.0,
            patience=10**6,
            tol=1e-4,
            random_state=int(self.rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            grown.fit(lesson.points.given, samples.y, sample_weight=lesson.costs)
        self._steps |= {one["n_vectors"]: one for one in grown.history_}


class Growing(Recipe):
    """Samples that are hard, added step by step (Parrado-Hernández et al. 2003)."""

    name, maker = "growing", _Grown

    def _against(self, source: Source) -> str:
        if not isinstance(source.machine.answer, Classes):
            return "is for models that answer with classes"
        degree = source.machine.kernel.degree
        return source.untaught or ("" if degree == int(degree) else "needs a whole degree of the kernel")

    def work(self, source: Source, m: int) -> float:
        return GROWING_STEPS / 2 * _refit_work(source, m)


class _Selected(Maker):
    def __init__(self, shop: Workshop, rng: np.random.Generator) -> None:
        super().__init__(shop, rng)
        self._reduction = _Reduction(shop, rng, Settings(solver="select"))

    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        reduced = self._reduction.reduced(m)
        taught = not self.source.untaught
        return refitted(self.source, reduced.machine) if taught else reduced.machine, list(reduced.history)


class SelectedVectors(Recipe):
    """Support vectors taken greedily, with new coefficients where there are data; sparse ones stay sparse."""

    name, maker = "selection", _Selected

    def _against(self, source: Source) -> str:
        return ""

    def work(self, source: Source, m: int) -> float:
        chosen = float(source.n_vectors) * m * (m + effort.width(source) + effort.PER_VALUE)
        return chosen + (0.0 if source.untaught else _refit_work(source, m))


class _Mirrored(Maker):
    def make(self, m: int) -> tuple[KernelMachine, list[dict[str, Any]]]:
        samples = self.source.samples
        assert samples is not None
        options = {"n_pairs": None, **self.shop.options, "n_vectors": m}
        settings = mirror_settings(options)
        y = samples.y if samples.given else None
        limits = [Limit(options["n_pairs"], m)]
        (found,) = mirror_machine(self.source.machine, samples.X, y, samples.weights, settings, self.rng, limits=limits)
        return found.machine, found.history


def mirror_settings(options: dict[str, Any]) -> MirrorSettings:
    """Further keywords of `compress` as settings of mirror points."""
    unknown = [name for name in options if name not in {field.name for field in fields(MirrorSettings)}]
    if unknown:
        raise TypeError(f"compress got an unexpected keyword argument {unknown[0]!r}.")
    settings = MirrorSettings(**options)
    settings.check("compress")
    return settings


class MirrorPoints(Recipe):
    """Decisions by distances from pairs of mirror points (Chen & Chen 2002); only where asked for."""

    name, maker, automatic = "mirror", _Mirrored, False

    def _against(self, source: Source) -> str:
        if not isinstance(source.machine.answer, Classes):
            return "is for models that answer with classes"
        return "needs data X" if source.samples is None else ""

    def work(self, source: Source, m: int) -> float:
        return 0.0  # nobody asks: it is made only where it was asked for


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        SparseMargin(),
        RefittedReducedSet(),
        SelectedVectors(),
        Growing(),
        ReducedSet(),
        MirrorPoints(),
    )
}
METHODS = ("auto", *RECIPES)


def applicable(source: Source) -> dict[str, str]:
    """The recipes that "auto" may choose from, each with why it does not apply, or an empty string where it does."""
    return {name: recipe.reason_against(source) for name, recipe in RECIPES.items() if recipe.automatic}


def affordable(source: Source, free: float, names: Iterable[str], m: int) -> list[str]:
    """Of the recipes, those that make a machine of m vectors with no more work than is allowed."""
    allowed = max(free, effort.SHARE * effort.training(source))
    return [name for name in names if source.samples is None or RECIPES[name].work(source, m) <= allowed]


def refitted(source: Source, small: KernelMachine) -> KernelMachine:
    """A small machine with the coefficients of the largest margin on the source's samples."""
    losses = losses_for(source, small.n_vectors)
    return nearest(source, [source.lesson.refit(small, loss, stacklevel=6) for loss in losses])


def nearest(source: Source, machines: list[KernelMachine]) -> KernelMachine:
    """Of several machines the one whose answers to the samples are the parent's most often; the first of equal ones.

    Its scores are made as large as those of the first: one sigmoid then fits machines of either loss.
    """
    first = machines[0]
    if len(machines) == 1:
        return first
    X, weights, answers = source.answered
    best = min(machines, key=lambda one: float(weights @ (one.predict(X, n_jobs=-1) != answers)))
    if best is first:
        return best
    size, own = (float(np.abs(one.decision(X, n_jobs=-1)).mean()) for one in (first, best))
    scale, head = size / own if own > 0 else 1.0, best.head
    assert isinstance(head, LinearHead)
    return replace(best, head=LinearHead(scale * head.coef, scale * head.intercept))


def losses_for(source: Source, m: int) -> tuple[Loss, ...]:
    """The losses that coefficients are trained for: the parent's own and, for classes, its square.

    The square is the better one where classes are well apart, above all for several of them, and the worse one where
    they overlap. Where the hinge is dear to solve exactly, it is left out.
    """
    lesson, answer = source.lesson, source.machine.answer
    work = float(lesson.points.n_points) * m**2 * lesson.problem.sign.shape[1]
    if isinstance(answer, Inlier):
        return ("hinge",)
    if source.terms.squared or work > EXACT_WORK:
        return ("squared_hinge",)
    return ("hinge", "squared_hinge") if isinstance(answer, Classes) else ("hinge",)


def _refit_work(source: Source, m: int) -> float:
    """The work of the coefficients on m vectors."""
    own, square = HINGE if "hinge" in losses_for(source, m) else SQUARE
    return source.lesson.points.n_points * float(source.lesson.problem.sign.shape[1]) * (own + square * m**2)


def geometric(first: int, last: int, ratio: float) -> list[int]:
    """Sizes from `first` to `last`, each about `ratio` times the one before, all different."""
    count = max(1, int(np.ceil(np.log(max(last, 1) / max(first, 1)) / np.log(ratio) - 1e-9))) + 1
    sizes = np.unique(np.round(np.geomspace(max(first, 1), max(last, 1), count)).astype(int))
    return [int(size) for size in itertools.takewhile(lambda size: size <= last, sizes)]

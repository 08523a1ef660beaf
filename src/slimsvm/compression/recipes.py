"""Recipes: the ways to make a small machine from a model and data.

A recipe says whether it applies to a source (`reason_against`), and makes machines of any size in a `Workshop`, which
keeps what was made: incremental recipes go on where they were, others share what they start from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.answers import Classes
from slimsvm.compression import effort
from slimsvm.compression.coefficients import refit_work, refitted
from slimsvm.compression.margins import SparseMargin
from slimsvm.compression.recipe import Maker, Recipe, Shop
from slimsvm.compression.source import Source
from slimsvm.exceptions import Interrupted
from slimsvm.machine import KernelMachine
from slimsvm.methods.early_exit import add_early_exit
from slimsvm.methods.growing import GrowingSVC
from slimsvm.methods.mirroring import Limit, mirror_machine
from slimsvm.methods.mirroring import Settings as MirrorSettings
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Reduced, Settings
from slimsvm.methods.reductions import Reductions
from slimsvm.methods.training import kernel_parameters

REDUCTIONS = (10, 200)  # iterations of L-BFGS on a reduced set, at least and at most
FEWER = 60  # of them where there are no data, and N_SV d q of the parent is above `LARGE`
LARGE = 5e5
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
    finish : what becomes of the machine of a recipe and size, once it is made.
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
        finish: Callable[[Workshop, str, int], KernelMachine] | None = None,
    ) -> None:
        self.source, self.seed = source, int(seed)
        self.allowed = max(free, effort.SHARE * effort.training(source))
        self.settings, self.options = settings or Settings(), options or {}
        self.progress = progress or Progress("compress", 0)
        self._finish = finish
        self._makers: dict[str, Maker] = {}
        self._made: dict[tuple[str, int], KernelMachine] = {}
        self.histories: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def machine(self, recipe: str, m: int) -> KernelMachine:
        """A machine of at most m vectors, made by the recipe of that name; the parent itself where it has no more."""
        key = recipe, int(m)
        if key not in self._made:
            self._made[key] = self._make(*key)
            if self._finish is not None:
                self._made[key] = self._finish(self, *key)
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


class _Reduction(Maker):
    def __init__(self, shop: Shop, rng: np.random.Generator, settings: Settings | None = None) -> None:
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
            return FEWER if target.n_points * target.X.shape[1] * target.n_outputs > LARGE else most
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
        return RECIPES["reduced_set"].work(source, m) + refit_work(source, m)


class _Grown(Maker):
    """A run of `GrowingSVC` holds machines of all sizes on its way."""

    def __init__(self, shop: Shop, rng: np.random.Generator) -> None:
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
        return GROWING_STEPS / 2 * refit_work(source, m)


class _Selected(Maker):
    def __init__(self, shop: Shop, rng: np.random.Generator) -> None:
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
        return chosen + (0.0 if source.untaught else refit_work(source, m))


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

    name, maker, automatic, least = "mirror", _Mirrored, False, 2

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

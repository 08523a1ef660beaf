"""How soft the margin of a machine is whose size is given: the model's C, or a part of it.

C was chosen for a model of many vectors, if at all. Where that follows its samples too closely, or few vectors cannot
follow them, a smaller C serves the small machine better: the smallest with which held-out samples lose hardly more
than with the best, by the estimate that promises go by. Many samples are not followed too closely by few vectors, and C
stays.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from slimsvm.answers import Classes
from slimsvm.compression import effort
from slimsvm.compression.coefficients import refitted
from slimsvm.compression.evidence import FEW, FOLDS, MOST_REPEATS, Fold
from slimsvm.compression.metrics import Scorer, loss, score
from slimsvm.compression.recipes import EARLY_EXIT, RECIPES, Workshop
from slimsvm.compression.source import Source
from slimsvm.exceptions import Interrupted
from slimsvm.machine import KernelMachine

SHARES = (1.0, 0.3, 0.1, 0.03)  # of the model's C
EQUAL = 0.01  # of what the best score lacks of 1, its errors: more loss that is luck. A smaller C is a simpler machine
TRAINED = ("sparse_margin", "reduced_set+refit", "selection")  # whose coefficients are those of the largest margin
MANY = effort.SMALL  # samples, beyond which the model's C stays


class Softening:
    """What workshops do with the machines that they have made: coefficients of another C, where that is better."""

    def __init__(self, scorer: Scorer | None) -> None:
        self._scorer = scorer
        self._shares: dict[tuple[Workshop, str, int], float] = {}

    def __call__(self, shop: Workshop, recipe: str, m: int) -> KernelMachine:
        """The machine of a workshop, with the coefficients of the best C."""
        made, samples = shop.machine(recipe, m), shop.source.samples
        if recipe not in TRAINED or shop.source.untaught or not isinstance(made.answer, Classes):
            return made
        if samples is None or len(samples) > MANY:
            return made
        try:
            share = self._shares[shop, recipe, m] = self._best_share(shop, recipe, m)
        except KeyboardInterrupt:
            raise Interrupted(made) from None
        except ValueError:  # too few samples for a machine of their own, or for the metric
            return made
        return made if share == 1.0 else _refitted(shop.source, made, share)

    def told(self, shop: Workshop, recipe: str, m: int) -> str:
        """What became of C, to go on with after a reason."""
        share = self._shares.get((shop, recipe.removesuffix(EARLY_EXIT), m), 1.0)
        return "" if share == 1.0 else f". C times {share:g}, with which held-out samples lose hardly more"

    def _best_share(self, shop: Workshop, recipe: str, m: int) -> float:
        """The smallest share of C whose machines lose hardly more on samples held out than those of the best."""
        source, samples = shop.source, shop.source.samples
        assert samples is not None
        judged: list[list[Any]] = [[] for _ in SHARES]
        for number, (train, test) in enumerate(_folds(samples.y, shop.seed)):
            part = source.trained_on(train)  # a parent of its own: vectors that come from the model know what it saw
            if part is None:
                return 1.0
            fold = Fold.of(_shop_like(shop, part, number), samples.some(test), test)
            machine = fold.shop.machine(recipe, m)
            for parts, share in zip(judged, SHARES, strict=True):
                parts.append(fold.beside(_refitted(part, machine, share)))
            shop.progress.tell("C of %s with %d vectors: fold %d", recipe, m, number + 1)
        if not judged[0]:
            return 1.0
        losses = np.array([loss(parts, self._scorer).value for parts in judged])
        wrong = 1.0 - max(score(parts, self._scorer).value for parts in judged)
        return SHARES[int(np.flatnonzero(losses <= losses.min() + EQUAL * max(wrong, 0.0))[-1])]


def _shop_like(shop: Workshop, part: Source, number: int) -> Workshop:
    """A workshop on part of the samples, which leaves machines as they are made."""
    seed = int(np.random.default_rng([shop.seed, len(RECIPES), number]).integers(2**31))
    told: Any = {"settings": shop.settings, "options": shop.options, "progress": shop.progress}
    return Workshop(part, seed, free=shop.allowed, **told)


def _folds(y: NDArray[Any], seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to train on, with samples of every class, and rows held out, of few samples again and again; none where a
    class has a single sample.
    """
    fewest = int(np.unique(y, return_counts=True)[1].min())
    if fewest < 2:
        return
    for repeat in range(min(-(-FEW // len(y)), MOST_REPEATS)):
        splitter = StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=(seed + repeat) % 2**31)
        yield from splitter.split(y, y)


def _refitted(source: Source, machine: KernelMachine, share: float) -> KernelMachine:
    """The vectors of a machine with the coefficients of a share of C."""
    soft = replace(source, terms=replace(source.terms, C=share * float(source.terms.C or 1.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return refitted(soft, machine)

"""Evidence: small machines and their parents, judged on samples that neither saw.

Either on folds of the data, in each of which the parent is refitted with its own parameters; or on validation data that
the parent never saw. A promise that only concerns agreement with the parent needs no labels and no refit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.validation import _num_samples

from slimsvm._record import FloatArray
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.compression.metrics import Figure, Held, Judged, Scorer, disagreement, held, loss
from slimsvm.compression.recipes import EARLY_EXIT, RECIPES, Workshop
from slimsvm.compression.source import Samples, Source, checked_samples
from slimsvm.estimator import Prefit
from slimsvm.machine import KernelMachine
from slimsvm.methods.progress import Progress
from slimsvm.optim import limited

FOLDS = 5  # where nothing else is said
FEW = 500  # samples; fewer are held out again and again by other folds until so many were, for little luck
MOST_REPEATS = 4
THREADED = 2e8  # multiplications of a machine, from which on the folds are worked on by several threads
LIKE = 2.0  # standard errors by which a machine's disagreement may be above the mean of the folds


@dataclass(frozen=True)
class Given:
    """What the user gave as evidence, as it was given."""

    model: Any
    X: Any
    y: Any
    cv: Any
    validation: Any
    groups: Any
    sample_weight: Any
    fold: bool


@dataclass(frozen=True)
class Fold:
    """A workshop, whose parent and data know nothing of these samples, and the parent's answers to them."""

    shop: Workshop
    X: Any
    y: NDArray[Any] | None
    weights: FloatArray
    rows: NDArray[np.intp]
    units: NDArray[np.intp]
    parent: Held

    @staticmethod
    def of(
        shop: Workshop, samples: Samples, rows: NDArray[np.intp] | None = None, units: NDArray[np.intp] | None = None
    ) -> Fold:
        """Samples held out from a workshop: `rows` of all, which other folds may hold out too, and their groups."""
        y, rows = samples.y if samples.given else None, np.arange(len(samples)) if rows is None else rows
        units = rows if units is None else units
        return Fold(shop, samples.X, y, samples.weights, rows, units, held(shop.source.machine, samples.X))

    def judged(self, recipe: str, m: int) -> Judged:
        """The answers of a small machine beside the parent's."""
        return self.beside(self.shop.machine(recipe, m))

    def beside(self, small: Any) -> Judged:
        """The answers of a machine, or of what stands for one, beside the parent's."""
        return Judged(self.parent, held(small, self.X), self.y, self.weights, self.units)


@dataclass(frozen=True)
class Finding:
    """What a recipe came to at a size: vectors, loss by the metric (None without labels) and disagreement."""

    method: str
    n_vectors: int
    loss: Figure | None
    disagreement: Figure


class Evidence:
    """Folds, and what was found on them, kept by recipe and size.

    Parameters
    ----------
    folds : the held-out parts.
    scorer : of the loss; None compares answers sample by sample.
    refits : whether the machine to return is another one than those judged, which is so for folds.
    n_jobs : folds that are worked on at a time, by threads.
    """

    def __init__(
        self, folds: list[Fold], scorer: Scorer | None, *, refits: bool, n_jobs: int | None, progress: Progress
    ) -> None:
        self.folds, self.scorer, self.refits, self.n_jobs = folds, scorer, refits, n_jobs
        self.progress = progress
        self.found: dict[tuple[str, int], Finding] = {}

    @property
    def n_samples(self) -> int:
        """Held-out samples, each counted once."""
        return len(np.unique(np.concatenate([fold.rows for fold in self.folds])))

    @property
    def more(self) -> float:
        """What the variance has more where other machines are judged than the one to return: n/n′ of it, with n′ the
        samples of a training part (Nadeau & Bengio 2003).
        """
        if not self.refits:
            return 0.0
        trained = np.mean([len(fold.shop.source.samples or ()) or self.n_samples for fold in self.folds])
        return float(self.n_samples / max(float(trained), 1.0))

    def find(self, recipe: str, m: int) -> Finding:
        """What the recipe comes to at a size."""
        key = recipe, int(m)
        if key not in self.found:
            self.found[key] = self._judge(recipe, int(m))
            self._tell(self.found[key])
        return self.found[key]

    def _judge(self, recipe: str, m: int) -> Finding:
        jobs = self.n_jobs if self._worth_threads(recipe, m) else 1
        # One thread for each fold's products, whatever n_jobs: their sums would have another order with more.
        with limited(1 if len(self.folds) > 1 else None, "blas"):
            parts = Parallel(jobs, prefer="threads")(delayed(fold.judged)(recipe, m) for fold in self.folds)
        known = all(part.y is not None for part in parts)
        own = self.scorer is None and isinstance(parts[0].parent.machine.answer, Inlier)  # agreement is their accuracy
        lost = loss(parts, self.scorer) if known or own else None
        return Finding(recipe, m, lost and _widened(lost, self.more), _widened(disagreement(parts), self.more))

    def _worth_threads(self, recipe: str, m: int) -> bool:
        """Whether folds gain by threads: small machines are made in Python for the most part, one after the other."""
        known = RECIPES[recipe.removesuffix(EARLY_EXIT)]
        small = known.automatic and known.work(self.folds[0].shop.source, m) < THREADED
        return len(self.folds) > 1 and not small

    def unlike_these(self, machine: KernelMachine, recipe: str, m: int, source: Source) -> float:
        """By how much a machine trained on all data is farther from its parent there than those of the folds are on
        theirs; 0 where it is not.

        A search may end in a bad place: the one machine that was not judged must not be the one that it happened to.
        """
        if source.samples is None:
            return 0.0
        usual = float(
            np.mean([_own_disagreement(fold.shop.machine(recipe, m), fold.shop.source) for fold in self.folds])
        )
        n = len(source.samples)
        most = usual + LIKE * float(np.sqrt(max(usual, 1.0 / n) / n))
        return max(0.0, _own_disagreement(machine, source) - most)

    def _tell(self, finding: Finding) -> None:
        shown = finding.loss or finding.disagreement
        what = "loss" if finding.loss else "disagreement"
        told = "%s with %d vectors: %s %.4f ± %.4f"
        self.progress.tell(told, finding.method, finding.n_vectors, what, shown.value, shown.error, always=True)


def _own_disagreement(machine: KernelMachine, source: Source) -> float:
    """The disagreement of a machine with its parent on the samples that it was trained on."""
    assert source.samples is not None
    both = held(source.machine, source.samples.X), held(machine, source.samples.X)
    return disagreement([Judged(*both, None, source.samples.weights, np.arange(len(source.samples)))]).value


def _widened(figure: Figure, more: float) -> Figure:
    """A figure of machines that stand for another one, trained on other samples: its error has their part too."""
    return replace(figure, error=float(np.hypot(figure.error, np.sqrt(more) * figure.of_samples)))


def on_validation(
    shop: Workshop, validation: Any, scorer: Scorer | None, needs_labels: bool, whose: str = "compress", **options: Any
) -> Evidence:
    """Evidence from data that the parent never saw."""
    pair = isinstance(validation, (tuple, list)) and len(validation) == 2
    if not pair:
        raise ValueError(
            f"validation of {whose} must be a pair (X_val, y_val); y_val may be None where no labels are needed."
        )
    X, y = validation
    if y is None and needs_labels:
        raise ValueError(f"validation of {whose} needs y_val, the labels. max_disagreement of compress needs none.")
    samples = checked_samples(shop.source.imported, X, y, None, f"{whose} (validation)", all_classes=False)
    return Evidence([Fold.of(shop, samples)], scorer, refits=False, **options)


def without_refits(source: Source, given: Given, shop_of: Any, seed: int, **options: Any) -> Evidence:
    """Evidence of agreement with the parent as it is, on folds of X."""
    samples = source.samples
    assert samples is not None
    kept = np.ones(_num_samples(given.X)) if given.sample_weight is None else np.asarray(given.sample_weight)
    counted = kept > 0  # samples of weight zero are rows of X, and of groups, but no samples
    y = np.empty((len(counted), *samples.y.shape[1:]), dtype=samples.y.dtype)
    y[:], y[counted] = samples.y[0], samples.y
    place, units = np.cumsum(counted) - 1, _units(given.groups, len(counted))
    folds: list[Fold] = []
    for train, test in _splits(given.cv, counted, y, given.groups, source, seed):
        train, test = train[counted[train]], test[counted[test]]
        if len(train) and len(test):
            shop = shop_of(replace(source, samples=samples.some(place[train])), len(folds))
            folds.append(Fold.of(shop, replace(samples.some(place[test]), given=False), test, units[test]))
    return Evidence(folds, refits=True, **options)


def on_folds(
    model: Any,
    X: Any,
    y: Any,
    source: Source,
    shop_of: Any,
    *,
    cv: Any,
    groups: Any,
    sample_weight: Any,
    scorer: Scorer | None,
    seed: int,
    n_jobs: int | None,
    progress: Progress,
    fold: bool = False,
    fit: Callable[..., Any] | None = None,
    whose: str = "compress",
) -> Evidence:
    """Evidence from folds of X and y, the parent refitted in each, by `fit`, which may remember."""
    fit = fit or fitted_parent
    refittable = require_refittable(model, whose)
    X, y = indexable(X, None if y is None else column_or_1d(y))
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    counted = np.ones(_num_samples(X), dtype=bool) if weights is None else weights > 0
    splits = list(_splits(cv, counted, y, groups, source, seed, whose))
    units = _units(groups, len(counted))

    def one(number: int, train: NDArray[np.intp], test: NDArray[np.intp]) -> Fold | None:
        part = None if weights is None else weights[train]
        labels = None if y is None else y[train]
        parent = fit(refittable, _safe_indexing(X, train), labels, part)
        own = Source.of(
            parent, _safe_indexing(X, train), labels, C=_own_C(source, parent), fold=fold, sample_weight=part
        )
        held_out = None if weights is None else weights[test]
        if held_out is not None and not held_out.any():
            return None
        samples = _held_out(own, _safe_indexing(X, test), None if y is None else y[test], held_out)
        test = test[counted[test]]
        progress.tell("parent of fold %d of %d, %d vectors", number + 1, len(splits), own.machine.n_vectors)
        return Fold.of(shop_of(own, number), samples, test, units[test])

    with limited(1, "blas"):
        made = Parallel(n_jobs, prefer="threads")(delayed(one)(i, *split) for i, split in enumerate(splits))
    folds = [fold for fold in made if fold is not None]
    if not folds:
        raise ValueError(f"sample_weight of {whose} must not be zero for every sample that a fold holds out.")
    return Evidence(folds, scorer, refits=True, n_jobs=n_jobs, progress=progress)


def _held_out(own: Source, X: Any, y: Any, weights: Any) -> Samples:
    """Held-out samples; a class that the fold's parent has not met is wrong for parent and small machine alike."""
    samples = checked_samples(own.imported, X, None, weights, "compress")
    if y is None:
        return samples
    y = y if weights is None else y[np.asarray(weights) > 0]
    return replace(samples, y=np.asarray(y), given=True)


def _own_C(source: Source, parent: Any) -> float | None:
    """The cost that the user gave, or that was found, where the parent itself names none."""
    own = source.terms.C
    return None if own is None or getattr(parent, "C", None) == own else own


def require_refittable(model: Any, whose: str = "compress") -> Any:
    """The model to clone and fit in each fold; a search's best one."""
    best = getattr(model, "best_estimator_", model)
    if isinstance(best, (str, KernelMachine, Prefit)) or not hasattr(best, "fit") or not hasattr(best, "get_params"):
        raise ValueError(
            f"cv of {whose} refits the model in each fold, and {_named(model)} cannot be refitted. Pass "
            f"validation=(X_val, y_val), data that the model never saw."
        )
    for part in (best, *best.get_params(deep=True).values()):
        if isinstance(part, (KernelMachine, Prefit)) or type(part).__name__ == "FrozenEstimator":
            raise ValueError(
                f"cv of {whose} refits the model in each fold, and a {type(part).__name__} stays as it is. Pass the "
                f"model that it was made of, or validation=(X_val, y_val), data that it never saw."
            )
    return best


def _named(model: Any) -> str:
    return (
        "a LIBSVM model file" if isinstance(model, str) or hasattr(model, "__fspath__") else f"a {type(model).__name__}"
    )


def fitted_parent(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """A clone of the model, fitted; probabilities, which take SVC five fits more, are left out."""
    fresh = clone(model)
    parameters = fresh.get_params()
    for name, value in parameters.items():
        owner, _, own = name.rpartition("__")
        if own == "probability" and value is True:
            kind = type(parameters[owner] if owner else fresh)
            fresh.set_params(**{name: signature(kind).parameters[own].default})  # scikit-learn 1.9 warns of False
    options = {} if sample_weight is None else {_weight_name(fresh): sample_weight}
    return fresh.fit(X, y, **options) if y is not None else fresh.fit(X, **options)


def _weight_name(model: Any) -> str:
    """The parameter of `fit` that takes weights; in a Pipeline, the one of its last step."""
    steps = getattr(model, "steps", None)
    return f"{steps[-1][0]}__{_weight_name(steps[-1][1])}" if steps else "sample_weight"


def _splitter(cv: Any, groups: Any, y: Any, source: Source, seed: int, whose: str = "compress") -> Any:
    """A number of folds as a shuffled splitter, stratified for classes, that keeps groups together."""
    classes = isinstance(source.machine.answer, Classes)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv of {whose} must be at least 2 folds. Got {cv!r}.")
        if groups is not None:
            return StratifiedGroupKFold(cv, shuffle=True, random_state=seed) if classes else GroupKFold(cv)
        return (StratifiedKFold if classes else KFold)(cv, shuffle=True, random_state=seed)
    return check_cv(cv, None if isinstance(source.machine.answer, Value) else y, classifier=classes)


def _splits(
    cv: Any, counted: NDArray[np.bool_], y: Any, groups: Any, source: Source, seed: int, whose: str = "compress"
) -> Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The rows to train on and those held out, fold by fold; `cv` of None stands for `FOLDS`, of few rows that count
    several times over.
    """
    n = len(counted)
    if groups is not None and _num_samples(groups) != n:
        raise ValueError(
            f"groups of {whose} must name a group for each of the {n} samples. Got {_num_samples(groups)}."
        )
    repeats = -(-FEW // np.count_nonzero(counted)) if cv is None and groups is None else 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        for repeat in range(min(repeats, MOST_REPEATS)):
            splitter = _splitter(FOLDS if cv is None else cv, groups, y, source, seed + repeat, whose)
            try:
                for train, test in splitter.split(np.zeros(n), y, groups):
                    yield np.arange(n)[train], np.arange(n)[test]
            except ValueError as error:
                raise ValueError(
                    f"{n} samples cannot be divided into the folds of {whose}: {error} Pass cv=2, say, or "
                    f"validation=(X_val, y_val)."
                ) from error


def _units(groups: Any, n: int) -> NDArray[np.intp]:
    """A number for each sample that is that of its group, or its own."""
    return np.arange(n) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].ravel()

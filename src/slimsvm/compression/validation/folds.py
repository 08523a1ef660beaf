"""Held-out parts of the data: folds in which the parent is refitted, or validation data that it never saw."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.validation import _num_samples

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.compression.candidates.cache import CandidateCache
from slimsvm.compression.problem import Problem, Samples, checked_samples
from slimsvm.compression.request import Request
from slimsvm.compression.tasks import Task
from slimsvm.compression.validation.answers import CachedAnswers, Comparison, cached_answers
from slimsvm.estimator import Prefit
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress
from slimsvm.optim import limited

FOLDS = 5  # if the user does not say
FEW = 500  # samples below which folds are repeated, until so many samples have been held out
MOST_REPEATS = 4

Rows = NDArray[np.intp]
MakeCache = Callable[[Problem, int], CandidateCache]  # the candidates of a part of the data, by its number
FitParent = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Fold:
    """Held-out samples, the candidates whose parent and data know nothing of them, and the parent's answers to them.

    `rows` are their positions in the data, which other folds may hold out too; `units` number them or their groups.
    """

    candidates: CandidateCache
    X: Any
    y: NDArray[Any] | None
    weights: FloatArray
    rows: Rows
    units: Rows
    parent: CachedAnswers

    @staticmethod
    def of(candidates: CandidateCache, samples: Samples, rows: Rows | None = None, units: Rows | None = None) -> Fold:
        """The fold that holds out these samples."""
        y, rows = samples.y if samples.labelled else None, np.arange(len(samples)) if rows is None else rows
        units = rows if units is None else units
        parent = cached_answers(candidates.problem.parent, samples.X)
        return Fold(candidates, samples.X, y, samples.weights, rows, units, parent)

    def judge(self, method: str, m: int) -> Comparison:
        """The answers of a candidate's machine beside the parent's."""
        return self.compare(self.candidates.machine(method, m))

    def compare(self, small: Any) -> Comparison:
        """The answers of a machine, or of a baseline that stands in for one, beside the parent's."""
        return Comparison(self.parent, cached_answers(small, self.X), self.y, self.weights, self.units)


def validation_fold(candidates: CandidateCache, request: Request, needs_labels: bool) -> Fold:
    """The one fold of validation data that the parent never saw."""
    validation, whose = request.validation, request.whose
    pair = isinstance(validation, (tuple, list)) and len(validation) == 2
    if not pair:
        raise ValueError(
            f"validation of {whose} must be a pair (X_val, y_val); y_val may be None if no labels are needed."
        )
    X, y = validation
    if y is None and needs_labels:
        raise ValueError(f"validation of {whose} needs y_val, the labels. max_disagreement of compress needs none.")
    own = f"{whose} (validation)"
    try:
        samples = checked_samples(candidates.problem.imported, X, y, None, own, all_classes=False)
    except ValueError as error:
        if own in str(error):
            raise
        raise ValueError(f"validation of {whose} does not fit the model: {error}") from error
    return Fold.of(candidates, samples)


def folds_of_one_parent(problem: Problem, request: Request, make_cache: MakeCache, seed: int) -> list[Fold]:
    """Folds of X in which the parent stays as it is: for agreement with it."""
    samples = problem.samples
    assert samples is not None
    weights = request.sample_weight
    kept = np.ones(_num_samples(request.X)) if weights is None else np.asarray(weights)
    counted = kept > 0  # samples of weight zero are rows of X and of groups, but are not used
    y = np.empty((len(counted), *samples.y.shape[1:]), dtype=samples.y.dtype)
    y[:], y[counted] = samples.y[0], samples.y
    place, units = np.cumsum(counted) - 1, _units(request.groups, len(counted))
    folds: list[Fold] = []
    for train, test in _splits(request, request.cv, counted, y, problem.task, seed):
        train, test = train[counted[train]], test[counted[test]]
        if len(train) and len(test):
            candidates = make_cache(replace(problem, samples=samples.take(place[train])), len(folds))
            held_out = replace(samples.take(place[test]), labelled=False)
            folds.append(Fold.of(candidates, held_out, test, units[test]))
    return folds


def folds_with_own_parents(
    problem: Problem,
    request: Request,
    make_cache: MakeCache,
    *,
    cv: Any,
    seed: int,
    progress: Progress,
    fit_parent: FitParent | None = None,
) -> list[Fold]:
    """Folds of X and y in which the parent is refitted with its own parameters, by `fit_parent` if it is given."""
    fit, whose = fit_parent or fitted_parent, request.whose
    refittable = require_refittable(request.model, whose)
    X, y = indexable(request.X, None if request.y is None else column_or_1d(request.y))
    weights = None if request.sample_weight is None else np.asarray(request.sample_weight, dtype=np.float64)
    counted = np.ones(_num_samples(X), dtype=bool) if weights is None else weights > 0
    splits = list(_splits(request, cv, counted, y, problem.task, seed))
    units = _units(request.groups, len(counted))

    def one(number: int, train: Rows, test: Rows) -> Fold | None:
        part = None if weights is None else weights[train]
        labels = None if y is None else y[train]
        X_train = _safe_indexing(X, train)
        parent = fit(refittable, X_train, labels, part)
        C = _known_cost(problem, parent)
        own = Problem.of(parent, X_train, labels, C=C, fuse=request.fuse, sample_weight=part, whose=whose)
        held_out = None if weights is None else weights[test]
        if held_out is not None and not held_out.any():
            return None
        samples = _held_out(own, _safe_indexing(X, test), None if y is None else y[test], held_out, whose)
        test = test[counted[test]]
        progress.tell("parent of fold %d of %d, %s", number + 1, len(splits), plural(own.parent.n_vectors, "vector"))
        return Fold.of(make_cache(own, number), samples, test, units[test])

    with limited(1, "blas"):
        made = Parallel(request.n_jobs, prefer="threads")(delayed(one)(i, *split) for i, split in enumerate(splits))
    folds = [fold for fold in made if fold is not None]
    if not folds:
        raise ValueError(f"sample_weight of {whose} must not be zero for every sample that a fold holds out.")
    return folds


def _held_out(own: Problem, X: Any, y: Any, weights: Any, whose: str) -> Samples:
    """Held-out samples. A class that the fold's parent has not seen counts as wrong for parent and small machine."""
    samples = checked_samples(own.imported, X, None, weights, whose)
    if y is None:
        return samples
    y = y if weights is None else y[np.asarray(weights) > 0]
    return replace(samples, y=np.asarray(y), labelled=True)


def _known_cost(problem: Problem, parent: Any) -> float | None:
    """The C that the user gave, or that was found, if the parent itself has another one or none."""
    C = problem.terms.C
    return None if C is None or getattr(parent, "C", None) == C else C


def require_refittable(model: Any, whose: str) -> Any:
    """The model to clone and fit in each fold: the model itself, or the best one of a search."""
    best = getattr(model, "best_estimator_", model)
    if isinstance(best, (str, KernelMachine, Prefit)) or not hasattr(best, "fit") or not hasattr(best, "get_params"):
        is_file = isinstance(model, str) or hasattr(model, "__fspath__")
        what = "a LIBSVM model file" if is_file else f"a {type(model).__name__}"
        raise ValueError(
            f"cv of {whose} refits the model in each fold, and {what} cannot be refitted. Pass "
            f"validation=(X_val, y_val), data that the model never saw."
        )
    for part in (best, *best.get_params(deep=True).values()):
        if isinstance(part, (KernelMachine, Prefit)) or type(part).__name__ == "FrozenEstimator":
            raise ValueError(
                f"cv of {whose} refits the model in each fold, and a {type(part).__name__} cannot be refitted. Pass "
                f"the model that it was made from, or validation=(X_val, y_val), data that it never saw."
            )
    return best


def fitted_parent(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """A fitted clone of the model, without probabilities, which would take SVC five more fits."""
    fresh = clone(model)
    parameters = fresh.get_params()
    for name, value in parameters.items():
        owner, _, own = name.rpartition("__")
        if own == "probability" and value is True:
            kind = type(parameters[owner] if owner else fresh)
            fresh.set_params(**{name: signature(kind).parameters[own].default})  # scikit-learn 1.9 warns of False
    options = {} if sample_weight is None else {weight_name(fresh): sample_weight}
    return fresh.fit(X, y, **options) if y is not None else fresh.fit(X, **options)


def weight_name(model: Any) -> str:
    """The parameter of `fit` that takes sample weights; for a Pipeline, that of its last step."""
    steps = getattr(model, "steps", None)
    return f"{steps[-1][0]}__{weight_name(steps[-1][1])}" if steps else "sample_weight"


def _splitter(cv: Any, grouped: bool, y: Any, task: Task, seed: int, whose: str) -> Any:
    """The splitter that `cv` stands for; a number means shuffled folds."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv of {whose} must be at least 2 folds. Got {cv!r}.")
        return task.splitter(int(cv), grouped, seed)
    return check_cv(cv, y if task.has_labels else None, classifier=task.is_classification)


def _splits(
    request: Request, cv: Any, counted: NDArray[np.bool_], y: Any, task: Task, seed: int
) -> Iterable[tuple[Rows, Rows]]:
    """The rows to train on and those held out, fold by fold; without `cv`, five folds, repeated on few samples."""
    n, groups, whose = len(counted), request.groups, request.whose
    _check_groups(cv, groups, n, whose)
    repeats = n_repeats(int(np.count_nonzero(counted))) if cv is None and groups is None else 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")  # groups are checked below
        for repeat in range(repeats):
            splitter = _splitter(FOLDS if cv is None else cv, groups is not None, y, task, seed + repeat, whose)
            try:
                splits = list(splitter.split(np.zeros(n), y, groups))
            except ValueError as error:
                raise ValueError(
                    f"{n} samples cannot be divided into the folds of {whose}: {error} Pass cv=2, say, or "
                    f"validation=(X_val, y_val)."
                ) from error
            for train, test in splits:
                rows = np.arange(n)[train], np.arange(n)[test]
                if groups is not None:
                    _check_whole_groups(cv, _units(groups, n), *rows, whose)
                yield rows


def _check_groups(cv: Any, groups: Any, n: int, whose: str) -> None:
    """Refuse groups that do not go with the samples or the folds, and folds of groups without groups."""
    if groups is None:
        if isinstance(cv, GroupsConsumerMixin):
            raise ValueError(
                f"cv of {whose} is a {type(cv).__name__}, which keeps groups of samples together and needs to know "
                f"them. Pass groups=..., one group for each of the {n} samples; or a number, such as cv=5, if the "
                f"samples have no groups."
            )
        return
    if _num_samples(groups) != n:
        raise ValueError(
            f"groups of {whose} must name a group for each of the {n} samples. Got {_num_samples(groups)}."
        )
    n_groups, n_folds = len(np.unique(np.asarray(groups))), _n_group_folds(cv)
    if n_groups < n_folds:
        raise ValueError(
            f"groups of {whose} must be at least {n_folds}, one for each fold. Got {plural(n_groups, 'group')}. "
            + (f"Pass cv={n_groups}, or smaller groups." if n_groups > 1 else "Pass smaller groups, or none.")
        )


def _check_whole_groups(cv: Any, units: Rows, train: Rows, test: Rows, whose: str) -> None:
    n_split = len(np.intersect1d(units[train], units[test]))
    if n_split:
        raise ValueError(
            f"cv of {whose}, a {type(cv).__name__}, divides {plural(n_split, 'group')} between training and held-out "
            f"samples, so losses would look too small. Pass a number, such as cv=5, which keeps groups together, or a "
            f"splitter that does, such as GroupKFold(5); or leave groups out."
        )


def _n_group_folds(cv: Any) -> int:
    """The fewest groups that folds need."""
    if cv is None:
        return FOLDS
    is_number = isinstance(cv, (int, np.integer)) and not isinstance(cv, bool)
    return int(cv) if is_number else int(getattr(cv, "n_splits", 2)) if isinstance(cv, GroupKFold) else 2


def n_repeats(n_samples: int) -> int:
    """How often folds are repeated on few samples, to reduce the variance of the estimate."""
    return min(-(-FEW // n_samples), MOST_REPEATS)


def stratified_splits(y: NDArray[Any], n_folds: int, seeds: Iterable[int]) -> Iterator[tuple[Rows, Rows]]:
    """Stratified folds, one round per seed, with every class in every training part; none if a class has one sample."""
    fewest = int(np.unique(y, return_counts=True)[1].min())
    if fewest < 2:
        return
    for seed in seeds:
        yield from StratifiedKFold(min(n_folds, fewest), shuffle=True, random_state=seed).split(y, y)


def _units(groups: Any, n: int) -> Rows:
    """For each sample the number of its group, or its own."""
    return np.arange(n) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].ravel()

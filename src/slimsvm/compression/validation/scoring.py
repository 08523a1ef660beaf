"""The score by which a loss is measured: scikit-learn's scorers, on held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer

from slimsvm._record import FloatArray
from slimsvm._unwrap import split_pipeline
from slimsvm.compression.tasks import Task
from slimsvm.compression.validation.answers import CachedAnswers, Comparison
from slimsvm.estimator import wrap
from slimsvm.machine import KernelMachine

if TYPE_CHECKING:
    from slimsvm.compression.request import Request

Scorer = Callable[..., float]
CALIBRATING = ("compress", "frontier")  # fit probabilities for scores that read them
UNIT = ("accuracy", "balanced_accuracy", "roc_auc", "f1", "precision", "recall", "jaccard", "average_precision")
BOUNDED = dict.fromkeys((*UNIT, "top_k_accuracy"), 1.0) | {"matthews_corrcoef": 2.0}  # by the start of the name


@dataclass(frozen=True)
class Scoring:
    """The score of a request: its name, and the class name of the parameter search that it comes from; empty if the
    user named the score, or if it is the default.
    """

    request: Request
    task: Task
    scoring: Any
    name: str
    source: str = ""

    @staticmethod
    def of(request: Request, task: Task) -> Scoring:
        """The score that the user named, else the one of a parameter search, else the default."""
        scoring, source = request.scoring, ""
        if scoring is None and request.labelled:
            scoring, source = searched_scoring(request.model)
        by_agreement = scoring is None and not task.supervised and not request.labelled
        name = "agreement with the original model" if by_agreement else scoring_name(scoring, task)
        return Scoring(request, task, scoring, name, source)

    @cached_property
    def scorer(self) -> Scorer | None:
        """The scorer, None for accuracy, which is compared sample by sample; ValueError if it cannot be used."""
        return resolve_scoring(self.scoring, self.task, self.request.whose, self.source)


def searched_scoring(model: Any) -> tuple[Any, str]:
    """The score by which a fitted parameter search chose its model, and the name of the search's class.

    Of several metrics it is the one of `refit`. None and "" if the model is no search, if its score is the model's own
    default, or if `refit` is a function, which may weigh several metrics.
    """
    _, search = split_pipeline(model)
    if not hasattr(search, "best_estimator_") or not hasattr(search, "scorer_"):
        return None, ""
    scoring, metric = search.scorer_, getattr(search, "refit", None)
    if getattr(search, "multimetric_", False):
        if not isinstance(metric, str):
            return None, ""
        scoring = scoring[metric] if isinstance(scoring, dict) else _OneOf(scoring, metric)
    return (None, "") if isinstance(scoring, _PassthroughScorer) else (scoring, type(search).__name__)


class _OneOf:
    """One of the metrics that a scorer returns as a dict."""

    def __init__(self, scorer: Callable[..., dict[str, float]], metric: str) -> None:
        self._scorer, self.__name__ = scorer, metric

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        return self._scorer(estimator, X, y)[self.__name__]


def resolve_scoring(scoring: Any, task: Task, whose: str, source: str = "") -> Scorer | None:
    """The scorer of a name or callable, or None for accuracy, which is compared sample by sample."""
    scoring = task.scoring if scoring is None else scoring
    try:
        scorer: Scorer = scoring if callable(scoring) else get_scorer(scoring)
    except (ValueError, TypeError):
        raise ValueError(
            f"scoring of {whose} must be the name of a scikit-learn scorer, such as 'balanced_accuracy' or 'roc_auc', "
            f"or a scorer(estimator, X, y). Got {scoring!r}."
        ) from None
    name = scoring_name(scoring, task)
    calibrated = task.is_classification and whose in CALIBRATING
    answers = {*task.answers, *(["predict_proba"] if calibrated else [])}
    if isinstance(scorer, _BaseScorer) and not set(_reads(scorer)) & answers:
        raise ValueError(
            f"scoring of {whose} is {name!r}{f', the scoring of the {source},' if source else ''} and reads "
            f"{' or '.join(_reads(scorer))}. Models are compared by {' and '.join(task.answers)} alone. Pass another "
            f"score, such as scoring={task.scoring!r}."
        )
    return None if name == "accuracy" and task.has_labels else scorer


def reads_probabilities(scorer: Scorer | None) -> bool:
    """Whether a score reads probabilities, and nothing else."""
    return isinstance(scorer, _BaseScorer) and _reads(scorer) == ("predict_proba",)


def reads_labels_alone(scorer: Scorer) -> bool:
    """Whether a score depends on the true and the predicted values only."""
    return isinstance(scorer, _BaseScorer) and _reads(scorer) == ("predict",)


def _reads(scorer: Any) -> tuple[str, ...]:
    """The methods of an estimator that a scikit-learn scorer calls, the first that the estimator has."""
    reads = getattr(scorer, "_response_method", "predict")
    return (reads,) if isinstance(reads, str) else tuple(reads)


def scoring_name(scoring: Any, task: Task) -> str:
    """The name of a score: scikit-learn's name of a scorer, if it has one, or that of its function."""
    if scoring is None:
        return task.scoring
    if isinstance(scoring, str):
        return scoring
    if not hasattr(scoring, "_score_func"):
        own = getattr(scoring, "func", scoring)  # of a functools.partial
        name = str(getattr(own, "__name__", type(own).__name__))
        return name if name.isidentifier() else "your score"  # a lambda has none
    parts = ("_score_func", "_sign", "_kwargs", "_response_method")
    for name in get_scorer_names():
        known = get_scorer(name)
        if all(getattr(known, part, None) == getattr(scoring, part, None) for part in parts):
            return str(name)
    options = ", ".join(f"{key}={value!r}" for key, value in scoring._kwargs.items())
    name = getattr(scoring._score_func, "__name__", "score").removesuffix("_score")
    return f"{'neg_' if scoring._sign < 0 else ''}{name}{f'({options})' if options else ''}"


def largest_loss(scoring: str) -> float:
    """The difference of the best and the worst value of a score by its name; infinity if it is not known to be bounded.

    R² and the scores that are errors ("neg_...") have no worst value, and a scorer of the user may have any.
    """
    return next((most for start, most in BOUNDED.items() if scoring.startswith(start)), np.inf)


def score_rows(
    model: CachedAnswers,
    part: Comparison,
    rows: NDArray[np.intp],
    scorer: Scorer,
    weights: FloatArray | None = None,
) -> float:
    """The score of parent or small machine on some rows of a held-out part, with its weights or others."""
    assert part.y is not None
    equal_weights, weights = np.ptp(part.weights) == 0, part.weights if weights is None else weights
    try:
        by_row = isinstance(scorer, _BaseScorer)  # other scorers may look at the samples themselves
        if reads_probabilities(scorer):
            model.calibrate(part.y, part.weights)
        asked = (model, rows) if by_row else (_estimator(model.machine), model.data[rows])
        weighed = not equal_weights and (by_row or "sample_weight" in signature(scorer).parameters)
        score = scorer(*asked, part.y[rows], **({"sample_weight": weights[rows]} if weighed else {}))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"scoring could not be computed on {len(rows)} held-out samples: {error}. A score needs what "
            f"it reads (predict, decision_function, or probabilities that the machines have), and enough samples."
        ) from error
    if not np.isfinite(score):
        raise ValueError(f"scoring gives {score} on {len(rows)} held-out samples. Hold out more of them.")
    return float(score)


def _estimator(machine: Any) -> Any:
    """An estimator with a machine's answers; a baseline that stands in for a machine has one."""
    return wrap(machine) if isinstance(machine, KernelMachine) else machine.model

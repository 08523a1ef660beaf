"""The score by which a loss is measured: scikit-learn's scorers, on held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.metrics._scorer import _BaseScorer

from slimsvm.compression.tasks import Task
from slimsvm.compression.validation.answers import CachedAnswers, Comparison
from slimsvm.estimator import wrap
from slimsvm.machine import KernelMachine

Scorer = Callable[..., float]
UNIT = ("accuracy", "balanced_accuracy", "roc_auc", "f1", "precision", "recall", "jaccard", "average_precision")
BOUNDED = dict.fromkeys((*UNIT, "top_k_accuracy"), 1.0) | {"matthews_corrcoef": 2.0}  # by the start of the name


def resolve_scoring(scoring: Any, task: Task, whose: str) -> Scorer | None:
    """The scorer of a name or callable, or None for accuracy, which is compared sample by sample."""
    scoring = task.scoring if scoring is None else scoring
    if isinstance(scoring, str) and scoring == "accuracy" and task.has_labels:
        return None
    try:
        scorer: Scorer = scoring if callable(scoring) else get_scorer(scoring)
    except (ValueError, TypeError):
        raise ValueError(
            f"scoring of {whose} must be the name of a scikit-learn scorer, such as 'balanced_accuracy' or 'roc_auc', "
            f"or a scorer(estimator, X, y). Got {scoring!r}."
        ) from None
    return scorer


def scoring_name(scoring: Any, task: Task) -> str:
    """The name of the score."""
    if scoring is None:
        return task.scoring
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)


def largest_loss(scoring: str) -> float:
    """The difference of the best and the worst value of a score by its name; infinity if it is not known to be bounded.

    R² and the scores that are errors ("neg_...") have no worst value, and a scorer of the user may have any.
    """
    return next((most for start, most in BOUNDED.items() if scoring.startswith(start)), np.inf)


def score_rows(model: CachedAnswers, part: Comparison, rows: NDArray[np.intp], scorer: Scorer) -> float:
    """The score of parent or small machine on some rows of a held-out part."""
    assert part.y is not None
    equal_weights = np.ptp(part.weights) == 0
    try:
        by_row = isinstance(scorer, _BaseScorer)  # other scorers may look at the samples themselves
        asked = (model, rows) if by_row else (_estimator(model.machine), model.data[rows])
        weighed = not equal_weights and (by_row or "sample_weight" in signature(scorer).parameters)
        score = scorer(*asked, part.y[rows], **({"sample_weight": part.weights[rows]} if weighed else {}))
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

"""Scores: their names, those that a parameter search passes on, and those that cannot be used."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import balanced_accuracy_score, fbeta_score, get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import CompressedClassifier, compress
from slimsvm.answers import Classes
from slimsvm.compression.tasks import TASKS
from slimsvm.compression.validation.scoring import scoring_name, searched_scoring

X, Y = make_moons(120, noise=0.3, random_state=0)
TASK = TASKS[Classes]


def mine(model: Any, X: Any, y: Any) -> float:
    return float(balanced_accuracy_score(y, model.predict(X)))


def several(model: Any, X: Any, y: Any) -> dict[str, float]:
    return {"good": mine(model, X, y), "bad": -mine(model, X, y)}


def search(scoring: Any, refit: Any = True) -> Any:
    return GridSearchCV(SVC(gamma=1.0), {"C": [2.0]}, scoring=scoring, refit=refit, cv=2).fit(X, Y)


@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        (None, "accuracy"),
        ("f1", "f1"),
        (get_scorer("balanced_accuracy"), "balanced_accuracy"),
        (make_scorer(balanced_accuracy_score), "balanced_accuracy"),
        (make_scorer(fbeta_score, beta=2), "fbeta(beta=2)"),
        (make_scorer(mean_absolute_error, greater_is_better=False), "neg_mean_absolute_error"),
        (mine, "mine"),
        (partial(mine), "mine"),
        (lambda model, X, y: 0.0, "your score"),
    ],
)
def test_names(scoring: Any, name: str) -> None:
    assert scoring_name(scoring, TASK) == name


@pytest.mark.parametrize(
    ("scoring", "refit", "name"),
    [
        ("f1", True, "f1"),
        (mine, True, "mine"),
        (["f1", "roc_auc"], "roc_auc", "roc_auc"),
        ({"a": "f1", "b": make_scorer(balanced_accuracy_score)}, "b", "balanced_accuracy"),
        (several, "good", "good"),
    ],
)
def test_a_search_passes_its_score_on(scoring: Any, refit: Any, name: str) -> None:
    found = search(scoring, refit)
    for model in (found, make_pipeline(StandardScaler(), found)):
        inherited, source = searched_scoring(model)
        assert source == "GridSearchCV"
        assert scoring_name(inherited, TASK) == name
    told: dict[str, Any] = {"n_vectors": 6, "method": "selection", "cv": 2, "random_state": 0}
    report = compress(found, X, Y, **told).report_
    assert report.scoring == name
    assert f"Loss of {name}, the scoring of the GridSearchCV, on held-out samples" in str(report)
    named = search(None).best_estimator_
    same = compress(named, X, Y, scoring=mine if callable(scoring) else name, **told).report_
    assert (report.estimate, report.standard_error) == (same.estimate, same.standard_error)


@pytest.mark.parametrize(("scoring", "refit"), [(None, True), (["f1", "roc_auc"], lambda results: 0)])
def test_searches_without_one_score_pass_none_on(scoring: Any, refit: Any) -> None:
    assert searched_scoring(search(scoring, refit)) == (None, "")


def test_a_score_of_probabilities() -> None:
    found = search("f1")
    found.scorer_ = get_scorer("neg_log_loss")
    told: dict[str, Any] = {"method": "selection", "random_state": 0}
    small = compress(found, X, Y, max_loss=0.2, cv=2, **told)
    assert (small.report_.scoring, small.report_.scoring_from) == ("neg_log_loss", "GridSearchCV")
    assert small.machine_.calibration is not None
    assert compress(found, X, Y, max_loss=0.05, scoring="accuracy", cv=2, **told).report_.scoring_from == ""
    assert compress(found).n_vectors_ == len(found.best_estimator_.support_)
    assert compress(found, X, max_disagreement=0.1, cv=2, **told).report_.disagreement <= 0.1
    assert compress(found, X, Y, n_vectors=5, **told).n_vectors_ == 5


def test_a_search_inside_a_meta_estimator() -> None:
    grid = GridSearchCV(SVC(gamma=1.0), {"C": [2.0]}, scoring="balanced_accuracy", cv=2)
    slim = CompressedClassifier(grid, n_vectors=6, method="selection", cv=2, random_state=0).fit(X, Y)
    assert slim.report_.scoring == "balanced_accuracy"
    assert np.isfinite(slim.report_.estimate)

"""Promises on scores that read probabilities: candidates are calibrated on held-out scores before they are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.svm import SVC, OneClassSVM

import slimsvm
from slimsvm.compression.validation.answers import cached_answers
from slimsvm.importers import import_model

X, Y = make_moons(400, noise=0.3, random_state=0)
X_TEST, Y_TEST = make_moons(2000, noise=0.3, random_state=1)
SVM = SVC(C=5).fit(X, Y)


@pytest.mark.parametrize(("scoring", "measure"), [("neg_log_loss", log_loss), ("neg_brier_score", brier_score_loss)])
def test_a_promise_on_probabilities_is_kept(scoring: str, measure: Any) -> None:
    small = slimsvm.compress(
        SVM, X, Y, max_loss=0.05, scoring=scoring, cv=2, method="reduced_set+refit", random_state=0
    )
    assert small.report_.scoring == scoring
    assert small.report_.estimate <= 0.05
    P = small.predict_proba(X_TEST)[:, 1]
    parent = CalibratedClassifierCV(SVC(C=5), ensemble=False).fit(X, Y).predict_proba(X_TEST)[:, 1]
    assert measure(Y_TEST, P) < measure(Y_TEST, parent) + 0.1


def test_the_model_s_own_probabilities_are_the_ones_to_keep() -> None:
    model = CalibratedClassifierCV(SVC(C=5), ensemble=False).fit(X, Y)
    answers: Any = cached_answers(import_model(model).machine, X_TEST)
    answers.calibrate(Y_TEST, np.ones(len(Y_TEST)))
    np.testing.assert_allclose(answers.predict_proba(np.arange(9)), model.predict_proba(X_TEST[:9]), atol=1e-9)
    small = slimsvm.compress(
        model, X, Y, max_loss=0.1, scoring="neg_log_loss", cv=2, method="reduced_set+refit", random_state=0
    )
    assert log_loss(Y_TEST, small.predict_proba(X_TEST)) < 0.6


def test_no_probability_is_fitted_on_its_own_sample() -> None:
    """Other labels of one half change the probabilities of the other half alone."""
    machine = import_model(SVM).machine
    first: Any = cached_answers(machine, X_TEST)
    first.calibrate(Y_TEST, np.ones(len(Y_TEST)))
    half = np.zeros(len(Y_TEST), dtype=bool)
    for label in (0, 1):
        half[np.flatnonzero(label == Y_TEST)[::2]] = True
    weights = np.where(half & (Y_TEST == 1), 5.0, 1.0)
    other: Any = cached_answers(machine, X_TEST)
    other.calibrate(Y_TEST, weights)
    rows = np.arange(len(Y_TEST))
    same = np.isclose(first.predict_proba(rows), other.predict_proba(rows)).all(axis=1)
    assert same[half].all()
    assert not same[~half].any()


def test_probabilities_that_are_refused() -> None:
    with pytest.raises(ValueError, match="calibrate of compress must not be None"):
        slimsvm.compress(SVM, X, Y, max_loss=0.05, scoring="neg_log_loss", calibrate=None)
    with pytest.raises(ValueError, match="reads predict_proba"):
        slimsvm.frontier(OneClassSVM().fit(X), X, scoring="neg_log_loss", sizes=[4])

"""WidthSearchCV: the two stages, inside scikit-learn's tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import GrowingSVC
from slimsvm.methods import WidthSearchCV


@pytest.fixture(scope="module")
def moons() -> Any:
    return make_moons(150, noise=0.2, random_state=0)


def test_ten_widths_between_the_two_best(moons: Any) -> None:
    search = WidthSearchCV(SVC()).fit(*moons)
    params, scores = search.cv_results_["params"], search.cv_results_["mean_test_score"]
    widths = np.array([each["gamma"] for each in params])
    assert len(widths) == 17
    np.testing.assert_allclose(widths[:7], np.geomspace(2e-4, 2.0, 7))
    best = np.sort(widths[np.argsort(-scores[:7], kind="stable")[:2]])
    np.testing.assert_allclose(widths[7:], np.geomspace(*best, 12)[1:-1])
    assert search.n_splits_ == 5
    assert search.best_score_ == scores.max()
    assert search.best_estimator_.gamma == search.best_params_["gamma"]


def test_other_parameters_go_along(moons: Any) -> None:
    search = WidthSearchCV(SVC(), {"C": [1e-3, 10.0]}, n_coarse=3, n_fine=2, cv=3).fit(*moons)
    params = search.cv_results_["params"]
    assert len(params[:6]) == 6
    assert {each["C"] for each in params[:6]} == {1e-3, 10.0}
    assert {each["C"] for each in params[6:]} == {10.0}
    assert search.best_params_["C"] == 10.0


def test_in_pipelines_and_cross_validation(moons: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), GrowingSVC(random_state=0))
    search = WidthSearchCV(pipeline, parameter="growingsvc__gamma", n_coarse=3, n_fine=2, cv=2)
    assert clone(search).get_params()["parameter"] == "growingsvc__gamma"
    assert cross_val_score(search, *moons, cv=2).mean() > 0.85


def test_several_metrics_need_one_that_decides(moons: Any) -> None:
    metrics = ["accuracy", "balanced_accuracy"]
    search = WidthSearchCV(SVC(), scoring=metrics, refit="accuracy", n_coarse=2, n_fine=1, cv=2).fit(*moons)
    assert "mean_test_balanced_accuracy" in search.cv_results_
    with pytest.raises(ValueError, match="must name the metric that decides"):
        WidthSearchCV(SVC(), scoring=metrics, refit=False, n_coarse=2, n_fine=1, cv=2).fit(*moons)


@pytest.mark.parametrize("options", [{"low": 0.0}, {"low": "a"}, {"low": 3.0}, {"n_coarse": 1}, {"n_fine": 1.5}])
def test_wrong_ranges(moons: Any, options: Any) -> None:
    with pytest.raises(ValueError, match="of WidthSearchCV must"):
        WidthSearchCV(SVC(), **options).fit(*moons)

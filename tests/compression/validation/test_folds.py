"""Held-out samples in all shapes: few, unbalanced, overlapping, grouped, weighed; and who may be judged on them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from slimsvm import PromiseError, compress
from slimsvm.compression.choose_size import SizeSearch
from slimsvm.compression.promise import Promise
from slimsvm.compression.validation.estimates import Assessment, Estimate
from slimsvm.compression.validation.folds import Fold
from slimsvm.methods import ReducedSet, Selection
from slimsvm.methods.common.deadline import Deadline

X, Y = make_moons(120, noise=0.3, random_state=0)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]
PARENT = SVC(C=2.0, gamma=1.0).fit(X, Y)
REGRESSION = SVR(C=5.0).fit(X, VALUES)
QUICK: dict[str, Any] = {"method": "selection", "random_state": 0}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_few_positives_have_a_standard_error(seed: int) -> None:
    some = np.r_[np.flatnonzero(Y == 0)[:60], np.flatnonzero(Y == 1)[:10]]
    parent = SVC(C=2.0, gamma=1.0).fit(X[some], Y[some])
    options: dict[str, Any] = {"scoring": "roc_auc", "method": "selection", "random_state": seed}
    report = compress(parent, X[some], Y[some], n_vectors=4, max_loss=0.5, **options).report_
    assert 0 < report.standard_error < 0.3


def test_overlapping_parts() -> None:
    splitter = ShuffleSplit(4, test_size=0.5, random_state=0)
    for model, y, scoring in ((REGRESSION, VALUES, None), (PARENT, Y, "roc_auc"), (PARENT, Y, None)):
        report = compress(model, X, y, max_loss=0.05, cv=splitter, scoring=scoring, **QUICK).report_
        assert 0 < report.standard_error < 0.2


def test_parts_of_one_sample() -> None:
    X_few, y_few, values = X[:24], Y[:24], VALUES[:24]
    svc, svr = SVC(C=2.0, gamma=1.0).fit(X_few, y_few), SVR(C=5.0).fit(X_few, values)
    told: dict[str, Any] = {"cv": LeaveOneOut(), "n_vectors": 5, **QUICK}
    assert compress(svc, X_few, y_few, scoring="neg_mean_absolute_error", **told).report_.standard_error > 0
    assert compress(svr, X_few, values, scoring="neg_mean_absolute_error", **told).report_.standard_error > 0
    report = compress(svr, X_few, max_disagreement=0.05, cv=LeaveOneOut(), **QUICK).report_
    assert report.disagreement <= 0.05


def test_groups_are_kept_together_where_the_parent_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, rows = np.arange(120) // 4, []
    real = Fold.of

    def spy(candidates: Any, samples: Any, held: Any = None, units: Any = None) -> Any:
        rows.append(held)
        return real(candidates, samples, held, units)

    monkeypatch.setattr(Fold, "of", spy)
    compress(PARENT, X, max_disagreement=0.05, groups=groups, **QUICK)
    held_out = [set(groups[some]) for some in rows if some is not None]
    assert sum(len(some) for some in held_out) == len(set.union(*held_out)) == 30
    with pytest.raises(ValueError, match=r"groups of compress must name a group for each of the 120 samples. Got 5"):
        compress(PARENT, X, max_disagreement=0.05, groups=np.arange(5), **QUICK)


@pytest.mark.parametrize(
    ("cv", "groups", "sentence"),
    [
        (
            GroupKFold(3),
            None,
            r"cv of compress is a GroupKFold, which .* needs to know them\. Pass groups=\.\.\., one group",
        ),
        (
            LeaveOneGroupOut(),
            None,
            r"cv of compress is a LeaveOneGroupOut, .* Pass groups=.*a number, such as cv=5, if",
        ),
        (KFold(3), np.arange(120) // 3, r"cv of compress, a KFold, divides 1 group between .* Pass a number, such"),
        (
            None,
            np.arange(120) % 3,
            r"groups of compress must be at least 5, one for each fold\. Got 3 groups\. Pass cv=3",
        ),
        (GroupKFold(4), np.zeros(120), r"must be at least 4, .* Got 1 group\. Pass smaller groups, or none"),
    ],
)
def test_folds_and_groups_that_do_not_go_together(cv: Any, groups: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        compress(PARENT, X, Y, max_loss=0.05, cv=cv, groups=groups, **QUICK)
    with pytest.raises(ValueError, match=sentence):
        compress(PARENT, X, max_disagreement=0.05, cv=cv, groups=groups, **QUICK)


def test_rows_of_weight_zero_keep_their_numbers() -> None:
    weights = np.r_[np.zeros(40), np.ones(80)]
    folds = [(np.arange(90), np.arange(90, 120))]
    report = compress(PARENT, X, max_disagreement=0.2, cv=folds, sample_weight=weights, **QUICK).report_
    assert report.held_out == "1 cross-validation fold over 30 samples"
    few = compress(PARENT, X, Y, max_loss=0.2, sample_weight=weights, **QUICK).report_
    assert few.held_out == "20 cross-validation folds over 80 samples"  # as many repeats as of 80 samples


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (make_pipeline(StandardScaler(), FrozenEstimator(PARENT)).fit(X, Y), "FrozenEstimator"),
        (CalibratedClassifierCV(FrozenEstimator(PARENT)).fit(X, Y), "FrozenEstimator"),
        (compress(make_pipeline(StandardScaler(), SVC()).fit(X, Y)), "SlimClassifier"),
    ],
)
def test_what_cannot_be_refitted_cannot_be_judged_by_folds(model: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"refits the model in each fold, and a {name} cannot be refitted"):
        compress(model, X, Y, max_loss=0.05, cv=3, **QUICK)


def test_no_score_is_certain() -> None:
    X_val, y_val = make_moons(20, noise=0.1, random_state=3)
    told: dict[str, Any] = {"max_loss": 0.0, "confidence": 0.999, "validation": (X_val, y_val), **QUICK}
    for scoring in (None, "balanced_accuracy"):
        assert compress(PARENT, X, Y, scoring=scoring, **told).n_vectors_ == len(PARENT.support_)


def test_mirror_points_have_two_vectors_at_least() -> None:
    small = compress(PARENT, X, Y, method="mirror", max_loss=0.3, cv=2, random_state=0)
    assert small.n_vectors_ >= 2
    with pytest.raises(PromiseError, match=r"the smallest machine, of 2 vectors, takes \d+ bytes"):
        compress(PARENT, X, Y, method="mirror", max_bytes=10, random_state=0)


def test_labels_in_a_column_and_coordinates() -> None:
    plain = compress(PARENT, X, Y, max_loss=0.05, cv=3, **QUICK).report_
    with pytest.warns(UserWarning, match="column-vector y"):
        column = compress(PARENT, X, Y[:, None], max_loss=0.05, cv=3, **QUICK).report_
    sparse = SVC(C=2.0, gamma=1.0).fit(coo_matrix(X), Y)
    other = compress(sparse, coo_matrix(X), Y, max_loss=0.05, cv=3, **QUICK).report_
    assert plain.estimate == column.estimate == pytest.approx(other.estimate)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_copies_in_one_group_are_no_more_samples(scoring: str | None) -> None:
    six = np.repeat(np.arange(120), 6)
    told: dict[str, Any] = {"n_vectors": 5, "cv": 5, "scoring": scoring, **QUICK}
    once = compress(PARENT, X, Y, groups=np.arange(120), **told).report_
    copies = compress(PARENT, X[six], Y[six], groups=six, **told).report_
    assert 0.6 < copies.standard_error / once.standard_error < 1.6


def test_a_distance_holds_with_data_too() -> None:
    svc = SVC(C=100.0, gamma=2.0).fit(X, Y)
    alone, with_data = (
        compress(svc, *data, method=ReducedSet(max_distance=0.01), random_state=0) for data in ((), (X, Y))
    )
    np.testing.assert_array_equal(alone.decision_function(X), with_data.decision_function(X))
    assert with_data.report_.method == "reduced_set"
    with pytest.raises(TypeError, match="max_distance"):
        Selection(max_distance=0.01)  # type: ignore[call-arg]


def test_several_values() -> None:
    T = np.c_[VALUES, X[:, 0] ** 2]
    ridge = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1).fit(X, T)
    small = compress(ridge, X, max_disagreement=0.05, random_state=0)
    assert small.n_vectors_ < 120
    assert small.report_.disagreement <= 0.05
    with pytest.raises(ValueError, match=r"y of compress must have one column. Got 2. Leave y out"):
        compress(ridge, X, T, max_disagreement=0.05, random_state=0)


def test_without_labels_nothing_is_known_of_the_loss() -> None:
    report = compress(PARENT, X, max_disagreement=0.05, **QUICK).report_
    assert (report.estimate, report.paired) == (None, None)
    assert "loss of" not in str(report)
    inside = OneClassSVM(nu=0.2).fit(X)
    assert compress(inside, X, max_loss=0.1, **QUICK).report_.estimate is not None  # agreement is their accuracy


def test_a_larger_size_that_breaks_the_promise_is_not_said_to_keep_it() -> None:
    losses = {2: 0.004, 4: 0.02}

    class Known:
        known: ClassVar[dict[Any, Any]] = {}

        def assess(self, method: str, m: int) -> Assessment:
            return Assessment(method, m, Estimate(losses[m], 0.001, 0.001), Estimate(0.0, 0.001, 0.001))

    validation: Any = Known()
    rungs = [("selection", 2), ("selection", 4)]
    search = SizeSearch(validation, Promise(max_loss=0.005), rungs, 100, Deadline())
    assert search.known_at(0).kept
    assert not search.known_at(1).kept


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_vectors": 5, "groups": np.arange(120)}, "groups of compress are for folds, and none are made here"),
        ({"n_vectors": 5, "scoring": "nonsense", "method": "reduced_set"}, "scoring of compress must be the name"),
        ({"method": "growing"}, "method='growing' of compress goes with a size or a promise"),
    ],
)
def test_what_would_be_ignored_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        compress(PARENT, X, Y, **options)


def test_too_few_for_folds() -> None:
    some = np.r_[np.flatnonzero(Y == 0)[:4], np.flatnonzero(Y == 1)[:4]]
    tiny = SVC().fit(X[some], Y[some])
    with pytest.raises(ValueError, match=r"8 samples cannot be divided into the folds of compress: .* Pass cv=2, say"):
        compress(tiny, X[some], Y[some], max_loss=0.1)
    with pytest.raises(ValueError, match=r"method='reduced_set\+refit' of compress needs X and y"):
        compress(PARENT, n_vectors=5, method="reduced_set+refit")
    assert compress(REGRESSION, X[:1], VALUES[:1], n_vectors=5, random_state=0).n_vectors_ == 5


def test_a_scorer_of_ones_own_takes_no_weights() -> None:
    def share(model: Any, X_held: Any, y_held: Any) -> float:
        return float(np.mean(model.predict(X_held) == y_held))

    weights = np.linspace(0.5, 1.0, 120)
    report = compress(PARENT, X, Y, max_loss=0.1, scoring=share, sample_weight=weights, cv=3, **QUICK).report_
    assert report.estimate <= 0.1


@pytest.mark.parametrize("parent", [PARENT, make_pipeline(StandardScaler(), SVC()).fit(X, Y)], ids=["svm", "pipeline"])
def test_validation_data_of_another_width_are_named(parent: Any) -> None:
    wide = np.column_stack([X, X])
    with pytest.raises(ValueError, match=r"^validation of compress does not fit the model: X has 4 features"):
        compress(parent, X, Y, n_vectors=4, validation=(wide, Y), **QUICK)


def test_the_report_of_a_regression_says_what_its_disagreement_is() -> None:
    report = compress(REGRESSION, X, VALUES, n_vectors=8, validation=(X, VALUES), **QUICK).report_
    assert "Squared difference from the original model's predictions, as a share of their variance: " in str(report)
    assert "Predictions that differ" not in str(report)

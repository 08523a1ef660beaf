"""compress() keeps a promise: the size is found, on samples that neither machine saw, and the report says how."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm import PromiseError, compress
from slimsvm.compression.tasks import task_of
from slimsvm.compression.validation.answers import Comparison, cached_answers
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.estimates import loss
from slimsvm.compression.validation.scoring import resolve_scoring
from slimsvm.exceptions import UncertainPromiseWarning
from slimsvm.formats.c import table_bytes
from slimsvm.importers import import_model
from slimsvm.methods import ReducedSet

X, Y = make_moons(300, noise=0.3, random_state=0)
X_TEST, Y_TEST = make_moons(3000, noise=0.3, random_state=1)
PARENT = SVC(C=2.0, gamma=1.0).fit(X, Y)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]


def test_folds() -> None:
    small = compress(PARENT, X, Y, max_loss=0.01, random_state=0)
    report = small.report_
    assert small.n_vectors_ == report.n_vectors < len(PARENT.support_) / 4
    assert report.parent_vectors == len(PARENT.support_)
    assert report.estimate <= 0.01
    assert 0 < report.standard_error < 0.1
    lost = PARENT.score(X_TEST, Y_TEST) - small.score(X_TEST, Y_TEST)
    assert abs(lost - report.estimate) < 3 * report.standard_error
    assert "10 cross-validation folds over 300 samples" in report.held_out  # on few samples, five of them twice
    assert {row["method"] for row in report.tried} >= {"sparse_margin", "reduced_set"}
    assert f"by {report.method}" in str(report)
    assert report.as_dict()["promise"] == {"max_loss": 0.01}
    assert report.compression == report.parent_vectors / report.n_vectors


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_more_folds_of_the_same_samples_are_no_more_samples(scoring: str) -> None:
    parent, small = import_model(PARENT).machine, import_model(SVC(gamma=0.1).fit(X[:30], Y[:30])).machine
    halves = np.arange(150), np.arange(150, 300)
    parts = [
        Comparison(cached_answers(parent, X[rows]), cached_answers(small, X[rows]), Y[rows], np.ones(150), rows)
        for rows in halves
    ]
    scorer = resolve_scoring(scoring, task_of(parent.answer), "compress")
    once, twice = loss(parts, scorer), loss([*parts, *parts], scorer)
    assert once.error > 0.005
    assert (twice.value, twice.error, twice.sample_error) == pytest.approx((once.value, once.error, once.sample_error))


def test_a_sample_judged_more_often_is_known_better() -> None:
    options: dict[str, Any] = {"n_vectors": 4, "method": "selection", "random_state": 0}
    once = compress(PARENT, X, Y, cv=5, **options).report_
    splitter = RepeatedStratifiedKFold(n_splits=5, n_repeats=8, random_state=0)
    often = compress(PARENT, X, Y, cv=splitter, **options).report_
    assert often.held_out == "40 cross-validation folds over 300 samples"
    assert 0.7 < often.standard_error / once.standard_error < 1.0


def test_folds_may_be_lists_and_masks() -> None:
    held_out = [np.arange(300) % 3 == i for i in range(3)]
    masks = [(~one, one) for one in held_out]
    lists = [(np.flatnonzero(train).tolist(), np.flatnonzero(test).tolist()) for train, test in masks]
    options: dict[str, Any] = {"n_vectors": 4, "method": "selection", "random_state": 0}
    weights = np.where(np.arange(300) % 7 == 0, 0.0, 1.0)
    one, other = (compress(PARENT, X, Y, cv=cv, sample_weight=weights, **options).report_ for cv in (masks, lists))
    assert one.held_out == "3 cross-validation folds over 257 samples"
    assert (one.estimate, one.standard_error) == (other.estimate, other.standard_error)


def test_few_samples_are_held_out_several_times() -> None:
    for n, groups, folds in ((90, None, 20), (190, None, 15), (300, np.arange(300) // 3, 5)):
        report = compress(
            PARENT, X[:n], Y[:n], max_loss=0.05, groups=groups, method="selection", random_state=0
        ).report_
        assert report.held_out == f"{folds} cross-validation folds over {n} samples"


def test_real_data(shared_data: Any) -> None:
    """Noisy data of which a few vectors tell as much as hundreds."""
    data = shared_data("ida_diabetis", 0)
    svc = SVC(C=1.0, gamma=1 / 20).fit(data["X_train"], data["y_train"])
    small = compress(svc, data["X_train"], data["y_train"], max_loss=0.01, cv=3, random_state=0)
    assert small.n_vectors_ * 10 < len(svc.support_)
    lost = svc.score(data["X_test"], data["y_test"]) - small.score(data["X_test"], data["y_test"])
    assert abs(lost - small.report_.estimate) < 2.5 * small.report_.standard_error


def test_the_estimate_is_the_paired_difference_on_validation_data() -> None:
    """The machine that was judged is the one that comes back: a plain count of its errors tells the same."""
    small = compress(PARENT, X, Y, n_vectors=6, method="sparse_margin", validation=(X_TEST, Y_TEST), random_state=0)
    parent, own = PARENT.predict(X_TEST) == Y_TEST, small.predict(X_TEST) == Y_TEST
    assert small.report_.paired == pytest.approx(parent.mean() - own.mean(), abs=1e-12)
    assert abs(small.report_.estimate - small.report_.paired) < 2 * small.report_.standard_error
    assert small.report_.disagreement == pytest.approx(np.mean(parent != own), abs=1e-12)
    differences = parent.astype(float) - own
    one_more = 1.0 / len(differences)  # a differing sample beyond those seen
    alone = np.sqrt((differences.var() + one_more) / len(differences))
    assert small.report_.standard_error == pytest.approx(np.sqrt(2) * alone, rel=0.05)
    assert "3000 validation samples" in small.report_.held_out


def test_validation_and_a_promise() -> None:
    small = compress(PARENT, X, Y, max_loss=0.005, validation=(X_TEST, Y_TEST), random_state=0)
    lost = PARENT.score(X_TEST, Y_TEST) - small.score(X_TEST, Y_TEST)
    assert lost <= 0.01
    assert small.n_vectors_ < len(PARENT.support_) / 4


def test_confidence_asks_for_more() -> None:
    told: Any = {"validation": (X_TEST, Y_TEST), "method": "sparse_margin", "random_state": 0}
    plain = compress(PARENT, X, Y, max_loss=0.01, **told)
    sure = compress(PARENT, X, Y, max_loss=0.01, confidence=0.95, **told)
    assert sure.n_vectors_ >= plain.n_vectors_
    assert sure.report_.bound <= 0.01
    assert sure.report_.bound > sure.report_.estimate
    assert plain.report_.bound is None


def test_disagreement_needs_no_labels() -> None:
    small = compress(PARENT, X, max_disagreement=0.05, cv=3, random_state=0)
    assert np.mean(small.predict(X_TEST) != PARENT.predict(X_TEST)) < 0.08
    assert small.n_vectors_ < len(PARENT.support_) / 3
    file_like = compress(PARENT).machine_
    again = compress(file_like, X, max_disagreement=0.05, cv=3, random_state=0)
    assert again.n_vectors_ < len(PARENT.support_) / 3
    held = compress(PARENT, X, max_disagreement=0.05, validation=(X_TEST, None), random_state=0)
    assert np.mean(held.predict(X_TEST) != PARENT.predict(X_TEST)) <= 0.055


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", pytest.param("f1", marks=pytest.mark.slow)])
def test_other_scores(scoring: str) -> None:
    X_val, y_val = X_TEST[:1000], Y_TEST[:1000]
    small = compress(PARENT, X, Y, max_loss=0.02, scoring=scoring, validation=(X_val, y_val), random_state=0)
    report, scorer = small.report_, get_scorer(scoring)
    lost = scorer(PARENT, X_val, y_val) - scorer(small, X_val, y_val)
    assert report.scoring == scoring
    assert report.estimate == pytest.approx(lost, abs=1e-4)
    assert report.estimate <= 0.02
    assert 0 < report.standard_error < 0.05


def test_a_scorer_of_ones_own_sees_the_samples() -> None:
    def right(model: Any, data: Any, labels: Any) -> float:
        assert data.shape[1] == 2
        return float(accuracy_score(labels, model.predict(data)))

    told: Any = {"n_vectors": 6, "method": "selection", "validation": (X_TEST, Y_TEST), "random_state": 0}
    own, plain = compress(PARENT, X, Y, scoring=right, **told), compress(PARENT, X, Y, **told)
    assert own.report_.estimate == pytest.approx(plain.report_.paired)
    assert own.report_.standard_error == pytest.approx(plain.report_.standard_error, rel=0.5)
    assert own.report_.scoring == "right"


def test_values_and_one_class() -> None:
    svr = SVR(C=5.0).fit(X, VALUES)
    small = compress(svr, X, VALUES, max_loss=0.02, method="sparse_margin", cv=3, random_state=0)
    assert small.report_.scoring == "r2"
    assert small.n_vectors_ < len(svr.support_)
    assert small.score(X, VALUES) > svr.score(X, VALUES) - 0.04
    inside = OneClassSVM(nu=0.2, gamma=1.0).fit(X)
    small = compress(inside, X, max_loss=0.08, method="reduced_set+refit", cv=3, random_state=0)
    assert np.mean(small.predict(X_TEST) == inside.predict(X_TEST)) > 0.85


def test_pipelines_groups_and_weights() -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC(C=3.0)).fit(features, labels)
    groups, weights = np.arange(len(labels)) // 3, np.where(np.arange(len(labels)) % 7, 1.0, 0.0)
    told: Any = {"max_loss": 0.02, "groups": groups, "sample_weight": weights, "cv": 3, "random_state": 0}
    small = compress(model, features, labels, method="reduced_set+refit", **told)
    assert isinstance(small, Pipeline)
    assert small.report_ is small[-1].report_
    assert small.score(features, labels) > model.score(features, labels) - 0.03
    assert small.report_.held_out == f"3 cross-validation folds over {int(weights.sum())} samples"
    folded = compress(model, features, labels, method="reduced_set+refit", fuse=True, **told)
    assert folded.n_vectors_ == small[-1].n_vectors_


def test_the_same_seed_gives_the_same_machine_for_any_n_jobs() -> None:
    one = compress(PARENT, X[:150], Y[:150], max_loss=0.02, cv=3, random_state=3)
    two = compress(PARENT, X[:150], Y[:150], max_loss=0.02, cv=3, random_state=3, n_jobs=2)
    assert one.machine_ == two.machine_
    assert one.report_ == two.report_


def test_bytes_and_size_together() -> None:
    fits = compress(PARENT, X, Y, max_bytes=150, method="sparse_margin", random_state=0)
    assert table_bytes(fits.machine_) == fits.report_.n_bytes <= 150
    assert fits.n_vectors_ > 5
    both = compress(PARENT, X, Y, max_bytes=5000, max_loss=0.02, method="reduced_set+refit", cv=2, random_state=0)
    assert both.report_.n_bytes <= 5000
    with pytest.raises(PromiseError, match=r"max_loss=0 of compress cannot be kept with n_vectors=2") as caught:
        compress(PARENT, X, Y, max_loss=0.0, n_vectors=2, validation=(X_TEST, Y_TEST), random_state=0)
    best: Any = caught.value.best
    assert best.n_vectors_ == 2
    assert best.report_.estimate > 0
    with pytest.raises(
        PromiseError,
        match=r"max_bytes=1 of compress cannot be kept: the smallest machine, of 1 vector, takes \d+ bytes",
    ):
        compress(PARENT, X, Y, max_bytes=1)


def test_data_that_cannot_show_a_promise() -> None:
    selected = {"method": "selection", "random_state": 0}
    with pytest.warns(
        UncertainPromiseWarning,
        match=r"cannot show that max_loss=0.015 of compress is kept: on 2 cross-validation folds over 300 samples, "
        r"the loss is -?0.0\d+ with a standard error of 0.0\d+. Pass more samples or a larger max_loss, or "
        r"confidence=0.95",
    ):
        small = compress(PARENT, X, Y, max_loss=0.015, cv=2, **selected)
    assert small.report_.standard_error > 0.015
    with pytest.warns(
        UncertainPromiseWarning, match="max_disagreement=0.004 .* the disagreement is .* with a standard error"
    ):
        compress(PARENT, X, max_disagreement=0.004, validation=(X_TEST[:100], None), **selected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(PARENT, X, Y, max_loss=0.05, validation=(X_TEST, Y_TEST), **selected)
        compress(PARENT, X, Y, max_loss=0.01, confidence=0.9, cv=2, **selected)


def test_latency() -> None:
    fast = compress(PARENT, X, Y, max_latency_us=1e6, max_loss=0.05, method="selection", cv=2, random_state=0)
    assert 0 < fast.report_.latency_us < 1e6
    with pytest.raises(PromiseError, match="max_latency_us"):
        compress(PARENT, X, Y, max_latency_us=1e-3, random_state=0)


class Clock:
    """Stands in for the clock: an answer takes 2 µs and 0.05 µs per vector, and every second one twice as long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, slower: float = 1.0) -> None:
        self.asked: list[Any] = []
        self.slower = slower  # the machines that are returned, than their stand-ins
        monkeypatch.setattr("slimsvm.compression.costs.microseconds_alone", self.microseconds)

    def microseconds(self, ask: Any, rows: Any) -> float:
        ask(rows[:1])
        self.asked.append(ask.__self__)
        model = self.asked[-1][-1] if isinstance(self.asked[-1], Pipeline) else self.asked[-1]
        coef = model.machine_.head.coef
        slower = 1.0 if (coef == 1.0).all() else self.slower
        return float(slower * (2.0 + 0.05 * len(coef)) * (1 + len(self.asked) % 2))


def test_slow_moments_do_not_change_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    small = compress(PARENT, X, Y, max_latency_us=5.0, method="reduced_set", random_state=0)
    assert 58 <= small.n_vectors_ <= 60
    assert small.report_.latency_us <= 5.0


def test_a_machine_that_is_slower_than_expected_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, slower=1.03)
    small = compress(PARENT, X, Y, max_latency_us=5.0, method="reduced_set", random_state=0)
    assert 53 <= small.n_vectors_ <= 57
    assert small.report_.latency_us <= 5.0
    judged = {"max_loss": 0.2, "validation": (X_TEST[:200], Y_TEST[:200]), "method": "reduced_set"}
    small = compress(PARENT, X, Y, max_latency_us=2.15, **judged, random_state=0)
    assert small.report_.latency_us <= 2.15
    assert small.report_.estimate is not None


@pytest.mark.parametrize("data", [{"X": X, "y": Y}, {}], ids=["data", "none"])
def test_latency_counts_the_steps_of_a_pipeline(monkeypatch: pytest.MonkeyPatch, data: dict[str, Any]) -> None:
    clock = Clock(monkeypatch)
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, Y)
    compress(pipeline, **data, max_latency_us=5.0, method="reduced_set", random_state=0)
    assert clock.asked
    assert all(isinstance(one, Pipeline) for one in clock.asked)


def test_latency_of_steps_without_data_to_time_them_on() -> None:
    step = FunctionTransformer()
    pipeline = make_pipeline(step, SVC()).fit(X, Y)
    del step.n_features_in_
    with pytest.raises(ValueError, match=r"'functiontransformer' needs data to be timed on\. Pass X\."):
        compress(pipeline, max_latency_us=5.0)


def test_where_nothing_smaller_serves_the_parent_comes_back() -> None:
    small = compress(PARENT, X, Y, max_loss=0.0, confidence=0.999, method="selection", cv=2, random_state=0)
    assert small.n_vectors_ == len(PARENT.support_)
    assert "nothing smaller keeps the promise" in small.report_.reason
    assert (small.predict(X_TEST) == PARENT.predict(X_TEST)).all()


@pytest.mark.parametrize("like", [1, 3, 10**6])
def test_a_machine_unlike_those_of_the_folds_gives_way_to_a_larger_one(
    monkeypatch: pytest.MonkeyPatch, like: int
) -> None:
    """A search may end in a bad place for the one machine that was not judged; if all do, the model itself serves."""
    usual = compress(PARENT, X, Y, max_loss=0.01, method="reduced_set", cv=3, random_state=0).n_vectors_
    asked: list[int] = []

    def unlike(self: Validation, machine: Any, method: str, m: int, problem: Any) -> float:
        asked.append(m)
        return 0.0 if len(asked) >= like else abs(len(asked) - 2) + 0.1

    monkeypatch.setattr(Validation, "excess_disagreement", unlike)
    small = compress(PARENT, X, Y, max_loss=0.01, method="reduced_set", cv=3, random_state=0)
    assert asked[0] == usual
    assert asked == sorted(set(asked))
    last = PARENT.n_support_.sum()
    assert small.n_vectors_ == small.report_.n_vectors == {1: usual, 3: asked[-1]}.get(like, last)
    assert small.report_.estimate <= 0.01


def test_a_file_needs_validation_data() -> None:
    machine = compress(PARENT).machine_
    with pytest.raises(ValueError, match=r"a KernelMachine cannot be refitted\. Pass validation=\(X_val, y_val\)"):
        compress(machine, X, Y, max_loss=0.01)
    small = compress(machine, X, Y, max_loss=0.01, validation=(X_TEST, Y_TEST), random_state=0)
    assert small.n_vectors_ < machine.n_vectors
    alone = compress(machine, max_loss=0.01, validation=(X_TEST, Y_TEST), random_state=0)
    assert alone.report_.method in ("reduced_set", "selection")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_loss": -0.1}, r"max_loss of compress must be a finite number of at least 0, or None\. Got -0\.1"),
        ({"max_loss": float("nan")}, "max_loss of compress must be a finite number"),
        ({"max_loss": "0.1"}, "max_loss of compress must be a finite number"),
        ({"max_disagreement": 1.5}, "max_disagreement of compress must be a number from 0 to below 1, or None"),
        ({"max_bytes": 0}, "max_bytes of compress must be a finite number of at least 1"),
        ({"max_loss": 0.1, "confidence": 2.0}, "confidence of compress must be a number from 0.5 to below 1"),
        ({"confidence": 0.9}, "confidence of compress goes with max_loss"),
        ({"max_loss": 0.1, "scoring": "nonsense"}, "scoring of compress must be the name of a scikit-learn scorer"),
        ({"max_loss": 0.1, "scoring": "neg_log_loss", "calibrate": None}, "calibrate of compress must not be None"),
        ({"max_loss": 0.1, "cv": 1}, "cv of compress must be at least 2 folds"),
        ({"max_loss": 0.1, "cv": 3, "validation": (X, Y)}, "compress takes cv or validation, not both"),
        ({"max_loss": 0.1, "groups": np.arange(300), "validation": (X, Y)}, "groups of compress go with cv"),
        ({"max_loss": 0.1, "groups": np.arange(299)}, "groups of compress must name a group for each of the 300"),
        ({"max_loss": 0.1, "validation": X}, r"validation of compress must be a pair"),
        ({"max_loss": 0.1, "validation": (X, None)}, "validation of compress needs y_val"),
        ({"max_loss": 0.1, "validation": (X[:, :1], Y)}, "X has 1 features"),
        ({"max_loss": 0.1, "validation": (X, Y + 1)}, "holds labels that the model does not know: 2"),
        ({"cv": 5}, "cv of compress goes with a promise"),
        ({"max_loss": 0.1, "n_vectors": [3, 4]}, "n_vectors of compress with a promise is the most vectors"),
        ({"max_loss": 0.1, "method": ReducedSet(max_distance=0.1)}, "compress takes max_distance alone"),
        ({"max_loss": 0.1, "method": "nonsense"}, "method of compress must be one of 'auto', 'sparse_margin'"),
    ],
)
def test_bad_input(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        compress(PARENT, X, Y, **options)


def test_missing_data() -> None:
    with pytest.raises(ValueError, match="max_loss of compress is judged on held-out data: X is missing"):
        compress(PARENT, max_loss=0.01)
    with pytest.raises(ValueError, match="held-out data: y is missing"):
        compress(PARENT, X, max_loss=0.01)


def test_ctrl_c_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from slimsvm.compression.validation import folds

    count = 0

    def interrupted(*args: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return answers(*args, **options)

    answers = folds.cached_answers
    monkeypatch.setattr(folds, "cached_answers", interrupted)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(PARENT, X, Y, max_loss=0.01, method="selection", validation=(X_TEST, Y_TEST), random_state=0)
    best: Any = caught.value.best
    assert best.score(X_TEST, Y_TEST) > 0.6

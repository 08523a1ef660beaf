"""C of a machine whose size is given: less than the model's where that does better on held-out samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm.compression import effort, job, softness
from slimsvm.compression.recipes import EARLY_EXIT, RECIPES, Workshop
from slimsvm.compression.softness import SHARES, TRAINED, Softening
from slimsvm.compression.source import Source

X, CLEAN = make_moons(200, noise=0.3, random_state=0)
Y = np.where(np.random.default_rng(0).random(200) < 0.25, 1 - CLEAN, CLEAN)  # labels that a large C follows
X_TEST, Y_TEST = make_moons(2000, noise=0.3, random_state=1)
SAID = "C times"


def overfitted() -> Any:
    return SVC(C=30.0, gamma=3.0).fit(X, Y)


def shop_of(svc: Any, scorer: Any = None, rows: Any = slice(None)) -> tuple[Workshop, Softening]:
    softening = Softening(scorer)
    return Workshop(Source.of(svc, X[rows], Y[rows]), 0, finish=softening), softening


@pytest.mark.parametrize("recipe", TRAINED)
def test_a_c_that_follows_every_label_is_lowered(recipe: str) -> None:
    svc = overfitted()
    shop, softening = shop_of(svc)
    soft, hard = shop.machine(recipe, 60), Workshop(Source.of(svc, X, Y), 0).machine(recipe, 60)
    assert SAID in softening.told(shop, recipe, 60)
    assert SAID in softening.told(shop, recipe + EARLY_EXIT, 60)
    np.testing.assert_array_equal(soft.points, hard.points)
    errors = [np.mean(one.predict(X_TEST) != Y_TEST) for one in (soft, hard)]
    assert errors[0] < errors[1] - 0.02


@pytest.mark.parametrize("recipe", sorted(set(RECIPES) - set(TRAINED)))
def test_machines_without_such_coefficients_stay_as_they_are(recipe: str) -> None:
    svc = overfitted()
    shop, softening = shop_of(svc)
    assert shop.machine(recipe, 60) == Workshop(Source.of(svc, X, Y), 0).machine(recipe, 60)
    assert softening.told(shop, recipe, 60) == ""


def test_a_good_c_stays() -> None:
    """Stripes that a softer margin cannot follow."""
    points = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    labels = np.where(np.sin(8 * points[:, 0]) > 0, "a", "b")
    small = slimsvm.compress(SVC(C=0.3, gamma=10.0).fit(points, labels), points, labels, n_vectors=15, random_state=0)
    assert SAID not in small.report_.reason


def test_through_the_public_door() -> None:
    svc = overfitted()
    same: Any = {"n_vectors": 60, "random_state": 0}
    small = slimsvm.compress(svc, X, Y, **same)
    kept = slimsvm.compress(svc, X, Y, C=30.0, **same)
    assert SAID in small.report_.reason
    assert small.report_.method == kept.report_.method
    assert SAID not in kept.report_.reason
    assert small.score(X_TEST, Y_TEST) > kept.score(X_TEST, Y_TEST) + 0.02
    assert slimsvm.compress(svc, X, Y, n_jobs=2, **same).machine_ == small.machine_


@pytest.mark.parametrize(
    "asked",
    [
        {"n_vectors": 20, "method": "sparse_margin"},
        {"max_loss": 0.02, "cv": 2},
        {"max_disagreement": 0.2, "cv": 2},
        {"n_vectors": 20, "cv": 2, "groups": np.arange(200) // 2},
        {"n_vectors": 20, "cv": [(np.arange(100), np.arange(100, 200))]},
    ],
    ids=lambda asked: ", ".join(asked),
)
def test_c_is_the_models_where_it_is_no_choice(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A named method is that method; promises are about the model; folds of its own would divide groups."""
    monkeypatch.setattr(job, "Softening", None)  # which nobody may call
    assert SAID not in slimsvm.compress(overfitted(), X, Y, random_state=0, **asked).report_.reason


def test_without_labels_the_model_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "Softening", None)
    assert SAID not in slimsvm.compress(overfitted(), X, n_vectors=20, random_state=0).report_.reason


def test_where_all_vectors_stay_the_report_is_about_the_parent() -> None:
    svc = overfitted()
    with pytest.warns(UserWarning, match="it comes back as it is"):
        same = slimsvm.compress(svc, X, Y, n_vectors=500, validation=(X_TEST, Y_TEST), random_state=0)
    assert SAID not in same.report_.reason
    assert same.report_.estimate == 0.0


def test_samples_may_be_too_few_for_any_choice() -> None:
    """A standard error by ROC AUC needs more than ten samples, and a fold of equal points has no vectors."""
    few = np.r_[np.flatnonzero(Y == 0)[:4], np.flatnonzero(Y == 1)[:4]]
    svc = SVC(gamma=3.0).fit(X[few], Y[few])
    held: Any = {"validation": (X_TEST, Y_TEST), "random_state": 0}
    assert slimsvm.compress(svc, X[few], Y[few], n_vectors=2, metric="roc_auc", **held).n_vectors_ == 2
    flat, labels = np.zeros((42, 1)), 1 - np.arange(42) % 2
    flat[0] = 1.0
    slimsvm.compress(SVC().fit(flat, labels), flat, labels, n_vectors=1, validation=(flat, labels), random_state=0)


def test_ctrl_c_in_the_calibration_leaves_the_finished_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise slimsvm.Interrupted(overfitted_machine())

    def overfitted_machine() -> Any:
        return Source.of(overfitted()).machine

    monkeypatch.setattr(job, "own_scores", stop)
    with pytest.raises(slimsvm.Interrupted) as caught:
        slimsvm.compress(overfitted(), X, Y, n_vectors=20, calibrate="sigmoid", random_state=0)
    left: Any = caught.value.best
    assert left.n_vectors_ == 20


def test_folds_judge_machines_that_were_made_the_same_way() -> None:
    svc = overfitted()
    same: Any = {"n_vectors": 60, "cv": 2, "random_state": 0}
    small, kept = slimsvm.compress(svc, X, Y, **same), slimsvm.compress(svc, X, Y, C=30.0, **same)
    assert SAID in small.report_.reason
    judged = [{one["method"]: one["loss"] for one in slim.report_.tried} for slim in (small, kept)]
    assert judged[0]["selection"] < judged[1]["selection"]
    assert judged[0]["reduced_set"] == judged[1]["reduced_set"]


def test_bytes_alone_give_a_size() -> None:
    assert SAID in slimsvm.compress(overfitted(), X, Y, max_bytes=724, random_state=0).report_.reason


def test_the_metric_decides() -> None:
    """By a score that wants errors, the C is another one than by accuracy."""

    def errors(machine: Any, rows: Any, y: Any) -> float:
        return float(np.mean(machine.predict(rows) != y))

    svc = overfitted()
    (shop, softening), (other, by_errors) = shop_of(svc), shop_of(svc, errors)
    for one in (shop, other):
        one.machine("selection", 60)
    assert softening.told(shop, "selection", 60) != by_errors.told(other, "selection", 60)


def test_several_classes_weights_and_a_class_of_one_sample() -> None:
    features, labels = load_iris(return_X_y=True)
    svc = SVC(C=10.0, class_weight="balanced").fit(features, labels)
    weights = np.where(np.arange(150) % 5, 1.0, 0.0)
    small = slimsvm.compress(svc, features, labels, n_vectors=6, sample_weight=weights, random_state=0)
    assert small.score(features, labels) > 0.93
    rare = np.r_[0, 50:150]
    few = slimsvm.compress(
        SVC().fit(features[rare], labels[rare]), features[rare], labels[rare], n_vectors=6, random_state=0
    )
    assert SAID not in few.report_.reason


def test_ctrl_c_leaves_the_machine_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(Softening, "_best_share", stop)
    with pytest.raises(slimsvm.Interrupted) as caught:
        slimsvm.compress(overfitted(), X, Y, n_vectors=20, random_state=0)
    left: Any = caught.value.best
    assert left.n_vectors_ == 20
    assert left.machine_ == slimsvm.compress(overfitted(), X, Y, n_vectors=20, C=30.0, random_state=0).machine_


def test_values_have_no_such_choice() -> None:
    values = np.sin(2 * X[:, 0]) + X[:, 1]
    small = slimsvm.compress(SVR().fit(X, values), X, values, n_vectors=10, random_state=0)
    assert SAID not in small.report_.reason


def test_of_many_samples_c_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert effort.SMALL == softness.MANY
    monkeypatch.setattr(softness, "MANY", 199)
    assert SAID not in slimsvm.compress(overfitted(), X, Y, n_vectors=60, random_state=0).report_.reason


def test_of_few_samples_folds_are_repeated() -> None:
    y = np.arange(600) % 2
    assert [len(list(softness._folds(y[:n], 0))) for n in (40, 200, 300, 600)] == [20, 15, 10, 5]
    held = np.concatenate([test for _, test in softness._folds(y[:200], 0)])
    assert (np.bincount(held) == 3).all()
    assert len(list(softness._folds(np.r_[0, np.ones(9, dtype=int)], 0))) == 0
    assert len(list(softness._folds(np.repeat([0, 1], [3, 597]), 0))) == 3
    assert SHARES[0] == 1.0

"""Probabilities of small machines: honest ones, from samples that had no part in making them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm import compress
from slimsvm.calibration import Isotonic, Sigmoid
from slimsvm.compression.calibrate import with_probabilities
from slimsvm.methods import MirrorPoints, ReducedSet
from slimsvm.methods.calibration_fit import calibrate_machine


@pytest.fixture(scope="module")
def moons() -> Any:
    return make_moons(200, noise=0.35, random_state=0)


@pytest.fixture(scope="module")
def fresh() -> Any:
    return make_moons(2000, noise=0.35, random_state=1)


@pytest.fixture(scope="module")
def svc(moons: Any) -> Any:
    return SVC(C=10, gamma=2.0).fit(*moons)


@pytest.mark.parametrize("method", ["reduced_set", "reduced_set+refit", "sparse_margin"])
def test_probabilities_are_honest_on_new_data(svc: Any, moons: Any, fresh: Any, method: str) -> None:
    plain = compress(svc, *moons, n_vectors=12, method=method, random_state=0)
    small = compress(svc, *moons, n_vectors=12, method=method, calibrate="sigmoid", random_state=0)
    assert not hasattr(plain, "predict_proba")
    np.testing.assert_array_equal(small.predict(fresh[0]), plain.predict(fresh[0]))
    P = small.predict_proba(fresh[0])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    seen = calibrate_machine(
        plain.machine_, plain.machine_.scores(fresh[0]), fresh[1], "sigmoid"
    )  # on the test data themselves
    assert log_loss(fresh[1], P) < log_loss(fresh[1], seen.predict_proba(fresh[0])) + 0.05
    sure = P.max(axis=1)
    assert abs(sure.mean() - small.score(*fresh)) < 0.06  # as often right as it says


def test_parents_of_folds_have_no_probabilities_and_warn_of_nothing(moons: Any) -> None:
    for wrapped in (lambda model: model, lambda model: make_pipeline(StandardScaler(), model)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of scikit-learn 1.9, for the user to see once
            parent = wrapped(SVC(probability=True, random_state=0)).fit(*moons)
        small = compress(parent, *moons, n_vectors=8, method="selection", cv=3, random_state=0)
        assert small.predict_proba(moons[0]).shape == (200, 2)


def test_validation_data_serve(svc: Any, moons: Any, fresh: Any) -> None:
    held = fresh[0][:300], fresh[1][:300]
    small = compress(
        svc, *moons, n_vectors=12, method="reduced_set", validation=held, calibrate="isotonic", random_state=0
    )
    own = calibrate_machine(small.machine_, small.machine_.scores(held[0]), held[1], "isotonic")
    np.testing.assert_array_equal(small.predict_proba(fresh[0]), own.predict_proba(fresh[0]))
    assert isinstance(small.machine_.calibration, Isotonic)


def test_folds_that_judged_it_serve(svc: Any, moons: Any) -> None:
    folds = StratifiedKFold(3)
    small = compress(svc, *moons, n_vectors=8, method="reduced_set", cv=folds, calibrate="sigmoid", random_state=0)
    assert small.report_.estimate is not None
    assert 0.5 < small.predict_proba(moons[0]).max(axis=1).mean() < 1.0
    promised = compress(
        svc, *moons, max_loss=0.05, method="reduced_set+refit", cv=folds, calibrate="sigmoid", random_state=0
    )
    assert promised.predict_proba(moons[0]).shape == (200, 2)


def test_a_parent_with_probabilities_gives_small_machines_with_them(moons: Any) -> None:
    for kind, expected in (("sigmoid", Sigmoid), ("isotonic", Isotonic)):
        parent = CalibratedClassifierCV(SVC(C=10, gamma=2.0), method=kind, ensemble=False).fit(*moons)
        small = compress(parent, *moons, n_vectors=10, method="reduced_set+refit", random_state=0)
        assert isinstance(small.machine_.calibration, expected)
        assert not small.machine_.calibration.decides
        without = compress(parent, *moons, n_vectors=10, method="reduced_set+refit", calibrate=None, random_state=0)
        assert not hasattr(without, "predict_proba")
        whole = compress(parent, *moons)  # its own vectors, new coefficients
        assert isinstance(whole.machine_.calibration, expected)
        kept = compress(parent, n_vectors=20, random_state=0)  # no data: the parent's own, on nearly its scores
        assert kept.machine_.calibration == compress(parent).machine_.calibration
    assert not hasattr(compress(parent, calibrate=None), "predict_proba")


def test_several_classes_behind_a_scaler() -> None:
    X, y = load_iris(return_X_y=True)
    for inner in (OneVsRestClassifier(SVC(C=5)), SVC(C=5)):
        model = make_pipeline(StandardScaler(), inner).fit(X, y)
        for method in ("reduced_set+refit", "reduced_set"):
            small = compress(model, X, y, n_vectors=10, method=method, calibrate="sigmoid", random_state=0)
            P = small.predict_proba(X)
            assert P.shape == (150, 3)
            assert np.mean(P.argmax(axis=1) == y) > 0.9
            assert log_loss(y, P) < 0.3


def test_the_same_seed_gives_the_same_probabilities(svc: Any, moons: Any) -> None:
    some = [
        compress(svc, *moons, n_vectors=8, method="reduced_set+refit", calibrate="sigmoid", random_state=0, n_jobs=n)
        for n in (1, 2)
    ]
    assert some[0].machine_ == some[1].machine_


def test_ctrl_c_leaves_the_machine(svc: Any, moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("slimsvm.compression.run.fold_scores", stops)
    with pytest.raises(slimsvm.Interrupted) as stop:
        compress(svc, *moons, n_vectors=6, method="reduced_set+refit", calibrate="sigmoid", random_state=0)
    best: Any = stop.value.best
    assert best.n_vectors_ == 6


def test_mirror_points(svc: Any, moons: Any, fresh: Any) -> None:
    plain = compress(svc, *moons, n_vectors=6, method="mirror", random_state=0)
    assert not hasattr(plain, "predict_proba")
    small = compress(svc, *moons, n_vectors=6, method="mirror", calibrate="sigmoid", random_state=0)
    P = small.predict_proba(fresh[0])
    assert log_loss(fresh[1], P) < 0.6
    np.testing.assert_array_equal(small.predict(fresh[0]), plain.predict(fresh[0]))
    assert P.max(axis=1).mean() < small.score(*fresh) + 0.05  # not surer than it is right
    parent = CalibratedClassifierCV(svc, ensemble=False).fit(*moons)
    assert hasattr(compress(parent, *moons, n_vectors=6, method="mirror", random_state=0), "predict_proba")
    pairs = compress(svc, *moons, method=MirrorPoints(n_pairs=2), calibrate="sigmoid", random_state=0)
    assert pairs.predict_proba(moons[0]).shape == (200, 2)


def test_early_exit_has_no_probabilities(svc: Any, moons: Any) -> None:
    machine = slimsvm.add_early_exit(compress(svc), *moons).machine_
    with pytest.warns(UserWarning, match=r"without the probabilities that its parent has: .*early exit"):
        assert with_probabilities(machine, "sigmoid", lambda: pytest.fail("no scores needed"), False) is not None
    with pytest.raises(ValueError, match=r"calibrate='sigmoid' of compress does not go with this machine.*early exit"):
        with_probabilities(machine, "sigmoid", lambda: pytest.fail("no scores needed"), True)


def test_errors_and_warnings_say_why(svc: Any, moons: Any, tmp_path: Any) -> None:
    X, y = moons
    with pytest.raises(ValueError, match="calibrate of compress must be 'auto', 'sigmoid', 'isotonic' or None"):
        compress(svc, X, y, calibrate="platt")
    with pytest.raises(ValueError, match=r"needs labelled data: X and y, or validation="):
        compress(svc, n_vectors=5, calibrate="sigmoid")
    with pytest.raises(ValueError, match="needs labelled data"):
        compress(svc, X, n_vectors=5, calibrate="sigmoid")
    with pytest.raises(ValueError, match="models that answer with classes"):
        compress(SVR().fit(X, y), X, y, n_vectors=5, calibrate="sigmoid")
    machine = compress(svc).machine_
    with pytest.raises(ValueError, match=r"cv of compress refits the model.*validation=\(X_val, y_val\)"):
        compress(machine, X, y, n_vectors=5, method="reduced_set", calibrate="sigmoid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = compress(machine, X, y, n_vectors=5, method=ReducedSet(refit=True, C=10.0), calibrate="sigmoid")
    small.save(tmp_path / "small.slim")
    loaded = slimsvm.load(tmp_path / "small.slim")
    np.testing.assert_array_equal(loaded.predict_proba(X), small.predict_proba(X))

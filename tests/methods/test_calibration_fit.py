"""Probabilities from scores and classes: the fits are those of scikit-learn and LIBSVM, the answers stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import slimsvm
from slimsvm.calibration import PairwiseSigmoid
from slimsvm.methods.calibration_fit import calibrate_machine
from slimsvm.optim.platt import fit_sigmoid


def machine_of(model: Any) -> Any:
    return slimsvm.compress(model).machine_


@pytest.fixture(scope="module")
def iris() -> Any:
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(size=X.shape) / 2  # overlap, so that there is something to be unsure of
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_the_sigmoid_is_the_minimiser(scale: float) -> None:
    rng = np.random.default_rng(1)
    f, w = rng.normal(size=60), rng.uniform(0.5, 2, size=60)
    t = np.where(f + rng.normal(size=60) > 0.3, 0.95, 0.1)

    def loss(x: Any) -> float:
        u = x[0] * f + x[1]
        return float(np.sum(w * (t * np.logaddexp(0, u) + (1 - t) * np.logaddexp(0, -u))))

    own = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}).x
    a, b = fit_sigmoid(f * scale, t, w)
    np.testing.assert_allclose([a * scale, b], own, atol=1e-5)


def test_corners_of_the_sigmoid() -> None:
    ones = np.ones(6)
    a, b = fit_sigmoid(np.zeros(6), 0.25 * ones, ones)
    assert 1 / (1 + np.exp(b)) == pytest.approx(0.25)
    assert np.isfinite([a, b]).all()
    f = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    a, b = fit_sigmoid(f, (f > 0).astype(float), ones)  # separable, and targets not drawn in: no minimiser
    assert np.isfinite([a, b]).all()
    assert a < 0
    assert fit_sigmoid(f[:0], f[:0], f[:0]) == (-1.0, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_scikit_learns(iris: Any, weighted: bool) -> None:
    X, y = iris[0][50:], iris[1][50:]
    w = np.random.default_rng(0).integers(0, 3, size=100).astype(float) if weighted else None
    svc = SVC().fit(X[::2], y[::2])
    small = calibrate_machine(machine_of(svc), svc.decision_function(X)[:, None], y, "sigmoid", w)
    used = slice(None) if w is None else w > 0
    own = _SigmoidCalibration().fit(
        svc.decision_function(X)[used], (y == "virginica")[used], None if w is None else w[used]
    )
    np.testing.assert_allclose(small.predict_proba(X)[:, 1], own.predict(svc.decision_function(X)), atol=1e-4)
    np.testing.assert_array_equal(small.predict(X), svc.predict(X))


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_several_classes_are_scikit_learns(iris: Any, kind: Any) -> None:
    X, y = iris
    parent = OneVsRestClassifier(SVC(C=3)).fit(X[::2], y[::2])
    small = calibrate_machine(machine_of(parent), parent.decision_function(X), y, kind)
    own = CalibratedClassifierCV(FrozenEstimator(parent), method=kind, ensemble=False, cv=2).fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X), own.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(small.predict(X), parent.predict(X))


def test_votes_have_a_sigmoid_for_each_pair(iris: Any) -> None:
    X, y = iris
    svc = SVC(C=3, decision_function_shape="ovo").fit(X[::2], y[::2])
    machine = machine_of(svc)
    small = calibrate_machine(machine, machine.scores(X), y, "sigmoid")
    assert isinstance(small.calibration, PairwiseSigmoid)
    P = small.predict_proba(X[1::2])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(y[1::2], P) < 0.7  # of three classes that overlap; without knowledge it is 1.1
    for pair, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        rows = np.isin(y, svc.classes_[[i, j]])
        own = _SigmoidCalibration().fit(machine.scores(X)[rows, pair], y[rows] == svc.classes_[i])
        np.testing.assert_allclose([small.calibration.a[pair], small.calibration.b[pair]], [own.a_, own.b_], atol=1e-3)
    with pytest.raises(ValueError, match="'isotonic' needs a score per class"):
        calibrate_machine(machine, machine.scores(X), y, "isotonic")
    voting = machine_of(SVC(C=3).fit(X[::2], y[::2]))
    assert calibrate_machine(voting, voting.scores(X), y, "isotonic").predict_proba(X).shape == (150, 3)


def test_it_is_saved_with_the_machine(iris: Any, tmp_path: Any) -> None:
    X, y = iris
    machine = machine_of(OneVsRestClassifier(SVC()).fit(X, y))
    for kind in ("sigmoid", "isotonic"):
        small = calibrate_machine(machine, machine.scores(X), y, kind)
        slimsvm.estimator.save(small, tmp_path / "small.slim")
        np.testing.assert_array_equal(slimsvm.load(tmp_path / "small.slim").predict_proba(X), small.predict_proba(X))


def test_a_class_without_samples_is_unlikely(iris: Any) -> None:
    X, y = iris
    machine = machine_of(OneVsRestClassifier(SVC()).fit(X, y))
    rows = y != "setosa"
    for kind in ("sigmoid", "isotonic"):
        P = calibrate_machine(machine, machine.scores(X[rows]), y[rows], kind).predict_proba(X[rows])
        assert P[:, 0].max() < 0.1
    voting = machine_of(SVC().fit(X, y))
    assert np.isfinite(calibrate_machine(voting, voting.scores(X[rows]), y[rows], "sigmoid").predict_proba(X)).all()


def test_errors_say_why(iris: Any) -> None:
    X, y = iris
    machine = machine_of(OneVsRestClassifier(SVC()).fit(X, y))
    with pytest.raises(ValueError, match=r"scores of a calibration must be \(150, 3\).*Got \(150, 1\)"):
        calibrate_machine(machine, machine.scores(X)[:, :1], y, "sigmoid")
    with pytest.raises(ValueError, match="at least two classes"):
        calibrate_machine(machine, machine.scores(X), y, "sigmoid", (y == "setosa").astype(float))
    fast = slimsvm.add_early_exit(machine, X, y)
    with pytest.raises(ValueError, match="does not go with early exit"):
        calibrate_machine(fast, fast.scores(X), y, "sigmoid")

"""Calibration: agreement with scikit-learn's calibrators and with LIBSVM's coupling, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from oracles import calibration as oracle
from slimsvm.calibration import Isotonic, PairwiseSigmoid, Sigmoid, Softmax


def test_sigmoid_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    f = rng.normal(size=200)
    fitted = _SigmoidCalibration().fit(f, (f + rng.normal(size=200) > 0).astype(float))
    P = Sigmoid([fitted.a_], [fitted.b_]).probabilities(f[:, None], (0, 1))
    np.testing.assert_allclose(P[:, 1], fitted.predict(f), rtol=1e-12)


def test_isotonic_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    f = rng.normal(size=200)
    fitted = IsotonicRegression(out_of_bounds="clip").fit(f, (f + rng.normal(size=200) > 0).astype(float))
    x, y = fitted.X_thresholds_, fitted.y_thresholds_
    beyond = np.linspace(-9, 9, 500)
    P = Isotonic(x, y, (len(x),)).probabilities(beyond[:, None], (0, 1))
    np.testing.assert_allclose(P[:, 1], fitted.predict(beyond), rtol=1e-12)


@pytest.mark.parametrize("k", [3, 4, 7])
def test_coupling_comes_near_the_minimiser(k: int) -> None:
    rng = np.random.default_rng(k)
    n_pairs = k * (k - 1) // 2
    calibration = PairwiseSigmoid(-np.ones(n_pairs), np.zeros(n_pairs))
    scores = rng.normal(size=(50, n_pairs)) * 2
    P = calibration.probabilities(scores, tuple(range(k)))
    for row, p in zip(scores.tolist(), P, strict=True):
        exact = oracle.couple_exactly(oracle.pair_probabilities(calibration, row, k))
        np.testing.assert_allclose(p, exact, atol=0.05)
        np.testing.assert_allclose(p, oracle.couple(oracle.pair_probabilities(calibration, row, k)), atol=1e-12)


def test_consistent_pairs_couple_to_the_probabilities_they_came_from() -> None:
    p = np.array([0.2, 0.5, 0.3])
    pairs = np.array([p[i] / (p[i] + p[j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    scores = np.log(pairs / (1 - pairs))[None]
    P = PairwiseSigmoid(-np.ones(3), np.zeros(3)).probabilities(scores, (0, 1, 2))
    np.testing.assert_allclose(P[0], p, atol=0.01)


def test_coupled_probabilities_follow_the_order_of_the_classes() -> None:
    scores = np.array([[3.0, 4.0, -1.0]])
    plain = PairwiseSigmoid(-np.ones(3), np.zeros(3)).probabilities(scores, (0, 1, 2))
    moved = PairwiseSigmoid(-np.ones(3), np.zeros(3)).probabilities(scores, (2, 0, 1))
    np.testing.assert_array_equal(moved[:, [2, 0, 1]], plain)
    assert plain[0].argmax() == 0
    assert moved[0].argmax() == 2


def test_all_zero_probabilities_become_equal() -> None:
    flat = Isotonic(np.zeros(3), np.zeros(3), (1, 1, 1))
    np.testing.assert_array_equal(flat.probabilities(np.ones((1, 3)), (0, 1, 2)), np.full((1, 3), 1 / 3))


def test_huge_scores_give_zeros_and_ones_without_a_warning() -> None:
    scores = np.array([[1e300], [-1e300]])
    for calibration in (Sigmoid([-1.0], [0.0]), Softmax()):
        assert calibration.probabilities(scores, (0, 1)).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_softmax_takes_any_number_for_its_slope() -> None:
    assert Softmax(1) == Softmax(1.0) == Softmax(np.float64(1))
    assert hash(Softmax(1)) == hash(Softmax(1.0))
    with pytest.raises(ValueError, match=r"^slope of Softmax must be finite. Got nan.$"):
        Softmax(np.nan)


@pytest.mark.parametrize("cls", [Sigmoid, PairwiseSigmoid])
@pytest.mark.parametrize("field", ["a", "b"])
@pytest.mark.parametrize("bad", [[np.nan], [[1.0]], 1.0, [np.inf]])
def test_sigmoids_need_finite_vectors(cls: Any, field: str, bad: Any) -> None:
    given = {"a": [1.0], "b": [1.0]} | {field: bad}
    with pytest.raises(ValueError, match=rf"^{field} of {cls.__name__} must be a finite vector. Got array"):
        cls(**given)


@pytest.mark.parametrize(
    ("calibration", "n_scores", "pairwise", "sentence"),
    [
        (Sigmoid([1.0], [1.0]), 3, False, r"^Sigmoid needs one a and one b per score, \(3,\). Got \(1,\).$"),
        (Sigmoid([1.0], [1.0, 2.0]), 1, False, r"^Sigmoid needs one a and one b per score, \(1,\). Got \(2,\).$"),
        (
            Sigmoid([1.0], [1.0]),
            1,
            True,
            r"^Sigmoid reads scores of classes, and this head gives scores of pairs: use PairwiseSigmoid.$",
        ),
        (PairwiseSigmoid([1.0], [1.0]), 3, True, r"^PairwiseSigmoid needs one a and one b per score"),
        (
            PairwiseSigmoid([1.0], [1.0]),
            1,
            False,
            r"^PairwiseSigmoid needs scores of pairs of classes, and this head gives scores of classes.$",
        ),
        (Isotonic([0.0], [0.0], (1,)), 3, False, r"^Isotonic needs one function per score, 3. Got 1.$"),
        (Isotonic([0.0], [0.0], (1,)), 1, True, r"^Isotonic"),
        (Softmax(), 1, True, r"^Softmax reads scores of classes, and this head gives scores of pairs.$"),
    ],
)
def test_scores_that_do_not_fit_are_refused(calibration: Any, n_scores: int, pairwise: bool, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        calibration.check(n_scores, 2, pairwise)


@pytest.mark.parametrize(
    ("x", "y", "sizes"),
    [([0.0, 1.0], [0.0], (2,)), ([0.0], [0.0], (2,)), ([0.0], [0.0], (1, 0)), ([], [], ())],
)
def test_isotonic_counts_its_knots(x: Any, y: Any, sizes: Any) -> None:
    with pytest.raises(ValueError, match=r"^x and y of Isotonic must have \d knots, the sum of sizes, .* Got x "):
        Isotonic(x, y, sizes)


@pytest.mark.parametrize(("x", "y"), [([1.0, 0.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 0.0])])
def test_isotonic_must_rise(x: Any, y: Any) -> None:
    with pytest.raises(ValueError, match=r"^x and y of Isotonic must not decrease within a function"):
        Isotonic([0.0, *x], [0.0, *y], (1, 2))
    Isotonic(x, y, (1, 1))

"""Learned metrics: gradients, known answers, starts, penalties, and the estimators that learn one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.svm import SVC

from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.importers import import_model
from slimsvm.kernels import Rbf, resolve_gamma
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.descent import Descent
from slimsvm.methods.large_margin.metric import Placement, PlacementObjective, Pull, map_gradient, map_rows
from slimsvm.methods.large_margin.metric_start import (
    MetricSettings,
    gradient_map,
    gradient_outer_product,
    principal_map,
    with_median_distance,
)
from slimsvm.methods.large_margin.minibatch import Batches, BatchSchedule, stochastic_passes
from slimsvm.methods.large_margin.objective import MarginObjective
from slimsvm.optim.margin_problem import MarginProblem

MAPS = {"diagonal": (4,), "projection": (2, 4), "full": (4, 4)}
LEARNED = {"diagonal": {"metric": "diagonal"}, "projection": {"metric": "projection", "n_components": 3}}


def problem_of(kind: str, rng: np.random.Generator, n: int) -> MarginProblem:
    costs = rng.uniform(0.5, 2.0, (n, 1))
    if kind == "labels":
        return MarginProblem.of_labels(np.where(rng.random((n, 2)) < 0.5, 1.0, -1.0), costs)
    if kind == "values":
        return MarginProblem.of_values(rng.standard_normal((n, 1)), 0.1, costs)
    return MarginProblem.of_one_class(0.3, costs)


def slope_along(function: Any, x: Any, direction: Any, step: float = 1e-6) -> float:
    return float((function(x + step * direction) - function(x - step * direction)) / (2 * step))


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("shape", MAPS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["labels", "values", "one class"])
def test_the_gradient_equals_finite_differences(kind: str, loss: Any, shape: str, as_csr: bool) -> None:
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((40, 4)), rng.standard_normal(MAPS[shape])
    points = Points(Rbf(0.3), sparse.csr_array(X) if as_csr else X)
    problem, start = problem_of(kind, rng, 40), Placement(rng.standard_normal((3, len(A))), A)
    pull = Pull(A + 0.3 * rng.standard_normal(A.shape), rng.uniform(0.5, 1.0, 4), keeps_volume=kind == "one class")

    def value(x: Any) -> float:
        return PlacementObjective(points, problem, loss, start, pull, 1e-12)(x)[0]

    x = start.flat()
    gradient = PlacementObjective(points, problem, loss, start, pull, 1e-12)(x)[1]
    for part in (slice(0, start.Z.size), slice(start.Z.size, None)):
        direction = np.zeros_like(x)
        direction[part] = rng.standard_normal(len(x[part]))
        expected = slope_along(value, x, direction)
        assert gradient @ direction == pytest.approx(expected, rel=2e-4, abs=2e-4 * np.abs(gradient).max())


@pytest.mark.parametrize("shape", MAPS)
def test_maps_keep_the_volume_of_their_start(shape: str) -> None:
    rng = np.random.default_rng(5)
    start, A = rng.standard_normal((2, *MAPS[shape]))
    pull = Pull(start, np.ones(4), keeps_volume=True)

    def volume(A: Any) -> float:
        return float(np.abs(np.prod(A)) if A.ndim == 1 else np.sqrt(np.linalg.det(A @ A.T)))

    assert volume(pull.factor(A) * A) == pytest.approx(volume(start))
    assert Pull(start, np.ones(4)).factor(A) == 1.0


@pytest.mark.parametrize("solver", ["lbfgs", "stochastic"])
def test_a_one_class_map_does_not_shrink_to_a_point(solver: Any) -> None:
    X = np.random.default_rng(0).standard_normal((200, 3)) * [3.0, 1.0, 0.3]
    given: Any = {"nu": 0.1, "init": "kmeans", "solver": solver, "n_passes": 600, "random_state": 0}
    scale = SparseOneClassSVM(4, metric="diagonal", metric_penalty=1e-3, **given).fit(X).machine_.input_map.scale
    assert np.abs(np.prod(scale)) == pytest.approx(1.0, rel=1e-4)
    assert abs(scale[0]) < abs(scale[1]) < abs(scale[2])  # the narrower a feature, the more a deviation says


@pytest.mark.parametrize("metric", LEARNED)
@pytest.mark.parametrize("solver", ["lbfgs", "stochastic"])
def test_useless_features_are_left_out(metric: str, solver: str) -> None:
    X, y = relevant(400, d=12)
    model = learner(solver=solver, max_features=2, n_passes=100, **LEARNED[metric] | {"metric_init": "gradients"})
    model.fit(X, y)
    scale = np.atleast_2d(model.machine_.input_map.scale)
    np.testing.assert_array_equal(np.flatnonzero(np.abs(scale).sum(axis=0)), [0, 1])
    assert model.score(X, y) > 0.95
    other = X.copy()
    other[:, 2:] = 1e3
    np.testing.assert_array_equal(model.predict(other), model.predict(X))
    steps = [step["step"] for step in model.history_]
    assert steps == list(range(len(steps)))


def test_features_are_left_out_in_stages() -> None:
    X = relevant(60, d=40)[0]
    for given, stages in ((None, ()), (40, ()), (1.0, ()), (20, (20,)), (0.25, (10,)), (2, (15, 5, 2))):
        model = learner(metric="diagonal", max_features=given)
        assert MetricSettings.of(model, Points(Rbf(1.0), X), 6).stages == stages


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("shape", MAPS)
def test_the_gradient_of_a_map_is_a_sum_over_pairs(shape: str, as_csr: bool) -> None:
    """Against a double loop over samples and vectors."""
    rng = np.random.default_rng(1)
    X, Z, S = rng.standard_normal((6, 4)), rng.standard_normal((3, MAPS[shape][0])), rng.standard_normal((6, 3))
    A, expected = rng.standard_normal(MAPS[shape]), np.zeros(MAPS[shape])
    for i in range(6):
        for u in range(3):
            away = 2.0 * ((A * X[i] if A.ndim == 1 else A @ X[i]) - Z[u])
            expected += S[i, u] * (away * X[i] if A.ndim == 1 else np.outer(away, X[i]))
    given = sparse.csr_array(X) if as_csr else X
    P = map_rows(given, A)
    assert sparse.issparse(P) == (as_csr and A.ndim == 1)
    np.testing.assert_allclose(map_gradient(given, P, Z, S, A), expected, atol=1e-12)


@pytest.mark.parametrize("shape", MAPS)
@pytest.mark.parametrize("as_csr", [False, True])
def test_the_gradient_of_a_batch(shape: str, as_csr: bool) -> None:
    rng = np.random.default_rng(2)
    X, A = rng.standard_normal((12, 4)), rng.standard_normal(MAPS[shape])
    problem, Z = problem_of("labels", rng, 12), rng.standard_normal((3, len(A)))
    batches = Batches(Points(Rbf(0.4), sparse.csr_array(X) if as_csr else X), problem)
    batches.dtype = np.dtype(np.float64)
    W, batch = rng.standard_normal((4, 2)), batches.rows().take(np.arange(12), np.float64)

    def state(Z: Any, A: Any) -> Descent:
        descent = batches.descent(Placement(Z, A), "squared_hinge", np.random.default_rng(0))
        descent.W = W
        return descent

    def value(Z: Any, A: Any) -> float:
        return state(Z, A).gradients(batch)[0]

    _, by_Z, by_A, _ = state(Z, A).gradients(batch)
    to_Z, to_A = rng.standard_normal(Z.shape), rng.standard_normal(A.shape)
    assert by_A is not None
    assert np.sum(by_Z * to_Z) == pytest.approx(slope_along(lambda at: value(at, A), Z, to_Z), rel=1e-5)
    assert np.sum(by_A * to_A) == pytest.approx(slope_along(lambda at: value(Z, at), A, to_A), rel=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_identity_is_the_fixed_metric(loss: Any) -> None:
    rng = np.random.default_rng(3)
    points = Points(Rbf(0.5), rng.standard_normal((50, 3)))
    problem, Z = problem_of("labels", rng, 50), rng.standard_normal((4, 3))
    fixed, by_Z = MarginObjective(points, problem, loss)(Z)
    for A in (np.ones(3), np.eye(3)):
        start = Placement(Z, A)
        value, gradient = PlacementObjective(points, problem, loss, start, Pull(A, np.ones(3)))(start.flat())
        assert value == pytest.approx(fixed, rel=1e-6)
        np.testing.assert_allclose(gradient[: Z.size].reshape(Z.shape), by_Z, atol=1e-5 * np.abs(by_Z).max())


def test_a_stronger_penalty_keeps_the_map_nearer_to_its_start() -> None:
    X, y = relevant(200)
    away = []
    for penalty in (0.0, 1e-3, 1e-1, 1e4):
        model = learner(metric="diagonal", metric_penalty=penalty).fit(X, y)
        scale = model.machine_.input_map.scale
        away.append(float(np.abs(scale / scale.mean() - 1.0).max()))  # the width is free
    assert away[0] > away[2] > away[3]
    assert away[3] < 1e-3


def relevant(n: int, d: int = 8, seed: int = 0) -> tuple[Any, Any]:
    """Two classes that depend on the first two of d features."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def learner(n_vectors: int = 6, **options: Any) -> SparseLargeMarginClassifier:
    given = {"C": 10.0, "loss": "squared_hinge", "init": "kmeans", "random_state": 0} | options
    return SparseLargeMarginClassifier(n_vectors, **given)


@pytest.mark.parametrize("solver", ["lbfgs", "stochastic"])
@pytest.mark.parametrize("metric", LEARNED)
def test_irrelevant_features_are_found(metric: str, solver: str) -> None:
    X, y = relevant(600, d=20)
    X_new, y_new = relevant(2000, d=20, seed=1)
    fixed = learner(solver=solver, n_passes=400).fit(X, y).score(X_new, y_new)
    model = learner(solver=solver, n_passes=400, **LEARNED[metric]).fit(X, y)
    assert model.score(X_new, y_new) > max(0.92, fixed + 0.05)
    A = np.atleast_2d(model.machine_.input_map.scale)
    sizes = np.sqrt(np.sum(A**2, axis=0))
    assert sizes[:2].min() > 2 * sizes[2:].max()


def test_the_objective_never_rises() -> None:
    X, y = relevant(300)
    for metric in LEARNED.values():
        steps = [step["objective"] for step in learner(**metric).fit(X, y).history_]
        assert len(steps) > 5
        assert (np.diff(steps) < 0).all()


@pytest.mark.parametrize("metric", LEARNED)
def test_units_of_features_do_not_matter_from_a_start_that_removes_them(metric: str) -> None:
    X, y = relevant(300)
    units = 10.0 ** np.arange(-4, 4)
    start = "pca" if metric == "diagonal" else "gradients"
    model = learner(metric_init=start, **LEARNED[metric]).fit(X, y)
    if metric == "diagonal":
        scaled = learner(metric_init=start, **LEARNED[metric]).fit(X * units, y)
        assert scaled.score(X * units, y) > model.score(X, y) - 0.03
    assert model.score(X, y) > 0.93


def test_csr_and_dense_rows_give_the_same_scores() -> None:
    X, y = relevant(300)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    for metric in LEARNED.values():
        model = learner(max_iter=60, **metric).fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(
            model.decision_function(sparse.csr_array(X)), model.decision_function(X), rtol=1e-9, atol=1e-9
        )
        assert model.score(X, y) > 0.8


def test_wide_sparse_rows_are_never_filled() -> None:
    """20,000 features with a diagonal map in batches: 200 rows would take 32 MB if all of them were filled."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 20_000), density=1e-3, rng=rng, format="csr")
    y = (np.asarray(X[:, :10_000].sum(axis=1)).ravel() > np.asarray(X[:, 10_000:].sum(axis=1)).ravel()).astype(int)
    P = map_rows(X, np.full(20_000, 2.0))
    assert sparse.issparse(P)
    model = learner(2, metric="diagonal", max_iter=3).fit(X, y)
    assert model.machine_.input_map.scale.shape == (20_000,)


def test_other_tasks_learn_a_metric() -> None:
    X, y = make_friedman1(300, n_features=10, random_state=0)
    X_new, y_new = make_friedman1(1000, n_features=10, random_state=1)
    given: Any = {"C": 10.0, "loss": "squared_epsilon_insensitive", "init": "kmeans", "random_state": 0}
    fixed = SparseLargeMarginRegressor(8, **given).fit(X, y).score(X_new, y_new)
    learned = SparseLargeMarginRegressor(8, metric="diagonal", **given).fit(X, y)
    assert learned.score(X_new, y_new) > fixed + 0.03
    scale = np.abs(learned.machine_.input_map.scale)
    assert scale[:5].min() > scale[5:].max()
    inliers = SparseOneClassSVM(5, nu=0.2, metric="diagonal", init="kmeans", random_state=0).fit(X)
    assert np.mean(inliers.predict(X) == 1) == pytest.approx(0.8, abs=0.05)


def test_weights_are_costs() -> None:
    X, y = relevant(150)
    weights = np.random.default_rng(0).integers(0, 3, 150)
    rows = np.repeat(np.arange(150), weights)
    start = learner(metric="diagonal", init="random", max_iter=1, tol=1e-12)
    for one, other in ((start.fit(X, y, weights), start.__class__(**start.get_params()).fit(X[rows], y[rows])),):
        assert one.machine_.input_map.scale.shape == other.machine_.input_map.scale.shape
    doubled = learner(metric="diagonal", C=5.0, metric_penalty=0.01).fit(X, y, np.full(150, 2.0))
    plain = learner(metric="diagonal", C=10.0, metric_penalty=0.01).fit(X, y)
    np.testing.assert_allclose(doubled.machine_.input_map.scale, plain.machine_.input_map.scale, rtol=1e-6)


def test_starts() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5)) * [4.0, 2.0, 1.0, 0.5, 0.2]
    directions = principal_map(X - X.mean(axis=0), 2)
    np.testing.assert_allclose(np.abs(directions), np.eye(5)[:2], atol=0.1)
    y = (X[:, 2] > 0).astype(int)
    machine = import_model(SVC(gamma=0.1).fit(X, y)).machine
    outer = gradient_outer_product(machine, X[:50])
    expected = np.zeros((5, 5))
    for x in X[:50]:
        slope = [slope_along(lambda at: float(machine.scores(at)[0]), x, e, 1e-5) for e in np.eye(5)]
        expected += np.outer(slope, slope) / 50
    np.testing.assert_allclose(outer, expected, rtol=1e-4, atol=1e-6)
    assert np.argmax(gradient_map(machine, X, None)) == 2
    assert np.argmax(np.abs(gradient_map(machine, X, 1)[0])) == 2
    A = with_median_distance(directions, X, rng)
    far = np.median([np.sum((X[i] - X[i + 250]) ** 2) for i in range(250)])
    mapped = X @ A.T
    assert np.median([np.sum((mapped[i] - mapped[i + 250]) ** 2) for i in range(250)]) == pytest.approx(far, rel=0.2)


def test_gamma_is_one_over_the_median_distance() -> None:
    X = np.random.default_rng(0).standard_normal((400, 3))
    pairs = [np.sum((X[i] - X[j]) ** 2) for i in range(0, 400, 5) for j in range(1, 400, 7) if i != j]
    assert resolve_gamma("median", X) == pytest.approx(1.0 / np.median(pairs), rel=0.1)
    assert resolve_gamma("median", np.ones((5, 2))) == 1.0
    assert learner(metric="diagonal").fit(X, X[:, 0] > 0).machine_.kernel.gamma == resolve_gamma("median", X)


def test_many_vectors_start_with_narrower_kernels() -> None:
    points, model = Points(Rbf(1.0), relevant(60)[0]), learner(metric="diagonal")
    zooms = [MetricSettings.of(model, points, m).zoom for m in (1, 10, 160)]
    assert zooms == [1.0, 1.0, pytest.approx(2.0)]  # γ is four times as large
    assert MetricSettings.of(learner(metric="diagonal", gamma="scale"), points, 160).zoom == 1.0


def test_batches_that_diverge_keep_the_last_good_map() -> None:
    rng = np.random.default_rng(0)
    points = Points(Rbf(1.0), rng.standard_normal((64, 2)))
    start = Placement(points.X[:3].copy(), np.array([1.0, 1.0]))
    problem = problem_of("labels", rng, 64)
    *_, last = stochastic_passes(points, problem, start, "squared_hinge", BatchSchedule(3, 16), rng)
    assert np.isfinite(last.value)
    assert last.place.A is not None
    assert last.place.A.shape == (2,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "full"}, "metric of SparseLargeMarginClassifier must be one of 'fixed', 'diagonal', 'projection'"),
        ({"metric": "diagonal", "kernel": "poly"}, "needs kernel='rbf'.*Got kernel='poly'"),
        ({"metric": "projection", "n_components": 9}, "n_components .* must be at most 8, the features"),
        ({"metric": "projection", "n_components": 0}, "n_components of SparseLargeMarginClassifier must be"),
        ({"metric": "projection", "n_components": 3, "metric_init": "identity"}, "as many components as features, 8"),
        ({"metric": "diagonal", "metric_penalty": -1.0}, "metric_penalty of SparseLargeMarginClassifier must be"),
        ({"metric": "diagonal", "vectors": "per_class"}, "needs vectors='shared'"),
        ({"max_features": 2}, "max_features of SparseLargeMarginClassifier needs metric='diagonal' or metric='p"),
        ({"metric": "diagonal", "max_features": 9}, "max_features .* must be at most 8, the features of the data"),
        ({"metric": "diagonal", "max_features": 0}, "max_features of SparseLargeMarginClassifier must be"),
    ],
)
def test_bad_parameters(options: Any, message: str) -> None:
    X, y = relevant(40)
    with pytest.raises(ValueError, match=message):
        learner(**options).fit(X, y)


def test_components_are_a_count_or_a_share() -> None:
    X, y = relevant(80)
    for given, p in ((3, 3), (0.5, 4), (1.0, 8), (None, 8)):
        model = learner(metric="projection", n_components=given, max_iter=2).fit(X, y)
        assert model.machine_.input_map.scale.shape == (p, 8)
        assert model.vectors_.shape == (6, p)

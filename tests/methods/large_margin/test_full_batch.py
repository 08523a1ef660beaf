"""Full batches: the exact objective and gradient by sums over blocks, for every loss and metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.data import make_rows
from slimsvm.data import sample as sampling
from slimsvm.data.block_map import FAN_IN, LocalBlocks
from slimsvm.data.block_survey import survey_blocks
from slimsvm.exceptions import DataError
from slimsvm.kernels import Rbf
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import full_batch
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.full_batch import BlockObjective, BlockProblem
from slimsvm.methods.large_margin.k_means_parallel import k_means_parallel
from slimsvm.methods.large_margin.metric import Placement, Pull
from slimsvm.methods.large_margin.minibatch import Batches
from slimsvm.methods.large_margin.objective import MarginObjective, fit_coefficients
from slimsvm.optim.margin_problem import MarginProblem

X, Y = make_moons(2000, noise=0.25, random_state=0)
VALUES = np.sin(3 * X[:, 0]) + X[:, 1]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, len(X))


def cut(ends: list[int], *parts: Any) -> list[tuple[Any, ...]]:
    """Blocks of rows that end at these numbers."""
    starts = [0, *ends[:-1]]
    return [tuple(part[a:b] for part in parts) for a, b in zip(starts, ends, strict=True)]


BLOCKS = [1, 300, 900, 901, 1500, 2000]


def classifier(**parameters: Any) -> SparseLargeMarginClassifier:
    return SparseLargeMarginClassifier(**{"n_vectors": 10, "solver": "full_batch", "random_state": 0} | parameters)


class Moons:
    """The problem of the moons in blocks, with vectors at samples."""

    def __init__(self, A: Any = None, m: int = 6) -> None:
        self.points = Points(Rbf(2.0), X)
        self.margin = MarginProblem.of_labels(np.where(Y == 1, 1.0, -1.0)[:, None], 2.0 * WEIGHTS[:, None])
        self.place = Placement(self.points.X[:m]).through(A)
        self.sample = Batches(self.points, self.margin, A)
        rows = self.sample.rows()
        self.blocks = LocalBlocks(
            [rows.take(np.arange(a, b), np.float32) for a, b in ((0, 700), (700, 701), (701, 2000))]
        )

    def problem(self, loss: Any) -> BlockProblem:
        rng = np.random.default_rng(0)
        return BlockProblem(self.blocks, len(X), self.sample, self.place, loss, rng)


def test_the_objective_and_its_gradient_are_the_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_batch, "TOLERANCE", 1e-10)
    moons = Moons()
    exact = MarginObjective(moons.points, moons.margin, "squared_hinge", 1e-10)
    expected, by_Z = exact(moons.place.Z)
    value, gradient = BlockObjective(moons.problem("squared_hinge"), moons.place, None, None)(moons.place.flat())
    assert value == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient.reshape(by_Z.shape), by_Z, rtol=0, atol=2e-4 * np.abs(by_Z).max())


@pytest.mark.parametrize("keeps_volume", [False, True])
@pytest.mark.parametrize("A", [np.array([1.2, 0.7]), np.array([[1.0, 0.3], [-0.2, 0.8]])])
def test_gradients_by_vectors_and_map_are_those_of_finite_differences(
    A: Any, keeps_volume: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_batch, "CLOSE", 1.0)  # double precision
    monkeypatch.setattr(full_batch, "TOLERANCE", 1e-12)
    moons = Moons(A)
    pull = Pull(A, np.array([3.0, 5.0]), keeps_volume)
    objective = BlockObjective(moons.problem("squared_hinge"), moons.place, None, pull)
    x = moons.place.flat() * 1.1
    direction = np.random.default_rng(3).standard_normal(x.shape)
    slope = (objective(x + 1e-5 * direction)[0] - objective(x - 1e-5 * direction)[0]) / 2e-5
    assert float(objective(x)[1] @ direction) == pytest.approx(slope, rel=1e-4)


def test_a_map_that_is_held_is_part_of_the_objective_but_not_of_its_numbers() -> None:
    A = np.array([1.2, 0.7])
    moons = Moons(A)
    held = BlockObjective(moons.problem("squared_hinge"), Placement(moons.place.Z), A, None)
    free = BlockObjective(moons.problem("squared_hinge"), moons.place, None, None)
    value, gradient = held(moons.place.Z.ravel())
    expected, by_all = free(moons.place.flat())
    assert value == expected
    assert (gradient == by_all[: gradient.size]).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_final_coefficients_are_the_exact_ones_up_to_the_gap(loss: Any) -> None:
    moons = Moons()
    exact = float(fit_coefficients(moons.points, moons.place.Z, moons.margin, loss).solution.value.sum())
    found = moons.problem(loss).fit(moons.place).solution
    assert exact * (1 - 1e-6) <= float(found.value.sum()) <= exact + 1.01 * float(found.gap.sum()) + 1e-6 * exact
    assert float(found.gap.sum()) < 2e-3 * exact


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"loss": "hinge"},
        {"init": "kmeans", "standardize": True},
        {"metric": "diagonal", "init": "kmeans"},
        {"metric": "projection"},
        {"vectors": "per_class", "n_vectors": 5},
    ],
)
def test_a_classifier_is_as_good_as_with_exact_steps(parameters: dict[str, Any]) -> None:
    y = Y + (VALUES > 1.2) if "vectors" in parameters else Y
    exact = classifier(**parameters | {"solver": "lbfgs"}).fit(X, y)
    found = classifier(**parameters).fit(X, y)
    assert found.objective_ < 1.02 * exact.objective_
    assert found.score(X, y) > exact.score(X, y) - 0.01
    assert found.n_vectors_ == exact.n_vectors_


def test_regressors_and_one_class_machines() -> None:
    for loss in ("squared_epsilon_insensitive", "epsilon_insensitive"):
        found = SparseLargeMarginRegressor(12, C=10, loss=loss, solver="full_batch", max_iter=30, random_state=0)
        assert r2_score(VALUES, found.fit(X, VALUES).predict(X)) > 0.97
    one_class = SparseOneClassSVM(10, nu=0.1, solver="full_batch", max_iter=30, random_state=0).fit(X)
    assert (one_class.predict(X) == -1).mean() == pytest.approx(0.1, abs=0.02)


def test_blocks_of_any_size_lead_to_the_same_machine_up_to_rounding() -> None:
    whole = classifier(max_iter=5).fit(X, Y)
    parts = classifier(max_iter=5).fit(make_rows(cut(BLOCKS, X, Y)))
    again = classifier(max_iter=5).fit(make_rows(cut(BLOCKS, X, Y)))
    assert parts.machine_ == again.machine_
    assert parts.objective_ == pytest.approx(whole.objective_, rel=0.02)


def test_weights_stand_for_repeated_rows_and_rows_of_weight_zero_are_left_out() -> None:
    weights = np.where(np.arange(len(X)) % 3 == 0, 2.0, np.where(np.arange(len(X)) % 3 == 1, 1.0, 0.0))
    found = classifier(C=3.0, gamma=1.0, max_iter=5).fit(X, Y, weights)
    Z, kept = found.machine_.points, np.flatnonzero(weights)
    points = Points(found.machine_.kernel, X[kept])
    problem = MarginProblem.of_labels(np.where(Y[kept] == 1, 1.0, -1.0)[:, None], 3.0 * weights[kept, None])
    exact = fit_coefficients(points, Z - points.centre, problem, "squared_hinge").solution.value.sum()
    assert found.objective_ == pytest.approx(exact, rel=1e-4)


def test_sparse_rows_give_the_machine_of_dense_ones() -> None:
    given = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = classifier(gamma=1.0, max_iter=5).fit(given, Y)
    from_sparse = classifier(gamma=1.0, max_iter=5).fit(sparse.csr_array(given), Y)
    assert from_sparse.score(given, Y) == pytest.approx(dense.score(given, Y), abs=0.01)


def test_the_sample_does_not_depend_on_where_empty_blocks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", 300)
    monkeypatch.setattr(sampling, "FEWEST", 300)
    rows = make_rows(cut(BLOCKS, X, Y))
    plain = list(rows.block_map()._blocks)  # type: ignore[attr-defined]
    empty = plain[0].take(slice(0, 0))
    few, _ = survey_blocks(LocalBlocks(plain), "classes", 7, "X", None, "test")
    more, kept = survey_blocks(LocalBlocks([empty, *plain[:3], empty, *plain[3:]]), "classes", 7, "X", None, "test")
    assert kept.n_blocks == len(plain)
    assert len(few.y) == 300
    for name in ("X", "y", "w", "counts", "weights"):
        assert (getattr(few, name) == getattr(more, name)).all()
    assert (few.moments.mean == more.moments.mean).all()
    np.testing.assert_allclose(few.moments.mean, X.mean(axis=0))
    np.testing.assert_allclose(few.moments.variance, X.var(axis=0))


def test_a_sample_has_every_class_and_the_level_of_values_is_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", 50)
    monkeypatch.setattr(sampling, "FEWEST", 50)
    names = np.array(["many", "one"])[(np.arange(len(X)) == 1400).astype(int)]
    survey, _ = survey_blocks(make_rows(cut(BLOCKS, X, names)).block_map(), "classes", 0, "X", None, "test")
    assert survey.classes is not None
    assert survey.classes.tolist() == ["many", "one"]
    assert survey.counts.tolist() == [1999.0, 1.0]
    assert set(survey.y) == {0.0, 1.0}
    values, _ = survey_blocks(make_rows(cut(BLOCKS, X, VALUES, WEIGHTS)).block_map(), "value", 0, "X", None, "test")
    assert values.level == pytest.approx(np.average(VALUES, weights=WEIGHTS))


def test_sums_are_added_in_a_tree_by_block_number() -> None:
    numbers = np.random.default_rng(0).standard_normal(FAN_IN**2 + 3)

    def tree(part: list[Any]) -> Any:
        if len(part) == 1:
            return part[0]
        groups = [part[a : a + FAN_IN] for a in range(0, len(part), FAN_IN)]
        return tree([sum(group[1:], group[0]) for group in groups])

    found = LocalBlocks(list(numbers)).reduce("sum", lambda number, block: (block, np.array([number])))
    assert found[0] == tree(list(numbers))
    assert found[1].tolist() == [sum(range(len(numbers)))]


def test_prepared_blocks_are_held_or_made_again_with_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    held = classifier(max_iter=3).fit(X, Y)
    monkeypatch.setattr("slimsvm.data.block_map.KEPT_BYTES", 0)
    assert classifier(max_iter=3).fit(X, Y).machine_ == held.machine_


def test_k_means_finds_separate_clusters() -> None:
    rng = np.random.default_rng(0)
    centres = rng.uniform(-50, 50, (12, 3))
    P = (centres[rng.integers(12, size=3000)] + rng.normal(size=(3000, 3))).astype(np.float32)
    ones = np.ones((3000, 1), dtype=np.float32)
    blocks = LocalBlocks([Batch(P[a : a + 500], ones[:500], ones[:500], ones[:500]) for a in range(0, 3000, 500)])
    found = k_means_parallel(blocks, None, P[:13].astype(np.float64), 12, 3000, np.random.default_rng(1))
    nearest = np.sqrt(((centres[:, None] - found) ** 2).sum(axis=2)).min(axis=1)
    assert (nearest < 1.0).sum() >= 11
    halved = k_means_parallel(blocks, np.full(3, 0.5), 0.5 * P[:13].astype(float), 12, 3000, np.random.default_rng(1))
    np.testing.assert_allclose(halved, 0.5 * found, atol=1e-4)


def test_bad_blocks_are_named() -> None:
    broken = X.copy()
    broken[1000, 1] = np.nan
    with pytest.raises(DataError, match=r"Block 4 of X, row 100: feature number 2 is missing"):
        classifier().fit(make_rows(cut(BLOCKS, broken, Y)))
    with pytest.raises(DataError, match=r"at least 2 classes"):
        classifier().fit(make_rows(cut(BLOCKS, X, np.zeros(len(X)))))
    with pytest.raises(DataError, match=r"no rows with weights above zero"):
        classifier().fit(make_rows(cut(BLOCKS, X, Y, np.zeros(len(X)))))
    with pytest.raises(ValueError, match=r"checkpoint of SparseLargeMarginClassifier needs mini-batches"):
        classifier(checkpoint="state").fit(X, Y)


def test_max_time_keeps_the_best_so_far() -> None:
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found = classifier(max_time=1e-3, n_vectors=50, tol=1e-12).fit(X, Y)
    assert found.score(X, Y) > 0.8

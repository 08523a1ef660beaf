"""Training on rows in blocks: as good as in memory, exact coefficients, scaling, sources, time limits and Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
import slimsvm.data.arrays
from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.data import make_rows, read_rows, sample, shuffle
from slimsvm.exceptions import DataError
from slimsvm.kernels import Rbf
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin import streaming
from slimsvm.methods.large_margin.descent import Descent
from slimsvm.methods.large_margin.objective import fit_coefficients
from slimsvm.optim.margin_problem import MarginProblem

X, Y = make_moons(4000, noise=0.25, random_state=0)
X = X * [1.0, 20.0] + [5.0, -30.0]
X_TEST, Y_TEST = make_moons(4000, noise=0.25, random_state=1)
X_TEST = X_TEST * [1.0, 20.0] + [5.0, -30.0]
SORTED = np.argsort(Y, kind="stable")
VALUES = np.sin(3 * X[:, 0]) + X[:, 1] / 20


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of a tenth of the rows, and windows of about as many."""
    monkeypatch.setattr(sample, "ROWS", 400)
    monkeypatch.setattr(shuffle, "WINDOW_VALUES", 1000)
    for name in ("BLOCK_VALUES", "PIECE_VALUES"):
        monkeypatch.setattr(slimsvm.data.arrays, name, 100)


def classifier(**parameters: Any) -> SparseLargeMarginClassifier:
    return SparseLargeMarginClassifier(
        **{"n_vectors": 12, "standardize": True, "n_passes": 20, "random_state": 0} | parameters
    )


def test_a_classifier_is_as_good_as_in_memory_whatever_the_order_of_the_rows() -> None:
    in_memory = classifier(solver="stochastic").fit(X, Y)
    expected = in_memory.score(X_TEST, Y_TEST)
    for rows in (make_rows(X, Y), make_rows(X[SORTED], Y[SORTED])):
        found = classifier().fit(rows)
        assert found.score(X_TEST, Y_TEST) > expected - 0.01
        assert found.objective_ < 1.05 * in_memory.objective_
        assert found.n_iter_ == len(found.history_) == 20
        assert found.machine_.n_vectors == 12


def test_several_classes_with_text_labels_and_vectors_of_their_own() -> None:
    names = np.array(["low", "mid", "top"])
    y = names[(VALUES > -0.5).astype(int) + (VALUES > 0.7)]
    shared = classifier(n_vectors=20).fit(make_rows(X, y))
    assert shared.classes_.tolist() == ["low", "mid", "top"]
    assert shared.score(X, y) > 0.9
    own = classifier(n_vectors=8, vectors="per_class", n_passes=8).fit(make_rows(X, y))
    assert own.n_vectors_ == 24
    assert own.score(X, y) > 0.85


def test_a_regressor_and_a_one_class_machine() -> None:
    regressor = SparseLargeMarginRegressor(20, C=10, standardize=True, n_passes=20, random_state=0)
    assert r2_score(VALUES, regressor.fit(make_rows(X, VALUES)).predict(X)) > 0.95
    robust = SparseLargeMarginRegressor(
        20, C=10, standardize=True, n_passes=20, loss="epsilon_insensitive", random_state=0
    )
    assert r2_score(VALUES, robust.fit(make_rows(X, VALUES)).predict(X)) > 0.95
    one_class = SparseOneClassSVM(15, nu=0.1, standardize=True, n_passes=10, random_state=0).fit(make_rows(X))
    assert (one_class.predict(X) == -1).mean() == pytest.approx(0.1, abs=0.04)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("scale", [20.0, 1.0])
def test_coefficients_are_those_of_the_exact_solution_on_all_rows(C: float, scale: float) -> None:
    weights, given = np.random.default_rng(2).uniform(0.5, 2.0, len(X)), X * [scale, 1.0]
    found = classifier(C=C, standardize=False, class_weight={0: 1.0, 1: 3.0}).fit(make_rows(given, Y, weights))
    machine = found.machine_
    points = Points(machine.kernel, given)
    costs = C * weights * np.where(Y == 1, 3.0, 1.0)
    problem = MarginProblem.of_labels(np.where(Y == 1, 1.0, -1.0)[:, None], costs[:, None])
    exact = fit_coefficients(points, machine.points - points.centre, problem, "squared_hinge")
    assert found.objective_ == pytest.approx(exact.solution.value.sum(), rel=2e-4)
    assert found.gap_ < 0.1 * found.objective_


def test_a_learned_metric_with_few_features() -> None:
    rng = np.random.default_rng(0)
    wide = np.column_stack([X, rng.normal(size=(len(X), 3))])
    found = classifier(metric="diagonal", max_features=2).fit(make_rows(wide, Y))
    assert found.features_used_.tolist() == [0, 1]
    assert found.score(wide, Y) > 0.9
    assert found.machine_.input_map is not None
    projected = classifier(metric="projection", n_components=2).fit(make_rows(wide, Y))
    assert projected.machine_.points.shape == (12, 2)
    assert projected.score(wide, Y) > 0.9


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_standardize_is_a_scaler_that_becomes_part_of_the_machine(make: Any) -> None:
    few, labels = make(X[:300]), Y[:300]
    scaler = StandardScaler(with_mean=make is np.asarray)
    plain = make_pipeline(scaler, classifier(standardize=False)).fit(few, labels)
    inside = classifier().fit(few, labels)
    assert np.allclose(inside.decision_function(few), plain.decision_function(few), atol=1e-6)
    assert inside.machine_.input_map is not None
    learned = classifier(metric="diagonal").fit(few, labels)
    assert np.allclose(
        learned.decision_function(few),
        make_pipeline(scaler, classifier(standardize=False, metric="diagonal")).fit(few, labels).decision_function(few),
        atol=1e-6,
    )


def test_few_rows_in_blocks_are_trained_on_in_memory() -> None:
    rows = make_rows(X[:300], Y[:300])
    found = classifier().fit(rows)
    assert "objective" in found.history_[0]
    assert found.gap_ < 1e-5 * found.objective_
    assert found.score(X_TEST, Y_TEST) > 0.9


def test_sparse_rows() -> None:
    rng = np.random.default_rng(3)
    text = sparse.random_array((1500, 1200), density=0.01, rng=rng, format="csr")
    y = (np.asarray(text[:, :40].sum(axis=1)).ravel() > 0.15).astype(int)
    found = classifier(n_vectors=20, C=10, standardize=False).fit(make_rows(text, y))
    assert found.score(text, y) > max(y.mean(), 1 - y.mean()) + 0.03


def test_files_with_names(tmp_path: Path) -> None:
    lines = [f"{a!r},{b!r},{'yes' if label else 'no'}\n" for (a, b), label in zip(X.tolist(), Y.tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("width,height,label\n" + "".join(lines))
    found = classifier().fit(read_rows(tmp_path / "rows.csv"))
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == ["width", "height"]
    assert (found.machine_.predict(X_TEST) == np.array(["no", "yes"])[Y_TEST]).mean() > 0.9
    found.fit(X[:200], Y[:200])
    assert not hasattr(found, "feature_names_in_")


def test_a_large_memory_map_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slimsvm.data.arrays, "LARGE", 1000)
    np.save(tmp_path / "X.npy", X)
    mapped: Any = np.load(tmp_path / "X.npy", mmap_mode="r")
    same = classifier().fit(make_rows(X, Y))
    assert classifier().fit(mapped, Y).machine_ == same.machine_


class Blocks:
    def __iter__(self) -> Iterator[Any]:
        return iter([(X[:1500], Y[:1500]), (X[1500:], Y[1500:])])


def test_iterables_of_blocks() -> None:
    assert classifier().fit(Blocks()).score(X_TEST, Y_TEST) > 0.9
    with pytest.raises(DataError, match="is a generator, which gives its blocks only once"):
        classifier().fit(block for block in Blocks())
    with pytest.raises(DataError, match="y goes with X as one array"):
        classifier().fit(Blocks(), Y)


def test_a_list_of_blocks_is_rows_and_a_list_of_samples_is_an_array() -> None:
    blocks = [(X[:2000], Y[:2000]), (X[2000:], Y[2000:])]
    one, other = (classifier().fit(rows).machine_ for rows in (blocks, make_rows(blocks)))
    assert one == other
    one, other = (classifier().fit(few, Y[:200]).machine_ for few in ([tuple(row) for row in X[:200]], X[:200]))
    assert one == other


@pytest.mark.parametrize("make", [SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM])
def test_the_gap_of_the_hinge_bounds_what_is_left_to_gain(make: Any) -> None:
    """The coefficients of all rows, beside the exact ones for the same vectors."""
    loss = {SparseLargeMarginClassifier: {"loss": "hinge"}, SparseLargeMarginRegressor: {"loss": "epsilon_insensitive"}}
    model = make(10, gamma=1.0, n_passes=2, random_state=0, **loss.get(make, {}))
    model.fit(make_rows(X * [1.0, 0.05], Y.astype(float)))
    points = Points(Rbf(1.0), X * [1.0, 0.05], centred=False)
    problem = {
        SparseLargeMarginClassifier: MarginProblem.of_labels(
            np.where(Y == 1, 1.0, -1.0)[:, None], np.ones((len(Y), 1))
        ),
        SparseLargeMarginRegressor: MarginProblem.of_values((Y - Y.mean())[:, None], 0.1, np.ones((len(Y), 1))),
        SparseOneClassSVM: MarginProblem.of_one_class(0.5, np.ones((len(Y), 1))),
    }[make]
    exact = float(fit_coefficients(points, np.asarray(model.vectors_), problem, "hinge").solution.value.sum())
    assert model.objective_ - exact + 1e-4 * abs(exact) >= 0
    assert model.objective_ - exact <= model.gap_ + 1e-4 * abs(exact)
    assert 0 < model.gap_ < 0.05 * abs(exact)


def test_rows_that_change_are_refused() -> None:
    class Shrinking:
        n = 4000

        def __iter__(self) -> Iterator[Any]:
            self.n -= 1
            return iter([(X[: self.n], Y[: self.n])])

    with pytest.raises(DataError, match="has changed: it had 3997 rows, and has 3996 now"):
        classifier(batch_size=1).fit(Shrinking())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "lbfgs"}, "solver='lbfgs' of SparseLargeMarginClassifier needs data in memory"),
        ({"n_vectors": 1000}, "n_vectors of .* must be at most 400 for these rows in blocks"),
        ({"n_vectors": 0.5}, "n_vectors of .* must be at most 400 for these rows in blocks"),
        ({"class_weight": {0: 0.0, 1: 1.0}}, "class_weight must hold finite numbers above 0 for rows in blocks"),
        ({"max_time": 0}, "max_time of .* must be a finite number above 0"),
        ({"standardize": "yes"}, "standardize of .* must be one of False, True"),
        (
            {"checkpoint": "x", "random_state": None},
            "random_state of .* must be a whole number if there is a checkpoint",
        ),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(**parameters).fit(make_rows(X, Y))


def test_scaling_needs_all_rows() -> None:
    with pytest.raises(ValueError, match=r"standardize=True of .* needs all rows before the first step"):
        classifier().partial_fit(X[:100], Y[:100], classes=[0, 1])


@pytest.mark.parametrize("solver", ["lbfgs", "stochastic", "rows", "metric"])
def test_max_time_keeps_the_best_so_far(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_blocks = solver in ("rows", "metric")
    parameters: dict[str, Any] = {"solver": "auto" if in_blocks else solver, "n_passes": 10**6, "max_iter": 10**6}
    if solver == "metric":
        parameters |= {"metric": "diagonal", "max_features": 1}
    model = classifier(max_time=0.3, tol=1e-300, **parameters)
    with pytest.warns(ConvergenceWarning, match=r"stopped after max_time=0\.3 seconds: the machine is the best one"):
        model.fit(make_rows(X, Y)) if in_blocks else model.fit(X, Y)
    assert model.score(X_TEST, Y_TEST) > (0.6 if solver == "metric" else 0.85)
    if solver == "metric":
        assert len(model.features_used_) == 1


def test_ctrl_c_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(streaming, "TOGETHER", 1)
    step, calls = Descent.run, iter(range(10**9))

    def interrupted(*arguments: Any) -> float:
        if next(calls) == 200:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(Descent, "run", interrupted)
    model = classifier()
    with pytest.raises(slimsvm.Interrupted):
        model.fit(make_rows(X, Y))
    assert model.score(X_TEST, Y_TEST) > 0.85


def test_passes_become_fewer_with_more_rows() -> None:
    assert streaming.passes_for(10**5, 256, None) == 20
    assert streaming.passes_for(10**6, 256, None) == 20
    assert streaming.passes_for(10**7, 256, None) == 2
    assert streaming.passes_for(1000, 256, None) * (1000 // 256) >= 4000
    assert streaming.passes_for(10**7, 256, 5) == 5

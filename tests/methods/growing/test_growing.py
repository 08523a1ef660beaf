"""Growing classifiers: scikit-learn's contract, what a step is, and that nothing is computed twice or lost."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import GrowingSVC, MultiKernelGrowingSVC
from slimsvm.kernels import Sigmoid
from slimsvm.kernels.base import Kernel
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.common.training import ClassificationTask
from slimsvm.methods.growing.features import GrowingFeatures
from slimsvm.methods.growing.machines import StepMachines
from slimsvm.methods.growing.path import GrowthPath, error_clearly_below_constant
from slimsvm.methods.large_margin.refit import refit

WEIGHTS = "vectors and validation samples are drawn, and a weighted set has other samples than a repeated one"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks(
    [GrowingSVC(max_vectors=8), MultiKernelGrowingSVC(gamma=0.1, max_vectors=8)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [GrowingSVC(kernel="linear", validation_fraction=0.0, early_exit=True)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(400, noise=0.25, random_state=0)
    return X, np.array(["left", "right"])[y]


@pytest.fixture(scope="module")
def iris() -> Any:
    return load_iris(return_X_y=True)


def small(**options: Any) -> GrowingSVC:
    return GrowingSVC(**{"C": 10.0, "gamma": 1.0, "random_state": 0, "vectors_per_class": 2, **options})


def objective(machine: Any, X: Any, y: Any, C: Any) -> float:
    """½βᵀKβ + Σ C ξ of a machine with one kernel and one output."""
    beta, K = machine.head.coef[:, 0], machine.kernel.gram(machine.points, machine.points)
    xi = np.maximum(1.0 - np.where(y == machine.classes[1], 1.0, -1.0) * machine.decision(X), 0.0)
    return float(0.5 * beta @ K @ beta + np.sum(C * xi))


def test_few_vectors_do_as_well_as_all(moons: Any) -> None:
    X, y = moons
    model = small().fit(X, y)
    assert model.n_vectors_ < 50
    assert model.score(X, y) > 0.92
    assert {tuple(z) for z in model.vectors_.tolist()} <= {tuple(x) for x in X.tolist()}
    assert list(model.classes_) == ["left", "right"]
    assert model.stop_reason_ == "patience"


def test_final_coefficients_are_exact_on_all_samples(moons: Any) -> None:
    """The vectors of the best step, with the largest margin on training and validation samples, shrinking or not."""
    X, y = moons
    for shrinking in (True, False):
        model = small(shrinking=shrinking).fit(X, y)
        exact = refit(model.machine_, X, y, np.full(len(X), 10.0))
        assert model.objective_ == pytest.approx(objective(exact, X, y, 10.0), rel=1e-6)
        assert model.objective_ == pytest.approx(objective(model.machine_, X, y, 10.0), rel=1e-6)


def test_every_step_is_exact_on_its_training_samples(moons: Any) -> None:
    X, y = moons
    model = small(validation_fraction=0.0).fit(X, y)
    for step, machine in zip(model.history_, model.machines_, strict=True):
        exact = refit(machine, X, y, np.full(len(X), 10.0))
        assert step["objective"] == pytest.approx(objective(exact, X, y, 10.0), rel=3e-6)
        assert step["train_error"] == pytest.approx(np.mean(machine.predict(X) != y), abs=1e-12)
        assert step["validation_error"] is None


def test_the_history(moons: Any) -> None:
    X, y = moons
    model = small().fit(X, y)
    sizes = [step["n_vectors"] for step in model.history_]
    assert sizes[0] == 8
    assert (np.diff(sizes) > 0).all()
    assert np.diff(sizes).max() <= 4
    assert [step["step"] for step in model.history_] == list(range(len(sizes)))
    assert model.history_[model.best_step_]["n_vectors"] == model.n_vectors_
    for step, machine in zip(model.history_, model.machines_, strict=True):
        shared = min(machine.n_vectors, model.n_vectors_)
        np.testing.assert_array_equal(machine.points[:shared], model.vectors_[:shared])
        assert machine.n_vectors == step["n_vectors"]
        assert 0 < step["n_support"] <= step["n_active"]
        assert 0 <= step["validation_error"] <= 1
    best = model.history_[model.best_step_]
    assert best["validation_error"] == min(step["validation_error"] for step in model.history_ if step["stable"])
    assert pd.DataFrame(model.history_).shape[0] == len(sizes)
    assert [machine.n_vectors for machine in model.machines_[:3]] == sizes[:3]
    assert model.machines_[-1].n_vectors == sizes[-1]
    with pytest.raises(IndexError):
        model.machines_[len(sizes)]


def test_no_kernel_value_is_computed_twice(moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = moons
    asked: dict[tuple[bytes, bytes], int] = {}
    honest = Kernel.gram

    def counted(self: Kernel, A: Any, B: Any, gammas: Any = None) -> Any:
        for a in A:
            for b in B:
                asked[a.tobytes(), b.tobytes()] = asked.get((a.tobytes(), b.tobytes()), 0) + 1
        return honest(self, A, B, gammas)

    monkeypatch.setattr(Kernel, "gram", counted)
    counts = {}
    for shrinking in (True, False):
        asked.clear()
        model = small(shrinking=shrinking, gamma=10.0, patience=100, max_vectors=40).fit(X, y)
        grown = model.history_[-1]["n_vectors"]
        assert max(asked.values()) == 1
        assert sum(asked.values()) == model.n_kernel_values_ <= len(X) * grown
        counts[shrinking] = model.n_kernel_values_ / grown
    assert counts[True] < counts[False] == len(X)


def test_samples_set_aside_return(moons: Any) -> None:
    """A flat kernel first: its support vectors are other ones than those of the grown machine."""
    X, y = moons
    model = small(C=1000.0, gamma=3.0, patience=100, max_vectors=60, start_per_class=1, vectors_per_class=1).fit(X, y)
    active = np.array([step["n_active"] for step in model.history_])
    assert active.min() < active[0]
    assert (np.diff(active) > 0).any()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear", "sigmoid"])
def test_every_kernel_and_classes_on_shared_vectors(iris: Any, kernel: str) -> None:
    X, y = iris
    options = {"gamma": 0.05, "coef0": -1.0} if kernel == "sigmoid" else {"gamma": "scale"}
    model = small(kernel=kernel, **options).fit(X, y)
    assert model.machine_.head.coef.shape == (model.n_vectors_, 3)
    assert model.score(X, y) > (0.6 if kernel == "sigmoid" else 0.93)
    if kernel == "linear":
        assert model.n_vectors_ <= 4  # more are linearly dependent
        assert model.history_[-1]["n_vectors"] == 4


def test_a_linear_machine_on_sparse_text() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.02, size=(300, 2000)).astype(float)
    y = (counts[:, :40].sum(axis=1) > counts[:, 40:80].sum(axis=1)).astype(int)
    thin, thick = (small(kernel="linear", C=0.1).fit(form, y) for form in (sparse.csr_matrix(counts), counts))
    assert sparse.issparse(thin.vectors_)
    assert thin.n_vectors_ == thick.n_vectors_
    np.testing.assert_allclose(thin.decision_function(counts), thick.decision_function(counts), atol=1e-4)


def test_weights(moons: Any) -> None:
    X, y = moons
    weights = np.ones(len(X))
    weights[::3] = 0.0
    weighted = small().fit(X, y, sample_weight=weights)
    assert weighted.machine_ == small().fit(X[weights > 0], y[weights > 0]).machine_
    heavy = small(class_weight={"right": 50.0}).fit(X, y)
    assert (heavy.predict(X) == "right").sum() > (small().fit(X, y).predict(X) == "right").sum()


def test_what_stops_it(moons: Any) -> None:
    X, y = moons
    assert small(max_vectors=8, validation_fraction=np.float32(0.3)).fit(X, y).n_vectors_ == 8
    full = small(max_vectors=13, patience=50).fit(X, y)
    assert (full.stop_reason_, full.history_[-1]["n_vectors"]) == ("max_vectors", 13)
    assert small(max_vectors=0.05, patience=50).fit(X, y).history_[-1]["n_vectors"] == 20
    good = small(target_error=0.2).fit(X, y)
    assert good.stop_reason_ == "target_error"
    assert good.history_[-1]["validation_error"] <= 0.2
    assert small(kernel="linear", gamma="scale").fit(X, y).stop_reason_ in ("candidates", "patience")
    longer = small(patience=10).fit(X, y)
    assert len(longer.history_) > len(small(patience=2).fit(X, y).history_)


def test_the_same_seed_gives_the_same_machine(moons: Any) -> None:
    one, two, other = (small(random_state=seed).fit(*moons) for seed in (0, 0, 1))
    assert one.machine_ == two.machine_
    assert one.machine_ != other.machine_


def test_widths_are_mixed(moons: Any) -> None:
    X, y = moons
    model = MultiKernelGrowingSVC(C=10.0, gamma=0.01, random_state=0).fit(X, y)
    gammas = model.machine_.gammas
    assert (np.diff(gammas) >= 0).all()
    steps = np.unique(gammas)
    assert len(steps) > 2
    powers = np.log(steps / 0.01) / np.log(1 / 0.49)
    np.testing.assert_allclose(powers, np.round(powers), atol=1e-9)
    assert model.score(X, y) > 0.9
    beta, value = model.machine_.head.coef[:, 0], 0.0
    for gamma in steps:
        own = gammas == gamma
        Z = model.vectors_[own]
        value += 0.5 * beta[own] @ np.exp(-gamma * ((Z[:, None] - Z[None]) ** 2).sum(axis=2)) @ beta[own]
    xi = np.maximum(1.0 - np.where(y == "right", 1.0, -1.0) * model.decision_function(X), 0.0)
    assert model.objective_ == pytest.approx(value + 10.0 * xi.sum(), rel=1e-6)


CIRCLES = make_circles(240, noise=0.1, factor=0.5, random_state=0)
CHURN = make_classification(1000, n_features=12, n_informative=6, weights=[0.8], flip_y=0.05, random_state=0)


@pytest.mark.parametrize("data", [CIRCLES, load_iris(return_X_y=True), CHURN], ids=["circles", "iris", "churn"])
def test_several_widths_do_as_well_as_one_by_default(data: Any) -> None:
    X, y, X_test, y_test = (part[start::2] for start in (0, 1) for part in data)
    several, one = (kind(random_state=0).fit(X, y) for kind in (MultiKernelGrowingSVC, GrowingSVC))
    assert several.score(X_test, y_test) > one.score(X_test, y_test) - 0.03
    assert several.score(X_test, y_test) > np.mean(y_test == np.bincount(y).argmax()) + 0.07


def test_widths_that_only_give_a_constant_answer_do_not_end_the_search() -> None:
    """Wide kernels are at chance on circles, and tell nothing of the narrower ones."""
    X, y = CIRCLES
    options = {"gamma": 1e-3, "width_factor": 0.5, "width_patience": 1, "random_state": 0}
    assert MultiKernelGrowingSVC(**options).fit(X, y).score(X, y) > 0.95
    weights = np.where(y == 1, 9.0, 1.0)  # of which a constant answer gets nine tenths
    model = MultiKernelGrowingSVC(validation_fraction=0.0, **options).fit(X, y, sample_weight=weights)
    assert model.score(X, y, sample_weight=weights) > 0.95


def test_the_best_constant_answer_has_the_class_of_the_largest_costs() -> None:
    labels, costs = np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 1.0, 9.0])
    deviation = np.sqrt(0.25 * 0.75 * 84.0) / 12.0
    assert error_clearly_below_constant(labels, costs) == pytest.approx(0.25 - 2.0 * deviation)
    assert error_clearly_below_constant(labels, 5.0 * costs) == pytest.approx(0.25 - 2.0 * deviation)


@pytest.mark.parametrize("X", [np.ones((40, 2)), np.random.default_rng(0).normal(size=(40, 2))], ids=["same", "noise"])
def test_widths_end_if_none_can_beat_a_constant_answer(X: Any) -> None:
    y = np.arange(40) % 2
    model = MultiKernelGrowingSVC(random_state=0).fit(X, y)
    assert len({step["gamma"] for step in model.history_}) < 25


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [GrowingSVC, MultiKernelGrowingSVC])
def test_early_exit_loses_no_training_sample(moons: Any, iris: Any, model: Any, classes: int) -> None:
    X, y = moons if classes == 2 else iris
    options = {"C": 10.0, "gamma": 0.1, "max_vectors": 40, "random_state": 0}
    plain, fast = (model(early_exit=early, **options).fit(X, y) for early in (False, True))
    full = fast.machine_.without_early_exit()
    assert full == plain.machine_
    right = full.predict(X) == y
    assert (fast.predict(X)[right] == y[right]).all()
    used = fast.kernel_evaluations(X)
    assert used.max() <= fast.n_vectors_
    assert used.mean() < fast.n_vectors_
    sizes = fast.machine_.head.sizes
    assert sizes[-1] == fast.n_vectors_
    steps = {step["n_vectors"] for step in fast.history_}
    assert {size for size in sizes if size >= min(steps)} <= steps


def test_with_scikit_learns_tools(moons: Any, tmp_path: Path) -> None:
    X, y = moons
    assert cross_val_score(make_pipeline(StandardScaler(), small()), X, y, cv=3).mean() > 0.88
    model = small().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert model.machines_[0].feature_names == ("a", "b")
    again = pickle.loads(pickle.dumps(model))
    assert again.machine_ == model.machine_
    assert again.machines_[1] == model.machines_[1]
    assert clone(model).get_params() == model.get_params()
    model = small().fit(X, y)
    model.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), model.predict(X))
    assert slimsvm.compress(model, n_vectors=5, random_state=0).n_vectors_ == 5


def test_ctrl_c_leaves_the_machine_of_the_last_step(moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = GrowthPath.step

    def interrupted(self: GrowthPath) -> None:
        if len(self.history) == 2:
            raise KeyboardInterrupt
        honest(self)

    monkeypatch.setattr(GrowthPath, "step", interrupted)
    model = small()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*moons)
    assert len(model.history_) == 2
    assert model.machine_ == model.machines_[-1]
    assert model.stop_reason_ == "interrupted"
    assert model.score(*moons) > 0.8


def test_coefficients_that_do_not_converge_are_said(moons: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge to tol=1e-300"):
        small(tol=1e-300, max_vectors=8).fit(*moons)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"C": 0.0}, r"C of GrowingSVC must be a finite number above 0\. Got 0\.0"),
        ({"vectors_per_class": 0}, "vectors_per_class of GrowingSVC must be"),
        ({"start_per_class": 0.5}, r"start_per_class of GrowingSVC must be a whole number of at least 1\. Got 0\.5"),
        ({"target_error": "low"}, "target_error of GrowingSVC must be a finite number"),
        ({"patience": -1}, "patience of GrowingSVC must be"),
        ({"validation_fraction": 1.0}, "validation_fraction of GrowingSVC must be a number from 0 to below 1"),
        ({"stability": "high"}, "stability of GrowingSVC must be a number from 0 to below 1"),
        (
            {"max_vectors": 0},
            "max_vectors of GrowingSVC must be a whole number of at least 1, or a share of the training samples",
        ),
        ({"kernel": "precomputed"}, "kernel must be one of"),
    ],
)
def test_wrong_parameters(moons: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small(**options).fit(*moons)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"width_factor": 1.5},
            r"width_factor of MultiKernelGrowingSVC must be .* above 0 and below 1\. Got 1\.5",
        ),
        ({"kernel": "linear"}, "kernel of MultiKernelGrowingSVC must be one of 'rbf', 'laplacian'"),
        ({"width_patience": 0}, "width_patience of MultiKernelGrowingSVC must be"),
        ({"gamma": 0.0}, r"gamma of MultiKernelGrowingSVC must be .* above 0\. Got 0\.0"),
    ],
)
def test_wrong_widths(moons: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        MultiKernelGrowingSVC(**options).fit(*moons)


def test_widths_end_before_they_overflow(moons: Any) -> None:
    for options in ({"width_factor": 1e-300}, {"delta_factor": 1e150}):
        model = MultiKernelGrowingSVC(gamma=1.0, max_vectors=20, patience=1, **options)
        assert model.fit(*moons).score(*moons) > 0.8


def test_new_vectors_that_are_not_used_hide_no_sample() -> None:
    """Without a feature space nothing is known of a sample set aside, but that weights of zero change nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    kernel, all_rows = Sigmoid(1.0, 0.0), np.arange(30)
    task = ClassificationTask(Points(kernel, X), np.array([0, 1]), np.where(y, 1.0, -1.0)[:, None], np.ones(30))
    features, machines = GrowingFeatures(X), StepMachines(kernel, task.classes, None, X[:0], None)
    path = GrowthPath(task, features, y < 0, small()._settings(), machines, [], Progress("growing", 0))
    features.begin_kernel(kernel)
    features.add_samples(np.arange(4), all_rows)
    path.solve()
    margins = features.bound_margins(all_rows, 4, path.Y, path.w, path.b)
    aside = np.flatnonzero(margins < 1.0)[-1:]
    path.active[aside] = False
    features.add_samples(np.arange(4, 6), np.flatnonzero(path.active))
    path.w = np.vstack([path.w, np.zeros((2, 1))])
    np.testing.assert_array_equal(path._find_returning(), aside)


def test_samples_that_are_all_alike() -> None:
    for kernel in ("rbf", "linear"):
        model = small(kernel=kernel).fit(np.zeros((20, 2)), [0] * 12 + [1] * 8)
        assert model.n_vectors_ <= 1
        assert (model.predict(np.zeros((3, 2))) == 0).all()


def test_real_sets(shared_data: Any) -> None:
    """A fifth of the SVM's vectors at most, at its error; nothing lost by early exit."""
    for name, C, gamma, error in (("kwok", 10.0, 0.5, 0.125), ("abalone_gsvc", 100.0, 1 / 18, 0.212)):
        data = shared_data(name)
        model = GrowingSVC(C=C, gamma=gamma, early_exit=True, random_state=0).fit(data["X_train"], data["y_train"])
        assert 1 - model.score(data["X_test"], data["y_test"]) < error
        full = model.machine_.without_early_exit()
        right = full.predict(data["X_train"]) == data["y_train"]
        assert (model.predict(data["X_train"])[right] == data["y_train"][right]).all()

"""Early exit added to trained machines: nothing right is lost, fewer vectors are used, the kind stays."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification, make_moons
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import slimsvm
from oracles.paths import PATHS, take
from oracles.random_machines import random_kernel
from slimsvm import ReducedSVC, UnsupportedModelError, add_early_exit
from slimsvm.answers import Classes
from slimsvm.calibration import Sigmoid
from slimsvm.estimator import SlimClassifier
from slimsvm.heads import LinearHead, StagedHead
from slimsvm.kernels import Linear
from slimsvm.machine import KernelMachine
from slimsvm.methods.early_exit import stage_sizes, staged_machine


def check(full: Any, fast: Any, X: Any, y: Any) -> float:
    """Exactly nothing right is lost, in both precisions; the mean share of the vectors that is used."""
    for data in (X, X.astype(np.float32)):
        right = full.predict(data) == y
        assert (fast.predict(data)[right] == y[right]).all()
    counts = fast.kernel_evaluations(X)
    machine = fast.machine_ if hasattr(fast, "machine_") else fast[-1].machine_
    assert counts.max() <= machine.n_vectors
    decision = fast.decision_function(X)
    place = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
    np.testing.assert_array_equal(fast.predict(X), machine.classes[place])
    return float(counts.mean() / machine.n_vectors)


def scaled(X: Any) -> Any:
    """Standardised data that float32 holds exactly: a rounded copy would be other samples."""
    return StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: make_moons(600, noise=0.3, random_state=0), 30),
        (lambda: make_classification(800, 10, n_informative=5, flip_y=0.1, random_state=1), 60),
        (lambda: load_breast_cancer(return_X_y=True), 40),
        (lambda: load_iris(return_X_y=True), 20),
        (lambda: load_wine(return_X_y=True), 25),
        (lambda: load_digits(return_X_y=True), 80),
    ],
    ids=["moons", "generated", "breast-cancer", "iris", "wine", "digits"],
)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_nothing_right_is_lost(make: Callable[[], Any], size: int, kernel: str) -> None:
    X, y = make()
    X = scaled(X)
    full = ReducedSVC(size, C=10, kernel=kernel, coef0=1.0, random_state=0, loss="squared_hinge").fit(X, y)
    assert check(full, add_early_exit(full, X, y), X, y) < 0.95


@pytest.mark.parametrize(
    ("name", "size", "gamma"),
    [
        ("ripley", 20, 1.0),
        ("kwok", 33, 0.5),
        ("abalone_gsvc", 52, 0.4),
        ("waveform", 80, 0.01),
        ("segment", 100, 0.1),
        ("usps", 100, 1 / 128),
    ],
)
def test_nothing_right_is_lost_on_real_data(shared_data: Any, name: str, size: int, gamma: float) -> None:
    data = shared_data(name)
    X, y = (data["X_train"], data["y_train"]) if "X_train" in data else (data["X"], data["y"])
    X = np.asarray(X[:1500], dtype=np.float64) if name == "usps" else scaled(X)
    y = np.where(y == 0, 1, -1) if name == "waveform" else y[: len(X)]
    full = ReducedSVC(size, C=10, gamma=gamma, random_state=0, loss="squared_hinge").fit(X, y)
    share = check(full, add_early_exit(full, X, y), X, y)
    assert share < 0.75, f"{share:.2f} of the vectors are used"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_nothing_right_is_lost_by_any_machine(seed: int) -> None:
    """Random coefficients, prefixes that have nothing to do with them, repeated samples and points."""
    rng = np.random.default_rng(seed)
    m, p, q = int(rng.integers(1, 40)), int(rng.integers(1, 6)), int(rng.choice([1, 3]))
    points = rng.normal(size=(m, p)).round(int(rng.integers(0, 3)))
    head = LinearHead(rng.normal(size=(m, q)) * 10.0 ** rng.integers(-3, 6), rng.normal(size=q))
    gammas = rng.uniform(0.1, 1, m) if rng.integers(2) else None
    machine = KernelMachine(random_kernel(rng, n_features=p), points, head, Classes(np.arange(max(2, q))), gammas)
    X = np.vstack([rng.normal(size=(60, p)).round(1), points])
    y = rng.integers(0, max(2, q), len(X))
    sizes = sorted(set(rng.integers(0, m, 5).tolist()))
    prefixes = [(rng.normal(size=(n, q)), rng.normal(size=q)) for n in sizes]
    for fast in (staged_machine(machine, prefixes, X, y), add_early_exit(machine, X, y)):
        right = machine.predict(X) == y
        for rows in (X, sparse.csr_array(X)):
            assert (fast.predict(rows)[right] == y[right]).all()
        assert all(fast.predict(x) == label for x, label in zip(X[right], y[right], strict=True))
        right = machine.predict(X, precision="float32") == y
        assert (fast.predict(X, precision="float32")[right] == y[right]).all()


@pytest.mark.parametrize("path", PATHS)
def test_what_one_path_sets_the_other_keeps(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_moons(400, noise=0.3, random_state=0)
    full = ReducedSVC(30, C=100, gamma=2.0, random_state=0).fit(X, y)
    fast = add_early_exit(full, X, y)
    take(path, monkeypatch)
    again = slimsvm.estimator.wrap(fast.machine_)
    right = full.predict(X) == y
    assert (again.predict(X)[right] == y[right]).all()


def test_thresholds_by_hand() -> None:
    """A linear kernel and one point: o = x, and the full machine is right below zero and above one."""
    machine = KernelMachine(Linear(), [[1.0], [0.0]], LinearHead([[1.0], [1.0]], [0.0]), Classes([0, 1]))
    X = np.array([[-3.0], [-1.0], [2.0], [5.0], [0.5], [-2.0]])
    y = np.array([0, 0, 1, 1, 0, 1])  # the last two are wrong, and do not count
    fast = staged_machine(machine, [(np.array([[2.0]]), np.array([10.0]))], X, y)
    middle = (2 * -1 + 10 + 2 * 2 + 10) / 2  # T₊ = 8 is below T₋ = 14: one threshold between them
    np.testing.assert_allclose([fast.head.upper[0], fast.head.lower[0]], [middle, middle], rtol=1e-9)
    overlapping = staged_machine(machine, [(np.array([[-2.0]]), np.array([10.0]))], X, y)
    np.testing.assert_allclose([overlapping.head.upper[0], overlapping.head.lower[0]], [16, 0], atol=1e-8)
    assert overlapping.head.upper[0] > 16
    assert overlapping.head.lower[0] < 0


def test_the_last_stage_is_the_machine_itself() -> None:
    X, y = load_iris(return_X_y=True)
    full = ReducedSVC(20, C=10, random_state=0).fit(X, y)
    fast = add_early_exit(full, X, y)
    head = fast.machine_.head
    assert isinstance(head, StagedHead)
    plain = fast.machine_.without_early_exit()
    np.testing.assert_allclose(plain.decision(X), full.decision_function(X), atol=1e-10)
    assert {tuple(row) for row in plain.points.tolist()} == {tuple(row) for row in full.vectors_.tolist()}
    again = add_early_exit(fast, X, y)
    assert again.machine_.head.sizes == head.sizes


def test_the_kind_stays(tmp_path: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["benign", "malignant"])[1 - y]
    full = ReducedSVC(30, random_state=0, n_jobs=2).fit(scaled(X), names)
    fast = add_early_exit(full, scaled(X), names)
    assert isinstance(fast, ReducedSVC)
    assert fast is not full
    assert isinstance(full.machine_.head, LinearHead)
    assert fast.get_params() == full.get_params()
    assert not hasattr(clone(fast), "machine_")
    assert pickle.loads(pickle.dumps(fast)).machine_ == fast.machine_
    machine = add_early_exit(full.machine_, scaled(X), names)
    assert machine == fast.machine_
    slim = add_early_exit(slimsvm.estimator.wrap(full.machine_, n_jobs=2, precision="float64"), scaled(X), names)
    assert isinstance(slim, SlimClassifier)
    assert (slim.n_jobs, slim.precision, slim.machine_) == (2, "float64", machine)
    assert isinstance(add_early_exit(SVC().fit(scaled(X), names), scaled(X), names), SlimClassifier)
    fast.save(tmp_path / "fast.slim")
    assert slimsvm.load(tmp_path / "fast.slim").machine_ == machine


def test_pipelines_csr_and_feature_names() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), ReducedSVC(30, random_state=0)).fit(X, y)
    fast = add_early_exit(pipeline, X, y)
    assert [name for name, _ in fast.steps] == [name for name, _ in pipeline.steps]
    right = pipeline.predict(X) == y
    assert (fast.predict(X)[right] == y[right]).all()
    folded = add_early_exit(slimsvm.compress(pipeline, fuse=True), X, y)
    assert (folded.predict(X)[right] == y[right]).all()
    assert folded.kernel_evaluations(X).mean() < 25
    frame = pandas.DataFrame(scaled(X), columns=[f"f{i}" for i in range(30)])
    named = ReducedSVC(30, random_state=0).fit(frame, y)
    assert add_early_exit(named, frame, y).feature_names_in_.tolist() == list(frame.columns)
    thin = sparse.csr_array(scaled(X) * (np.abs(scaled(X)) > 1))
    full = ReducedSVC(30, random_state=0).fit(thin, y)
    fast = add_early_exit(full, thin, y)
    right = full.predict(thin) == y
    assert (fast.predict(thin)[right] == y[right]).all()


def test_compressing_takes_the_last_stage() -> None:
    X, y = make_moons(300, noise=0.3, random_state=0)
    full = ReducedSVC(30, random_state=0).fit(X, y)
    fast = add_early_exit(full, X, y)
    small = slimsvm.compress(fast, n_vectors=8, random_state=0)
    assert isinstance(small.machine_.head, LinearHead)
    assert (small.predict(X) == full.predict(X)).mean() > 0.9


def test_what_cannot_have_it_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    svc = SVC().fit(X, y)
    with pytest.raises(UnsupportedModelError, match="OneVsRestClassifier"):
        add_early_exit(svc, X, y)
    with pytest.raises(UnsupportedModelError, match="Early exit needs a classifier"):
        add_early_exit(SVR().fit(X, y), X, y)
    shared = OneVsRestClassifier(SVC()).fit(X, y)
    check(shared, add_early_exit(shared, X, y), X, y)
    full = ReducedSVC(10, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="must hold the machine's classes"):
        add_early_exit(full, X, y + 1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        add_early_exit(full, X, y[1:])
    with pytest.raises(ValueError, match="features"):
        add_early_exit(full, X[:, 1:], y)
    for stages in (0, [], [0, 2], [3, 3], [1.5], [np.inf], True, "all", None):
        with pytest.raises(ValueError, match="stages of add_early_exit"):
            add_early_exit(full, X, y, stages=stages)  # type: ignore[arg-type]
    calibrated = slimsvm.KernelMachine(
        full.machine_.kernel,
        full.machine_.points,
        LinearHead(full.machine_.head.coef[:, :1], [0.0]),
        Classes([0, 1]),
        calibration=Sigmoid([-1.0], [0.0]),
    )
    with pytest.warns(UserWarning, match="drops the calibration"):
        assert add_early_exit(calibrated, X[:100], y[:100]).calibration is None


@pytest.mark.parametrize("m", [0, 1, 3, 4, 12, 33, 80, 97, 1000, 5000])
def test_sizes_rise_and_are_few(m: int) -> None:
    sizes = stage_sizes(24, m)
    assert sizes == sorted(set(sizes))
    assert len(sizes) < 25
    assert all(0 < size < m for size in sizes)
    assert m < 16 or all(size % 4 == 0 for size in sizes)
    assert stage_sizes([2, 5, 4000], m) == [size for size in (2, 5, 4000) if size < m]


def test_a_machine_without_vectors_and_one_that_is_always_wrong() -> None:
    X, y = make_moons(50, random_state=0)
    empty = KernelMachine(Linear(), np.empty((0, 2)), LinearHead(np.empty((0, 1)), [1.0]), Classes([0, 1]))
    assert (add_early_exit(empty, X, y).predict(X) == 1).all()
    constant = KernelMachine(Linear(), np.zeros((8, 2)), LinearHead(np.ones((8, 1)), [1.0]), Classes([0, 1]))
    fast = add_early_exit(constant, X, y)
    assert (fast.predict(X) == 1).all()
    assert (fast.kernel_evaluations(X) == 8).all()  # no sample of one class is right: nothing is sure

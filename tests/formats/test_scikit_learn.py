"""scikit-learn's own objects with the vectors of a machine."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import joblib
import numpy as np
import pytest
from machines import REAL, Case, check_labels, check_scores, random_cases, real_case, tolerance
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm import KernelMachine, UnsupportedExportError, to_sklearn
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.heads import LinearHead, MirrorHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Polynomial, Rbf

KIND = {Classes: SVC, Value: SVR, Inlier: OneClassSVM}


def made_quietly(machine: Any) -> Any:
    """`to_sklearn`, whose warnings other tests read; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return to_sklearn(machine)
        except UnsupportedExportError:
            return None


def votes_tie(machine: KernelMachine, X: Any) -> Any:
    """Rows on which two classes have the most votes: scikit-learn then takes the first of the sorted ones."""
    k = len(machine.classes)
    won = np.zeros((len(X), k))
    for (i, j), score in zip(combinations(range(k), 2), machine.scores(X).T, strict=True):
        won[np.arange(len(X)), np.where(score > 0, i, j)] += 1
    two = np.sort(won, axis=1)[:, -2:]
    return two[:, 0] == two[:, 1]


def compare(case: Case, model: Any) -> int:
    """Answers, and decisions where the machine's are of the same kind; the number of answers compared."""
    case = Case(case.name, case.machine.without_early_exit(), case.X)
    machine, last = case.machine, model[-1] if isinstance(model, Pipeline) else model
    assert type(last) is KIND[type(machine.answer)]
    if isinstance(machine.answer, Classes) and machine.head.gives_pairs and not machine.answer.break_ties:
        case = Case(case.name, machine, case.X[~votes_tie(machine, case.X)])
    if not len(case.X):
        return 0
    compared = check_labels(case, model.predict(case.X))
    decides = machine.calibration is not None and machine.calibration.decides
    if isinstance(machine.answer, Inlier) or (isinstance(machine.answer, Classes) and len(machine.classes) == 2):
        if not decides:
            sign = -1.0 if machine.head.gives_pairs and machine.answer.order == (0, 1) else 1.0  # type: ignore[attr-defined]
            check_scores(case, sign * model.decision_function(case.X))
    elif machine.head.gives_pairs:
        ours, theirs = machine.decision(case.X), model.decision_function(case.X)
        assert ours.shape == theirs.shape
        if machine.answer.shape == "ovo":  # type: ignore[attr-defined]
            assert (np.abs(ours - theirs).max(axis=1) <= tolerance(machine, case.X)).all()
    return compared


@pytest.mark.parametrize("n", [80, pytest.param(200, marks=pytest.mark.slow)])
def test_parity_on_random_machines(n: int) -> None:
    drawn = ((case, made_quietly(case.machine)) for case in random_cases(3 * n))
    pairs = list(islice(((case, model) for case, model in drawn if model is not None), n))
    assert len(pairs) == n
    machines = [case.machine for case, _ in pairs]
    assert {m.head.name for m in machines} == {"linear", "pairs", "pairwise", "staged"}
    assert {m.kernel.name for m in machines} == {"rbf", "laplacian", "poly", "linear", "sigmoid"}
    assert any(isinstance(model, Pipeline) for _, model in pairs)
    compared = sum(compare(case, model) for case, model in pairs)
    assert compared > 0.7 * sum(len(case.X) for case, _ in pairs)


@pytest.mark.parametrize("name", REAL)
def test_parity_on_real_machines(name: str) -> None:
    case = real_case(name)
    assert compare(case, to_sklearn(case.machine)) > 0.9 * len(case.X)


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(300, noise=0.25, random_state=0)
    return X, np.array(["down", "up"])[y]


def test_attributes_of_two_classes(moons: Any) -> None:
    """What a fitted SVC of this scikit-learn has, this one has too, of the same type and dtype."""
    X, y = moons
    parent = SVC(gamma=1.0).fit(X, y)
    made = to_sklearn(slimsvm.compress(parent))
    theirs, ours = vars(parent), vars(made)
    assert set(theirs) == set(ours)
    for name, value in theirs.items():
        assert type(ours[name]) is type(value), name
        if isinstance(value, np.ndarray):
            assert (ours[name].dtype, ours[name].ndim) == (value.dtype, value.ndim), name
    np.testing.assert_allclose(made.support_vectors_, parent.support_vectors_)
    np.testing.assert_allclose(made.dual_coef_, parent.dual_coef_)
    np.testing.assert_allclose(made._dual_coef_, -made.dual_coef_)
    np.testing.assert_allclose(made.intercept_, parent.intercept_)
    np.testing.assert_allclose(made.decision_function(X), parent.decision_function(X), atol=1e-12)
    assert (made.predict(X) == parent.predict(X)).all()
    assert made.score(X, y) == parent.score(X, y)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_a_model_that_comes_back_is_the_same(kind: Any, as_sparse: bool) -> None:
    X, y = load_iris(return_X_y=True)
    data = sparse.csr_array(X) if as_sparse else X
    parent = kind(gamma=0.3).fit(data, y)
    made = to_sklearn(slimsvm.compress(parent), sparse=as_sparse)
    assert set(vars(parent)) == set(vars(made))
    for name, value in vars(parent).items():
        assert type(getattr(made, name)) is type(value), name
    for part in ("support_vectors_", "dual_coef_", "_dual_coef_"):
        a, b = getattr(made, part), getattr(parent, part)
        np.testing.assert_allclose(a.toarray() if as_sparse else a, b.toarray() if as_sparse else b)
    assert (made.n_support_ == parent.n_support_).all()
    np.testing.assert_allclose(made.predict(data), parent.predict(data))
    if kind is not SVR:
        np.testing.assert_allclose(made.decision_function(data), parent.decision_function(data))
    if kind is OneClassSVM:
        np.testing.assert_allclose(made.score_samples(data), parent.score_samples(data))
        np.testing.assert_allclose(made.offset_, parent.offset_)
    assert (slimsvm.compress(made).machine_ == slimsvm.compress(parent).machine_) or as_sparse


def test_sparse_data_need_sparse_vectors(moons: Any) -> None:
    X, y = moons
    small = slimsvm.compress(SVC(gamma=1.0).fit(X, y), n_vectors=10, random_state=0)
    with pytest.raises(ValueError, match="sparse input"):
        to_sklearn(small).predict(sparse.csr_array(X))
    made = to_sklearn(small, sparse=True)
    np.testing.assert_allclose(made.decision_function(sparse.csr_array(X)), small.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(made.decision_function(X), small.decision_function(X), atol=1e-9)


def test_it_is_an_estimator_like_any_other(moons: Any) -> None:
    X, y = moons
    small = slimsvm.compress(SVC(gamma=1.0).fit(X, y), n_vectors=10, random_state=0)
    made = to_sklearn(small)
    assert (pickle.loads(pickle.dumps(made)).predict(X) == small.predict(X)).all()
    file = io.BytesIO()
    joblib.dump(made, file)
    file.seek(0)
    assert (joblib.load(file).predict(X) == small.predict(X)).all()
    again = clone(made)
    assert again.get_params() == made.get_params()
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert cross_val_score(again, X, y, cv=3).mean() > 0.8
    with pytest.raises(ValueError, match="2 features"):
        made.predict(X[:, :1])


def test_laplacian_is_a_function(moons: Any) -> None:
    X, y = moons
    small = slimsvm.ReducedSVC(12, kernel="laplacian", gamma=0.5, random_state=0).fit(X, y)
    made = to_sklearn(small)
    np.testing.assert_allclose(made.decision_function(X), small.decision_function(X), atol=1e-9)
    assert (pickle.loads(pickle.dumps(made)).predict(X) == small.predict(X)).all()
    np.testing.assert_allclose(made.decision_function(sparse.csr_array(X)), small.decision_function(X), atol=1e-9)


def test_input_maps_become_steps_in_front() -> None:
    X, y = load_iris(return_X_y=True)
    for steps, names in (
        ([StandardScaler()], ["scale", "svm"]),
        ([PCA(2)], ["centre", "project", "svm"]),
        ([StandardScaler(with_mean=False), PCA(2)], ["project", "shift", "svm"]),
        ([PCA(4)], None),
        ([], None),
    ):
        parent = make_pipeline(*steps, SVC(gamma=0.3)).fit(X, y)
        made = to_sklearn(slimsvm.compress(parent, fuse=True))
        assert [name for name, _ in made.steps] == names if names else isinstance(made, SVC)
        np.testing.assert_allclose(made.decision_function(X), parent.decision_function(X), atol=1e-9)
        assert (pickle.loads(pickle.dumps(made)).predict(X) == parent.predict(X)).all()


def test_the_last_step_of_a_pipeline_is_replaced() -> None:
    X, y = load_iris(return_X_y=True)
    small = slimsvm.compress(make_pipeline(StandardScaler(), SVC(gamma=0.3)).fit(X, y), n_vectors=9, random_state=0)
    made = to_sklearn(small)
    assert [type(step) for _, step in made.steps] == [StandardScaler, SVC]
    assert (made.predict(X) == small.predict(X)).all()


def test_a_scikit_learn_without_probabilities(monkeypatch: pytest.MonkeyPatch, moons: Any) -> None:
    machine = slimsvm.compress(SVC(gamma=1.0).fit(*moons), n_vectors=10, random_state=0).machine_
    monkeypatch.setattr(SVC, "get_params", lambda self, deep=True: {"C": 1.0})
    with pytest.warns(UserWarning, match="the SVC of this scikit-learn version has none"):
        made = to_sklearn(replace(machine, calibration=Sigmoid([-1.5], [0.3])))
    assert not hasattr(made, "predict_proba")


def test_constant_features_offsets_and_names() -> None:
    rng = np.random.default_rng(0)
    head = LinearHead(rng.normal(size=(4, 1)), [0.2])
    names = ("a", "b", "c")
    for given in (
        InputMap([1.0, 2.0, 3.0], [0.0, 2.0, -3.0], [0.5, 0.6, 0.7]),
        InputMap([1.0, 2.0, 3.0], [1.0, 2.0, -3.0], [0.5, 0.6, 0.7]),
        InputMap([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]),
        InputMap(rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=3)),
    ):
        machine = KernelMachine(
            Polynomial(0.5, 1.0, 2.0), rng.normal(size=(4, 3)), head, Value(), input_map=given, feature_names=names
        )
        made, X = to_sklearn(machine), rng.normal(size=(30, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # rows without names
            np.testing.assert_allclose(made.predict(X), machine.predict(X), atol=1e-9)
        assert made.feature_names_in_.tolist() == list(names)


def test_shared_vectors_of_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    fitted = slimsvm.ReducedSVC(12, gamma=0.3, random_state=0).fit(X, y)
    made = to_sklearn(fitted)
    assert made.n_support_.tolist() == [12, 12, 0]
    assert (made.predict(X) == fitted.predict(X)).all()
    assert (made.decision_function(X).argmax(axis=1) == fitted.predict(X)).all()
    scores = fitted.decision_function(X)
    made.decision_function_shape = "ovo"
    pairs = np.stack([scores[:, i] - scores[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=1)
    np.testing.assert_allclose(made.decision_function(X), pairs, atol=1e-9)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_the_order_of_pairs_is_sorted(order: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    X, y = load_iris(return_X_y=True)
    machine = slimsvm.compress(SVC(gamma=0.3).fit(X, y)).machine_
    calibration = PairwiseSigmoid(-rng.uniform(1, 2, 3), rng.normal(size=3))
    machine = replace(machine, answer=Classes(["x", "y", "z"], order, "ovo"), calibration=calibration)
    if order == (0, 1, 2):
        made = to_sklearn(machine)
    else:
        with pytest.warns(UserWarning, match="Ties of votes go to the first of the sorted classes"):
            made = to_sklearn(machine)
    np.testing.assert_allclose(made.decision_function(X), machine.decision(X), atol=1e-9)
    np.testing.assert_allclose(made.predict_proba(X), machine.predict_proba(X), atol=1e-2)  # coupling stops early
    clear = ~votes_tie(machine, X)
    assert clear.sum() > 140
    assert (made.predict(X) == machine.predict(X))[clear].all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_probabilities_of_two_classes(order: tuple[int, int], moons: Any) -> None:
    X, y = moons
    machine = slimsvm.compress(SVC(gamma=1.0).fit(X, y), n_vectors=10, random_state=0).machine_
    machine = replace(machine, answer=Classes(machine.classes, order))
    for calibration, off in (
        (Sigmoid([-1.5], [0.3], coupled=True), 1e-6),
        (Sigmoid([-1.5], [0.3]), 5e-3),
        (Softmax(1.5), 5e-3),
    ):
        calibrated = replace(machine, calibration=calibration)
        made = to_sklearn(calibrated)
        np.testing.assert_allclose(made.predict_proba(X), calibrated.predict_proba(X), atol=off)
        assert (made.predict(X) == calibrated.predict(X)).all()
        assert (pickle.loads(pickle.dumps(made)).predict_proba(X) == made.predict_proba(X)).all()
        in_sparse = to_sklearn(calibrated, sparse=True)
        np.testing.assert_allclose(in_sparse.predict_proba(X), made.predict_proba(X), atol=1e-9)
    with pytest.warns(UserWarning, match="logits"):
        made = to_sklearn(replace(machine, calibration=Sigmoid([-1.5], [0.9], decides=True)))
    assert (made.predict(X) == replace(machine, calibration=Sigmoid([-1.5], [0.9], decides=True)).predict(X)).all()
    assert not hasattr(to_sklearn(machine), "predict_proba")


def test_what_is_lost_is_said(moons: Any) -> None:
    X, y = moons
    fitted = slimsvm.SparseLargeMarginClassifier(12, gamma=1.0, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="Early exit is left out"):
        made = to_sklearn(slimsvm.add_early_exit(fitted, X, y))
    assert made.score(X, y) > 0.9
    flowers = slimsvm.ReducedSVC(12, gamma=0.3, random_state=0).fit(*load_iris(return_X_y=True)).machine_
    with pytest.warns(UserWarning, match="Probabilities are left out"):
        made = to_sklearn(replace(flowers, calibration=Sigmoid([-1.0] * 3, [0.0] * 3)))
    assert not hasattr(made, "predict_proba")


def test_refusals() -> None:
    rng = np.random.default_rng(2)
    machine = KernelMachine(
        Rbf(0.5), rng.normal(size=(4, 2)), LinearHead(rng.normal(size=(4, 2)), [0, 1.0]), Value(False)
    )
    one = replace(machine, head=LinearHead(rng.normal(size=(4, 1)), [0.1]), answer=Classes([0, 1]))
    mirror = MirrorHead(rng.normal(size=(4, 1)), [0.0], (0, 1, 2, 3), np.ones(4))
    for refused, message in (
        (machine, "SVR predicts one value, and this machine predicts 2"),
        (replace(one, head=mirror), "mirror head"),
        (replace(one, gammas=[0.1, 0.2, 0.3, 0.4]), "vectors of this machine have several"),
        (replace(one, kernel=Polynomial(1.0, 0.0, 1.5)), "whole degree. Got 1.5"),
    ):
        with pytest.raises(UnsupportedExportError, match=message):
            to_sklearn(refused)
    with pytest.raises(TypeError, match="Got SVC"):
        to_sklearn(SVC())


def test_no_vectors() -> None:
    machine = KernelMachine(Rbf(0.5), np.empty((0, 2)), LinearHead(np.empty((0, 1)), [1.5]), Value())
    for as_sparse in (False, True):
        assert to_sklearn(machine, sparse=as_sparse).predict(np.zeros((2, 2))).tolist() == [1.5, 1.5]


def test_skl2onnx_takes_it() -> None:
    skl2onnx, onnxruntime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    X, y = load_iris(return_X_y=True)
    for parent in (SVC(gamma=0.3).fit(X, y), SVC(gamma=0.3).fit(X[50:], y[50:])):
        small = slimsvm.compress(parent, n_vectors=8, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter's own
            graph = skl2onnx.to_onnx(to_sklearn(small), X[:1].astype(np.float32))
        session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})[0]
        assert (found == small.predict(X)).mean() > 0.99


def test_scikit_learn_intelex_patched_in() -> None:
    """Its SVC lets nobody set attributes; the object is scikit-learn's own all the same."""
    pytest.importorskip("sklearnex")
    script = """
from sklearnex import patch_sklearn
patch_sklearn(verbose=False)
import slimsvm
from sklearn.datasets import load_iris
from sklearn.svm import SVC
X, y = load_iris(return_X_y=True)
small = slimsvm.compress(SVC(gamma=0.3).fit(X, y), n_vectors=8, random_state=0)
made = slimsvm.to_sklearn(small)
assert type(made).__module__ == "sklearn.svm._classes" and type(made) is not SVC
assert (made.predict(X) == small.predict(X)).all()
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""Every kind of parent is reduced to one of its own kind that answers alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from libsvm import svmutil
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import slimsvm
from oracles import expansion as oracle
from oracles.parents import NAMED_SOLVERS
from slimsvm.compression import compress
from slimsvm.estimator import SlimClassifier, SlimOutlierDetector, SlimRegressor
from slimsvm.heads import PairsHead
from slimsvm.importers import import_model
from slimsvm.methods import ReducedSet

X, Y = load_iris(return_X_y=True)
Z = StandardScaler().fit_transform(X)
pytestmark = pytest.mark.filterwarnings("ignore:The fixed-point iteration got stuck")


def reduced(model: Any, n_vectors: Any = 10, *, fuse: bool = False, **settings: Any) -> Any:
    return compress(model, n_vectors=n_vectors, method=ReducedSet(**settings), fuse=fuse, random_state=0)


def agreement(one: Any, other: Any, data: Any) -> float:
    return float(np.mean(one.predict(data) == other.predict(data)))


# ---------------------------------------------------------------- classifiers


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVC(decision_function_shape="ovo"),
        NuSVC(nu=0.2),
        OneVsRestClassifier(SVC()),
        OneVsOneClassifier(SVC(gamma=0.25)),
    ],
    ids=str,
)
@pytest.mark.parametrize("solver", NAMED_SOLVERS)
def test_classes_share_their_vectors(model: Any, solver: Any) -> None:
    model = model.fit(Z, Y)
    slim = reduced(model, 12, solver=solver)
    assert type(slim) is SlimClassifier
    assert slim.n_vectors_ == 12
    assert agreement(slim, model, Z) >= 0.96
    assert slim.decision_function(Z).shape == model.decision_function(Z).shape
    whole = import_model(model).machine
    rho2 = oracle.rho2(whole, slim.machine_)
    assert slim.history_[-1]["rho2"] == pytest.approx(rho2, abs=1e-8 * oracle.square(whole))


def test_ten_digits_on_shared_vectors() -> None:
    """45 pairs of classes, and a tenth of the support vectors keeps nearly all answers."""
    data, labels = load_digits(return_X_y=True)
    svc = SVC(C=10, gamma=0.001).fit(data[:900], labels[:900])
    slim = reduced(svc, 0.15, solver="lbfgs")
    assert slim.n_vectors_ == round(0.15 * len(svc.support_))
    assert isinstance(slim.machine_.head, PairsHead)
    assert slim.machine_.head.coef.shape == (slim.n_vectors_, 45)
    assert svc.score(data[900:], labels[900:]) - slim.score(data[900:], labels[900:]) < 0.02


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_parents_keep_their_calibration(method: Any) -> None:
    model = CalibratedClassifierCV(SVC(), method=method, ensemble=False, cv=3).fit(Z[50:], Y[50:])
    slim, exact = reduced(model, 12), compress(model)
    assert slim.machine_.calibration == exact.machine_.calibration
    assert slim.n_vectors_ == 12
    bound = 0.1 if method == "sigmoid" else 0.5  # isotonic probabilities jump
    assert np.abs(slim.predict_proba(Z[50:]) - model.predict_proba(Z[50:])).max() < bound


def test_labels_and_names_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    slim = reduced(SVC().fit(frame, names), 12)
    assert slim.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert slim.feature_names_in_.tolist() == list("abcd")
    assert slim.score(frame, names) > 0.94


# ---------------------------------------------------------------- regression and one class


@pytest.mark.parametrize("model", [SVR(C=10), NuSVR(C=10), KernelRidge(kernel="rbf", gamma=0.3)], ids=str)
def test_regression(model: Any) -> None:
    wave = np.sin(Z[:, 0]) + Z[:, 1]
    model = model.fit(Z, wave)
    slim = reduced(model, 20)
    assert type(slim) is SlimRegressor
    assert slim.predict(Z).shape == (150,)
    assert np.abs(slim.predict(Z) - model.predict(Z)).max() < 0.05 * np.ptp(wave)


def test_several_outputs() -> None:
    waves = np.column_stack([np.sin(Z[:, 0]), Z[:, 1], Z[:, 2] * Z[:, 3]])
    model = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1).fit(Z, waves)
    slim = reduced(model, 20)
    assert slim.predict(Z).shape == (150, 3)
    assert slim.machine_.head.coef.shape == (20, 3)
    assert (np.abs(slim.predict(Z) - model.predict(Z)).max(axis=0) < 0.1 * np.ptp(waves, axis=0)).all()


def test_one_class() -> None:
    model = OneClassSVM(nu=0.2, gamma=0.2).fit(Z)
    slim = reduced(model, 10)
    assert type(slim) is SlimOutlierDetector
    assert slim.n_vectors_ == 10
    assert agreement(slim, model, Z) > 0.95
    spread = np.ptp(model.decision_function(Z))
    assert np.abs(slim.decision_function(Z) - model.decision_function(Z)).max() < 0.1 * spread
    np.testing.assert_allclose(slim.score_samples(Z) - slim.offset_, slim.decision_function(Z), atol=1e-12)


# ---------------------------------------------------------------- pipelines, files, machines


def test_a_pipeline_is_reduced_to_a_pipeline() -> None:
    model = make_pipeline(Normalizer(), StandardScaler(), PCA(3), SVC()).fit(X, Y)
    slim = reduced(model)
    assert isinstance(slim, Pipeline)
    assert [name for name, _ in slim.steps] == ["normalizer", "standardscaler", "pca", "svc"]
    assert slim[-1].n_vectors_ == 10
    assert len(slim[-1].history_) >= 1
    assert agreement(slim, model, X) > 0.95
    listed = reduced(model, [4, 10])
    assert [one[-1].n_vectors_ for one in listed] == [4, 10]


def test_a_folded_pipeline_is_one_machine(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), PCA(3), SVC()).fit(X, Y)
    slim = reduced(model, fuse=True)
    assert type(slim) is SlimClassifier
    assert (slim.n_features_in_, slim.vectors_.shape) == (4, (10, 3))
    np.testing.assert_allclose(slim.decision_function(X), reduced(model).decision_function(X), atol=1e-8)
    slim.save(tmp_path / "small.slim")
    loaded = slimsvm.load(tmp_path / "small.slim")
    assert loaded.machine_ == slim.machine_
    np.testing.assert_array_equal(loaded.predict(X), slim.predict(X))


def test_nystroem_and_a_linear_model() -> None:
    model = make_pipeline(Nystroem(gamma=0.2, n_components=60, random_state=0), LogisticRegression()).fit(Z, Y)
    slim = reduced(model, 12)
    assert slim.n_vectors_ == 12
    assert agreement(slim, model, Z) > 0.95


def test_a_libsvm_file(tmp_path: Path) -> None:
    path = tmp_path / "iris.model"
    trained = svmutil.svm_train(Y.tolist(), Z, "-q -t 2 -g 0.25 -c 1")
    svmutil.svm_save_model(str(path), trained)
    exact, slim = compress(path), reduced(path, 12)
    assert slim.n_vectors_ == 12
    assert agreement(slim, exact, Z) > 0.96


def test_what_is_reduced_can_be_reduced_again() -> None:
    svc = SVC().fit(Z, Y)
    once = reduced(svc, 20)
    for model in (once, once.machine_):
        again = reduced(model, 8)
        assert again.n_vectors_ == 8
        assert agreement(again, svc, Z) > 0.94


# ---------------------------------------------------------------- sparse parents


def thin(n: int = 200, d: int = 400) -> tuple[Any, Any]:
    """Rows of which few entries are filled, and two classes."""
    rng = np.random.default_rng(0)
    data = rng.normal(1.0, 0.3, (n, d)) * (rng.random((n, d)) < 0.003)
    data[np.arange(n), rng.integers(0, 5, n)] = 1.0
    return sparse.csr_array(data), (data[:, :2].sum(axis=1) > data[:, 2:5].sum(axis=1)).astype(int)


def test_thinly_filled_parents_stay_sparse() -> None:
    data, labels = thin()
    svc = SVC(gamma=0.5).fit(data, labels)
    slim = reduced(svc, 30)
    assert sparse.issparse(slim.vectors_)
    assert slim.machine_ == reduced(svc, 30, solver="select").machine_
    assert agreement(slim, svc, data) > 0.9
    assert slim.vectors_.nnz < 10 * 30


@pytest.mark.parametrize("solver", ["irprop", "fixed_point", "lbfgs", "merge"])
def test_solvers_that_move_vectors_work_on_sparse_parents(solver: Any) -> None:
    """Filled vectors, and the same answers as from a dense parent."""
    data, labels = thin()
    svc = SVC(gamma=0.5).fit(data, labels)
    from_sparse = reduced(svc, 10, solver=solver)
    from_dense = reduced(SVC(gamma=0.5).fit(data.toarray(), labels), 10, solver=solver)
    assert type(from_sparse.vectors_) is np.ndarray
    one, other = (slim.history_[-1]["relative"] for slim in (from_sparse, from_dense))
    assert one == pytest.approx(other, rel=0.2)
    assert agreement(from_sparse, svc, data) > 0.8


def test_well_filled_sparse_parents_are_moved() -> None:
    svc = SVC().fit(sparse.csr_array(Z), Y)
    assert type(reduced(svc, 8).vectors_) is np.ndarray


# ---------------------------------------------------------------- kernels without a gradient


def test_laplacian_and_sigmoid_are_selected() -> None:
    labels = (Y > 0).astype(float)
    laplacian = KernelRidge(kernel="laplacian", gamma=0.2).fit(Z, labels)
    sigmoid = SVC(kernel="sigmoid", gamma=0.05).fit(Z, Y)
    for model, name in ((laplacian, "laplacian"), (sigmoid, "sigmoid")):
        slim = reduced(model, 15)
        points = {tuple(row) for row in import_model(model).machine.points.tolist()}
        assert {tuple(row) for row in slim.vectors_.tolist()} <= points
        with pytest.raises(ValueError, match=rf"^solver='lbfgs' .*{name} kernel.* Use "):
            reduced(model, 15, solver="lbfgs")
    assert agreement(reduced(sigmoid, 15), sigmoid, Z) > 0.93


# ---------------------------------------------------------------- data of the paper


def test_twenty_vectors_serve_on_banana(shared_data: Callable[..., dict[str, Any]]) -> None:
    loss, shares = [], []
    for split in range(3):
        data = shared_data("ida_banana", split=split)
        svc = SVC(C=1.0, gamma=0.7).fit(data["X_train"], data["y_train"])
        slim = reduced(svc, 20)
        assert slim.n_vectors_ == 20
        shares.append(20 / len(svc.support_))
        loss.append(svc.score(data["X_test"], data["y_test"]) - slim.score(data["X_test"], data["y_test"]))
    assert max(shares) < 0.2
    assert np.max(loss) < 0.01


def test_a_tenth_of_the_vectors_serves_on_spambase(shared_data: Callable[..., dict[str, Any]]) -> None:
    data = shared_data("spambase")
    order = np.random.default_rng(0).permutation(len(data["y"]))[:1600]
    features, labels = StandardScaler().fit_transform(data["X"][order]), data["y"][order]
    svc = SVC(C=10, gamma=0.005).fit(features[:800], labels[:800])
    slim = reduced(svc, 0.1)
    assert svc.score(features[800:], labels[800:]) - slim.score(features[800:], labels[800:]) < 0.03


def _own_step(X: Any) -> Any:
    """A function that slimsvm does not know."""
    return np.tanh(X)


def test_steps_that_cannot_be_folded_stay_in_front() -> None:
    model = make_pipeline(FunctionTransformer(_own_step), StandardScaler(), SVC()).fit(X, Y)
    with pytest.warns(UserWarning, match="fuse=True of compress left steps before the machine"):
        slim = reduced(model, fuse=True)
    assert [name for name, _ in slim.steps] == ["functiontransformer", "svc"]
    assert agreement(slim, model, X) > 0.9

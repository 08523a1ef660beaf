"""Models whose attributes were altered: a sentence each, never a crash and never a wrong machine."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.arange(40) % 2
Y3 = np.arange(40) % 3

MODELS: dict[str, Callable[[], Any]] = {
    "binary SVC": lambda: SVC().fit(X, Y),
    "three-class SVC": lambda: SVC().fit(X, Y3),
    "sparse SVC": lambda: SVC().fit(sparse.csr_array(X), Y3),
    "NuSVC": lambda: NuSVC(nu=0.3).fit(X, Y),
    "SVR": lambda: SVR().fit(X, X[:, 0]),
    "OneClassSVM": lambda: OneClassSVM().fit(X),
}
ARRAYS = ("support_vectors_", "dual_coef_", "intercept_", "_dual_coef_", "_intercept_")


def dense(value: Any) -> Any:
    return value.toarray() if sparse.issparse(value) else np.asarray(value)


def with_nan(value: Any) -> Any:
    value = dense(value).astype(float)
    value.flat[-1] = np.nan
    return value


def with_infinity(value: Any) -> Any:
    value = dense(value).astype(float)
    value.flat[0] = -np.inf
    return value


DAMAGE: dict[str, Callable[[Any], Any]] = {
    "one row more": lambda v: np.concatenate([dense(v), dense(v)[:1]]),
    "last axis shorter": lambda v: dense(v)[..., :-1],
    "one axis more": lambda v: dense(v)[None],
    "nothing": lambda v: np.zeros(0),
    "a number": lambda v: 3.0,
    "NaN": with_nan,
    "infinity": with_infinity,
    "objects": lambda v: dense(v).astype(object),
    "complex": lambda v: dense(v) * 1j,
    "strings": lambda v: dense(v).astype(str),
    "None": lambda v: None,
    "a word": lambda v: "none of that",
    "a ragged list": lambda v: [[1.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_arrays(kind: str, name: str) -> None:
    whole = MODELS[kind]()
    for damage, damaged in DAMAGE.items():
        model = copy.deepcopy(whole)
        setattr(model, name, damaged(getattr(model, name)))
        # With a vector more, it is the coefficients that no longer fit.
        blamed = "dual_coef" if (name, damage) == ("support_vectors_", "one row more") else name.strip("_")
        with pytest.raises(ValueError, match=rf"{blamed}.*of \w*SV|has no attribute _?{blamed}"):
            import_model(model)


@pytest.mark.parametrize("name", [*ARRAYS[:3], "_n_support", "_gamma"])
@pytest.mark.parametrize("kind", MODELS)
def test_missing_attributes(kind: str, name: str) -> None:
    model = MODELS[kind]()
    delattr(model, name)
    with pytest.raises(ValueError, match=r"altered|_gamma"):
        import_model(model)


@pytest.mark.parametrize("gamma", [-0.1, np.nan, np.inf, "scale", None, [0.1, 0.2], np.array([1.0]), 1j, True])
@pytest.mark.parametrize("kind", MODELS)
def test_gamma(kind: str, gamma: Any) -> None:
    model = MODELS[kind]()
    model._gamma = gamma
    with pytest.raises(ValueError, match="gamma"):
        import_model(model)


@pytest.mark.parametrize(("parameter", "value"), [("coef0", np.nan), ("coef0", "1"), ("degree", -1), ("degree", None)])
@pytest.mark.parametrize("kind", ["binary SVC", "SVR"])
def test_kernel_parameters(kind: str, parameter: str, value: Any) -> None:
    model = MODELS[kind]().set_params(kernel="poly")
    setattr(model, parameter, value)
    with pytest.raises(ValueError, match=parameter):
        import_model(model)


@pytest.mark.parametrize("kernel", ["cosine", 3, None, ["rbf"]])
def test_unknown_kernels(kernel: Any) -> None:
    model = MODELS["binary SVC"]()
    model.kernel = kernel
    with pytest.raises((ValueError, UnsupportedModelError), match="kernel"):
        import_model(model)


@pytest.mark.parametrize(
    "counts", [[20, 21], [-1, 41], [40], [20.0, 20.0], [[20, 20]], 40, "20 20", [2**62, 2**62], None]
)
def test_counts(counts: Any) -> None:
    model = MODELS["binary SVC"]()
    assert len(model.support_) <= 40
    model._n_support = None if counts is None else np.asarray(counts)
    with pytest.raises(ValueError, match="n_support"):
        import_model(model)


@pytest.mark.parametrize("kind", ["three-class SVC", "sparse SVC", "three-class NuSVC"])
def test_counts_moved_between_classes(kind: str) -> None:
    whole = NuSVC(nu=0.5).fit(X, Y3) if kind == "three-class NuSVC" else MODELS[kind]()
    expected, n_changed = whole.decision_function(X), 0
    for move in ([-1, 1, 0], [0, 1, -1], [3, -2, -1], [-1, 2, -1], [-1, 0, 1]):
        model = copy.deepcopy(whole)
        model._n_support = model._n_support + np.array(move, dtype=np.int32)
        if np.allclose(model.decision_function(X), expected):
            import_model(model)  # the vectors between the classes have no other coefficient than that of the pair
            continue
        n_changed += 1
        with pytest.raises(ValueError, match=r"n_support_ of \w*SVC does not fit dual_coef_.* and not to zero"):
            import_model(model)
    assert n_changed > 2


def test_weighted_and_unfinished_fits_are_balanced() -> None:
    weights = RNG.random(40)
    for model in (SVC(C=100.0, class_weight="balanced"), SVC(kernel="poly", C=1e4), SVC(C=1e3, tol=1e-9)):
        import_model(model.fit(X, Y3, sample_weight=weights))


def test_counts_of_values_and_outliers() -> None:
    for model in (MODELS["SVR"](), MODELS["OneClassSVM"]()):
        model._n_support = model._n_support + 1
        with pytest.raises(ValueError, match="n_support_ of"):
            import_model(model)


@pytest.mark.parametrize("model", [SVR(), OneClassSVM(nu=0.3)], ids=["SVR", "OneClassSVM"])
def test_counts_that_a_fit_on_sparse_data_leaves_uninitialised(model: Any) -> None:
    rows = sparse.csr_array(X)
    model.fit(rows, X[:, 0])
    expected = model.predict(rows)
    model._n_support = np.array([3 * len(model.support_), 0], dtype=np.int32)
    np.testing.assert_array_equal(model.predict(rows), expected)
    np.testing.assert_allclose(import_model(model).machine.predict(rows), expected, atol=1e-10)


@pytest.mark.parametrize("labels", [[1, 0], [0, 0], [0], [0, np.nan], [[0, 1]], [0, None], [b"a", b"b"], [0, 1, 2]])
def test_classes(labels: Any) -> None:
    model = MODELS["binary SVC"]()
    model.classes_ = np.asarray(labels, dtype=object) if None in np.ravel(labels).tolist() else np.asarray(labels)
    with pytest.raises(ValueError, match="of SVC"):
        import_model(model)


@pytest.mark.parametrize("part", ["indices", "indptr", "data"])
def test_broken_sparse_vectors(part: str) -> None:
    model = copy.deepcopy(MODELS["sparse SVC"]())
    vectors = model.support_vectors_
    broken = {"indices": vectors.indices + 7, "indptr": vectors.indptr[::-1].copy(), "data": vectors.data * np.nan}
    setattr(vectors, part, broken[part])
    with pytest.raises(ValueError, match="support_vectors_ of SVC"):
        import_model(model)


def test_public_and_private_disagree() -> None:
    model = MODELS["binary SVC"]()
    model.intercept_ = model.intercept_ + 1.0
    with pytest.raises(ValueError, match="_intercept_ of SVC differ"):
        import_model(model)


@pytest.mark.parametrize(("shape", "break_ties"), [("ovx", False), (None, False), ("ovo", True)])
def test_decision_shape(shape: Any, break_ties: bool) -> None:
    model = MODELS["three-class SVC"]()
    model.decision_function_shape, model.break_ties = shape, break_ties
    with pytest.raises(ValueError, match="shape"):
        import_model(model)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["X_fit_", "dual_coef_"])
def test_kernel_ridge(name: str, damage: str) -> None:
    model = KernelRidge(kernel="rbf").fit(X, X[:, 0])
    setattr(model, name, DAMAGE[damage](getattr(model, name)))
    with pytest.raises(ValueError, match="KernelRidge"):
        import_model(model)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    ("step", "name"),
    [(0, "mean_"), (0, "scale_"), (1, "components_"), (1, "normalization_"), (2, "coef_"), (2, "intercept_")],
)
def test_pipeline(step: int, name: str, damage: str) -> None:
    model = make_pipeline(StandardScaler(), Nystroem(n_components=5, random_state=0), LogisticRegression()).fit(X, Y)
    part = model.steps[step][1]
    altered = DAMAGE[damage](getattr(part, name))
    if name == "intercept_" and damage == "a number":
        pytest.skip("one number is an intercept")
    setattr(part, name, altered)
    with pytest.raises(ValueError, match=type(part).__name__):
        import_model(model, fuse=True)

"""What the estimators make of every form of input: right answers, or scikit-learn's own sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.svm import SVC

from oracles.trainers import as_machine
from slimsvm import estimator as door
from slimsvm.answers import Classes
from slimsvm.estimator import wrap


def frames(X: Any, names: list[str]) -> list[Any]:
    """X as data frames of pandas and polars."""
    return [pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)]


def forms(X: Any, folder: Path) -> dict[str, Any]:
    """X in every form that holds the same numbers."""
    read_only = X.copy()
    read_only.setflags(write=False)
    joblib.dump(X, folder / "X.joblib")
    np.save(folder / "X.npy", X)
    return {
        "plain": X,
        "read-only": read_only,
        "memory-mapped": np.load(folder / "X.npy", mmap_mode="r"),
        "joblib's memory map": joblib.load(folder / "X.joblib", mmap_mode="r"),
        "Fortran order": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "strided columns": np.repeat(X, 2, axis=1)[:, ::2],
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
        "big-endian": X.astype(">f8"),
        "objects": X.astype(object),
        "lists": X.tolist(),
        "tuples": tuple(map(tuple, X.tolist())),
        "csr array": sparse.csr_array(X),
        "csr matrix": sparse.csr_matrix(X),
        "csc": sparse.csc_array(X),
        "coo": sparse.coo_array(X),
        "csr of 64-bit indices": wide_indices(X),
        "pandas": pd.DataFrame(X),
    }


def wide_indices(X: Any) -> Any:
    """X as a CSR array with 64-bit indices."""
    result = sparse.csr_array(X)
    result.indices, result.indptr = result.indices.astype(np.int64), result.indptr.astype(np.int64)
    return result


def test_every_form_of_input(iris: Any, svc: Any, classifier: Any, tmp_path: Path) -> None:
    X, _ = iris
    expected = svc.decision_function(X)
    for form, data in forms(X, tmp_path).items():
        found = classifier.decision_function(data)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=form)
        np.testing.assert_array_equal(classifier.predict(data), svc.predict(X), err_msg=form)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.bool_, np.float16, np.float32, np.longdouble])
def test_other_number_types(iris: Any, svc: Any, classifier: Any, dtype: Any) -> None:
    X = iris[0].astype(dtype)
    exact = classifier.decision_function(X)
    np.testing.assert_allclose(exact, svc.decision_function(X.astype(np.float64)), rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def named(iris: Any) -> Any:
    X, y = iris
    svc = SVC(gamma=0.25).fit(X, y)
    return X, svc, wrap(as_machine(svc, Classes(svc.classes_), names=["a", "b", "c", "d"]))


def test_feature_names_are_checked(named: Any) -> None:
    X, svc, slim = named
    assert slim.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert slim.feature_names_in_.dtype == object
    for frame in frames(X, ["a", "b", "c", "d"]):
        np.testing.assert_array_equal(slim.predict(frame), svc.predict(X))
    for frame in frames(X, ["a", "b", "x", "d"]):
        with pytest.raises(ValueError, match=r"(?s)The feature names should match.*unseen at fit time:\n- x"):
            slim.predict(frame)
    for frame in frames(X, ["b", "a", "c", "d"]):
        with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
            slim.predict(frame)
    for frame in frames(X[:, :3], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=r"(?s)Feature names seen at fit time, yet now missing:\n- d"):
            slim.predict(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but SlimClassifier was fitted with"):
        np.testing.assert_array_equal(slim.predict(X), svc.predict(X))


def test_names_that_the_machine_does_not_know(iris: Any, classifier: Any) -> None:
    for frame in frames(iris[0], ["a", "b", "c", "d"]):
        with pytest.warns(
            UserWarning, match="X has feature names, but SlimClassifier was fitted without feature names"
        ):
            classifier.predict(frame)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("value", "sentence"), [(np.nan, "contains NaN"), (np.inf, "contains infinity or a value too")]
)
@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_bad_numbers_have_scikit_learns_sentences(
    binary: Any, dtype: Any, value: float, sentence: str, method: str
) -> None:
    X = binary[0].astype(dtype)
    X[17, 2] = value
    for data in (X, np.asfortranarray(X), sparse.csr_array(X), X.tolist(), pd.DataFrame(X), X[17:18]):
        with pytest.raises(ValueError, match=f"Input X {sentence}"):
            getattr(binary[3], method)(data)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((5, 3), "X has 3 features, but SlimClassifier is expecting 4 features as input"),
        ((5, 0), r"Found array with 0 feature\(s\)"),
        ((0, 4), r"Found array with 0 sample\(s\)"),
        ((4,), "Expected 2D array, got 1D array instead"),
        ((), "Expected 2D array, got scalar array instead"),
        ((2, 4, 1), "dim 3|Expected 2D array, got 3D|expected <= 2"),
    ],
)
def test_bad_shapes_have_scikit_learns_sentences(classifier: Any, shape: Any, sentence: str) -> None:
    for dtype in (np.float64, np.float32, np.int64):
        with pytest.raises(ValueError, match=sentence):
            classifier.predict(np.zeros(shape, dtype=dtype))
    if len(shape) == 2:
        with pytest.raises(ValueError, match=sentence):
            classifier.predict(sparse.csr_array(shape))


def test_complex_numbers_and_words_are_refused(iris: Any, classifier: Any) -> None:
    with pytest.raises(ValueError, match="Complex data not supported"):
        classifier.predict(iris[0].astype(complex))
    with pytest.raises(ValueError, match="could not convert string to float"):
        classifier.predict([["a", "b", "c", "d"]])


def test_the_input_is_left_as_it_was(iris: Any, classifier: Any, binary: Any) -> None:
    X = iris[0].copy()
    scattered = sparse.csr_array(X)
    for slim in (classifier, binary[3]):
        slim.predict(X)
        slim.predict(scattered)
    np.testing.assert_array_equal(X, iris[0])
    np.testing.assert_array_equal(scattered.toarray(), iris[0])


def test_the_short_path_does_not_validate(
    iris: Any, named: Any, classifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("validated")

    monkeypatch.setattr(door, "validate_data", fail)
    X = iris[0]
    for data in (X, X.astype(np.float32), X[:1], np.asfortranarray(X), X[::2]):
        classifier.predict(data)
        classifier.decision_function(data)
    for slim, data in ((named[2], X), (classifier, X.astype(np.int64)), (classifier, X.tolist()), (classifier, X[:0])):
        with pytest.raises(AssertionError, match="validated"):
            slim.predict(data)

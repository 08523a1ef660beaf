"""Lazy answers of any slim estimator on Dask collections, partition by partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm import _core
from slimsvm._record import is_sparse
from slimsvm.dask.rows import in_rows
from slimsvm.data import is_dask
from slimsvm.exceptions import DataError


def predict(model: Any, X: Any) -> Any:
    """The predictions of a fitted model for a Dask array or dataframe, lazily.

    Parameters
    ----------
    model : a fitted estimator of slimsvm, or any object with `predict`
    X : Dask array (N, d) or DataFrame

    Returns
    -------
    Dask array (N,), or for a DataFrame a Series with its index.
    """
    return answer(model, "predict", X)


def decision_function(model: Any, X: Any) -> Any:
    """The decision values of a fitted model, as `predict`; (N, q) or a DataFrame if there are several per row."""
    return answer(model, "decision_function", X)


def predict_proba(model: Any, X: Any) -> Any:
    """The probabilities of classes, as `predict`; (N, k) or a DataFrame."""
    return answer(model, "predict_proba", X)


def answer(model: Any, method: str, X: Any) -> Any:
    """The answers of a method of a model, lazily, one task per partition."""
    if not is_dask(X):
        raise DataError(f"X must be a Dask array or dataframe. Got {type(X).__name__}. Call {method} of the model.")
    X = in_rows(X, "X")
    name = f"slimsvm_{method}"
    if not hasattr(X, "chunks"):
        like = answer_rows(X._meta_nonempty, model, method)
        return X.map_partitions(answer_rows, model, method, meta=like.iloc[:0], enforce_metadata=False, token=name)
    like = np.asarray(getattr(model, method)(np.zeros((1, int(X.shape[1])))))
    shape: Any = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], (like.shape[1],))}
    return X.map_blocks(answer_rows, model, method, dtype=like.dtype, meta=like[:0], name=None, token=name, **shape)


def answer_rows(X: Any, model: Any, method: str) -> Any:
    """The answers for one partition, on one thread: an array, or for a DataFrame a Series or DataFrame of its index."""
    with _core.one_thread():
        if not X.shape[0]:  # an estimator refuses to answer nothing
            empty = np.asarray(getattr(model, method)(_one_row(X)))[:0]
            return _labelled(empty, X)
        return _labelled(np.asarray(getattr(model, method)(X)), X)


def _one_row(X: Any) -> Any:
    """A row of zeros like those of X."""
    if is_sparse(X):
        return type(X)((1, X.shape[1]), dtype=X.dtype)
    if not hasattr(X, "columns"):
        return np.zeros((1, X.shape[1]))
    import pandas as pd

    return pd.DataFrame({name: [0] if kind.kind in "biuf" else [""] for name, kind in X.dtypes.items()})


def _labelled(found: Any, X: Any) -> Any:
    if not hasattr(X, "columns"):
        return found
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=X.index, name="prediction")
    return pd.DataFrame(found, index=X.index)

"""Lazy prediction: the answers of the local estimator, partition by partition, with the right types."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm.dask import decision_function, predict, predict_proba
from slimsvm.exceptions import DataError

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def small() -> Any:
    names = np.array(["setosa", "versicolor", "virginica"])
    return slimsvm.compress(SVC(gamma=0.25).fit(X, names[Y]), X, names[Y], n_vectors=9, calibrate="sigmoid")


@pytest.mark.parametrize("chunks", [(50, 4), (37, 2), ((0, 100, 50), 4)])
def test_arrays(client: Any, small: Any, chunks: Any) -> None:
    rows = da.from_array(X, chunks=chunks)
    labels, scores, shares = predict(small, rows), decision_function(small, rows), predict_proba(small, rows)
    assert labels.dtype == small.predict(X).dtype
    assert shares.shape == (150, 3)
    np.testing.assert_array_equal(labels.compute(), small.predict(X))
    np.testing.assert_allclose(scores.compute(), small.decision_function(X))
    np.testing.assert_allclose(shares.compute(), small.predict_proba(X))


def test_dataframes_keep_their_index(client: Any) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150) + 1000)
    model = slimsvm.compress(SVR().fit(table, Y), table, Y, n_vectors=5)
    parts = dd.from_pandas(table, npartitions=4)
    found = predict(model, parts[parts["a"] > 5]).compute()
    assert found.index.tolist() == table.index[table["a"] > 5].tolist()
    np.testing.assert_allclose(found.to_numpy(), model.predict(table[table["a"] > 5]))
    classes = slimsvm.compress(SVC(gamma=0.25).fit(table, Y), table, Y, n_vectors=9)
    scores = decision_function(classes, parts).compute()
    assert scores.index.tolist() == table.index.tolist()
    np.testing.assert_allclose(scores.to_numpy(), classes.decision_function(table))


def test_sparse_blocks_and_wrong_input(client: Any, small: Any) -> None:
    rows = da.from_array(X, chunks=(60, 4)).map_blocks(sparse.csr_array)
    np.testing.assert_array_equal(predict(small, rows).compute(), small.predict(X))
    with pytest.raises(DataError, match="X must be a Dask array or dataframe"):
        predict(small, X)

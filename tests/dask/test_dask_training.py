"""Training on a cluster: the bytes of local training on the same blocks, whatever the workers do."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons

from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM
from slimsvm.dask import (
    DaskSparseLargeMarginClassifier,
    DaskSparseLargeMarginRegressor,
    DaskSparseOneClassSVM,
    dask_rows,
)
from slimsvm.dask.blocks import DaskBlocks
from slimsvm.data import make_rows
from slimsvm.exceptions import DataError

X, Y = make_moons(1200, noise=0.25, random_state=0)
VALUES = np.sin(3 * X[:, 0]) + X[:, 1]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
SIZES = (1, 300, 99, 500, 200, 50, 25, 13, 7, 5)  # more blocks than are merged at a time


def cut(*parts: Any, sizes: tuple[int, ...] = SIZES) -> list[tuple[Any, ...]]:
    ends = np.cumsum((0, *sizes))
    return [tuple(part[a:b] for part in parts) for a, b in pairwise(ends)]


def spread(*parts: Any, sizes: tuple[int, ...] = SIZES) -> list[Any]:
    """The parts as Dask arrays with blocks of these sizes."""
    return [da.from_array(part, chunks=(sizes, *part.shape[1:])) for part in parts]


def settings(**more: Any) -> dict[str, Any]:
    return {"n_vectors": 6, "max_iter": 2, "random_state": 0} | more


def locally(*parts: Any, **more: Any) -> SparseLargeMarginClassifier:
    return SparseLargeMarginClassifier(**settings(solver="full_batch", **more)).fit(make_rows(cut(*parts)))


@pytest.mark.parametrize(
    "more",
    [
        {"standardize": True},
        {"init": "kmeans", "metric": "projection"},
        {"metric": "diagonal", "loss": "hinge", "max_iter": 1},
    ],
)
def test_a_classifier_has_the_bytes_of_local_training(client: Any, more: dict[str, Any]) -> None:
    found = DaskSparseLargeMarginClassifier(**settings(**more)).fit(*spread(X, Y, WEIGHTS))
    expected = locally(X, Y, WEIGHTS, **more)
    assert found.machine_ == expected.machine_
    assert found.history_ == expected.history_
    assert found.n_features_in_ == 2


def test_the_other_machines_have_the_bytes_of_local_training(client: Any) -> None:
    given = settings(max_iter=1)
    regressor = DaskSparseLargeMarginRegressor(**given, C=10.0).fit(*spread(X, VALUES))
    expected = SparseLargeMarginRegressor(**given, C=10.0, solver="full_batch").fit(make_rows(cut(X, VALUES)))
    assert regressor.machine_ == expected.machine_
    one_class = DaskSparseOneClassSVM(**given, nu=0.2).fit(spread(X)[0])
    alone = SparseOneClassSVM(**given, nu=0.2, solver="full_batch").fit(make_rows([block[0] for block in cut(X)]))
    assert one_class.machine_ == alone.machine_


def test_text_labels_that_blocks_lack_empty_blocks_and_sparse_blocks(client: Any) -> None:
    order = np.argsort(Y + 2 * (VALUES > 1.3), kind="stable")
    names = np.array(["b", "a", "c", "d"])[(Y + 2 * (VALUES > 1.3))[order]]
    sizes = (0, 1, 899, 0, 250, 50, 0)
    rows, labels = spread(X[order], names, sizes=sizes)
    expected = SparseLargeMarginClassifier(**settings(solver="full_batch")).fit(
        make_rows([block for block in cut(X[order], names, sizes=sizes) if len(block[0])])
    )
    found = DaskSparseLargeMarginClassifier(**settings()).fit(rows, labels)
    assert found.classes_.tolist() == sorted(set(names))
    assert found.machine_ == expected.machine_
    from_sparse = DaskSparseLargeMarginClassifier(**settings()).fit(rows.map_blocks(sparse.csr_array), labels)
    assert from_sparse.classes_.tolist() == found.classes_.tolist()
    assert from_sparse.score(X[order], names) == pytest.approx(found.score(X[order], names), abs=0.02)


def test_dataframes_give_names_and_unknown_sizes_are_no_obstacle(client: Any) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": Y})
    parts = dd.from_pandas(table, npartitions=5)
    parts = parts[parts["a"] > -10]  # the number of rows is not known any more
    found = DaskSparseLargeMarginClassifier(**settings()).fit(parts[["a", "b"]], parts["label"])
    assert found.feature_names_in_.tolist() == ["a", "b"]
    sizes = tuple(parts.map_partitions(len).compute())
    expected = SparseLargeMarginClassifier(**settings(solver="full_batch")).fit(make_rows(cut(X, Y, sizes=sizes)))
    np.testing.assert_array_equal(found.machine_.points, expected.machine_.points)
    lazy = found.predict(parts[["a", "b"]])
    assert isinstance(lazy, dd.Series)
    np.testing.assert_array_equal(lazy.compute().to_numpy(), expected.predict(X))
    unknown, labels = parts[["a", "b"]].to_dask_array(), parts["label"].to_dask_array()
    again = DaskSparseLargeMarginClassifier(**settings()).fit(unknown, labels)
    assert again.machine_ == expected.machine_


def test_columns_in_several_chunks_are_joined_and_targets_may_be_plain_arrays(client: Any) -> None:
    wide = da.from_array(X, chunks=(400, 1))
    found = DaskSparseLargeMarginClassifier(**settings()).fit(wide, Y)
    expected = SparseLargeMarginClassifier(**settings(solver="full_batch")).fit(
        make_rows(cut(X, Y, sizes=(400, 400, 400)))
    )
    assert found.machine_ == expected.machine_


def test_blocks_that_do_not_fit_in_memory_are_prepared_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DaskBlocks, "memory", 1.0)
    sizes = (700, 0, 500)
    found = DaskSparseLargeMarginClassifier(**settings()).fit(*spread(X, Y, sizes=sizes))
    expected = SparseLargeMarginClassifier(**settings(solver="full_batch")).fit(make_rows(cut(X, Y, sizes=(700, 500))))
    assert found.machine_ == expected.machine_


def test_a_killed_worker_and_workers_that_join_and_leave_change_nothing(cluster: Any, client: Any) -> None:
    expected = locally(X, Y, max_iter=6)
    stop = threading.Event()

    def disturb() -> None:
        time.sleep(0.3)
        pids = list(client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGKILL)
        cluster.scale(3)
        stop.wait(1.0)
        cluster.scale(2)

    thread = threading.Thread(target=disturb)
    thread.start()
    found = [DaskSparseLargeMarginClassifier(**settings(max_iter=6)).fit(*spread(X, Y)) for _ in range(2)]
    stop.set()
    thread.join()
    client.wait_for_workers(2, timeout=60)
    for one in found:
        assert one.machine_ == expected.machine_


def test_two_fits_at_once_on_one_client(client: Any) -> None:
    def fit(C: float) -> Any:
        return DaskSparseLargeMarginClassifier(**settings(C=C, max_iter=2), client=client).fit(*spread(X, Y))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(fit, (1.0, 5.0)))
    for one, C in zip(found, (1.0, 5.0), strict=True):
        assert one.machine_ == locally(X, Y, C=C, max_iter=2).machine_


def test_parameters_clones_and_pickles(client: Any) -> None:
    model = DaskSparseLargeMarginClassifier(**settings(), C=2.0, client=client)
    local = set(SparseLargeMarginClassifier().get_params())
    assert set(model.get_params()) == local | {"client"}
    assert clone(model).client is client
    model.fit(*spread(X, Y))
    back = pickle.loads(pickle.dumps(model))
    assert back.client is None
    assert back.machine_ == model.machine_
    plain = model.to_local()
    assert type(plain) is SparseLargeMarginClassifier
    assert plain.machine_ == model.machine_
    assert (plain.predict(X) == back.predict(X)).all()
    assert clone(plain).fit(make_rows(cut(X, Y))).machine_ == model.machine_


def test_local_training_reads_a_dask_collection_block_by_block(client: Any) -> None:
    rows = dask_rows(*spread(X, Y))
    found = SparseLargeMarginClassifier(8, n_passes=2, random_state=0).fit(rows)
    assert found.score(X, Y) > 0.85
    total = np.concatenate([block.X for block in rows])
    np.testing.assert_array_equal(total, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: (X, Y), "X must be a Dask array or dataframe. Got ndarray"),
        (lambda: (spread(X)[0], None), "X has no targets"),
        (lambda: (spread(X)[0], Y[:-1]), "y must have 1200 values"),
        (lambda: (spread(VALUES)[0], Y), "X must have rows and columns"),
        (lambda: (spread(X)[0], np.zeros(len(X))), "at least 2 classes"),
        (lambda: (spread(np.where(X > 2.0, np.nan, X))[0], Y), "is missing or not finite"),
    ],
)
def test_bad_data_are_refused_with_one_sentence(client: Any, change: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        DaskSparseLargeMarginClassifier(**settings()).fit(*change())


def test_bad_parameters_are_refused_before_the_data_are_read(client: Any) -> None:
    with pytest.raises(ValueError, match="solver of DaskSparseLargeMarginClassifier must be"):
        DaskSparseLargeMarginClassifier(solver="stochastic").fit(None, None)
    with pytest.raises(ValueError, match="checkpoint"):
        DaskSparseLargeMarginClassifier(checkpoint="state").fit(None, None)
    with pytest.raises(NotImplementedError, match="no partial_fit"):
        DaskSparseLargeMarginClassifier().partial_fit(X, Y)

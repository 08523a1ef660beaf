"""Sparse large margin machines that are trained on a cluster. They have the parameters of the local ones, and `client`.

Training is that of the local estimator with `solver="full_batch"`, whose blocks are the partitions of the data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.base import clone

from slimsvm.dask.prediction import answer
from slimsvm.dask.rows import DaskRows, current_client
from slimsvm.data import is_dask
from slimsvm.methods.large_margin.classifier import SparseLargeMarginClassifier
from slimsvm.methods.large_margin.one_class import SparseOneClassSVM
from slimsvm.methods.large_margin.regressor import SparseLargeMarginRegressor
from slimsvm.parameters import check_choice


def _with_client(local: type[Any]) -> Callable[..., None]:
    """An `__init__` with the parameters of a local estimator and `client`, which scikit-learn reads as such."""
    known = inspect.signature(local.__init__)
    more = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)

    def __init__(self: Any, *args: Any, client: Any = None, **parameters: Any) -> None:
        local.__init__(self, *args, **parameters)
        self.client = client

    __init__.__signature__ = known.replace(parameters=[*known.parameters.values(), more])  # type: ignore[attr-defined]
    return __init__


class _OnCluster:
    """What the three have in common."""

    _local: ClassVar[type[Any]]
    client: Any
    get_params: Callable[..., dict[str, Any]]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on Dask collections: X (N, d), y (N,) and weights (N,), with the same blocks of rows.

        Blocks may have any number of rows, also none, and need not have all classes. Samples of weight zero are left
        out. Ctrl-C leaves the best machine so far in `machine_`.
        """
        local: Any = self._unfitted()
        local._check_parameters()
        client = current_client(self.client)
        rows = DaskRows(client, X, None if self._local is SparseOneClassSVM else y, sample_weight)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        try:
            local._fit_rows(rows)
        finally:  # also after Ctrl-C
            vars(self).update(_fitted(local))
        return self

    def to_local(self) -> Any:
        """The estimator without Dask, fitted if this one is; its `fit` on the same blocks gives the same machine."""
        local = self._unfitted()
        vars(local).update(_fitted(self))
        return local

    def _unfitted(self) -> Any:
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        check_choice(parameters["solver"], "solver", type(self).__name__, ("auto", "full_batch"))
        return self._local(**parameters | {"solver": "full_batch"})

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        """Not on a cluster."""
        raise NotImplementedError(
            f"{type(self).__name__} has no partial_fit: blocks that come one after the other are learned from by one "
            f"process. Use {self._local.__name__}."
        )

    def __getstate__(self) -> dict[str, Any]:
        """The state without the client, which belongs to this process."""
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def __sklearn_clone__(self) -> Any:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(client=client, **{name: clone(value, safe=False) for name, value in parameters.items()})  # type: ignore[call-arg]

    def _ask_lazily(self, method: str, X: Any) -> Any:
        """The answers of the local estimator: lazy ones for a Dask collection."""
        local = self.to_local()
        return answer(local, method, X) if is_dask(X) else getattr(local, method)(X)

    def predict(self, X: Any) -> Any:
        """The predictions: a lazy Dask array for a Dask array, a lazy Series for a DataFrame, else an array."""
        return self._ask_lazily("predict", X)


def _fitted(estimator: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


class DaskSparseLargeMarginClassifier(_OnCluster, SparseLargeMarginClassifier):
    """`SparseLargeMarginClassifier`, trained on a Dask cluster: the same parameters and attributes, and `client`.

    Parameters
    ----------
    n_vectors, C, kernel, … : as in `SparseLargeMarginClassifier`. `solver` is "auto" or "full_batch", which is the same
        here, and there is no `checkpoint`: what a worker has lost is computed again.
    client : dask.distributed.Client, default=None
        By default the current one. It is not part of a pickle.
    """

    _local = SparseLargeMarginClassifier
    __init__ = _with_client(SparseLargeMarginClassifier)

    def decision_function(self, X: Any) -> Any:
        """The decision values, lazily for Dask collections."""
        return self._ask_lazily("decision_function", X)


class DaskSparseLargeMarginRegressor(_OnCluster, SparseLargeMarginRegressor):
    """`SparseLargeMarginRegressor`, trained on a Dask cluster; see `DaskSparseLargeMarginClassifier`."""

    _local = SparseLargeMarginRegressor
    __init__ = _with_client(SparseLargeMarginRegressor)


class DaskSparseOneClassSVM(_OnCluster, SparseOneClassSVM):
    """`SparseOneClassSVM`, trained on a Dask cluster; see `DaskSparseLargeMarginClassifier`."""

    _local = SparseOneClassSVM
    __init__ = _with_client(SparseOneClassSVM)

    def decision_function(self, X: Any) -> Any:
        """The decision values, lazily for Dask collections."""
        return self._ask_lazily("decision_function", X)

    def score_samples(self, X: Any) -> Any:
        """The scores without the offset, lazily for Dask collections."""
        return self._ask_lazily("score_samples", X)

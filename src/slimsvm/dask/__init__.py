"""The same training and prediction on a Dask cluster.

    import dask.dataframe as dd
    from dask.distributed import Client
    from slimsvm.dask import DaskSparseLargeMarginClassifier

    client = Client("scheduler:8786")
    table = dd.read_parquet("rows/*.parquet")
    model = DaskSparseLargeMarginClassifier(200, standardize=True, random_state=0)
    model.fit(table.drop(columns="label"), table["label"])
    model.to_local().save("model.slim")

The estimators give the machine that the local ones give with `solver="full_batch"` on the same blocks. All work is done
by pure tasks: a worker may die, leave or join at any time. Install what this needs by `pip install "slimsvm[dask]"`.
"""

from slimsvm.dask.estimators import (
    DaskSparseLargeMarginClassifier,
    DaskSparseLargeMarginRegressor,
    DaskSparseOneClassSVM,
)
from slimsvm.dask.prediction import decision_function, predict, predict_proba
from slimsvm.dask.rows import dask_rows

__all__ = [
    "DaskSparseLargeMarginClassifier",
    "DaskSparseLargeMarginRegressor",
    "DaskSparseOneClassSVM",
    "dask_rows",
    "decision_function",
    "predict",
    "predict_proba",
]

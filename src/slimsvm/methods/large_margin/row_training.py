"""Training on rows in blocks: by mini-batches (`row_search.py`) or in full batches (`full_batch_search.py`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.answers import Answer
from slimsvm.methods.large_margin.full_batch_search import FullBatchSearch
from slimsvm.methods.large_margin.row_search import RowSearch
from slimsvm.methods.large_margin.rows import RowData
from slimsvm.methods.large_margin.search import SearchProblem, train
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss


def train_on_rows(
    estimator: Any,
    data: RowData,
    problems: list[SearchProblem],
    loss: Loss,
    answer: Answer,
    *,
    outputs: NDArray[np.bool_] | None = None,
    level: float = 0.0,
) -> None:
    """As `train`, on rows in blocks, whose sample the problems are about.

    Rows that are all in the sample are trained on in memory, unless there is a checkpoint or `solver="full_batch"`.
    """
    given: Any = {"outputs": outputs, "level": level}
    if estimator.solver == "full_batch":
        # Sums must not depend on how many threads a BLAS has, which differs between computers and between processes.
        with calm_blas(0.0):
            full = partial(FullBatchSearch, data)
            train(estimator, data.points, problems, loss, answer, make=full, n_samples=data.n_rows, **given)
        return
    if data.is_whole and estimator.checkpoint is None:
        train(estimator, data.points, problems, loss, answer, **given)
        return
    if estimator.solver == "lbfgs":
        whose = type(estimator).__name__
        raise ValueError(f"solver='lbfgs' of {whose} needs data in memory. Use solver='auto' for rows in blocks.")
    make = partial(RowSearch, data)
    train(estimator, data.points, problems, loss, answer, make=make, n_samples=data.n_rows, **given)

"""The search for vectors in full batches: starts from a sample or by k-means‖, then L-BFGS on sums over all blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.data.block_map import BlockMap
from slimsvm.methods.common.deadline import Deadline, TimeUp
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.full_batch import BlockObjective, BlockProblem, prepare_block
from slimsvm.methods.large_margin.k_means_parallel import k_means_parallel
from slimsvm.methods.large_margin.metric import Placement, Pull, map_rows
from slimsvm.methods.large_margin.minibatch import Batches
from slimsvm.methods.large_margin.placing import Found, OnPlace, descend
from slimsvm.methods.large_margin.row_search import RowSearch
from slimsvm.methods.large_margin.rows import RowData
from slimsvm.methods.large_margin.search import MarginOf, SearchProblem, SearchResult
from slimsvm.methods.large_margin.starts import draw_rows


class FullBatchSearch(RowSearch):
    """A search whose steps are made on all rows at once."""

    _held: tuple[Any, BlockMap, Batches] | None = None  # the problem and features, the blocks and the sample for them

    def best_of_searches(self, problem: SearchProblem, m: int) -> SearchResult:
        try:
            return super().best_of_searches(problem, m)
        finally:
            self._release()

    def _blocks(self, points: Points, problem: SearchProblem, A: FloatArray | None) -> tuple[BlockMap, Batches]:
        """The blocks as rows of a problem, with the features that are used at present, and the sample of the same."""
        key = id(problem), None if self.used is None else self.used.tobytes()
        if self._held is None or self._held[0] != key:
            self._release()
            sample = Batches(points, problem.margin, A, self.data.farthest)
            assert problem.margin_of is not None
            self._held = key, prepared_blocks(self.data, sample, problem.margin_of, self.used), sample
        return self._held[1:]

    def _release(self) -> None:
        if self._held is not None:
            self._held[1].release()
            self._held = None

    def _start(self, problem: SearchProblem, m: int, A: FloatArray | None) -> Placement:
        if self.init != "kmeans":
            return super()._start(problem, m, A)
        first = draw_rows(self.points.X, min(m + 1, self.points.n_points), self.rng)
        first = first if A is None else np.asarray(map_rows(first, A))
        blocks, _ = self._blocks(self.points, problem, A)
        return Placement(k_means_parallel(blocks, A, first, m, self.data.n_rows, self.rng), A)

    def _search_once(
        self, points: Points, problem: SearchProblem, start: Placement, pull: Pull | None, keep: OnPlace | None = None
    ) -> SearchResult:
        blocks, sample = self._blocks(points, problem, start.A)
        sums = BlockProblem(blocks, self.data.n_rows, sample, start, self.loss, self.rng)
        limits = Limits(self.max_iter, self.tol, self.deadline)
        return descend_blocks(sums, start, limits, self.progress, [], pull, keep)


def prepared_blocks(
    data: RowData, sample: Batches, margin_of: MarginOf, used: NDArray[np.intp] | None = None
) -> BlockMap:
    """The blocks of all rows as the rows of a problem, whose sample is `sample`."""
    assert data.blocks is not None
    d, many = sample.points.X.shape[1], sample.problem.sign.size / sample.n
    shared = data.recipe, margin_of, sample.per_cost(data.n_rows), sample.dtype, used
    n_bytes = float(data.n_rows) * (d + 3 * many) * sample.dtype.itemsize
    return data.blocks.prepared("prepare", prepare_block, *shared, n_bytes=n_bytes)


@dataclass(frozen=True)
class Limits:
    """When a descent ends: `max_iter` and `tol` of the estimators, and a deadline."""

    max_iter: int
    tol: float
    deadline: Deadline


def descend_blocks(
    sums: BlockProblem,
    start: Placement,
    limits: Limits,
    progress: Progress,
    history: list[dict[str, Any]],
    pull: Pull | None = None,
    keep: OnPlace | None = None,
) -> SearchResult:
    """Where L-BFGS on sums over all blocks leads from `start`; `keep` is given every better placement on the way."""
    best = start

    def better(place: Placement) -> None:
        nonlocal best
        best = place
        if keep is not None:
            keep(place)

    def make(_: Points, place: Placement) -> BlockObjective:
        return BlockObjective(sums, place, start.A, pull)

    try:
        found = descend(
            sums.points, sums.margin, start, sums.loss, max_iter=limits.max_iter, tol=limits.tol, history=history,
            progress=progress, pull=pull, on_best=better, deadline=limits.deadline, make=make,
        )  # fmt: skip
    except TimeUp:
        found = Found(best, np.inf, len(history))
    progress.tell("coefficients of the final vectors", always=True)
    fit = sums.fit(found.place)
    penalty = 0.0 if pull is None or found.place.A is None else pull(found.place.A)[0]
    return SearchResult(found, fit, penalty, history)

"""Blocks of rows on a cluster: functions of them are tasks, and results are merged by further tasks.

All tasks are pure, and the parameters of a pass are a task of its graph, too, so the scheduler can run anything again
that was lost with a worker. Nothing is scattered, because lost data of that kind could not be made again. Keys are
different in every pass of every training, so that trainings do not meet.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import Any

from slimsvm.dask.tasks import run_task
from slimsvm.data.block_map import FAN_IN, BlockMap, Function, add_all

HELD = 0.4  # of the workers' memory: prepared blocks that take no more of it are held there


class DaskBlocks(BlockMap):
    """Delayed blocks, or with `held` blocks that the cluster has or is making."""

    def __init__(self, client: Any, blocks: Sequence[Any]) -> None:
        self.client, self._blocks = client, list(blocks)
        self.n_blocks = len(self._blocks)

    def collect(self, name: str, function: Function, *shared: Any) -> list[Any]:
        futures = self.client.compute(self._results(name, function, shared))
        return list(_gathered(self.client, futures))

    def reduce(self, name: str, function: Function, *shared: Any) -> Any:
        from dask import delayed

        level, height, token = self._results(name, function, shared), 0, uuid.uuid4().hex
        while len(level) > 1:
            groups = [level[first : first + FAN_IN] for first in range(0, len(level), FAN_IN)]
            height += 1
            level = [
                delayed(add_all)(*group, dask_key_name=(f"slimsvm_merge-{token}", height, number))
                for number, group in enumerate(groups)
            ]
        return _gathered(self.client, self.client.compute(level[:1]))[0]

    def prepared(self, name: str, function: Function, *shared: Any, n_bytes: float) -> DaskBlocks:
        made = self._results(name, function, shared)
        return DaskBlocks(self.client, self.client.persist(made) if n_bytes <= HELD * self.memory else made)

    def keep(self, numbers: Sequence[int]) -> DaskBlocks:
        return DaskBlocks(self.client, [self._blocks[number] for number in numbers])

    def release(self) -> None:
        self._blocks, self.n_blocks = [], 0

    @property
    def memory(self) -> float:
        """Bytes of memory of all workers; infinite if a worker has no limit."""
        limits = [worker["memory_limit"] for worker in workers(self.client).values()]
        return float(sum(limit or math.inf for limit in limits))

    def _results(self, name: str, function: Function, shared: tuple[Any, ...]) -> list[Any]:
        from dask import delayed

        token = uuid.uuid4().hex
        given = [
            delayed(value, name=f"slimsvm_parameters-{token}-{place}", traverse=False)
            for place, value in enumerate(shared)
        ]
        return [
            delayed(run_task)(function, number, block, *given, dask_key_name=(f"slimsvm_{name}-{token}", number))
            for number, block in enumerate(self._blocks)
        ]


def workers(client: Any) -> dict[str, Any]:
    """What the scheduler knows of each worker, by address."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Results in order; if it ends early, by Ctrl-C or an error, the other tasks are cancelled."""
    try:
        found: list[Any] = client.gather(futures)
    except BaseException:
        client.cancel(futures)
        raise
    return found

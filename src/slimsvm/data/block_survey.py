"""The first passes over blocks that are summed apart: what `survey.py` finds, with the same random sample everywhere.

Every row has a random key, which depends on the seed, the number of its block and its place there. The sample are the
rows with the smallest keys.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slimsvm.data.block_map import BlockMap
from slimsvm.data.files.base import Block, require_finite
from slimsvm.data.sample import sample_size, stacked
from slimsvm.data.survey import Survey, Tally, checked_weights
from slimsvm.exceptions import DataError

SPARE = 5.0  # standard deviations by which more rows are drawn than a sample has, so that they are hardly ever too few


def survey_blocks(
    blocks: BlockMap, task: str, seed: int, name: str, names: tuple[str, ...] | None, whose: str
) -> tuple[Survey, BlockMap]:
    """What two passes over the blocks find, and the blocks that have rows with weights above zero."""
    tallies = blocks.collect("survey", tally_block, name, names, task)
    there = [number for number, tally in enumerate(tallies) if tally is not None]
    if not there:
        raise DataError(f"{name} has no rows with weights above zero.")
    blocks = blocks.keep(there)
    total = Tally(name, task)
    for number in there:
        total.merge(tallies[number])
    most = sample_size(total.n_stored / total.moments.n)
    drawn = min(1.0, (most + SPARE * math.sqrt(most)) / total.moments.n)
    found = blocks.collect("sample", sample_block, seed, drawn)
    keys = np.concatenate([part[0] for part in found])
    order = np.argsort(keys, kind="stable")[:most]
    y = np.concatenate([total.codes(part[2]) for part in found])
    beside = np.column_stack([y, np.concatenate([part[1] for part in found])])
    return total.survey(whose, stacked([part[2].X for part in found])[order], beside[order]), blocks


def tally_block(number: int, block: Block, name: str, names: tuple[str, ...] | None, task: str) -> Tally | None:
    """What one block has, or None if it has no rows with weights above zero; a missing number is refused."""
    whose = f"Block {number} of {name}"
    if block.X.shape[0]:
        require_finite(block, whose, names)
    if task != "inlier" and block.y is None:
        raise DataError(f"{whose} has no targets. Pass y, too.")
    found = Tally(whose, task)
    found.add(block)
    return found if found.moments.n else None


def sample_block(number: int, block: Block, seed: int, drawn: float) -> tuple[Any, Any, Block]:
    """The keys below `drawn` of a block's rows, their weights, and the rows."""
    weights = checked_weights(block, "X")
    keys = np.random.default_rng([seed, number]).random(len(weights))
    chosen = np.flatnonzero((keys < drawn) & (weights > 0))
    return keys[chosen], weights[chosen], block.take(chosen)

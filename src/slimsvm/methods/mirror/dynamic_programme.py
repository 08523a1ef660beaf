"""The choice of L among K classifiers whose sum, sgn Σ_i Ξ_P(i)(x), is right on as many samples as possible.

Chen & Chen (2002), section 3.2. There are K^L choices. The dynamic programme has L levels, with a path to each of the K
classifiers at each level: the path to m at level l + 1 extends the path to i at level l for which the sum is right most
often (eqs. 17 and 18). Because the sign of a sum is not additive, this finds a good choice, not always the best. There
are two more searches: the same without repeated classifiers on a path, and a greedy one.

Symbols: T (K, n), T_kj = y_j Ξ_k(x_j), positive where classifier k is right about sample j; S (K, n), sums along paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slimsvm import _core

Choice = Literal["programme", "distinct", "greedy"]
MOST_VALUES = 2**27  # of T, of which three are held: 1.5 GiB of float32
CALL_WORK = 2e9  # additions of one call into the core, which Ctrl-C cannot interrupt: a fraction of a second
CALL_COUNTS = 2**22  # counts of one call: 32 MiB
ROUNDS = 50  # replacements, at most, of the greedy search at each level

Table = NDArray[np.float32]


@dataclass(frozen=True)
class Level:
    """The best choice of one length: its members, possibly repeated, the weight of the samples that it classifies
    correctly, and the weights and the offset of its sum, by default 1 and 0.
    """

    members: tuple[int, ...]
    right: float
    weights: tuple[float, ...] | None = None
    offset: float = 0.0


def check_table_size(n_candidates: int, n_samples: int, whose: str) -> None:
    """Refuse a table that would not fit into memory."""
    if n_candidates * n_samples > MOST_VALUES:
        raise ValueError(
            f"{whose} compares {n_candidates} candidates on {n_samples} samples, and their product must be at most "
            f"{MOST_VALUES}. Lower n_candidates or n_samples."
        )


def levels(T: Table, weights: NDArray[np.float32] | None, n_levels: int, choice: Choice) -> Iterator[Level]:
    """The best choice of each length from 1 to `n_levels`, as they are found; fewer if members must differ."""
    if choice == "greedy":
        return _greedy(T, weights, min(n_levels, len(T)))
    distinct = choice == "distinct"
    return _programme(T, weights, min(n_levels, len(T)) if distinct else n_levels, distinct)


def _programme(T: Table, weights: NDArray[np.float32] | None, n_levels: int, distinct: bool) -> Iterator[Level]:
    K = len(T)
    S, right = T, _count_right(T, weights)
    came_from: list[NDArray[np.intp]] = []
    used = np.eye(K, dtype=bool) if distinct else None
    yield Level((int(right.argmax()),), float(right.max()))
    for _ in range(1, n_levels):
        origin, right = _best_rows(S, T, weights, used)
        came_from.append(origin)
        S = S[origin]
        S += T
        if used is not None:
            used = used[origin]
            used[np.arange(K), np.arange(K)] = True
            S[right < 0] = -np.inf  # this classifier is on every path already
        node = int(right.argmax())
        if right[node] < 0:
            return
        yield Level(_trace_path(came_from, node), float(right[node]))


def _trace_path(came_from: list[NDArray[np.intp]], node: int) -> tuple[int, ...]:
    """The path that ends at a node of the last level, from its beginning."""
    path = [node]
    for origin in reversed(came_from):
        path.append(int(origin[path[-1]]))
    return tuple(reversed(path))


def _count_right(S: Table, weights: NDArray[np.float32] | None) -> NDArray[np.float64]:
    """The weight of the samples that each row of S classifies correctly, (rows,)."""
    return _core.agreement(S, np.zeros((1, S.shape[1]), dtype=np.float32), weights)[:, 0]


def _best_rows(
    S: Table, T: Table, weights: NDArray[np.float32] | None, excluded: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """For each row of T, the row of S with which its sum is right most often, and how often; −1 if all are excluded."""
    origin, right = np.empty(len(T), dtype=np.intp), np.empty(len(T))
    for part, counts in _blocks(S, T, weights):
        if excluded is not None:
            counts[excluded[:, part]] = -1.0
        origin[part] = counts.argmax(axis=0)
        right[part] = counts.max(axis=0)
    return origin, right


def _blocks(S: Table, T: Table, weights: NDArray[np.float32] | None) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """(rows of T, their counts with all rows of S), in blocks so small that a call is short and its counts are few."""
    step = int(max(1, min(CALL_WORK // max(1, S.size), CALL_COUNTS // max(1, len(S)))))
    for a in range(0, len(T), step):
        yield slice(a, min(a + step, len(T))), _core.agreement(S, T[a : a + step], weights)


def _greedy(T: Table, weights: NDArray[np.float32] | None, n_levels: int) -> Iterator[Level]:
    """Choices that grow by one classifier at a time; members are replaced as long as that makes a choice better.

    It begins with the best pair, because single classifiers say little about how they work together.
    """
    alone = _count_right(T, weights)
    yield Level((int(alone.argmax()),), float(alone.max()))
    members: list[int] = []
    for n_members in range(2, n_levels + 1):
        if not members:
            origin, right = _best_rows(T, T, weights, np.eye(len(T), dtype=bool))
            second = int(right.argmax())
            members = [int(origin[second]), second]
        else:
            members.append(_best_addition(T, weights, [members], members)[1])
        right_now = float(_count_right(_sums(T, [members]), weights)[0])
        for _ in range(ROUNDS):
            others = [members[:i] + members[i + 1 :] for i in range(n_members)]
            weak, better, right_then = _best_addition(T, weights, others, members)
            if right_then <= right_now:
                break
            members, right_now = [*others[weak], better], right_then
        yield Level(tuple(members), right_now)


def _sums(T: Table, choices: list[list[int]]) -> Table:
    return np.stack([T[choice].sum(axis=0) for choice in choices])


def _best_addition(T: Table, weights: NDArray[np.float32] | None, choices: list[list[int]], taken: list[int]) -> Any:
    """The choice that gains most by one more classifier that is not taken, this classifier, and what is right then."""
    origin, right = _best_rows(_sums(T, choices), T, weights, None)
    right[taken] = -1.0
    best = int(right.argmax())
    return int(origin[best]), best, float(right[best])

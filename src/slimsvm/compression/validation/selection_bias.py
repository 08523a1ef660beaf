"""How much luck is in the estimates of a candidate that was chosen by them.

The cheapest candidate that seems to keep a budget is often one that the held-out samples happened to favour, and the
more candidates are judged, the luckier the chosen one is. So the choice itself is repeated on bootstrap samples: the
held-out units are drawn with replacement, and the candidate that these speak for is chosen. How much more it loses on
all units than on those drawn is the bias of such a choice, which reports add to the estimate (as Tibshirani and
Tibshirani (2009) do with the folds of a cross-validation). No machine is made for that, because the losses of all
candidates on all samples are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray

DRAWS = 200  # bootstrap samples


@dataclass(frozen=True)
class SampledLoss:
    """A limited loss of K candidates: its limit, its standard errors (K,), and what the units (U,) say of it.

    The sum of `shares` (U, K) over units, divided by the sum of their weights, is the estimate of each candidate.
    """

    name: str
    limit: float
    errors: FloatArray
    shares: FloatArray


class RepeatedChoice:
    """The choice of the cheapest of K candidates that keeps all limits, on draws of the held-out units.

    Parameters
    ----------
    names : of the candidates. Those of one name are sizes of the same method, whose losses should not rise with size.
    sizes : the costs of their machines.
    losses : the limited losses.
    weights : of the units, (U,).
    z : standard errors by which estimates must stay below their limits.
    seed : of the draws.
    """

    def __init__(
        self,
        names: Sequence[str],
        sizes: Sequence[int],
        losses: Sequence[SampledLoss],
        weights: FloatArray,
        z: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.sizes, self.losses, self.weights, self.z = np.asarray(sizes), list(losses), weights, z
        order, n = np.argsort(self.sizes, kind="stable"), len(weights)
        self._ladders = [order[[names[k] == name for k in order]] for name in dict.fromkeys(names)]
        self._drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=DRAWS).astype(np.float64)

    def bias(self) -> dict[str, float]:
        """How much more the chosen candidates lose on all units than on those drawn, by the names of the losses.

        At least 0. A draw for which no candidate keeps the limits chooses the parent, which loses nothing.
        """
        drawn = [_means(self._drawn, loss.shares, self.weights) for loss in self.losses]
        chosen = self.choose(drawn)
        rows = np.flatnonzero(chosen >= 0)
        found = {}
        for loss, estimates in zip(self.losses, drawn, strict=True):
            on_all = loss.shares.sum(axis=0) / self.weights.sum()
            more = on_all[chosen[rows]] - estimates[rows, chosen[rows]]
            found[loss.name] = max(0.0, float(more.sum()) / DRAWS)
        return found

    def choose(self, values: Sequence[FloatArray]) -> NDArray[np.intp]:
        """The cheapest candidate (B,) that keeps the limits, for B sets of estimates (B, K) of every loss; −1 if none.

        Estimates of one method are first smoothed over its sizes. A candidate must keep the limits together with all
        larger ones of its method.
        """
        chosen = np.full(len(values[0]), -1)
        cost = np.full(len(chosen), np.inf)
        for ladder in self._ladders:
            kept = np.ones((len(chosen), len(ladder)), dtype=bool)
            for loss, estimates in zip(self.losses, values, strict=True):
                errors = loss.errors[ladder]
                kept &= falling(estimates[:, ladder], errors) + self.z * errors <= loss.limit
            kept = np.logical_and.accumulate(kept[:, ::-1], axis=1)[:, ::-1]
            lowest = ladder[np.argmax(kept, axis=1)]
            better = kept.any(axis=1) & (self.sizes[lowest] < cost)
            chosen[better], cost[better] = lowest[better], self.sizes[lowest[better]]
        return chosen


def falling(values: FloatArray, errors: FloatArray) -> FloatArray:
    """The rows of `values` (B, r) fitted by values that never rise, by least squares with the weights 1/errors².

    Row by row this is an isotonic regression, by its formula min_{a ≤ i} max_{b ≥ i} of the means from a to b.
    """
    weights = 1.0 / np.maximum(errors, 1e-3 * max(float(errors.max()), 1e-12)) ** 2
    total = np.concatenate([[0.0], np.cumsum(weights)])
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(weights * values, axis=1)], axis=1)
    fitted = np.full_like(values, np.inf)
    for a in range(values.shape[1]):
        means = (sums[:, a + 1 :] - sums[:, a : a + 1]) / (total[a + 1 :] - total[a])  # from a to each b
        largest = np.maximum.accumulate(means[:, ::-1], axis=1)[:, ::-1]  # over b ≥ i
        fitted[:, a:] = np.minimum(fitted[:, a:], largest)
    return fitted


def _means(counts: FloatArray, shares: FloatArray, weights: FloatArray) -> FloatArray:
    """The estimates (B, K) on units counted (B, U) times; 0 if nothing is counted."""
    total = counts @ weights
    return np.asarray((counts @ shares) / np.where(total > 0, total, 1.0)[:, None])

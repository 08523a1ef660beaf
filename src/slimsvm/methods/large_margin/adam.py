"""Adam (Kingma & Ba 2015), with steps in units that the caller names."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.methods.large_margin.batch import Array

MOMENTUM, SQUARES = 0.9, 0.999  # that stay in the mean gradient and in the mean square after a step
LEAST_ROOT = 1e-8  # added to the root of the mean square


class Adam:
    """Adam on an array x, in place. A full step is `rate` times `unit`, a length for all entries or one for each."""

    def __init__(self, x: Array, unit: Any, rate: float) -> None:
        self.x, self.unit, self.rate = x, np.asarray(unit, dtype=x.dtype), rate
        self.mean, self.square = np.zeros_like(x), np.zeros_like(x)

    def move(self, by_x: Array, share: float, n_steps: int) -> None:
        """Make step `n_steps`, of `share` of the full one, against the gradient, which is used as working memory."""
        by_x *= self.unit
        self.mean += (1.0 - MOMENTUM) * (by_x - self.mean)
        by_x *= by_x
        self.square += (1.0 - SQUARES) * (by_x - self.square)
        step = np.sqrt(self.square / (1.0 - SQUARES**n_steps), out=by_x)
        step += LEAST_ROOT
        np.divide(self.mean, step, out=step)
        step *= self.unit * self.x.dtype.type(rate_of(self.rate, share, n_steps))
        self.x -= step


def rate_of(rate: float, share: float, n_steps: int) -> float:
    """The length of step `n_steps` of Adam, whose mean gradient starts at zero."""
    return float(rate * share / (1.0 - MOMENTUM**n_steps))

"""Promises: the limits on what a small machine may lose and cost.

Limits on losses bound the size from below, limits on costs from above; a promise may have several of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from slimsvm.compression.validation.estimates import Assessment, Estimate
from slimsvm.compression.validation.selection_bias import falling
from slimsvm.parameters import check_number

LOSSES = ("loss", "disagreement")
# Standard errors by which estimates must stay below their limits, because a candidate is chosen by its estimate: such a
# choice is lucky (`validation/selection_bias.py`). Without it, the mean loss of promises is above the limit.
CAUTION = 0.2


@dataclass(frozen=True)
class Promise:
    """The limits, None if there is none. With `confidence`, upper bounds of losses must keep to them."""

    max_loss: float | None = None
    max_disagreement: float | None = None
    max_bytes: int | None = None
    max_latency_us: float | None = None
    n_vectors: int | None = None
    confidence: float | None = None

    def check(self, whose: str) -> None:
        """Refuse limits that nothing can keep to."""
        check_number(self.max_loss, "max_loss", whose, least=0, optional=True)
        check_number(self.max_disagreement, "max_disagreement", whose, least=0, below=1, optional=True)
        check_number(self.max_bytes, "max_bytes", whose, least=1, optional=True)
        check_number(self.max_latency_us, "max_latency_us", whose, above=0, optional=True)
        check_number(self.confidence, "confidence", whose, least=0.5, below=1, optional=True)
        if self.confidence is not None and not self.limits:
            raise ValueError(f"confidence of {whose} goes with max_loss or max_disagreement. Pass one of them.")

    def check_unit(self, most: float, scoring: str, whose: str) -> None:
        """Refuse a loss that a score cannot have: it can lose at most `most`, from its best value to its worst."""
        if self.max_loss is not None and self.max_loss >= most:
            raise ValueError(
                f"max_loss of {whose} is in units of the score, and {scoring} can lose at most {most:g}: pass 0.05 for "
                f"five points. Got {self.max_loss:g}."
            )

    @property
    def limits(self) -> dict[str, float]:
        """The limited losses, each with its limit."""
        both = zip(LOSSES, (self.max_loss, self.max_disagreement), strict=True)
        return {name: float(most) for name, most in both if most is not None}

    @property
    def z(self) -> float:
        """The number of standard errors between an estimate and its bound."""
        return 0.0 if self.confidence is None else float(norm.ppf(self.confidence))

    def kept(self, assessments: Sequence[Assessment]) -> list[bool]:
        """Whether each assessment, in rising size, keeps to all losses: by smoothed estimates, or their bounds."""
        kept = np.ones(len(assessments), dtype=bool)
        for name, most in self.limits.items():
            estimates = smoothed(assessments, name)
            kept &= [estimate.bound(self.z + CAUTION) <= most for estimate in estimates]
        return [bool(one) for one in kept]

    def is_certain(self, assessment: Assessment) -> bool:
        """Whether the standard errors of an assessment are small compared with the limits."""
        return all(getattr(assessment, name).error <= most / 2 for name, most in self.limits.items())

    def as_dict(self) -> dict[str, Any]:
        """The limits that were set."""
        names = ("max_loss", "max_disagreement", "max_bytes", "max_latency_us", "n_vectors", "confidence")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def smoothed(assessments: Sequence[Assessment], name: str) -> list[Estimate]:
    """The estimates of assessments in rising size, fitted by values that never rise.

    The smallest size that looks good enough is often just lucky; its neighbours correct it.
    """
    estimates = [getattr(assessment, name) for assessment in assessments]
    if any(estimate is None for estimate in estimates):
        raise ValueError(f"{name} of compress needs labels, and there are none.")
    if len(estimates) < 2:
        return estimates
    values = np.array([[estimate.value for estimate in estimates]])
    (fitted,) = falling(values, np.array([estimate.error for estimate in estimates]))
    return [replace(estimate, value=float(value)) for estimate, value in zip(estimates, fitted, strict=True)]

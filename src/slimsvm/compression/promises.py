"""Promises: what a small machine may lose and cost, and what these costs are.

Losses are bounds from below on the size, costs bounds from above; a promise may have several of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression

from slimsvm._record import FloatArray
from slimsvm.compression.evidence import Finding
from slimsvm.compression.metrics import Figure
from slimsvm.compression.source import Source
from slimsvm.compression.speed import microseconds_alone
from slimsvm.estimator import wrap
from slimsvm.formats.c import table_bytes
from slimsvm.heads import LinearHead, PairsHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

ROWS = 100  # of the data that latency is measured on
LOSSES = ("loss", "disagreement")


@dataclass(frozen=True)
class Promise:
    """What is promised; None is not. `confidence` asks for upper bounds of losses instead of their estimates."""

    max_loss: float | None = None
    max_disagreement: float | None = None
    max_bytes: int | None = None
    max_latency_us: float | None = None
    n_vectors: int | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_loss", 0.0), ("max_disagreement", 0.0), ("max_bytes", 1), ("max_latency_us", 0.0)):
            value = getattr(self, name)
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if value is not None and not (number and np.isfinite(value) and value >= least):
                raise ValueError(f"{name} of compress must be a finite number of at least {least:g}. Got {value!r}.")
        if self.max_disagreement is not None and self.max_disagreement >= 1:
            raise ValueError(f"max_disagreement of compress is a share, below 1. Got {self.max_disagreement!r}.")
        if self.confidence is None:
            return
        number = isinstance(self.confidence, (float, np.floating))
        if not number or not 0.5 <= self.confidence < 1.0:
            raise ValueError(f"confidence of compress must be a number from 0.5 to below 1. Got {self.confidence!r}.")
        if not self.limits:
            raise ValueError("confidence of compress goes with max_loss or max_disagreement. Pass one of them.")

    @property
    def limits(self) -> dict[str, float]:
        """The losses that are promised, with the most that each may be."""
        both = zip(LOSSES, (self.max_loss, self.max_disagreement), strict=True)
        return {name: float(most) for name, most in both if most is not None}

    @property
    def z(self) -> float:
        """Standard errors between an estimate and its bound."""
        return 0.0 if self.confidence is None else float(norm.ppf(self.confidence))

    def kept(self, findings: Sequence[Finding]) -> list[bool]:
        """Whether each of the findings, in rising size, keeps all losses: by smoothed estimates, or their bounds."""
        kept = np.ones(len(findings), dtype=bool)
        for name, most in self.limits.items():
            figures = smoothed(findings, name)
            kept &= [figure.bound(self.z) <= most for figure in figures]
        return [bool(one) for one in kept]

    def no_luck(self, finding: Finding) -> bool:
        """Whether the standard errors of a finding are small beside what is promised."""
        return all(getattr(finding, name).error <= most / 2 for name, most in self.limits.items())

    def as_dict(self) -> dict[str, Any]:
        """The promise without what is not promised."""
        names = ("max_loss", "max_disagreement", "max_bytes", "max_latency_us", "n_vectors", "confidence")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def smoothed(findings: Sequence[Finding], name: str) -> list[Figure]:
    """The figures of findings in rising size, fitted by values that never rise.

    The smallest size that seems good enough is often one that was lucky: its neighbours tell.
    """
    figures = [getattr(finding, name) for finding in findings]
    if any(figure is None for figure in figures):
        raise ValueError(f"{name} of compress needs labels, and there are none.")
    if len(figures) < 2:
        return figures
    values = np.array([figure.value for figure in figures])
    errors = np.array([figure.error for figure in figures])
    weights = 1.0 / np.maximum(errors, 1e-3 * max(errors.max(), 1e-12)) ** 2
    fitted = isotonic_regression(values, sample_weight=weights, increasing=False)
    return [replace(figure, value=float(value)) for figure, value in zip(figures, fitted, strict=True)]


def latency_us(machine: KernelMachine, source: Source) -> float:
    """Microseconds of one `predict` of one sample, on average over rows of the source, each the fastest of several."""
    slim = wrap(replace(machine, feature_names=None), n_jobs=1)
    return microseconds_alone(slim.predict, _rows(source))


def largest_size(source: Source, promise: Promise, pairs: bool) -> int:
    """The most vectors that keep to the costs promised: number, bytes and latency."""
    most = source.n_vectors if promise.n_vectors is None else min(promise.n_vectors, source.n_vectors)
    if promise.max_bytes is not None:
        limit = promise.max_bytes
        most = _largest(most, lambda m: table_bytes(stand_in(source, m, pairs)) <= limit)
    if promise.max_latency_us is not None:
        slowest = promise.max_latency_us
        most = _largest(most, lambda m: latency_us(stand_in(source, m, pairs), source) <= slowest)
    return most


def _largest(most: int, keeps: Any) -> int:
    """The largest size up to `most` that keeps to something, by halving; 0 where none does."""
    if keeps(most):
        return most
    low, high = 0, most
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def stand_in(source: Source, m: int, pairs: bool) -> KernelMachine:
    """A machine of m vectors that costs what a small machine of the source does, and answers nothing sensible."""
    parent = source.machine
    rows = np.arange(m) % max(1, parent.n_vectors)
    q = source.target.n_outputs if pairs or parent.head.n_scores == 1 else _n_scores(parent)
    coef, offset = np.ones((m, q)), np.zeros(q)
    head = PairsHead(coef, offset) if pairs else LinearHead(coef, offset)
    answer = parent.answer
    return replace(parent, points=parent.points[rows], head=head, answer=answer, gammas=None, calibration=None)


def _n_scores(parent: KernelMachine) -> int:
    """Outputs of a machine of the parent's kind that has one for each class, or value."""
    return len(parent.classes) if hasattr(parent.answer, "labels") and len(parent.classes) > 2 else parent.head.n_scores


def _rows(source: Source) -> FloatArray:
    """Some rows of the data, or zeros where there are none, as one asks for them one by one."""
    if source.samples is None:
        return np.zeros((1, source.machine.n_features))
    return np.ascontiguousarray(dense(source.samples.X[:ROWS]), dtype=np.float64)

"""The report: what was promised, what was found, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from slimsvm.compression.evidence import Finding


@dataclass(frozen=True)
class Report:
    """How a machine was chosen; `compress` leaves it in `report_`.

    Attributes
    ----------
    promise : dict, what was promised.
    method, reason : str, the recipe, and why it was chosen.
    n_vectors, parent_vectors : int, of the machine and of its parent, distinct ones.
    metric : str, what the loss is measured by.
    estimate : float or None, the loss against the parent on held-out samples; None where nothing was held out. Of
        accuracy, the paired difference combined with what the parent's certainty says (docs/compress.md).
    paired : float or None, the paired difference alone.
    standard_error : float or None, how far from it the loss on as many new samples may well lie.
    bound : float or None, with `confidence`, what the loss is below at that level.
    disagreement, disagreement_error : float or None, the share of answers that differ from the parent's, likewise.
    evidence : str, on what these are based.
    tried : list of dict, every method and size that was judged: `method`, `n_vectors`, `loss`, `loss_error`,
        `paired`, `disagreement`, `trial` (whether it was to choose the method).
    n_bytes : int or None, of the exported tables, where they were promised.
    latency_us : float or None, of one prediction alone, where it was promised.
    """

    promise: dict[str, Any]
    method: str
    reason: str
    n_vectors: int
    parent_vectors: int
    metric: str = "accuracy"
    estimate: float | None = None
    standard_error: float | None = None
    bound: float | None = None
    disagreement: float | None = None
    disagreement_error: float | None = None
    paired: float | None = None
    evidence: str = "nothing was held out"
    tried: list[dict[str, Any]] = field(default_factory=list)
    n_bytes: int | None = None
    latency_us: float | None = None

    @property
    def compression(self) -> float:
        """How many times fewer vectors than the parent has."""
        return self.parent_vectors / max(self.n_vectors, 1)

    def as_dict(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.n_vectors} of {self.parent_vectors} vectors ({self.compression:.1f} times fewer) by {self.method}",
            f"  because: {self.reason}",
        ]
        if self.promise:
            lines.append("  promise: " + ", ".join(f"{name}={value}" for name, value in self.promise.items()))
        if self.estimate is not None:
            bound = "" if self.bound is None else f", at most {self.bound:.4f} by confidence"
            lines.append(f"  loss of {self.metric}: {self.estimate:.4f} ± {self.standard_error:.4f}{bound}")
        if self.disagreement is not None:
            lines.append(f"  disagreement with the parent: {self.disagreement:.4f} ± {self.disagreement_error:.4f}")
        costs = [(self.n_bytes, "bytes"), (self.latency_us and round(self.latency_us, 2), "µs per sample alone")]
        lines += [f"  cost: {value} {unit}" for value, unit in costs if value is not None]
        lines.append(f"  evidence: {self.evidence}; {len(self.tried)} machines judged")
        return "\n".join(lines)


def row(finding: Finding, trial: bool) -> dict[str, Any]:
    """A line of `tried`."""
    return {
        "method": finding.method,
        "n_vectors": finding.n_vectors,
        "loss": None if finding.loss is None else finding.loss.value,
        "loss_error": None if finding.loss is None else finding.loss.spread,
        "paired": None if finding.loss is None else finding.loss.paired,
        "disagreement": finding.disagreement.value,
        "trial": trial,
    }

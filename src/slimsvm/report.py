"""The report on a compressed model: its loss, the uncertainty of that, and why the method was chosen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from slimsvm._words import plural

DIFFERENCES = {
    "labels": "Predictions that differ from the original model",
    "values": "Squared difference from the original model's predictions, as a share of their variance",
}


@dataclass(frozen=True)
class Report:
    """How a model was compressed; `compress` leaves it in `report_`.

    Attributes
    ----------
    promise : dict
        The limits that were asked for, such as `{"max_loss": 0.005}`.
    method, reason : str
        The method, and why it was chosen.
    n_vectors, parent_vectors : int
        Number of vectors of the model, and of distinct support vectors of its parent, the original model.
    scoring : str
        The score by which the loss is measured.
    scoring_from : str
        The parameter search whose scoring that is, such as "GridSearchCV"; empty if it was named, or is the default.
    estimate : float or None
        The loss against the parent on held-out samples; None if nothing was held out. For accuracy it combines the
        paired difference with an estimate from the parent's confidence (docs/compress.md).
    selection_bias : float or None
        The part of the estimate that corrects it for luck: the model was chosen by such estimates from all candidates.
    standard_error : float or None
        The standard error of the estimate, for the difference that as many new samples would show.
    bound : float or None
        With `confidence`, the upper confidence bound of the loss.
    disagreement, disagreement_error : float or None
        The share of predictions that differ from the parent's, and its standard error. For a regression, the squared
        difference of the predictions as a share of the variance of the parent's.
    disagreement_of : {"labels", "values"}
        What the disagreement compares: "values" for a regression.
    paired : float or None
        The paired difference alone.
    held_out : str
        The held-out samples that the estimates are based on.
    tried : list of dict
        Every method and size that was judged: `method`, `n_vectors`, `loss`, `loss_error`, `paired`, `disagreement` and
        `trial` (whether it was used to choose the method).
    n_dimensions, multiply_adds, n_bytes : int or None
        The coordinates of a vector, the multiply-adds per sample, and the bytes of the tables in float32.
    n_features, parent_features : int or None
        The features that the model reads, and those of its parent: a learned metric can leave features out.
    parent_multiply_adds : int or None
        The multiply-adds per sample of the parent.
    speedup : float or None
        How many times faster the model predicts a batch than its parent, both by slimsvm, as measured on this computer.
        It is not saved.
    latency_us : float or None
        Microseconds per sample, if there was a limit on them.
    """

    promise: dict[str, Any]
    method: str
    reason: str
    n_vectors: int
    parent_vectors: int
    scoring: str = "accuracy"
    estimate: float | None = None
    standard_error: float | None = None
    bound: float | None = None
    disagreement: float | None = None
    disagreement_error: float | None = None
    paired: float | None = None
    held_out: str = "nothing was held out"
    tried: list[dict[str, Any]] = field(default_factory=list)
    n_dimensions: int | None = None
    multiply_adds: int | None = None
    n_bytes: int | None = None
    latency_us: float | None = None
    scoring_from: str = ""
    disagreement_of: str = "labels"
    n_features: int | None = None
    parent_features: int | None = None
    parent_multiply_adds: int | None = None
    selection_bias: float | None = None
    speedup: float | None = field(default=None, compare=False)

    @property
    def compression(self) -> float:
        """How many times fewer vectors than the parent has."""
        return self.parent_vectors / max(self.n_vectors, 1)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self._size()]
        if self.estimate is not None:
            source = f", the scoring of the {self.scoring_from}," if self.scoring_from else ""
            lines.append(f"Loss of {self.scoring}{source} on held-out samples: {self._loss()}.")
        if self.disagreement is not None:
            lines.append(
                f"{DIFFERENCES[self.disagreement_of]}: {self.disagreement:z.2%} ± {self.disagreement_error or 0.0:.2%}."
            )
        if self.estimate is not None or self.disagreement is not None:
            was = "was" if len(self.tried) == 1 else "were"
            lines.append(f"Based on {self.held_out}; {plural(len(self.tried), 'candidate')} {was} judged.")
        lines += self._costs()
        lines.append(f"Why {self.method}: {self.reason}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The report in a notebook: size, loss and costs."""
        from slimsvm.report_html import small_report

        return small_report(self)

    def _size(self) -> str:
        parent = plural(self.parent_vectors, "support vector")
        if self.n_vectors < self.parent_vectors:
            return f"{self.n_vectors} of {parent} ({self.compression:.1f} times fewer), by {self.method}."
        if self.n_vectors == self.parent_vectors:
            return f"{plural(self.n_vectors, 'vector')}, as many as the original model has, by {self.method}."
        return f"{plural(self.n_vectors, 'vector')} instead of {parent}, by {self.method}."

    def _costs(self) -> list[str]:
        counts = [
            (self.n_dimensions, "dimension"),
            (self.multiply_adds, "multiply-add"),
            (self.n_bytes, "byte"),
        ]
        parts = [plural(value, unit, ",") for value, unit in counts if value is not None]
        parts += [] if self.latency_us is None else [f"{self.latency_us:.3g} µs per sample"]
        lines = [f"Cost: {', '.join(parts)}."] if parts else []
        return lines + self._gains()

    def _gains(self) -> list[str]:
        """What became cheaper than the parent."""
        times, lines = [], []
        if self.multiply_adds and self.parent_multiply_adds and self.parent_multiply_adds > self.multiply_adds:
            times.append(f"{self.parent_multiply_adds / self.multiply_adds:,.1f} times fewer multiply-adds")
        if self.speedup is not None:
            times.append(f"batches are predicted {self.speedup:,.1f} times as fast")
        if times:
            lines.append(f"Compared with the original model: {', '.join(times)}.")
        if self.n_features is not None and self.parent_features is not None and self.n_features < self.parent_features:
            lines.append(f"It reads {self.n_features} of {plural(self.parent_features, 'feature')}.")
        return lines

    def _loss(self) -> str:
        limit = self.promise.get("max_loss")
        allowed = "" if limit is None else f" (limit {limit:g})"
        confidence = self.promise.get("confidence")
        bound = "" if self.bound is None else f", at most {self.bound:z.4f} with confidence {confidence:g}"
        luck = "" if not self.selection_bias else f", with {self.selection_bias:.4f} added for the luck of the choice"
        return f"{self.estimate:z.4f} ± {self.standard_error or 0.0:.4f}{allowed}{bound}{luck}"


def report_of(content: Any) -> Report:
    """The report from plain data, the result of `as_dict`; ValueError if the data are not a report."""
    known = {one.name for one in fields(Report)}
    if not isinstance(content, dict) or not content.keys() <= known:
        raise ValueError("the report has unknown entries.")
    numbers = ("n_vectors", "parent_vectors")
    texts, words = ("method", "reason"), ("scoring", "scoring_from", "held_out", "disagreement_of")
    right = all(type(content.get(name)) is int for name in numbers) and all(
        type(content.get(name)) is str for name in texts
    )
    if not right or not isinstance(content.get("promise"), dict) or not isinstance(content.get("tried", []), list):
        raise ValueError("the promise, method, reason or number of vectors of the report is missing or not valid.")
    for name in known - {"promise", "tried", "method", "reason", *words, *numbers}:
        if content.get(name) is not None and type(content[name]) not in (int, float):
            raise ValueError(f"{name} of the report must be a number.")
    for name in words:
        if type(content.get(name, "")) is not str:
            raise ValueError(f"{name} of the report must be text.")
    if content.get("disagreement_of", "labels") not in DIFFERENCES:
        raise ValueError(f"disagreement_of of the report must be one of {', '.join(DIFFERENCES)}.")
    return Report(**content)

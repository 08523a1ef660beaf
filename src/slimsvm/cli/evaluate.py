"""`slimsvm evaluate`: how right a model is on labelled data, and what it costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import DataFailure, ModelFailure
from slimsvm.cli.models import in_order, kind_of, load_machine, of_one_width, widened
from slimsvm.cli.progress import blocks_with_bar

if TYPE_CHECKING:
    from slimsvm.cli.readers import Block
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm evaluate test.csv model.slim --target label",
    "slimsvm evaluate test.txt small.slim --against libsvm.model",
    "slimsvm evaluate test.txt small.slim --json | jq .accuracy",
)


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.option("--against", metavar="MODEL", type=options.FILE, help="Another model: how often do the two agree?")
@options.data_options
@options.width_option
@options.jobs_option
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    data: str,
    model: str,
    against: str | None,
    reading: options.Reading,
    n_features: int | None,
    jobs: int | None,
    trust: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """How right MODEL is on the labelled rows of DATA.

    Rows are read in blocks: the data may be larger than memory. Labels that the model has never seen count as wrong,
    and are named. Kernel evaluations, bytes and microseconds per row (reading not counted) come with it.
    """
    data, model = in_order(data, model)
    machine, other = load_machine(model, trust, n_features), None
    if against is not None:
        machine, other = of_one_width(machine, load_machine(against, trust), model, against)
    if getattr(machine.answer, "flat", True) is False:
        raise ModelFailure(f"{model} answers with several values per row, which cannot be compared with one target.")
    source = reading.open(data, machine, needs_target=machine.answer.name != "inlier", grows=kind_of(model) == "libsvm")
    evaluation = Evaluation(machine, other, jobs)
    for block in blocks_with_bar(source, "evaluate", quiet):
        source.require_finite(block)
        evaluation.add(block, source.name)
    result = {"data": data, "model": model} | evaluation.result(source.name)
    if as_json:
        output.show_json(result)
    else:
        _show(result, against)


class Evaluation:
    """Figures of a machine, and how often another agrees with it, added up block by block."""

    def __init__(self, machine: KernelMachine, other: KernelMachine | None, jobs: int | None) -> None:
        from slimsvm.cli.metrics import tally_of

        self.machine, self.other, self.jobs = machine, other, jobs
        self.tally, self.kind = tally_of(machine), machine.answer.name
        self.is_staged = machine.head.name == "staged"
        self.n = self.n_same = self.n_inside = self.evaluations = 0
        self.difference = self.seconds = 0.0

    def add(self, block: Block, source: str) -> None:
        """Count a block of finite rows."""
        machine = _fitting(self.machine, block.X)
        start = time.perf_counter()
        answers = machine.predict(block.X, n_jobs=self.jobs)
        self.seconds += time.perf_counter() - start
        self.n += len(answers)
        if self.is_staged:
            self.evaluations += int(machine.kernel_evaluations(block.X, n_jobs=self.jobs).sum())
        if self.kind == "inlier":
            self.n_inside += int((answers == 1).sum())
        if block.y is not None:
            if self.kind == "value" and block.y.dtype.kind not in "biuf":
                raise DataFailure(f"{source}: the targets of a regression must be numbers. Got {block.y[0]!r:.60}.")
            self.tally.add(answers, block.y)
        if self.other is not None:
            theirs = _fitting(self.other, block.X).predict(block.X, n_jobs=self.jobs)
            self.n_same += int((theirs == answers).sum())
            if self.kind == "value":
                self.difference = max(self.difference, float(abs(theirs - answers).max()))

    def result(self, source: str) -> dict[str, Any]:
        """All figures, for scripts."""
        from slimsvm import storage

        result: dict[str, Any] = {"n_rows": self.n} | self._figures(source)
        if self.kind == "inlier":
            result["inliers"] = self.n_inside / self.n
        if self.other is not None:
            is_value = self.kind == "value"
            result |= {"largest_difference": self.difference} if is_value else {"agreement": self.n_same / self.n}
        return result | {
            "n_vectors": self.machine.n_vectors,
            "kernel_evaluations": self.evaluations / self.n if self.is_staged else self.machine.n_vectors,
            "n_bytes": len(storage.dumps(self.machine)),
            "us_per_row": self.seconds / self.n * 1e6,
        }

    def _figures(self, source: str) -> dict[str, Any]:
        """How right the answers are; a one-class machine needs no targets, and may get some that are no ±1."""
        if not self.tally.n:
            return {}
        figures = self.tally.result()
        if figures.get("n_unseen") != self.tally.n:
            return figures
        if self.kind == "inlier":
            return {}
        known, found = (", ".join(map(str, labels[:8])) for labels in (figures["classes"], figures["unseen_labels"]))
        raise DataFailure(f"{source}: none of the labels is one that the machine knows. Got {found}; it knows {known}.")


def _fitting(machine: KernelMachine, X: Any) -> KernelMachine:
    return widened(machine, X.shape[1]) if X.shape[1] > machine.n_features else machine


def _show(result: dict[str, Any], against: str | None) -> None:
    lines = {"rows": f"{result['n_rows']:,}"}
    if "accuracy" in result:
        lines["accuracy"] = f"{result['accuracy']:.2%} ({result['n_right']:,} of {result['n_rows']:,})"
        lines["balanced accuracy"] = f"{result['balanced_accuracy']:.2%}"
    if "mean_squared_error" in result:
        lines["mean squared error"] = f"{result['mean_squared_error']:.6g}"
        lines["mean absolute error"] = f"{result['mean_absolute_error']:.6g}, at most {result['largest_error']:.6g}"
        lines["R²"] = f"{result['r2']:.4f}"
    if "inliers" in result:
        lines["inside"] = f"{result['inliers']:.2%}"
    if "agreement" in result:
        lines["agreement"] = f"{result['agreement']:.2%} with {against}"
    if "largest_difference" in result:
        lines["difference"] = f"at most {result['largest_difference']:.3g} from {against}"
    lines["cost"] = (
        f"{result['kernel_evaluations']:,.4g} kernel evaluations per row, {output.sized(result['n_bytes'])}, "
        f"{result['us_per_row']:.3g} µs per row"
    )
    output.pairs(lines)
    if result.get("n_unseen"):
        labels = ", ".join(result["unseen_labels"][:8])
        output.note(
            f"{output.plural(result['n_unseen'], 'row')} with labels unseen in training count as wrong: {labels}."
        )
    if "confusion" in result:
        _show_classes(result)


def _show_classes(result: dict[str, Any]) -> None:
    output.show("")
    rows = [("class", "rows", "found", "right when answered")]
    for label, support, recall, precision in zip(
        *(result[key].tolist() for key in ("classes", "support", "recall", "precision")), strict=True
    ):
        rows.append((str(label), f"{support:,}", _share(recall), _share(precision)))
    output.table(rows)


def _share(value: float) -> str:
    return "–" if value != value else f"{value:.2%}"

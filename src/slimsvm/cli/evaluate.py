"""`slimsvm evaluate`: the performance of a model on labelled data, and its cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import DataFailure, ModelFailure, blamed
from slimsvm.cli.models import common_width, in_order, load_model
from slimsvm.cli.progress import blocks_with_bar

if TYPE_CHECKING:
    from slimsvm.data.files import Block
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm evaluate test.csv model.slim --target label",
    "slimsvm evaluate test.txt small.slim --against libsvm.model",
    "slimsvm evaluate test.txt small.slim --json | jq .accuracy",
)


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.option("--against", metavar="MODEL", type=options.FILE, help="Another model: measure how often the two agree.")
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
    """Evaluate MODEL on the labelled rows of DATA.

    Prints accuracy, and recall and precision of each class; for a regression, errors and R². The cost is in kernel
    evaluations per row, bytes, and microseconds per row without the time for reading. Labels that the model does not
    know count as errors and are listed. The data are read in blocks and may be larger than memory.
    """
    data, model = in_order(data, model)
    loaded, other, width = load_model(model, trust, n_features), None, None
    if against is not None:
        other = load_model(against, trust)
        width = common_width(loaded, other)
    machine = loaded.machine
    if getattr(machine.answer, "flat", True) is False:
        raise ModelFailure(f"{model} predicts several values per row, which cannot be compared with one target.")
    needs_target = machine.answer.name != "inlier"
    accepts_more = loaded.accepts_more_features and (other is None or other.accepts_more_features)
    source = reading.open(data, machine, needs_target, accepts_more_features=accepts_more, n_features=width)
    evaluation = Evaluation(machine, None if other is None else other.machine, jobs, quiet)
    for block in blocks_with_bar(source, "evaluate", quiet):
        with blamed(source, block):
            evaluation.add(block, source.name)
    result = {"data": data, "model": model} | evaluation.result(source.name)
    if as_json:
        output.show_json(result)
    else:
        _show(result, against)


class Evaluation:
    """Performance of a machine, and how often another machine agrees with it, added up block by block."""

    def __init__(self, machine: KernelMachine, other: KernelMachine | None, jobs: int | None, quiet: bool) -> None:
        from slimsvm.cli.performance import performance_of
        from slimsvm.cli.unseen import AnyWidth

        self.machine, self.jobs = machine, jobs
        self.of_any_width = AnyWidth(machine, quiet)
        self.other = None if other is None else AnyWidth(other)
        self.performance, self.task = performance_of(machine), machine.answer.name
        self.is_staged = machine.head.name == "staged"
        self.n = self.n_same = self.n_inside = self.evaluations = 0
        self.difference = self.seconds = 0.0

    def add(self, block: Block, source: str) -> None:
        """Count a block of finite rows."""
        from slimsvm.cli.inputs import require_numbers

        machine, X = self.of_any_width.fit(block.X, source)
        start = time.perf_counter()
        predictions = machine.predict(X, n_jobs=self.jobs)
        self.seconds += time.perf_counter() - start
        self.n += len(predictions)
        if self.is_staged:
            self.evaluations += int(machine.kernel_evaluations(X, n_jobs=self.jobs).sum())
        if self.task == "inlier":
            self.n_inside += int((predictions == 1).sum())
        if block.y is not None:
            y = require_numbers(source, block.y) if self.task == "value" else block.y
            self.performance.add(predictions, y)
        if self.other is not None:
            machine, X = self.other.fit(block.X, source)
            theirs = machine.predict(X, n_jobs=self.jobs)
            self.n_same += int((theirs == predictions).sum())
            if self.task == "value":
                self.difference = max(self.difference, float(abs(theirs - predictions).max()))

    def result(self, source: str) -> dict[str, Any]:
        """All figures by name, for scripts."""
        from slimsvm import storage

        result: dict[str, Any] = {"n_rows": self.n} | self._figures(source)
        if self.task == "inlier":
            result["inliers"] = self.n_inside / self.n
        if self.other is not None:
            is_value = self.task == "value"
            result |= {"largest_difference": self.difference} if is_value else {"agreement": self.n_same / self.n}
        return result | {
            "n_vectors": self.machine.n_vectors,
            "kernel_evaluations": self.evaluations / self.n if self.is_staged else self.machine.n_vectors,
            "n_bytes": len(storage.dumps(self.machine)),
            "us_per_row": self.seconds / self.n * 1e6,
        }

    def _figures(self, source: str) -> dict[str, Any]:
        """The figures of the performance; none for a one-class machine if the targets are not ±1."""
        if not self.performance.n:
            return {}
        figures = self.performance.result()
        if figures.get("n_unseen") != self.performance.n:
            return figures
        if self.task == "inlier":
            return {}
        known, found = (", ".join(map(str, labels[:8])) for labels in (figures["classes"], figures["unseen_labels"]))
        raise DataFailure(f"{source}: none of the labels is a class of the model. Got {found}; it has {known}.")


def _show(result: dict[str, Any], against: str | None) -> None:
    lines = {"rows": f"{result['n_rows']:,}"}
    if "accuracy" in result:
        lines["accuracy"] = f"{result['accuracy']:.2%} ({result['n_right']:,} of {result['n_rows']:,})"
        lines["balanced accuracy"] = f"{result['balanced_accuracy']:.2%}"
    if "mean_squared_error" in result:
        lines["mean squared error"] = f"{result['mean_squared_error']:.6g}"
        lines["mean absolute error"] = f"{result['mean_absolute_error']:.6g}, at most {result['largest_error']:.6g}"
        lines["R²"] = f"{result['r2']:z.4f}"
    if "inliers" in result:
        lines["inliers"] = f"{result['inliers']:.2%}"
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
        output.note(f"{output.plural(result['n_unseen'], 'row')} with unknown labels count as errors: {labels}.")
    if "confusion" in result:
        _show_classes(result)


def _show_classes(result: dict[str, Any]) -> None:
    output.show("")
    rows = [("class", "rows", "recall", "precision")]
    for label, support, recall, precision in zip(
        *(result[key].tolist() for key in ("classes", "support", "recall", "precision")), strict=True
    ):
        rows.append((str(label), f"{support:,}", _share(recall), _share(precision)))
    output.table(rows)


def _share(value: float) -> str:
    return "–" if value != value else f"{value:.2%}"

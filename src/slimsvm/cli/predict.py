"""`slimsvm predict`: predictions, block by block, so that the input may be larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import ModelFailure
from slimsvm.cli.models import in_order, load_model, widened
from slimsvm.cli.progress import blocks_with_bar

if TYPE_CHECKING:
    from slimsvm.cli.performance import Performance
    from slimsvm.cli.readers import Block, Source
    from slimsvm.machine import KernelMachine

LINES = 1 << 15  # lines to hold as text at a time
EXAMPLES = options.examples(
    "slimsvm predict test.csv model.slim predictions.txt",
    "slimsvm predict test.txt libsvm.model predictions.txt     # as svm-predict does",
    "zcat rows.csv.gz | slimsvm predict - model.slim | sort | uniq -c",
    "slimsvm predict rows.parquet model.slim --proba --json",
)


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.argument("output_path", metavar="[OUTPUT]", type=options.FILE, default="-")
@click.option("--proba", is_flag=True, help="Write probabilities too, after a first line with the labels.")
@click.option("-b", "libsvm_proba", type=click.IntRange(0, 1), default=0, help="-b 1 means --proba, as in svm-predict.")
@click.option("--scores", is_flag=True, help="Write decision values too.")
@click.option("--precision", type=click.Choice(["auto", "float32", "float64"]), default="auto", show_default=True)
@options.data_options
@options.width_option
@options.jobs_option
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    data: str,
    model: str,
    output_path: str,
    proba: bool,
    libsvm_proba: int,
    scores: bool,
    precision: Any,
    reading: options.Reading,
    n_features: int | None,
    jobs: int | None,
    trust: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict the rows of DATA with MODEL, one line per row.

    The arguments are in the order of LIBSVM's svm-predict, which this command can replace; DATA and MODEL may also be
    swapped. If the predictions go to a file and the data have targets, the accuracy is printed.
    """
    data, model = in_order(data, model)
    output.require_another_file(output_path, data, model)
    loaded = load_model(model, trust, n_features)
    if (proba or libsvm_proba) and loaded.machine.calibration is None:
        raise ModelFailure(f"{model} has no probabilities: it was trained without them.")
    writer = PredictionWriter(loaded.machine, proba or bool(libsvm_proba), scores, jobs, precision, as_json)
    with output.writing(output_path) as file:
        source = reading.open(data, loaded.machine, accepts_more_features=loaded.accepts_more_features)
        performance = writer.write(source, file, quiet)
    if performance is not None and output_path != "-" and not quiet:
        for line in performance.as_svm_predict():
            output.show(line)


class PredictionWriter:
    """Writes predictions, and decision values and probabilities if they are wanted."""

    def __init__(
        self, machine: KernelMachine, proba: bool, scores: bool, jobs: int | None, precision: Any, as_json: bool
    ) -> None:
        self.machine, self.proba, self.scores, self.as_json = machine, proba, scores, as_json
        self.how = {"n_jobs": jobs, "precision": precision}

    def write(self, source: Source, file: BinaryIO, quiet: bool) -> Performance | None:
        """Write a line for each row; the performance, or None if there are no targets to compare with."""
        from slimsvm.cli.performance import performance_of

        performance, is_known = performance_of(self.machine), True
        if self.proba and not self.as_json:
            file.write(f"labels {' '.join(map(_text, self.machine.classes.tolist()))}\n".encode())
        for block in blocks_with_bar(source, "predict", quiet):
            self.machine = widened(self.machine, block.X.shape[1])
            predictions, extras = self._computed(source, block)
            for start in range(0, len(predictions), LINES):
                part = slice(start, start + LINES)
                file.write(self._lines(predictions[part], {k: v[part] for k, v in extras.items()}).encode())
            file.flush()
            if block.y is None or not _comparable(self.machine, block.y):
                is_known = False
            elif is_known:
                performance.add(predictions, block.y)
        return performance if is_known else None

    def _computed(self, source: Source, block: Block) -> tuple[Any, dict[str, Any]]:
        """Predictions (n,), and decision values and probabilities if they are wanted."""
        extras = {}
        with source.blamed(block):
            predictions = self.machine.predict(block.X, **self.how)
            if self.scores:
                extras["scores"] = self.machine.decision(block.X, **self.how)
            if self.proba:
                extras["probabilities"] = self.machine.predict_proba(block.X, **self.how)
        return predictions, extras

    def _lines(self, predictions: Any, extras: dict[str, Any]) -> str:
        rows = predictions.tolist()
        if self.as_json:
            beside = [extras[name].tolist() for name in extras]
            columns = zip(rows, *beside, strict=True)
            return "".join(
                output.json_line(dict(zip(("prediction", *extras), row, strict=True))) + "\n" for row in columns
            )
        if not extras and predictions.ndim == 1:
            return "\n".join(map(_text, rows)) + "\n"
        numbers = [values.reshape(len(rows), -1).tolist() for values in extras.values()]
        return "".join(
            " ".join([_text(row), *(repr(value) for part in parts for value in part)]) + "\n"
            for row, *parts in zip(rows, *numbers, strict=True)
        )


def _text(prediction: Any) -> str:
    if isinstance(prediction, str):
        return output.escaped(prediction)
    return " ".join(map(repr, prediction)) if isinstance(prediction, list) else str(prediction)


def _comparable(machine: KernelMachine, targets: Any) -> bool:
    """Whether targets can be compared with the predictions of the machine."""
    from slimsvm.answers import Value

    return not isinstance(machine.answer, Value) or (machine.answer.flat and targets.dtype.kind in "biuf")

"""`slimsvm predict`: predictions, block by block, so that the input may be larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import ModelFailure, blamed
from slimsvm.cli.models import in_order, load_model
from slimsvm.cli.progress import blocks_with_bar

if TYPE_CHECKING:
    from slimsvm.cli.performance import Performance
    from slimsvm.cli.probabilities import Columns
    from slimsvm.data.files import Block, Source
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
@click.option(
    "-b", "as_svm_predict", type=click.IntRange(0, 1), default=0, help="-b 1 writes what svm-predict -b 1 writes."
)
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
    as_svm_predict: int,
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
    from slimsvm.cli.probabilities import Columns, SvmPredictColumns

    data, model = in_order(data, model)
    output.require_another_file(output_path, data, model)
    loaded = load_model(model, trust, n_features)
    noise = loaded.noise_width if as_svm_predict else None
    if (proba or as_svm_predict) and loaded.machine.calibration is None and noise is None:
        advice = " slimsvm compress --calibrate sigmoid adds them." if loaded.task == "classification" else ""
        raise ModelFailure(f"{model} has no probabilities: it was trained without them.{advice}")
    if noise is not None and output_path != "-" and not quiet:
        output.show("Prob. model for test data: target value = predicted value + z,")
        output.show(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={noise:g}")
    columns = SvmPredictColumns() if as_svm_predict and noise is None else Columns(proba)
    writer = PredictionWriter(loaded.machine, columns, scores, jobs, precision, as_json, quiet)
    with output.writing(output_path) as file:
        source = reading.open(data, loaded.machine, accepts_more_features=loaded.accepts_more_features)
        performance = writer.write(source, file)
    if performance is not None and output_path != "-" and not quiet:
        for line in performance.as_svm_predict():
            output.show(line)


class PredictionWriter:
    """Writes predictions, and decision values and probabilities if they are wanted."""

    def __init__(
        self,
        machine: KernelMachine,
        columns: Columns,
        scores: bool,
        jobs: int | None,
        precision: Any,
        as_json: bool,
        quiet: bool,
    ) -> None:
        from slimsvm.cli.unseen import AnyWidth

        self.machine, self.of_any_width = machine, AnyWidth(machine, quiet)
        self.columns, self.scores, self.as_json, self.quiet = columns, scores, as_json, quiet
        outcomes = machine.answer.outcomes
        self._texts = None if outcomes is None else {label: f"{_text(label)}\n" for label in outcomes.tolist()}
        self.how = {"n_jobs": jobs, "precision": precision}

    def write(self, source: Source, file: BinaryIO) -> Performance | None:
        """Write a line for each row; the performance, or None if there are no targets to compare with."""
        from slimsvm.cli.performance import performance_of

        performance, is_known = performance_of(self.machine), True
        if self.columns.proba and not self.as_json:
            file.write(f"labels {' '.join(map(_text, self.columns.labels(self.machine)))}\n".encode())
        for block in blocks_with_bar(source, "predict", self.quiet):
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
        if block.X.shape[1] != self.machine.n_features:  # a feature that no vector has may have no effect
            source.require_finite(block)
        machine, X = self.of_any_width.fit(block.X, source.name)
        extras = {}
        with blamed(source, block):
            predictions, probabilities = self.columns.compute(machine, X, self.how)
            if self.scores:
                extras["scores"] = machine.decision(X, **self.how)
        if probabilities is not None:
            extras["probabilities"] = probabilities
        return predictions, extras

    def _lines(self, predictions: Any, extras: dict[str, Any]) -> str:
        if not extras and not self.as_json and self._texts is not None:
            return "".join(map(self._texts.__getitem__, predictions.tolist()))
        rows = predictions.tolist()
        if self.as_json:
            beside = [extras[name].tolist() for name in extras]
            columns = zip(rows, *beside, strict=True)
            return "".join(
                output.json_line(dict(zip(("prediction", *extras), row, strict=True))) + "\n" for row in columns
            )
        fields = [map(_text, rows)]
        for name, values in extras.items():
            number = self.columns.number if name == "probabilities" else repr
            fields += [map(number, column) for column in values.reshape(len(rows), -1).T.tolist()]
        return "".join(" ".join(line) + "\n" for line in zip(*fields, strict=True))


def _text(prediction: Any) -> str:
    if isinstance(prediction, str):
        return output.escaped(prediction)
    return " ".join(map(repr, prediction)) if isinstance(prediction, list) else str(prediction)


def _comparable(machine: KernelMachine, targets: Any) -> bool:
    """Whether targets can be compared with the predictions of the machine."""
    from slimsvm.answers import Value

    return not isinstance(machine.answer, Value) or (machine.answer.flat and targets.dtype.kind in "biuf")

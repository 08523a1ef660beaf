"""`slimsvm predict`: answers for rows, block by block, so that the input may be larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import ModelFailure
from slimsvm.cli.models import in_order, kind_of, load_machine, widened
from slimsvm.cli.progress import blocks_with_bar

if TYPE_CHECKING:
    from slimsvm.cli.metrics import Tally
    from slimsvm.cli.readers import Block, Source
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm predict test.csv model.slim answers.txt",
    "slimsvm predict test.txt libsvm.model answers.txt     # as svm-predict does",
    "zcat rows.csv.gz | slimsvm predict - model.slim | sort | uniq -c",
    "slimsvm predict rows.parquet model.slim --proba --json",
)


@click.command(epilog=EXAMPLES)
@click.argument("data", type=options.FILE)
@click.argument("model", type=options.FILE)
@click.argument("output_path", metavar="[OUTPUT]", type=options.FILE, default="-")
@click.option("--proba", is_flag=True, help="Probabilities too, behind a first line with the labels.")
@click.option("-b", "libsvm_proba", type=click.IntRange(0, 1), default=0, help="-b 1 is --proba, as in svm-predict.")
@click.option("--scores", is_flag=True, help="Decision values too.")
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
    """Answers of MODEL for the rows of DATA, a line each.

    The order of arguments is that of LIBSVM's svm-predict, which this can stand in for; MODEL and DATA may also change
    places. Where the answers go to a file and the data have targets, a line says how many are right.
    """
    data, model = in_order(data, model)
    machine = load_machine(model, trust, n_features)
    answering = Answering(machine, proba or bool(libsvm_proba), scores, jobs, precision, as_json)
    with output.writing(output_path) as file:
        source = reading.open(data, machine, grows=kind_of(model) == "libsvm")
        tally = answering.write(source, file, quiet)
    if tally is not None and output_path != "-" and not quiet:
        for line in tally.as_svm_predict():
            output.show(line)


class Answering:
    """What is written for each row."""

    def __init__(
        self, machine: KernelMachine, proba: bool, scores: bool, jobs: int | None, precision: Any, as_json: bool
    ) -> None:
        if proba and machine.calibration is None:
            raise ModelFailure("the model has no probabilities: it was not calibrated.")
        self.machine, self.proba, self.scores, self.as_json = machine, proba, scores, as_json
        self.how = {"n_jobs": jobs, "precision": precision}

    def write(self, source: Source, file: BinaryIO, quiet: bool) -> Tally | None:
        """Answer all rows; how right the answers are, where the data tell."""
        from slimsvm.cli.metrics import tally_of

        tally, known = tally_of(self.machine), True
        if self.proba and not self.as_json:
            file.write(f"labels {' '.join(map(str, self.machine.classes.tolist()))}\n".encode())
        for block in blocks_with_bar(source, "predict", quiet):
            if block.X.shape[1] > self.machine.n_features:
                self.machine = widened(self.machine, block.X.shape[1])
            answers, extras = self._asked(source, block)
            file.write(self._lines(answers, extras).encode())
            file.flush()
            if block.y is None or not _comparable(self.machine, block.y):
                known = False
            elif known:
                tally.add(answers, block.y)
        return tally if known else None

    def _asked(self, source: Source, block: Block) -> tuple[Any, dict[str, Any]]:
        """Answers (n,), and decision values and probabilities where they are wanted."""
        try:
            answers = self.machine.predict(block.X, **self.how)
        except ValueError:
            source.require_finite(block)
            raise
        extras = {}
        if self.scores:
            extras["scores"] = self.machine.decision(block.X, **self.how)
        if self.proba:
            extras["probabilities"] = self.machine.predict_proba(block.X, **self.how)
        return answers, extras

    def _lines(self, answers: Any, extras: dict[str, Any]) -> str:
        rows = answers.tolist()
        if self.as_json:
            beside = [extras[name].tolist() for name in extras]
            columns = zip(rows, *beside, strict=True)
            return "".join(
                output.json_line(dict(zip(("prediction", *extras), row, strict=True))) + "\n" for row in columns
            )
        if not extras and answers.ndim == 1:
            return "\n".join(map(str, rows)) + "\n"
        numbers = [values.reshape(len(rows), -1).tolist() for values in extras.values()]
        return "".join(
            " ".join([_text(row), *(repr(value) for part in parts for value in part)]) + "\n"
            for row, *parts in zip(rows, *numbers, strict=True)
        )


def _text(answer: Any) -> str:
    return " ".join(map(repr, answer)) if isinstance(answer, list) else str(answer)


def _comparable(machine: KernelMachine, targets: Any) -> bool:
    """Whether targets are of the kind that the machine answers with."""
    from slimsvm.answers import Value

    return not isinstance(machine.answer, Value) or (machine.answer.flat and targets.dtype.kind in "biuf")

"""`slimsvm evaluate`: how right a model is on labelled data, and what it costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.errors import DataFailure
from slimsvm.cli.models import in_order, kind_of, load_machine, widened
from slimsvm.cli.progress import blocks_with_bar

if TYPE_CHECKING:
    from slimsvm.cli.metrics import Tally
    from slimsvm.cli.readers import Source
    from slimsvm.machine import KernelMachine

EXAMPLES = options.examples(
    "slimsvm evaluate test.csv model.slim --target label",
    "slimsvm evaluate test.txt small.slim --against libsvm.model",
    "slimsvm evaluate test.txt small.slim --json | jq .accuracy",
)


@click.command(epilog=EXAMPLES)
@click.argument("data")
@click.argument("model")
@click.option("--against", metavar="MODEL", help="Another model: how often do the two agree?")
@options.data_options
@options.jobs_option
@options.trust_option
@options.quiet_option
@options.json_option
def command(
    data: str,
    model: str,
    against: str | None,
    reading: options.Reading,
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
    machine = load_machine(model, trust)
    other = load_machine(against, trust) if against else None
    is_target_needed = machine.answer.name != "inlier"
    source = reading.open(data, machine, needs_target=is_target_needed, grows=kind_of(model) == "libsvm")
    result = {"data": data, "model": model} | _evaluated(source, machine, other, jobs, quiet)
    if as_json:
        output.show_json(result)
    else:
        _show(result, against)


def _evaluated(
    source: Source, machine: KernelMachine, other: KernelMachine | None, jobs: int | None, quiet: bool
) -> dict[str, Any]:
    from slimsvm import storage
    from slimsvm.cli.metrics import tally_of

    tally, n_bytes = tally_of(machine), len(storage.dumps(machine))
    n = n_same = n_inside = evaluations = 0
    difference, seconds = 0.0, 0.0
    for block in blocks_with_bar(source, "evaluate", quiet):
        source.require_finite(block)
        machine = _fitting(machine, block.X)
        start = time.perf_counter()
        answers = machine.predict(block.X, n_jobs=jobs)
        seconds += time.perf_counter() - start
        n += len(answers)
        evaluations += int(machine.kernel_evaluations(block.X, n_jobs=jobs).sum()) if _has_stages(machine) else 0
        n_inside += int((answers == 1).sum()) if machine.answer.name == "inlier" else 0
        if block.y is not None:
            _count(source, machine, tally, answers, block.y)
        if other is not None:
            theirs = _fitting(other, block.X).predict(block.X, n_jobs=jobs)
            n_same += int((theirs == answers).sum())
            if machine.answer.name == "value":
                difference = max(difference, float(abs(theirs - answers).max()))
    result = {"n_rows": n} | (tally.result() if tally.n else {})
    if machine.answer.name == "inlier":
        result["inliers"] = n_inside / n
    if other is not None:
        result |= {"largest_difference": difference} if machine.answer.name == "value" else {"agreement": n_same / n}
    return result | {
        "n_vectors": machine.n_vectors,
        "kernel_evaluations": evaluations / n if _has_stages(machine) else machine.n_vectors,
        "n_bytes": n_bytes,
        "us_per_row": seconds / n * 1e6,
    }


def _fitting(machine: KernelMachine, X: Any) -> KernelMachine:
    return widened(machine, X.shape[1]) if X.shape[1] > machine.n_features else machine


def _has_stages(machine: KernelMachine) -> bool:
    return machine.head.name == "staged"


def _count(source: Source, machine: KernelMachine, tally: Tally, answers: Any, targets: Any) -> None:
    from slimsvm.cli.metrics import ClassTally

    if machine.answer.name == "value" and targets.dtype.kind not in "biuf":
        raise DataFailure(f"{source.name}: the targets of a regression must be numbers. Got {targets[0]!r:.60}.")
    tally.add(answers, targets)
    if isinstance(tally, ClassTally) and tally.n_unseen == tally.n:
        known = ", ".join(map(str, tally.classes.tolist()[:8]))
        found = ", ".join(sorted(tally.unseen)[:8])
        raise DataFailure(
            f"{source.name}: none of the labels is one that the machine knows. Got {found}; it knows {known}."
        )


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

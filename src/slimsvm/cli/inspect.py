"""`slimsvm inspect`: the properties, cost and vectors of a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slimsvm.cli import options, output
from slimsvm.cli.models import KINDS, TASKS, load_model

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine
    from slimsvm.preparation import Preparation

EXAMPLES = options.examples(
    "slimsvm inspect model.slim",
    "slimsvm inspect libsvm.model --vectors 5",
    "slimsvm inspect model.slim --json | jq .n_vectors",
)
ROWS, SECONDS = 1000, 0.2  # of the timing
SHOWN = 6  # numbers of a vector in a line


@click.command(epilog=EXAMPLES)
@click.argument("model", type=options.FILE)
@click.option("--vectors", "n_vectors", type=click.IntRange(0), metavar="N", help="Show the first N vectors (0: all).")
@options.trust_option
@options.json_option
def command(model: str, n_vectors: int | None, trust: bool, as_json: bool) -> None:
    """Show the properties, cost and vectors of MODEL.

    The cost is in kernel evaluations and multiply-adds per row, in bytes, and in microseconds per row, measured on this
    computer with one thread and random rows in float64.
    """
    loaded = load_model(model, trust)
    machine = loaded.machine
    facts = description(machine) | {"file": model, "kind": loaded.kind, "file_bytes": Path(model).stat().st_size}
    facts["us_per_row"] = microseconds(machine)
    if as_json:
        output.show_json(facts | ({} if n_vectors is None else {"vectors": _vectors(machine, n_vectors)}))
        return
    output.pairs(_words(facts))
    if facts["columns"] is not None:
        _show_columns(facts["columns"])
    if n_vectors is not None:
        _show_vectors(machine, n_vectors)


def description(machine: KernelMachine) -> dict[str, Any]:
    """The properties of a machine by name, for scripts."""
    from slimsvm import storage
    from slimsvm.heads import StagedHead

    head, kernel = machine.head, machine.kernel
    return {
        "task": TASKS[machine.answer.name],
        "kernel": str(kernel),
        "n_vectors": machine.n_vectors,
        "n_features": machine.n_features,
        "n_widths": 1 if machine.gammas is None else len(set(machine.gammas.tolist())),
        "sparse_vectors": hasattr(machine.points, "nnz"),
        "head": head.name,
        "n_scores": head.n_scores,
        "stages": list(head.sizes) if isinstance(head, StagedHead) else None,
        "classes": machine.classes.tolist() if machine.answer.name == "classes" else None,
        "probabilities": None if machine.calibration is None else machine.calibration.name,
        "input_map": None if machine.input_map is None else _map(machine),
        "feature_names": machine.feature_names,
        "columns": None if machine.preparation is None else columns_of(machine.preparation),
        "n_features_used": machine.cost.n_features,
        "kernel_evaluations": machine.n_vectors,
        "n_dimensions": machine.cost.n_dimensions,
        "multiply_adds": machine.cost.multiply_adds,
        "table_bytes": machine.cost.n_bytes,
        "n_bytes": len(storage.dumps(machine)),
    }


def microseconds(machine: KernelMachine) -> float:
    """The time per row of a batch of random rows on one thread; the shortest within a fraction of a second."""
    import numpy as np

    X = _random_rows(machine)
    try:
        machine.predict(X[:2], n_jobs=1)
    except ValueError:  # the preparation refuses these values, so the machine behind it is timed
        machine = machine.without_preparation()
        X = _random_rows(machine)
    best, end = np.inf, time.perf_counter() + SECONDS
    while best == np.inf or time.perf_counter() < end:
        start = time.perf_counter()
        machine.predict(X, n_jobs=1)
        best = min(best, time.perf_counter() - start)
    return float(best / len(X) * 1e6)


def _random_rows(machine: KernelMachine) -> Any:
    """Rows of random numbers, and of the categories that a preparation knows."""
    import numpy as np

    rng, n = np.random.default_rng(0), max(1, min(ROWS, 10**7 // machine.n_features))
    X: Any = rng.normal(size=(n, machine.n_features))
    if machine.preparation is None:
        return X
    X = (np.abs(X) + 0.1).astype(object)  # logarithms and roots need numbers above zero
    for lookup in machine.preparation.lookups:
        if lookup.categories is not None and len(lookup.categories) and not lookup.steps:
            X[:, lookup.column] = rng.choice(lookup.categories, n)
    return X


def columns_of(preparation: Preparation) -> list[dict[str, Any]]:
    """What a preparation makes of each column: numbers, categories, or nothing."""
    from slimsvm.preparation import Fill

    found = []
    for i in range(preparation.n_columns):
        parts = [part for part in preparation.parts if part.column == i]
        lookups = [part for part in preparation.lookups if part.column == i and part.categories is not None]
        fills = [step.value for part in parts for step in part.steps if isinstance(step, Fill)]
        one: dict[str, Any] = {"name": str(i) if preparation.names is None else preparation.names[i]}
        one["kind"] = "not used" if not parts else "categories" if lookups else "number"
        if lookups:
            categories = lookups[0].categories
            one["categories"] = [] if categories is None else categories.tolist()
            one |= {"missing": _rule(lookups[0].missing), "unknown": _rule(lookups[0].unknown)}
        elif fills:
            one["missing"] = f"becomes {fills[0]:.6g}"
        elif parts:
            one["missing"] = "is refused"
        one["n_numbers"] = sum(part.n_numbers for part in parts)
        found.append(one)
    return found


def _rule(row: int) -> str:
    """What happens to a value that is not a category, in words."""
    return {-1: "becomes zeros", -2: "is refused"}.get(row, "has a row of its own")


def _map(machine: KernelMachine) -> str:
    assert machine.input_map is not None
    kind = "scaling" if machine.input_map.scale.ndim == 1 else "matrix"
    return f"{kind}, {machine.input_map.n_features_in} to {machine.input_map.n_features_out} features"


def _words(facts: dict[str, Any]) -> dict[str, str]:
    """The properties for a reader, without those that do not apply."""
    classes, names = facts["classes"], facts["feature_names"]
    widths = f", {facts['n_widths']} widths" if facts["n_widths"] > 1 else ""
    sparse = ", sparse" if facts["sparse_vectors"] else ""
    used = facts["n_features_used"]
    lines = {
        "file": f"{facts['file']} ({KINDS[facts['kind']]}, {output.sized(facts['file_bytes'])}{_notes(facts)})",
        "task": facts["task"],
        "classes": classes and f"{len(classes)}: {_some(classes)}",
        "kernel": facts["kernel"] + widths,
        "vectors": f"{facts['n_vectors']:,} of {output.plural(facts['n_dimensions'], 'dimension')}{sparse}",
        "features": f"{facts['n_features']:,}"
        + (f", of which {used:,} are used" if used < facts["n_features"] else ""),
        "head": f"{facts['head']}, {output.plural(facts['n_scores'], 'score')}",
        "early exit": facts["stages"] and f"after {_some(facts['stages'])} vectors",
        "probabilities": facts["probabilities"],
        "input map": facts["input_map"],
        "feature names": names and _some(names),
        "cost": f"{output.plural(facts['kernel_evaluations'], 'kernel evaluation')} per row"
        f"{' at most' if facts['stages'] else ''}, {facts['multiply_adds']:,} multiply-adds, "
        f"{output.sized(facts['table_bytes'])} of float32 tables, {_as_slim(facts)}"
        f"{facts['us_per_row']:.3g} µs per row",
    }
    return {name: text for name, text in lines.items() if text}


def _notes(facts: dict[str, Any]) -> str:
    """How much of a .slim file is not the machine."""
    n_bytes = facts["file_bytes"] - facts["n_bytes"] if facts["kind"] == "slim" else 0
    return f", of which {output.sized(n_bytes)} are the report and history of its compression" if n_bytes > 0 else ""


def _as_slim(facts: dict[str, Any]) -> str:
    return "" if facts["kind"] == "slim" else f"{output.sized(facts['n_bytes'])} as a .slim file, "


def _some(values: Any, most: int = 12) -> str:
    shown = ", ".join(_plain(str(value)) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, …"


def _plain(text: str) -> str:
    """Text in a list: in quotes if it would not be told apart from its neighbours, or could control the terminal."""
    return text if text.isprintable() and text.strip() == text and text and "," not in text else repr(text)


def _vectors(machine: KernelMachine, n: int) -> list[dict[str, Any]]:
    """The first n vectors (all if n is 0), with their coefficients."""
    n = min(n or machine.n_vectors, machine.n_vectors)
    points = machine.points[:n]
    rows = points.toarray() if hasattr(points, "nnz") else points
    coef = machine.head.coef[:n] if len(machine.head.coef) == machine.n_vectors else None
    return [{"vector": rows[j], "coef": None if coef is None else coef[j]} for j in range(n)]


def _show_vectors(machine: KernelMachine, n: int) -> None:
    output.show("")
    rows = [("", "coefficients", "vector")]
    for j, one in enumerate(_vectors(machine, n)):
        coef = "" if one["coef"] is None else _numbers(one["coef"])
        rows.append((str(j), coef, _numbers(one["vector"])))
    output.table(rows)


def _show_columns(columns: list[dict[str, Any]]) -> None:
    output.show("")
    rows = [("column", "kind", "missing value", "unknown category", "categories")]
    for one in columns:
        categories = one.get("categories")
        shown = "" if categories is None else f"{len(categories)}: {_some(categories, SHOWN)}"
        rows.append((one["name"], one["kind"], one.get("missing", ""), one.get("unknown", ""), shown))
    output.table(rows)


def _numbers(values: Any) -> str:
    shown = " ".join(f"{value:.5g}" for value in values[:SHOWN])
    return shown if len(values) <= SHOWN else f"{shown} …"

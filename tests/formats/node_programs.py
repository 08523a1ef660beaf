"""Many exported modules in one Node program, which reads rows and writes what each module makes of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slimsvm.formats import Files
from slimsvm.formats.javascript import files
from slimsvm.machine import KernelMachine

needs_node = pytest.mark.skipif(which("node") is None, reason="Node is not installed")

RUN = """
import { readFileSync, writeFileSync } from "node:fs";
const results = [];
for (const [name, rows] of JSON.parse(readFileSync("rows.json", "utf8"))) {
  const m = await import("./" + name);
  const found = { scores: [], answers: [], decisions: [], probabilities: [], errors: [], model: m.model };
  for (const row of rows) {
    try {
      const scores = m.scores(row);
      found.scores.push(scores);
      found.answers.push(m.predict(row));
      found.decisions.push(m.decision(row));
      if (m.probabilities) found.probabilities.push(m.probabilities(row));
      found.errors.push(null);
    } catch (error) {
      found.errors.push(`${error.name}: ${error.message}`);
    }
  }
  results.push(found);
}
writeFileSync("results.json", JSON.stringify(results));
"""


@dataclass(frozen=True)
class Results:
    """What Node made of the rows; rows that throw an error have only their message, in `errors` (n,)."""

    made: Files
    scores: NDArray[Any]
    answers: NDArray[Any]
    decisions: NDArray[Any]
    probabilities: NDArray[Any] | None
    errors: list[str | None]
    model: dict[str, Any]


def run(machines: Sequence[tuple[KernelMachine, Any]], folder: Path, **options: Any) -> list[Results]:
    """Export every machine, and run its rows, lists or dicts of values, through its module in Node."""
    made = [files(machine, f"m{i}.mjs", **options) for i, (machine, _) in enumerate(machines)]
    for one in made:
        for name, content in one.contents.items():
            (folder / name).write_bytes(content)
    given = [
        [f"m{i}.mjs", rows if isinstance(rows, list) else np.asarray(rows).tolist()]
        for i, (_, rows) in enumerate(machines)
    ]
    (folder / "rows.json").write_text(json.dumps(given), encoding="utf-8")
    in_node(RUN, folder)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return [
        Results(
            files_made,
            np.array(one["scores"]),
            np.array(one["answers"]),
            np.array(one["decisions"]),
            np.array(one["probabilities"]) if one["probabilities"] else None,
            one["errors"],
            one["model"],
        )
        for files_made, one in zip(made, results, strict=True)
    ]


def in_node(script: str, folder: Path) -> str:
    """The output of a script that Node runs as a module in a folder."""
    (folder / "run.mjs").write_text(script, encoding="utf-8")
    ended = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:3000]
    return ended.stdout

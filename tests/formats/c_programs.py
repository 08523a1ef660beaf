"""Many exported headers in one C program, which reads rows and writes what each machine makes of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.answers import Classes, Value
from slimsvm.formats import Files
from slimsvm.formats.c import files
from slimsvm.machine import KernelMachine

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
C99 = ["gcc", "-std=c99", *STRICT, "-O2"]
QUICK = ["gcc", "-std=c99", *STRICT, "-O1"]  # for many machines, which take long to compile
SANITIZED = ["gcc", "-std=c99", *STRICT, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CPP = ["g++", "-std=c++11", *STRICT, "-O1"]


@dataclass(frozen=True)
class Results:
    """What C made of the rows: kernel evaluations (n,), scores (n, s), answers (n,), probabilities (n, k) or None."""

    made: Files
    evaluations: NDArray[Any]
    scores: NDArray[Any]
    answers: NDArray[Any]
    probabilities: NDArray[Any] | None


def run(
    machines: Sequence[tuple[KernelMachine, Any]],
    folder: Path,
    compiler: Sequence[str] = C99,
    edit: Callable[[str], str] = str,
    **options: Any,
) -> list[Results]:
    """Export every machine with its rows as X, compile one program of all, and run the rows through it.

    `edit` changes the text of the headers.
    """
    made = [files(machine, f"m{i}.h", X=X, **options) for i, (machine, X) in enumerate(machines)]
    for one in made:
        for name, content in one.contents.items():
            (folder / name).write_text(edit(content.decode("ascii")), encoding="ascii")
    source = folder / ("all.cpp" if compiler[0] == "g++" else "all.c")
    source.write_text(_program(machines, made[0].facts["tables"]), encoding="ascii")
    build([*compiler, str(source), "-o", str(folder / "all")])
    data = b"".join(np.ascontiguousarray(X, dtype=np.float64).tobytes() for _, X in machines)
    output = subprocess.run([str(folder / "all")], input=data, capture_output=True, check=False)
    assert output.returncode == 0, f"{output.returncode} {output.stderr.decode()[:2000]}"
    return _split(machines, made, np.frombuffer(output.stdout))


def build(command: Sequence[str]) -> None:
    """Run a compiler, and show what it complains of."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[:3000]


def self_test(header: Path, folder: Path, compiler: Sequence[str] = C99) -> int:
    """The exit code of the self-test that a header holds."""
    build([*compiler, "-DSLIMSVM_SELF_TEST", "-x", "c", str(header), "-o", str(folder / "self")])
    return subprocess.run([str(folder / "self")], check=False).returncode


def _program(machines: Sequence[tuple[KernelMachine, Any]], kind: str) -> str:
    lines = ["#include <stdio.h>"] + [f'#include "m{i}.h"' for i in range(len(machines))]
    lines += ["static void put(double v) { fwrite(&v, sizeof v, 1, stdout); }"]
    lines += [_runner(i, machine, len(X), kind) for i, (machine, X) in enumerate(machines)]
    calls = " ".join(f"run{i}();" for i in range(len(machines)))
    return "\n".join([*lines, f"int main(void) {{ {calls} return 0; }}\n"])


def _runner(i: int, machine: KernelMachine, n_rows: int, kind: str) -> str:
    fixed = kind.startswith("int")
    take = f"m{i}_quantise(v, k)" if fixed else f"(m{i}_input)v"
    show, share = (f"m{i}_real", f" / (double)M{i}_ONE") if fixed else ("(double)", "")
    answer = f"{show}(s[0])" if isinstance(machine.answer, Value) else f"(double)m{i}_predict(x)"
    chances = ""
    if machine.calibration is not None:
        k = machine.classes.size
        chances = (
            f"{{ m{i}_fraction p[{k}]; m{i}_probabilities(x, p); for (k = 0; k < {k}; ++k) put((double)p[k]{share}); }}"
        )
    return f"""static void run{i}(void) {{
  m{i}_input x[{machine.n_features}]; m{i}_score s[{machine.head.n_scores}]; double v; size_t r, k;
  for (r = 0; r < {n_rows}; ++r) {{
    for (k = 0; k < {machine.n_features}; ++k) {{ if (!fread(&v, sizeof v, 1, stdin)) return; x[k] = {take}; }}
    put((double)m{i}_scores(x, s));
    for (k = 0; k < {machine.head.n_scores}; ++k) put({show}(s[k]));
    put({answer});
    {chances}
  }}
}}"""


def _split(machines: Sequence[tuple[KernelMachine, Any]], made: list[Files], output: NDArray[Any]) -> list[Results]:
    results, start = [], 0
    for (machine, X), files_made in zip(machines, made, strict=True):
        s = machine.head.n_scores
        k = 0 if machine.calibration is None else machine.classes.size
        part = output[start : start + len(X) * (2 + s + k)].reshape(len(X), 2 + s + k)
        start += part.size
        answers = part[:, 1 + s]
        if isinstance(machine.answer, Classes):
            answers = machine.classes[answers.astype(int)]
        elif isinstance(machine.answer, Value) and s > 1:
            answers = part[:, 1 : 1 + s]
        results.append(Results(files_made, part[:, 0], part[:, 1 : 1 + s], answers, part[:, 2 + s :] if k else None))
    assert start == output.size
    return results

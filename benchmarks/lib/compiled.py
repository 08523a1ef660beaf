"""C programs that answer rows: compiled with gcc, run, and their answers read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPILER = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-fno-asynchronous-unwind-tables", "-Os")

# Reads rows of doubles, converts each value with TAKE(value, feature), and prints what classify answers.
DRIVER = """
#include <stdio.h>
#include "typed.h"
int classify(const TYPE *x);
int main(void) {
  static double row[D];
  static TYPE x[D];
  size_t k;
  while (fread(row, sizeof row, 1, stdin)) {
    for (k = 0; k < D; ++k) x[k] = TAKE(row[k], k);
    printf("%d\\n", classify(x));
  }
  return 0;
}
"""


def run(command: list[str], data: bytes | None = None, errors: bool = False) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode()[:2000]}")
    return (done.stderr if errors else done.stdout).decode()


def link(folder: Path, typed: str, kind: str, taken: str, n_features: int) -> Path:
    """The program of the driver and `program.o` in the folder, which defines classify(const kind *)."""
    (folder / "driver.c").write_text(DRIVER, encoding="ascii")
    (folder / "typed.h").write_text(typed, encoding="ascii")
    words = [f"-DTYPE={kind}", f"-DD={n_features}", f"-DTAKE(v,k)={taken}", f"-I{folder}"]
    parts = [str(folder / "driver.c"), str(folder / "program.o")]
    run([*COMPILER[:-1], "-w", "-O2", *words, *parts, "-lm", "-o", str(folder / "program")])
    return folder / "program"


def answers(program: Path, X: Any) -> NDArray[np.intp]:
    """What the program answers for every row."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    return np.array(run([str(program)], rows.tobytes()).split(), dtype=np.intp)

"""The command in a process of its own, and data files that its tests write, by plain loops."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import slimsvm

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(slimsvm.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
COMMAND = [sys.executable, "-m", "slimsvm"]


def table(
    path: Path, X: Any, y: Any = None, names: tuple[str, ...] = (), target: str = "label", comma: str = ","
) -> Path:
    """Write a table, with a header if there are names."""
    with path.open("w") as file:
        if names:
            file.write(comma.join((*names, *([target] if y is not None else []))) + "\n")
        for i, row in enumerate(np.asarray(X).tolist()):
            file.write(comma.join([*map(repr, row), *([str(y[i])] if y is not None else [])]) + "\n")
    return path


def svmlight(path: Path, X: Any, y: Any) -> Path:
    """Write LIBSVM's text; zeros are left out."""
    with path.open("w") as file:
        for row, label in zip(np.asarray(X).tolist(), np.asarray(y).tolist(), strict=True):
            entries = "".join(f" {i}:{value!r}" for i, value in enumerate(row, 1) if value)
            file.write(f"{label}{entries}\n")
    return path

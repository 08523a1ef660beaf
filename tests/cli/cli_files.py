"""Data files that tests of the command line write, by plain loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def table(
    path: Path, X: Any, y: Any = None, names: tuple[str, ...] = (), target: str = "label", comma: str = ","
) -> Path:
    """Write a table, with a header where there are names."""
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

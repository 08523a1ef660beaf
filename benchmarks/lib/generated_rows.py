"""Generated rows of 28 features with a curved boundary and noise, written to files in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FEATURES, PIECE = 28, 1 << 18


def labelled_rows(n: int, seed: Any) -> tuple[Any, Any]:
    """X (n, 28) in float32, and labels 0 and 1; about 9 % of the labels are noise."""
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(FEATURES, 6)) / np.sqrt(FEATURES)
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    score = np.sin(1.5 * (X @ directions)) @ np.array([1, 1, 1, -1, -1, 1.0]) + 0.5 * X[:, 0] * X[:, 1]
    return X, (score + 0.5 * rng.standard_normal(n) > 0).astype(np.int8)


def write_rows(path: Path, n: int, seed: int = 0) -> None:
    """An NPY file with the label in the last column, or a Parquet file with the column `label`."""
    pieces = ((a, *labelled_rows(min(PIECE, n - a), [seed, a])) for a in range(0, n, PIECE))
    if path.suffix == ".npy":
        out = np.lib.format.open_memmap(path, "w+", np.float32, (n, FEATURES + 1))
        for a, X, y in pieces:
            out[a : a + len(X)] = np.column_stack([X, y])
        out.flush()
        return
    import pyarrow
    import pyarrow.parquet

    writer = None
    for _, X, y in pieces:
        columns = {f"f{i}": X[:, i] for i in range(FEATURES)} | {"label": y}
        table = pyarrow.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()

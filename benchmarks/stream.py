"""`slimsvm predict` of a stream through a pipe: rows per second and peak memory.

python benchmarks/stream.py                       # 2 GB of CSV, 20 features, 100 vectors
python benchmarks/stream.py --megabytes 100 --form svmlight
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import slimsvm

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from peak_memory import run_with_peak

LIMIT_MIB = 300
BLOCK_ROWS = 20_000  # rows that are made once and sent over and over


def text_of(X: np.ndarray, form: str) -> bytes:
    """Rows with six decimals, as most tables have them."""
    if form == "csv":
        return "".join(",".join(f"{value:.6f}" for value in row) + "\n" for row in X.tolist()).encode()
    lines = ("0 " + " ".join(f"{i}:{value:.6f}" for i, value in enumerate(row, 1)) for row in X.tolist())
    return "".join(line + "\n" for line in lines).encode()


def main() -> None:
    """Make a machine and rows, send them, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=2000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--vectors", type=int, default=100)
    parser.add_argument("--form", choices=["csv", "svmlight"], default="csv")
    asked = parser.parse_args()
    X, y = make_classification(BLOCK_ROWS, asked.features, n_informative=8, flip_y=0.1, random_state=0)
    small = slimsvm.compress(SVC().fit(X[:2000], y[:2000]), n_vectors=asked.vectors, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder) / "model.slim", Path(folder) / "answers.txt"
        small.save(model)
        block = text_of(X, asked.form)
        n_blocks = max(1, round(asked.megabytes * 1e6 / len(block)))
        start = time.perf_counter()
        code, said, peak = run_with_peak(["predict", "-", str(model), str(out)], (block for _ in range(n_blocks)))
        seconds = time.perf_counter() - start
        if code:
            sys.exit(f"slimsvm predict ended with exit code {code}: {said}")
        with out.open("rb") as file:
            n_answers = sum(1 for _ in file)
    n_rows = n_blocks * BLOCK_ROWS
    if n_answers != n_rows:
        sys.exit(f"{n_rows:,} rows were sent and {n_answers:,} answers came back")
    size = n_blocks * len(block) / 1e6
    print(
        f"{size:,.0f} MB of {asked.form}, {n_rows:,} rows of {asked.features} features, {small.n_vectors_} vectors: "
        f"{seconds:.1f} seconds, {n_rows / seconds:,.0f} rows/s, {size / seconds:.0f} MB/s, peak memory {peak:.0f} MiB"
    )
    if peak >= LIMIT_MIB:
        sys.exit(f"peak memory must stay below {LIMIT_MIB} MiB")


if __name__ == "__main__":
    main()

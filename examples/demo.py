"""Train an SVC, hand it to slimsvm, and compare: the same machine, and machines with few of its vectors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import slimsvm

N_TRAIN, N_TEST, N_FEATURES = 5000, 10_000, 16
SHARES = 0.1, 0.02  # of the support vectors that the small machines have


def make_data() -> list[Any]:
    """Two classes that overlap, with a tenth of the labels wrong: many points become support vectors."""
    X, y = make_classification(
        N_TRAIN + N_TEST, N_FEATURES, n_informative=8, n_redundant=4, class_sep=0.8, flip_y=0.1, random_state=0
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return list(train_test_split(X, y, train_size=N_TRAIN, random_state=0))


def seconds(call: Callable[[], object], budget: float = 0.5) -> float:
    """The best time of a call within a budget of seconds."""
    best, end = np.inf, time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def table_row(name: str, model: Any, vectors: int, X: Any, y: Any, expected: Any) -> tuple[str, ...]:
    """Vectors, accuracy, agreement with scikit-learn, µs per row in a batch and alone."""
    answers = model.predict(X)
    batch = seconds(lambda: model.predict(X)) / len(X) * 1e6
    one = X[:1]
    alone = seconds(lambda: model.predict(one)) * 1e6
    shares = f"{np.mean(answers == y):.2%}", f"{np.mean(answers == expected):.2%}"
    return name, f"{vectors:,}", *shares, f"{batch:,.3f}", f"{alone:,.1f}"


def print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for number, row in enumerate(rows):
        first, *others = (f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *others]))
        if number == 0:
            print("  ".join("─" * width for width in widths))


def compress_timed(svc: SVC, share: float) -> Any:
    """A machine with a share of the support vectors; tells how long it took."""
    start = time.perf_counter()
    small = slimsvm.compress(svc, n_vectors=share, random_state=0)
    took, lost = time.perf_counter() - start, small.history_[-1]["relative"]
    print(f"  n_vectors={share}: {small.n_vectors_} vectors, ρ²/‖Ψ‖² = {lost:.3f}, in {took:.1f} seconds", flush=True)
    return small


def main() -> None:
    """Train, compress, compare."""
    start = time.perf_counter()
    print(f"Making {N_TRAIN:,} training and {N_TEST:,} test samples with {N_FEATURES} features …", flush=True)
    X_train, X_test, y_train, y_test = make_data()
    print("Training scikit-learn's SVC (RBF kernel, C = 1) …", flush=True)
    svc = SVC(C=1.0, gamma="scale").fit(X_train, y_train)
    n_vectors = len(svc.support_vectors_)
    print(f"It has {n_vectors:,} support vectors.")
    slim = slimsvm.compress(svc)
    difference = np.abs(slim.decision_function(X_test) - svc.decision_function(X_test)).max()
    print(f"The same machine: slim = slimsvm.compress(svc). Its decision values differ by at most {difference:.1e}.")
    print("Machines with fewer vectors: small = slimsvm.compress(svc, n_vectors=…)", flush=True)
    smaller = [compress_timed(svc, share) for share in SHARES]
    print("Timing all of them on the test samples, in one batch and one alone …\n", flush=True)
    expected, X32 = svc.predict(X_test), X_test.astype(np.float32)
    rows = [
        ("", "vectors", "accuracy", "agreement", "µs/row in a batch", "µs for one row"),
        table_row("scikit-learn", svc, n_vectors, X_test, y_test, expected),
        table_row("slimsvm", slim, slim.n_vectors_, X_test, y_test, expected),
        table_row("slimsvm, float32 data", slim, slim.n_vectors_, X32, y_test, expected),
    ]
    for share, small in zip(SHARES, smaller, strict=True):
        name = f"slimsvm, n_vectors={share}, float32 data"
        rows.append(table_row(name, small, small.n_vectors_, X32, y_test, expected))
    print_table(rows)
    print(f"\nAll of it took {time.perf_counter() - start:.0f} seconds.")


if __name__ == "__main__":
    main()

"""`slimsvm demo`: an SVC, the same machine in slimsvm, and machines with few of its vectors, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from slimsvm.cli import options, output

N_TRAIN, N_TEST, N_FEATURES = 5000, 10_000, 16
QUICK = 10  # times fewer samples
SHARES = 0.1, 0.02  # of the support vectors that the small machines have
HEADING = ("", "vectors", "accuracy", "agreement", "µs/row in a batch", "µs for one row")


@click.command(epilog=options.examples("slimsvm demo", "slimsvm demo --quick --json"))
@click.option("--quick", is_flag=True, help=f"{QUICK} times fewer samples: seconds in place of a minute.")
@options.json_option
def command(quick: bool, as_json: bool) -> None:
    """Train scikit-learn's SVC on made-up data, compress it, and compare."""
    from sklearn.svm import SVC

    import slimsvm

    start = time.perf_counter()
    say: Callable[[str], None] = (lambda text: None) if as_json else output.show
    X, X_test, y, y_test = _data(QUICK if quick else 1)
    say(
        f"{len(X):,} training and {len(X_test):,} test samples with {N_FEATURES} features, a tenth of the labels wrong."
    )
    say("Training scikit-learn's SVC (RBF kernel, C = 1) …")
    svc = SVC().fit(X, y)
    n_vectors, expected = len(svc.support_vectors_), svc.predict(X_test)
    say(f"It has {n_vectors:,} support vectors.")
    slim = slimsvm.compress(svc)
    difference = abs(slim.decision_function(X_test) - svc.decision_function(X_test)).max()
    say(f"The same machine: slim = slimsvm.compress(svc). Its decision values differ by at most {difference:.1e}.")
    models = [("scikit-learn", svc, n_vectors, X_test), ("slimsvm", slim, n_vectors, X_test)]
    single = X_test.astype("float32")
    models.append(("slimsvm, float32 data", slim, n_vectors, single))
    for share in SHARES:
        began = time.perf_counter()
        small = slimsvm.compress(svc, n_vectors=share, random_state=0)
        lost, took = small.history_[-1]["relative"], time.perf_counter() - began
        say(f"n_vectors={share}: {small.n_vectors_} vectors, ρ²/‖Ψ‖² = {lost:.3f}, in {took:.1f} seconds")
        models.append((f"slimsvm, n_vectors={share}, float32 data", small, small.n_vectors_, single))
    rows = [_row(*model, y_test, expected) for model in models]
    seconds = time.perf_counter() - start
    if as_json:
        output.show_json({"models": rows, "largest_difference": difference, "seconds": seconds})
        return
    say("")
    output.table([HEADING, *map(_words, rows)])
    say(f"\nAll of it took {seconds:.0f} seconds. Next: slimsvm train --help, slimsvm compress --help.")


def _data(divided_by: int) -> list[Any]:
    """Two classes that overlap, with a tenth of the labels wrong: many points become support vectors."""
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    n_train, n_test = N_TRAIN // divided_by, N_TEST // divided_by
    X, y = make_classification(
        n_train + n_test, N_FEATURES, n_informative=8, n_redundant=4, class_sep=0.8, flip_y=0.1, random_state=0
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return list(train_test_split(X, y, train_size=n_train, random_state=0))


def _row(name: str, model: Any, n_vectors: int, X: Any, y: Any, expected: Any) -> dict[str, Any]:
    """Vectors, accuracy, agreement with scikit-learn, µs per row in a batch and alone."""
    answers, one = model.predict(X), X[:1]
    return {
        "name": name,
        "n_vectors": n_vectors,
        "accuracy": float((answers == y).mean()),
        "agreement": float((answers == expected).mean()),
        "us_per_row": _seconds(lambda: model.predict(X)) / len(X) * 1e6,
        "us_alone": _seconds(lambda: model.predict(one)) * 1e6,
    }


def _words(row: dict[str, Any]) -> tuple[str, ...]:
    shares = f"{row['accuracy']:.2%}", f"{row['agreement']:.2%}"
    return row["name"], f"{row['n_vectors']:,}", *shares, f"{row['us_per_row']:,.3f}", f"{row['us_alone']:,.1f}"


def _seconds(call: Callable[[], object], budget: float = 0.5) -> float:
    """The best time of a call within a budget of seconds."""
    best, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best

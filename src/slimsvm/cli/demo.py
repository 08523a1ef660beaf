"""`slimsvm demo`: an SVC, the smallest model that loses at most half a point of accuracy, and the trade-off."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import click

from slimsvm.cli import options, output

N_TRAIN, N_TEST, N_FEATURES, N_USELESS = 4000, 10_000, 16, 4
QUICK = 10  # --quick divides the numbers of samples by this
MAX_LOSS = 0.005
SIZES = (5, 10, 20, 40, 80)  # numbers of vectors in the plot
METHODS = ("sparse_margin", "sparse_margin+diagonal", "reduced_set+refit", "reduced_set", "selection")
BASELINES: bool | tuple[str, ...] = True  # all
HEADING = ("", "vectors", "accuracy", "agreement", "µs alone", "µs in a batch", "bytes")


@click.command(epilog=options.examples("slimsvm demo", "slimsvm demo --quick --json"))
@click.option("--quick", is_flag=True, help=f"Use {QUICK} times fewer samples; takes seconds instead of a minute.")
@click.option("--picture", default="frontier.png", show_default=True, help="File for the plot.")
@options.json_option
def command(quick: bool, picture: str, as_json: bool) -> None:
    """Train scikit-learn's SVC on synthetic data, compress it within a loss budget, compare, and plot the trade-off."""
    from sklearn.svm import SVC

    import slimsvm
    from slimsvm.exceptions import UncertainPromiseWarning

    start = time.perf_counter()
    say: Callable[[str], None] = (lambda text: None) if as_json else output.show
    X, X_test, y, y_test = _data(QUICK if quick else 1)
    say(
        f"{len(X):,} training and {len(X_test):,} test samples, {N_FEATURES} features, of which {N_USELESS} do not "
        f"matter, 10% of the labels are random."
    )
    say("Training scikit-learn's SVC (RBF kernel, C = 1) …")
    svc = SVC().fit(X, y)
    say(f"It has {len(svc.support_vectors_):,} support vectors.")
    say(f"Compressing with a loss of at most {MAX_LOSS:.1%}: slimsvm.compress(svc, X, y, max_loss={MAX_LOSS}, cv=5) …")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertainPromiseWarning)  # the sentence below the table says as much
        small, took = _timed(lambda: slimsvm.compress(svc, X, y, max_loss=MAX_LOSS, cv=5, n_jobs=2, random_state=0))
    say(f"This took {took:.0f} seconds. The report:")
    for line in str(small.report_).splitlines():
        say(f"  {line}")
    exact, single, expected = slimsvm.compress(svc), X_test.astype("float32"), svc.predict(X_test)
    models = [
        ("scikit-learn", svc, exact, X_test),
        ("slimsvm, all vectors", exact, exact, single),
        (f"slimsvm, max_loss={MAX_LOSS}", small, small, single),
    ]
    rows = [_row(*model, y_test, expected) for model in models]
    say("")
    say("On the test samples:")
    say("")
    if not as_json:
        output.table([HEADING, *map(_words, rows)])
    say("")
    say(_lost(rows[0]["accuracy"] - rows[2]["accuracy"], small.report_, len(X), quick))
    say("")
    say("Computing the whole trade-off: slimsvm.frontier(svc, X, y) …")
    front, took = _timed(lambda: _frontier(svc, X, y, X_test, y_test))
    drawn = _draw(front, picture)
    say(f"This took {took:.0f} seconds for {len(front.records)} models and baselines. {drawn}")
    seconds = time.perf_counter() - start
    if as_json:
        report = small.report_.as_dict()
        output.show_json({"models": rows, "report": report, "picture": drawn, "seconds": seconds})
    say(f"The demo took {seconds:.0f} seconds. Next: slimsvm train --help, slimsvm compress --help.")


def _lost(lost: float, report: Any, n_train: int, quick: bool) -> str:
    """What the small model loses on the test samples, and what the training samples could tell beforehand."""
    what = f"loses {lost:.1%}" if lost > 0 else f"gains {-lost:.1%}" if lost < 0 else "loses nothing"
    more = f" The demo without --quick has {QUICK} times as many." if quick and lost > MAX_LOSS else ""
    return (
        f"The small model {what} of accuracy on the test samples. {n_train:,} training samples can tell the loss to "
        f"± {report.standard_error:.1%}; the estimate was {report.estimate:.1%}.{more}"
    )


def _data(divided_by: int) -> list[Any]:
    """Two overlapping classes with label noise, so that many samples become support vectors."""
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    n_train, n_test = N_TRAIN // divided_by, N_TEST // divided_by
    X, y = make_classification(
        n_train + n_test, N_FEATURES, n_informative=8, n_redundant=4, class_sep=0.8, flip_y=0.1, random_state=0
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return list(train_test_split(X, y, train_size=n_train, random_state=0))


def _frontier(svc: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> Any:
    """Several methods and sizes, and the baselines, evaluated on the test samples."""
    import slimsvm

    sizes = [size for size in SIZES if 2 * size <= len(svc.support_)]
    return slimsvm.frontier(
        svc, X, y, sizes=sizes, methods=METHODS, baselines=BASELINES, validation=(X_test, y_test), random_state=0
    )


def _draw(front: Any, path: str) -> str:
    """Write the plot; returns a sentence that says where it is, or why there is none."""
    try:
        figure = front.plot().figure_
    except ImportError as missing:
        return f"No plot: {missing}"
    with output.writing(path) as file:
        figure.savefig(file, dpi=120, format="png")
    return f"The plot is in {path}."


def _row(name: str, model: Any, slim: Any, X: Any, y: Any, expected: Any) -> dict[str, Any]:
    """Vectors, accuracy, agreement with scikit-learn, µs per row (alone, in a batch), and bytes of the tables."""
    predictions, one = model.predict(X), X[:1]
    return {
        "name": name,
        "n_vectors": slim.n_vectors_,
        "accuracy": float((predictions == y).mean()),
        "agreement": float((predictions == expected).mean()),
        "us_alone": _seconds(lambda: model.predict(one)) * 1e6,
        "us_per_row": _seconds(lambda: model.predict(X)) / len(X) * 1e6,
        "bytes": slim.machine_.cost.n_bytes,
    }


def _words(row: dict[str, Any]) -> tuple[str, ...]:
    shares = f"{row['accuracy']:.2%}", f"{row['agreement']:.2%}"
    times = f"{row['us_alone']:,.1f}", f"{row['us_per_row']:,.3f}"
    return row["name"], f"{row['n_vectors']:,}", *shares, *times, f"{row['bytes']:,}"


def _timed(make: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    made = make()
    return made, time.perf_counter() - start


def _seconds(call: Callable[[], object], budget: float = 0.5) -> float:
    """The shortest time of a call, among the calls that fit into a budget of seconds."""
    best, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best

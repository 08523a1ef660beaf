"""Learned metrics beside the fixed metric, boosted trees and a small neural network, at the same cost.

There are three kinds of cases. At a number of vectors: the learned metric, and the fixed one with as many vectors as
cost the same multiply-adds; C, the metric (scales, or a projection to a third of the dimensions) and the fixed γ are
chosen by three folds of the training rows. At a number of bytes: digits in the compiled int8 export, beside models
whose every number counts as one byte; their sizes were chosen on held-out training rows. And several sizes on one set,
for the picture in docs/learned-metric.md. Rows go to metric.csv as they are made, so that an interrupted run resumes;
tables go to metric.txt.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.runs import argument_parser, mean_and_error, publish, run_missing  # before NumPy: it sets the threads

# isort: split

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

import slimsvm
from lib.compiled import COMPILER, answers, link, run
from lib.metric_picture import draw
from lib.problems import has_data, load
from lib.report import Target, report_targets
from lib.sets import SETS
from tables import Row, read_csv

LEARNED, FIXED, TREES, NETWORK = "learned", "fixed", "LightGBM", "neural network"
COSTS = [10.0, 100.0, 1000.0]
WIDTHS = [0.3, 1.0, 3.0]  # of γ, as multiples of 1 / (d Var(X))
FOLDS = 3
LEAF_BYTES = 4  # of a leaf and its split: two for the feature, one for the threshold, one for the value
LEAF_BYTES_FLOAT = (
    10  # the same with threshold and value in float32, as the machines are counted at a number of vectors
)

Split = tuple[Any, Any, Any, Any]  # X, y, X_test, y_test


@dataclass(frozen=True)
class AtVectors:
    """A case at a number of vectors: what it draws, the task, and the largest mean loss that counts as reached.

    `loss` is the share of wrong labels, one minus R², or one minus the area under the ROC curve, by `task`.
    """

    draw: Callable[[int], Split]
    n_vectors: int
    repeats: int
    goal: float | None = None
    task: str = "classes"
    large: bool = False


@dataclass(frozen=True)
class AtBytes:
    """A case at a number of bytes: digits, the size of the learned machine, and the goal."""

    draw: Callable[[int], Split]
    n_bytes: int
    size: dict[str, int]
    repeats: int
    goal: float | None = None


def official(name: str, *, scale: bool) -> Callable[[int], Split]:
    """The official split of a set, whatever the seed."""

    def draw(seed: int) -> Split:
        data = load(name)
        X, X_test = (data[part].reshape(len(data[part]), -1).astype(float) for part in ("X_train", "X_test"))
        scaler = StandardScaler().fit(X) if scale else None
        if scaler is not None:
            X, X_test = scaler.transform(X), scaler.transform(X_test)
        return (
            X / (255 if name == "mnist" else 1),
            data["y_train"],
            X_test / (255 if name == "mnist" else 1),
            data["y_test"],
        )

    return draw


def drawn(name: str) -> Callable[[int], Split]:
    """A split of one of the sets of promise.py."""

    def draw(seed: int) -> Split:
        sample = SETS[name].draw(seed)
        return sample.X, sample.y, sample.X_test, sample.y_test

    return draw


def _scaled(X: Any, X_test: Any, y: Any, y_test: Any) -> Split:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def covtype(seed: int) -> Split:
    data = load("covtype")
    parts = train_test_split(data["X"].astype(float), data["y"], train_size=481_012, random_state=seed)
    return _scaled(*parts)


def abalone(seed: int) -> Split:
    """The number of rings, standardised; the sex as three columns."""
    data = load("abalone")
    X = np.hstack([np.eye(3)[data["X"][:, 0].astype(int)], data["X"][:, 1:]])
    return _scaled(*train_test_split(X, (data["y"] - 9.9) / 3.2, train_size=2784, random_state=seed))


def friedman(seed: int) -> Split:
    """Ten features, of which five matter, standardised."""
    X, y = make_friedman1(2500, n_features=10, noise=1.0, random_state=seed)
    return _scaled(X[:500], X[500:], (y[:500] - 14.4) / 5.0, (y[500:] - 14.4) / 5.0)


def normal_thyroids(seed: int) -> Split:
    """Only normal rows to train on; +1 for normal and −1 for others in the test part."""
    X, y, X_test, y_test = official("thyroid_ann", scale=True)(seed)
    return X[y == 2], y[y == 2], X_test, np.where(y_test == 2, 1, -1)


def small_digits(seed: int) -> Split:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, train_size=1200, stratify=y, random_state=seed)
    return X, y, X_test, y_test


KIB = 1024
CASES: dict[str, AtVectors | AtBytes] = {
    "thyroid_ann": AtVectors(official("thyroid_ann", scale=True), 8, 5, 0.025),
    "segment": AtVectors(drawn("segment"), 16, 5, 0.036),
    "ida_image": AtVectors(drawn("ida_image"), 12, 20, 0.029),
    "ida_german": AtVectors(drawn("ida_german"), 8, 10),
    "covtype": AtVectors(covtype, 200, 1, 0.12, large=True),
    "abalone": AtVectors(abalone, 10, 5, task="value"),
    "friedman1": AtVectors(friedman, 10, 5, task="value"),
    "thyroid, one class": AtVectors(normal_thyroids, 10, 5, task="inlier"),
    "mnist, 64 KiB": AtBytes(official("mnist", scale=False), 64 * KIB, {"p": 40, "m": 700, "features": 600}, 1, 0.0155),
    "mnist, 16 KiB": AtBytes(official("mnist", scale=False), 16 * KIB, {"p": 24, "m": 215, "features": 350}, 1, 0.025),
    "mnist, 2 KiB": AtBytes(official("mnist", scale=False), 2 * KIB, {"p": 7, "m": 47, "features": 138}, 1),
    "usps, 64 KiB": AtBytes(official("usps", scale=False), 64 * KIB, {"p": 40, "m": 900, "features": 256}, 3),
    "usps, 16 KiB": AtBytes(official("usps", scale=False), 16 * KIB, {"p": 24, "m": 250, "features": 256}, 3, 0.05),
    "usps, 2 KiB": AtBytes(official("usps", scale=False), 2 * KIB, {"p": 7, "m": 60, "features": 110}, 3),
}
QUICK = {"digits, 4 KiB": AtBytes(small_digits, 4 * KIB, {"p": 12, "m": 100, "features": 50}, 1)}
SIZES = (2, 3, 5, 8, 12, 20, 40)  # vectors of the picture
PICTURE = "thyroid_ann, sizes"


def main() -> None:
    """Run what is missing, then write the tables."""
    options = argument_parser(__doc__, "metric").parse_args()
    path, failed = options.output / "metric.csv", 0
    known = CASES if has_data() and not options.quick else QUICK
    if not options.draw:
        names = [name for name in known if not options.only or name in options.only]
        tasks = [(name, seed) for name in names for seed in range(min(known[name].repeats, options.repeats or 100))]
        if known is CASES and (not options.only or PICTURE in options.only):
            tasks += [(PICTURE, seed) for seed in range(5)]
        failed = run_missing(trial, tasks, ("case", "seed"), path, options.jobs)
    rows = read_csv(path)
    if rows:
        publish(table(rows), options.output / "metric.txt")
        picture(rows, options.output / "metric.png")
        report_targets(targets(rows), options.quick)
    raise SystemExit(failed > 0)


def trial(name: str, seed: int) -> list[Row]:
    """All models of a case, on one split."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    if name == PICTURE:
        return list(sizes(seed))
    case = (CASES | QUICK)[name]
    contest = at_bytes(case, seed) if isinstance(case, AtBytes) else at_vectors(case, seed)
    return [{"case": name, "seed": seed} | row for row in contest]


def sizes(seed: int) -> Iterator[Row]:
    """Errors of the fixed and the learned metric on thyroid, at several numbers of vectors, with the same C."""
    X, y, X_test, y_test = official("thyroid_ann", scale=True)(seed)
    for m in SIZES:
        for metric in ("fixed", "diagonal"):
            model = slimsvm.SparseLargeMarginClassifier(m, C=100.0, metric=metric, init="kmeans", random_state=seed)
            name = FIXED if metric == "fixed" else LEARNED
            yield {"case": PICTURE, "seed": seed} | fitted(name, model, X, y, X_test, y_test)


def at_vectors(case: AtVectors, seed: int) -> Iterator[Row]:
    """The learned metric, and what has about the same multiply-adds."""
    split = case.draw(seed)
    X, y = split[:2]
    d, q = X.shape[1], 1 if case.task != "classes" or len(np.unique(y)) == 2 else len(np.unique(y))
    first = fitted(LEARNED, learned(case, X, y, seed), *split, task=case.task)
    yield first
    affordable = max(case.n_vectors, int(first["multiply_adds"]) // (d + q))
    yield fitted(FIXED, fixed(case, X, y, affordable, seed), *split, task=case.task)
    if case.task == "inlier":
        return
    trees = LGBMClassifier if case.task == "classes" else LGBMRegressor
    yield fitted(TREES, trees(random_state=seed, n_jobs=1, verbose=-1), *split, task=case.task)
    network = MLPClassifier if case.task == "classes" else MLPRegressor
    steps = {"early_stopping": True, "max_iter": 30} if case.large else {"max_iter": 500}
    hidden = (max(2, int(first["multiply_adds"]) // (d + q)),)
    yield fitted(NETWORK, network(hidden_layer_sizes=hidden, random_state=seed, **steps), *split, task=case.task)


def machine(task: str, m: int, seed: int, **options: Any) -> Any:
    """An untrained sparse machine of a task."""
    if task == "inlier":
        options.pop("C", None)
        return slimsvm.SparseOneClassSVM(m, nu=0.1, init="kmeans", random_state=seed, **options)
    cls = slimsvm.SparseLargeMarginClassifier if task == "classes" else slimsvm.SparseLargeMarginRegressor
    return cls(m, init="kmeans", random_state=seed, **options)


def learned(case: AtVectors, X: Any, y: Any, seed: int) -> Any:
    """The learned metric; on small labelled sets its kind and C are chosen by cross-validation."""
    if case.task == "inlier":
        return machine(case.task, case.n_vectors, seed, metric="diagonal")
    if case.large:
        return machine(case.task, case.n_vectors, seed, metric="projection", C=10.0)
    costs = COSTS if case.task == "classes" else [1.0, 10.0, 100.0]
    some = {"metric": ["projection"], "n_components": [0.34], "C": costs}
    return searched(machine(case.task, case.n_vectors, seed), [{"metric": ["diagonal"], "C": costs}, some], X, y)


def fixed(case: AtVectors, X: Any, y: Any, m: int, seed: int) -> Any:
    """The fixed metric with m vectors; γ and C are chosen the same way, for large sets on 50,000 rows."""
    if case.task == "inlier":
        return machine(case.task, m, seed)
    scale = 1.0 / (X.shape[1] * X.var())
    if case.large:
        few = machine(case.task, m, seed, C=10.0, n_passes=5)
        chosen = searched(few, {"gamma": [scale, 4 * scale, 16 * scale]}, X[:50_000], y[:50_000])
        return clone(chosen).set_params(n_passes=None)
    costs = COSTS if case.task == "classes" else [1.0, 10.0, 100.0]
    return searched(machine(case.task, m, seed), {"C": costs, "gamma": [w * scale for w in WIDTHS]}, X, y)


def searched(model: Any, grid: Any, X: Any, y: Any) -> Any:
    """The model with the parameters that are best in cross-validation, untrained."""
    search = GridSearchCV(model, grid, cv=FOLDS, refit=False).fit(X, y)
    return clone(model).set_params(**search.best_params_)


def at_bytes(case: AtBytes, seed: int) -> Iterator[Row]:
    """The learned metric compiled from C, and rivals of the same bytes."""
    split = case.draw(seed)
    X, y = split[:2]
    d, q = X.shape[1], len(np.unique(y))
    model = slimsvm.SparseLargeMarginClassifier(
        case.size["m"],
        C=10.0,
        metric="projection",
        n_components=case.size["p"],
        max_features=case.size["features"],
        init="kmeans",
        solver="stochastic",
        random_state=seed,
    )
    yield compiled(LEARNED, model, *split)
    plain = slimsvm.SparseLargeMarginClassifier(
        max(q, case.n_bytes // (d + q) - 1), C=10.0, gamma=2.0 / (d * X.var()), init="kmeans", random_state=seed
    )
    yield compiled(FIXED, plain.set_params(solver="stochastic"), *split)
    leaves = 31 if case.n_bytes > 4 * KIB else 8
    rounds = max(1, case.n_bytes // (LEAF_BYTES * leaves * q))
    trees = LGBMClassifier(
        n_estimators=rounds, num_leaves=leaves, learning_rate=0.3, random_state=seed, n_jobs=1, verbose=-1
    )
    yield fitted(TREES, trees, *split) | {"n_bytes": rounds * leaves * q * LEAF_BYTES}
    hidden = max(1, (case.n_bytes - q) // (d + 1 + q))
    row = fitted(
        NETWORK,
        MLPClassifier(hidden_layer_sizes=(hidden,), early_stopping=True, max_iter=100, random_state=seed),
        *split,
    )
    yield row | {"n_bytes": hidden * (d + 1 + q) + q}


def fitted(name: str, model: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, task: str = "classes") -> Row:
    """One row: train the model, and measure its loss on the test part."""
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    if task == "inlier":
        loss = 1.0 - float(roc_auc_score(y_test > 0, model.decision_function(X_test)))
    else:
        loss = 1.0 - float(model.score(X_test, y_test))
    return cost(name, model) | {"loss": loss, "n_test": len(y_test), "seconds": seconds}


def compiled(name: str, model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> Row:
    """One row: train the model, export it to C in int8, compile it, and count the errors of the program."""
    row = fitted(name, model, X, y, X_test, y_test)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        done = slimsvm.export(model, "c", folder / "model.h", tables="int8_all", X=X[::10])
        text = '#include "model.h"\nint classify(const model_input *x);\n'
        (folder / "program.c").write_text(f"{text}int classify(const model_input *x) {{ return model_predict(x); }}\n")
        source, target = str(folder / "program.c"), str(folder / "program.o")
        run([*COMPILER, "-w", f"-I{folder}", "-c", source, "-o", target])
        program = link(folder, '#include "model.h"\n', "model_input", "model_quantise(v, k)", X.shape[1])
        labels = model.classes_[answers(program, X_test)]
    exported = {"loss": float(np.mean(labels != y_test)), "n_bytes": done.facts["n_bytes"]}
    return row | {"loss_in_double": row["loss"]} | exported


def cost(name: str, model: Any) -> Row:
    """What one answer costs, as far as it is known."""
    row: Row = {
        "model": name,
        "n_vectors": "",
        "n_dimensions": "",
        "n_features": "",
        "multiply_adds": "",
        "n_bytes": "",
    }
    row |= {"loss_in_double": "", "parameters": ""}
    if hasattr(model, "machine_"):
        found = model.machine_.cost
        row |= {
            key: getattr(found, key) for key in ("n_vectors", "n_dimensions", "n_features", "multiply_adds", "n_bytes")
        }
        row["parameters"] = f"metric={model.metric} C={getattr(model, 'C', '')} gamma={model.gamma}"
    elif hasattr(model, "coefs_"):
        row["multiply_adds"] = sum(weights.size for weights in model.coefs_)
        row["n_bytes"] = 4 * sum(values.size for values in (*model.coefs_, *model.intercepts_))
    elif hasattr(model, "booster_"):
        leaves = int(model.booster_.trees_to_dataframe()["split_feature"].isna().sum())
        row["n_bytes"] = LEAF_BYTES_FLOAT * leaves
    return row


def of(rows: Sequence[Row], case: str, model: str) -> list[Row]:
    return [row for row in rows if row["case"] == case and row["model"] == model]


def mean_loss(rows: Sequence[Row]) -> tuple[float, float]:
    """The mean loss in percent, and its standard error."""
    losses = [100 * float(row["loss"]) for row in rows]
    errors = [np.sqrt(loss * (100 - loss) / float(row["n_test"])) for loss, row in zip(losses, rows, strict=True)]
    return mean_and_error(losses, errors)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """A line for every case and model, then the sizes of the picture."""
    yield "Loss in %: wrong labels, 1 − R² (abalone, friedman1), 1 − area under the ROC curve (one class)"
    counted = f"{'vectors':>9}{'dimensions':>12}{'features':>10}{'multiply-adds':>15}{'bytes':>10}"
    yield f"  {'':<20}{'':<16}{'splits':>6}{counted}{'loss':>16}{'seconds':>9}"
    for case in (name for name in CASES | QUICK if of(rows, name, LEARNED)):
        for model in (LEARNED, FIXED, TREES, NETWORK):
            own = of(rows, case, model)
            if own:
                loss, error = mean_loss(own)
                counts = [
                    _mean(own, key) for key in ("n_vectors", "n_dimensions", "n_features", "multiply_adds", "n_bytes")
                ]
                widths = (9, 12, 10, 15, 10)
                shown = "".join(f"{text:>{width}}" for text, width in zip(counts, widths, strict=True))
                seconds = np.mean([float(row["seconds"]) for row in own])
                yield f"  {case:<20}{model:<16}{len(own):>6}{shown}{f'{loss:.2f} ± {error:.2f}':>16}{seconds:>9.1f}"
    picture = [row for row in rows if row["case"] == PICTURE]
    if picture:
        yield "\nthyroid_ann, wrong labels in % by the number of vectors: fixed, learned"
        for m in SIZES:
            both = [
                [r for r in picture if int(r["n_vectors"]) == m and r["model"] == model] for model in (FIXED, LEARNED)
            ]
            yield f"  {m:>4}{mean_loss(both[0])[0]:>8.2f}{mean_loss(both[1])[0]:>8.2f}"


def picture(rows: Sequence[Row], path: Path) -> None:
    """The errors by the number of vectors as a picture, if they have been measured."""
    lines = {"fixed metric": FIXED, "learned scales": LEARNED}
    found = {
        name: {m: [100 * float(r["loss"]) for r in of(rows, PICTURE, model) if int(r["n_vectors"]) == m] for m in SIZES}
        for name, model in lines.items()
    }
    if all(errors for by_size in found.values() for errors in by_size.values()):
        draw(found, path)


def _mean(rows: Sequence[Row], key: str) -> str:
    values = [float(row[key]) for row in rows if row[key] != ""]
    return f"{np.mean(values):,.0f}" if values else "–"


def targets(rows: Sequence[Row]) -> list[Target]:
    """The goals, and at 16 and 64 KiB fewer errors than every rival of the same bytes."""
    reached = []
    for name, case in CASES.items():
        own = of(rows, name, LEARNED)
        if not own:
            continue
        loss = mean_loss(own)[0]
        if case.goal is not None:
            reached.append(Target(f"{name}: at most {100 * case.goal:g} %", f"{loss:.2f} %", loss <= 100 * case.goal))
        if isinstance(case, AtBytes):
            most = max(int(row["n_bytes"]) for row in own)
            reached.append(Target(f"{name}: at most {case.n_bytes:,} bytes", f"{most:,}", most <= case.n_bytes))
            rivals = {model: mean_loss(of(rows, name, model))[0] for model in (FIXED, TREES, NETWORK)}
            best = min(rivals, key=lambda model: rivals[model])
            ahead = f"{name}: fewer errors than the rivals of the same bytes"
            reached.append(Target(ahead, f"{loss:.2f} % against {rivals[best]:.2f} % ({best})", loss < rivals[best]))
    return reached


if __name__ == "__main__":
    main()

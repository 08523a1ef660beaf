"""covtype with a learned metric beside Nystroem + LinearSVC and LightGBM; other tasks beside the steps of NumPy."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

import slimsvm
from lib.problems import has_data, load
from lib.report import Target
from lib.rivals import covtype, nystroem
from slimsvm.methods.large_margin import minibatch
from slimsvm.methods.large_margin.compiled_descent import make_descent
from slimsvm.methods.large_margin.descent import Descent

ROWS, VECTORS, PASSES = 481_012, 200, 8
GOAL, FASTER, SLOWER = 0.125, 15.0, 3.0
TASK_ROWS, TASK_PASSES = 100_000, 5


def timed_fit(model: Any, *data: Any) -> float:
    start = time.perf_counter()
    model.fit(*data)
    return time.perf_counter() - start


def metric_part(options: argparse.Namespace) -> Iterator[Target]:
    """Errors and seconds of training, one after another."""
    if not has_data() or options.quick:
        print("\ncovtype with a learned metric is left out (--quick, or no ../shared/data beside this checkout)")
        return
    from lightgbm import LGBMClassifier

    task = covtype(ROWS)
    X, y, X_test, y_test = task.splits[0]
    own = slimsvm.SparseLargeMarginClassifier(
        VECTORS, C=10.0, metric="projection", init="kmeans", n_passes=PASSES, random_state=0
    )
    models = {
        "slimsvm": own,
        "LightGBM": LGBMClassifier(n_jobs=2, random_state=0, verbose=-1),
        "Nystroem + LinearSVC": nystroem(VECTORS, task.parameters, 0),
    }
    print(f"\ncovtype: {ROWS:,} rows, {VECTORS} vectors, a full metric, {PASSES} passes")
    print(f"  {'':<22}  {'seconds':>8}  {'test error, %':>13}", flush=True)
    seconds, errors = {}, {}
    for name, model in models.items():
        seconds[name] = timed_fit(model, X, y)
        errors[name] = 1 - model.score(X_test, y_test)
        print(f"  {name:<22}  {seconds[name]:>8.1f}  {100 * errors[name]:>13.2f}", flush=True)
    error, faster = errors["slimsvm"], seconds["Nystroem + LinearSVC"] / seconds["slimsvm"]
    slower = seconds["slimsvm"] / seconds["LightGBM"]
    yield Target(f"covtype, learned metric: at most {GOAL:.1%}", f"{error:.2%}", error <= GOAL)
    yield Target(f"covtype: {FASTER:g} times faster than Nystroem + LinearSVC", f"{faster:.1f} ×", faster >= FASTER)
    yield Target(f"covtype: within {SLOWER:g} times LightGBM's time", f"{slower:.2f} ×", slower <= SLOWER)


def tasks_part(options: argparse.Namespace) -> Iterator[Target]:
    """Seconds and quality of the other tasks, with the steps of the core and with those of NumPy."""
    if not has_data():
        print("\nregression and one class are left out: no ../shared/data beside this checkout")
        return
    data = load("covtype")
    order = np.random.default_rng(0).permutation(len(data["y"]))[: 2 * (4000 if options.quick else TASK_ROWS)]
    X = StandardScaler().fit_transform(data["X"][order].astype(np.float64))
    n = len(X) // 2
    yield from compared(
        "elevation from the other features: R²",
        lambda: slimsvm.SparseLargeMarginRegressor(VECTORS, C=10.0, **common()),
        (X[:n, 1:], X[:n, 0]),
        lambda model: model.score(X[n:, 1:], X[n:, 0]),
    )
    yield from compared(
        "one class, ν = 0.1: share of new rows outside",
        lambda: slimsvm.SparseOneClassSVM(VECTORS, nu=0.1, **common()),
        (X[:n],),
        lambda model: float(np.mean(model.predict(X[n:]) < 0)),
    )


def common() -> dict[str, Any]:
    return {"solver": "stochastic", "n_passes": TASK_PASSES, "random_state": 0}


def compared(title: str, make: Any, data: tuple[Any, ...], judge: Any) -> Iterator[Target]:
    """Both ways to make steps, in the same run."""
    print(f"\n{title}; {len(data[0]):,} rows, {VECTORS} vectors, {TASK_PASSES} passes")
    print(f"  {'steps by':<10}  {'seconds':>8}  {'quality':>8}", flush=True)
    seconds = {}
    for name, kind in (("NumPy", Descent), ("the core", make_descent)):
        minibatch.make_descent = kind  # type: ignore[assignment]
        try:
            model = make()
            seconds[name] = timed_fit(model, *data)
        finally:
            minibatch.make_descent = make_descent
        print(f"  {name:<10}  {seconds[name]:>8.1f}  {judge(model):>8.3f}", flush=True)
    ratio = seconds["NumPy"] / seconds["the core"]
    yield Target(f"{title.split(':')[0]}: faster than with NumPy's steps", f"{ratio:.1f} ×", ratio > 1)

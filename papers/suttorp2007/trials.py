"""One trial: a run of one solver from one start, and what the machines of all its sizes are worth."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from common import Place, Row
from problems import data_of, machine_of, settings_of
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm.methods import ReducedSet
from slimsvm.methods.reduced_set.incremental import RESTARTS

IDLE = 1e-6  # of ρ²: a vector that lowers it by less does nothing
DRAWS = {"irprop", "fixed_point", "lbfgs"}  # solvers that start at random: the others give the same in every trial
REFINED = {"irprop", "fixed_point", "merge"}  # solvers that end, if asked, with a descent on all vectors


@dataclass(frozen=True)
class Task:
    """What to run, and where its SVM is."""

    set: str
    solver: str
    start: str
    refine: str
    trial: int
    place: Place


def tasks_of(name: str, place: Place) -> list[Task]:
    """Every trial of one set; those of one number are next to each other."""
    settings = settings_of(name, place.smoke)
    return [
        Task(name, solver, start, refine, trial, place)
        for trial in range(settings["trials"])
        for solver in settings["solvers"]
        if solver in DRAWS or trial == 0
        for start in (settings["starts"] if solver in DRAWS else ["none"])
        for refine in (settings["refines"] if solver in REFINED else ["none"])
        if start in ("random", "none") or refine == "none" or (solver, refine) == ("irprop", "irprop")
    ]


def run(task: Task) -> list[Row]:
    """The rows of one trial, one per size. `seconds` are those of the run; one incremental run gives all its sizes."""
    settings = settings_of(task.set, task.place.smoke)
    sizes = settings.get("sizes_of", {}).get(task.solver, settings["sizes"])
    together = [[m] for m in sizes] if task.solver == "lbfgs" else [sizes]
    return [row for some in together for row in _rows(task, some)]


def compressed(task: Task, sizes: list[int]) -> list[Any]:
    """The machines of the given sizes."""
    machine = _machine(task.set, task.place).machine_
    if task.solver in settings_of(task.set, task.place.smoke).get("sparse", ()):
        machine = replace(machine, points=csr_array(machine.points))
    options: dict[str, Any] = {"solver": task.solver, "refine": False if task.refine == "none" else task.refine}
    if task.start != "none":
        options["init"] = task.start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fixed points that get stuck: counted in the rows
        made: list[Any] = slimsvm.compress(
            machine, n_vectors=sizes, method=ReducedSet(**options), random_state=task.trial
        )
    return made


def svm_row(name: str, place: Place) -> Row:
    """The SVM itself, as a row like the others."""
    machine = _machine(name, place)
    row = {"set": name, "solver": "svm", "start": "none", "refine": "none", "trial": 0, "size": machine.n_vectors_}
    measured = {"rho2": 0.0, "relative": 0.0, **_worth(machine, name, place)}
    return row | measured | {"seconds": 0.0, "stuck": 0, "failed": 0, "idle": 0}


def _rows(task: Task, sizes: list[int]) -> list[Row]:
    begin = time.perf_counter()
    made = compressed(task, sizes)
    seconds = time.perf_counter() - begin
    rows = []
    for size, small in zip(sizes, made, strict=True):
        last, steps = small.history_[-1], [step for step in small.history_ if not step.get("refined")]
        row = {key: getattr(task, key) for key in ("set", "solver", "start", "refine", "trial")} | {"size": size}
        row |= {"rho2": last["rho2"], "relative": last["relative"], **_worth(small, task.set, task.place)}
        rows.append(row | {"seconds": seconds, **_troubles(steps)})
    return rows


def _troubles(steps: list[dict[str, Any]]) -> dict[str, int]:
    """Starts from which a fixed point lost its way, vectors for which no other start helped, and idle vectors."""
    stuck = [step.get("stuck", 0) for step in steps]
    rho2 = np.array([step["rho2"] for step in steps])
    idle = int(np.sum(rho2[1:] > (1.0 - IDLE) * rho2[:-1]))
    return {"stuck": sum(stuck), "failed": sum(count > RESTARTS for count in stuck), "idle": idle}


def _worth(machine: Any, name: str, place: Place) -> dict[str, float]:
    """Accuracies, and how far the vectors lie from the SVM's boundary: the median of its |f| over them."""
    X_train, y_train, X_test, y_test = data_of(name, place.smoke)
    depth = np.abs(_machine(name, place).decision_function(machine.vectors_))
    train, test = machine.score(X_train, y_train), machine.score(X_test, y_test)
    return {"train_accuracy": float(train), "test_accuracy": float(test), "depth": float(np.median(depth))}


@cache
def _machine(name: str, place: Place) -> Any:
    return machine_of(name, place)

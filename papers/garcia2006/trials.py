"""One fold of one partition: the full perceptron, and what every step of removal leaves of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import Row
from problems import SETTINGS, method_of, patterns, scaled
from sklearn.model_selection import StratifiedKFold

from slimsvm import PrunedPerceptronClassifier

TRAININGS = ("paper", "converged")


@dataclass(frozen=True)
class Task:
    """A partition of a set into folds, all of which are run; `training` is the paper's, or goes on to the optimum."""

    set: str
    scaling: str
    training: str
    partition: int
    smoke: bool


def tasks_of(name: str, smoke: bool) -> list[Task]:
    """Every partition in the scaling that agrees with the paper, trained in both ways; one in each of the others."""
    settings, own = method_of(smoke), SETTINGS["sets"][name]["scaling"]
    partitions = range(SETTINGS["sets"][name].get("partitions", settings["partitions"]))
    chosen = [Task(name, own, training, i, smoke) for training in TRAININGS for i in partitions]
    return chosen + [Task(name, other, "paper", 0, smoke) for other in settings["scalings"] if other != own]


def trainer(training: str, smoke: bool) -> PrunedPerceptronClassifier:
    """The classifier with the paper's settings."""
    settings = method_of(smoke)
    how = {"algorithm": "sk", "tol": None, "max_iter": settings["updates"]}
    if training == "converged":
        how = {"algorithm": "mdm", "tol": settings["tolerance"]}
    schedule = {"delta": settings["delta"], "delta_step": settings["delta_step"], "max_steps": settings["steps"]}
    return PrunedPerceptronClassifier(C=settings["C"], gamma=settings["gamma"], **how, **schedule)


def run(task: Task) -> list[Row]:
    """A row per fold and step; step 0 is the full perceptron."""
    X, y = patterns(task.set, task.partition, task.smoke)
    X = scaled(X, task.scaling)
    folds = StratifiedKFold(method_of(task.smoke)["folds"], shuffle=True, random_state=task.partition)
    about = {key: getattr(task, key) for key in ("set", "scaling", "training", "partition")}
    rows = []
    for fold, (train, test) in enumerate(folds.split(X, y)):
        for record, machine in trainer(task.training, task.smoke).path(X[train], y[train]):
            told = {key: record[key] for key in ("step", "factor", "n_support", "n_vectors", "validation_accuracy")}
            accuracy = float(np.mean(machine.predict(X[test]) == y[test]))
            rows.append({**about, "fold": fold, **told, "test_accuracy": accuracy, "gap": record["gap"]})
    return rows

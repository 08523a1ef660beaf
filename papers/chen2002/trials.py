"""Runs of one method on one split: a row per allowed number of pairs, or per size of a reduced set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Row
from problems import SETTINGS, SMOKE, Split, splits_of

import slimsvm
from slimsvm.methods.mirror.build import MirrorSettings, PairLimit, mirror_machine


@dataclass(frozen=True)
class Task:
    """One method on one split: preimage and choice of mirror points, or "svm" or "reduced_set" in their place."""

    split: Split
    preimage: str
    choice: str


def tasks_of(name: str, smoke: bool) -> list[Task]:
    """All runs on a set."""
    repeats = {("svm", "none"): 3, ("reduced_set", "none"): 1 if SETTINGS["sets"][name]["reduced_sizes"] else 0}
    repeats |= {(method["preimage"], method["choice"]): method["repeats"] for method in SETTINGS["runs"]["methods"]}
    splits = splits_of(name, smoke)
    return [Task(split, *way) for way, most in repeats.items() for split in splits if split.repeat < most]


def run(task: Task) -> list[Row]:
    """The rows of one task."""
    split = task.split
    X, y, _, _ = split.data()
    svm = split.svm()
    whole = slimsvm.compress(svm)
    if task.preimage == "svm":
        return [row_of(task, 0, 0, whole)]
    if task.preimage == "reduced_set":
        return reduced(task, svm)
    pairs = SMOKE["pairs"] if split.smoke else SETTINGS["runs"]["pairs"]
    settings = MirrorSettings(
        n_pairs=max(pairs),
        preimage=task.preimage,  # type: ignore[arg-type]
        choice=task.choice,  # type: ignore[arg-type]
        search=SETTINGS["runs"]["search"],
        n_candidates=None,
        n_samples=None,
    )
    limits = [PairLimit(n_pairs=allowed) for allowed in pairs]
    found = mirror_machine(whole.machine_, X, y, None, settings, np.random.default_rng(0), limits=limits)
    return [
        row_of(task, allowed, 0, slimsvm.estimator.wrap(made.machine))
        for allowed, made in zip(pairs, found, strict=True)
    ]


def reduced(task: Task, svm: Any) -> list[Row]:
    """Reduced sets of a few sizes, by the default solver, from several starts."""
    settings = SETTINGS["sets"][task.split.name]
    trials = SMOKE["reduced_trials"] if task.split.smoke else settings["reduced_trials"]
    most = len(svm.support_)
    sizes = [size for size in settings["reduced_sizes"] if size < most]
    rows = []
    for trial in range(trials):
        made = slimsvm.compress(svm, n_vectors=sizes, random_state=trial)
        rows += [row_of(task, size, trial, small) for size, small in zip(sizes, made, strict=True)]
    return rows


def row_of(task: Task, allowed: int, trial: int, machine: Any) -> Row:
    """What a machine is worth; `allowed` are pairs, or the size of a reduced set."""
    X, y, X_test, y_test = task.split.data()
    return {
        "set": task.split.name,
        "preimage": task.preimage,
        "choice": task.choice,
        "repeat": task.split.repeat,
        "fold": task.split.fold,
        "trial": trial,
        "allowed": allowed,
        "vectors": machine.n_vectors_,
        "train": 100 * float(machine.score(X, y)),
        "test": 100 * float(machine.score(X_test, y_test)),
    }

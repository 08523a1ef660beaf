"""How far the finding on banana depends on the SVM: the same question for all SVMs of the grid that may be the paper's.

The paper prints neither C nor γ, but the number of support vectors. Every SVM of the grid with about as many is taken,
whatever its accuracy, so that nobody chooses the one that agrees.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from common import Place, Row
from problems import SETTINGS, data_of, machine_of, settings_of
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import slimsvm
from slimsvm.methods import ReducedSet

WANTED = SETTINGS["machines"]


@dataclass(frozen=True)
class Candidate:
    """An SVM of the grid."""

    C: float
    gamma: float
    place: Place


def candidates(place: Place) -> list[Candidate]:
    """The whole grid of the set."""
    settings = settings_of(WANTED["set"], place.smoke)
    return [Candidate(C, gamma, place) for C, gamma in product(settings["C"], settings["gamma"])]


def run(candidate: Candidate) -> list[Row]:
    """A row per method, or none where the SVM has too few or too many support vectors to be the paper's."""
    smoke = candidate.place.smoke
    settings = settings_of(WANTED["set"], smoke)
    X, y, X_test, y_test = data_of(WANTED["set"], smoke)
    svc = SVC(C=candidate.C, gamma=candidate.gamma).fit(X.astype(np.float64), y)
    count = int(svc.n_support_.sum())
    if not smoke and abs(count - settings["paper_support_vectors"]) > WANTED["near"]:
        return []
    kept = machine_of(WANTED["set"], candidate.place)
    chosen = kept.n_vectors_ == count and kept.machine_.kernel.gamma == candidate.gamma
    whole = float(svc.score(X_test, y_test))
    known: Row = {"C": candidate.C, "gamma": candidate.gamma, "chosen": int(chosen), "support_vectors": count}
    size, trials = (settings["sizes"][-1], settings["trials"]) if smoke else (WANTED["size"], WANTED["trials"])
    rows = []
    for method in WANTED["methods"]:
        reached = [small.score(X_test, y_test) for small in _trials(svc, size, method, trials)]
        measured = {
            "test_accuracy_median": float(np.median(reached)),
            "share_as_good": float(np.mean(reached >= np.float64(whole))),
        }
        rows.append(known | method | {"size": size, "trials": len(reached), "svm_test_accuracy": whole} | measured)
    return rows


def _trials(svc: SVC, size: int, method: dict[str, str], trials: int) -> list[Any]:
    refine: Any = False if method["refine"] == "none" else method["refine"]
    settings: Any = ReducedSet(solver=method["solver"], init=method["start"], refine=refine)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [slimsvm.compress(svc, n_vectors=size, method=settings, random_state=trial) for trial in range(trials)]

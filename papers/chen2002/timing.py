"""Measured time: the SVM by scikit-learn and by slimsvm, and mirror machines of a few vectors, in one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import Row
from problems import SETTINGS, SMOKE, Split

import slimsvm
from slimsvm.methods import MirrorPoints

WANTED = SETTINGS["timing"]


def measure(smoke: bool) -> list[Row]:
    """Microseconds per row of each, the best of several rounds, and how many times faster than the SVM it is."""
    split = Split(WANTED["set"], 0, 0, smoke)
    X, y, X_test, _ = split.data()
    svm = split.svm()
    rows = SMOKE["rows"] if smoke else WANTED["rows"]
    data = np.ascontiguousarray(np.resize(X_test, (rows, X_test.shape[1])))
    machines: dict[str, Any] = {"scikit-learn SVC": svm, "slimsvm, all vectors": slimsvm.compress(svm)}
    for size in WANTED["vectors"]:
        method = MirrorPoints(n_candidates=None, n_samples=None)
        small = slimsvm.compress(svm, X, y, n_vectors=size, method=method, random_state=0)
        machines[f"mirror points, at most {size}"] = small
    best = dict.fromkeys(machines, np.inf)
    for _ in range(2 if smoke else WANTED["repeats"]):
        for name, machine in machines.items():
            begin = time.perf_counter()
            machine.predict(data)
            best[name] = min(best[name], time.perf_counter() - begin)
    base = best["slimsvm, all vectors"]
    return [
        {
            "machine": name,
            "vectors": len(svm.support_) if name == "scikit-learn SVC" else machines[name].n_vectors_,
            "microseconds_per_row": 1e6 * seconds / rows,
            "times_faster_than_slimsvm_with_all": base / seconds,
            "times_faster_than_scikit_learn": best["scikit-learn SVC"] / seconds,
        }
        for name, seconds in best.items()
    ]

"""`to_sklearn` of machines with a preparation: an equivalent Pipeline."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import slimsvm
from oracles.random_machines import random_machine
from oracles.random_preparations import CITIES, NAMES, random_preparation, random_rows
from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.libsvm import files
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.preparation import Lookup, Part, Preparation

pandas = pytest.importorskip("pandas")


def plain(preparation: Preparation) -> Preparation:
    """The same with no markers of missing numbers: scikit-learn's imputer of a marker refuses NaN."""

    def unmarked(part: Part) -> Part:
        return replace(part, steps=tuple(replace(s, marker=None) if hasattr(s, "marker") else s for s in part.steps))

    return replace(preparation, parts=tuple(unmarked(part) for part in preparation.parts))


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_pipeline_gives_the_scores_of_the_machine(seed: int, mixed: bool) -> None:
    rng = np.random.default_rng(seed)
    preparation = plain(random_preparation(rng, mixed))
    wishes: dict[str, Any] = {"head": "linear", "outputs": 1, "answer": ("classes", "value")[seed % 2], "kernel": "rbf"}
    wishes |= {"n_points_features": preparation.n_features, "input_map": "none", "calibration": "none", "gammas": False}
    made = replace(random_machine(rng, n_vectors=7, **wishes), preparation=preparation)
    model = slimsvm.to_sklearn(made)
    X = pandas.DataFrame(random_rows(rng, 40)).astype({"age": float, "income": float, "size": float})
    X["city"] = X["city"].astype(object).where(X["city"].notna(), np.nan)
    for one in (model, pickle.loads(pickle.dumps(model))):
        ask = one.decision_function if hasattr(one, "decision_function") else one.predict
        np.testing.assert_allclose(ask(X), np.ravel(made.decision(X)), rtol=0, atol=1e-9 * np.abs(made.head.coef).sum())
    if not mixed:
        assert tuple(model.feature_names_in_) == NAMES


def test_refusals() -> None:
    cities = Lookup(0, (0, 1, 2, 3), 4, categories=CITIES, unknown=0)
    head = LinearHead(np.ones((2, 1)), [0.0])
    made = KernelMachine(Rbf(1.0), np.eye(2, 4), head, Classes([0, 1]), preparation=Preparation(1, (cities,)))
    with pytest.raises(UnsupportedExportError, match="refuses the former alone"):
        slimsvm.to_sklearn(made)
    with pytest.raises(UnsupportedExportError, match="takes numbers, and this machine reads raw rows"):
        files(made, "m.model")

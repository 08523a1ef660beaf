"""skops, the safe alternative to pickle, keeps fitted estimators, also after they have predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm.methods import ReducedSet

sio = pytest.importorskip("skops.io")
X, Y = make_moons(120, noise=0.3, random_state=0)
SVM = SVC().fit(X, Y)
RESULTS = {
    "exact": slimsvm.compress(SVM),
    "sparse": slimsvm.compress(SVC().fit(sparse.csr_array(np.where(X > 0, X, 0.0)), Y)),
    "small": slimsvm.compress(SVM, n_vectors=5, random_state=0),
    "early exit": slimsvm.add_early_exit(slimsvm.compress(SVM, n_vectors=9, random_state=0), X, Y),
    "in a pipeline": slimsvm.compress(make_pipeline(StandardScaler(), SVC()).fit(X, Y)),
    "meta-estimator": slimsvm.CompressedClassifier(SVC(), n_vectors=5, method=ReducedSet(), random_state=0).fit(X, Y),
    "growing": slimsvm.GrowingSVC(random_state=0).fit(X, Y),
    "sparse margin": slimsvm.SparseLargeMarginClassifier(n_vectors=4, random_state=0).fit(X, Y),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_round_trip_after_a_prediction(name: str) -> None:
    model: Any = RESULTS[name]
    expected = model.decision_function(X)
    data = sio.dumps(model)
    again = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.decision_function(X), expected)
    machine = again[-1].machine_ if name == "in a pipeline" else again.machine_
    assert machine == (model[-1].machine_ if name == "in a pipeline" else model.machine_)
    with pytest.raises(ValueError, match="read-only"):
        machine.head.intercept[...] = 0.0
    if name == "growing":
        assert list(again.machines_) == list(model.machines_)
    if name in ("small", "meta-estimator"):
        assert again.report_ == model.report_

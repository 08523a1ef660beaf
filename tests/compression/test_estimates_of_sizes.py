"""A given size, or limits on costs alone: with labels, the report says what that loses on held-out samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR

from slimsvm import compress
from slimsvm.compression.candidates.cache import CandidateCache

X, Y = make_moons(150, noise=0.3, random_state=0)
SVM = SVC(C=2.0, gamma=1.0).fit(X, Y)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]
SELECTED = {"method": "selection", "random_state": 0}


@pytest.mark.parametrize(
    "asked",
    [{"n_vectors": 6}, {"n_vectors": [4, 8]}, {"max_bytes": 200}, {"max_latency_us": 1e6, "n_vectors": 6}],
    ids=lambda asked: ", ".join(asked),
)
def test_costs_alone(asked: dict[str, Any]) -> None:
    made = compress(SVM, X, Y, **asked, **SELECTED)
    for small in made if isinstance(made, list) else [made]:
        report = small.report_
        assert report.held_out == "5 cross-validation folds over 150 samples"
        assert -0.1 < report.estimate < 0.2
        assert report.standard_error > 0
        assert "Loss of accuracy on held-out samples: " in str(report)


@pytest.mark.parametrize("method", ["reduced_set", "reduced_set+refit"])
def test_methods_that_need_no_search(method: str) -> None:
    few, more = (compress(SVM, X, Y, n_vectors=m, method=method, random_state=0).report_ for m in (2, 30))
    assert few.disagreement > more.disagreement


@pytest.mark.parametrize(
    ("model", "y"),
    [(SVR().fit(X, VALUES), VALUES), (KernelRidge(kernel="rbf").fit(X, VALUES), VALUES), (OneVsRestClassifier(SVM), Y)],
    ids=["SVR", "KernelRidge", "OneVsRestClassifier"],
)
def test_other_models(model: Any, y: Any) -> None:
    small = compress(model.fit(X, y), X, y, n_vectors=10, method="reduced_set", random_state=0)
    assert small.report_.estimate is not None


def test_the_machines_that_chose_c_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates and probabilities make no further machines."""
    made, plain = [], CandidateCache.plain

    def counted(self: CandidateCache, method: str, m: int) -> Any:
        if (method, m) not in self._machines:
            made.append((method, m))
        return plain(self, method, m)

    monkeypatch.setattr(CandidateCache, "plain", counted)
    small = compress(SVM, X[:60], Y[:60], n_vectors=4, calibrate="sigmoid", random_state=0)
    assert small.predict_proba(X).shape == (150, 2)
    assert small.report_.held_out == "20 cross-validation folds over 60 samples"
    assert made.count((small.report_.method, 4)) == 1 + 20  # of all samples, of the folds


def test_nothing_is_held_out_without_labels_or_if_the_model_cannot_be_refitted() -> None:
    assert compress(SVM, X, n_vectors=6, **SELECTED).report_.estimate is None
    assert compress(SVM, n_vectors=6, random_state=0).report_.estimate is None
    assert compress(compress(SVM).machine_, X, Y, n_vectors=6, **SELECTED).report_.estimate is None
    two = np.r_[0:2, 2 + np.flatnonzero(Y[2:] != Y[0])[:1]]
    few = compress(SVC().fit(X[two], Y[two]), X[two], Y[two], n_vectors=1, **SELECTED)
    assert few.report_.estimate is None
    assert "nothing was held out" in few.report_.held_out

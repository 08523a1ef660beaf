"""Scores from counts are scikit-learn's, and only scorers that mean the same have them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer

from slimsvm.compression.validation.counts import Cells, score_of_counts


@pytest.mark.filterwarnings("ignore:y_pred contains classes", "ignore:A single label was found")
def test_balanced_accuracy_of_counts() -> None:
    rng = np.random.default_rng(0)
    names = np.array(["a", "b", "c", "d"])
    twin = score_of_counts(get_scorer("balanced_accuracy"))
    assert twin is not None
    for n in (1, 2, 5, 40):
        y, predicted = names[rng.integers(3, size=n)], names[rng.integers(4, size=n)].astype(object)
        cells = Cells.of(y, predicted)
        weights = rng.uniform(0.5, 2.0, size=(3, n))
        weights[2, y == y[0]] = 0.0  # a label that does not occur
        for row in weights[:2] if len(set(y)) == 1 else weights:
            expected = balanced_accuracy_score(y[row > 0], predicted[row > 0], sample_weight=row[row > 0])
            assert twin(cells, cells.sums(row)[None])[0] == pytest.approx(expected, rel=1e-12)


def test_other_scorers_have_no_twin() -> None:
    for scorer in (
        get_scorer("f1"),
        make_scorer(balanced_accuracy_score, adjusted=True),
        make_scorer(balanced_accuracy_score, greater_is_better=False),
        lambda model, X, y: 0.0,
    ):
        assert score_of_counts(scorer) is None

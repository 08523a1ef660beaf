"""Checkpoints: a training that is stopped anywhere and resumed ends with the same bytes; others are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import SparseLargeMarginClassifier, SparseLargeMarginRegressor, SparseOneClassSVM, storage
from slimsvm.data import make_rows, sample
from slimsvm.exceptions import FormatError
from slimsvm.methods.large_margin import checkpoint as checkpoints
from slimsvm.methods.large_margin import streaming
from slimsvm.methods.large_margin.descent import Descent

X, Y = make_moons(3000, noise=0.25, random_state=0)
CASES: dict[str, Any] = {
    "classes": (SparseLargeMarginClassifier, {}),
    "hinge, two starts": (SparseLargeMarginClassifier, {"loss": "hinge", "n_init": 2}),
    "metric": (SparseLargeMarginClassifier, {"metric": "projection", "max_features": 1, "standardize": True}),
    "values": (SparseLargeMarginRegressor, {}),
    "one class": (SparseOneClassSVM, {"metric": "diagonal"}),
}


class Stopped(Exception):
    """What a kill is in these tests."""


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "ROWS", 300)
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(streaming, "TOGETHER", 3)


def trained(case: str, path: Path | None) -> bytes:
    cls, parameters = CASES[case]
    model = cls(10, n_passes=6, random_state=3, checkpoint=path, **parameters)
    model.fit(make_rows(X, Y.astype(float) if cls is SparseLargeMarginRegressor else Y))
    return storage.dumps(model.machine_) + repr((model.objective_, model.gap_, model.history_)).encode()


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_training_gives_the_same_bytes(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained(case, None)
    path, step = tmp_path / "run.checkpoint", Descent.run
    rng, n_stops = np.random.default_rng(5), 0
    for _ in range(100):
        left = iter(range(int(rng.integers(1, 10)), -1, -1))

        def stopping(*arguments: Any, left: Any = left) -> float:
            if next(left, 0) == 0:
                raise Stopped
            return step(*arguments)

        monkeypatch.setattr(Descent, "run", stopping)
        try:
            found = trained(case, path)
            break
        except Stopped:
            n_stops += 1
    assert n_stops > 1
    assert found == whole
    monkeypatch.undo()
    monkeypatch.setattr(sample, "ROWS", 300)
    monkeypatch.setattr(streaming, "TOGETHER", 3)
    assert trained(case, path) == whole  # of a training that has ended, nothing is left to do


def test_checkpoints_of_other_trainings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    parameters: dict[str, Any] = {"n_vectors": 5, "n_passes": 2, "random_state": 0, "checkpoint": path}
    SparseLargeMarginClassifier(**parameters).fit(make_rows(X, Y))
    with pytest.raises(FormatError, match="it belongs to a training with other parameters, data or versions"):
        SparseLargeMarginClassifier(**parameters | {"C": 2.0}).fit(make_rows(X, Y))
    with pytest.raises(FormatError, match="belongs to a training with other"):
        SparseLargeMarginClassifier(**parameters).fit(make_rows(X[1:], Y[1:]))
    SparseLargeMarginClassifier(**parameters | {"verbose": 0, "n_jobs": 1}).fit(make_rows(X, Y))
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:300], b"", b"PK" + whole[2:], whole[:2000] + b"x" + whole[2001:]):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"checkpoint .* cannot be resumed: .* Delete it or name another file"):
            SparseLargeMarginClassifier(**parameters).fit(make_rows(X, Y))
    storage.write(SparseLargeMarginClassifier(5, random_state=0).fit(X, Y).machine_, path)
    with pytest.raises(FormatError, match="it is not a checkpoint"):
        SparseLargeMarginClassifier(**parameters).fit(make_rows(X, Y))


def test_a_checkpoint_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    SparseLargeMarginClassifier(5, n_passes=1, random_state=0, checkpoint=path).fit(X, Y)  # data in memory, too
    with pytest.raises(FormatError):
        storage.read(path)

"""Steps by the compiled core: the same as in NumPy for every map, loss and kind of rows, and with any threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from slimsvm import _core
from slimsvm.kernels import Rbf, make_kernel
from slimsvm.methods.large_margin import compiled_descent
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.compiled_descent import CompiledDescent, make_descent
from slimsvm.methods.large_margin.descent import DAMPING, DEAR, SELDOM, Descent, Scales
from slimsvm.methods.large_margin.metric import Placement, Pull

pytestmark = pytest.mark.skipif(not _core.available, reason="needs the compiled core")
SINGLE = np.dtype(np.float32)


class Case:
    """A random descent, and rows for its steps."""

    def __init__(
        self, n: int, d: int, p: int, m: int, q: int, map_: str = "none", copies: int = 1, *, pulled: bool = True
    ) -> None:
        rng = np.random.default_rng([n, d, p, m, q, copies])
        self.X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
        self.parts = [
            np.where(rng.random((copies * n, q)) < 0.5, 1.0, -1.0).astype(SINGLE),
            rng.uniform(0.5, 1.0, (copies * n, q)).astype(SINGLE),
            rng.uniform(0.5, 2.0, (copies * n, q)).astype(SINGLE),
        ]
        maps = {"none": None, "diagonal": rng.uniform(0.5, 1.5, d), "projection": rng.standard_normal((p, d)) / d**0.5}
        A = maps[map_]
        self.start, self.W = Placement(rng.standard_normal((m, p)), A), 0.3 * rng.standard_normal((m + 1, q))
        unit = None if A is None else rng.uniform(0.5, 1.0, d)
        self.scales = Scales(rng.uniform(0.0, 0.1, q), rng.uniform(0.001, 0.01, q), 1.0, unit, SINGLE)
        self.pull = Pull(A, rng.uniform(0.1, 1.0, d)) if A is not None and pulled else None
        self.order, self.kernel = rng.permutation(n), Rbf(0.5 / p)
        self.rates = rng.uniform(0.5, 1.0, n), rng.uniform(0.2, 1.0, n)

    def rows(self, X: Any = None, centre: Any = None) -> Batch:
        return Batch(self.X if X is None else X, *self.parts, centre)

    def made(self, kind: Any, loss: Any = "squared_hinge") -> Descent:
        descent: Descent = kind(self.kernel, self.start, self.W, self.scales, loss, self.pull)
        return descent

    def run(self, descent: Descent, rows: Batch, batch: int) -> float:
        steps = len(self.order) // batch
        return descent.run(rows, self.order[: steps * batch], batch, *(rate[:steps] for rate in self.rates))


def assert_same(one: Descent, other: Descent, tolerance: float = 1e-5) -> None:
    for a, b in (
        (one.place.Z, other.place.Z),
        (one.place.A, other.place.A),
        (one.W, other.W),
        (one.W_mean, other.W_mean),
        (one.vectors.mean, other.vectors.mean),
        (one.vectors.square, other.vectors.square),
    ):
        if a is None:
            assert b is None
        else:
            assert b is not None
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * float(np.abs(a).max()))


@pytest.mark.parametrize("map_", ["none", "diagonal", "projection"])
@pytest.mark.parametrize(
    ("loss", "copies", "q"), [("squared_hinge", 1, 1), ("hinge", 1, 10), ("squared_hinge", 2, 1), ("hinge", 2, 3)]
)
@pytest.mark.parametrize("sizes", [(13, 6, 9, 50), (54, 50, 70, 96), (1, 1, 1, 7), (17, 16, 15, 33), (40, 33, 32, 64)])
def test_steps_are_those_of_numpy(map_: str, loss: Any, copies: int, q: int, sizes: tuple[int, ...]) -> None:
    d, p, m, batch = sizes
    case = Case(3 * batch, d, p if map_ == "projection" else d, m, q, map_, copies)
    centre = case.X.mean(axis=0)
    plain, compiled = case.made(Descent, loss), case.made(CompiledDescent, loss)
    values = [case.run(each, case.rows(centre=centre), batch) for each in (plain, compiled)]
    assert values[1] == pytest.approx(values[0], rel=1e-5)
    assert_same(plain, compiled)
    assert not np.array_equal(plain.Z, case.start.Z.astype(SINGLE))


@pytest.mark.parametrize("map_", ["none", "diagonal", "projection"])
def test_rows_of_every_kind(map_: str) -> None:
    case = Case(200, 30, 10 if map_ == "projection" else 30, 20, 2, map_, pulled=False)
    first = case.made(CompiledDescent)
    case.run(first, case.rows(), 50)
    narrow = case.X.astype(SINGLE)
    for X in (narrow, sparse.csr_array(case.X), sparse.csr_array(narrow)):
        other = case.made(CompiledDescent)
        case.run(other, case.rows(X), 50)
        assert_same(first, other)


def test_sparse_rows_of_many_features_are_never_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(100, 30, 30, 20, 2)
    first, other = case.made(CompiledDescent), case.made(CompiledDescent)
    case.run(first, case.rows(sparse.csr_array(case.X)), 25)
    monkeypatch.setattr(compiled_descent, "NARROW", 10)
    case.run(other, case.rows(sparse.csr_array(case.X)), 25)
    assert_same(first, other)


@pytest.mark.parametrize("map_", ["none", "diagonal", "projection"])
def test_the_same_bits_for_any_number_of_threads(map_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(2000, 40, 20 if map_ == "projection" else 40, 100, 3, map_)
    made = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(_core, "threads", lambda n_jobs, work, threads=threads: threads)
        descent = case.made(CompiledDescent)
        value = case.run(descent, case.rows(), 100)
        made.append((value, descent.place, descent.W.tobytes()))
    for value, place, W in made[1:]:
        assert (value, W) == (made[0][0], made[0][2])
        assert np.array_equal(place.Z, made[0][1].Z)
        assert place.A is None or np.array_equal(place.A, made[0][1].A)


@pytest.mark.parametrize(("n", "m", "q", "copies"), [(33, 5, 1, 1), (600, 40, 3, 2), (1300, 70, 1, 1)])
def test_the_curvature_is_that_of_numpy_and_of_any_number_of_threads(
    n: int, m: int, q: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(n, 9, 6, m, q, "projection", copies)
    F = np.column_stack([case.kernel.gram(case.X @ case.start.A.T, case.start.Z), np.ones(n)])  # type: ignore[union-attr]
    sign, offset, cost = (part.reshape(copies, n, q) for part in case.parts)
    weight = np.maximum(np.sum(cost * (offset - sign * (F @ case.W) > 0), axis=0).mean(axis=1), DAMPING)
    expected = 2.0 / n * (F.T * weight) @ F
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(_core, "threads", lambda n_jobs, work, threads=threads: threads)
        found.append(case.made(CompiledDescent)._curvature(case.rows()))
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert all(np.array_equal(each, found[0]) for each in found)
    assert np.array_equal(found[0], found[0].T)


def test_dear_curvature_is_estimated_less_often() -> None:
    """The steps between two estimates take several times as long as one; but there are never more than `SELDOM`."""
    for m, p in ((3, 4), (200, 54), (1000, 28), (4000, 2)):
        case = Case(10, p, p, m, 1)
        steps = case.made(Descent)._worthwhile(4096, 256)
        estimate, step = m * m * (4096 + m), 256 * m * (4 * p + 6)
        assert steps <= SELDOM
        assert steps == SELDOM or (steps <= DEAR * estimate / step < steps + 1)


def test_a_run_in_parts_is_the_same_run() -> None:
    """With the curvature kept, two runs of three steps are one run of six."""
    case = Case(240, 8, 8, 12, 1)
    whole, parts = case.made(CompiledDescent), case.made(CompiledDescent)
    rows, (calm, warm) = case.rows(), case.rates
    total = whole.run(rows, case.order, 40, calm[:6], warm[:6])
    parts.refresh(rows.take(case.order, SINGLE))
    sums = parts.run(rows, case.order[:120], 40, calm[:3], warm[:3])
    parts.fetch()
    parts.push()
    sums += parts.run(rows, case.order[120:], 40, calm[3:6], warm[3:6])
    assert sums == pytest.approx(total)
    assert_same(whole, parts, 0.0)


def test_what_the_core_cannot_do_is_done_by_numpy() -> None:
    case = Case(50, 4, 4, 3, 1)
    double = Scales(case.scales.tilt, case.scales.ridge, 1.0, None, np.dtype(np.float64))
    assert type(make_descent(case.kernel, case.start, case.W, case.scales, "hinge")) is CompiledDescent
    assert type(make_descent(case.kernel, case.start, case.W, double, "hinge")) is Descent
    poly = make_kernel("poly", gamma=1.0, coef0=1.0, degree=2)
    assert type(make_descent(poly, case.start, case.W, case.scales, "hinge")) is Descent
    keeps = Pull(np.ones(4), np.ones(4), keeps_volume=True)
    mapped = Case(50, 4, 4, 3, 1, "diagonal")
    assert type(make_descent(case.kernel, mapped.start, case.W, mapped.scales, "hinge", keeps)) is Descent


def test_malformed_input_of_the_core_is_refused() -> None:
    case = Case(50, 4, 4, 3, 1)
    descent = case.made(CompiledDescent)
    case.run(descent, case.rows(), 25)
    with pytest.raises(ValueError, match="order names a row"):
        descent.run(case.rows(), np.arange(26, 76), 25, *(rate[:2] for rate in case.rates))
    broken = sparse.csr_array(case.X)
    broken.indices = broken.indices + 1
    with pytest.raises(ValueError, match="out of range"):
        case.run(descent, case.rows(broken), 25)

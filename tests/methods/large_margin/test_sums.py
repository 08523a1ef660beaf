"""Sums over rows: losses and their gradients by coefficients, vectors and map, by NumPy and by the compiled core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from slimsvm import _core
from slimsvm.kernels import Rbf, make_kernel
from slimsvm.methods.large_margin.batch import Batch
from slimsvm.methods.large_margin.compiled_descent import CompiledDescent, make_descent
from slimsvm.methods.large_margin.descent import Descent, Scales
from slimsvm.methods.large_margin.metric import Placement

LOSSES = [("squared_hinge", 0.0), ("hinge", 0.0), ("hinge", 0.3)]


class Case:
    """A random state and rows; `copies` as in a regression."""

    def __init__(self, n: int, d: int, p: int, m: int, q: int, map_: str = "none", copies: int = 1) -> None:
        rng = np.random.default_rng([n, d, p, m, q, copies])
        self.X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
        self.parts = [
            np.where(rng.random((copies * n, q)) < 0.5, 1.0, -1.0),
            rng.uniform(0.5, 1.0, (copies * n, q)),
            rng.uniform(0.5, 2.0, (copies * n, q)),
        ]
        maps = {"none": None, "diagonal": rng.uniform(0.5, 1.5, d), "projection": rng.standard_normal((p, d)) / d**0.5}
        self.place, self.W = Placement(rng.standard_normal((m, p)), maps[map_]), 0.3 * rng.standard_normal((m + 1, q))
        self.kernel: Any = Rbf(0.5 / p)
        self.q, self.unit = q, None if maps[map_] is None else np.ones(d)

    def rows(self, dtype: Any, X: Any = None) -> Batch:
        return Batch(self.X if X is None else X, *(part.astype(dtype) for part in self.parts))

    def descent(self, kind: Any, dtype: Any, loss: Any = "squared_hinge", smooth: float = 0.0) -> Descent:
        scales = Scales(np.full(self.q, 0.1), np.ones(self.q), 1.0, self.unit, np.dtype(dtype))
        made: Descent = kind(self.kernel, self.place, self.W, scales, loss)
        made.smooth = smooth
        return made


@pytest.mark.skipif(not _core.available, reason="needs the compiled core")
@pytest.mark.parametrize("map_", ["none", "diagonal", "projection"])
@pytest.mark.parametrize(("loss", "smooth"), LOSSES)
@pytest.mark.parametrize(("sizes", "copies", "q"), [((13, 6, 9), 1, 1), ((54, 50, 70), 1, 3), ((1, 1, 1), 2, 1)])
def test_the_core_gives_the_sums_of_numpy(
    map_: str, loss: Any, smooth: float, sizes: tuple[int, int, int], copies: int, q: int
) -> None:
    d, p, m = sizes
    case = Case(2500, d, p if map_ == "projection" else d, m, q, map_, copies)
    expected = case.descent(Descent, np.float64, loss, smooth).sums(case.rows(np.float64))
    compiled = case.descent(CompiledDescent, np.float32, loss, smooth)
    for X in (case.X, sparse.csr_array(case.X)):
        found = compiled.sums(case.rows(np.float32, X))
        assert found[0] == pytest.approx(expected[0], rel=2e-6)
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-5 * float(np.abs(other).max(initial=1e-30)))
        alone = compiled.evaluate(case.rows(np.float32, X))
        assert alone[0] == found[0]
        assert (alone[1] == found[1]).all()


@pytest.mark.skipif(not _core.available, reason="needs the compiled core")
def test_sums_have_the_same_bits_with_one_thread_and_with_many() -> None:
    case = Case(5000, 20, 20, 40, 2, "diagonal")
    made = case.descent(CompiledDescent, np.float32)
    many = made.sums(case.rows(np.float32))
    with _core.one_thread():
        one = made.sums(case.rows(np.float32))
        assert _core.threads(-1, 1e12) == 1
    for a, b in zip(many, one, strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()


@pytest.mark.parametrize(
    ("kernel", "map_"), [("rbf", "none"), ("poly", "none"), ("rbf", "diagonal"), ("rbf", "projection")]
)
@pytest.mark.parametrize(("loss", "smooth"), [("squared_hinge", 0.0), ("hinge", 0.3)])
def test_gradients_are_those_of_finite_differences(kernel: str, map_: str, loss: Any, smooth: float) -> None:
    case = Case(60, 5, 3 if map_ == "projection" else 5, 4, 2, map_)
    case.kernel = make_kernel(kernel, gamma=0.3, coef0=1.0, degree=2)
    rows = case.rows(np.float64)

    def value(Z: Any, A: Any, W: Any) -> float:
        scales = Scales(np.zeros(2), np.ones(2), 1.0, case.unit, np.dtype(np.float64))
        made = make_descent(case.kernel, Placement(Z, A), W, scales, loss)
        made.smooth = smooth
        return made.sums(rows)[0]

    given = [case.place.Z, case.place.A, case.W]
    _, by_W, by_Z, by_A = case.descent(Descent, np.float64, loss, smooth).sums(rows)
    rng = np.random.default_rng(0)
    for which, gradient in enumerate((by_Z, by_A, by_W)):
        if given[which] is None:
            assert gradient.size == 0
            continue
        direction = rng.standard_normal(gradient.shape)
        ahead, back = list(given), list(given)
        ahead[which], back[which] = given[which] + 1e-6 * direction, given[which] - 1e-6 * direction
        slope = (value(*ahead) - value(*back)) / 2e-6
        assert float(np.sum(gradient * direction)) == pytest.approx(slope, rel=1e-6)


def test_the_smooth_hinge_is_above_the_hinge_by_at_most_a_quarter_of_its_width() -> None:
    case = Case(200, 5, 5, 4, 2)
    rows = case.rows(np.float64)
    hinge = case.descent(Descent, np.float64, "hinge").sums(rows)[0]
    smooth = case.descent(Descent, np.float64, "hinge", 0.2).sums(rows)[0]
    assert hinge < smooth < hinge + 0.05 * float(rows.cost.sum())
    assert case.descent(Descent, np.float64, "hinge", 1e-12).sums(rows)[0] == pytest.approx(hinge)

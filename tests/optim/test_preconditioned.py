"""L-BFGS with a preconditioner: exact on quadratics, few evaluations, and an end on rounding errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slimsvm.optim.preconditioned import preconditioned_lbfgs
from slimsvm.optim.result import Status


def quadratic(n: int = 20) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    R = rng.standard_normal((n, n))
    H, best = R @ R.T + np.diag(np.logspace(0, 4, n)), rng.standard_normal(n)
    calls = []

    def objective(x: Any) -> tuple[float, Any]:
        calls.append(1)
        return 1.0 + 0.5 * float((x - best) @ H @ (x - best)), H @ (x - best)

    return objective, (H, best), calls


def test_the_inverse_hessian_needs_one_step() -> None:
    objective, (H, best), calls = quadratic()
    found = preconditioned_lbfgs(objective, np.zeros(20), lambda g: np.linalg.solve(H, g), tolerance=1e-12)
    np.testing.assert_allclose(found.x, best, atol=1e-8)
    assert found.status is Status.CONVERGED
    assert len(calls) == 2


def test_a_rough_preconditioner_needs_a_few() -> None:
    objective, (H, _), calls = quadratic()
    rough = np.diag(1.0 / np.diag(H))
    found = preconditioned_lbfgs(objective, np.zeros(20), lambda g: rough @ g, tolerance=1e-10, max_iter=100)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert len(calls) < 60


def test_limits() -> None:
    objective, _, _ = quadratic()
    found = preconditioned_lbfgs(objective, np.zeros(20), lambda g: 1e-6 * g, tolerance=0.0, max_iter=3)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 3
    uphill = preconditioned_lbfgs(objective, np.zeros(20), lambda g: 1e9 * g, tolerance=0.0)
    assert uphill.status is Status.CONVERGED
    assert np.array_equal(uphill.x, np.zeros(20))

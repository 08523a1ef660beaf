"""Machines to be reduced: every kernel of the package, one output and several, dense and CSR points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Kernel, Laplacian, Linear, Polynomial, Rbf, Sigmoid
from slimsvm.machine import KernelMachine
from slimsvm.methods.reduced_set.reduce import SOLVERS

# A kernel of each kind; those that have a feature space, are definite.
CASES: dict[str, Kernel] = {
    "rbf": Rbf(0.4),
    "laplacian": Laplacian(0.3),
    "poly": Polynomial(0.3, 1.0, 3),
    "linear": Linear(),
    "sigmoid": Sigmoid(0.2, 0.1),
}
MOVED = ("rbf", "poly")  # kernels whose vectors can be moved: with a gradient and a feature space
FORMS = [(1, False), (3, False), (1, True), (3, True)]
NAMED_SOLVERS = tuple(solver for solver in SOLVERS if solver != "auto")
# The solvers that accept each kernel; the linear kernel is solved exactly whatever the solver.
ACCEPTED = [
    (kernel, solver)
    for kernel in CASES
    for solver in NAMED_SOLVERS
    if solver == "select" or kernel == "linear" or kernel in MOVED
]


def form_id(form: tuple[int, bool]) -> str:
    """The name of a form in the tests' list."""
    return f"{form[0]}-{'csr' if form[1] else 'dense'}"


def points(rng: np.random.Generator, n: int, as_sparse: bool, d: int = 3) -> Any:
    """Distinct rows; as CSR, a third of the entries is zero."""
    X = rng.normal(size=(n, d))
    return sparse.csr_array(X * (rng.random((n, d)) < 0.67)) if as_sparse else X


def parent(
    kernel: str | Kernel = "rbf", outputs: int = 1, as_sparse: bool = False, n: int = 24, seed: int = 0, d: int = 3
) -> KernelMachine:
    """A machine of n points whose coefficients have both signs, some of them zero where there are several outputs."""
    rng = np.random.default_rng(seed)
    A = rng.choice([-1.0, 1.0], (n, outputs)) * rng.uniform(0.2, 1.0, (n, outputs))
    if outputs > 1:
        A *= rng.random(A.shape) < 0.7
        A[:, 0] += 0.1
    made = CASES[kernel] if isinstance(kernel, str) else kernel
    return KernelMachine(
        made, points(rng, n, as_sparse, d), LinearHead(A, rng.normal(size=outputs)), Value(flat=outputs == 1)
    )

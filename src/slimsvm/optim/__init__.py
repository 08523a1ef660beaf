"""Optimisers and solvers for arrays and functions. They know nothing about kernels and machines."""

from slimsvm.optim.irprop import irprop
from slimsvm.optim.lbfgs import lbfgs
from slimsvm.optim.linear import factor, forward_selection, pivoted_cholesky, solve_gram
from slimsvm.optim.result import Objective, Result, Status
from slimsvm.optim.threads import calm_blas, limited

__all__ = [
    "Objective",
    "Result",
    "Status",
    "calm_blas",
    "factor",
    "forward_selection",
    "irprop",
    "lbfgs",
    "limited",
    "pivoted_cholesky",
    "solve_gram",
]

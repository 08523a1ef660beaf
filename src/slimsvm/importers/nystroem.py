"""scikit-learn's Nystroem followed by a linear model, folded into one kernel expansion.

Nystroem maps x to φ = N k(x) with k(x) = [k(z_1, x), …, k(z_m, x)] and N its `normalization_` (m, m); a linear model
answers W φ + b. Together W N k(x) + b: one expansion with coef = (W N)ᵀ, which saves the m² of N per sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.heads import LinearHead
from slimsvm.importers import checks
from slimsvm.importers.base import is_exactly
from slimsvm.importers.ridge import pairwise_kernel
from slimsvm.kernels import Linear
from slimsvm.machine import KernelMachine


def is_nystroem(step: Any) -> bool:
    """Whether a Pipeline's step is a Nystroem; a subclass may transform in its own way."""
    return is_exactly(step, "Nystroem")


def can_fold(machine: KernelMachine) -> bool:
    """Whether the machine is linear in its input, with one linear head."""
    return isinstance(machine.kernel, Linear) and isinstance(machine.head, LinearHead)


def fold_nystroem(model: Any, linear: KernelMachine) -> KernelMachine:
    """The machine that does what `model`, a Nystroem, and then `linear`, a machine that `can_fold`, do."""
    checks.require_fitted(model)
    points = checks.matrix(model, "components_")
    m = points.shape[0]
    normalization = checks.numbers(model, "normalization_", (m, m))
    weights, intercept = _weights(linear)
    if len(weights) != m:
        raise ValueError(
            f"components_ of Nystroem must be {len(weights)}, the features of the model behind it. Got {m}. "
            f"{checks.REMEDY}"
        )
    head = LinearHead(normalization.T @ weights, intercept)
    kernel = pairwise_kernel(model, _parameters(model), points.shape[1])
    names = checks.feature_names(model)
    return replace(linear, kernel=kernel, points=points, head=head, gammas=None, input_map=None, feature_names=names)


def _weights(machine: KernelMachine) -> tuple[FloatArray, FloatArray]:
    """W (d, q) and b (q,) with scores = x @ W + b, through the input map x → A (x − a) + c where there is one."""
    W = np.asarray(machine.points.T @ machine.head.coef)
    intercept = machine.head.intercept
    if machine.input_map is None:
        return W, intercept
    A, a, c = machine.input_map.scale, machine.input_map.shift, machine.input_map.offset
    inner = A[:, None] * W if machine.input_map.is_diagonal else A.T @ W
    return inner, intercept + c @ W - a @ inner


def _parameters(model: Any) -> dict[str, Any]:
    """Nystroem's own parameters, and `kernel_params` for those that are None."""
    extra = model.kernel_params if isinstance(model.kernel_params, dict) else {}
    own = {key: getattr(model, key) for key in ("gamma", "coef0", "degree")}
    return {key: extra.get(key) if value is None else value for key, value in own.items()}

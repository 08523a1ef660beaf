"""scikit-learn's Nystroem followed by a linear model, fused into one kernel expansion.

Nystroem maps x to φ = N k(x) with k(x) = [k(z_1, x), …, k(z_m, x)] and N its `normalization_` (m, m). A linear model
computes W φ + b. Together they are W N k(x) + b, a kernel expansion with coef = (W N)ᵀ, which saves the m² products
with N for each sample.
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
    """Whether a step of a Pipeline is a Nystroem, and not a subclass, which may transform differently."""
    return is_exactly(step, "Nystroem")


def can_fuse(machine: KernelMachine) -> bool:
    """Whether the machine has a linear kernel and a linear head."""
    return isinstance(machine.kernel, Linear) and isinstance(machine.head, LinearHead)


def fuse_nystroem(model: Any, linear: KernelMachine) -> KernelMachine:
    """One machine for `model`, a Nystroem, followed by `linear`, a machine for which `can_fuse` is true."""
    checks.require_fitted(model)
    points = checks.matrix(model, "components_")
    m = points.shape[0]
    normalization = checks.numbers(model, "normalization_", (m, m))
    weights, intercept = _weights(linear)
    if len(weights) != m:
        raise ValueError(
            f"components_ of Nystroem must be {len(weights)}, the features of the next model. Got {m}. {checks.REMEDY}"
        )
    head = LinearHead(normalization.T @ weights, intercept)
    kernel = pairwise_kernel(model, _parameters(model), points.shape[1])
    names = checks.feature_names(model)
    return replace(linear, kernel=kernel, points=points, head=head, gammas=None, input_map=None, feature_names=names)


def _weights(machine: KernelMachine) -> tuple[FloatArray, FloatArray]:
    """W (d, q) and b (q,) with scores = x @ W + b, including the input map x → A (x − a) + c if there is one."""
    W = np.asarray(machine.points.T @ machine.head.coef)
    intercept = machine.head.intercept
    if machine.input_map is None:
        return W, intercept
    A, a, c = machine.input_map.scale, machine.input_map.shift, machine.input_map.offset
    inner = A[:, None] * W if machine.input_map.is_diagonal else A.T @ W
    return inner, intercept + c @ W - a @ inner


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters of a Nystroem; those that are None are taken from `kernel_params`."""
    extra = model.kernel_params if isinstance(model.kernel_params, dict) else {}
    own = {key: getattr(model, key) for key in ("gamma", "coef0", "degree")}
    return {key: extra.get(key) if value is None else value for key, value in own.items()}

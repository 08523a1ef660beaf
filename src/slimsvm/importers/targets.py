"""scikit-learn's TransformedTargetRegressor: its inverse transform becomes part of the machine.

A scaler of the targets becomes part of the coefficients. A NumPy function, such as the expm1 of log1p, becomes the
function of the answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slimsvm.answers import Value
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead
from slimsvm.importers import checks
from slimsvm.importers.affine import affine_map
from slimsvm.importers.base import Imported, ImportRequest, is_exactly, name_of
from slimsvm.preparation import FUNCTIONS


def import_transformed_target(model: Any, request: ImportRequest) -> Imported:
    """The regressor inside, whose values are transformed back."""
    checks.require_fitted(model)
    imported = request.inner(model.regressor_)
    machine, answer, step = imported.machine, imported.machine.answer, model.transformer_
    if not isinstance(answer, Value) or answer.function is not None or not isinstance(machine.head, LinearHead):
        raise UnsupportedModelError(f"{name_of(model)} can only be imported around a regression by sums of kernels.")
    flat = model._training_dim == 1 and machine.head.n_scores == 1
    if is_exactly(step, "FunctionTransformer"):
        answer = replace(answer, flat=flat, function=_function(model, step))
        return replace(imported, machine=replace(machine, answer=answer))
    found = affine_map(step)
    if found is None or not found.is_diagonal or found.n_features_out != machine.head.n_scores:
        raise UnsupportedModelError(
            f"transformer of {name_of(model)} must be a scaler without clipping, or functions of NumPy. Got "
            f"{name_of(step)}."
        )
    head = LinearHead(
        machine.head.coef / found.scale, (machine.head.intercept - found.offset) / found.scale + found.shift
    )
    return replace(imported, machine=replace(machine, head=head, answer=replace(answer, flat=flat)))


def _function(model: Any, step: Any) -> Any:
    """The name of the inverse function; None if it does nothing."""
    if step.inverse_func is None:
        return None
    for name, function in FUNCTIONS.items():
        if step.inverse_func is function and not step.inv_kw_args:
            return name
    shown = getattr(step.inverse_func, "__name__", "a function")
    raise UnsupportedModelError(
        f"inverse_func of {name_of(model)} must be one of NumPy's {', '.join(FUNCTIONS)}. Got {shown}."
    )

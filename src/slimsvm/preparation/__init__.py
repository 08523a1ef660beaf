"""The preparation of a machine: plain data that say how a row as it comes becomes numbers."""

from __future__ import annotations

from slimsvm.preparation.parts import PARTS, REFUSED, ZERO, Lookup, Numeric, Part
from slimsvm.preparation.prepared import Prepared
from slimsvm.preparation.record import Norm, Preparation
from slimsvm.preparation.steps import (
    FUNCTIONS,
    STEPS,
    Above,
    Clip,
    Fill,
    Function,
    Missing,
    Power,
    Quantiles,
    Scale,
    Step,
)

__all__ = [
    "FUNCTIONS",
    "PARTS",
    "REFUSED",
    "STEPS",
    "ZERO",
    "Above",
    "Clip",
    "Fill",
    "Function",
    "Lookup",
    "Missing",
    "Norm",
    "Numeric",
    "Part",
    "Power",
    "Preparation",
    "Prepared",
    "Quantiles",
    "Scale",
    "Step",
]

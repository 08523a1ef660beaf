"""Steps from a number to a number, entry by entry: what imputers, scalers and other transformers do to one column.

Every step computes in float64 with the same operations as scikit-learn, so that a value on the edge of a bin stays on
its side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from slimsvm._record import FloatArray, Record, frozen_array

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "arcsinh": np.arcsinh,
    "arctan": np.arctan,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "negative": np.negative,
    "reciprocal": np.reciprocal,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}
FunctionName = Literal[
    "abs", "arcsinh", "arctan", "cbrt", "cos", "exp", "expm1", "log", "log10", "log1p", "log2", "negative",
    "reciprocal", "sin", "sqrt", "square", "tanh",
]  # fmt: skip
PowerMethod = Literal["yeo-johnson", "box-cox"]
BOUND = 1e-7  # how close to the ends of its range QuantileTransformer takes a value for the end itself
NEARLY_ZERO = 1e-19  # an exponent below which scipy's box-cox is the logarithm
EPS = float(np.finfo(np.float64).eps)


class Step(Record):
    """A function of one number."""

    name: ClassVar[str]

    @abstractmethod
    def apply(self, x: FloatArray) -> FloatArray:
        """The function of every entry of x (n,)."""

    def of(self, x: float) -> float:
        """The function of one number, the same as in `apply`."""
        return float(self.apply(np.array([x]))[0])


@dataclass(frozen=True, eq=False)
class Fill(Step):
    """Replaces missing numbers by a value; missing are NaN, or the numbers that equal the marker."""

    name = "fill"
    value: float
    marker: float | None = None

    def apply(self, x: FloatArray) -> FloatArray:
        return np.where(np.isnan(x) if self.marker is None else x == self.marker, self.value, x)

    def of(self, x: float) -> float:
        return self.value if (x != x if self.marker is None else x == self.marker) else x


@dataclass(frozen=True, eq=False)
class Missing(Step):
    """1 for a missing number, as in `Fill`, else 0."""

    name = "missing"
    marker: float | None = None

    def apply(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.isnan(x) if self.marker is None else x == self.marker, dtype=np.float64)

    def of(self, x: float) -> float:
        return float(x != x if self.marker is None else x == self.marker)


@dataclass(frozen=True, eq=False)
class Scale(Step):
    """(x − shift) / divisor · factor + offset."""

    name = "scale"
    shift: float = 0.0
    divisor: float = 1.0
    factor: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not all(np.isfinite(v) for v in (self.shift, self.divisor, self.factor, self.offset)) or not self.divisor:
            raise ValueError("The numbers of Scale must be finite, and its divisor must not be zero.")

    def apply(self, x: FloatArray) -> FloatArray:
        return (x - self.shift) / self.divisor * self.factor + self.offset

    def of(self, x: float) -> float:
        return (x - self.shift) / self.divisor * self.factor + self.offset


@dataclass(frozen=True, eq=False)
class Clip(Step):
    """The nearest number between two bounds."""

    name = "clip"
    lower: float
    upper: float

    def apply(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.clip(x, self.lower, self.upper))

    def of(self, x: float) -> float:
        return self.lower if x < self.lower else self.upper if x > self.upper else x


@dataclass(frozen=True, eq=False)
class Above(Step):
    """1 above a threshold, else 0; NaN stays NaN."""

    name = "above"
    threshold: float

    def apply(self, x: FloatArray) -> FloatArray:
        return np.where(np.isnan(x), x, x > self.threshold)

    def of(self, x: float) -> float:
        return x if x != x else float(x > self.threshold)


@dataclass(frozen=True, eq=False)
class Function(Step):
    """A function of NumPy, by its name."""

    name = "function"
    function: FunctionName

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise ValueError(f"function must be one of {', '.join(FUNCTIONS)}. Got {self.function!r}.")

    def apply(self, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(FUNCTIONS[self.function](x))

    def of(self, x: float) -> float:
        with np.errstate(all="ignore"):
            return float(FUNCTIONS[self.function](np.float64(x)))


@dataclass(frozen=True, eq=False)
class Power(Step):
    """The power transform of Yeo and Johnson, or of Box and Cox."""

    name = "power"
    method: PowerMethod
    exponent: float

    def apply(self, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            if self.method == "box-cox":
                return _box_cox(x, self.exponent)
            above = _power(np.where(x >= 0, x, 0.0), self.exponent)
            below = -_power(np.where(x < 0, -x, 0.0), 2.0 - self.exponent)
            return np.where(np.isnan(x), x, np.where(x >= 0, above, below))


def _power(x: FloatArray, exponent: float) -> FloatArray:
    """((x + 1)^λ − 1) / λ, or log(x + 1) for λ = 0."""
    logs = np.log1p(x)
    return logs if abs(exponent) < EPS else np.expm1(exponent * logs) / exponent


def _box_cox(x: FloatArray, exponent: float) -> FloatArray:
    """(x^λ − 1) / λ, or log x for λ = 0."""
    logs = np.log(x)
    return np.asarray(logs if abs(exponent) < NEARLY_ZERO else np.expm1(exponent * logs) / exponent)


@dataclass(frozen=True, eq=False)
class Quantiles(Step):
    """The share of training values below x, by interpolation between quantiles; or that share's normal deviate.

    Parameters
    ----------
    quantiles : (k,), increasing.
    references : (k,), their shares, from 0 to 1.
    normal : whether the result is the deviate of the normal distribution.
    """

    name = "quantiles"
    quantiles: FloatArray
    references: FloatArray
    normal: bool = False

    def __post_init__(self) -> None:
        for name in ("quantiles", "references"):
            object.__setattr__(self, name, frozen_array(getattr(self, name)))
        if self.quantiles.ndim != 1 or not len(self.quantiles) or self.quantiles.shape != self.references.shape:
            raise ValueError("quantiles and references of Quantiles must be vectors of one length.")

    def apply(self, x: FloatArray) -> FloatArray:
        q, r = self.quantiles, self.references
        reach = BOUND if self.normal else 0.0
        with np.errstate(invalid="ignore"):
            lowest = x - reach < q[0] if self.normal else x == q[0]
            highest = x + reach > q[-1] if self.normal else x == q[-1]
            share = 0.5 * (np.interp(x, q, r) - np.interp(-x, -q[::-1], -r[::-1]))
        share = np.where(highest, 1.0, share)
        share = np.where(np.isnan(x), x, np.where(lowest, 0.0, share))
        if not self.normal:
            return share
        from scipy.special import ndtri

        ends = ndtri(BOUND - np.spacing(1)), ndtri(1 - (BOUND - np.spacing(1)))
        return np.asarray(np.clip(ndtri(share), *ends))


STEPS: dict[str, type[Step]] = {
    cls.name: cls for cls in (Fill, Missing, Scale, Clip, Above, Function, Power, Quantiles)
}


def applied(steps: tuple[Step, ...], x: FloatArray) -> FloatArray:
    """All steps, one after another."""
    for step in steps:
        x = step.apply(x)
    return x

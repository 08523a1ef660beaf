"""How candidates are named: a method, and behind it what is special about a machine of it.

":9" stands for a learned map of 9 dimensions, "~2" for twice the γ of a fixed metric or twice the penalty on a learned
one, "@0.3" for coefficients that use 0.3 times the model's C, and "+early_exit" for early exit. They come in this
order.
"""

from __future__ import annotations

EARLY_EXIT = "+early_exit"


def in_dimensions(method: str, p: int) -> str:
    """The name of a method whose learned map has p dimensions."""
    return f"{plain_method(method)}:{p}"


def with_share(name: str, share: float) -> str:
    """The name of a candidate whose coefficients use a share of the model's C."""
    return f"{without_share(name)}@{share:g}" if share != 1.0 else without_share(name)


def without_share(name: str) -> str:
    """The name of the same candidate with the model's own C."""
    return name.removesuffix(EARLY_EXIT).partition("@")[0] + (EARLY_EXIT if name.endswith(EARLY_EXIT) else "")


def with_factor(name: str, factor: float) -> str:
    """The name of a candidate with a multiple of its γ or of its penalty, and the model's own C."""
    return f"{_without_factor(name)}~{factor:g}"


def plain_method(name: str) -> str:
    """The method alone."""
    return _without_factor(name).partition(":")[0]


def dimensions_of(name: str) -> int | None:
    """The dimensions in a name; None if it leaves them to the method."""
    found = _without_factor(name).partition(":")[2]
    return int(found) if found else None


def factor_of(name: str) -> float:
    """The factor of γ or of the penalty."""
    return float(without_share(name).removesuffix(EARLY_EXIT).partition("~")[2] or 1.0)


def _without_factor(name: str) -> str:
    return without_share(name).removesuffix(EARLY_EXIT).partition("~")[0]


def share_of(name: str) -> float:
    """The share of the model's C."""
    return float(name.removesuffix(EARLY_EXIT).partition("@")[2] or 1.0)


def reported_method(name: str) -> str:
    """The method with its early exit, as reports show it: dimensions and C are said elsewhere."""
    return plain_method(name) + (EARLY_EXIT if name.endswith(EARLY_EXIT) else "")

"""Names of the numbers that a preparation makes of the columns of a table."""

from __future__ import annotations

from slimsvm.preparation.parts import Lookup, Part
from slimsvm.preparation.record import Preparation
from slimsvm.preparation.steps import Missing


def number_names(preparation: Preparation) -> list[str]:
    """A name for each number that the machine gets: of its column, and of its category or bin."""
    if preparation.mixing is not None:
        return [f"mixture {i}" for i in range(preparation.n_features)]
    return [name for part in preparation.parts for name in _names(part, _column(preparation, part))]


def _column(preparation: Preparation, part: Part) -> str:
    return f"column {part.column}" if preparation.names is None else preparation.names[part.column]


def _names(part: Part, column: str) -> list[str]:
    if not isinstance(part, Lookup):
        return [f"{column} is missing" if any(isinstance(step, Missing) for step in part.steps) else column]
    if part.table is not None:
        return [column] if part.width == 1 else [f"{column}, number {i}" for i in range(part.width)]
    return [_slot_name(part, column, slot) for slot in range(part.width)]


def _slot_name(lookup: Lookup, column: str, slot: int) -> str:
    """The category of a one-hot number; "other" for several, or for unknown ones."""
    codes = [code for code, row in enumerate(lookup.rows) if row == slot]
    if lookup.categories is None:
        return f"{column}, bin {', '.join(map(str, codes))}"
    if len(codes) == 1 and lookup.unknown != slot:
        return f"{column} = {lookup.categories[codes[0]]}"
    return f"{column} is missing" if not codes and lookup.missing == slot else f"{column} = other"

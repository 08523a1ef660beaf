"""Which columns of a table are features, in what order, and which column is the target."""

from __future__ import annotations

from dataclasses import dataclass

from slimsvm.data.files.base import Wanted
from slimsvm.exceptions import DataError

USUAL_TARGETS = ("target", "label", "class", "y")
SHOWN = 8  # names in a sentence


@dataclass(frozen=True)
class Choice:
    """Column numbers of the features in the model's order, their names, column number of the target, and notes."""

    features: list[int]
    target: int | None
    names: tuple[str, ...] | None
    notes: tuple[str, ...] = ()


def choose(source: str, header: tuple[str, ...] | None, n_columns: int, wanted: Wanted) -> Choice:
    """The columns that `wanted` asks for; DataError names missing or extra ones."""
    if header is not None:
        _require_distinct(source, header)
    left_out = {_place(source, spec, header, n_columns) for spec in wanted.ignore}
    target = _target(source, header, n_columns, wanted, left_out)
    if header is not None and wanted.names is not None:
        return _by_name(source, header, wanted.names, target, left_out)
    n_features = n_columns - len(left_out if target is None else {*left_out, target})
    if not n_features:
        raise DataError(f"{source} has no feature columns.")
    if wanted.n_features is not None and n_features != wanted.n_features:
        raise DataError(_wrong_number(source, n_features, wanted, target))
    features = [i for i in range(n_columns) if i != target and i not in left_out]
    return Choice(features, target, None if header is None else tuple(header[i] for i in features))


def listed(names: list[str] | tuple[str, ...]) -> str:
    """The first few names, for a sentence."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def _by_name(
    source: str, header: tuple[str, ...], names: tuple[str, ...], target: int | None, left_out: set[int]
) -> Choice:
    places = {name: i for i, name in enumerate(header) if i not in left_out}
    missing = [name for name in names if name not in places]
    if missing:
        raise DataError(
            f"{source} has no column {listed(missing)}, which the model was trained on. "
            f"It has {listed(header)}. The argument header=False assigns columns by position."
        )
    features = [places[name] for name in names]
    if target in features:
        raise DataError(f"The argument target of {source} is {header[target]!r}, a feature of the model.")
    unused = [name for i, name in enumerate(header) if i not in {*features, target, *left_out}]
    notes = (f"{source}: columns that the model does not know are left out: {listed(unused)}.",) if unused else ()
    return Choice(features, target, names, notes)


def _target(
    source: str, header: tuple[str, ...] | None, n_columns: int, wanted: Wanted, left_out: set[int]
) -> int | None:
    if wanted.target is not None:
        return _place(source, wanted.target, header, n_columns)
    usual = [i for i, name in enumerate(header or ()) if name.lower() in USUAL_TARGETS and i not in left_out]
    usual = [i for i in usual if wanted.names is None or header is None or header[i] not in wanted.names]
    n_others = n_columns - len(left_out)
    is_too_many = wanted.names is not None or wanted.n_features in (None, n_others - 1)
    if len(usual) == 1 and (wanted.needs_target or is_too_many):
        return usual[0]
    if not wanted.needs_target:
        return None
    known = f"Its columns are {listed(header)}" if header else f"It has {n_columns} columns and no header"
    raise DataError(f"{source}: which column is the target? {known}. Name the target column with the argument target.")


def _place(source: str, spec: str, header: tuple[str, ...] | None, n_columns: int) -> int:
    """The number of a column that is given by its name, or by its number from 0, or from −1 backwards."""
    if header is not None and spec in header:
        return header.index(spec)
    try:
        place = int(spec)
    except ValueError:
        have = f"It has {listed(header)}." if header else "It has no header: give a column number, from 0."
        raise DataError(f"{source} has no column {spec!r}. {have}") from None
    if not -n_columns <= place < n_columns:
        raise DataError(f"{source} has no column {place}: it has {n_columns}, numbered from 0.")
    return place % n_columns


def _require_distinct(source: str, header: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in header:
        if name in seen:
            raise DataError(f"{source} has more than one column named {name!r}.")
        seen.add(name)


def _wrong_number(source: str, found: int, wanted: Wanted, target: int | None) -> str:
    advice = ""
    if target is None and found > (wanted.n_features or 0):
        advice = " Name the target column with the argument target, and columns to leave out with the argument ignore."
    beside = "" if target is None else " besides the target"
    return f"{source} has {found} columns{beside}; the model takes {wanted.n_features}.{advice}"

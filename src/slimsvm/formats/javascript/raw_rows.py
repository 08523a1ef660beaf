"""The preparation of a machine as JavaScript data; `runtime/raw_rows.js` reads rows with it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from slimsvm.formats.javascript.literals import Code, exact, literal, table
from slimsvm.preparation import Lookup, Part, Preparation, Quantiles, Step
from slimsvm.tables import reads_text


def uses_quantiles(preparation: Preparation) -> bool:
    """Whether a step needs quantiles."""
    return any(isinstance(step, Quantiles) for part in preparation.parts for step in part.steps)


def constants(preparation: Preparation) -> dict[str, Any]:
    """The constants that describe the preparation."""
    mixing = preparation.mixing
    mixed: dict[str, Any] | None = None
    if mixing is not None:
        mixed = {name: table(exact(getattr(mixing, name).ravel())) for name in ("shift", "scale", "offset")}
        mixed["isDiagonal"] = mixing.is_diagonal
    return {
        "N_COLUMNS": preparation.n_columns,
        "WIDTH": preparation.width,
        "PARTS": [_part(part) for part in preparation.parts],
        "MIXING": mixed,
        "NORMS": [[norm.kind, norm.start, norm.stop] for norm in preparation.norms],
    }


def _part(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {
        "column": part.column,
        "width": part.n_numbers,
        "steps": [_step(step) for step in part.steps],
    }
    if not isinstance(part, Lookup):
        return found
    if part.edges is not None:
        found |= {"rows": part.rows, "edges": table(exact(part.edges))}
    else:
        assert part.categories is not None
        keys = part.categories.tolist()
        keys = keys if reads_text(part) else [float(key) for key in keys]
        found["rows"] = Code(f"new Map({literal(list(zip(keys, part.rows, strict=True)))})")
    found |= {"isText": reads_text(part), "missing": part.missing, "unknown": part.unknown}
    if part.table is not None:
        found["table"] = table(exact(part.table.ravel()))
    return found


def _step(step: Step) -> list[Any]:
    """The name of a step and its settings, in order."""
    settings = (getattr(step, field.name) for field in fields(step))  # type: ignore[arg-type]
    return [step.name, *(table(exact(one)) if isinstance(one, np.ndarray) else one for one in settings)]

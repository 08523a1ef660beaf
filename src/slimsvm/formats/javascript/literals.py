"""Values and tables as JavaScript text. Text from users is escaped, so that it cannot end a string or a script."""

from __future__ import annotations

import base64
import json
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNSAFE = re.compile(r"[<>&`$]")  # besides what JSON escapes: the end of a <script>, templates
PLAIN = re.compile(r"[^A-Za-z0-9 _.,:;()+=%-]")
TYPES = {"f8": "Float64", "f4": "Float32", "i2": "Int16", "u2": "Uint16", "i1": "Int8", "u1": "Uint8"}
TYPES |= {"i4": "Int32", "u4": "Uint32"}


def string(text: str) -> str:
    """A string literal in ASCII, which is safe inside a <script> of a page too."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=True))


def comment(text: str) -> str:
    """Text for a comment, in which all characters that could end the comment are replaced."""
    return PLAIN.sub("_", text)


def literal(value: Any) -> str:
    """Nested lists, dicts with identifiers as keys, strings, numbers, booleans and None, as JavaScript."""
    if isinstance(value, Code):
        return value.text
    if value is None or isinstance(value, (bool, np.bool_)):
        return {None: "null", True: "true", False: "false"}[None if value is None else bool(value)]
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return _number(float(value))
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key}: {literal(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(literal(item) for item in value) + "]"


class Code:
    """Text that is JavaScript already."""

    def __init__(self, text: str) -> None:
        self.text = text


def _number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 and value != 0 else repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def table(values: NDArray[Any], *further: NDArray[Any]) -> Code:
    """A call of the module's `table`; `further` are the steps and offsets of integers."""
    kind = values.dtype.str[1:]
    data = base64.b64encode(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()).decode()
    rest = "".join(f", {table(exact(one)).text}" for one in further)
    return Code(f'table("{TYPES[kind]}", "{data}"{rest})')


def exact(values: Any) -> NDArray[Any]:
    """Numbers in the narrowest type that holds them exactly."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        return array.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), array) else array.astype(np.float64)

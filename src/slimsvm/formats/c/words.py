"""Numbers and names as C text. Text from users is escaped, so that it cannot end a string, comment or identifier."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.exceptions import UnsupportedExportError
from slimsvm.tables import Table

C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
}
LONGEST_PREFIX = 40
PLAIN = re.compile(r"[^A-Za-z0-9 _.,:;()+=%<>-]")


def prefix_of(name: str) -> str:
    """A C identifier made from a file name; other characters than ASCII letters and digits become underscores."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", name.rsplit(".", 1)[0]).strip("_")[:LONGEST_PREFIX]
    return stem if stem[:1].isalpha() else f"model_{stem}".rstrip("_")


def check_prefix(prefix: Any) -> None:
    """Raise ValueError unless the prefix can start a C identifier."""
    if not isinstance(prefix, str) or not re.fullmatch(rf"[A-Za-z][A-Za-z0-9_]{{0,{LONGEST_PREFIX - 1}}}", prefix):
        raise ValueError(
            f"prefix of the C export must be at most {LONGEST_PREFIX} letters, digits and underscores, starting with a "
            f"letter. Got {prefix!r}."
        )


def plain(text: str) -> str:
    """Text for a comment, in which all characters that could end the comment are replaced."""
    return PLAIN.sub("_", text)


def string(text: str) -> str:
    """A string literal. Bytes that have a meaning in C or in the templates of this package are octal numbers."""
    data = text.encode("utf-8", "replace")
    safe = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?$`' else f"\\{b:03o}" for b in data)
    return '"' + re.sub("(?<=[mM])_", r"\\137", safe) + '"'


def number(value: Any, tables: str) -> str:
    """A real constant of the type of the tables, with the fewest digits that preserve it."""
    rounded = np.float32(value) if tables == "float32" else np.float64(value)
    if not np.isfinite(rounded):
        raise UnsupportedExportError(
            f"Numbers or scores of this machine are too large for {tables}. "
            f"{'Use float64 tables, or scale' if tables == 'float32' else 'Scale'} the data."
        )
    text = str(rounded) + "f" if tables == "float32" else repr(float(rounded))
    return text if any(sign in text for sign in ".en") else text.replace("f", ".0f")


def integer(value: int) -> str:
    """An integer constant with the suffix that it needs; the smallest 64-bit integer has no literal of its own."""
    if abs(value) < 2**31:
        return str(value)
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"
    return f"{value}LL"


def table(table: Table) -> str:
    """The definition of a table, and the macro that reads it."""
    values: NDArray[Any] = table.values.ravel()
    real = table.dtype.kind == "f"
    kind = C_TYPES[table.dtype.name]
    rows = listing(number(v, table.dtype.name) if real else integer(int(v)) for v in values)
    read = f"M_READ_{table.dtype.name.upper()}(m_{table.name}_table + (i))"
    cast = f"((size_t){read})" if table.dtype.kind == "u" else read
    return (
        f"static const {kind} m_{table.name}_table[{values.size}] M_FLASH = {{\n{rows}\n}};\n"
        f"#define M_{table.name.upper()}(i) {cast}\n"
    )


def listing(items: Iterable[str]) -> str:
    """Numbers in lines of at most 118 characters."""
    return textwrap.fill(", ".join(items), 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)

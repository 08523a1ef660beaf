"""The bytes of a .slim file: a safetensors container with one metadata key, and a checksum at a fixed position.

The safetensors package does not write it, because its order of tensors may change between versions and equal machines
must always give equal bytes. This module knows bytes, tensors and JSON, and nothing about machines. A file is untrusted
input: every size in it is compared with the size of the file before anything is allocated, and every error is a
FormatError.
"""

from __future__ import annotations

import hashlib
import json
import math
from reprlib import repr as brief
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from slimsvm.exceptions import FormatError

SCHEMA = 1  # increased when an older reader would misread new files
KEY = "slimsvm"
NO_CHECKSUM = "0" * 64
# The metadata come first in the header and "checksum" first in the metadata, so it has a fixed position in the file.
START = b'{"__metadata__":{"slimsvm":"{\\"checksum\\":\\"'
CHECKSUM = slice(8 + len(START), 8 + len(START) + 64)
MOST_HEADER_BYTES = 100_000_000  # safetensors' own limit
MOST_OBJECTS, MOST_VALUES = 2**17, 2**19  # in a header, besides one object in 64 bytes and one value in 8
LONGEST_AXIS = 2**31 - 1
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
TENSOR_TYPES = {numpy_name: name for name, numpy_name in DTYPES.items()}

Tensors = dict[str, NDArray[Any]]


def pack(tensors: Tensors, machine: dict[str, Any], notes: dict[str, Any] | None = None) -> bytes:
    """The bytes of a file with `tensors`, and `machine` and `notes` as JSON; equal contents give equal bytes."""
    arrays = {name: np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for name, a in tensors.items()}
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # wide items first, to align all
    content = {"checksum": NO_CHECKSUM, "machine": machine, "schema": SCHEMA}
    if notes:
        content["notes"] = notes
    header: dict[str, Any] = {"__metadata__": {KEY: _compact(content)}}
    end = 0
    for name in names:
        begin, end = end, end + arrays[name].nbytes
        dtype = TENSOR_TYPES[arrays[name].dtype.str]
        header[name] = {"dtype": dtype, "shape": arrays[name].shape, "data_offsets": [begin, end]}
    text = _compact(header, sort_keys=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER_BYTES:
        raise ValueError(
            f"The labels and feature names of a machine must take at most {MOST_HEADER_BYTES} bytes. Got {len(text)}."
        )
    data = b"".join((len(text).to_bytes(8, "little"), text, *(arrays[name].tobytes() for name in names)))
    return b"".join((data[: CHECKSUM.start], checksum(data).encode(), data[CHECKSUM.stop :]))


def unpack(data: bytes) -> tuple[Tensors, Any, Any]:
    """The tensors, the machine's JSON and the notes of a file; types, shapes and positions are checked."""
    check_start(data[: CHECKSUM.stop], len(data))
    if checksum(data).encode() != data[CHECKSUM]:
        raise FormatError("the checksum does not match: the file is damaged.")
    end = 8 + int.from_bytes(data[:8], "little")
    header = _json(data[8:end], "the header")
    metadata = header.pop("__metadata__")
    if metadata.keys() != {KEY}:
        raise FormatError(f"the metadata must have the single key {KEY!r}. Got {brief(sorted(metadata))}.")
    content = _checked(_json(metadata[KEY], "the metadata"))
    return _tensors(header, memoryview(data)[end:]), content["machine"], content.get("notes")


def check_start(start: bytes, size: int) -> None:
    """Raise FormatError if the first bytes or the size show that the file is not a complete .slim file."""
    if len(start) < CHECKSUM.stop:
        raise FormatError(f"the file ends after {len(start)} bytes, within its header.")
    if start[8 : CHECKSUM.start] != START:
        raise FormatError("this is not a .slim file: its first bytes are different.")
    n_header = int.from_bytes(start[:8], "little")
    if n_header > min(MOST_HEADER_BYTES, size - 8):
        raise FormatError(f"the header claims {n_header} bytes, and the whole file has {size}.")


def checksum(data: bytes) -> str:
    """SHA-256 of the file with its checksum replaced by zeros."""
    sha = hashlib.sha256(data[: CHECKSUM.start])
    sha.update(NO_CHECKSUM.encode())
    sha.update(memoryview(data)[CHECKSUM.stop :])
    return sha.hexdigest()


def _compact(content: Any, sort_keys: bool = True) -> str:
    return json.dumps(content, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)


def _json(text: bytes | str, whose: str) -> dict[str, Any]:
    _check_entries(text, whose)
    try:
        value = json.loads(
            text, object_pairs_hook=_distinct, parse_int=_int64, parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        raise FormatError(f"{whose} is nested too deeply.") from None
    except ValueError as error:
        raise FormatError(f"{whose} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{whose} is not a JSON object.")
    return value


def _check_entries(text: Any, whose: str) -> None:
    """Refuse JSON of very many empty objects, lists or numbers, which take Python up to thirty times their text."""
    marks = ("{", "[", ",") if isinstance(text, str) else (b"{", b"[", b",")
    n_objects, n_lists, n_values = (text.count(mark) for mark in marks)
    if n_objects + n_lists > MOST_OBJECTS + len(text) // 64 or n_values > MOST_VALUES + len(text) // 8:
        raise FormatError(f"{whose} has {n_objects + n_lists} objects and {n_values} values, too many for its size.")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice.")
    return result


def _int64(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError("an integer has more than 64 bits.")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError("a number is not finite.")
    return float(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number.")


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    schema = content.get("schema")
    if type(schema) is not int or schema < 1:
        raise FormatError(f"the schema version must be a positive integer. Got {brief(schema)}.")
    if schema > SCHEMA:
        raise FormatError(
            f"it was written by a newer slimsvm (schema version {schema}; this version reads up to {SCHEMA}). "
            f"Upgrade slimsvm to load it."
        )
    if content.keys() - {"notes"} != {"checksum", "machine", "schema"}:
        raise FormatError(f"the metadata must hold checksum, machine and schema. Got {brief(sorted(content))}.")
    return content


def _tensors(header: dict[str, Any], buffer: memoryview) -> Tensors:
    tensors: Tensors = {}
    position = 0
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(name, entry)
        n_bytes = math.prod(shape) * dtype.itemsize
        if begin != position or end - begin != n_bytes or end > len(buffer):
            raise FormatError(
                f"tensor {brief(name)} of shape {tuple(shape)} must be at bytes {position} to {position + n_bytes} "
                f"of {len(buffer)}. Got {begin} to {end}."
            )
        array = np.frombuffer(buffer[begin:end], dtype=dtype).reshape(shape)
        tensors[name] = array.astype(dtype.newbyteorder("="), copy=False)
        position = end
    if position != len(buffer):
        raise FormatError(f"there are {len(buffer) - position} unused bytes after the last tensor.")
    return tensors


def _entry(name: str, entry: Any) -> tuple[np.dtype[Any], list[int], int, int]:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"tensor {brief(name)} must have a dtype, a shape and data_offsets, and nothing else.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(f"tensor {brief(name)} must have one of the dtypes {', '.join(DTYPES)}. Got {brief(dtype)}.")
    if not _lengths(shape) or len(shape) not in (1, 2) or max(shape) > LONGEST_AXIS:
        raise FormatError(
            f"tensor {brief(name)} must have one or two axes of at most {LONGEST_AXIS}. Got {brief(shape)}."
        )
    if not _lengths(offsets) or len(offsets) != 2:
        raise FormatError(f"tensor {brief(name)} must have two offsets. Got {brief(offsets)}.")
    return np.dtype(DTYPES[dtype]), shape, offsets[0], offsets[1]


def _lengths(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)

"""A second reader and writer of .slim files, after docs/slim-file.md: it forges files, and shows the page is enough.

The standard library alone: nothing here is shared with the package.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from typing import Any


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytearray]:
    """The header without its metadata, the content of the metadata, and the tensors' bytes."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    content = json.loads(header.pop("__metadata__")["slimsvm"])
    return header, content, bytearray(data[end:])


def closed(header: dict[str, Any], content: Any, buffer: bytes) -> bytes:
    """A file with a right checksum, whatever its content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    full = {"__metadata__": {"slimsvm": text}, **header}
    return with_header(json.dumps(full, separators=(",", ":")).encode(), buffer)


def with_header(header: bytes, buffer: bytes) -> bytes:
    """A file of this raw header and buffer, with a right checksum if the header has a place for one."""
    return resealed(len(header).to_bytes(8, "little") + header + bytes(buffer))


def resealed(data: bytes) -> bytes:
    """The file with the checksum that its other bytes ask for."""
    start, stop = 52, 116
    zeroed = data[:start] + b"0" * 64 + data[stop:]
    return data[:start] + hashlib.sha256(zeroed).hexdigest().encode() + data[stop:] if len(data) >= stop else data


def table(data: bytes, name: str) -> list[list[float]]:
    """The rows of a tensor of 64-bit numbers."""
    header, _, buffer = opened(data)
    entry = header[name]
    begin, end = entry["data_offsets"]
    numbers = struct.unpack(f"<{(end - begin) // 8}{'d' if entry['dtype'] == 'F64' else 'q'}", buffer[begin:end])
    width = entry["shape"][1] if len(entry["shape"]) == 2 else 1
    return [list(numbers[i : i + width]) for i in range(0, len(numbers), width)]


def points(data: bytes) -> list[list[float]]:
    """The points, dense."""
    place = opened(data)[1]["machine"]["points"]
    if "tensor" in place:
        return table(data, place["tensor"])
    values, indices, indptr = (table(data, f"{place['csr']}.{part}") for part in ("data", "indices", "indptr"))
    rows = [[0.0] * place["shape"][1] for _ in range(place["shape"][0])]
    for i, row in enumerate(rows):
        for j in range(int(indptr[i][0]), int(indptr[i + 1][0])):
            row[int(indices[j][0])] = values[j][0]
    return rows


def text(data: bytes, name: str) -> list[str]:
    """The strings of a tensor of code points."""
    header, _, buffer = opened(data)
    k, width = header[name]["shape"]
    begin, end = header[name]["data_offsets"]
    codes = struct.unpack(f"<{k * width}I", buffer[begin:end])
    return ["".join(map(chr, codes[i : i + width])).rstrip("\0") for i in range(0, k * width, width)]


def rbf_values(data: bytes, x: Sequence[float]) -> list[float]:
    """exp(-gamma |x - z|^2) for every point z of a machine with the rbf kernel."""
    gamma = opened(data)[1]["machine"]["kernel"]["gamma"]
    return [math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True))) for z in points(data)]


def linear_scores(data: bytes, x: Sequence[float]) -> list[float]:
    """The scores of a linear head."""
    k, coef, intercept = rbf_values(data, x), table(data, "head.coef"), table(data, "head.intercept")
    return [sum(k[j] * coef[j][c] for j in range(len(k))) + intercept[c][0] for c in range(len(intercept))]


def pair_scores(data: bytes, x: Sequence[float]) -> dict[tuple[int, int], float]:
    """The scores of a pairwise head, by pair."""
    k, coef, intercept = rbf_values(data, x), table(data, "head.coef"), table(data, "head.intercept")
    blocks = opened(data)[1]["machine"]["head"]["blocks"]
    starts = [sum(blocks[:i]) for i in range(len(blocks) + 1)]
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i + 1, len(blocks))]
    return {
        (i, j): sum(k[t] * coef[t][j - 1] for t in range(starts[i], starts[i + 1]))
        + sum(k[t] * coef[t][i] for t in range(starts[j], starts[j + 1]))
        + intercept[pair][0]
        for pair, (i, j) in enumerate(pairs)
    }


def winner(data: bytes, x: Sequence[float]) -> int:
    """The place among the labels of the class with most votes."""
    order = opened(data)[1]["machine"]["answer"]["order"]
    votes = [0] * len(order)
    for (i, j), score in pair_scores(data, x).items():
        votes[i if score > 0 else j] += 1
    return int(order[votes.index(max(votes))])

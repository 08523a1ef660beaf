"""Random damage to files, by a generator that is passed in: bytes, JSON, text, the arrays of archives."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from oracles.slim_file import closed, opened, resealed

JUNK: list[Any] = [None, True, 0, -1, 1, 2, 3, 2**62, 0.5, -1e300, "", "x", "rbf", [], [0], [[0]], {}, {"type": "rbf"}]
HUGE = [b"2147483646", b"999999999999", b"1e308", b"-1e308", b"4294967297", b"1e-320", b"0"]
INTEGERS = [-(2**63), -(2**31), -1, 0, 1, 2**16, 2**31 - 1, 2**31, 2**40, 2**63 - 1]
Mutate = Callable[[bytes, np.random.Generator], bytes]


def mutated_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with one to four spans overwritten, removed, doubled or moved."""
    for _ in range(rng.integers(1, 5)):
        a, b = sorted(rng.integers(0, len(data) + 1, size=2))
        b = min(b, a + rng.integers(1, 20))
        noise = rng.integers(0, 256, size=b - a, dtype=np.uint8).tobytes()
        data = [data[:a] + noise + data[b:], data[:a] + data[b:], data[:b] + data[a:], data[:a] + noise + data[a:]][
            rng.integers(4)
        ]
        data = data or b"\0"
    return data


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """The file cut off, or with one to three bits flipped."""
    if rng.integers(8) == 0 or not data:
        return data[: int(rng.integers(len(data) + 1))]
    for _ in range(rng.integers(1, 4)):
        data = with_flipped_bit(data, int(rng.integers(len(data))), int(rng.integers(8)))
    return data


def with_flipped_bit(data: bytes, place: int, bit: int) -> bytes:
    """The file with one bit flipped."""
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def mutated_content(data: bytes, rng: np.random.Generator) -> bytes:
    """A .slim file with one to three places of its JSON replaced, removed or renamed, or its numbers overwritten."""
    header, content, buffer = opened(data)
    for _ in range(rng.integers(1, 4)):
        nodes = [node for root in (header, content) for node in containers(root) if len(node)]
        node = nodes[rng.integers(len(nodes))]
        key = list(node)[rng.integers(len(node))] if isinstance(node, dict) else int(rng.integers(len(node)))
        action = rng.integers(5)
        if action == 0:
            del node[key]
        elif action == 1 and isinstance(node, dict):
            node[str(rng.choice(["type", "gamma", "points", "x"]))] = deepcopy(node[key])
        elif action == 2 and buffer:
            place = int(rng.integers(len(buffer)))
            buffer[place : place + 8] = rng.bytes(len(buffer[place : place + 8]))
        else:
            node[key] = deepcopy(JUNK[rng.integers(len(JUNK))])
    return closed(header, content, buffer)


def containers(root: Any) -> Iterator[Any]:
    """All lists and dicts in a JSON value."""
    if isinstance(root, (dict, list)):
        yield root
        for child in root.values() if isinstance(root, dict) else root:
            yield from containers(child)


def mutated_slim(data: bytes, rng: np.random.Generator) -> bytes:
    """A .slim file with damaged bytes or content, and in nine of ten cases a right checksum."""
    if rng.integers(10) == 0:
        return mutated_bytes(data, rng)
    return resealed((mutated_bytes if rng.integers(3) == 0 else mutated_content)(data, rng))


def mutated_text(text: bytes, rng: np.random.Generator) -> bytes:
    """Text of numbers, such as a LIBSVM model or a table, with one to three random damages."""
    data = bytearray(text)
    for _ in range(rng.integers(1, 4)):
        kind, place = rng.integers(7), int(rng.integers(len(data)))
        if kind == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[place] = int(rng.choice(list(b"0123456789.-+e: \n")))
        elif kind == 2:
            del data[place : place + int(rng.integers(1, 20))]
        elif kind == 3:
            tokens = bytes(data).split(b" ")
            i, j = rng.integers(len(tokens), size=2)
            tokens[i], tokens[j] = tokens[j], tokens[i]
            data = bytearray(b" ".join(tokens))
        elif kind == 4:
            data[place : place + 1] = HUGE[rng.integers(len(HUGE))]
        elif kind == 5:
            lines = bytes(data).splitlines(keepends=True)
            i = int(rng.integers(len(lines)))
            lines.insert(int(rng.integers(len(lines))), lines[i])
            data = bytearray(b"".join(lines))
        else:
            lines = bytes(data).splitlines(keepends=True)
            del lines[int(rng.integers(len(lines)))]
            data = bytearray(b"".join(lines))
        data = data or bytearray(b"\n")
    return bytes(data)


def mutated_array(data: bytes, rng: np.random.Generator) -> bytes:
    """An .npy file with damage to its header or to its numbers; integers become extreme ones."""
    end = data.find(b"\n") + 1
    kind = rng.integers(4)
    if kind == 0 or end < 12:
        return mutated_bytes(data, rng)
    if kind == 1:
        return data[:10] + mutated_text(data[10 : end - 1], rng)[: end - 11].ljust(end - 11) + b"\n" + data[end:]
    if kind == 2 and len(data) >= end + 8:
        place = end + 8 * int(rng.integers((len(data) - end) // 8))
        value = np.array(INTEGERS[rng.integers(len(INTEGERS))], dtype="<i8").tobytes()
        return data[:place] + value + data[place + 8 :]
    return flipped(data, rng)


def mutated_archive(data: bytes, rng: np.random.Generator) -> bytes:
    """An .npz file with damage to its bytes, or to one or two of its arrays inside a valid archive."""
    if rng.integers(4) == 0:
        return (flipped if rng.integers(2) else mutated_bytes)(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    for _ in range(rng.integers(1, 3)):
        name = names[rng.integers(len(names))]
        if rng.integers(10) == 0:
            members[name] = members[names[rng.integers(len(names))]]
        else:
            members[name] = mutated_array(members[name], rng)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED if rng.integers(2) else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


def mutated_gzip(data: bytes, rng: np.random.Generator) -> bytes:
    """A compressed table, with damage before or after the compression."""
    if rng.integers(2):
        return gzip.compress(mutated_text(gzip.decompress(data), rng), compresslevel=1, mtime=0)
    return (flipped if rng.integers(2) else mutated_bytes)(data, rng)


def mutated_binary(data: bytes, rng: np.random.Generator) -> bytes:
    """A binary file without structure that could be kept, such as Parquet."""
    return (flipped if rng.integers(3) else mutated_bytes)(data, rng)

"""The .slim file: one machine, no pickle, the same bytes for the same machine, and a checksum over all of it.

A record becomes a JSON object with its registered name and its fields; fields that are None are left out, so that a
field added later changes no old file. Arrays become tensors that are named by their path, such as "head.coef". Reading
goes by the records' own annotations: what a field may hold is stated once, in its class. docs/slim-file.md describes
the format for readers in other languages.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from reprlib import repr as brief
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm import _container
from slimsvm._container import DTYPES, LONGEST_AXIS, Tensors
from slimsvm._files import write_whole
from slimsvm._record import FloatArray, Record
from slimsvm.answers import ANSWERS, Answer
from slimsvm.calibration import CALIBRATIONS, Calibration
from slimsvm.exceptions import FormatError
from slimsvm.heads import HEADS, Head
from slimsvm.input_map import InputMap
from slimsvm.kernels import KERNELS, Kernel
from slimsvm.machine import KernelMachine

FAMILIES: dict[type[Record], dict[str, Any]] = {
    Kernel: dict(KERNELS),
    Head: dict(HEADS),
    Answer: dict(ANSWERS),
    Calibration: dict(CALIBRATIONS),
    InputMap: {"affine": InputMap},
    KernelMachine: {"machine": KernelMachine},
}
NAMES: dict[type[Any], str] = {cls: name for family in FAMILIES.values() for name, cls in family.items()}
Labels = NDArray[Any]
LAST_CODE_POINT = 0x10FFFF


def _fields(cls: type[Any]) -> dict[str, tuple[Any, bool]]:
    """What each field of a record may hold, and whether it may be None."""
    hints = get_type_hints(cls)
    result = {}
    for f in fields(cls):
        options = [a for a in get_args(hints[f.name]) if a is not NoneType]
        optional = NoneType in get_args(hints[f.name])
        result[f.name] = (options[0] if optional else hints[f.name], optional)
    return result


FIELDS = {cls: _fields(cls) for cls in NAMES}


def dumps(machine: KernelMachine) -> bytes:
    """The content of the machine's .slim file; equal machines give equal bytes."""
    if not isinstance(machine, KernelMachine):
        raise TypeError(f"Only a KernelMachine can be saved. Got {type(machine).__name__}.")
    tensors: Tensors = {}
    return _container.pack(tensors, _encode_record(machine, "", tensors))


def loads(data: bytes) -> KernelMachine:
    """The machine in the content of a .slim file; FormatError says what is wrong with the content."""
    tensors, content = _container.unpack(bytes(data))
    machine: KernelMachine = _decode_record(content, KernelMachine, "", tensors)
    if tensors:
        raise FormatError(f"tensor {brief(min(tensors))} belongs to no field of the machine.")
    return machine


def write(machine: KernelMachine, path: str | os.PathLike[str]) -> None:
    """Save the machine in one step: the file at `path` is the old one or the whole new one, whatever happens."""
    write_whole(path, dumps(machine))


def read(path: str | os.PathLike[str]) -> KernelMachine:
    """The machine of the .slim file at `path`."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_container.CHECKSUM.stop)
        try:
            # A wrong file is refused by its first bytes, before gigabytes of it are read.
            _container.check_start(start, size)
            file.seek(0)
            return loads(file.read(size))
        except FormatError as error:
            raise FormatError(f"Cannot load {os.fspath(path)!r}: {error}") from error.__cause__


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _encode_record(record: Any, path: str, tensors: Tensors) -> dict[str, Any]:
    cls = type(record)
    if cls not in NAMES:
        raise TypeError(f"{path or 'machine'} is a {cls.__name__}, which the .slim file has no name for.")
    content: dict[str, Any] = {"type": NAMES[cls]}
    for name, (hint, _) in FIELDS[cls].items():
        value = getattr(record, name)
        if value is not None:
            content[name] = _encode(value, hint, _join(path, name), tensors)
    return content


def _encode(value: Any, hint: Any, path: str, tensors: Tensors) -> Any:
    if isinstance(value, Record):
        return _encode_record(value, path, tensors)
    if sparse.issparse(value):
        return _encode_csr(value, path, tensors)
    if hint == Labels:
        return _encode_labels(value, path, tensors)
    if isinstance(value, np.ndarray):
        return _encode_array(value, path, tensors)
    if hint is float:
        return float(value) + 0.0
    return bool(value) if hint is bool else value


def _encode_array(array: NDArray[Any], path: str, tensors: Tensors) -> dict[str, Any]:
    if max(array.shape) > LONGEST_AXIS:
        raise ValueError(f"{path} of the machine may have axes of at most {LONGEST_AXIS}. Its shape is {array.shape}.")
    # Adding zero maps -0.0 to 0.0: they compare equal, and equal machines have equal files.
    tensors[path] = array if array.dtype.kind == "b" else array + array.dtype.type(0)
    return {"tensor": path}


def _encode_csr(matrix: Any, path: str, tensors: Tensors) -> dict[str, Any]:
    for part in ("data", "indices", "indptr"):
        _encode_array(getattr(matrix, part), _join(path, part), tensors)
    if matrix.shape[1] > LONGEST_AXIS:
        raise ValueError(f"{path} of the machine may have at most {LONGEST_AXIS} columns. Got {matrix.shape[1]}.")
    return {"csr": path, "shape": [int(n) for n in matrix.shape]}


def _encode_labels(labels: Labels, path: str, tensors: Tensors) -> dict[str, Any]:
    if labels.dtype.kind == "U":
        codes = np.ascontiguousarray(labels, dtype=labels.dtype.newbyteorder("=")).view(np.uint32)
        tensors[path] = codes.reshape(len(labels), -1)
        return {"text": path}
    if labels.dtype.hasobject and all(isinstance(label, str) for label in labels):
        return {"strings": labels.tolist()}
    if labels.dtype.newbyteorder("<").str in DTYPES.values() and np.isfinite(labels).all():
        return _encode_array(labels, path, tensors)
    raise TypeError(
        f"Class labels can be saved when they are strings, booleans or finite numbers. Got {brief(labels.tolist())} of "
        f"dtype {labels.dtype}. Train with such labels, or keep the model by pickle."
    )


def _decode_record(content: Any, family: type[Record], path: str, tensors: Tensors) -> Any:
    whose = path or "machine"
    name = content.get("type") if isinstance(content, dict) else None
    if not isinstance(name, str) or name not in FAMILIES[family]:
        known = ", ".join(FAMILIES[family])
        raise FormatError(
            f"the type of {whose} must be one of {known}. Got {brief(name)}; a newer slimsvm may know it."
        )
    cls = FAMILIES[family][name]
    unknown = content.keys() - {"type", *FIELDS[cls]}
    if unknown:
        raise FormatError(f"{whose} has the unknown field {brief(min(unknown))}; a newer slimsvm may know it.")
    values = {}
    for field, (hint, optional) in FIELDS[cls].items():
        if field in content:
            values[field] = _decode(content[field], hint, _join(path, field), tensors)
        elif not optional:
            raise FormatError(f"{whose} has no {field}.")
    try:
        return cls(**values)
    except (ValueError, TypeError, OverflowError) as error:
        raise FormatError(f"{whose} is not valid: {error}") from error


def _decode(content: Any, hint: Any, path: str, tensors: Tensors) -> Any:
    if hint in FAMILIES:
        return _decode_record(content, hint, path, tensors)
    if hint == Labels:
        return _decode_labels(content, path, tensors)
    if hint is Any:
        is_csr = isinstance(content, dict) and "csr" in content
        return _decode_csr(content, path, tensors) if is_csr else _decode_numbers(content, path, tensors)
    if hint == FloatArray:
        return _decode_numbers(content, path, tensors)
    if not _is_plain(content, hint):
        raise FormatError(f"{path} has a value of the wrong kind: {brief(content)}.")
    return tuple(content) if isinstance(content, list) else hint(content) if hint is float else content


def _is_plain(content: Any, hint: Any) -> bool:
    """Whether a JSON value is what the annotation of a plain field says."""
    if get_origin(hint) is tuple:
        return isinstance(content, list) and all(type(item) is get_args(hint)[0] for item in content)
    if get_origin(hint) is Literal:
        return isinstance(content, str) and content in get_args(hint)
    return type(content) is hint or (hint is float and type(content) is int)


def _take(content: Any, form: dict[str, Any], path: str, tensors: Tensors, dtype: str, ndim: int = 0) -> NDArray[Any]:
    """The tensor at `path`, once, if `content` is of the given form and the tensor of the given kind and axes."""
    if content != form:
        raise FormatError(f"{path} must be {form}. Got {brief(content)}.")
    array = tensors.pop(path, None)
    if array is None:
        raise FormatError(f"the tensor of {path} is missing.")
    if dtype not in ("any", array.dtype.name) or ndim not in (0, array.ndim):
        raise FormatError(f"the tensor of {path} has the wrong dtype or shape: {array.dtype}, {array.shape}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise FormatError(f"the tensor of {path} has a number that is not finite.")
    return array


def _decode_numbers(content: Any, path: str, tensors: Tensors) -> NDArray[Any]:
    return _take(content, {"tensor": path}, path, tensors, "float64")


def _decode_csr(content: Any, path: str, tensors: Tensors) -> Any:
    shape = content.get("shape")
    if content != {"csr": path, "shape": shape} or not _is_plain(shape, tuple[int, ...]) or len(shape) != 2:
        raise FormatError(f"{path} must be a csr matrix with a shape of two integers. Got {brief(content)}.")
    parts = {}
    for part, dtype in (("data", "float64"), ("indices", "int64"), ("indptr", "int64")):
        name = _join(path, part)
        parts[part] = _take({"tensor": name}, {"tensor": name}, name, tensors, dtype, ndim=1)
    _check_csr(shape, path, **parts)
    return sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(shape))


def _check_csr(shape: list[int], path: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]) -> None:
    """Refuse all but canonical CSR: SciPy's own compiled loops trust the indices they are given."""
    m, p = shape
    if m < 0 or not 1 <= p <= LONGEST_AXIS or len(indptr) != m + 1 or len(indices) != len(data):
        raise FormatError(
            f"{path} of shape {m}, {p} has parts of the wrong length: {len(data)}, {len(indices)}, {len(indptr)}."
        )
    rising = bool((indptr[:-1] <= indptr[1:]).all())
    if indptr[0] != 0 or indptr[-1] != len(data) or not rising:
        raise FormatError(f"{path}.indptr must rise from 0 to {len(data)}.")
    if len(data) and (indices.min() < 0 or indices.max() >= p):
        raise FormatError(f"{path}.indices must lie in 0 to {p - 1}.")
    starts_row = np.zeros(len(data) + 1, dtype=bool)
    starts_row[indptr] = True
    if not ((indices[:-1] < indices[1:]) | starts_row[1:-1]).all() or not data.all():
        raise FormatError(f"{path} must have rising indices in each row, and no stored zeros.")


def _decode_labels(content: Any, path: str, tensors: Tensors) -> Labels:
    form = content if isinstance(content, dict) else {}
    if "strings" in form:
        strings = form["strings"]
        if form.keys() != {"strings"} or not _is_plain(strings, tuple[str, ...]):
            raise FormatError(f"{path} must be a list of strings. Got {brief(content)}.")
        return np.array([*strings, None], dtype=object)[:-1]
    if "text" in form:
        codes = _take(content, {"text": path}, path, tensors, "uint32", ndim=2)
        if codes.shape[1] < 1 or (codes > LAST_CODE_POINT).any():
            raise FormatError(f"{path} must be rows of Unicode code points in 32 bits.")
        return np.ascontiguousarray(codes).view(f"U{codes.shape[1]}")[:, 0]
    labels = _take(content, {"tensor": path}, path, tensors, "any", ndim=1)
    if labels.dtype.kind == "b" and (labels.view(np.uint8) > 1).any():
        raise FormatError(f"{path} has booleans that are neither 0 nor 1.")
    return labels

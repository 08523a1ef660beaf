"""The .slim file holds one machine without pickle. Equal machines give equal bytes, and a checksum covers them all.

A record becomes a JSON object with its registered name and its fields. Fields that are None are left out, so adding an
optional field changes no existing file. Arrays become tensors, named by their path, such as "head.coef". The reader
takes the allowed types of each field from the annotations of the record classes. docs/slim-file.md describes the
format for readers in other languages.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, fields
from pathlib import Path
from reprlib import repr as brief
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from slimsvm import _container
from slimsvm._container import DTYPES, LONGEST_AXIS, Tensors
from slimsvm._files import write_whole
from slimsvm._record import FloatArray, Record, is_sparse
from slimsvm.answers import ANSWERS, Answer
from slimsvm.calibration import CALIBRATIONS, Calibration
from slimsvm.exceptions import FormatError
from slimsvm.heads import HEADS, Head
from slimsvm.input_map import InputMap
from slimsvm.kernels import KERNELS, Kernel
from slimsvm.machine import KernelMachine
from slimsvm.preparation import PARTS, STEPS, Norm, Part, Preparation, Step
from slimsvm.report import Report, report_of

FAMILIES: dict[type[Record], dict[str, Any]] = {
    Kernel: dict(KERNELS),
    Head: dict(HEADS),
    Answer: dict(ANSWERS),
    Calibration: dict(CALIBRATIONS),
    InputMap: {"affine": InputMap},
    Step: dict(STEPS),
    Part: dict(PARTS),
    Norm: {"norm": Norm},
    Preparation: {"preparation": Preparation},
    KernelMachine: {"machine": KernelMachine},
}
NAMES: dict[type[Any], str] = {cls: name for family in FAMILIES.values() for name, cls in family.items()}
Labels = NDArray[Any]
DEEPEST = 12  # levels of records inside records; the members of an ensemble could go on for ever
LAST_CODE_POINT = 0x10FFFF
LONGEST_LABEL = 2**20  # characters
LIBSVM_STARTS = (b"svm_type", b"kernel_type", b"nr_class", b"total_sv")
CLOCK = ("latency_us", "seconds", "speedup")  # measured times: they differ between runs and are not saved


def _fields(cls: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The type of each field of a record, and whether the field may be None."""
    hints = get_type_hints(cls)
    result = {}
    for f in fields(cls):
        options = [a for a in get_args(hints[f.name]) if a is not NoneType]
        optional = NoneType in get_args(hints[f.name])
        result[f.name] = (options[0] if optional else hints[f.name], optional)
    return result


FIELDS = {cls: _fields(cls) for cls in NAMES}


@dataclass(frozen=True)
class Notes:
    """Optional parts of a .slim file beside the machine: the compression report, and the history of the method."""

    report: Report | None = None
    history: list[dict[str, Any]] | None = None

    def encode(self) -> dict[str, Any]:
        """The notes as JSON values, without measured times."""
        content: dict[str, Any] = {}
        if self.report is not None:
            content["report"] = _plain({k: v for k, v in self.report.as_dict().items() if k not in CLOCK})
        if self.history is not None:
            content["history"] = _plain(self.history)
        return content

    @staticmethod
    def decode(content: Any) -> Notes:
        """The notes from their JSON values; FormatError if they are not valid."""
        if content is None:
            return Notes()
        if not isinstance(content, dict) or not content.keys() <= {"report", "history"}:
            raise FormatError("the notes must hold nothing but a report and a history.")
        history = content.get("history")
        if history is not None and not (isinstance(history, list) and all(isinstance(one, dict) for one in history)):
            raise FormatError("the history of the notes must be a list of objects.")
        try:
            report = None if content.get("report") is None else report_of(content["report"])
        except ValueError as error:
            raise FormatError(f"the notes are not valid: {error}") from None
        return Notes(report, history)


def _plain(value: Any) -> Any:
    """A JSON value for numbers, text, lists and dicts; None for NaN and everything else."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items() if name not in CLOCK}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value if isinstance(value, str) else None


def dumps(machine: KernelMachine, notes: Notes | None = None) -> bytes:
    """The content of the machine's .slim file; equal machines and notes give equal bytes."""
    if not isinstance(machine, KernelMachine):
        raise TypeError(f"machine of dumps must be a KernelMachine. Got {type(machine).__name__}.")
    tensors: Tensors = {}
    content = _encode_record(machine, "", tensors)
    return _container.pack(tensors, content, None if notes is None else notes.encode())


def loads(data: bytes) -> KernelMachine:
    """The machine from the content of a .slim file; FormatError if the content is not valid."""
    return loads_with_notes(data)[0]


def loads_with_notes(data: bytes) -> tuple[KernelMachine, Notes]:
    """The machine and the notes from the content of a .slim file."""
    tensors, content, notes = _container.unpack(bytes(data))
    machine: KernelMachine = _decode_record(content, KernelMachine, "", tensors)
    if tensors:
        raise FormatError(f"tensor {brief(min(tensors))} belongs to no field of the machine.")
    return machine, Notes.decode(notes)


def write(machine: KernelMachine, path: str | os.PathLike[str], notes: Notes | None = None) -> None:
    """Save the machine in one step: if writing fails, the file at `path` stays as it was."""
    write_whole(path, dumps(machine, notes))


def read(path: str | os.PathLike[str]) -> KernelMachine:
    """The machine in the .slim file at `path`."""
    return read_with_notes(path)[0]


def read_with_notes(path: str | os.PathLike[str]) -> tuple[KernelMachine, Notes]:
    """The machine and the notes in the .slim file at `path`."""
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe would be waited for; a folder has its own error
        raise FormatError(f"Cannot load {os.fspath(path)!r}: this is not a regular file.")
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_container.CHECKSUM.stop)
        if start.lstrip().startswith(LIBSVM_STARTS):
            raise FormatError(
                f"Cannot load {os.fspath(path)!r}: this is a LIBSVM model. Read it with slimsvm.read_libsvm."
            )
        try:
            # Check the first bytes before reading a file that may have gigabytes.
            _container.check_start(start, size)
            file.seek(0)
            return loads_with_notes(file.read(size))
        except FormatError as error:
            raise FormatError(f"Cannot load {os.fspath(path)!r}: {error}") from error.__cause__


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _encode_record(record: Any, path: str, tensors: Tensors) -> dict[str, Any]:
    cls = type(record)
    if cls not in NAMES:
        raise TypeError(f"{path or 'machine'} is a {cls.__name__}, which cannot be saved to a .slim file.")
    content: dict[str, Any] = {"type": NAMES[cls]}
    for name, (hint, _) in FIELDS[cls].items():
        value = getattr(record, name)
        if value is not None:
            content[name] = _encode(value, hint, _join(path, name), tensors)
    return content


def _encode(value: Any, hint: Any, path: str, tensors: Tensors) -> Any:
    if isinstance(value, Record):
        return _encode_record(value, path, tensors)
    if _of_records(hint):
        return [_encode_record(one, _join(path, str(i)), tensors) for i, one in enumerate(value)]
    if is_sparse(value):
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
    # Adding zero turns -0.0 into 0.0: the two compare equal, and equal machines must give equal files.
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
        f"Class labels must be strings, booleans or finite numbers to be saved. Got {brief(labels.tolist())} of "
        f"dtype {labels.dtype}. Train with other labels, or pickle the model."
    )


def _decode_record(content: Any, family: type[Record], path: str, tensors: Tensors) -> Any:
    whose = path or "machine"
    if path.count(".") > DEEPEST:
        raise FormatError(f"{brief(whose)} is inside too many other records.")
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
    if _of_records(hint):
        if not isinstance(content, list):
            raise FormatError(f"{path} must be a list. Got {brief(content)}.")
        family = get_args(hint)[0]
        return tuple(_decode_record(one, family, _join(path, str(i)), tensors) for i, one in enumerate(content))
    if hint == Labels:
        return _decode_labels(content, path, tensors)
    if hint is Any:
        is_csr = isinstance(content, dict) and "csr" in content
        return _decode_csr(content, path, tensors) if is_csr else _decode_numbers(content, path, tensors)
    if hint == FloatArray:
        return _decode_numbers(content, path, tensors)
    if not _is_plain(content, hint):
        raise FormatError(f"{path} has a value of the wrong type: {brief(content)}.")
    return tuple(content) if isinstance(content, list) else hint(content) if hint is float else content


def _of_records(hint: Any) -> bool:
    """Whether a field holds a tuple of records."""
    return get_origin(hint) is tuple and get_args(hint)[0] in FAMILIES


def _is_plain(content: Any, hint: Any) -> bool:
    """Whether a JSON value has the type that a plain field is annotated with."""
    if get_origin(hint) is tuple:
        return isinstance(content, list) and all(type(item) is get_args(hint)[0] for item in content)
    if get_origin(hint) is Literal:
        return isinstance(content, str) and content in get_args(hint)
    return type(content) is hint or (hint is float and type(content) is int)


def _take(content: Any, form: dict[str, Any], path: str, tensors: Tensors, dtype: str, ndim: int = 0) -> NDArray[Any]:
    """Remove and return the tensor at `path`; FormatError if its form, its dtype or its number of axes is wrong."""
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
    from scipy import sparse

    return sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(shape))


def _check_csr(shape: list[int], path: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]) -> None:
    """Raise FormatError unless the CSR matrix is canonical: SciPy's compiled loops do not check indices."""
    m, p = shape
    if m < 0 or not 1 <= p <= LONGEST_AXIS or len(indptr) != m + 1 or len(indices) != len(data):
        raise FormatError(
            f"{path} of shape {m}, {p} has parts of the wrong length: {len(data)}, {len(indices)}, {len(indptr)}."
        )
    rising = bool((indptr[:-1] <= indptr[1:]).all())
    if indptr[0] != 0 or indptr[-1] != len(data) or not rising:
        raise FormatError(f"{path}.indptr must increase from 0 to {len(data)}.")
    if len(data) and (indices.min() < 0 or indices.max() >= p):
        raise FormatError(f"{path}.indices must be from 0 to {p - 1}.")
    starts_row = np.zeros(len(data) + 1, dtype=bool)
    starts_row[indptr] = True
    if not ((indices[:-1] < indices[1:]) | starts_row[1:-1]).all() or not data.all():
        raise FormatError(f"{path} must have increasing indices in each row, and no stored zeros.")


def _decode_labels(content: Any, path: str, tensors: Tensors) -> Labels:
    form = content if isinstance(content, dict) else {}
    if "strings" in form:
        strings = form["strings"]
        if form.keys() != {"strings"} or not _is_plain(strings, tuple[str, ...]):
            raise FormatError(f"{path} must be a list of strings. Got {brief(content)}.")
        return np.array([*strings, None], dtype=object)[:-1]
    if "text" in form:
        codes = _take(content, {"text": path}, path, tensors, "uint32", ndim=2)
        if not codes.size or codes.shape[1] > LONGEST_LABEL or (codes > LAST_CODE_POINT).any():
            raise FormatError(f"{path} must hold rows of Unicode code points of 32 bits.")
        return np.ascontiguousarray(codes).view(f"U{codes.shape[1]}")[:, 0]
    labels = _take(content, {"tensor": path}, path, tensors, "any", ndim=1)
    if labels.dtype.kind == "b" and (labels.view(np.uint8) > 1).any():
        raise FormatError(f"{path} has booleans that are neither 0 nor 1.")
    return labels

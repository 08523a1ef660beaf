"""The tables of numbers that an answer of a machine needs, with their types and bytes.

The C export writes these tables, and `cost.py` counts them. Features that the input map ignores are left out.

Symbols: m points with p coordinates, d features of the data, q outputs, s scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Classes
from slimsvm.calibration import Averaged, Calibration, Isotonic, Softmax
from slimsvm.heads import Head, LinearHead, MirrorHead, PairsHead, PairwiseHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import dense
from slimsvm.preparation import Lookup, Part, Preparation

if TYPE_CHECKING:
    from slimsvm.machine import KernelMachine

TableType = Literal["float64", "float32", "int16", "int8", "int8_all"]
TYPES: tuple[TableType, ...] = ("float64", "float32", "int16", "int8", "int8_all")  # from the widest to the narrowest
# Coefficients and offsets have wider types: they are few, and their rounding errors do not average out. With "int8_all"
# coefficients have 8 bits too, which saves much if there are many classes.
WIDTHS: dict[TableType, dict[str, str]] = {
    "float64": {"point": "float64", "coef": "float64", "scale": "float64", "offset": "float64"},
    "float32": {"point": "float32", "coef": "float32", "scale": "float32", "offset": "float32"},
    "int16": {"point": "int16", "coef": "int16", "scale": "int16", "offset": "int32"},
    "int8": {"point": "int8", "coef": "int16", "scale": "int16", "offset": "int32"},
    "int8_all": {"point": "int8", "coef": "int8", "scale": "int16", "offset": "int32"},
}


@dataclass(frozen=True)
class Table:
    """A table: its values as real numbers, and its type."""

    name: str
    values: NDArray[Any]
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """The bytes of the table."""
        return int(self.values.size * self.dtype.itemsize)


@dataclass(frozen=True)
class Form:
    """A machine in the form in which it is evaluated.

    `presummed` machines have a linear kernel whose sums over points are computed in advance: `points` holds one weight
    vector per score, and there are no coefficients. There is always at least one point, with a coefficient of zero if
    the machine has none, because C has no empty arrays.

    `input_map` is the machine's map of the features `used`; both are None if the machine has no map. Coordinates that
    are the same for all samples and points are left out. `one_unit` says whether integer inputs of a map have one unit
    for all features.
    """

    machine: KernelMachine
    points: Any
    head: Head
    gammas: FloatArray | None
    presummed: bool
    input_map: InputMap | None = None
    used: NDArray[np.intp] | None = None
    one_unit: bool = False

    @property
    def n_points(self) -> int:
        """m, or the number of weight vectors."""
        return int(self.points.shape[0])

    @property
    def n_coordinates(self) -> int:
        """p, the number of coordinates of a point."""
        return int(self.points.shape[1])

    @property
    def skips(self) -> bool:
        """Whether some features are not used."""
        return self.used is not None and len(self.used) < self.machine.n_features

    def read(self, X: NDArray[Any]) -> NDArray[Any]:
        """The columns of X (n, d) that are used."""
        return X[:, self.used] if self.skips else X


def is_fixed(tables: TableType) -> bool:
    """Whether the arithmetic is in integers."""
    return tables.startswith("int")


def form_of(machine: KernelMachine) -> Form:
    """The machine in the form in which it is evaluated."""
    kernel, head, gammas = machine.kernel, machine.head, machine.gammas
    points, input_map, used = narrowed(kernel, machine.points, machine.input_map)
    if not head.n_points:
        head, points = _with_a_point(head), np.zeros((1, points.shape[1]))
        gammas = None if gammas is None else np.zeros(1)
    if kernel.name != "linear":
        return Form(machine, points, head, gammas, False, input_map, used)
    if gammas is not None:
        head, gammas = replace(head, coef=head.coef * gammas[:, None]), None  # type: ignore[type-var]
    shared = head.pairs() if isinstance(head, PairwiseHead) else head
    if isinstance(shared, (LinearHead, PairsHead)) and shared.n_scores <= shared.n_points:
        return Form(machine, _weights(shared.coef, points), shared, None, True, input_map, used)
    return Form(machine, points, head, gammas, False, input_map, used)


def narrowed(
    kernel: Kernel, points: Any, input_map: InputMap | None
) -> tuple[Any, InputMap | None, NDArray[np.intp] | None]:
    """Points, map and features used without the features and coordinates that change no kernel value.

    A feature is left out if its column of A is zero. A coordinate is left out if its row of A is zero and its value,
    the same for all samples, is that of all points (and zero, for kernels of dot products). One of each is kept.
    """
    if input_map is None:
        return points, None, None
    flat = np.asarray(input_map.scale == 0 if input_map.is_diagonal else ~input_map.scale.any(axis=1))
    kept = ~_is_constant(kernel, points, input_map, flat)
    kept = kept if kept.any() else np.arange(len(kept)) == 0
    used = np.flatnonzero(kept) if input_map.is_diagonal else input_map.used
    used = used if len(used) else np.zeros(1, dtype=np.intp)
    if len(used) == input_map.n_features_in and kept.all():
        return points, input_map, used
    scale = input_map.scale[used] if input_map.is_diagonal else input_map.scale[np.ix_(kept, used)]
    return points[:, kept], InputMap(input_map.shift[used], scale, input_map.offset[kept]), used


def _is_constant(kernel: Kernel, points: Any, input_map: InputMap, flat: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the `flat` coordinates (p,), the same for all samples, have the same value in all points."""
    flat = flat & (input_map.offset == 0) if kernel.geometry == "dot" else flat.copy()
    columns = np.flatnonzero(flat)
    flat[columns] = (dense(points[:, columns]) == input_map.offset[columns]).all(axis=0)
    return flat


def _weights(coef: FloatArray, points: Any) -> Any:
    """One weight vector per score, (s, p), as CSR if the points are; memory goes by the columns that have values."""
    if not is_sparse(points):
        return coef.T @ points
    from scipy import sparse

    columns, places = np.unique(points.indices, return_inverse=True)
    values = sparse.csr_array((points.data, places, points.indptr), shape=(len(coef), len(columns)))
    weights = sparse.csr_array(coef.T @ values)
    return sparse.csr_array((weights.data, columns[weights.indices], weights.indptr), (len(coef.T), points.shape[1]))


def _with_a_point(head: Head) -> Head:
    """A head without points, with one added point of coefficient zero."""
    coef = np.zeros((1, head.coef.shape[1]))
    if isinstance(head, StagedHead):
        return replace(head, coef=coef, sizes=(*head.sizes[:-1], 1))
    if isinstance(head, PairwiseHead):
        return replace(head, coef=coef, blocks=(1, *head.blocks[1:]))
    return replace(head, coef=coef)  # type: ignore[type-var]


def tables_of(form: Form, tables: TableType) -> dict[str, Table]:
    """The tables of a machine, by name. In fixed point, the C export fills in the tables that are zero here."""
    width = {role: np.dtype(name) for role, name in WIDTHS[tables].items()}
    found: list[Table] = [*_points(form, width["point"])]
    if not form.presummed:
        found.append(Table("coef", coefficients(form.head), width["coef"]))
    found.append(Table("intercept", form.head.intercept, width["offset"]))
    if form.gammas is not None:
        found.append(Table("gammas", form.gammas, width["offset"]))
    found += _of_head(form, width["offset"])
    if form.input_map is not None:
        found += _of_map(form.input_map, tables, width, form.one_unit)
    if form.used is not None and form.skips:
        found += _runs(form.used)
    if form.machine.calibration is not None:
        found += _of_calibration(form.machine.calibration, width["offset"])
    answer = form.machine.answer
    if isinstance(answer, Classes) and form.head.gives_pairs and answer.order != tuple(range(answer.n_classes)):
        found.append(_indices("order", answer.order))
    return {table.name: table for table in found}


def coefficients(head: Head) -> FloatArray:
    """The coefficients as a flat array: row by row, or with early exit stage by stage, without the zeros."""
    if isinstance(head, StagedHead):
        return np.concatenate([head.coef[:size, head.columns(t)].ravel() for t, size in enumerate(head.sizes)])
    return np.asarray(head.coef.ravel())


def _points(form: Form, dtype: np.dtype[Any]) -> list[Table]:
    """The tables of the points: all entries, or nonzero entries with columns and row starts, whichever is smaller."""
    values, columns, starts = _entries(form.points)
    entries = [
        Table("points", values if len(values) else np.zeros(1), dtype),
        _indices("columns", columns if len(values) else [0], form.n_coordinates - 1),
        _indices("starts", starts),
    ]
    if sum(table.n_bytes for table in entries) < form.n_points * form.n_coordinates * dtype.itemsize:
        return entries
    return [Table("points", dense(form.points).ravel(), dtype)]


def _entries(points: Any) -> tuple[FloatArray, NDArray[Any], NDArray[Any]]:
    """The values of dense or CSR points that are not zero, their columns, and where each row starts."""
    if is_sparse(points):
        return points.data, points.indices, points.indptr
    rows, columns = np.nonzero(points)
    return points[rows, columns], columns, np.searchsorted(rows, np.arange(len(points) + 1))


def _of_head(form: Form, offset: np.dtype[Any]) -> list[Table]:
    head = form.head
    if isinstance(head, MirrorHead):
        squares = form.machine.kernel.scaled_squares(form.points, np.array(head.places, dtype=np.intp), head.scale)
        return [_indices("places", head.places), Table("scale", head.scale, offset), Table("squares", squares, offset)]
    if isinstance(head, PairwiseHead):
        return [_indices("blocks", head.blocks)]
    if not isinstance(head, StagedHead):
        return []
    found = [_indices("sizes", head.sizes)]
    if head.n_stages > 1:
        found.append(Table("upper", head.upper, offset))
        found += [] if head.lower is None else [Table("lower", head.lower, offset)]
    return found


def _of_map(input_map: InputMap, tables: TableType, width: dict[str, np.dtype[Any]], one_unit: bool) -> list[Table]:
    """The tables of A (x − a) + c, A feature by feature.

    In integers: A x + (c − A a), and the fraction bits of each row of A and, without `one_unit`, of each x.
    """
    scale = Table("map_scale", input_map.scale.T.ravel(), width["scale" if input_map.is_diagonal else "point"])
    if is_fixed(tables):
        units = [] if one_unit else [Table("input_bits", np.zeros(input_map.n_features_in), np.dtype(np.int8))]
        return [
            *units,
            scale,
            Table("map_offset", np.zeros(input_map.n_features_out), width["offset"]),
            Table("map_bits", np.zeros(input_map.n_features_out), np.dtype(np.int8)),
        ]
    found = [Table("map_shift", input_map.shift, width["offset"])] if input_map.shift.any() else []
    found.append(scale)
    if input_map.offset.any():
        found.append(Table("map_offset", input_map.offset, width["offset"]))
    return found


def _runs(used: NDArray[np.intp]) -> list[Table]:
    """The features used as runs of neighbours: how many features to skip before each run, and how many it has."""
    first = np.flatnonzero(np.diff(used, prepend=-2) > 1)
    ends = used[np.append(first[1:] - 1, len(used) - 1)] + 1
    skips, lengths = used[first] - np.append(0, ends[:-1]), ends - used[first]
    return [_indices("skips", skips), _indices("lengths", lengths)]


def _of_calibration(calibration: Calibration, offset: np.dtype[Any]) -> list[Table]:
    if isinstance(calibration, Averaged):
        each = [_of_calibration(one, offset) for one in calibration.members]
        return [Table(f"{table.name}_{i}", table.values, table.dtype) for i, own in enumerate(each) for table in own]
    if isinstance(calibration, Softmax):
        return []  # its slope is a number in the code
    if isinstance(calibration, Isotonic):
        return [
            Table("knots", calibration.x, offset),
            Table("levels", calibration.y, offset),
            _indices("knot_starts", np.cumsum((0, *calibration.sizes))),
        ]
    a, b = (getattr(calibration, name) for name in "ab")
    return [Table("slopes", a, offset), Table("lifts", b, offset)]


def reads_text(part: Part) -> bool:
    """Whether a part of a preparation reads categories of text."""
    return isinstance(part, Lookup) and part.categories is not None and part.categories.dtype == object


def text_categories(preparation: Preparation) -> dict[int, list[str]]:
    """The categories of each column of text, those of all its look-ups."""
    found: dict[int, list[str]] = {}
    for lookup in preparation.lookups:
        if reads_text(lookup) and lookup.categories is not None:
            known = found.setdefault(lookup.column, [])
            known += [category for category in lookup.categories.tolist() if category not in known]
    return found


def preparation_tables(preparation: Preparation, tables: TableType) -> list[Table]:
    """The tables of a preparation: for each look-up the row of every category or bin, then of missing and unknown ones.

    Numbers that categories or edges are compared with stay in float64.
    """
    real = np.dtype(np.float64 if tables == "float64" else np.float32)
    categories, found = text_categories(preparation), []
    for i, lookup in enumerate(preparation.lookups):
        rows = list(lookup.rows)
        if reads_text(lookup):
            rows = [lookup.index.get(category, lookup.unknown) for category in categories[lookup.column]]
        every = np.array([*rows, lookup.missing, lookup.unknown])
        found.append(Table(f"row_of_{i}", every, np.promote_types(np.min_scalar_type(int(every.max())), np.int8)))
        numbers = lookup.edges if lookup.edges is not None else lookup.categories
        if numbers is not None and numbers.dtype != object:
            found.append(Table(f"known_{i}", numbers.astype(np.float64), np.dtype(np.float64)))
        if lookup.table is not None:
            found.append(Table(f"value_of_{i}", lookup.table.ravel(), real))
    if preparation.mixing is not None:
        parts = ("shift", "scale", "offset")
        found += [Table(f"mixing_{name}", getattr(preparation.mixing, name).ravel(), real) for name in parts]
    return [table for table in found if table.values.size]


def _indices(name: str, values: Any, largest: int | None = None) -> Table:
    """A table of whole numbers of at least zero, in the narrowest type that can hold `largest`."""
    array = np.asarray(values, dtype=np.int64)
    return Table(name, array, np.min_scalar_type(int(array.max()) if largest is None else largest))

"""The tables of a module in narrower types, and the machine that the module then computes.

JavaScript computes in float64, so that rounding the tables is the only loss. Integers have a step for each column of a
table: a coordinate of the vectors (with an offset too), an output of the map, a score.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.formats.javascript.literals import Code, exact, table
from slimsvm.heads import LinearHead, PairsHead, StagedHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.tables import WIDTHS, Form, TableType, form_of, tables_of

FLOAT32_ERROR = 1e-6  # most error of a kernel value by rounding vectors to float32
OTHER_ROWS = 2.0  # thresholds move by the errors on some rows, times this
ROLES = {"points": "point", "coef": "coef", "map_scale": "point"}


@dataclass(frozen=True)
class Rounded:
    """Tables as JavaScript, and the form of the machine that they are."""

    tables: dict[str, Code]
    form: Form
    n_bytes: int


def float32_is_accurate(machine: KernelMachine) -> bool:
    """Whether kernel values keep their digits if vectors are rounded to float32, and no number is too large for it."""
    form = form_of(machine)
    if form.presummed:
        return True
    Z = dense(form.points)
    most = max(np.abs(Z).max(initial=0.0), np.abs(form.head.coef).max(initial=0.0))
    least = np.abs(form.head.coef[form.head.coef != 0]).min(initial=1.0)
    error = machine.kernel.amplification(Z, form.gammas) * 2.0**-24
    return bool(most < 1e37 and least > 1e-30 and error <= FLOAT32_ERROR)


def rounded(machine: KernelMachine, kind: TableType, rows: FloatArray) -> Rounded:
    """The tables of a machine in types of `kind`; thresholds of early exit move by the errors on `rows`."""
    form = form_of(machine)
    plain = tables_of(form, "float64")
    columns = {
        "points": 1 if "columns" in plain else form.n_coordinates,
        "coef": form.head.n_scores if isinstance(form.head, StagedHead) else form.head.coef.shape[1],
        "map_scale": 1 if form.input_map is None or form.input_map.is_diagonal else form.input_map.n_features_out,
    }
    codes: dict[str, tuple[NDArray[Any], ...]] = {}
    for name in ROLES.keys() & plain.keys():
        role = "scale" if name == "map_scale" and columns[name] == 1 else ROLES[name]
        offsets = name == "points" and "columns" not in plain and machine.kernel.geometry != "dot"
        codes[name] = _codes(plain[name].values, np.dtype(WIDTHS[kind][role]), columns[name], offsets)
    values = {name: _decoded(*code) for name, code in codes.items()}
    form = _with(form, values, "columns" in plain)
    if kind != "float64" and isinstance(form.head, StagedHead):
        form = replace(form, head=_widened(machine, form, form.head, rows))
    found = plain | {name: one for name, one in tables_of(form, "float64").items() if name not in ("columns", "starts")}
    stored = {name: codes.get(name, (exact(found[name].values),)) for name in plain}
    n_bytes = sum(array.nbytes for code in stored.values() for array in code)
    return Rounded({name: table(*code) for name, code in stored.items()}, form, n_bytes)


def _codes(values: FloatArray, dtype: np.dtype[Any], columns: int, offsets: bool) -> tuple[NDArray[Any], ...]:
    """The stored numbers, and for integers the steps, and offsets if wanted, of the columns."""
    if dtype.kind == "f":
        return (values.astype(dtype),)
    grid, most = values.reshape(-1, columns), np.iinfo(dtype).max
    low, high = grid.min(axis=0), grid.max(axis=0)
    middle = _in_float32((low + high) / 2 if offsets else np.zeros(columns))
    reach = np.maximum(np.abs(high - middle), np.abs(low - middle))
    steps = _in_float32(np.nextafter((reach / most).astype(np.float32), np.float32(np.inf)))
    q = np.clip(np.rint((grid - middle) / steps), -most, most).astype(dtype)
    return (q.ravel(), steps, middle) if offsets else (q.ravel(), steps)


def _decoded(q: NDArray[Any], steps: FloatArray | None = None, offsets: FloatArray | None = None) -> FloatArray:
    """The numbers that the module reads from a table."""
    if steps is None:
        return q.astype(np.float64)
    grid = q.reshape(-1, len(steps)) * steps
    return np.asarray(grid if offsets is None else grid + offsets).ravel()


def _in_float32(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def _with(form: Form, values: dict[str, FloatArray], is_sparse_table: bool) -> Form:
    """The form with other numbers in its tables."""
    points, head, input_map = form.points, form.head, form.input_map
    if is_sparse_table and is_sparse(points):
        points = points.copy()
        points.data = values["points"] if len(points.data) else points.data
    elif is_sparse_table:
        points = np.array(points)
        points[np.nonzero(points)] = values["points"]
    else:
        points = values["points"].reshape(form.points.shape)
    if "coef" in values:
        head = replace(head, coef=_coefficients(form, values["coef"]))  # type: ignore[type-var]
    if input_map is not None:
        scale = values["map_scale"]
        shape = (input_map.n_features_in, input_map.n_features_out)
        input_map = replace(input_map, scale=scale if input_map.is_diagonal else scale.reshape(shape).T)
    return replace(form, points=points, head=head, input_map=input_map)


def _coefficients(form: Form, flat: FloatArray) -> FloatArray:
    """The coefficients of the head, from its flat table."""
    head = form.head
    if not isinstance(head, StagedHead):
        return flat.reshape(head.coef.shape)
    coef, start = np.zeros(head.coef.shape), 0
    for t, size in enumerate(head.sizes):
        stop = start + size * head.n_scores
        coef[:size, head.columns(t)] = flat[start:stop].reshape(size, head.n_scores)
        start = stop
    return coef


def machine_of(form: Form) -> KernelMachine:
    """The machine that a form is, for the features that it reads."""
    machine, head = form.machine, form.head
    if form.presummed:
        kind = PairsHead if head.gives_pairs else LinearHead
        head = kind(np.eye(form.n_points), head.intercept)
    return KernelMachine(
        machine.kernel, form.points, head, machine.answer, form.gammas, form.input_map, machine.calibration
    )


def _widened(machine: KernelMachine, form: Form, head: StagedHead, rows: FloatArray) -> StagedHead:
    """The head with thresholds that move apart by the largest error of a stage's score on the rows, twice."""
    if head.n_stages == 1 or not isinstance(machine.head, StagedHead):
        return head
    own, other = machine_of(form_of(machine)), machine_of(form)
    values = [
        one.kernel.gram_numpy(_mapped(one, form.read(rows)), dense(one.points), one.gammas) for one in (own, other)
    ]
    errors = np.zeros(head.n_stages - 1)
    for t in range(head.n_stages - 1):
        columns = head.columns(t)
        o = [K @ one.head.coef[:, columns] for K, one in zip(values, (own, other), strict=True)]
        errors[t] = np.abs(o[0] - o[1]).max(initial=0.0)
    return head.with_margins(OTHER_ROWS * errors * (1 if head.lower is not None else 2))


def _mapped(machine: KernelMachine, rows: FloatArray) -> FloatArray:
    return rows if machine.input_map is None else machine.input_map.apply(rows)

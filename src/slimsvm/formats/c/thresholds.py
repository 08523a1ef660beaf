"""The thresholds of early exit in an arithmetic with larger errors than float64.

A threshold is the largest score of a stage that is still wrong, up to errors of float64. In C, scores have errors of
their own, so thresholds move apart by these errors. Then no sample is decided wrongly by a stage in C that no stage of
the machine decides wrongly.

Errors depend on the data. Margins are twice the largest error on the given rows, because other rows may have larger
ones: of float32 a bound on the error, of integers the error itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slimsvm._record import FloatArray
from slimsvm.formats.c.fixed import Fixed
from slimsvm.heads import StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.tables import Table

UNIT = float(np.finfo(np.float32).eps) / 2  # the largest relative error of rounding to float32
LARGEST = float(np.finfo(np.float32).max)
FUNCTION = 16  # relative error of the export's exponential and tanh, in units
OTHER_ROWS = 2.0
ROWS = 4096  # rows at a time


def for_float32(machine: KernelMachine, rows: FloatArray) -> KernelMachine:
    """The machine with thresholds for float32; the machine itself if it has no early exit."""
    head = machine.head
    if not isinstance(head, StagedHead) or head.n_stages == 1:
        return machine
    errors = np.max([_float32_errors(machine, head, rows[a : a + ROWS]) for a in range(0, len(rows), ROWS)], axis=0)
    sizes = np.abs(head.upper) if head.lower is None else np.maximum(np.abs(head.upper), np.abs(head.lower))
    margins = _margins(errors, head) + 2 * UNIT * np.minimum(sizes, LARGEST)  # of the thresholds' own rounding
    wider = head.with_margins(margins)
    ends = {"upper": wider.upper, "lower": wider.lower}
    within = {name: None if end is None else np.clip(end, -LARGEST / 2, LARGEST / 2) for name, end in ends.items()}
    return replace(machine, head=replace(wider, **within))  # type: ignore[arg-type]


def for_integers(fixed: Fixed, rows: FloatArray) -> Fixed:
    """The machine in integers with thresholds for its own errors; the machine itself if it has no early exit."""
    machine, head = fixed.form.machine, fixed.form.head
    if not isinstance(head, StagedHead) or head.n_stages == 1:
        return fixed
    assert isinstance(machine.head, StagedHead)
    errors = np.zeros(head.n_stages)
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        K = machine.kernel.gram(_mapped(machine, part), machine.points, machine.gammas)
        for t, found in enumerate(fixed.stages(fixed.quantise(part))):
            columns = machine.head.columns(t)
            expected = K @ machine.head.coef[:, columns] + machine.head.intercept[columns]
            errors[t] = max(errors[t], float(np.abs(fixed.real(found) - expected).max(initial=0.0)))
    wider = machine.head.with_margins(_margins(errors[:-1], head))
    bits = fixed.constants["score_bits"]
    tables = dict(fixed.tables)
    for name, round_outwards in (("upper", np.ceil), ("lower", np.floor)):
        if name in tables:
            tables[name] = _filled(tables[name], round_outwards(np.ldexp(getattr(wider, name), bits)))
    return replace(fixed, tables=tables)


def _filled(table: Table, values: FloatArray) -> Table:
    most = np.iinfo(table.dtype).max
    return replace(table, values=np.clip(values, -most, most).astype(np.int64))


def _margins(errors: FloatArray, head: StagedHead) -> FloatArray:
    """By how much thresholds move, (S − 1,), from the errors of scores; the lead of a score has two errors."""
    return np.asarray(OTHER_ROWS * errors * (1 if head.lower is not None else 2))


def _mapped(machine: KernelMachine, rows: FloatArray) -> FloatArray:
    return rows if machine.input_map is None else machine.input_map.apply(rows)


def _float32_errors(machine: KernelMachine, head: StagedHead, rows: FloatArray) -> FloatArray:
    """Bounds on the float32 errors of the scores of all stages but the last, (S − 1,): the largest over the rows.

    k errs by its change over t ± δ, and by the error of its own function; a sum of n terms errs by n units of the sum
    of their sizes (Higham 2002, section 3.1).
    """
    kernel, u, Z = machine.kernel, _mapped(machine, rows), dense(machine.points)
    gamma = kernel.gamma if machine.gammas is None else machine.gammas
    t = kernel._quantity(u, Z)
    delta = _quantity_errors(kernel.geometry, t, u, _coordinate_errors(machine.input_map, rows, u), Z)
    argument = 2 * UNIT * (np.abs(t) + np.abs(kernel.coef0) / np.maximum(gamma, 1e-300))  # γ, its product, coef0
    delta += np.where(np.asarray(gamma) > 0, argument, 0.0)
    k = kernel.profile(t, gamma)
    ends = [t + delta, t - delta if kernel.geometry == "dot" else np.maximum(t - delta, 0.0)]
    change = np.max([np.abs(kernel.profile(end, gamma) - k) for end in ends], axis=0)
    value_errors = change + UNIT * (FUNCTION + 2 * kernel.degree) * np.abs(k)
    errors = np.zeros(head.n_stages - 1)
    for stage in range(head.n_stages - 1):
        n, columns = head.sizes[stage], head.columns(stage)
        coef, intercept = np.abs(head.coef[:n, columns]), np.abs(head.intercept[columns])
        sums = (value_errors[:, :n] + UNIT * (n + 4) * np.abs(k[:, :n])) @ coef + 4 * UNIT * intercept
        errors[stage] = sums.max(initial=0.0)
    return errors


def _coordinate_errors(input_map: InputMap | None, x: FloatArray, u: FloatArray) -> FloatArray:
    """Bounds on the errors of the coordinates u (n, p) of rows x (n, d), whose numbers are rounded too."""
    if input_map is None:
        return UNIT * np.abs(u)
    sizes = np.abs(x) + np.abs(input_map.shift)
    products = sizes * np.abs(input_map.scale) if input_map.is_diagonal else sizes @ np.abs(input_map.scale).T
    n_terms = 1 if input_map.is_diagonal else x.shape[1]
    return np.asarray(UNIT * (n_terms + 5) * (products + np.abs(input_map.offset)))


def _quantity_errors(geometry: str, t: FloatArray, u: FloatArray, errors: FloatArray, Z: FloatArray) -> FloatArray:
    """Bounds on the errors of x·z, ‖x − z‖² or ‖x − z‖₁, (n, m)."""
    p = Z.shape[1]
    if geometry == "dot":
        return np.asarray(errors @ np.abs(Z).T + UNIT * (p + 2) * (np.abs(u) @ np.abs(Z).T))
    if geometry == "manhattan_distance":
        moved = errors.sum(axis=1)[:, None] + UNIT * np.abs(Z).sum(axis=1)
        return np.asarray(moved + UNIT * (p + 2) * t)
    moved = np.linalg.norm(errors, axis=1)[:, None] + UNIT * np.linalg.norm(Z, axis=1)
    return np.asarray(2 * np.sqrt(t) * moved + moved**2 + UNIT * (p + 4) * t)

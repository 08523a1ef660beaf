"""A machine in the form that LIBSVM and scikit-learn's SVC hold, as another record with the same answers.

That form is: one width for all points, no input map, a score per value, and for classes LIBSVM's one-vs-one blocks
(`PairwiseHead`) with a sigmoid per pair. `as_libsvm` rewrites a machine step by step; each step is exact, or is refused
in a sentence, or is told in the notes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Classes
from slimsvm.calibration import Calibration, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.heads import LinearHead, MirrorHead, PairsHead, PairwiseHead, StagedHead, class_pairs
from slimsvm.input_map import InputMap
from slimsvm.kernels import Rbf
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

SAME = 1e-12  # relative: columns of a map that differ by no more are of one length, and orthogonal


@dataclass
class Notes:
    """What a rewriting leaves out or changes (`changes`), and what it costs (`costs`), in sentences."""

    changes: list[str] = field(default_factory=list)
    costs: list[str] = field(default_factory=list)


def as_libsvm(machine: KernelMachine, form: str, notes: Notes) -> KernelMachine:
    """The machine in LIBSVM's form, but for an input map that cannot be folded, which stays.

    `form` names what is made, for the sentences of refusals: "A LIBSVM model file", "scikit-learn's SVC".
    """
    check(machine, form)
    machine = without_stages(machine, notes)
    machine = decided_by_scores(machine, form, notes)
    machine = folded(_of_one_width(machine, form))
    return _in_blocks(machine, notes) if isinstance(machine.answer, Classes) else machine


def check(machine: KernelMachine, form: str) -> None:
    """Refuse a head or a kernel that no rewriting brings into LIBSVM's form."""
    if isinstance(machine.head, MirrorHead):
        raise UnsupportedExportError(
            f"{form} sums kernel values, and the mirror head of this machine sums distances in feature space. "
            f"Export a machine with a linear head, or to a format that has all heads, such as 'c' or 'onnx'."
        )
    if not float(machine.kernel.degree).is_integer():
        raise UnsupportedExportError(
            f"{form} has polynomials of whole degrees, and this machine's is {machine.kernel.degree:g}. Export it to a "
            f"format that has all, such as 'onnx'."
        )


def without_stages(machine: KernelMachine, notes: Notes) -> KernelMachine:
    """The last stage of a machine with early exit."""
    if isinstance(machine.head, StagedHead):
        notes.changes.append(
            f"Early exit is left out: every sample is answered by the last stage, with all {machine.n_vectors} vectors."
        )
    return machine.without_early_exit()


def decided_by_scores(machine: KernelMachine, form: str, notes: Notes) -> KernelMachine:
    """The machine whose scores decide, where its probabilities did: P = 1/(1 + exp(a f + b)) rises with −(a f + b)."""
    calibration = machine.calibration
    if calibration is None or not calibration.decides:
        return machine
    # Of pairs the softmax reads the "ovr" decision, whose largest need not have the most votes.
    if isinstance(calibration, Softmax) and calibration.slope > 0 and not machine.head.gives_pairs:
        return replace(machine, calibration=replace(calibration, decides=False))
    if isinstance(calibration, Sigmoid) and isinstance(machine.head, LinearHead):
        a, b = calibration.a, calibration.b
        head = LinearHead(-machine.head.coef * a, -(machine.head.intercept * a + b))
        made = replace(calibration, a=-np.ones_like(a), b=np.zeros_like(b), decides=False)
        notes.changes.append(
            "The machine decides by its probabilities: scores are written as their logits, −(a f + b), so that the "
            "largest, or the sign, is the answer."
        )
        return replace(machine, head=head, calibration=made)
    raise UnsupportedExportError(
        f"{form} decides by scores, and this machine decides by its {calibration.name} calibration, which scores "
        f"cannot follow. Calibrate with sigmoids, or export dataclasses.replace(machine, calibration=None), whose "
        f"scores decide."
    )


def _of_one_width(machine: KernelMachine, form: str) -> KernelMachine:
    """One γ for all points: those of dot products become part of the points, as γ_j x·z_j = x·(γ_j z_j)."""
    gammas, kernel = machine.gammas, machine.kernel
    if gammas is None:
        return machine
    if kernel.geometry == "dot":
        unit = kernel if kernel.name == "linear" else replace(kernel, gamma=1.0)  # type: ignore[type-var]
        return replace(machine, kernel=unit, points=_scaled_rows(machine.points, gammas), gammas=None)
    if len(gammas) and (gammas == gammas[0]).all():
        return replace(machine, kernel=replace(kernel, gamma=float(gammas[0])), gammas=None)  # type: ignore[type-var]
    if not len(gammas):
        return replace(machine, gammas=None)
    raise UnsupportedExportError(
        f"{form} has one gamma, and the vectors of this machine have widths of their own, from {gammas.min():.6g} to "
        f"{gammas.max():.6g}. Train it with one width, or export to a format that has several, such as 'c' or 'onnx'."
    )


def folded(machine: KernelMachine) -> KernelMachine:
    """The machine without its input map x → A x + b where its points can take it in exactly, else as it is.

    - linear kernel: z·(A x + b) = (Aᵀ z)·x + z·b, and the constants join the intercepts;
    - other kernels of dot products: the same where b = 0;
    - rbf where AᵀA = s² I: ‖A x + b − z‖² = s² ‖x − x_z‖² + r_z², and exp(−γ r_z²) joins the coefficients.
    """
    given = machine.input_map
    if given is None:
        return machine
    if machine.kernel.geometry == "dot":
        b = given.offset - (given.scale * given.shift if given.is_diagonal else given.scale @ given.shift)
        if machine.kernel.name != "linear" and b.any():
            return machine
        constants = np.asarray(machine.points @ b).reshape(1, -1)
        head = replace(machine.head, intercept=machine.head.scores(constants)[0]) if b.any() else machine.head  # type: ignore[type-var]
        return replace(machine, points=_through(machine.points, given), head=head, input_map=None)
    length = _length_of_columns(given)
    if not isinstance(machine.kernel, Rbf) or length == 0.0:
        return machine
    moved = dense(machine.points) - given.offset
    places = _through(moved, given) / length**2  # relative to the shift
    back = places * given.scale if given.is_diagonal else places @ given.scale.T
    weight = np.exp(-machine.kernel.gamma * ((moved - back) ** 2).sum(axis=1))
    return replace(
        machine,
        kernel=Rbf(machine.kernel.gamma * length**2),
        points=places + given.shift,
        head=replace(machine.head, coef=machine.head.coef * weight[:, None]),  # type: ignore[type-var]
        input_map=None,
    )


def through_scaling(machine: KernelMachine, given: InputMap, form: str) -> tuple[KernelMachine, FloatArray, FloatArray]:
    """The machine of data scaled to s (x − a), and a and s (d,), in place of its diagonal map s (x − a) + c.

    Radial kernels do not mind a shift of data and points, so c goes off the points; for the others it goes into a.
    """
    a, s, c = given.shift, given.scale, given.offset
    if machine.kernel.geometry != "dot":
        return replace(machine, points=dense(machine.points) - c if c.any() else machine.points, input_map=None), a, s
    constant = s == 0
    if c[constant].any():
        raise UnsupportedExportError(
            f"{form} is given scaled data, and the input map of this machine makes a constant of feature "
            f"{int(np.flatnonzero(constant & (c != 0))[0])}, which s (x − a) cannot. Train without that feature."
        )
    return replace(machine, input_map=None), a - np.divide(c, s, out=np.zeros_like(c), where=~constant), s


def _length_of_columns(given: InputMap) -> float:
    """s where AᵀA = s² I, else 0."""
    A = given.scale
    if given.is_diagonal:
        s = np.abs(A)
        return float(s.max()) if np.ptp(s) <= SAME * s.max() else 0.0
    p, d = A.shape
    if p < d:
        return 0.0
    square = A.T @ A
    s2 = float(np.diag(square).mean())
    return float(np.sqrt(s2)) if np.abs(square - s2 * np.eye(d)).max() <= SAME * s2 else 0.0


def _through(points: Any, given: InputMap) -> Any:
    """Aᵀ z of every point, (m, d)."""
    if not given.is_diagonal:
        return np.asarray(points @ given.scale)
    return points.multiply(given.scale[None, :]).tocsr() if is_sparse(points) else points * given.scale


def _scaled_rows(points: Any, factors: FloatArray) -> Any:
    return points.multiply(factors[:, None]).tocsr() if is_sparse(points) else points * factors[:, None]


def _in_blocks(machine: KernelMachine, notes: Notes) -> KernelMachine:
    """A machine of classes with a PairwiseHead."""
    head, answer = machine.head, machine.answer
    assert isinstance(answer, Classes)
    if isinstance(head, PairwiseHead):
        return replace(machine, calibration=_of_pairs(machine, 1.0, notes))
    k = answer.n_classes
    if isinstance(head, PairsHead):
        return _copied(machine, head, answer, _of_pairs(machine, 1.0, notes), notes)
    if k == 2:  # a pair's score is positive for the first of the order, a machine's for the second class
        sign = 1.0 if answer.order == (1, 0) else -1.0
        made = PairwiseHead(sign * head.coef, sign * head.intercept, _runs(sign * head.coef[:, 0]))
        return replace(machine, head=made, calibration=_of_pairs(machine, sign, notes))
    first, second, _ = class_pairs(k)
    coef, intercept = (v[..., first] - v[..., second] for v in (head.coef, head.intercept))
    sorted_answer = replace(answer, order=tuple(range(k)), break_ties=False)  # one class wins all its pairs
    return _copied(machine, PairsHead(coef, intercept), sorted_answer, _of_pairs(machine, 1.0, notes), notes)


def _runs(coef: FloatArray) -> tuple[int, int]:
    """The blocks of two classes: by sign where the first class's come first, else all in one; scores do not ask."""
    n = int((coef > 0).sum())
    return (n, len(coef) - n) if (coef[:n] > 0).all() else (len(coef), 0)


def _copied(
    machine: KernelMachine, head: PairsHead, answer: Classes, calibration: Calibration | None, notes: Notes
) -> KernelMachine:
    """Shared points in blocks of classes, with copies of a point for as many classes as its pairs need."""
    places, made = _cover(head, answer.n_classes)
    if len(places) > machine.n_vectors:
        notes.costs.append(
            f"The {machine.n_vectors} vectors that the classes share are written {len(places)} times: LIBSVM's layout "
            f"gives each vector to one class. Each sample costs {len(places)} kernel evaluations."
        )
    return replace(machine, points=machine.points[places], head=made, answer=answer, calibration=calibration)


def _cover(head: PairsHead, k: int) -> tuple[NDArray[np.intp], PairwiseHead]:
    """The points (repeated) and the head of LIBSVM's layout with the same scores.

    A point given to class i carries the coefficients of the pairs that have i. One with coefficients in all pairs is
    needed in k − 1 blocks; one whose pairs have a class in common, in one. Classes are taken by the pairs they serve.
    """
    first, second, sign = class_pairs(k)
    pair = np.zeros((k, k), dtype=np.intp)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    left = head.coef.copy()
    places: list[list[NDArray[np.intp]]] = [[] for _ in range(k)]
    rows: list[list[FloatArray]] = [[] for _ in range(k)]
    while left.any():
        degree = (left != 0) @ np.abs(sign)
        best = np.where(degree.any(axis=1), degree.argmax(axis=1), -1)
        for i in np.unique(best[best >= 0]):
            mine, others = np.flatnonzero(best == i), np.delete(pair[i], i)
            places[i].append(mine)
            rows[i].append(left[mine[:, None], others])
            left[mine[:, None], others] = 0.0
    order = [np.concatenate([np.empty(0, np.intp), *each]) for each in places]
    coef = np.vstack([np.empty((0, k - 1)), *(row for each in rows for row in each)])
    return np.concatenate(order), PairwiseHead(coef, head.intercept, tuple(len(each) for each in order))


def _of_pairs(machine: KernelMachine, sign: float, notes: Notes) -> PairwiseSigmoid | None:
    """The calibration as a sigmoid per pair; `sign` is that of the pair's score against the machine's, of two classes.

    Softmax of k scores is such: P(i | i or j) = 1/(1 + exp(−slope (f_i − f_j))).
    """
    calibration = machine.calibration
    if calibration is None or isinstance(calibration, PairwiseSigmoid):
        return calibration
    assert isinstance(machine.answer, Classes)
    two = machine.answer.n_classes == 2
    if isinstance(calibration, Sigmoid) and two:
        return PairwiseSigmoid(calibration.a, sign * calibration.b)
    if isinstance(calibration, Softmax) and not machine.head.gives_pairs:
        n = len(class_pairs(machine.answer.n_classes)[0])
        return PairwiseSigmoid(np.full(n, -calibration.slope), np.zeros(n))
    notes.changes.append(
        f"Probabilities are left out: those of a {calibration.name} calibration of {machine.answer.n_classes} classes "
        f"are not made of a sigmoid per pair of classes. Labels and scores are as before."
    )
    return None

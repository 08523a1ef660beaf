"""A machine in the form of LIBSVM and scikit-learn's SVC, as another record with the same predictions.

This form has one γ for all points and no input map. Regression has one score per value; classification has LIBSVM's
one-vs-one blocks (`PairwiseHead`) with one sigmoid per pair. `as_libsvm` rewrites a machine step by step. A step is
exact, or adds to the notes what it changes, or raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Classes, Value
from slimsvm.calibration import Calibration, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import require_one_model
from slimsvm.heads import LinearHead, MirrorHead, PairsHead, PairwiseHead, StagedHead, class_pairs, pair_signs
from slimsvm.input_map import InputMap
from slimsvm.kernels import Rbf
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

SAME = 1e-12  # relative difference up to which columns of a map count as orthogonal and of equal length


@dataclass
class Notes:
    """Sentences on what the rewritten machine leaves out or changes (`changes`), and on its extra cost (`costs`)."""

    changes: list[str] = field(default_factory=list)
    costs: list[str] = field(default_factory=list)


def as_libsvm(machine: KernelMachine, form: str, notes: Notes) -> KernelMachine:
    """The machine in LIBSVM's form. An input map that cannot be fused into the points stays.

    `form` is the name of the target in error messages: "A LIBSVM model file" or "scikit-learn's SVC".
    """
    check(machine, form)
    machine = without_stages(machine, notes)
    machine = decided_by_scores(machine, form, notes)
    machine = fused(_of_one_width(machine, form))
    return _in_blocks(machine, notes) if isinstance(machine.answer, Classes) else machine


def check(machine: KernelMachine, form: str) -> None:
    """Raise UnsupportedExportError for a head or kernel that cannot be written in LIBSVM's form."""
    if isinstance(machine.answer, Value) and machine.answer.function is not None:
        raise UnsupportedExportError(
            f"{form} predicts scores, and this machine predicts their {machine.answer.function}. Export it to 'onnx'."
        )
    require_one_model(machine, form)
    if machine.preparation is not None:
        raise UnsupportedExportError(
            f"{form} takes numbers, and this machine reads raw rows. Export it to 'c', 'onnx' or 'js', or export "
            f"machine.without_preparation(), which takes machine.preparation.apply(X)."
        )
    if isinstance(machine.head, MirrorHead):
        raise UnsupportedExportError(
            f"{form} sums kernel values, and the mirror head of this machine sums distances in feature space. "
            f"Export it to a format that supports all heads, such as 'c' or 'onnx'."
        )
    if not float(machine.kernel.degree).is_integer():
        raise UnsupportedExportError(
            f"{form} needs a polynomial of whole degree. Got {machine.kernel.degree:g}. Export the machine to a format "
            f"that supports all degrees, such as 'onnx'."
        )


def without_stages(machine: KernelMachine, notes: Notes) -> KernelMachine:
    """The machine without early exit."""
    if isinstance(machine.head, StagedHead):
        notes.changes.append(f"Early exit is left out: every sample is evaluated with all {machine.n_vectors} vectors.")
    return machine.without_early_exit()


def decided_by_scores(machine: KernelMachine, form: str, notes: Notes) -> KernelMachine:
    """A machine with the same predictions that decides by scores instead of probabilities.

    P = 1/(1 + exp(a f + b)) increases with −(a f + b).
    """
    calibration = machine.calibration
    if calibration is None or not calibration.decides:
        return machine
    # With pairs, the softmax reads the "ovr" decision, and its largest value need not have the most votes.
    if isinstance(calibration, Softmax) and calibration.slope > 0 and not machine.head.gives_pairs:
        return replace(machine, calibration=replace(calibration, decides=False))
    if isinstance(calibration, Sigmoid) and isinstance(machine.head, LinearHead):
        a, b = calibration.a, calibration.b
        head = LinearHead(-machine.head.coef * a, -(machine.head.intercept * a + b))
        made = replace(calibration, a=-np.ones_like(a), b=np.zeros_like(b), decides=False)
        notes.changes.append(
            "The machine predicts by its probabilities, so the scores are written as their logits, −(a f + b). The "
            "largest score, or its sign, gives the same prediction."
        )
        return replace(machine, head=head, calibration=made)
    raise UnsupportedExportError(
        f"{form} predicts by scores, and this machine predicts by its {calibration.name} calibration, which scores "
        f"cannot reproduce. Calibrate with sigmoids, or export dataclasses.replace(machine, calibration=None), which "
        f"predicts by scores."
    )


def _of_one_width(machine: KernelMachine, form: str) -> KernelMachine:
    """The machine with one γ for all points. In dot products γ_j joins the points: γ_j x·z_j = x·(γ_j z_j)."""
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
        f"{form} has one gamma, and the vectors of this machine have several, from {gammas.min():.6g} to "
        f"{gammas.max():.6g}. Train with one gamma, or export to a format that supports several, such as 'c' or 'onnx'."
    )


def fused(machine: KernelMachine) -> KernelMachine:
    """The machine with its input map x → A x + b fused into the points if that is exact, else unchanged.

    - linear kernel: z·(A x + b) = (Aᵀ z)·x + z·b, and the constants join the intercepts;
    - other dot-product kernels: the same if b = 0;
    - rbf if AᵀA = s² I: ‖A x + b − z‖² = s² ‖x − x_z‖² + r_z², and exp(−γ r_z²) joins the coefficients.
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
    """The machine for data scaled to s (x − a), with a and s (d,), instead of its diagonal map s (x − a) + c.

    For radial kernels c is subtracted from the points. For the others it is included in a.
    """
    a, s, c = given.shift, given.scale, given.offset
    if machine.kernel.geometry != "dot":
        return replace(machine, points=dense(machine.points) - c if c.any() else machine.points, input_map=None), a, s
    constant = s == 0
    if c[constant].any():
        raise UnsupportedExportError(
            f"{form} needs a scaling s (x − a), and the input map of this machine replaces feature "
            f"{int(np.flatnonzero(constant & (c != 0))[0])} by a constant. Train without that feature."
        )
    return replace(machine, input_map=None), a - np.divide(c, s, out=np.zeros_like(c), where=~constant), s


def _length_of_columns(given: InputMap) -> float:
    """s if AᵀA = s² I, else 0."""
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
    """Aᵀ z for every point z, (m, d)."""
    if not given.is_diagonal:
        return np.asarray(points @ given.scale)
    return points.multiply(given.scale[None, :]).tocsr() if is_sparse(points) else points * given.scale


def _scaled_rows(points: Any, factors: FloatArray) -> Any:
    return points.multiply(factors[:, None]).tocsr() if is_sparse(points) else points * factors[:, None]


def _in_blocks(machine: KernelMachine, notes: Notes) -> KernelMachine:
    """A classifier's machine with a PairwiseHead instead of another head."""
    head, answer = machine.head, machine.answer
    assert isinstance(answer, Classes)
    if isinstance(head, PairwiseHead):
        return replace(machine, calibration=_of_pairs(machine, 1.0, notes))
    k = answer.n_classes
    if isinstance(head, PairsHead):
        return _copied(machine, head, answer, _of_pairs(machine, 1.0, notes), notes)
    if k == 2:  # a pair's score is positive for the first class of `order`, a machine's score for the second class
        sign = 1.0 if answer.order == (1, 0) else -1.0
        made = PairwiseHead(sign * head.coef, sign * head.intercept, _runs(sign * head.coef[:, 0]))
        return replace(machine, head=made, calibration=_of_pairs(machine, sign, notes))
    first, second = class_pairs(k)
    coef, intercept = (v[..., first] - v[..., second] for v in (head.coef, head.intercept))
    sorted_answer = replace(answer, order=tuple(range(k)), break_ties=False)  # one class wins all its pairs
    return _copied(machine, PairsHead(coef, intercept), sorted_answer, _of_pairs(machine, 1.0, notes), notes)


def _runs(coef: FloatArray) -> tuple[int, int]:
    """The block sizes of two classes: split by sign if that keeps the order, else one block; scores are the same."""
    n = int((coef > 0).sum())
    return (n, len(coef) - n) if (coef[:n] > 0).all() else (len(coef), 0)


def _copied(
    machine: KernelMachine, head: PairsHead, answer: Classes, calibration: Calibration | None, notes: Notes
) -> KernelMachine:
    """The machine with its shared points in one block per class; a point is copied to each class that needs it."""
    places, made = _cover(head, answer.n_classes)
    if len(places) > machine.n_vectors:
        notes.costs.append(
            f"The {machine.n_vectors} vectors that the classes share are written {len(places)} times, because LIBSVM "
            f"assigns each vector to one class. Each sample needs {len(places)} kernel evaluations."
        )
    return replace(machine, points=machine.points[places], head=made, answer=answer, calibration=calibration)


def _cover(head: PairsHead, k: int) -> tuple[NDArray[np.intp], PairwiseHead]:
    """The points, with repetitions, and the head in LIBSVM's layout that have the same scores.

    A point in the block of class i carries its coefficients for all pairs with i. A point with coefficients in all
    pairs needs k − 1 blocks; a point whose pairs share a class needs one. Blocks are chosen greedily, by the number of
    pairs that they cover.
    """
    first, second = class_pairs(k)
    pair = np.zeros((k, k), dtype=np.intp)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    left, signs = head.coef.copy(), pair_signs(k)
    places: list[list[NDArray[np.intp]]] = [[] for _ in range(k)]
    rows: list[list[FloatArray]] = [[] for _ in range(k)]
    while left.any():
        degree = (left != 0) @ np.abs(signs)
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
    """The calibration as one sigmoid per pair, or None if that is not possible.

    For two classes, `sign` is the sign of the pair's score relative to the machine's. Softmax has the form
    P(i | i or j) = 1/(1 + exp(−slope (f_i − f_j))).
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
        f"Probabilities are left out: a {calibration.name} calibration of {machine.answer.n_classes} classes cannot be "
        f"written as one sigmoid per pair of classes. Labels and scores do not change."
    )
    return None

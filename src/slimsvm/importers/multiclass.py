"""scikit-learn's OneVsRestClassifier and OneVsOneClassifier, as one machine whose outputs share points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Classes
from slimsvm.arrays import stack_points
from slimsvm.calibration import Calibration, Isotonic, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import Head, LinearHead, PairwiseHead
from slimsvm.importers import checks
from slimsvm.importers.base import Imported, ImportRequest, name_of
from slimsvm.importers.union import merge
from slimsvm.kernels import Kernel, make_kernel
from slimsvm.machine import KernelMachine


def import_one_vs_rest(model: Any, request: ImportRequest) -> Imported:
    """A machine with one column of coefficients per class, or one for two classes, on the union of all points."""
    checks.require_fitted(model)
    if str(checks.attribute(model, "label_binarizer_").y_type_).startswith("multilabel"):
        raise UnsupportedModelError(f"{name_of(model)} is multi-label, and a machine predicts one class per sample.")
    labels = checks.labels(model)
    members = _members(model, request, 1 if len(labels) == 2 else len(labels))
    answer = Classes(labels, (1, 0) if len(labels) == 2 else ())
    return Imported(one_vs_rest(members, answer, _calibration(model, members)))


def one_vs_rest(
    members: Sequence[KernelMachine], answer: Classes, calibration: Calibration | None = None
) -> KernelMachine:
    """One machine from binary one-vs-rest machines with the same kernel parameters except γ, on shared points."""
    points, gammas, places = merge([(machine.points, gammas_of(machine)) for machine in members])
    coef = np.zeros((points.shape[0], len(members)))
    for column, (machine, rows) in enumerate(zip(members, places, strict=True)):
        np.add.at(coef[:, column], rows, machine.head.coef[:, 0])
    head = LinearHead(coef, np.concatenate([machine.head.intercept for machine in members]))
    return _shared(members, points, gammas, head, answer, calibration)


def import_one_vs_one(model: Any, request: ImportRequest) -> Imported:
    """A machine with the pairs in LIBSVM's layout.

    A point with a positive coefficient is in the block of the pair's second class. The score of a pair has the opposite
    sign of the estimator's. The class with the largest "ovr" decision is predicted, as in scikit-learn.
    """
    checks.require_fitted(model)
    labels = checks.labels(model)
    k = len(labels)
    if k == 2:
        raise UnsupportedModelError(
            f"{name_of(model)} with two classes adds a vote to the score, which a machine cannot do. "
            f"Pass the model inside it."
        )
    pairs = list(combinations(range(k), 2))
    members = _members(model, request, len(pairs))
    if any(machine.calibration is not None and machine.calibration.decides for machine in members):
        raise UnsupportedModelError(
            f"{name_of(model)} around calibrated models votes by probabilities, which a machine cannot do. "
            f"Fit it around models without calibration."
        )
    blocks = [_block(i, pairs, members) for i in range(k)]
    points, gammas = stack_points([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])
    intercept = -np.concatenate([machine.head.intercept for machine in members])
    coef = np.vstack([coef for _, _, coef in blocks])
    head = PairwiseHead(coef, intercept, tuple(len(coef) for _, _, coef in blocks))
    answer = Classes(labels, (), "ovr", break_ties=True)
    return Imported(_shared(members, points, gammas, head, answer, None))


def _block(
    i: int, pairs: list[tuple[int, int]], members: Sequence[KernelMachine]
) -> tuple[Any, FloatArray, FloatArray]:
    """The points, widths and coefficients (m_i, k − 1) of class i, from all pairs that contain it."""
    parts, shares = [], []
    for (first, second), machine in zip(pairs, members, strict=True):
        if i not in (first, second):
            continue
        coef = machine.head.coef[:, 0]
        own = np.flatnonzero(coef > 0 if i == second else coef < 0)
        parts.append((machine.points[own], gammas_of(machine)[own]))
        shares.append((second - 1 if i == first else first, -coef[own]))
    points, gammas, places = merge(parts)
    block = np.zeros((points.shape[0], len(parts)))
    for (column, share), rows in zip(shares, places, strict=True):
        np.add.at(block[:, column], rows, share)
    return points, gammas, block


def _members(model: Any, request: ImportRequest, n_members: int) -> list[KernelMachine]:
    """The machines of the estimators inside: binary, with the same input map and kernel parameters except γ."""
    estimators = checks.attribute(model, "estimators_")
    if not isinstance(estimators, list | tuple) or len(estimators) != n_members:
        raise ValueError(f"estimators_ of {name_of(model)} must be {n_members} models. {checks.REMEDY}")
    imported = [request.inner(estimator, fuse=True) for estimator in estimators]
    members = [one.machine for one in imported]
    for one in imported:
        machine = one.machine
        binary = isinstance(machine.answer, Classes) and isinstance(machine.head, LinearHead)
        if one.steps or not binary or machine.head.n_scores != 1:
            raise UnsupportedModelError(
                f"{name_of(model)} can only be imported around binary SVMs with no transformers but affine ones. "
                f"Put {', '.join(repr(name) for name, _ in one.steps) or 'the other transformers'} before it."
            )
        first = members[0]
        same = machine.input_map == first.input_map and machine.preparation == first.preparation
        if family_of(machine) != family_of(first) or not same:
            raise UnsupportedModelError(
                f"The models inside {name_of(model)} must have the same kernel, coef0, degree and transformers. "
                f"Fit them with the same parameters, and put the transformers before {name_of(model)}."
            )
    return members


def family_of(machine: KernelMachine) -> tuple[type[Kernel], float, float, int]:
    """The kernel of a machine without its γ, and the number of features."""
    return type(machine.kernel), machine.kernel.coef0, machine.kernel.degree, machine.n_features


def gammas_of(machine: KernelMachine) -> FloatArray:
    """The width of each point, (m,)."""
    return np.full(machine.n_vectors, machine.kernel.gamma) if machine.gammas is None else machine.gammas


def _shared(
    members: Sequence[KernelMachine],
    points: Any,
    gammas: FloatArray,
    head: Head,
    answer: Classes,
    calibration: Calibration | None,
) -> KernelMachine:
    """The machine that combines all members. It has one γ per point only if the members' γ differ."""
    mixed = len(set(gammas.tolist())) > 1
    kernel = members[0].kernel if mixed or not len(gammas) else _with_gamma(members[0].kernel, float(gammas[0]))
    points = checks.compact(points) if is_sparse(points) else points
    return replace(
        members[0],
        kernel=kernel,
        points=points,
        head=head,
        answer=answer,
        gammas=gammas if mixed else None,
        calibration=calibration,
    )


def _with_gamma(kernel: Kernel, gamma: float) -> Kernel:
    return make_kernel(kernel.name, gamma=gamma, coef0=kernel.coef0, degree=kernel.degree)


def _calibration(model: Any, members: Sequence[KernelMachine]) -> Calibration | None:
    """One calibration for all members, or None if they have none; its probabilities are scaled to sum to one."""
    own = [machine.calibration for machine in members]
    parts = [_as_sigmoid(part) for part in own if part is not None]
    if len({part.decides for part in parts}) > 1 or 0 < len(parts) < len(members):
        raise UnsupportedModelError(
            f"Some models inside {name_of(model)} are calibrated and some are not. Fit all of them in the same way."
        )
    decides = bool(parts) and parts[0].decides
    sigmoids = [part for part in parts if isinstance(part, Sigmoid)]
    steps = [part for part in parts if isinstance(part, Isotonic)]
    if len(sigmoids) == len(members) and len({part.coupled for part in sigmoids}) == 1:
        a, b = (np.concatenate([getattr(part, name) for part in sigmoids]) for name in "ab")
        return Sigmoid(a, b, decides, coupled=sigmoids[0].coupled)
    if len(steps) == len(members):
        x, y = (np.concatenate([getattr(part, name) for part in steps]) for name in "xy")
        return Isotonic(x, y, tuple(part.sizes[0] for part in steps), decides)
    if parts:
        raise UnsupportedModelError(
            f"The models inside {name_of(model)} are calibrated in different ways. Fit all of them in the same way."
        )
    return None


def _as_sigmoid(calibration: Calibration) -> Calibration:
    """The calibration, with a binary softmax written as the equivalent sigmoid."""
    if isinstance(calibration, Softmax):
        return Sigmoid(np.array([-calibration.slope]), np.zeros(1), calibration.decides)
    return calibration

"""Ensembles of models with the same kernel, as one machine: the scores of all models on shared points.

scikit-learn's CalibratedClassifierCV trains a model and a calibration in each fold, and averages their probabilities.
Support vectors that several models have are stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from slimsvm._record import is_sparse
from slimsvm.answers import Classes
from slimsvm.calibration import Averaged
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead, PairsHead, PairwiseHead, SharedHead
from slimsvm.importers import checks
from slimsvm.importers.multiclass import family_of, gammas_of
from slimsvm.importers.union import merge
from slimsvm.kernels import Linear, make_kernel
from slimsvm.machine import KernelMachine


def ensemble(models: Sequence[KernelMachine], name: str) -> KernelMachine:
    """One machine whose probabilities are the mean of those of calibrated machines; `name` is for errors."""
    models = [_plain(_with_shared_head(machine)) for machine in models]
    first = models[0]
    for machine in models:
        same = machine.input_map == first.input_map and machine.preparation == first.preparation
        if not same or type(machine.head) is not type(first.head) or family_of(machine) != family_of(first):
            raise UnsupportedModelError(
                f"{name} averages {len(models)} models, and their kernels or the transformers inside them differ, so "
                f"that they cannot share one kernel. Put the transformers before {name}, or fit it with "
                f"ensemble=False, which trains a single model."
            )
    points, gammas, places = merge([(machine.points, gammas_of(machine)) for machine in models])
    n_scores = first.head.n_scores
    coef = np.zeros((points.shape[0], len(models) * n_scores))
    for i, (machine, rows) in enumerate(zip(models, places, strict=True)):
        np.add.at(coef[:, i * n_scores : (i + 1) * n_scores], rows, machine.head.coef)
    intercept = np.concatenate([machine.head.intercept for machine in models])
    assert isinstance(first.head, SharedHead)
    assert isinstance(first.answer, Classes)
    # What is refitted later has one width: the mean. The widths of gamma="scale" differ a little between folds.
    widths = np.array([machine.kernel.gamma for machine in models])
    mixed = len(set(gammas.tolist())) > 1
    kernel = first.kernel
    if mixed:
        gamma = float(np.exp(np.log(widths).mean())) if (widths > 0).all() else float(widths.mean())
        kernel = make_kernel(kernel.name, gamma=gamma, coef0=kernel.coef0, degree=kernel.degree)
    calibrations = tuple(machine.calibration for machine in models if machine.calibration is not None)
    return replace(
        first,
        kernel=kernel,
        points=checks.compact(points) if is_sparse(points) else points,
        gammas=gammas if mixed else None,
        head=type(first.head)(coef, intercept),
        answer=replace(first.answer, n_models=len(models)),
        calibration=Averaged(calibrations),
    )


def mean_model(machine: KernelMachine) -> KernelMachine:
    """One model whose scores are the mean of those of an ensemble, with one width; other machines are unchanged.

    It has no probabilities, because the mean of calibrated scores is no function of the mean score.
    """
    answer, head = machine.answer, machine.head
    if not isinstance(answer, Classes) or answer.n_models is None:
        return machine
    assert isinstance(head, SharedHead)
    coef = np.mean(np.split(head.coef, answer.n_models, axis=1), axis=0)
    intercept = np.mean(np.split(head.intercept, answer.n_models), axis=0)
    return replace(
        machine,
        head=replace(head, coef=coef, intercept=intercept),
        answer=answer.single(),
        gammas=None,
        calibration=None,
    )


def _with_shared_head(machine: KernelMachine) -> KernelMachine:
    """The machine with one column of coefficients per score, for any point."""
    head = machine.head
    if isinstance(head, PairwiseHead):
        return replace(machine, head=head.pairs())
    if isinstance(head, (LinearHead, PairsHead)):
        return machine
    raise UnsupportedModelError(f"A machine with a {head.name} head cannot be part of an ensemble.")


def _plain(machine: KernelMachine) -> KernelMachine:
    """A linear machine without its input map, which becomes part of the points: z·(A (x − a) + c) = (Aᵀz)·x + …"""
    given, head = machine.input_map, machine.head
    if given is None or not isinstance(machine.kernel, Linear) or machine.preparation is not None:
        return machine
    Z = machine.points.toarray() if is_sparse(machine.points) else machine.points
    points = Z * given.scale if given.is_diagonal else Z @ given.scale
    constant = Z @ given.offset - points @ given.shift
    if machine.gammas is not None:
        constant = constant * machine.gammas
    assert isinstance(head, SharedHead)
    head = replace(head, intercept=head.intercept + constant @ head.coef)
    return replace(machine, points=points, input_map=None, head=head)

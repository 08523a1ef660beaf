"""Refitted coefficients of small machines: those of the largest margin on the problem's samples."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.compression.problem import Problem
from slimsvm.heads import LinearHead
from slimsvm.machine import KernelMachine
from slimsvm.optim.margin_problem import Loss

EXACT_WORK = 3e9  # N m² q up to which the hinge is solved exactly; beyond it, the squared hinge is much faster
HINGE, SQUARE = (3.5e4, 6.0), (5e3, 1.0)  # work of a fit per sample and output: a constant, and a factor of m²


def refitted(problem: Problem, small: KernelMachine) -> KernelMachine:
    """The small machine with the coefficients of the largest margin on the problem's samples."""
    refit, losses = problem.refit_problem_of(small), losses_for(problem, small.n_vectors)
    return nearest(problem, [refit.refit(small, loss) for loss in losses])


def refitted_with_share(problem: Problem, small: KernelMachine, share: float) -> KernelMachine:
    """The vectors of a small machine with the coefficients of a share of the model's C."""
    cheaper = replace(problem, terms=replace(problem.terms, C=share * float(problem.terms.C or 1.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return refitted(cheaper, small)


def nearest(problem: Problem, machines: list[KernelMachine]) -> KernelMachine:
    """The machine that agrees with the parent on most samples; the first one on ties.

    Its scores are scaled to the size of the first machine's: one sigmoid then fits machines of either loss.
    """
    first = machines[0]
    if len(machines) == 1:
        return first
    X, weights, answers = problem.parent_answers
    best = min(machines, key=lambda one: float(weights @ (one.predict(X, n_jobs=-1) != answers)))
    if best is first:
        return best
    size, own = (float(np.abs(one.decision(X, n_jobs=-1)).mean()) for one in (first, best))
    scale, head = size / own if own > 0 else 1.0, best.head
    assert isinstance(head, LinearHead)
    return replace(best, head=LinearHead(scale * head.coef, scale * head.intercept))


def losses_for(problem: Problem, m: int) -> tuple[Loss, ...]:
    """The losses that coefficients are fitted for: the parent's own and, for classes, its square.

    The squared hinge is better where classes are well separated, above all for several of them, and worse where they
    overlap. Where the hinge would take long to solve exactly, it is left out.
    """
    refit_problem, task = problem.refit_problem, problem.task
    work = float(refit_problem.points.n_points) * m**2 * refit_problem.problem.sign.shape[1]
    if problem.terms.squared or work > EXACT_WORK:
        return (task.cheap_loss,)
    return task.refit_losses


def refit_work(problem: Problem, m: int) -> float:
    """The work of the coefficients on m vectors."""
    own, square = HINGE if "hinge" in losses_for(problem, m) else SQUARE
    return (
        problem.refit_problem.points.n_points
        * float(problem.refit_problem.problem.sign.shape[1])
        * (own + square * m**2)
    )

"""The coefficients of small machines: those of the largest margin on the source's samples, for one loss or another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slimsvm.answers import Classes, Inlier
from slimsvm.compression.source import Source
from slimsvm.heads import LinearHead
from slimsvm.machine import KernelMachine
from slimsvm.optim.margin_problem import Loss

EXACT_WORK = 3e9  # N m² q up to which the hinge loss is solved exactly; beyond that it is squared, which is much faster
HINGE, SQUARE = (3.5e4, 6.0), (5e3, 1.0)  # of coefficients, for every sample and output: by itself, and times m²


def refitted(source: Source, small: KernelMachine) -> KernelMachine:
    """A small machine with the coefficients of the largest margin on the source's samples."""
    losses = losses_for(source, small.n_vectors)
    return nearest(source, [source.lesson.refit(small, loss, stacklevel=6) for loss in losses])


def nearest(source: Source, machines: list[KernelMachine]) -> KernelMachine:
    """Of several machines the one whose answers to the samples are the parent's most often; the first of equal ones.

    Its scores are made as large as those of the first: one sigmoid then fits machines of either loss.
    """
    first = machines[0]
    if len(machines) == 1:
        return first
    X, weights, answers = source.answered
    best = min(machines, key=lambda one: float(weights @ (one.predict(X, n_jobs=-1) != answers)))
    if best is first:
        return best
    size, own = (float(np.abs(one.decision(X, n_jobs=-1)).mean()) for one in (first, best))
    scale, head = size / own if own > 0 else 1.0, best.head
    assert isinstance(head, LinearHead)
    return replace(best, head=LinearHead(scale * head.coef, scale * head.intercept))


def losses_for(source: Source, m: int) -> tuple[Loss, ...]:
    """The losses that coefficients are trained for: the parent's own and, for classes, its square.

    The square is the better one where classes are well apart, above all for several of them, and the worse one where
    they overlap. Where the hinge is dear to solve exactly, it is left out.
    """
    lesson, answer = source.lesson, source.machine.answer
    work = float(lesson.points.n_points) * m**2 * lesson.problem.sign.shape[1]
    if isinstance(answer, Inlier):
        return ("hinge",)
    if source.terms.squared or work > EXACT_WORK:
        return ("squared_hinge",)
    return ("hinge", "squared_hinge") if isinstance(answer, Classes) else ("hinge",)


def refit_work(source: Source, m: int) -> float:
    """The work of the coefficients on m vectors."""
    own, square = HINGE if "hinge" in losses_for(source, m) else SQUARE
    return source.lesson.points.n_points * float(source.lesson.problem.sign.shape[1]) * (own + square * m**2)

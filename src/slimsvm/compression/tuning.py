"""The terms of a small machine, tuned on held-out samples: C, the width of the kernel, the penalty on a learned map.

A machine with few vectors may do better with a smaller C than its parent, with another width, or with a map that is
held closer to its start or left freer. Each change is tried at the size that was found, and is taken if the machine
then loses less by a standard error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from slimsvm.compression.candidates.cache import CANDIDATES
from slimsvm.compression.candidates.naming import plain_method, with_factor, with_share
from slimsvm.compression.choose_C import REFITTED, SHARES
from slimsvm.compression.choose_method import MethodChoice
from slimsvm.compression.choose_size import Rung
from slimsvm.compression.problem import Problem
from slimsvm.compression.validation.assess import Validation
from slimsvm.compression.validation.estimates import Estimate

FEW = 3000  # samples beyond which a learned map does not overfit, and a stronger penalty is not tried


def tuned(
    judge: Validation, problem: Problem, choice: MethodChoice, rung: Rung, *, with_C: bool = True
) -> MethodChoice:
    """The choice with the best terms at a size; without `with_C`, the model's C stays."""
    for group in _changes(problem, rung[0], with_C):
        gains = {name: gain_of(judge, (choice.method, rung[1]), (name, rung[1])) for name in group}
        better = {name: gain for name, gain in gains.items() if gain is not None and gain.value > gain.error}
        if better:
            name = max(better, key=lambda one: better[one].value)
            reason = f"{choice.reason}. With {group[name]} it loses {better[name].value:.4f} less"
            return replace(choice, method=name, reason=reason)
    return choice


def _changes(problem: Problem, name: str, with_C: bool) -> Iterator[dict[str, str]]:
    """Groups of names of the changed candidate, each with the change in words."""
    candidate = CANDIDATES[plain_method(name)]
    if with_C and candidate.name in REFITTED and problem.task.is_classification:
        yield {with_share(name, share): f"{share:g} times the model's C" for share in SHARES[1:]}
    if candidate.factors and problem.machine.kernel.name == "rbf":
        freer_only = candidate.learns and problem.samples is not None and len(problem.samples) > FEW
        factors = candidate.factors[: 1 if freer_only else None]
        yield {with_factor(name, factor): f"{factor:g} times the {candidate.factor_of}" for factor in factors}


def gain_of(judge: Validation, one: Rung, other: Rung) -> Estimate | None:
    """How much less another candidate loses; None if the samples are too few for the score."""
    try:
        judge.assess(*one)
        judge.assess(*other)
        return judge.difference(one, other)
    except ValueError:
        return None

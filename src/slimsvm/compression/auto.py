"""`method="auto"`: the recipe is chosen by trials, not by a table.

Every recipe that applies makes machines of a few sizes from part of the data, and these are judged on another part. The
choice is a recipe that keeps the promise at the smallest size at which any does; of these the one with the lowest mean
loss; among those within a standard error of it, the one that comes first in `RECIPES`. No clock enters, so that the
same seed gives the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.compression import effort
from slimsvm.compression.evidence import Evidence, Finding, Fold
from slimsvm.compression.metrics import Scorer
from slimsvm.compression.promises import Promise
from slimsvm.compression.recipes import LAST_RESORT, RECIPES, Workshop, affordable, applicable
from slimsvm.compression.source import Source
from slimsvm.methods.progress import Progress

SMALL = 3000  # samples up to which trials use the evidence as it is
ROWS = 600  # of more samples, those to train on in a trial
JUDGES = 1500  # and those to judge by
HOPELESS = 3.0  # standard errors above the best at a size: such recipes are not tried at larger ones
TRIALS = 0.1  # of the work of training the parent: what all trials on part of more samples may take
SHARES = (0.02, 0.06)  # of the parent's vectors: the sizes of trials where the size is to be found


@dataclass(frozen=True)
class Trial:
    """The recipe chosen, why, the findings of all trials, and the recipes that may yet do; none stands for all."""

    method: str
    reason: str
    findings: tuple[Finding, ...] = ()
    left: tuple[str, ...] = ()


def choose(
    source: Source, evidence: Evidence | None, sizes: Sequence[int], *, promise: Promise, scorer: Scorer | None,
    seed: int, progress: Progress, free: float,
) -> Trial:  # fmt: skip
    """The best recipe at the sizes, by loss or disagreement, as promised, on the evidence or on a part of the data.

    `free` is the work that a machine may take whatever its parent took; recipes that take more than is allowed are left
    out, and so are trials.
    """
    by = "disagreement" if promise.max_loss is None and promise.max_disagreement is not None else "loss"
    against = applicable(source)
    names = [name for name, reason in against.items() if not reason]
    if not names:
        raise ValueError(f"compress knows no way to make this model smaller: {next(iter(against.values()))}")
    if source.samples is None and evidence is None:
        return Trial(LAST_RESORT, "no data were given, and the reduced set needs none")
    cheap = affordable(source, free, names, sizes[0]) or [LAST_RESORT]
    against |= {name: "takes too long beside the training of the model" for name in names if name not in cheap}
    if len(cheap) == 1:
        return Trial(cheap[0], "no other method applies: " + _listed(against))
    trial, where, sizes = _trial(source, evidence, cheap, sizes, free, scorer=scorer, seed=seed, progress=progress)
    if trial is None:
        return Trial(LAST_RESORT, where)
    names = cheap
    findings: list[Finding] = []
    for m in sizes:
        for name in names:
            findings.append(trial.find(name, m))
            figure = _figure(findings[-1], by)
            progress.tell("trial of %s with %d vectors: %s %.4f", name, m, by, figure.value, always=True)
        names = _promising(names, [finding for finding in findings if finding.n_vectors == m], by)
    kept = _kept_first(names, findings, promise)
    chosen = _best(kept or names, findings, by, where, against)
    few = f"of {', '.join(kept)}, which alone keep the promise there, " if kept and len(kept) < len(names) else ""
    left = () if trial is evidence else tuple(dict.fromkeys([*names, LAST_RESORT]))
    return replace(chosen, reason=few + chosen.reason, left=left)


def _kept_first(names: list[str], findings: list[Finding], promise: Promise) -> list[str]:
    """The recipes that keep the losses promised at the smallest size at which any does."""
    if not promise.limits or any(finding.loss is None for finding in findings if promise.max_loss is not None):
        return []
    kept = [finding for finding in findings if finding.method in names and promise.kept([finding])[0]]
    least = min((finding.n_vectors for finding in kept), default=0)
    return [name for name in names if any(f.method == name and f.n_vectors == least for f in kept)]


def _promising(names: list[str], findings: list[Finding], by: str) -> list[str]:
    """The recipes that are not far worse than the best at a size; others need not be tried at the next."""
    figures = {finding.method: _figure(finding, by) for finding in findings}
    best = min(figures.values(), key=lambda figure: figure.value)
    return [name for name in names if figures[name].value <= best.value + HOPELESS * best.error]


def trial_sizes(n_vectors: int, sizes: Sequence[int]) -> list[int]:
    """Of the sizes of a search, those for trials: near to shares of the parent's vectors, and above one."""
    usable = np.array([size for size in sizes if size > 1] or list(sizes))
    return sorted({int(usable[np.abs(np.log(usable / (share * n_vectors))).argmin()]) for share in SHARES})


def _best(names: list[str], findings: list[Finding], by: str, where: str, against: dict[str, str]) -> Trial:
    tried = findings
    findings = [finding for finding in findings if finding.method in names]
    sizes = sorted({finding.n_vectors for finding in findings})
    mean = {name: float(np.mean([_figure(f, by).value for f in findings if f.method == name])) for name in names}
    lowest = min(names, key=lambda name: mean[name])
    error = float(np.mean([_figure(f, by).error for f in findings if f.method == lowest])) / np.sqrt(len(sizes))
    method = next(name for name in names if mean[name] <= mean[lowest] + error)
    shown = ", ".join(f"{name} {mean[name]:.4f}" for name in sorted(names, key=lambda name: mean[name]))
    left_out = _listed(against)
    dropped = sorted({finding.method for finding in tried} - set(names))
    reason = (
        f"mean {by} at {', '.join(map(str, sizes))} vectors on {where}: {shown}"
        + (f"; the first of those within a standard error of {error:.4f} of the lowest" if method != lowest else "")
        + (f". Far worse at {sizes[0]} vectors: {', '.join(dropped)}" if dropped else "")
        + (f". Not tried: {left_out}" if left_out else "")
    )
    return Trial(method, reason, tuple(tried))


def _figure(finding: Finding, by: str) -> Any:
    return finding.disagreement if by == "disagreement" or finding.loss is None else finding.loss


def _listed(against: dict[str, str]) -> str:
    return "; ".join(f"{name} {reason}" for name, reason in against.items() if reason)


def _trial(
    source: Source, evidence: Evidence | None, names: Sequence[str], sizes: Sequence[int], free: float, *,
    scorer: Scorer | None, seed: int, progress: Progress,
) -> tuple[Evidence | None, str, Sequence[int]]:  # fmt: skip
    """Where trials are made, and of which sizes: on the evidence itself where that is small, else on a part of the
    data, as many as do not take long; or why nowhere.
    """
    samples = source.samples
    if evidence is not None and (samples is None or len(samples) <= SMALL):
        return evidence, f"{evidence.n_samples} held-out samples", sizes
    assert samples is not None
    rng = np.random.default_rng([seed, len(RECIPES)])
    order = rng.permutation(len(samples))
    train = order[: min(ROWS, (4 * len(order)) // 5)]
    test = order[len(train) : len(train) + JUDGES]
    part = source.trained_on(train) if len(train) and len(test) else None
    if part is None:
        return None, "the data are too few for trials", ()
    if evidence is None:  # nothing corrects the choice later, and a parent on few samples is too easily reduced
        sizes = sorted({max(2, round(m * part.n_vectors / max(1, source.n_vectors))) for m in sizes})
    allowed = max(free * len(names), TRIALS * effort.training(source))
    work = np.cumsum([sum(RECIPES[name].work(part, m) for name in names) for m in sizes])
    sizes = [m for m, needed in zip(sizes, work, strict=True) if needed <= allowed]
    if not sizes:
        return None, f"trials of {', '.join(names)} would take long beside the training of the model", ()
    shop = Workshop(part, seed, progress=progress, free=allowed / (len(names) * len(sizes)))
    fold = Fold.of(shop, replace(samples.some(test), given=True))
    return (
        Evidence([fold], scorer, refits=False, n_jobs=None, progress=Progress("trial", 0)),
        f"{len(test)} samples, after training on {len(train)}",
        sizes,
    )

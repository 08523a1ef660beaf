"""Where a learned metric starts, and how strongly it is pulled back there.

A map starts as the identity, at the leading principal components of the samples, or at the leading directions of a
trained SVM's average gradient outer product, mean ∇f ∇fᵀ, along which its scores change most. It is scaled so that the
median distance between samples stays as it is, so the kernel's γ means the same before and after. If no γ was given,
many vectors start with narrower kernels, because mini-batches change the width slowly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse.linalg import svds

from slimsvm._record import FloatArray, is_sparse
from slimsvm.heads import PairwiseHead
from slimsvm.importers import import_model
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.metric import Pull, deviations, map_rows
from slimsvm.optim.margin_problem import MarginProblem
from slimsvm.parameters import check_choice, check_number, resolve_size

Metric = Literal["fixed", "diagonal", "projection"]
MetricInit = Literal["auto", "identity", "pca", "gradients"]
FULL = 64  # features up to which a projection keeps all of them by default
FEW = 64  # features up to which a projection starts at the gradients of an SVM: of more, few samples say little
GRADIENT_SAMPLES = 2000  # samples, at most, of the SVM whose gradients a map starts from, and of the gradients
SAMPLED = 10_000  # samples, at most, that principal components and median distances are computed from
PAIRS = 2000  # of samples, whose median distance is kept
LEAST = 0.1  # of the largest: no feature starts with a smaller scale, because a scale of zero cannot grow
WIDE = 10  # vectors up to which the median distance is a good width; γ grows with the root of their number
STAGE = 4  # the features are reduced by at most this factor at a time
PENALTY = 0.2  # the default penalty, times the numbers in the map, divided by the number of samples


def check_metric(estimator: Any) -> None:
    """Refuse wrong parameters of a learned metric, before the data are looked at."""
    whose = type(estimator).__name__
    check_choice(estimator.metric, "metric", whose, get_args(Metric))
    check_choice(estimator.metric_init, "metric_init", whose, get_args(MetricInit))
    check_number(estimator.metric_penalty, "metric_penalty", whose, least=0, optional=True)
    if estimator.metric == "fixed" and estimator.max_features is not None:
        raise ValueError(
            f"max_features of {whose} needs metric='diagonal' or metric='projection': with metric='fixed' every "
            f"feature is used. Got max_features={estimator.max_features!r}."
        )
    if estimator.metric != "fixed" and estimator.kernel != "rbf":
        raise ValueError(
            f"metric={estimator.metric!r} of {whose} needs kernel='rbf': with kernels of dot products a map can be "
            f"scaled against the vectors, and other kernels have no gradient. Got kernel={estimator.kernel!r}. Use "
            f"kernel='rbf' or metric='fixed'."
        )


@dataclass(frozen=True)
class MetricSettings:
    """What is learned: the metric, p, where the map starts, the penalty λ, and how many features it uses.

    `zoom` is a factor of the map at its start. `stages` are the numbers of features after each descent that leaves some
    out, the last of them what was asked for.
    """

    metric: Metric
    n_components: int
    init: MetricInit
    penalty: float
    zoom: float
    stages: tuple[int, ...]

    @staticmethod
    def of(estimator: Any, points: Points, m: int, n: int | None = None) -> MetricSettings:
        """The settings of an estimator for its samples, of which n stand behind the points, and m vectors."""
        n, d = n or points.n_points, points.X.shape[1]
        whose, given = type(estimator).__name__, estimator.metric_penalty
        p = (
            min(d, FULL)
            if estimator.n_components is None
            else resolve_dimensions(estimator.n_components, d, whose, "n_components")
        )
        if estimator.metric == "projection" and estimator.metric_init == "identity" and p < d:
            raise ValueError(
                f"metric_init='identity' of {whose} needs as many components as features, {d}. Got n_components={p}. "
                f"Use metric_init='pca' or 'gradients'."
            )
        size = p * d if estimator.metric == "projection" else d
        penalty = default_penalty(size, n) if given is None else float(given)
        zoom = max(1.0, m / WIDE) ** 0.25 if estimator.gamma is None else 1.0
        return MetricSettings(estimator.metric, p, estimator.metric_init, penalty, zoom, _stages(estimator, d))

    def pull(self, points: Points, problem: MarginProblem, A: FloatArray | None) -> Pull | None:
        """The penalty on maps that start at A."""
        return None if A is None else metric_pull(points, problem, A, self.penalty)


def metric_pull(points: Points, problem: MarginProblem, A: FloatArray, penalty: float) -> Pull:
    """The penalty λ on maps that start at A.

    λ times the costs of all samples, times the mean squared distance by which the map moves a typical sample, in
    squared widths of the kernel. One-class problems, which have a tilt, keep the volume.
    """
    costs = float(problem.bound.sum(axis=0).mean())
    weights = penalty * costs * points.kernel.gamma * deviations(points.X) ** 2
    return Pull(A, weights, keeps_volume=bool(problem.tilt.any()))


def default_penalty(size: int, n: int) -> float:
    """λ for a map of `size` numbers, learned from n samples."""
    return PENALTY * size / n


def resolve_dimensions(given: Any, d: int, whose: str, name: str) -> int:
    """A number of features or components, from a count of at most d or from a share of d."""
    if isinstance(given, (float, np.floating)) and given == 1.0:
        return d
    found = resolve_size(given, d, whose, name, "features")
    if found > d:
        raise ValueError(f"{name} of {whose} must be at most {d}, the features of the data. Got {found}.")
    return found


def _stages(estimator: Any, d: int) -> tuple[int, ...]:
    """Numbers of features from below d down to max_features, each at least a quarter of the one before."""
    if estimator.max_features is None:
        return ()
    last = resolve_dimensions(estimator.max_features, d, type(estimator).__name__, "max_features")
    if last == d:
        return ()
    n = math.ceil(math.log(d / last, STAGE))
    return tuple(dict.fromkeys(round(d * (last / d) ** (i / n)) for i in range(1, n + 1)))


def start_map(
    points: Points, settings: MetricSettings, train_parent: Callable[[], Any], rng: np.random.Generator
) -> FloatArray | None:
    """A at the start, (d,) or (p, d), or None for the fixed metric. `train_parent` trains an SVM on the points."""
    if settings.metric == "fixed":
        return None
    return settings.zoom * _unit_map(points, settings, train_parent, rng)


def _unit_map(
    points: Points, settings: MetricSettings, train_parent: Callable[[], Any], rng: np.random.Generator
) -> FloatArray:
    """The map at the start that leaves the median distance as it is."""
    d = points.X.shape[1]
    diagonal, p = settings.metric == "diagonal", settings.n_components
    init = settings.init
    if init == "auto":
        init = "identity" if diagonal or p == d else "gradients" if d <= FEW else "pca"
    if init == "identity":
        return np.ones(d) if diagonal else np.eye(d)
    some = points.X[rng.permutation(points.n_points)[:SAMPLED]]
    if init == "gradients":
        machine, few = import_model(train_parent()).machine, some[:GRADIENT_SAMPLES]
        A = gradient_map(machine, few, None if diagonal else p)
    else:
        A = 1.0 / deviations(points.X) if diagonal else principal_map(some, p)
    return with_median_distance(A, some, rng)


def principal_map(X: Any, p: int) -> FloatArray:
    """The p leading principal directions of centred rows, (p, d); uncentred directions of sparse rows."""
    if is_sparse(X) and p < min(X.shape):
        return np.asarray(svds(X, k=p, random_state=0)[2][::-1])
    X = dense(X)
    return np.asarray(np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :p].T)


def gradient_map(machine: KernelMachine, X: Any, p: int | None) -> FloatArray:
    """A map from the average gradient outer product of the machine's scores at X.

    The roots of its diagonal, (d,), for p = None, else its p leading directions, all with the same scale: scaled by
    their eigenvalues, a few of them hide the others.
    """
    outer = gradient_outer_product(machine, X)
    if p is None:
        scales = np.sqrt(np.diag(outer))
        return np.maximum(scales, LEAST * scales.max()) if scales.any() else np.ones(len(outer))
    return np.asarray(np.linalg.eigh(outer)[1][:, ::-1][:, :p].T)


def gradient_outer_product(machine: KernelMachine, X: Any) -> FloatArray:
    """mean_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ over rows and scores, (d, d), in the space of the machine's points."""
    head = machine.head.pairs() if isinstance(machine.head, PairwiseHead) else machine.head
    X = dense(X)
    total = np.zeros((X.shape[1], X.shape[1]))
    for coef in head.coef.T:
        used = np.flatnonzero(coef)
        Z = machine.points[used]
        gradient = machine.kernel.input_gradient(X, Z, np.broadcast_to(coef[used], (len(X), len(used))))
        total += gradient.T @ gradient
    return total / len(X)


def with_median_distance(A: FloatArray, X: Any, rng: np.random.Generator) -> FloatArray:
    """A, scaled so that the median distance between rows of X is the same before and after the map."""
    left, right = rng.integers(X.shape[0], size=(2, PAIRS))
    before = row_norms(X[left] - X[right])
    apart = before > 0
    after = row_norms(map_rows(X[left] - X[right], A))
    if not apart.any() or not np.median(after[apart]) > 0:
        return A
    return np.asarray(A * np.sqrt(np.median(before[apart]) / np.median(after[apart])))

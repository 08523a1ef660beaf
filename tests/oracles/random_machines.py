"""Random machines of every kind, for the suites that compare one way of evaluation with another."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import Averaged, Isotonic, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.heads import LinearHead, MirrorHead, PairsHead, PairwiseHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import KERNELS, Kernel
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine

MAPS = ("none", "diagonal", "matrix")
LEARNED = ("scales", "projection", "full")  # maps as training a metric makes them; the first two ignore some features
# head, outputs (of a head of pairs: classes), answer
KINDS = [
    ("linear", 1, "classes"),
    ("linear", 1, "value"),
    ("linear", 1, "inlier"),
    ("linear", 2, "value"),
    ("linear", 3, "classes"),
    ("linear", 5, "classes"),
    ("linear", 10, "classes"),
    ("linear", 5, "value"),
    ("pairs", 2, "classes"),
    ("pairs", 3, "classes"),
    ("pairs", 4, "classes"),
    ("pairs", 6, "classes"),
    ("pairwise", 2, "classes"),
    ("pairwise", 3, "classes"),
    ("pairwise", 4, "classes"),
    ("pairwise", 5, "classes"),
    ("pairwise", 8, "classes"),
    ("mirror", 1, "classes"),
    ("mirror", 1, "inlier"),
    ("mirror", 3, "classes"),
    ("staged", 1, "classes"),
    ("staged", 3, "classes"),
    ("staged", 7, "classes"),
]
LINEAR_CALIBRATIONS = ("none", "sigmoid", "isotonic", "softmax", "averaged")
MODELS = 3  # of an ensemble, which only comes when its calibration is asked for: not all formats take it
PAIRWISE_CALIBRATIONS = ("none", "pairwise_sigmoid")
LABELS = [
    np.array([-3, 1, 4, 10, 11, 12, 20, 21, 30, 300]),
    np.array(["ant", "bee", "cat", "dog", "élan", "êtes", "île", "ôter", "ûn", "ÿ"]),
    np.array([0.5, 1.5, 2, 7, 9, 10, 11, 12.25, 13, 14]),
]


def random_machine(
    rng: np.random.Generator,
    *,
    kernel: str | Kernel | None = None,
    head: str | None = None,
    outputs: int | None = None,
    answer: str | None = None,
    calibration: str | None = None,
    input_map: str | None = None,
    gammas: bool | None = None,
    sparse_points: bool | None = None,
    empty_block: bool = False,
    n_vectors: int | None = None,
    n_points_features: int | None = None,
) -> KernelMachine:
    """A machine that meets the wishes given; what is left at None is drawn.

    `head`, `answer` and `calibration` are names of the package's lists (`calibration="none"`: without), `outputs` the
    columns of a linear head or the classes of one that gives pairs, `input_map` one of MAPS or LEARNED. A staged head
    comes only when it is asked for: near a threshold its scores jump, and comparing them takes more care.
    """
    head, outputs, answer = _draw_kind(rng, head, outputs, answer, calibration)
    if head == "mirror":  # distances need one feature space
        gammas = False
        kernel = random_definite_kernel(rng, kernel, 4) if kernel is None or isinstance(kernel, str) else kernel
    m = int(rng.integers(2 * outputs, 25)) if n_vectors is None else n_vectors
    p = int(rng.integers(2, 6)) if n_points_features is None else n_points_features
    n_models = MODELS if calibration == "averaged" else None
    made_head = _random_head(rng, head, outputs * (n_models or 1), m, empty_block)
    n_scores, wish = made_head.n_scores, "none" if head == "staged" else calibration
    n_classes = outputs if made_head.gives_pairs else max(2, outputs)
    return KernelMachine(
        kernel=kernel if isinstance(kernel, Kernel) else random_kernel(rng, kernel, p),
        points=random_points(rng, m, p, bool(rng.integers(2)) if sparse_points is None else sparse_points),
        head=made_head,
        answer=_random_answer(rng, answer, n_classes, n_scores, made_head.gives_pairs, n_models),
        gammas=rng.uniform(0.2, 0.8, m) / p if (rng.integers(2) if gammas is None else gammas) else None,
        input_map=_random_map(rng, str(rng.choice(MAPS)) if input_map is None else input_map, p),
        calibration=_random_calibration(rng, answer, wish, n_scores, made_head.gives_pairs),
    )


def random_kernel(rng: np.random.Generator, name: str | None = None, n_features: int = 4) -> Kernel:
    """A kernel whose values on standard normal data neither vanish nor explode."""
    cls = KERNELS[str(rng.choice(list(KERNELS))) if name is None else name]
    drawn = {
        "gamma": rng.uniform(0.2, 0.8) / n_features,
        "coef0": rng.uniform(-1, 1),
        "degree": float(rng.integers(1, 4)),
    }
    return cls(**{f.name: drawn[f.name] for f in fields(cls)})  # type: ignore[arg-type]


def random_definite_kernel(rng: np.random.Generator, name: str | None = None, n_features: int = 4) -> Kernel:
    """A kernel with a feature space."""
    while True:
        kernel = random_kernel(rng, name, n_features)
        if kernel.definite:
            return kernel


def random_points(rng: np.random.Generator, n: int, d: int, as_sparse: bool = False) -> Any:
    """Standard normal rows; as CSR, with half of the entries zero."""
    X = rng.normal(size=(n, d))
    return sparse.csr_array(X * (rng.random((n, d)) < 0.5)) if as_sparse else X


def random_rows(
    rng: np.random.Generator, machine: KernelMachine, n: int, dtype: Any = np.float64, as_sparse: bool = False
) -> Any:
    """Data (n, d) for the machine."""
    return random_points(rng, n, machine.n_features, as_sparse).astype(dtype)


def _draw_kind(
    rng: np.random.Generator, head: str | None, outputs: int | None, answer: str | None, calibration: str | None
) -> tuple[str, int, str]:
    wishes = (head, outputs, answer)
    fitting = [
        kind
        for kind in KINDS
        if all(wish is None or wish == has for wish, has in zip(wishes, kind, strict=True))
        and (head == "mirror" or kind[0] != "mirror")  # not every kernel goes with it
        and (kind[0] != "staged" or head == "staged")
        and (calibration is None or calibration in calibrations_of(kind[0], kind[2]))
    ]
    if not fitting:
        raise ValueError(f"No machine has head {head}, outputs {outputs}, answer {answer}, calibration {calibration}.")
    return fitting[rng.integers(len(fitting))]


def calibrations_of(head: str, answer: str) -> tuple[str, ...]:
    """The calibrations that go with a head and an answer."""
    if answer != "classes" or head == "staged":
        return ("none",)
    return PAIRWISE_CALIBRATIONS if head in ("pairs", "pairwise") else LINEAR_CALIBRATIONS


def _random_head(
    rng: np.random.Generator, head: str, outputs: int, m: int, empty_block: bool
) -> LinearHead | PairsHead | PairwiseHead | MirrorHead | StagedHead:
    if head == "mirror":
        places = [*range(m), *rng.integers(0, m, 1 + m // 2).tolist()]
        sites = len(places)
        return MirrorHead(
            rng.normal(size=(sites, outputs)), rng.normal(size=outputs), tuple(places), rng.normal(1.0, 0.5, sites)
        )
    if head == "linear":
        return LinearHead(rng.normal(size=(m, outputs)), rng.normal(size=outputs))
    if head == "staged":
        return random_stages(rng, m, outputs)
    pairs = outputs * (outputs - 1) // 2
    if head == "pairs":
        return PairsHead(rng.normal(size=(m, pairs)), rng.normal(size=pairs))
    share = rng.dirichlet(np.ones(outputs))
    if empty_block:
        share[rng.integers(outputs)] = 0.0
        share /= share.sum()
    return PairwiseHead(
        rng.normal(size=(m, outputs - 1)), rng.normal(size=pairs), tuple(rng.multinomial(m, share).tolist())
    )


def random_stages(rng: np.random.Generator, m: int, outputs: int) -> StagedHead:
    """One to six stages on m points, each of which decides a part of standard normal data."""
    sizes = sorted({*rng.integers(1, max(m, 2), int(rng.integers(0, 6))).clip(max=m).tolist(), m})
    stages = [(rng.normal(size=(size, outputs)), rng.normal(size=outputs)) for size in sizes]
    apart = np.sqrt(np.array(sizes[:-1]))
    if outputs > 1:
        return StagedHead.of(stages, rng.uniform(0.5, 1, len(apart)) * apart, None)
    upper = rng.uniform(-0.2, 0.8, len(apart)) * apart
    return StagedHead.of(stages, upper, upper - rng.uniform(0.1, 1, len(apart)) * apart)


def _random_answer(
    rng: np.random.Generator, answer: str, n_classes: int, n_scores: int, pairwise: bool, n_models: int | None = None
) -> Classes | Value | Inlier:
    if answer == "value":
        return Value(flat=n_scores == 1 and bool(rng.integers(2)))
    if answer == "inlier":
        return Inlier()
    labels = LABELS[rng.integers(len(LABELS))][:n_classes]
    shape = str(rng.choice(["ovr", "ovo"])) if pairwise else "ovr"
    break_ties = shape == "ovr" and bool(rng.integers(2))
    return Classes(labels, tuple(rng.permutation(n_classes).tolist()), shape, break_ties, n_models)  # type: ignore[arg-type]


def _random_map(rng: np.random.Generator, kind: str, p: int) -> InputMap | None:
    if kind == "none":
        return None
    if kind in LEARNED:
        return _learned_map(rng, kind, p)
    if kind == "diagonal":
        return InputMap(rng.normal(size=p), rng.uniform(0.5, 1.5, p), rng.normal(size=p))
    d = p + int(rng.integers(-1, 4))
    return InputMap(rng.normal(size=d), rng.normal(size=(p, d)) / np.sqrt(d), rng.normal(size=p))


def _learned_map(rng: np.random.Generator, kind: str, p: int) -> InputMap:
    """A centre, and scales with some zeros, a projection with some zero columns, or a full matrix."""
    d = p + int(rng.integers(2, 9)) if kind == "projection" else p
    scale = rng.uniform(0.3, 1.5, p) if kind == "scales" else rng.normal(size=(p, d)) / np.sqrt(d)
    if kind != "full":
        scale[..., rng.permutation(d)[: rng.integers(1, d)]] = 0.0
    return InputMap(rng.normal(size=d), scale)


def with_zeros_where_ignored(machine: KernelMachine) -> KernelMachine:
    """The machine with points of zeros in the coordinates that a diagonal map sets to zero, as trainers make them."""
    assert machine.input_map is not None
    points = np.array(dense(machine.points))
    points[:, machine.input_map.scale == 0] = 0.0
    return replace(machine, points=points)


def _random_calibration(
    rng: np.random.Generator, answer: str, wish: str | None, n_scores: int, pairwise: bool
) -> Sigmoid | PairwiseSigmoid | Isotonic | Softmax | Averaged | None:
    usual = [one for one in calibrations_of("pairwise" if pairwise else "linear", answer) if one != "averaged"]
    name = str(rng.choice(usual)) if wish is None else wish
    decides = bool(rng.integers(2))
    if name == "none":
        return None
    if name == "averaged":
        kinds = ("sigmoid", "isotonic", "softmax")
        members = (_random_calibration(rng, answer, one, n_scores // MODELS, pairwise) for one in kinds)
        return Averaged(tuple(one for one in members if one is not None), decides)
    if name == "softmax":
        return Softmax(float(rng.uniform(0.5, 2)), decides)
    if name == "isotonic":
        return _random_isotonic(rng, n_scores, decides)
    a, b = -rng.uniform(0.5, 2, n_scores), rng.normal(size=n_scores)
    return PairwiseSigmoid(a, b, decides) if name == "pairwise_sigmoid" else Sigmoid(a, b, decides)


def _random_isotonic(rng: np.random.Generator, n_scores: int, decides: bool) -> Isotonic:
    sizes = rng.integers(1, 6, n_scores)
    x: list[NDArray[np.float64]] = [np.sort(rng.normal(size=s)) for s in sizes]
    y: list[NDArray[np.float64]] = [np.sort(rng.random(s)) for s in sizes]
    return Isotonic(np.concatenate(x), np.concatenate(y), tuple(sizes.tolist()), decides)

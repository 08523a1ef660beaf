"""Writes the golden .slim files of this version, and what their machines answer, to slim-v<schema>/ beside this script.

Every later version must load these files: a file that is there already is never written again. When a new class of
record or a new kind of content comes, add a machine here, run the script, and commit the new files.

    PYTHONPATH=src python tests/data/make_golden.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slimsvm import _container, storage
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import Averaged, Isotonic, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.heads import LinearHead, MirrorHead, PairsHead, PairwiseHead, StagedHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Laplacian, Linear, Polynomial, Rbf
from slimsvm.kernels import Sigmoid as SigmoidKernel
from slimsvm.machine import KernelMachine
from slimsvm.preparation import (
    Above,
    Clip,
    Fill,
    Function,
    Lookup,
    Missing,
    Norm,
    Numeric,
    Power,
    Preparation,
    Quantiles,
    Scale,
)

FOLDER = Path(__file__).parent / f"slim-v{_container.SCHEMA}"


def numbers(*shape: int, seed: int) -> NDArray[np.float64]:
    """Some numbers between -1 and 1, the same on every machine and with every NumPy."""
    count = int(np.prod(shape))
    return np.array([pow(31 * seed + i + 2, 3, 2003) / 1001.5 - 1 for i in range(count)]).reshape(shape)


def linear_head(m: int, q: int = 1) -> LinearHead:
    """A linear head of m points and q scores."""
    return LinearHead(numbers(m, q, seed=2), numbers(q, seed=3) / 4)


def staged_head(q: int) -> StagedHead:
    """Three stages on five points."""
    stages = [(numbers(n, q, seed=n), numbers(q, seed=n) / 4) for n in (1, 3, 5)]
    if q == 1:
        return StagedHead.of(stages, [0.9, -0.09], [0.33, -0.5])
    return StagedHead.of(stages, [0.5, 0.3], None)


def preparation(norms: tuple[Norm, ...]) -> Preparation:
    """Every kind of part and step; with norms, what comes out is mixed first."""
    cities = np.array(["Bonn", "Köln", 'a "quoted" city'], dtype=object)
    quantiles = Quantiles([-1.0, -0.25, 0.5, 1.0], [0.0, 0.3, 0.7, 1.0], normal=True)
    table = numbers(3, 2, seed=11)
    parts = (
        Numeric(0, (Fill(0.5), Scale(0.25, 2.0, 1.0, -1.0), Function("arctan"))),
        Numeric(0, (Missing(),)),
        Lookup(1, (0, 2, -1), 3, categories=cities, missing=1, unknown=2),
        Lookup(2, (0, 1, 2), 2, (Fill(0.0, marker=0.5),), edges=[-0.5, 0.25], table=table),
        Numeric(2, (Clip(-0.5, 0.75), Power("yeo-johnson", 1.5))),
        Numeric(3, (Above(0.125),)),
        Numeric(3, (quantiles,)),
        Lookup(3, (0, 1), 2, categories=np.array([1, 2]), missing=0, unknown=1),
    )
    mixing = InputMap(numbers(12, seed=12), numbers(3, 12, seed=13)) if norms else None
    return Preparation(5, parts, ("age", "city", "height", "größe", "not used"), mixing, norms)


def machines() -> dict[str, KernelMachine]:
    """A machine for every registered class, every kind of label and every optional part."""
    Z = numbers(5, 3, seed=1)
    three = np.array([-1, 4, 7], dtype=np.int64)
    two = np.array([0, 1], dtype=np.int32)
    names = ("age", "größe", 'a "quoted" name')
    permuted = Classes(np.array(["ant", "bee", "cät"]), order=(2, 0, 1), shape="ovo")
    isotonic = Isotonic([-1.0, 0.0, 0.5, 2.0], [0.0, 0.25, 0.5, 1.0], (4,), decides=True)
    pairs = PairwiseHead(numbers(5, 2, seed=2), numbers(3, seed=3) / 4, (2, 2, 1))
    pair = PairwiseHead(numbers(5, 1, seed=2), numbers(1, seed=3) / 4, (3, 2))
    points = np.where(np.abs(Z) < 0.4, 0.0, Z)
    strings = Classes(np.array(["left", "right", "up"], dtype=object))
    diagonal = InputMap(numbers(3, seed=4), numbers(3, seed=5) + 2, numbers(3, seed=6))
    matrix = InputMap(numbers(4, seed=4), numbers(3, 4, seed=5))
    platt = Sigmoid([-1.5], [0.125])
    coupled = PairwiseSigmoid([-1.0, -2.0, -1.5], [0.0, 0.5, -0.25])
    return {
        "rbf": KernelMachine(Rbf(0.5), Z, linear_head(5), Classes(two), calibration=platt),
        "laplacian": KernelMachine(Laplacian(0.25), Z, linear_head(5, 3), Classes(three)),
        "poly": KernelMachine(Polynomial(0.5, 1.0, 2.0), Z, linear_head(5), Value()),
        "linear": KernelMachine(Linear(), Z, linear_head(5), Classes(np.array([0.5, 1.5]))),
        "sigmoid": KernelMachine(SigmoidKernel(0.5, -0.25), Z, linear_head(5), Classes(np.array([False, True]))),
        "pairwise": KernelMachine(Rbf(0.5), Z, pairs, permuted, calibration=coupled),
        "pairs": KernelMachine(
            Rbf(0.5), Z, PairsHead(numbers(5, 3, seed=2), numbers(3, seed=3) / 4), permuted, calibration=coupled
        ),
        "one-pair": KernelMachine(
            Rbf(0.5), Z, pair, Classes(two, order=(1, 0)), calibration=PairwiseSigmoid([-1], [0])
        ),
        "break-ties": KernelMachine(Rbf(0.5), Z, pairs, Classes(three, break_ties=True)),
        "csr": KernelMachine(Rbf(0.5), sparse.csr_array(points), linear_head(5, 3), strings, calibration=Softmax(2.0)),
        "multi-output": KernelMachine(Rbf(0.5), Z, linear_head(5, 2), Value(flat=False)),
        "one-class": KernelMachine(Rbf(0.5), Z, linear_head(5), Inlier()),
        "diagonal-map": KernelMachine(Rbf(0.5), Z, linear_head(5), Value(), input_map=diagonal, feature_names=names),
        "matrix-map": KernelMachine(Polynomial(0.5, 1.0, 3.0), Z, linear_head(5), Value(), input_map=matrix),
        "gammas": KernelMachine(Rbf(1.0), Z, linear_head(5), Value(), gammas=np.abs(numbers(5, seed=7))),
        "isotonic": KernelMachine(Rbf(0.5), Z, linear_head(5), Classes(two.astype(np.uint8)), calibration=isotonic),
        "mirror": KernelMachine(
            Polynomial(0.5, 1.0, 2.0),
            Z,
            MirrorHead(numbers(7, 3, seed=2), numbers(3, seed=3) / 4, (0, 1, 2, 3, 4, 0, 2), numbers(7, seed=9) + 1),
            Classes(three),
        ),
        "staged": KernelMachine(Rbf(0.5), Z, staged_head(1), Classes(two)),
        "staged-classes": KernelMachine(Rbf(0.5), Z, staged_head(3), Classes(three)),
        "empty": KernelMachine(Rbf(0.5), np.zeros((0, 3)), LinearHead(np.zeros((0, 1)), [0.5]), Value()),
        "preparation": KernelMachine(
            Rbf(0.5), numbers(5, 12, seed=1), linear_head(5), Classes(two), preparation=preparation(())
        ),
        "ensemble": KernelMachine(
            Rbf(0.5), Z, linear_head(5, 2), Classes(two, n_models=2), calibration=Averaged((platt, isotonic))
        ),
        "norms": KernelMachine(
            Rbf(0.5), Z, linear_head(5), Value(), preparation=preparation((Norm("l2", 0, 2), Norm("max", 2, 3)))
        ),
    }


def answers(machine: KernelMachine) -> dict[str, Any]:
    """What the machine says of nine samples."""
    X = numbers(9, machine.n_features, seed=8)
    result = {"X": X, "decision": machine.decision(X)}
    if not isinstance(machine.answer, Value):
        result["predict"] = machine.predict(X).astype(str)  # strings, since an .npz file holds no objects
    if machine.calibration is not None:
        result["proba"] = machine.predict_proba(X)
    return result


def main() -> None:
    """Write the files that are not there yet."""
    FOLDER.mkdir(exist_ok=True)
    for name, machine in machines().items():
        if not (FOLDER / f"{name}.slim").exists():
            storage.write(machine, FOLDER / f"{name}.slim")
            np.savez_compressed(FOLDER / f"{name}.npz", **answers(machine))


if __name__ == "__main__":
    main()

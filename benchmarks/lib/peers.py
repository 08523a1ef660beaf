"""The libraries side by side, each as a function that predicts with the same support vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib.problems import Problem

Predict = Callable[[NDArray[Any]], Any]


@dataclass(frozen=True)
class Peer:
    """A package: what it computes in, and how to get its `predict` for a problem, a precision and some threads."""

    name: str
    precisions: tuple[str, ...]
    build: Callable[[Problem, str, int], Predict]


def build_slimsvm(problem: Problem, precision: str, threads: int) -> Predict:
    import slimsvm

    predict: Predict = slimsvm.compress(problem.svc).set_params(n_jobs=threads).predict
    return predict


def build_scores(problem: Problem, precision: str, threads: int) -> Predict:
    """The evaluation alone, without the labels: what is compared with the machine's limit."""
    import slimsvm

    machine = slimsvm.compress(problem.svc).machine_
    return lambda X: machine.scores(X, n_jobs=threads)


def build_scikit_learn(problem: Problem, precision: str, threads: int) -> Predict:
    predict: Predict = problem.svc.predict
    return predict


def build_intelex(problem: Problem, precision: str, threads: int) -> Predict:
    """scikit-learn-intelex with its own threads, trained on the same data: it takes no support vectors from outside."""
    from sklearnex.svm import SVC

    svc = SVC(**problem.parameters).fit(problem.X.astype(precision), problem.y)
    if abs(len(svc.support_vectors_) - problem.n_vectors) > 0.02 * problem.n_vectors:
        raise RuntimeError(f"it found {len(svc.support_vectors_)} support vectors instead of {problem.n_vectors}")
    predict: Predict = svc.predict
    return predict


def build_onnx_runtime(problem: Problem, precision: str, threads: int) -> Predict:
    import onnxruntime
    from skl2onnx import to_onnx

    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # it reads deprecated attributes of the SVC
        model = to_onnx(problem.svc, problem.rows[:1].astype(np.float32), options={"zipmap": False})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name, label = session.get_inputs()[0].name, [session.get_outputs()[0].name]
    return lambda X: session.run(label, {name: X})[0]


SLIMSVM = "slimsvm"
SCORES = "slimsvm, scores"
SKLEARN = "scikit-learn"
INTELEX = "scikit-learn-intelex"
ONNX = "ONNX Runtime"
PEERS = [
    Peer(SLIMSVM, ("float32", "float64"), build_slimsvm),
    Peer(SCORES, ("float32", "float64"), build_scores),
    Peer(INTELEX, ("float32", "float64"), build_intelex),
    Peer(ONNX, ("float32",), build_onnx_runtime),
    Peer(SKLEARN, ("float64",), build_scikit_learn),
]


def built(peer: Peer, problem: Problem, precision: str, threads: int) -> Predict | str:
    """The peer's `predict` after a check of its answers, or the reason why it cannot take part."""
    try:
        predict = peer.build(problem, precision, threads)
    except (ImportError, RuntimeError, NotImplementedError) as problem_found:
        return f"{type(problem_found).__name__}: {problem_found}"
    if peer.name == SCORES:
        return predict
    rows = problem.rows[:1000]
    agreement = float(np.mean(np.ravel(predict(rows.astype(precision))) == problem.svc.predict(rows)))
    return predict if agreement > 0.98 else f"its answers agree with scikit-learn's on {agreement:.1%} only"

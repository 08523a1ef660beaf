"""Baselines: models that a user could train instead of compressing.

They use the kernel and the training parameters of the parent, the original model. Nystroem features and a subsampled
SVM have as many vectors as the machines that they are compared with. Gradient-boosted trees have their own size.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from slimsvm._record import is_sparse
from slimsvm.answers import Answer, Value
from slimsvm.compression.problem import Problem
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.formats.c import table_bytes
from slimsvm.importers import import_model
from slimsvm.methods.common.training import kernel_parameters

SEARCHES = 8  # subsamples tried to reach a number of support vectors


@dataclass(frozen=True)
class Baseline:
    """A fitted model with its costs, with the methods of a machine that a frontier needs."""

    model: Any
    answer: Answer
    n_vectors: int
    n_bytes: int
    calibration: None = None

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels, sorted."""
        return np.asarray(self.model.classes_)

    def predict(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The model's predictions."""
        return np.asarray(self.model.predict(X))

    def decision(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The model's decision values."""
        return np.asarray(self.model.decision_function(X))


@dataclass(frozen=True)
class BaselineKind:
    """A kind of baseline: its name, why it does not apply to a problem, and its fit for a size and a seed."""

    name: str
    reason_against: Callable[[Problem], str]
    fit: Callable[[Problem, int, int], Baseline]
    sized: bool = True


def _nystroem(problem: Problem, m: int, seed: int) -> Baseline:
    X, y, weights = _training_data(problem)
    own = kernel_parameters(problem.machine.kernel)
    features = Nystroem(**own, n_components=min(m, X.shape[0]), random_state=seed)
    model = make_pipeline(features, problem.task.linear_svm(problem.terms, seed))
    model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weights})
    m, d = features.components_.shape
    outputs = problem.task.n_scores(problem.machine) if problem.task.is_classification else 1
    # Nystroem's normalisation and the linear weights can be stored as one coefficient per vector and output.
    return Baseline(model, problem.machine.answer, m, 4 * (m * d + (m + 1) * outputs))


def _subsampled(problem: Problem, m: int, seed: int) -> Baseline:
    """The parent's kind of SVM, trained on the largest of a few subsamples that gives at most m support vectors."""
    X, y, weights = _training_data(problem)
    order = np.random.default_rng(seed).permutation(len(y))
    least, most, n, best, smallest = 0, len(y), min(m, len(y)), None, None
    for _ in range(SEARCHES):
        rows = np.sort(order[:n])
        if not problem.task.can_train(y[rows], problem.machine):
            least, n = n, min(2 * n, most)
        else:
            svm = _svm(problem).fit(X[rows], y[rows], sample_weight=weights[rows])
            found = len(svm.support_)
            smallest = svm if smallest is None or found < len(smallest.support_) else smallest
            if found <= m:
                least, best = n, svm
            else:
                most = n - 1
            n = min(max(int(n * m / max(found, 1)), least + 1), most)
        if least >= most:
            break
    svm = best or smallest
    if svm is None:
        raise ValueError(f"No subsample of at most {most} samples has all classes.")
    try:
        n_bytes = table_bytes(import_model(svm).machine)
    except UnsupportedModelError:
        n_bytes = 0
    return Baseline(svm, problem.machine.answer, len(svm.support_), n_bytes)


def _svm(problem: Problem) -> Any:
    kernel = kernel_parameters(problem.machine.kernel)
    return problem.task.svm(problem.terms, kernel, lambda: float(problem.terms.epsilon or 0.0))


def _trees(problem: Problem, m: int, seed: int) -> Baseline:
    X, y, weights = _training_data(problem)
    model = problem.task.boosted_trees(seed).fit(X, y, sample_weight=weights)
    return Baseline(model, problem.machine.answer, 0, len(pickle.dumps(model)))


def _training_data(problem: Problem) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
    samples = problem.samples
    assert samples is not None
    return samples.X, samples.y, samples.weights


def _kernel_against(problem: Problem) -> str:
    machine = problem.machine
    if machine.gammas is not None:
        return "needs one gamma, and the vectors of this machine have several"
    if machine.input_map is not None:
        return "needs a machine without an input map"
    return _several_values(problem)


def _svm_against(problem: Problem) -> str:
    name = problem.machine.kernel.name
    return _kernel_against(problem) or ("" if name != "laplacian" else "has no laplacian kernel in scikit-learn")


def _trees_against(problem: Problem) -> str:
    if not problem.task.supervised:
        return "is for classification and regression"
    sparse = problem.samples is not None and is_sparse(problem.samples.X)
    return _several_values(problem) or ("does not take sparse data" if sparse else "")


def _several_values(problem: Problem) -> str:
    answer = problem.machine.answer
    return "is for one value per sample" if isinstance(answer, Value) and not answer.flat else ""


BASELINES = {
    one.name: one
    for one in (
        BaselineKind("nystroem", _kernel_against, _nystroem),
        BaselineKind("subsampled", _svm_against, _subsampled),
        BaselineKind("boosted trees", _trees_against, _trees, sized=False),
    )
}


def fit_baselines(name: str, problem: Problem, sizes: list[int], seed: int) -> list[Baseline]:
    """One baseline for each size, or a single one if it has its own size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the score shows how good the baseline is
        kind = BASELINES[name]
        return [kind.fit(problem, m, seed) for m in (sizes if kind.sized else sizes[:1])]

"""Baselines: models that a user could train instead of compressing.

They get the same data as the machines: after the parent's Pipeline steps, with its class weights and the user's sample
weights. Nystroem features and a subsampled SVM use the parent's kernel and training parameters, and have as many
vectors as the machines that they are compared with. Gradient-boosted trees have sizes of their own.
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
from slimsvm.compression.preparation_step import preparation_of
from slimsvm.compression.problem import Problem
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.importers import import_model
from slimsvm.kernels.geometry import dense
from slimsvm.methods.common.training import kernel_parameters, sample_costs
from slimsvm.optim import limited

SEARCHES = 8  # subsamples tried to reach a number of support vectors
TREES = {25: 4, 75: 8, 500: 31}  # most trees: most leaves of each
UNSTOPPED = 100  # trees, from which on more of them are fitted only until held-out samples improve no more
ENOUGH, OF_EACH = 500, 10  # samples, and samples of each class, from which a part is held out for that
LARGE = 1_000_000  # numbers in the data, below which several threads cost more than they gain


@dataclass(frozen=True)
class Baseline:
    """A fitted model with its costs, with the methods of a machine that a frontier needs."""

    model: Any
    answer: Answer
    n_vectors: int
    n_bytes: int
    n_dimensions: int = 0
    multiply_adds: int = 0
    calibration: None = None

    def _given(self, X: Any) -> Any:
        """Data as the model takes them: trees take no CSR rows, and a preparation may give some."""
        return X if self.n_vectors else dense(X)

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels, sorted."""
        return np.asarray(self.model.classes_)

    def predict(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The model's predictions."""
        return np.asarray(self.model.predict(self._given(X)))

    def decision(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The model's decision values."""
        return np.asarray(self.model.decision_function(self._given(X)))

    def scores(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The model's decision values as columns, (n, s)."""
        return self.decision(X).reshape(X.shape[0], -1)

    def own_probabilities(self, X: Any) -> NDArray[Any] | None:
        """The model's own probabilities, (n, k); None if it has none."""
        return np.asarray(self.model.predict_proba(self._given(X))) if hasattr(self.model, "predict_proba") else None


@dataclass(frozen=True)
class BaselineKind:
    """A kind of baseline: its name, why it does not apply to a problem, its fit for a size and a seed, and its own
    sizes if these are not numbers of vectors.
    """

    name: str
    reason_against: Callable[[Problem], str]
    fit: Callable[[Problem, int, int], Baseline]
    own_sizes: tuple[int, ...] = ()

    def sizes(self, counts: list[int]) -> list[int]:
        """Its sizes, if those of the machines are these numbers of vectors."""
        return list(self.own_sizes) or counts


def _nystroem(problem: Problem, m: int, seed: int) -> Baseline:
    X, y, weights = _training_data(problem)
    own = kernel_parameters(problem.machine.kernel)
    features = Nystroem(**own, n_components=min(m, X.shape[0]), random_state=seed)
    model = make_pipeline(features, problem.task.linear_svm(problem.terms, seed))
    model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weights})
    m, d = features.components_.shape
    outputs = problem.task.n_scores(problem.machine) if problem.task.is_classification else 1
    # Nystroem's normalisation and the linear weights can be stored as one coefficient per vector and output.
    n_bytes, multiply_adds = 4 * (m * d + (m + 1) * outputs), m * (d + outputs)
    return Baseline(model, problem.machine.answer, m, n_bytes, d, multiply_adds)


def _subsampled(problem: Problem, m: int, seed: int) -> Baseline:
    """The parent's kind of SVM, trained on the largest of a few subsamples that gives at most m support vectors."""
    X, y, weights = _training_data(problem)
    order = _mixed(y if problem.task.is_classification else np.zeros(len(y)), np.random.default_rng(seed))
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
        cost = import_model(svm).machine.cost
    except UnsupportedModelError:
        return Baseline(svm, problem.machine.answer, len(svm.support_), 0)
    counts = cost.n_bytes, cost.n_dimensions, cost.multiply_adds
    return Baseline(svm, problem.machine.answer, len(svm.support_), *counts)


def _mixed(y: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """A random order in which all classes come first, and every beginning has about the shares of the whole."""
    random = rng.permutation(len(y))
    _, label, counts = np.unique(y, return_inverse=True, return_counts=True)
    share = np.empty(len(y))
    for number, count in enumerate(counts):
        share[random[label[random] == number]] = np.arange(count) / count
    return np.lexsort((np.argsort(random), share))


def _svm(problem: Problem) -> Any:
    kernel = kernel_parameters(problem.machine.kernel)
    return problem.task.svm(problem.terms, kernel, lambda: float(problem.terms.epsilon or 0.0))


def _trees(problem: Problem, m: int, seed: int) -> Baseline:
    X, y, weights = _training_data(problem)
    X = dense(X)
    stops = m > UNSTOPPED and _enough_to_stop(problem)
    n_trees = m if stops else min(m, UNSTOPPED)
    model = problem.task.boosted_trees(
        max_iter=n_trees, max_leaf_nodes=TREES[m], early_stopping=stops, random_state=seed
    )
    if problem.task.is_classification:
        weights = sample_costs(1.0, X, y, problem.terms.class_weight, weights)
    with limited(1 if X.size < LARGE else None, "openmp"):
        # Equal weights change no tree, and scikit-learn's weighted quantiles take most of the time of a fit.
        model.fit(X, y, sample_weight=None if (weights == weights[0]).all() else weights)
    return Baseline(model, problem.machine.answer, 0, len(pickle.dumps(model)))


def _enough_to_stop(problem: Problem) -> bool:
    """Whether there are enough samples to hold some out, to say when more trees are no better."""
    _, y, _ = _training_data(problem)
    fewest = np.unique(y, return_counts=True)[1].min() if problem.task.is_classification else len(y)
    return len(y) >= ENOUGH and bool(fewest >= OF_EACH)


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
    sparse = problem.samples is not None and is_sparse(problem.samples.X) and preparation_of(problem.imported) is None
    return _several_values(problem) or ("does not take sparse data" if sparse else "")


def _several_values(problem: Problem) -> str:
    answer = problem.machine.answer
    return "is for one value per sample" if isinstance(answer, Value) and not answer.flat else ""


BASELINES = {
    one.name: one
    for one in (
        BaselineKind("nystroem", _kernel_against, _nystroem),
        BaselineKind("subsampled", _svm_against, _subsampled),
        BaselineKind("boosted trees", _trees_against, _trees, tuple(TREES)),
    )
}


def fit_baselines(name: str, problem: Problem, sizes: list[int], seed: int) -> list[Baseline]:
    """One baseline for each size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the score shows how good the baseline is
        return [BASELINES[name].fit(problem, m, seed) for m in sizes]

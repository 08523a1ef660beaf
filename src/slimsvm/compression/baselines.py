"""What a user would do instead of compressing: the models that a frontier is drawn beside.

They take the parent's kernel and terms. Nystroem features and a subsampled SVM have as many vectors as the machines
that they are compared with; gradient-boosted trees have the size they have.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM

from slimsvm._record import is_sparse
from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.compression.source import Source
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.formats.c import table_bytes
from slimsvm.importers import import_model
from slimsvm.methods.training import kernel_parameters

SEARCHES = 8  # subsamples that are tried for one that leaves the number of support vectors


@dataclass(frozen=True)
class Rival:
    """A fitted model with the costs of a machine; it stands where a machine would, by `answer` and its answers."""

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
        """The model's answers."""
        return np.asarray(self.model.predict(X))

    def decision(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The model's decisions."""
        return np.asarray(self.model.decision_function(X))


@dataclass(frozen=True)
class Baseline:
    """A name, why it does not apply to a source (empty where it does), and how it is made for a size and a seed."""

    name: str
    reason_against: Callable[[Source], str]
    make: Callable[[Source, int, int], Rival]
    sized: bool = True


def _nystroem(source: Source, m: int, seed: int) -> Rival:
    terms, answer, data = source.terms, source.machine.answer, _taken(source)
    own = kernel_parameters(source.machine.kernel)
    features = Nystroem(**own, n_components=min(m, data[0].shape[0]), random_state=seed)
    C = float(terms.C or 1.0)
    if isinstance(answer, Classes):
        last: Any = LinearSVC(C=C, class_weight=terms.class_weight, random_state=seed)
    elif isinstance(answer, Value):
        last = LinearSVR(C=C, epsilon=float(terms.epsilon or 0.0), random_state=seed)
    else:
        last = SGDOneClassSVM(nu=float(terms.nu or 0.5), random_state=seed)
    model = make_pipeline(features, last)
    model.fit(*data[:2], **{f"{model.steps[-1][0]}__sample_weight": data[2]})
    m, d = features.components_.shape
    outputs = len(source.machine.classes) if isinstance(answer, Classes) and len(source.machine.classes) > 2 else 1
    # In tables, Nystroem's normalisation and the linear weights become one coefficient per vector and output.
    return Rival(model, answer, m, 4 * (m * d + (m + 1) * outputs))


def _subsampled(source: Source, m: int, seed: int) -> Rival:
    """The parent's kind of SVM on the largest of a few subsamples that leaves at most m support vectors."""
    X, y, weights = _taken(source)
    order = np.random.default_rng(seed).permutation(len(y))
    least, most, n, best, smallest = 0, len(y), min(m, len(y)), None, None
    for _ in range(SEARCHES):
        rows = np.sort(order[:n])
        if isinstance(source.machine.answer, Classes) and len(np.unique(y[rows])) < len(source.machine.classes):
            least, n = n, min(2 * n, most)
        else:
            svm = _svm(source).fit(X[rows], y[rows], sample_weight=weights[rows])
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
        raise ValueError(f"No subsample of {most} samples or fewer holds every class.")
    try:
        n_bytes = table_bytes(import_model(svm).machine)
    except UnsupportedModelError:
        n_bytes = 0
    return Rival(svm, source.machine.answer, len(svm.support_), n_bytes)


def _svm(source: Source) -> Any:
    terms, answer, own = source.terms, source.machine.answer, kernel_parameters(source.machine.kernel)
    if isinstance(answer, Inlier):
        return OneClassSVM(**own, nu=float(terms.nu or 0.5))
    C = float(terms.C or 1.0)
    if isinstance(answer, Value):
        return SVR(**own, C=C, epsilon=float(terms.epsilon or 0.0))
    return SVC(**own, C=C, class_weight=terms.class_weight)


def _trees(source: Source, m: int, seed: int) -> Rival:
    X, y, weights = _taken(source)
    classes = isinstance(source.machine.answer, Classes)
    model = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(random_state=seed)
    model.fit(X, y, sample_weight=weights)
    return Rival(model, source.machine.answer, 0, len(pickle.dumps(model)))


def _taken(source: Source) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
    samples = source.samples
    assert samples is not None
    return samples.X, samples.y, samples.weights


def _kernel_against(source: Source) -> str:
    machine = source.machine
    if machine.gammas is not None:
        return "needs one width, and these vectors have widths of their own"
    if machine.input_map is not None:
        return "takes data as they are, and this machine maps them first"
    return "is for one value per sample" if isinstance(machine.answer, Value) and not machine.answer.flat else ""


def _svm_against(source: Source) -> str:
    name = source.machine.kernel.name
    return _kernel_against(source) or ("" if name != "laplacian" else "has no laplacian kernel in scikit-learn")


def _trees_against(source: Source) -> str:
    if isinstance(source.machine.answer, Inlier):
        return "is for classes and values"
    if isinstance(source.machine.answer, Value) and not source.machine.answer.flat:
        return "is for one value per sample"
    return "does not take sparse data" if source.samples is not None and is_sparse(source.samples.X) else ""


BASELINES = {
    one.name: one
    for one in (
        Baseline("nystroem", _kernel_against, _nystroem),
        Baseline("subsampled", _svm_against, _subsampled),
        Baseline("boosted trees", _trees_against, _trees, sized=False),
    )
}


def make_rivals(name: str, source: Source, sizes: list[int], seed: int) -> list[Rival]:
    """A baseline for each size, or one where it has its own size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it is worth is measured
        baseline = BASELINES[name]
        return [baseline.make(source, m, seed) for m in (sizes if baseline.sized else sizes[:1])]

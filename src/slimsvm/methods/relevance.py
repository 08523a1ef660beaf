"""Relevance vector machines: few training samples as vectors, chosen by the marginal likelihood of the labels.

The score is f(x) = Σ_j w_j k(z_j, x) + w_0 and P(second class) = 1/(1 + exp(−f(x))). Every weight w_j has a zero-mean
Gaussian prior with its own precision; `optim/relevance.py` maximises the marginal likelihood over the precisions, most
of which become infinite (Tipping 2001; Tipping & Faul 2003). The bias w_0 is always there, with a prior of standard
deviation 1000. Without it no single column could start if all kernel values are positive and the classes are balanced.
With several classes, each is trained against the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slimsvm._record import FloatArray
from slimsvm._words import plural
from slimsvm.answers import Classes
from slimsvm.arrays import distinct_rows, stack_points
from slimsvm.calibration import Sigmoid
from slimsvm.estimator import MachineClassifier
from slimsvm.evaluation import Precision
from slimsvm.methods.common import training
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.points import Points
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.objective import KEPT_VALUES
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Features, StoredFeatures
from slimsvm.optim.relevance import Fit, Output, maximise_marginal_likelihood
from slimsvm.parameters import check_count, check_number


class KernelColumns:
    """k(x_i, z_j) of all samples with the candidates Z (M, p), and a last column of ones for the bias.

    The columns are stored if they are few, else computed again in every pass, block by block.
    """

    def __init__(self, points: Points, Z: Any) -> None:
        self.points, self.Z = points, Z
        self.n_rows, self.n_columns = points.n_points, int(Z.shape[0]) + 1
        self._all = self._columns(np.arange(self.n_columns))

    def only(self, chosen: NDArray[np.intp] | None) -> Features:
        """The chosen columns, or all."""
        if chosen is None:
            return self._all
        return (
            StoredFeatures(self._all.Phi[:, chosen]) if isinstance(self._all, StoredFeatures) else self._columns(chosen)
        )

    def _columns(self, chosen: NDArray[np.intp]) -> Features:
        columns = _ComputedColumns(self.points, self.Z, chosen)
        if self.n_rows * len(chosen) > KEPT_VALUES:
            return columns
        return StoredFeatures(np.concatenate([Phi for _, Phi in columns.blocks()]))


class _ComputedColumns:
    """Columns that are computed in every pass; the last one is the bias."""

    basis: FloatArray | None = None

    def __init__(self, points: Points, Z: Any, chosen: NDArray[np.intp]) -> None:
        self._points, self._Z = points, Z[chosen[chosen < Z.shape[0]]]
        self._kernel = np.flatnonzero(chosen < Z.shape[0])
        self.n_rows, self.n_features = points.n_points, len(chosen)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """(rows, columns of these)."""
        for rows in self._points.blocks(self.n_features):
            Phi = np.ones((rows.stop - rows.start, self.n_features))
            Phi[:, self._kernel] = self._points.kernel.gram(self._points.X[rows], self._Z)
            yield rows, Phi


class RelevanceVectorClassifier(MachineClassifier):
    """A relevance vector machine: few training samples as vectors, chosen by the marginal likelihood of the labels.

    You choose neither C nor a number of vectors. The kernel need not be positive definite. Probabilities are
    1/(1 + exp(−score)), with several classes scaled to sum to one.

    Parameters
    ----------
    kernel, gamma, coef0, degree : as in SVC.
    class_weight : as in SVC; weights of classes and samples multiply the log-likelihood of a sample.
    max_candidates : int, default=2000
        The number of samples that may become vectors. If there are more samples, so many are drawn at random.
    max_iter : int, default=1000
        The largest number of modes of the weights that are computed for a class, each after a few steps.
    tol : float, default=1e-3
        Training ends when no step adds more than this to the log marginal likelihood, in nats.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing candidates; nothing else is random.
    verbose : int, default=0
        Whether progress is logged: 1 for once a second, 2 for everything.
    n_jobs, precision : as in the estimators that `slimsvm.compress` returns, for predicting.

    Attributes
    ----------
    machine_ : KernelMachine
    n_vectors_, vectors_, classes_, n_features_in_ : of `machine_`, whose vectors are those of any class, each once.
    log_marginal_likelihood_ : float, in Laplace's approximation, summed over the classes.
    n_iter_ : int, the number of modes computed, over all classes.
    history_ : list of dict, one per improvement: `step`, `output` (the place of the class against the rest),
        `log_marginal_likelihood` and `n_vectors` of this output.

    Notes
    -----
    With N samples, M candidates and m vectors, scoring all candidates takes N·M·m multiplications, and N·M kernel
    values if these are more than 2**24 and therefore not stored. A mode takes N·m² per Newton iteration. Memory is
    O(M·m + N), and at most 2**24 kernel values.
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: float = 3,
        class_weight: Any = None,
        max_candidates: int = 2000,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.class_weight = class_weight
        self.max_candidates = max_candidates
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RelevanceVectorClassifier:
        """Train on X (N, d) and y (N,). Samples of weight zero are left out.

        Ctrl-C leaves the best machine so far in `machine_`, once every class has begun.
        """
        whose = type(self).__name__
        check_number(self.tol, "tol", whose, above=0)
        check_count(self.max_candidates, "max_candidates", whose)
        check_count(self.max_iter, "max_iter", whose)
        task = training.classification_task(self, X, y, sample_weight)
        columns = KernelColumns(task.points, self._candidates(task.points))
        outputs = [Output((one > 0).astype(np.float64), task.costs, columns.n_columns - 1) for one in task.Y.T]
        self.history_: list[dict[str, Any]] = []
        work = float(columns.n_rows) * columns.n_columns
        with Progress(whose, self.verbose) as progress, calm_blas(work):

            def report(output: int, fit: Fit) -> None:
                size = int(np.count_nonzero(fit.active < columns.n_columns - 1))
                self.history_.append(
                    {
                        "step": len(self.history_),
                        "output": output,
                        "log_marginal_likelihood": fit.value,
                        "n_vectors": size,
                    }
                )
                message = "class %d of %d, log marginal likelihood %.6g, %s"
                progress.tell(message, output + 1, len(outputs), fit.value, plural(size, "vector"))

            def best() -> Any:
                begun = all(len(output.fit.active) > 1 for output in outputs)
                return self._set_fitted(task, columns, outputs) if begun else None

            with keeping_best(best):
                converged = maximise_marginal_likelihood(
                    columns, outputs, tolerance=float(self.tol), max_iter=int(self.max_iter), on_best=report
                )
        self._set_fitted(task, columns, outputs)
        if not converged:
            warnings.warn(
                f"{whose} stopped after {self.max_iter} modes with steps left that gain more than tol={self.tol}. The "
                f"machine is usable; raise max_iter or tol for one that has converged.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _candidates(self, points: Points) -> Any:
        """Up to `max_candidates` samples, without repetitions."""
        n, most = points.n_points, int(self.max_candidates)
        rng = check_random_state(self.random_state)
        chosen = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
        Z = stack_points([points.X[chosen]])
        return Z[distinct_rows(Z)[0]]

    def _set_fitted(
        self, task: training.ClassificationTask, columns: KernelColumns, outputs: list[Output]
    ) -> RelevanceVectorClassifier:
        """The estimator, with the machine of all classes: the vectors of any class, with zeros for the others."""
        W = np.zeros((columns.n_columns, len(outputs)))
        for k, output in enumerate(outputs):
            W[output.fit.active, k] = output.fit.w
        used = np.unique(np.concatenate([output.fit.active for output in outputs]))
        used = used[used < columns.n_columns - 1]
        machine = training.make_machine(self, task.points, columns.Z[used], W[used], W[-1], Classes(task.classes))
        self.machine_ = replace(machine, calibration=Sigmoid(-np.ones(len(outputs)), np.zeros(len(outputs))))
        self.log_marginal_likelihood_ = float(sum(output.fit.value for output in outputs))
        self.n_iter_ = sum(output.n_iter for output in outputs)
        return self

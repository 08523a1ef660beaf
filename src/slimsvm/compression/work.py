"""How much work a small machine may take, compared with the training of its parent.

Work is counted in multiplications, roughly, and never by the clock, so that the same seed gives the same machine. Every
machine may take some work whatever the training of its parent took, because nobody minds a search of 20 seconds on
validation data or of a minute by folds; beyond that, a share of the training.
"""

from __future__ import annotations

from slimsvm._record import is_sparse
from slimsvm.compression.problem import Problem

SHARE = 0.4  # of the training: a search judges about five machines
FREE = 1e9  # half a second, or less: of a machine of a fold
VALIDATED = 4e9  # of a machine that validation data judge: there are no folds, so there are fewer of them
ALONE = 1e10  # of a machine whose size is given: it is the only one
PER_VALUE = 50  # multiplications that a kernel value takes besides those of its dot product
SPARSE = 9  # how many times longer training takes on sparse data


def training(problem: Problem) -> float:
    """About the work of training the parent: N N_SV (d + 100)."""
    n = 0 if problem.samples is None else len(problem.samples)
    times = SPARSE if is_sparse(problem.target.X) else 1
    return float(n) * problem.n_vectors * (dot_product(problem) + 2 * PER_VALUE) * times


def free(searched: bool, by_folds: bool) -> float:
    """The work that any machine of a problem may take, and of its folds."""
    return (FREE if by_folds else VALIDATED) if searched else ALONE


def dot_product(problem: Problem) -> float:
    """Multiplications of a dot product: the features, or the mean number of non-zeros of sparse data."""
    X = problem.target.X
    return X.nnz / max(1, X.shape[0]) if is_sparse(X) else float(X.shape[1])


def iterations(allowed: float, step: float, least: int, most: int) -> int:
    """The number of iterations that the allowed work pays for, within bounds."""
    return int(min(max(allowed / max(step, 1.0), least), most))

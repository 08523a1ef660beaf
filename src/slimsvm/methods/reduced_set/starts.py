"""Where the vectors of a reduced set start from (Suttorp & Igel 2007, section 3.1, and k-means weighted by |α|).

Every start is a function (target, m, rng) → Z (m, p), dense, in random order. `random` and `kernel_kmeans` keep the
proportion of the classes among the support vectors; `alpha` draws by the size of the coefficients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from slimsvm._record import FloatArray, is_sparse
from slimsvm.arrays import narrow_indices
from slimsvm.kernels.geometry import dense, row_norms
from slimsvm.methods.reduced_set.expansion import Expansion
from slimsvm.optim import limited

Start = Callable[[Expansion, int, np.random.Generator], FloatArray]
CLUSTERED = 2000  # points of a class, at most, for kernel k-means, whose Gram matrix is stored
SAMPLED = 20_000  # points, at most, for k-means
ROUNDS = 50
CLOSE, TABLE = 16, 3000  # points for each centre, and points at all, up to which all distances are computed at once


def proportional(sizes: NDArray[np.intp], m: int) -> NDArray[np.intp]:
    """The numbers of vectors, m in all, for groups of the given sizes; none gets more than its size.

    Two groups as in the paper: the second (positive) gets max{1, ⌊m · share⌋} and the first the rest. More groups get
    ⌊m · share⌋ and then one more each by the largest remainder.
    """
    exact = m * sizes / sizes.sum()
    counts = np.floor(exact).astype(np.intp)
    if len(sizes) == 2:
        counts[1] = max(1, counts[1])
        counts[0] = m - counts[1]
    else:
        counts[np.argsort(counts - exact, kind="stable")[: m - counts.sum()]] += 1
    surplus = int(np.maximum(counts - sizes, 0).sum())
    counts = np.minimum(counts, sizes)
    for group in np.argsort(counts - sizes, kind="stable"):  # groups with most room take the surplus of the others
        more = min(surplus, int(sizes[group] - counts[group]))
        counts[group] += more
        surplus -= more
    return np.asarray(counts)


def _members(target: Expansion, m: int) -> list[tuple[NDArray[np.intp], int]]:
    """The points of each class, and the number of vectors that start there."""
    _, group = np.unique(target.groups, return_inverse=True)
    sizes = np.bincount(group)
    return [(np.flatnonzero(group == g), int(c)) for g, c in enumerate(proportional(sizes, m))]


def random(target: Expansion, m: int, rng: np.random.Generator) -> FloatArray:
    """Support vectors drawn without replacement, in the proportion of the classes."""
    chosen = [rng.choice(points, count, replace=False) for points, count in _members(target, m)]
    return _take_rows(target, np.concatenate(chosen), rng)


def alpha(target: Expansion, m: int, rng: np.random.Generator) -> FloatArray:
    """Support vectors by |α_i|: stochastic universal sampling, m equally spaced markers on one turn of a wheel (Baker
    1987).

    A support vector that is hit more than once is taken once; others, drawn by |α_i|, replace the repetitions.
    """
    wheel = np.cumsum(target.weights)
    markers = (rng.random() + np.arange(m)) * wheel[-1] / m
    hit = np.unique(np.minimum(np.searchsorted(wheel, markers, side="right"), target.n_points - 1))
    others = np.setdiff1d(np.arange(target.n_points), hit)
    share = target.weights[others] / max(target.weights[others].sum(), np.finfo(float).tiny)
    more = rng.choice(others, m - len(hit), replace=False, p=share) if len(hit) < m else others[:0]
    return _take_rows(target, np.concatenate([hit, more]), rng)


def kernel_kmeans(target: Expansion, m: int, rng: np.random.Generator) -> FloatArray:
    """The pseudo-centres of kernel k-means within each class: the points nearest to the centres in feature space."""
    chosen = []
    for points, count in _members(target, m):
        most = max(CLUSTERED, count)
        sample = rng.choice(points, most, replace=False) if len(points) > most else points
        K = np.asarray(target.kernel.gram(target.X[sample], target.X[sample]), dtype=np.float64)
        chosen.append(sample[pseudo_centres(K, count, rng)])
    return _take_rows(target, np.concatenate(chosen), rng)


def pseudo_centres(K: FloatArray, m: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """m distinct rows of the Gram matrix K (n, n), nearest to the centres of kernel k-means.

    ‖φ(x_i) − c‖² = K_ii − 2 mean_{j∈c} K_ij + mean_{j,l∈c} K_jl. The point farthest from its own centre refills a
    cluster that has become empty.
    """
    n = len(K)
    if m == 0:
        return np.zeros(0, dtype=np.intp)
    owner = K[:, rng.choice(n, m, replace=False)].argmax(axis=1)
    for _ in range(ROUNDS):
        owner = _refill_empty(owner, K, m)
        distance = _centre_distances(K, owner, m)
        nearest = distance.argmin(axis=1)
        if (nearest == owner).all():
            break
        owner = nearest
    distance = _centre_distances(K, _refill_empty(owner, K, m), m)
    centres = np.empty(m, dtype=np.intp)
    for cluster in range(m):
        centres[cluster] = distance[:, cluster].argmin()
        distance[centres[cluster]] = np.inf  # no point twice
    return centres


def _centre_distances(K: FloatArray, owner: NDArray[np.intp], m: int) -> FloatArray:
    """‖φ(x_i) − c_j‖² − K_ii, (n, m)."""
    member = np.zeros((len(K), m))
    member[np.arange(len(K)), owner] = 1.0
    member /= np.maximum(member.sum(axis=0), 1.0)
    toward = K @ member
    return np.asarray(np.sum(member * toward, axis=0) - 2.0 * toward)


def _refill_empty(owner: NDArray[np.intp], K: FloatArray, m: int) -> NDArray[np.intp]:
    empty = np.setdiff1d(np.arange(m), owner)
    if not len(empty):
        return owner
    own = _centre_distances(K, owner, m)[np.arange(len(K)), owner] + np.diag(K)
    owner = owner.copy()
    for cluster in empty:
        alone = np.bincount(owner, minlength=m)[owner] == 1  # taking one of these would empty another cluster
        farthest = int(np.where(alone, -np.inf, own).argmax())
        owner[farthest], own[farthest] = cluster, -np.inf
    return owner


def weighted_kmeans(target: Expansion, m: int, rng: np.random.Generator) -> FloatArray:
    """The centres of k-means over the support vectors, weighted by |α_i| (Hsieh, Si & Dhillon 2014)."""
    chosen = np.arange(target.n_points)
    if target.n_points > max(SAMPLED, m):
        chosen = np.sort(rng.choice(target.n_points, max(SAMPLED, m), replace=False))
    return k_means(target.X[chosen], target.weights[chosen], m, rng)


def k_means(X: Any, weights: FloatArray, m: int, rng: np.random.Generator) -> FloatArray:
    """The centres of weighted k-means, (m, p), in random order."""
    seed = int(rng.integers(2**31))
    init: Any = "k-means++" if is_sparse(X) else X[kmeans_plus_plus(X, weights, m, seed)]
    # The order of sums over several threads is random, and the same seed must give the same machine.
    with warnings.catch_warnings(), limited(1, "openmp"):
        warnings.simplefilter("ignore")  # about too few distinct points, which do no harm
        means = KMeans(m, init=init, n_init=1, max_iter=ROUNDS, random_state=seed, algorithm="lloyd")
        means.fit(narrow_indices(X), sample_weight=weights)
    return np.asarray(rng.permutation(means.cluster_centers_))


def kmeans_plus_plus(X: FloatArray, weights: FloatArray, m: int, seed: int) -> NDArray[np.intp]:
    """The m rows of X that k-means++ starts from: those that scikit-learn draws, without its checks in every step.

    If the centres are not far fewer than the points, a table of all distances is faster still.
    """
    random, n, trials = np.random.RandomState(seed), len(X), 2 + int(np.log(m))
    X = X - X.mean(axis=0)
    squares = row_norms(X)
    table = _squared_distances(X, squares, np.arange(n)) if n <= min(TABLE, CLOSE * m) else None

    def distances(rows: Any) -> FloatArray:
        return _squared_distances(X, squares, rows) if table is None else table[rows]

    chosen = [int(random.choice(n, p=weights / weights.sum()))]
    nearest = distances(chosen)[0]
    for _ in range(1, m):
        drawn = random.uniform(size=trials) * float(nearest @ weights)
        tried = np.minimum(np.searchsorted(np.cumsum(weights * nearest), drawn), n - 1)
        left = np.minimum(nearest, distances(tried))
        best = int((left @ weights).argmin())
        chosen.append(int(tried[best]))
        nearest = left[best]
    return np.array(chosen)


def _squared_distances(X: FloatArray, squares: FloatArray, rows: Any) -> FloatArray:
    """The squared distances of some rows from all, (rows, n)."""
    distance = (-2.0 * X[rows]) @ X.T
    distance += squares
    distance += squares[rows][:, None]
    return np.asarray(np.maximum(distance, 0.0, out=distance))


STARTS: dict[str, Start] = {f.__name__: f for f in (random, alpha, kernel_kmeans, weighted_kmeans)}


def _take_rows(target: Expansion, chosen: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
    return np.asarray(dense(target.X[rng.permutation(chosen)]), dtype=np.float64)

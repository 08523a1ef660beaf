"""How much work a small machine may take, beside what training its parent took.

Counted in multiplications, roughly, and never by the clock, so that the same seed gives the same machine. Up to `SMALL`
samples nobody waits long, and every machine may take `FREE` of them; beyond, each may take a share of the training.
"""

from __future__ import annotations

from slimsvm._record import is_sparse
from slimsvm.compression.source import Source

SHARE = 0.4  # of the training: a search judges about five machines
SMALL = 5000  # samples
FREE = 1e9  # half a second, or less
ALONE = 1e10  # of a machine whose size is given: it is the only one
PER_VALUE = 50  # multiplications that a kernel value takes beside those of its dot product
SPARSE = 9  # times as long takes training on sparse data


def training(source: Source) -> float:
    """About what training the parent took: N N_SV (d + 100)."""
    n = 0 if source.samples is None else len(source.samples)
    times = SPARSE if is_sparse(source.target.X) else 1
    return float(n) * source.n_vectors * (width(source) + 2 * PER_VALUE) * times


def free(source: Source, searched: bool) -> float:
    """What any machine of this source, and of folds of it, may take."""
    if not searched:
        return ALONE
    return FREE if source.samples is None or len(source.samples) <= SMALL else 0.0


def width(source: Source) -> float:
    """Multiplications of a dot product: the features, of sparse data those that are there."""
    X = source.target.X
    return X.nnz / max(1, X.shape[0]) if is_sparse(X) else float(X.shape[1])


def iterations(allowed: float, step: float, least: int, most: int) -> int:
    """As many steps as are allowed."""
    return int(min(max(allowed / max(step, 1.0), least), most))

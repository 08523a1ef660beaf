"""The only module that calls the compiled core.

`available` says whether the core could be loaded. If not, all callers use NumPy, and the import of slimsvm warns once.
With `SLIMSVM_REQUIRE_CORE=1` in the environment a missing core is an error, so that a broken build is noticed.
`SLIMSVM_INSTRUCTION_SET` selects an instruction set instead of the best one that the processor has.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import is_sparse
from slimsvm.exceptions import SlowCoreWarning

if TYPE_CHECKING:
    from slimsvm.input_map import InputMap
    from slimsvm.kernels import Kernel

INSTRUCTION_SETS = ("avx512", "avx2", "baseline")

_wanted = os.environ.get("SLIMSVM_INSTRUCTION_SET")
if _wanted and _wanted not in INSTRUCTION_SETS:
    raise ValueError(f"SLIMSVM_INSTRUCTION_SET must be one of {', '.join(INSTRUCTION_SETS)}. Got {_wanted!r}.")

_native: Any
try:
    from slimsvm import _native  # type: ignore[no-redef]
except ImportError as error:
    if os.environ.get("SLIMSVM_REQUIRE_CORE") == "1":
        raise ImportError(
            "SLIMSVM_REQUIRE_CORE is 1, and the compiled core of slimsvm could not be loaded. Reinstall slimsvm with a "
            "C++17 compiler."
        ) from error
    warnings.warn(
        "The compiled core of slimsvm could not be loaded. Predictions use NumPy, which is ten or more times slower. "
        "Install a C++17 compiler and reinstall slimsvm to build the core.",
        SlowCoreWarning,
        stacklevel=2,
    )
    available = False
    instruction_set: str | None = None
else:
    available = True
    instruction_set = _native.instruction_set
    if _wanted and _wanted != instruction_set:  # the core falls back to baseline
        raise ValueError(
            f"SLIMSVM_INSTRUCTION_SET is {_wanted}, which this processor or this build of slimsvm does not have. "
            "Unset it to use the best instruction set there is."
        )

Sites = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]

SMALL_WORK = 4e6  # multiplications below which one thread is faster than several
SPARSE_DENSITY = 1 / 16  # sparse points with fewer entries are evaluated through an inverted index
LARGEST_EXPONENT = 1e4  # γ‖z‖² (or γ‖z‖₁) above which the inverted index loses digits
CORES = os.cpu_count() or 1
_here = threading.local()  # `alone`: whether this thread may not use others
DENSE_VALUES = 2**26  # most coordinates of sparse points that are made dense for accuracy


def plan(
    kernel: Kernel,
    points: Any,
    gammas: NDArray[np.float64] | None,
    coef: NDArray[np.float64] | None,
    start: NDArray[np.float64] | None,
    blocks: tuple[int, ...],
    input_map: InputMap | None,
    in_float: bool,
    sparse_rows: bool,
    sites: Sites | None = None,
    stages: dict[str, Any] | None = None,
    table: NDArray[np.float64] | None = None,
) -> Any:
    """A machine packed for one precision: `run(X, out, threads)` and `run_csr(data, columns, starts, out, threads)`.

    Both fill `out`, in float64, with sums (n, G q), or with kernel values (n, m) if there are no coefficients, and add
    `start`. They return the number of rows that contain NaN or infinity, or whose squares or outputs overflow; these
    rows of `out` start with a NaN. The result is None if the core cannot be accurate: sparse points of a radial kernel
    far from the origin. `sites` belong to a `MirrorHead`: the point of each site, its scale, and its square
    (`Kernel.scaled_squares`). With `stages`, for early exit, `out` holds scores (n, q) or counts (n, 1).
    `table` (R, m) has the shares of look-ups in the kernel's argument: `run_with_rows(X, rows, out, threads)` adds the
    rows (n, lookups) of each row of X.
    """
    m, p = points.shape
    parts: dict[str, Any] = dict.fromkeys(("points", "values", "columns", "starts", "shift", "scale", "offset"))
    parts |= dict(zip(("site_points", "site_scales", "site_squares"), sites or (None, None, None), strict=True))
    thin = is_sparse(points) and input_map is None and points.nnz < SPARSE_DENSITY * m * p
    if thin and (sites or kernel.largest_exponent(points, gammas) > LARGEST_EXPONENT):
        if m * p > DENSE_VALUES:
            return None
        thin = False
    if thin:
        parts |= {"values": points.data, "columns": points.indices, "starts": points.indptr}
        in_float = False  # sparse points are not centred, and their speed is limited by memory, not by arithmetic
    else:
        parts["points"] = points.toarray() if is_sparse(points) else np.ascontiguousarray(points, np.float64)
    if input_map is not None:
        parts |= {"shift": input_map.shift, "scale": input_map.scale, "offset": input_map.offset}
    return _native.Plan(
        kernel=kernel.name,
        in_float=in_float,
        sparse_rows=sparse_rows,
        m=m,
        p=p,
        gammas=np.full(m, kernel.gamma) if gammas is None else gammas,
        coef0=kernel.coef0,
        degree=kernel.degree,
        coef=coef,
        start=start,
        block_sizes=np.array(blocks if sites is None else (m,), dtype=np.int64),
        **parts,
        **(stages or {}),
        table=None if table is None else np.ascontiguousarray(table, np.float64),
    )


def gram(
    kernel: Kernel, X: NDArray[Any], Z: NDArray[Any], gammas: NDArray[np.float64] | None
) -> tuple[NDArray[Any], int]:
    """K_ij = k(x_i, z_j), (n, m), for dense X and Z of one type, and the number of rows with NaN, as in `plan`."""
    out = np.empty((X.shape[0], Z.shape[0]), dtype=X.dtype)
    packed = plan(kernel, Z, gammas, None, None, (), None, X.dtype == np.float32, False)
    return out, packed.values(np.ascontiguousarray(X), out, threads(None, out.size * X.shape[1]))


def agreement(
    S: NDArray[np.float32], T: NDArray[np.float32], weights: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """counts_rc = Σ_i w_i [S_ri + T_ci > 0], (r, c), for S (r, n) and T (c, n); weights w are 1 by default."""
    counts = np.empty((len(S), len(T)))
    if available:
        _native.agreement(S, T, weights, counts, threads(-1, float(S.size) * len(T)))
        return counts
    above = np.empty(S.shape, dtype=bool)
    for c, row in enumerate(T):
        np.greater(S + row, 0, out=above)
        counts[:, c] = np.count_nonzero(above, axis=1) if weights is None else above @ weights.astype(np.float64)
    return counts


def solve_margin(
    Phi: NDArray[np.float64],
    problem: tuple[NDArray[np.float64], ...],
    start: tuple[NDArray[np.float64], ...],
    squared: bool,
    tolerance: float,
    max_iter: int,
) -> tuple[tuple[NDArray[np.float64], ...], int, bool]:
    """The compiled loops of `optim.margin`: (w, b, α, value, gap), the number of iterations, and if it converged.

    `problem` is σ, o, u, λ, h and the least objective; `start` is w, b, f, α, s and t, of which the squared hinge reads
    w and b only.
    """
    parts = (np.ascontiguousarray(one, dtype=np.float64) for one in (Phi, *problem))
    state = [np.array(one, dtype=np.float64, order="C") for one in start]
    w, b, _, alpha, _, _ = state
    value, gap = np.empty(len(b)), np.empty(len(b))
    taken = _native.solve_margin(*parts, *state, value, gap, squared, float(tolerance), int(max_iter))
    return (w, b, alpha, value, gap), abs(taken), taken > 0


def steps(**given: Any) -> Any:
    """The state of a descent in mini-batches, for `run_steps`; its numbers are all zero at first (native/step.h)."""
    return _native.Steps(**given)


def run_steps(
    steps: Any,
    X: Any,
    centre: NDArray[np.float64] | None,
    parts: tuple[NDArray[np.float32], ...],
    order: NDArray[np.intp],
    batch: int,
    own: int,
    done: int,
    calm: NDArray[np.float64],
    warm: NDArray[np.float64],
    n_threads: int,
) -> float:
    """Make one step per number in `calm`; see `Descent` of methods/large_margin/descent.py. The sum of the objectives.

    `parts` are σ, o and u.
    """
    given = (*_step_rows(X, parts), order, batch, own, done, calm, warm, n_threads)
    return float(steps.run(*given[:3], centre, *given[3:]))


def evaluate_steps(
    steps: Any,
    X: Any,
    centre: NDArray[np.float64] | None,
    parts: tuple[NDArray[np.float32], ...],
    gradient: NDArray[np.float64],
    smooth: float,
) -> float:
    """The sum of the losses of all rows; its gradient by the coefficients is written into `gradient` (m + 1, q).

    If `smooth` is above zero, the corner of the hinge is rounded.
    """
    given = (*_step_rows(X, parts), gradient, smooth, threads(-1, SMALL_WORK))
    return float(steps.evaluate(*given[:3], centre, *given[3:]))


def curvature_of_steps(
    steps: Any,
    X: Any,
    centre: NDArray[np.float64] | None,
    parts: tuple[NDArray[np.float32], ...],
    damping: float,
    out: NDArray[np.float32],
) -> None:
    """Fill `out` (m + 1, m + 1) with the curvature of the losses of all rows by the coefficients (native/step.h)."""
    given = (*_step_rows(X, parts), damping, out, threads(-1, SMALL_WORK))
    steps.curvature(*given[:3], centre, *given[3:])


def gradients_of_steps(
    steps: Any,
    X: Any,
    centre: NDArray[np.float64] | None,
    parts: tuple[NDArray[np.float32], ...],
    gradients: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    smooth: float,
) -> float:
    """As `evaluate_steps`; the gradients by coefficients, vectors and map are written into `gradients`."""
    given = (*_step_rows(X, parts), *gradients, smooth, threads(-1, SMALL_WORK))
    return float(steps.gradients(*given[:3], centre, *given[3:]))


def _step_rows(X: Any, parts: tuple[NDArray[np.float32], ...]) -> tuple[Any, ...]:
    """X, the columns and starts of CSR rows, and σ, o and u, in the types that the core reads."""
    tables = (np.ascontiguousarray(part, dtype=np.float32) for part in parts)
    if not is_sparse(X):
        return np.ascontiguousarray(X), None, None, *tables
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False), *tables


def threads(n_jobs: int | None, work: float) -> int:
    """The number of threads for `work` multiplications: one if they are few, else `n_jobs` as joblib defines it.

    None means one thread, unless a `parallel_config` says otherwise; −1 means all cores, which is also the most.
    """
    if (n_jobs is not None and type(n_jobs) is not int and not _is_whole(n_jobs)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a whole number other than 0. Got {n_jobs!r}.")
    if work < SMALL_WORK or getattr(_here, "alone", False):
        return 1
    if n_jobs is not None and n_jobs > 0:
        return min(int(n_jobs), CORES)
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which calls of this thread into the core use no other threads, because others share the cores."""
    before = getattr(_here, "alone", False)
    _here.alone = True
    try:
        yield
    finally:
        _here.alone = before


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def exp2_seconds(in_float: bool, repeats: int = 200) -> float:
    """Seconds per value of the core's exponential on an array in cache, on one thread."""
    return float(_native.exp2_seconds(in_float, repeats))


def hull_rows(kernel: Kernel, X: Any, ridge: NDArray[np.float64], cache_bytes: int) -> Any:
    """Rows of H_ij = k(x_i, x_j) + 1 + ridge_i [i = j] for `hull`, cached in at most `cache_bytes`.

    The result is None if the core cannot be accurate, as in `plan`. `copy_row(i, out)` copies one row; `computed`
    counts the rows computed.
    """
    thin = is_sparse(X)
    packed = plan(kernel, X, None, None, np.ones(X.shape[0]), (), None, False, thin)
    if packed is None:
        return None
    if not thin:
        return _native.hull_rows(packed, np.ascontiguousarray(X, np.float64), None, None, ridge, cache_bytes)
    columns, starts = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return _native.hull_rows(packed, X.data, columns, starts, ridge, cache_bytes)


def hull(rows: Any, signs: NDArray[np.float64], alpha: NDArray[np.float64]) -> Any:
    """The compiled loop of `optim.hull`: moves Σ α_i y_i X_i, with X_i·X_j = H_ij, to the nearest point of the hull."""
    return _native.make_hull(rows, np.ascontiguousarray(signs), np.ascontiguousarray(alpha))


def count_byte(text: bytes, byte: bytes) -> int:
    """How often a byte occurs; three times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == ord(byte)))


def read_svmlight(
    text: bytes, first: int, widest: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], int] | None:
    """Labels, row starts, indices (from 0), values and width of whole lines of svmlight text; None if any is bad."""
    n_rows, n_entries = count_byte(text, b"\n"), count_byte(text, b":")
    labels, starts = np.empty(n_rows), np.empty(n_rows + 1, dtype=np.int64)
    indices, values = np.empty(n_entries, dtype=np.int32), np.empty(n_entries)
    n_rows, n_entries, width, is_good = _native.read_svmlight(text, first, widest, labels, starts, indices, values)
    if not is_good:
        return None
    return labels[:n_rows], starts[: n_rows + 1], indices[:n_entries], values[:n_entries], width

"""The contract of the readers: blocks of rows, with targets if the file has them.

A `Source` reads a file once. `slimsvm.data.FileRows` opens one for every pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import is_sparse
from slimsvm.data.files.stream import Stream
from slimsvm.exceptions import DataError

BLOCK_VALUES = 1 << 18  # values per block, for readers that choose the block size
BLOCK_ROWS = 1 << 16  # most rows per block
PIECE_VALUES = 1 << 15  # values of the pieces that are read in random order: so few that many fit in a window
DENSE_ABOVE = 1 / 4  # a sparse block with more of its values stored is made dense


@dataclass(frozen=True)
class Wanted:
    """The columns that the caller expects.

    names and n_features : of the model; None if there is no model yet.
    target : name or number of the target column, or name of the target array of an npz file; None to detect it.
    needs_target : whether a file without targets is an error.
    ignore : names or numbers of columns to leave out.
    header : whether the first line of a table has names; None to detect it.
    array : name of the array of an npz file that has the rows.
    zero_based : whether the indices in svmlight text start at 0.
    accepts_more_features : whether rows of svmlight text may have more features than the model, as in LIBSVM.
    advice : what to do if they have more features and may not.
    """

    names: tuple[str, ...] | None = None
    n_features: int | None = None
    target: str | None = None
    needs_target: bool = False
    ignore: tuple[str, ...] = ()
    header: bool | None = None
    array: str | None = None
    zero_based: bool = False
    accepts_more_features: bool = False
    advice: str = ""


@dataclass(frozen=True)
class Block:
    """Rows X (n, d), dense or CSR; targets (n,), numbers or text, if any; the number of the first row, from 1.

    `weights` (n,) are those of the samples; None for equal ones.
    """

    X: Any
    y: NDArray[Any] | None
    first_row: int = 1
    weights: NDArray[np.float64] | None = None

    def take(self, rows: Any) -> Block:
        """The block of some of the rows."""
        y = None if self.y is None else self.y[rows]
        return Block(self.X[rows], y, self.first_row, None if self.weights is None else self.weights[rows])


class Source(ABC):
    """A file that is read block by block, once."""

    names: tuple[str, ...] | None = None  # of the features, if the file has them
    notes: tuple[str, ...] = ()  # sentences about columns that are left out
    splits: bool = True  # whether a row has been found to end at every line end, as reading in random order needs

    def __init__(self, stream: Stream, wanted: Wanted) -> None:
        self.stream, self.wanted, self.name = stream, wanted, stream.name

    @abstractmethod
    def _parts(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """X and targets, some rows at a time."""

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """The same, in random order as far as the format allows: a compressed file can only be read in its own."""
        return self._parts()

    def blocks(self, rng: np.random.Generator | None = None) -> Iterator[Block]:
        """The rows in order, or shuffled block by block with `rng`; a file without rows is refused."""
        row = 1
        with closing(self.stream):
            for X, y in self._parts() if rng is None else self._shuffled_parts(rng):
                if not X.shape[0]:
                    continue
                if self.wanted.needs_target and y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
                    bad = row + int(np.flatnonzero(~np.isfinite(y))[0])
                    raise DataError(f"{self.name}, row {bad}: the target is missing or not finite.")
                yield Block(X, y, row)
                row += X.shape[0]
        if row == 1:
            raise DataError(f"{self.name} has no rows.")

    def require_finite(self, block: Block) -> None:
        """Refuse a block with missing or infinite numbers; the message names the first one."""
        require_finite(block, self.name, self.names)


def require_finite(block: Block, whose: str, names: tuple[str, ...] | None) -> None:
    """Refuse a block of `whose` rows with missing or infinite numbers; the message names the first one."""
    values = block.X.data if is_sparse(block.X) else block.X
    if np.isfinite(values).all():
        return
    if is_sparse(block.X):
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        row, column = int(np.searchsorted(block.X.indptr, place, side="right")) - 1, int(block.X.indices[place])
    else:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
    name = f"{names[column]!r}" if names else f"number {column + 1}"
    raise DataError(
        f"{whose}, row {block.first_row + row}: feature {name} is missing or not finite. "
        "Impute the value or drop the row."
    )


def slices(n: int, values_per_row: float, n_values: int, rng: np.random.Generator | None = None) -> Iterator[slice]:
    """Slices of n rows with about `n_values` values each, in random order with `rng`."""
    step = max(1, min(BLOCK_ROWS, int(n_values / max(1.0, values_per_row))))
    starts = np.arange(0, n, step)
    for start in starts if rng is None else rng.permutation(starts):
        yield slice(int(start), min(int(start) + step, n))


def gather(source: Source) -> tuple[Any, NDArray[Any] | None]:
    """All rows and targets of a source, finite; CSR where the file is sparse."""
    from slimsvm.arrays import narrow_indices

    blocks = []
    for block in source.blocks():
        source.require_finite(block)
        blocks.append(block)
    if any(is_sparse(block.X) for block in blocks):
        from scipy import sparse

        width = max(block.X.shape[1] for block in blocks)
        X = dense_where_full(narrow_indices(sparse.vstack([widened(block.X, width) for block in blocks], format="csr")))
    else:
        X = np.concatenate([block.X for block in blocks])
    return X, joined([block.y for block in blocks])


def joined(parts: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Targets of several blocks as one array: text if any of them is text, integers if all are whole numbers."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if any(part.dtype.kind == "U" for part in known):
        return np.concatenate([as_text(part) for part in known])
    y = np.concatenate(known)
    whole = y.dtype.kind == "f" and bool(np.isfinite(y).all()) and bool((y == np.rint(y)).all())
    return y.astype(np.int64) if whole and np.abs(y).max() < 2**53 else y


def as_text(y: NDArray[Any]) -> NDArray[Any]:
    """Targets as text; whole numbers without a decimal point."""
    if y.dtype.kind != "f":
        return y.astype(str)
    return np.array([str(int(v)) if v == np.rint(v) and abs(v) < 2**53 else repr(float(v)) for v in y])


def widened(X: Any, width: int) -> Any:
    """CSR rows with zeros for further columns."""
    from scipy import sparse

    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def dense_where_full(X: Any) -> Any:
    """A CSR block as a dense array if most of its values are stored."""
    return X.toarray() if is_full(X.nnz, X.shape) else X


def is_full(n_stored: int, shape: tuple[int, ...]) -> bool:
    """Whether rows of which so many values are stored take less time and memory as a dense array."""
    return n_stored > DENSE_ABOVE * shape[0] * shape[1]

"""Rows in blocks: every source gives all rows, again and again, in order and shuffled."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import slimsvm.data.arrays
from slimsvm.data import Rows, make_rows, read_rows
from slimsvm.data.files import base, npy, npy_format, npz, parquet, stream, tables
from slimsvm.exceptions import DataError

RNG = np.random.default_rng(0)
N, D = 1000, 4
X = RNG.normal(size=(N, D))
X[RNG.random(X.shape) < 0.4] = 0
X[:, 0] = np.arange(N)  # tells rows apart
Y = (np.arange(N) >= 700).astype(int)  # sorted by class


class Blocks:
    """A Python object whose `iter` begins anew."""

    def __iter__(self) -> Iterator[Any]:
        for a in range(0, N, 130):
            yield X[a : a + 130], Y[a : a + 130]


def text(X: Any, y: Any, line: Callable[[Any, Any], str]) -> str:
    return "".join(line(row, int(label)) for row, label in zip(X.tolist(), y, strict=True))


def csv_line(row: Any, label: int) -> str:
    return ",".join([*map(repr, row), str(label)]) + "\n"


def svmlight_line(row: Any, label: int) -> str:
    return " ".join([str(label), *(f"{i}:{v!r}" for i, v in enumerate(row, 1) if v)]) + "\n"


def from_csv(folder: Path) -> Rows:
    (folder / "rows.csv").write_text("a,b,c,d,label\n" + text(X, Y, csv_line))
    return read_rows(folder / "rows.csv")


def from_words(folder: Path) -> Rows:
    """A table with text labels, which the csv module reads."""
    lines = text(X, Y, csv_line).replace(",1\n", ",yes\n").replace(",0\n", ",no\n")
    (folder / "words.csv").write_text(lines)
    return read_rows(folder / "words.csv", target=-1)


def from_quoted_words(folder: Path) -> Rows:
    """A table whose quotes have no line ends between them, so that it can be read in any order."""
    lines = text(X, Y, csv_line).replace(",1\n", ',"yes"\n').replace(",0\n", ',"no"\n')
    (folder / "quoted.csv").write_text(lines)
    return read_rows(folder / "quoted.csv", target=-1)


def from_quotes(folder: Path) -> Rows:
    """A table with line ends between quotes, which can only be read in its own order."""
    lines = text(X, Y, csv_line).replace(",1\n", ',"y\nes"\n').replace(",0\n", ",no\n")
    (folder / "quotes.csv").write_text(lines)
    return read_rows(folder / "quotes.csv", target=-1)


def from_gzip(folder: Path) -> Rows:
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text(X, Y, csv_line).encode()))
    return read_rows(folder / "rows.csv.gz", target=-1)


def from_svmlight(folder: Path) -> Rows:
    (folder / "rows.svm").write_text(text(X, Y, svmlight_line))
    return read_rows(folder / "rows.svm")


def from_npy(folder: Path, order: Any = "C") -> Rows:
    np.save(folder / "rows.npy", np.asarray(np.column_stack([X, Y]), order=order))
    return read_rows(folder / "rows.npy", target=-1)


def from_columns(folder: Path) -> Rows:
    return from_npy(folder, "F")


def from_npz(folder: Path) -> Rows:
    np.savez(folder / "rows.npz", X=X, y=Y)
    return read_rows(folder / "rows.npz")


def from_packed_npz(folder: Path) -> Rows:
    np.savez_compressed(folder / "rows.npz", X=X, y=Y)
    return read_rows(folder / "rows.npz")


def from_parquet(folder: Path) -> Rows:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pandas.DataFrame(X, columns=list("abcd")).assign(label=Y).to_parquet(folder / "rows.parquet", row_group_size=170)
    return read_rows(folder / "rows.parquet", target="label")


def from_memory_map(folder: Path) -> Rows:
    np.save(folder / "X.npy", X)
    return make_rows(np.load(folder / "X.npy", mmap_mode="r"), Y)


SOURCES: dict[str, Callable[[Path], Rows]] = {
    "array": lambda _: make_rows(X, Y),
    "csr": lambda _: make_rows(sparse.csr_array(X), Y),
    "memory map": from_memory_map,
    "iterable": lambda _: make_rows(Blocks()),
    "csv": from_csv,
    "words": from_words,
    "quoted words": from_quoted_words,
    "quotes": from_quotes,
    "gzip": from_gzip,
    "svmlight": from_svmlight,
    "npy": from_npy,
    "columns": from_columns,
    "npz": from_npz,
    "packed npz": from_packed_npz,
    "parquet": from_parquet,
}
IN_ORDER = ("iterable", "quotes", "gzip", "packed npz")  # cannot be read in another order


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (base, parquet, tables, slimsvm.data.arrays, npy, npy_format, npz):
        monkeypatch.setattr(module, "BLOCK_VALUES", 800)
        monkeypatch.setattr(module, "PIECE_VALUES", 100, raising=False)
    read = stream.Stream.read
    monkeypatch.setattr(stream.Stream, "read", lambda self, n=5000: read(self, min(n, 5000)))
    monkeypatch.setattr(stream, "TEXT_PIECE", 777)


def together(blocks: Any) -> tuple[Any, Any]:
    blocks = list(blocks)
    assert len(blocks) > 3
    parts = [block.X.toarray() if sparse.issparse(block.X) else block.X for block in blocks]
    labels = [np.isin(block.y.astype(str), ["1", "1.0", "yes", "y\nes"]).astype(int) for block in blocks]
    return np.concatenate(parts), np.concatenate(labels)


@pytest.mark.parametrize("source", SOURCES)
def test_every_iteration_begins_anew_and_gives_all_rows(tmp_path: Path, source: str) -> None:
    rows = SOURCES[source](tmp_path).with_targets()
    for _ in range(2):
        found, labels = together(rows)
        assert np.array_equal(found, X)
        assert np.array_equal(labels, Y)
    first = [block.first_row for block in rows]
    assert first[0] == 1
    assert first == sorted(first)


@pytest.mark.parametrize("source", SOURCES)
def test_a_shuffle_gives_all_rows_and_mixes_sorted_classes(tmp_path: Path, source: str) -> None:
    rows = SOURCES[source](tmp_path).with_targets()
    list(rows)  # the first pass
    shuffled, labels = together(rows.shuffled(np.random.default_rng(3)))
    assert np.array_equal(shuffled[np.argsort(shuffled[:, 0])], X)
    assert np.array_equal(labels, shuffled[:, 0] >= 700)
    again, _ = together(rows.shuffled(np.random.default_rng(3)))
    assert np.array_equal(again, shuffled)
    if source in IN_ORDER:
        assert np.array_equal(shuffled, X)
        return
    other, _ = together(rows.shuffled(np.random.default_rng(4)))
    assert not np.array_equal(other, shuffled)
    assert 0 < labels[: N // 2].mean() < 1  # in the file, all of the first half is of one class


def test_lines_longer_than_a_piece_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    for size in (1, 2, 3, 7, 50):
        monkeypatch.setattr(stream, "TEXT_PIECE", size)
        for ending in ("", "\n", "\n\n"):
            path.write_text("a,b\n1,2\n\n3,4\n55555555555555555,6\n7,8" + ending)
            rows = read_rows(path)
            found = np.concatenate([block.X for block in rows.shuffled(np.random.default_rng(size))])
            assert sorted(found[:, 1].tolist()) == [2, 4, 6, 8]


def test_a_generator_is_refused() -> None:
    with pytest.raises(DataError, match=r"X is a generator, which gives its blocks only once"):
        make_rows(block for block in Blocks())


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], r"X has no blocks"),
        ([(X, Y), (X[:, 1:], Y)], r"Block 1 of X must have 4 features, as the first one has\. Got 3"),
        ([(X, Y, None, None)], r"must be X, \(X, y\) or \(X, y, sample_weight\)\. Got 4 parts"),
        ([(X, Y[1:])], r"y must have 1000 values, one for each row of X\. Got shape \(999,\)"),
        ([(X[0], Y)], r"must be numbers in rows and columns\. Got float64 of shape \(4,\)"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(blocks: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(make_rows(blocks))


def test_missing_targets_are_refused(tmp_path: Path) -> None:
    for rows in (make_rows(X), make_rows([X])):
        with pytest.raises(DataError, match="has no targets"):
            rows.with_targets()
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(DataError, match=r"which column is the target\? It has 4 columns and no header"):
        read_rows(tmp_path / "rows.npy").with_targets()


def test_missing_numbers_are_refused_with_their_place(tmp_path: Path) -> None:
    bad = X.copy()
    bad[523, 2] = np.nan
    with pytest.raises(DataError, match="X, row 524: feature number 3 is missing"):
        list(make_rows(bad, Y))


def test_a_pipe_cannot_be_read_again(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(end, b"1,2\n3,4\n")
    with pytest.raises(DataError, match="can be read only once"):
        read_rows(tmp_path / "pipe")
    os.close(end)

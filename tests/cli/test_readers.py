"""Data files: every format gives the numbers that were written, in blocks of any size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import svmlight, table
from scipy import sparse

from slimsvm.data.files import Wanted, gather, open_data, stream, tables
from slimsvm.data.files import base as readers_base
from slimsvm.exceptions import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(57, 5)) * 10.0 ** RNG.integers(-30, 30, size=(57, 5))
X[RNG.random(X.shape) < 0.3] = 0
Y = RNG.integers(0, 3, 57)
NAMES = ("a", "b", "c", "d", "e")
LABELLED = Wanted(needs_target=True)


def read(path: Path | str, wanted: Wanted = LABELLED, format: str | None = None) -> tuple[Any, Any]:
    rows, y = gather(open_data(str(path), wanted, format))
    return (rows.toarray() if sparse.issparse(rows) else rows), y


@pytest.fixture(params=[7, 64, 1 << 20])
def chunks(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that end in the middle of lines and of numbers."""
    size = request.param
    read = stream.Stream.read
    monkeypatch.setattr(stream.Stream, "read", lambda self, n=size: read(self, min(n, size)))
    monkeypatch.setattr(tables, "BLOCK_VALUES", size)
    monkeypatch.setattr(readers_base, "BLOCK_VALUES", size)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("comma", [",", ";", "\t"])
def test_a_table_of_numbers_is_read_exactly(tmp_path: Path, comma: str) -> None:
    path = table(tmp_path / "rows.csv", X, Y, NAMES, comma=comma)
    rows, y = read(path)
    assert np.array_equal(rows, X)
    assert np.array_equal(y, Y)
    assert y.dtype == np.int64


@pytest.mark.usefixtures("chunks")
def test_a_table_with_quotes_blank_lines_and_text_labels(tmp_path: Path) -> None:
    text = 'a,"b, too",label\r\n1,2,"one\nline, two"\r\n\r\n3,4.5,plain\r\n'
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    source = open_data(str(path), LABELLED)
    rows, y = gather(source)
    assert source.names == ("a", "b, too")
    assert np.array_equal(rows, [[1, 2], [3, 4.5]])
    assert y is not None
    assert y.tolist() == ["one\nline, two", "plain"]


@pytest.mark.usefixtures("chunks")
def test_svmlight_text_is_read_exactly(tmp_path: Path) -> None:
    path = svmlight(tmp_path / "rows", X, Y)
    path.write_text("# a comment\n\n" + path.read_text().replace(" 1:", " qid:3 1:") + "2 # no features\n")
    rows, y = read(path)
    assert np.array_equal(rows, np.vstack([X, np.zeros(5)]))
    assert np.array_equal(y, [*Y, 2])


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read_exactly(tmp_path: Path, order: Any) -> None:
    np.savez_compressed(tmp_path / "rows.npz", X=np.asarray(X, order=order), y=Y)
    rows, y = read(tmp_path / "rows.npz")
    assert np.array_equal(rows, X)
    assert np.array_equal(y, Y)
    np.save(tmp_path / "rows.npy", np.asarray(np.column_stack([Y, X]), order=order))
    rows, y = read(tmp_path / "rows.npy", Wanted(needs_target=True, target="0"))
    assert np.array_equal(rows, X)
    assert np.array_equal(y, Y)


def test_text_labels_and_float32_of_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", rows=X.astype(np.float32), kind=np.array(["no", "yes", "so"])[Y])
    rows, y = read(tmp_path / "rows.npz", Wanted(needs_target=True, array="rows", target="kind"))
    assert rows.dtype == np.float32
    assert y.tolist() == [("no", "yes", "so")[i] for i in Y]


def test_scipys_sparse_matrices(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "rows.npz", sparse.csr_array(X))
    assert np.array_equal(read(tmp_path / "rows.npz", Wanted())[0], X)


def test_parquet(tmp_path: Path) -> None:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=NAMES).assign(label=np.array(["no", "yes", "so"])[Y])
    frame.to_parquet(tmp_path / "rows.parquet")
    rows, y = read(tmp_path / "rows.parquet")
    assert np.array_equal(rows, X)
    assert y.tolist() == frame["label"].tolist()
    frame["b"] = "text"
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"column 'b' must hold numbers"):
        read(tmp_path / "rows.parquet")


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_text(tmp_path: Path, compress: Any) -> None:
    content = table(tmp_path / "rows.csv", X, Y, NAMES).read_bytes()
    (tmp_path / "rows.csv.z").write_bytes(compress(content))
    assert np.array_equal(read(tmp_path / "rows.csv.z")[0], X)
    (tmp_path / "cut.csv.z").write_bytes(compress(content)[:-20])
    with pytest.raises(DataError, match=r"is damaged: it cannot be decompressed"):
        read(tmp_path / "cut.csv.z")


@pytest.mark.parametrize(
    ("text", "header", "expected"),
    [
        ("1,2\n3,4\n", None, 2),
        ("a,b\n3,4\n", None, 1),
        ("5,flower\n6,flower\n", None, 2),
        ("width,kind\n5,flower\n", None, 1),
        ("1,2\n3,4\n", True, 1),
    ],
)
def test_headers_are_found(tmp_path: Path, text: str, header: bool | None, expected: int) -> None:
    (tmp_path / "rows.csv").write_text(text)
    target = "1" if "flower" in text else None
    assert len(read(tmp_path / "rows.csv", Wanted(header=header, target=target))[0]) == expected


def test_numbers_as_names_are_known_by_the_model(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1,0\n3,4\n")
    rows, _ = read(tmp_path / "rows.csv", Wanted(names=("0", "1"), n_features=2))
    assert rows.tolist() == [[4, 3]]


def test_columns_come_in_the_models_order_and_others_are_named(tmp_path: Path) -> None:
    path = table(tmp_path / "rows.csv", X, Y, NAMES)
    source = open_data(str(path), Wanted(names=("d", "b"), n_features=2, ignore=("a",)))
    rows, y = gather(source)
    assert np.array_equal(rows, X[:, [3, 1]])
    assert y is not None  # a column called label
    assert source.notes == (f"{path}: columns that the model does not know are left out: 'c', 'e'.",)


def test_the_form_is_found_without_a_name(tmp_path: Path) -> None:
    for n, (name, kind) in enumerate([("rows.csv", ","), ("rows.tsv", "\t")]):
        content = table(tmp_path / name, X, Y, NAMES, comma=kind).read_bytes()
        (tmp_path / f"file{n}").write_bytes(content)
        assert np.array_equal(read(tmp_path / f"file{n}")[0], X)


BAD_TABLES = {
    "a,b\n1,2\n3\n": r"line 3: 2 fields are expected, as in the first line\. Got 1\.",
    "a,b\n1,2\n3,four\n": r"line 3: 'four' in column 'b' is not a number\.",
    "a,b\n1,2\n3,\n": r"row 2: feature 'b' is missing or not finite\. Impute the value or drop the row",
    "a,b\n1,2\n3,inf\n": r"row 2: feature 'b' is missing or not finite",
    "a,b\n1,2\n3,1_000\n": r"'1_000' in column 'b' is not a number",
    "a,a\n1,2\n": r"has more than one column named 'a'\.",
    "a,b\n": r"has no rows\.",
    "": r"is empty\.",
    '1,2\n3,"4\n': r"line 2: unexpected end of data",
}


@pytest.mark.parametrize("text", BAD_TABLES)
def test_bad_tables(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=BAD_TABLES[text]):
        read(path, Wanted())


BAD_SVMLIGHT = {
    "1 1:2\n1 2\n": r"line 2: '2' is not index:value\.",
    "1 1:2\n1 2:x\n": r"line 2: '2:x' is not index:value\.",
    "1 1:2\n1:2 2:3\n": r"line 2: the line starts with '1:2', without a target before the features",
    "yes 1:2\n": r"line 1: the target 'yes' is not a number",
    "1 0:2\n": r"line 1: indices start at 1 in svmlight text\. Add the argument zero_based=True",
    "1 2:2 2:3\n": r"line 1: indices must increase within a line\. Got 2 after 2\.",
    "1 1:1 4:3\n": r"line 1: it has feature 4; the model takes 3 features\.",
    "1 1:nan\n": r"row 1: feature number 1 is missing or not finite",
    "1 -1:1 2:3\n": r"line 1: '-1:1' is not index:value\.",
}


@pytest.mark.parametrize("text", BAD_SVMLIGHT)
def test_bad_svmlight(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.svm"
    path.write_text(text)
    with pytest.raises(DataError, match=BAD_SVMLIGHT[text]):
        read(path, Wanted(n_features=3))


def test_zero_based_indices(tmp_path: Path) -> None:
    (tmp_path / "rows.svm").write_text("1 0:2 2:3\n")
    assert read(tmp_path / "rows.svm", Wanted(zero_based=True))[0].tolist() == [[2, 0, 3]]


def test_bad_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    cut = (tmp_path / "rows.npy").read_bytes()[:-1]
    (tmp_path / "cut.npy").write_bytes(cut)
    with pytest.raises(DataError, match=r"it ends before its last row"):
        read(tmp_path / "cut.npy", Wanted())
    np.save(tmp_path / "objects.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(DataError, match=r"must be an array of numbers"):
        read(tmp_path / "objects.npy", Wanted())
    np.savez(tmp_path / "rows.npz", A=X)
    with pytest.raises(DataError, match=r"has no array 'X'\. It has 'A'\. Name one with the argument array\."):
        read(tmp_path / "rows.npz", Wanted())


def test_a_row_that_waits_for_the_next_is_not_kept_back() -> None:
    """A pipe that has said one line is answered before it says the next."""

    class Pipe(io.RawIOBase):
        said = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            assert self.said < 2, "the second block was asked for before the first was given"
            line = b"1,2\n"
            buffer[: len(line)] = line
            self.said += 1
            return len(line)

    source = tables.TableSource(stream.Stream("pipe", io.BufferedReader(Pipe()), None), Wanted(), None)  # type: ignore[type-var]
    block = next(iter(source.blocks()))
    assert block.X.tolist() == [[1, 2]]

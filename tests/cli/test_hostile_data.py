"""Data files that claim more than they have, or unpack to many times their size: exit code 3 within a memory limit."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import COMMAND, ENVIRONMENT, table
from scipy import sparse

import slimsvm
from oracles.scripts import run_script
from slimsvm import storage
from slimsvm._files import write_whole
from slimsvm.answers import Classes
from slimsvm.data.files import Wanted, gather, open_data
from slimsvm.exceptions import FormatError
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and RLIMIT_AS")

HERE = Path(__file__).parent
FAR = 10**9
ZEROS = bytes(1 << 20)


def limited(folder: Path, commands: list[list[str]], warm_up: list[list[str]]) -> list[tuple[int, str]]:
    """Exit code and message of each command, under a memory limit."""
    ended = run_script(HERE / "limited.py", [str(folder), json.dumps(commands), json.dumps(warm_up)], {})
    assert ended.returncode == 0, ended.stderr
    return [(int(code), message) for code, message in map(json.loads, ended.stdout.splitlines())]


def npy_header(shape: tuple[int, ...], dtype: str = "<f8", fortran: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"shape": shape, "fortran_order": fortran, "descr": dtype})
    return file.getvalue()


def deflated(path: Path, **members: Iterator[bytes]) -> Path:
    """A compressed npz file whose members are written piece by piece."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, pieces in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
    return path


def zeros(header: bytes, n_bytes: int) -> Iterator[bytes]:
    yield header
    for _ in range(n_bytes >> 20):
        yield ZEROS


def array(values: Any) -> Iterator[bytes]:
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    yield file.getvalue()


def sparse_file(path: Path, format: str, shape: tuple[int, int], **parts: Any) -> Path:
    return deflated(
        path, format=array(format.encode()), shape=array(shape), **{k: array(np.array(v)) for k, v in parts.items()}
    )


def endless_line(path: Path, unit: bytes) -> Path:
    path.write_bytes(100 * gzip.compress(unit * ((1 << 20) // len(unit))))  # parts of a gzip file may follow each other
    return path


def make_files(folder: Path) -> list[str]:
    """Hostile files for a model of two features."""
    one = [1.0]
    (folder / "wide.npy").write_bytes(npy_header((1, 10**15)) + bytes(64))
    (folder / "long.npy").write_bytes(npy_header((10**15, 2)) + bytes(64))
    (folder / "columns.npy").write_bytes(npy_header((10**9, 2), fortran=True) + bytes(64))
    (folder / "negative.npy").write_bytes(npy_header((2, 2)).replace(b"(2, 2)", b"(-2,2)") + bytes(64))
    (folder / "nothing.npy").write_bytes(npy_header((10**15, 2), "|S0"))
    (folder / "header.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 64)
    (folder / "code.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + b"(" * 117 + b"\n")
    (folder / "packed.npy.gz").write_bytes(gzip.compress(npy_header((1 << 23, 2), fortran=True) + bytes(1 << 27), 1))
    deflated(folder / "fortran.npz", X=zeros(npy_header((1 << 23, 2), fortran=True), 1 << 27))
    deflated(folder / "wide.npz", X=zeros(npy_header((1, 1 << 24)), 1 << 27))
    deflated(folder / "claim.npz", X=zeros(npy_header((10**12, 2)), 0))
    for format in ("csr", "csc"):
        good = [0, 1] + [1] * (2 if format == "csr" else 1)
        shape = (3, 2)
        sparse_file(folder / f"{format}_far.npz", format, shape, indptr=good, indices=[FAR], data=one)
        sparse_file(folder / f"{format}_low.npz", format, shape, indptr=good, indices=[-FAR], data=one)
        sparse_file(folder / f"{format}_end.npz", format, shape, indptr=[*good[:-1], FAR], indices=[0], data=one)
        sparse_file(folder / f"{format}_cut.npz", format, shape, indptr=[0], indices=[0], data=one)
        sparse_file(folder / f"{format}_real.npz", format, shape, indptr=good, indices=[0.5], data=one)
        sparse_file(folder / f"{format}_text.npz", format, shape, indptr=good, indices=[0], data=["a"])
    rows = (1 << 16) + 2
    cut = np.append(np.arange(rows), FAR)
    sparse_file(folder / "blocks.npz", "csr", (rows, 2), indptr=cut, indices=np.zeros(rows, int), data=np.ones(rows))
    sparse_file(folder / "csc_rows.npz", "csc", (2 * FAR, 2), indptr=[0, 1, 1], indices=[0], data=one)
    sparse_file(folder / "coo_rows.npz", "coo", (2 * FAR, 2), row=[0], col=[0], data=one)
    sparse_file(folder / "coo_far.npz", "coo", (3, 2), row=[FAR], col=[0], data=one)
    sparse_file(folder / "strange.npz", "xyz", (3, 2), row=[0], col=[0], data=one)
    for name, letters in {
        "bytes": np.array(b"cs\xe3"),
        "points": np.array([1 << 30], "<u4").view("<U1")[0:1].reshape(()),
    }.items():
        deflated(folder / f"format_{name}.npz", format=array(letters), shape=array((3, 2)), data=array(one))
    (folder / "quotes.csv.gz").write_bytes(gzip.compress(b'""\n'))
    deflated(
        folder / "sparse_bomb.npz",
        format=array(b"coo"),
        shape=array((3, 2)),
        row=zeros(npy_header((1 << 24,), "<i8"), 1 << 27),
        col=array([0]),
        data=array(one),
    )
    endless_line(folder / "line.csv.gz", b"1,")
    endless_line(folder / "line.svm.gz", b"1 ")
    endless_line(folder / "words.csv.gz", b"word,")
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".npy", ".npz", ".gz"))


def test_hostile_files_are_refused_within_the_memory_limit(moons_files: Any, tmp_path: Path) -> None:
    names = make_files(tmp_path)
    assert len(names) > 30
    table(tmp_path / "rows.csv", moons_files[0])
    np.save(tmp_path / "ok", moons_files[0])
    sparse.save_npz(tmp_path / "ok_csc.npz", sparse.csc_array(moons_files[0]))
    warm_up = [["predict", name, "moons.slim"] for name in ("moons.txt", "rows.csv", "ok.npy", "ok_csc.npz")]
    commands = [*warm_up, *(["predict", name, "moons.slim"] for name in names)]
    results = limited(tmp_path, commands, [*warm_up, *(["inspect", name] for name in names[:1])])
    assert [code for code, _ in results[:4]] == [0] * 4, results[:4]
    wrong = {name: result for name, result in zip(names, results[4:], strict=True) if result[0] != 3}
    assert wrong == {}


def test_highly_compressed_rows_are_read_within_the_memory_limit(moons_files: Any, tmp_path: Path) -> None:
    """Honest files: rows in C order are read block by block, and may unpack to any size."""
    deflated(tmp_path / "rows.npz", X=zeros(npy_header((1 << 19, 2), "<f4"), 1 << 22))
    (tmp_path / "rows.npy.gz").write_bytes(gzip.compress(npy_header((1 << 19, 2), "|i1") + bytes(1 << 20)))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"0,0\n" * (1 << 19)))
    (tmp_path / "far.svm").write_text("1 1:1 2147483647:1\n" * 1000)
    names = ["rows.npz", "rows.npy.gz", "rows.csv.gz", "far.svm"]
    warm_up = [["predict", "moons.txt", "moons.slim"]]
    results = limited(tmp_path, [["predict", name, "moons.slim", "out.txt"] for name in names], warm_up)
    assert [code for code, _ in results] == [0] * 4, results


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_files_of_every_format_are_read(tmp_path: Path, format: str) -> None:
    X = np.diag([1.0, 2.0, 3.0, 4.0])
    sparse.save_npz(tmp_path / "rows.npz", sparse.csr_array(X).asformat(format))
    rows, y = gather(open_data(str(tmp_path / "rows.npz"), Wanted(n_features=4)))
    assert y is None
    np.testing.assert_array_equal(rows.toarray() if sparse.issparse(rows) else rows, X)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("1.5,2O\n3,4\n5,6\n", "'2O' in column 1"),
        ("l.5,2\n3,4\n", "'l.5' in column 0"),
        ("x,1\n2,3\n", "'x' in column 0"),
    ],
)
def test_a_misprint_in_the_first_line_is_no_header(
    moons_files: Any, command: Any, tmp_path: Path, text: str, cell: str
) -> None:
    (tmp_path / "rows.csv").write_text(text)
    ended = command("predict", "rows.csv", "moons.slim")
    assert (ended.code, ended.out) == (3, "")
    assert f"rows.csv, line 1: {cell} is not a number" in ended.err
    ended = command("predict", "rows.csv", "moons.slim", "--header")
    assert (ended.code, len(ended.lines)) == (0, text.count("\n") - 1)


def test_a_target_of_text_needs_no_header(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1,2,yes\n3,4,\n5,6,no\n")
    X, y = gather(open_data(str(tmp_path / "rows.csv"), Wanted(target="2")))
    assert (X.shape, y.tolist()) == ((3, 2), ["yes", "", "no"])


def test_a_pipe_with_a_name_is_read_like_any_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_text("1,2\n3,4\n")).start()
    assert gather(open_data(str(path), Wanted()))[0].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "line",
    [
        "predict moons.txt moons.slim moons.txt",
        "predict moons.txt moons.slim ./moons.slim",
        "train moons.txt moons.txt",
        "compress moons.slim moons.slim --n-vectors 2",
        "compress moons.slim moons.txt --data moons.txt --n-vectors 2",
        "export moons.slim libsvm moons.slim",
    ],
)
def test_an_input_is_not_overwritten(moons_files: Any, command: Any, tmp_path: Path, line: str) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ended = command(*line.split())
    assert ended.code == 2
    assert "is an input of the command, and would be overwritten. Name another output." in ended.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_model_in_a_pipe_is_refused(moons_files: Any, command: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = command("predict", "moons.txt", "pipe")
    assert (ended.code, "pipe is a pipe. A model must be a regular file" in ended.err) == (4, True)
    with pytest.raises(FormatError, match="this is not a regular file"):
        slimsvm.load(tmp_path / "pipe")


@pytest.mark.parametrize("arguments", [["predict", "moons.txt", "moons.slim", "/dev/full"], ["inspect", "moons.slim"]])
def test_a_full_disk_ends_with_the_code_of_output(moons_files: Any, tmp_path: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, env=ENVIRONMENT, check=False
        )
    assert (ended.returncode, b"no space left on device" in ended.stderr) == (6, True), ended.stderr


@pytest.mark.parametrize("bad", ["a\nb", "\x1b[31mred", "\ud800x", "\x9b2J"])
def test_labels_cannot_control_the_terminal(command: Any, tmp_path: Path, bad: str) -> None:
    X = np.arange(8.0).reshape(4, 2)
    head = LinearHead(np.array([[1.0], [-1.0]]), [0.0])
    labels = np.array(sorted(["good", bad]), dtype=object)
    machine = KernelMachine(Rbf(0.5), X[:2], head, Classes(labels), feature_names=("x", bad))
    storage.write(machine, tmp_path / "m.slim")
    table(tmp_path / "rows.csv", X, ["good", "other\x1bX", "good", "good"], ("x", "y"))
    shown = [
        command("predict", "rows.csv", "m.slim", "--no-header", "--ignore", "2"),
        command("predict", "rows.csv", "m.slim"),
        command("predict", "rows.csv", "m.slim", "--json"),
        command("evaluate", "rows.csv", "m.slim", "--target", "label", "--no-header"),
        command("inspect", "m.slim"),
        command("inspect", "m.slim", "--json"),
    ]
    for ended in shown:
        assert ended.code in (0, 3), ended.err
        assert not set(ended.out + ended.err) & {"\x1b", "\x9b", "\ud800"}
    (tmp_path / "plain.csv").write_text("0,1\n2,3\n4,5\n")
    assert len(command("predict", "plain.csv", "m.slim").lines) == 3
    answers = [json.loads(line)["prediction"] for line in command("predict", "plain.csv", "m.slim", "--json").lines]
    assert set(answers) == {"good", bad}


WRITING = [
    ["predict", "moons.txt", "moons.slim", "out"],
    ["train", "moons.txt", "out", "--method", "svc"],
    ["compress", "moons.slim", "out", "--n-vectors", "2"],
    ["export", "moons.slim", "libsvm", "out"],
    ["export", "moons.slim", "c", "out"],
]


@pytest.mark.parametrize("arguments", WRITING, ids=" ".join)
def test_a_file_that_does_not_fit_ends_with_the_code_of_output(
    moons_files: Any, command: Any, tmp_path: Path, arguments: list[str]
) -> None:
    """A limit on the size of files is met like a full disk: what was there stays, and nothing is left beside it."""
    (tmp_path / "out").write_bytes(b"old")
    before = sorted(path.name for path in tmp_path.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        ended = command(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (ended.code, "file too large" in ended.err) == (6, True), ended
    assert (tmp_path / "out").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


KILLED = """
import os, sys
from slimsvm._files import whole_file
if sys.argv[2] == "named":
    os.replace = lambda *args, **kwargs: os.kill(os.getpid(), 9)
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    if sys.argv[2] == "written":
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("moment", ["written", "named"])
def test_a_killed_write_leaves_nothing_incomplete(tmp_path: Path, moment: str) -> None:
    """A complete file under a second name, if the kill comes before it replaces the old one, goes at the next write."""
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "script.py").write_text(KILLED)
    for name in ("old", "new"):
        run_script(tmp_path / "script.py", [str(tmp_path / name), moment], {})
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".py"}
    assert contents.pop("old") == b"old"
    assert sorted(contents.values()) == ([] if moment == "written" else [b"half", b"half"])
    assert moment == "written" or contents.pop("new") == b"half"  # it replaces nothing, so it has its name at once
    write_whole(tmp_path / "old", b"next")
    assert {path.name for path in tmp_path.iterdir()} - {"new", "script.py"} == {"old"}
    assert (tmp_path / "old").read_bytes() == b"next"


def test_writers_of_one_file_leave_one_of_their_contents(tmp_path: Path) -> None:
    contents = [bytes([65 + i]) * 5000 for i in range(4)]
    (tmp_path / "file").write_bytes(contents[0])

    def work(content: bytes) -> None:
        for _ in range(20):
            write_whole(tmp_path / "file", content)
            assert (tmp_path / "file").read_bytes() in contents

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, contents))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"directory|exists"):
        write_whole(tmp_path / "folder", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]

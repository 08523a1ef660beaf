"""Damaged and hostile LIBSVM files: FormatError with line and reason, or a valid machine; bounded time and memory."""

from __future__ import annotations

import re
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from test_import_libsvm import BINARY, ONE_CLASS, written

from oracles.mutations import mutated_text
from slimsvm.exceptions import FormatError
from slimsvm.importers import import_model
from slimsvm.machine import KernelMachine

THREE_CLASSES = """svm_type nu_svc
kernel_type polynomial
degree 3
gamma 0.25
coef0 1
nr_class 3
total_sv 4
rho 0.5 -0.25 1.5
label 3 -1 2
probA -1.5 -2 -1
probB 0.1 0.2 -0.3
nr_sv 1 1 2
SV
0.5 1 1:0.5 2:-1 4:2
-0.5 1 2:1.5
0.25 -1 1:1 3:1
-1 -0.5 4:-0.75
"""

# What is changed in BINARY, the line that the message names, and a word of the reason.
DAMAGED = [
    ("svm_type c_svc", "svm_type c_svm", 1, "svm_type"),
    ("svm_type c_svc", "svm_type", 1, "svm_type"),
    ("svm_type c_svc\n", "", 8, "without svm_type"),
    ("svm_type", "svm_typo", 1, "not a key"),
    ("svm_type", "\xff\xfe\x00", 1, "not a key"),
    ("kernel_type rbf", "kernel_type precomputed", 2, "the file does not contain the kernel"),
    ("kernel_type rbf", "kernel_type rbf linear", 2, "kernel_type"),
    ("gamma 0.5", "gamma -0.5", 2, "gamma"),
    ("gamma 0.5", "gamma nan", 3, "finite"),
    ("gamma 0.5", "gamma inf", 3, "finite"),
    ("gamma 0.5", "gamma 1e999", 3, "finite"),
    ("gamma 0.5", "gamma 1_0", 3, "finite"),
    ("gamma 0.5", "gamma 0x1p3", 3, "finite"),
    ("gamma 0.5", "gamma " + "1" * 1000, 3, "finite"),
    ("gamma 0.5", "gamma", 3, "needs a number"),
    ("gamma 0.5", "gamma 1 2", 3, "followed by too many values"),
    ("gamma 0.5\n", "", 8, "without gamma"),
    ("gamma 0.5", "gamma 0.5\ngamma 0.5", 4, "given before, in line 3"),
    ("nr_class 2", "nr_class 1", 4, "at least 2"),
    ("nr_class 2", "nr_class -3", 4, "at least 2"),
    ("nr_class 2", "nr_class 2.0", 4, "not an integer"),
    ("nr_class 2", "nr_class 3", 10, "needs 2 coefficients"),
    ("nr_class 2", "nr_class 999999999999999999", 10, "coefficients"),
    ("nr_class 2", "nr_class 9999999999999999999", 4, "not an integer"),
    ("total_sv 3", "total_sv 4", 12, "ends after 3 vectors of 4"),
    ("total_sv 3", "total_sv 999999999999999999", 12, "ends after 3 vectors"),
    ("total_sv 3", "total_sv 2", 12, "more than 2"),
    ("total_sv 3", "total_sv -1", 5, "at least 0"),
    ("rho 0.25", "rho 0.25 1", 6, "1 numbers"),
    ("rho 0.25", "rho", 6, "1 numbers"),
    ("label 1 -1", "label 1 1", 7, "distinct"),
    ("label 1 -1", "label 1", 7, "2 numbers"),
    ("label 1 -1", "label 1 -1 2", 7, "2 numbers"),
    ("label 1 -1", "label 1 a", 7, "not an integer"),
    ("label 1 -1\n", "", 8, "without label"),
    ("nr_sv 2 1", "nr_sv 2 2", 8, "sum to total_sv, 3"),
    ("nr_sv 2 1", "nr_sv 4 -1", 8, "sum to total_sv, 3"),
    ("nr_sv 2 1\n", "", 8, "without nr_sv"),
    ("nr_sv 2 1", "nr_sv 2 1\nprobA 1", 9, "both probA and probB, or neither"),
    ("nr_sv 2 1", "nr_sv 2 1\nprobA 1\nprobB 1 2", 10, "1 numbers"),
    ("SV\n0.5", "SV 7\n0.5", 9, "followed by too many values"),
    ("SV\n0.5", "0.5", 9, "not a key"),
    ("0.25 2:0.5", "", 11, "needs 1 coefficients"),
    ("0.25 2:0.5", "0.25 2", 11, "finite"),
    ("0.25 2:0.5", "0.25 2:", 11, "finite"),
    ("0.25 2:0.5", "0.25 :5", 11, "not an integer"),
    ("0.25 2:0.5", "0.25 2:0.5:1", 11, "finite"),
    ("0.25 2:0.5", "0.25 0:0.5", 11, "1 to 2147483646"),
    ("0.25 2:0.5", "0.25 -1:0.5", 11, "1 to 2147483646"),
    ("0.25 2:0.5", "0.25 2147483647:0.5", 11, "1 to 2147483646"),
    ("0.25 2:0.5", "0.25 99999999999999999999:0.5", 11, "not an integer"),
    ("0.25 2:0.5", "0.25 2:0.5 2:1", 11, "must be increasing"),
    ("0.25 2:0.5", "0.25 3:0.5 2:1", 11, "must be increasing"),
    ("0.25 2:0.5", "2:0.5", 11, "needs 1 coefficients"),
    ("2:1e-1\n", "2:1e-1", 12, "cut off"),
    ("2:1e-1\n", "2:1e-1\n\n", 13, "more than 3"),
]


@pytest.mark.parametrize(("old", "new", "line", "reason"), DAMAGED, ids=lambda part: repr(part)[:30])
def test_line_and_reason(old: str, new: str, line: int, reason: str, tmp_path: Path) -> None:
    assert BINARY.count(old) == 1
    path = written(tmp_path, BINARY.replace(old, new))
    with pytest.raises(FormatError, match=rf"{re.escape(str(path))}, line {line}: .*{re.escape(reason)}"):
        import_model(path)


@pytest.mark.parametrize("text", ["", "\n", "SV\n", "SV", "\0" * 50, "x" * 100_000, "svm_type c_svc\n" * 3])
def test_no_model_at_all(text: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"line [0-9]+: "):
        import_model(written(tmp_path, text))


def test_classes_of_regression(tmp_path: Path) -> None:
    text = ONE_CLASS.replace("nr_class 2", "nr_class 3").replace("1 2:3", "1 1 2:3")
    with pytest.raises(FormatError, match="nr_class of one_class must be 2"):
        import_model(written(tmp_path, text))


@pytest.mark.parametrize("text", [BINARY, THREE_CLASSES], ids=["two classes", "three classes"])
def test_every_truncation_is_noticed(text: str, tmp_path: Path) -> None:
    assert isinstance(import_model(written(tmp_path, text)).machine, KernelMachine)
    for end in range(len(text)):
        with pytest.raises(FormatError):
            import_model(written(tmp_path, text[:end]))


@pytest.mark.parametrize("text", [BINARY, THREE_CLASSES], ids=["two classes", "three classes"])
def test_mutations(text: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(20)
    path = tmp_path / "model"
    valid = 0
    for _ in range(500):
        data = mutated_text(text.encode(), rng)
        path.write_bytes(data)
        start = time.process_time()
        try:
            machine = import_model(path).machine
        except FormatError as error:
            assert re.search(r"line [0-9]+: .", str(error))  # noqa: PT017, an error is one of two right answers
            continue
        finally:
            assert time.process_time() - start < 1.0
        valid += 1
        assert machine.n_vectors <= len(data)
        assert sparse.issparse(machine.points) == (machine.n_features > 1000)
        with np.errstate(all="ignore"):  # a kernel of values of 1e308 may overflow
            assert machine.predict(sparse.csr_array((2, machine.n_features))).shape == (2,)
    assert 0 < valid < 500


KINDS = (
    "many numbers in the header",
    "one endless vector",
    "one endless token",
    "many empty vectors",
    "thin vectors",
    "many classes",
    "many lines after the end",
    "a wide vector",
)


def hostile(kind: str, n: int) -> str:
    """A file of about 10 n bytes that means ill."""

    def head(vectors: int) -> str:
        text = BINARY.replace("total_sv 3", f"total_sv {vectors}")
        return text.replace("nr_sv 2 1", f"nr_sv {vectors // 2} {vectors // 2}").split("0.5 1:1")[0]

    return {
        "many numbers in the header": BINARY.replace("rho 0.25", "rho" + " 1" * 2 * n),
        "one endless vector": BINARY.replace("2:0.5", " ".join(f"{i}:1" for i in range(2, 2 * n))),
        "one endless token": BINARY.replace("2:0.5", "2:" + "5" * 12 * n),
        "many empty vectors": head(n) + "1\n" * n,
        "thin vectors": head(2 * n // 5) + "1 1:1\n1 15:1\n" * (n // 5),
        "many classes": BINARY.replace("nr_class 2", f"nr_class {3 * n}").replace("label 1 -1", "label" + " 1" * 3 * n),
        "many lines after the end": BINARY + "1 1:1\n" * 2 * n,
        "a wide vector": BINARY.replace("2:0.5", "2147483646:1") + "\n" * 12 * n,
    }[kind]


@pytest.mark.parametrize("n", [10_000, pytest.param(50_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_memory_and_time_are_bounded_by_the_file(kind: str, n: int, tmp_path: Path) -> None:
    path = written(tmp_path, hostile(kind, n))
    size = path.stat().st_size
    tracemalloc.start()
    start = time.process_time()
    try:
        import_model(path)
    except FormatError:
        pass
    finally:
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak <= 32 * size + 2**20
    assert seconds < n / 10_000


def test_a_large_file_is_read_quickly(tmp_path: Path) -> None:
    """A million numbers, in less than what a token by token automaton in Python would take."""
    rng = np.random.default_rng(0)
    vectors = "".join(
        "0.5 " + " ".join(f"{i + 1}:{v:.8g}" for i, v in enumerate(row)) + "\n" for row in rng.normal(size=(2000, 100))
    )
    header = BINARY.replace("total_sv 3", "total_sv 2000").replace("nr_sv 2 1", "nr_sv 1000 1000").split("0.5 1:1")[0]
    path = written(tmp_path, header + vectors)
    start = time.process_time()
    machine = import_model(path).machine
    assert machine.points.shape == (2000, 100)
    assert time.process_time() - start < 3.0

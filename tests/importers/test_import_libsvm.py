"""LIBSVM model files, written by svm-train, against svm-predict and the libsvm package, which read the same file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import slimsvm
from oracles import libsvm_tools
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import PairwiseSigmoid, Sigmoid
from slimsvm.exceptions import FormatError
from slimsvm.importers import import_model, read_libsvm_machine

SVM_TYPES = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}
KERNEL_TYPES = {"linear": 0, "polynomial": 1, "rbf": 2, "sigmoid": 3}
LABELS = {2: ([1, -1], [-1, 1], [7, 3], [-5, -2]), 3: ([2, -1, 9], [3, 1, 2])}
CASES = [
    (svm, kernel, labels)
    for svm in SVM_TYPES
    for kernel in KERNEL_TYPES
    for labels in ([LABELS[2][0], LABELS[2][1], LABELS[3][0]] if svm.endswith("svc") else [[1, -1]])
]


@pytest.fixture(scope="module")
def tools() -> None:
    libsvm_tools.require_tools("svm-train", "svm-predict")


class Trained:
    """A model file of svm-train, and what svm-predict and the libsvm package say about the same data."""

    def __init__(self, folder: Path, X: Any, y: Any, *options: str) -> None:
        self.X, self.y = X, y
        self.data, self.path = folder / "data", folder / "model"
        self.data.write_text(libsvm_tools.data_text(X, y))
        subprocess.run(["svm-train", "-q", *options, self.data, self.path], check=True, capture_output=True)

    def predicted(self, probability: bool = False) -> list[list[str]]:
        return libsvm_tools.svm_predict(self.path, self.data, probability)

    def values(self, probability: bool = False) -> tuple[list[int], NDArray[np.float64]]:
        return libsvm_tools.values(self.path, self.X, probability)


def targets(svm: str, X: Any, y: Any, labels: list[int]) -> Any:
    if svm.endswith("svc"):
        # LIBSVM lists labels in the order of their appearance: the first sample has the first of them.
        return np.array(labels)[y]
    return (np.sin(X[:, 0]) + X[:, 1]).tolist()


def options(svm: str, kernel: str) -> list[str]:
    nu = ["-n", "0.3"] if svm in ("nu_svc", "one_class", "nu_svr") else []
    return ["-s", str(SVM_TYPES[svm]), "-t", str(KERNEL_TYPES[kernel]), "-g", "0.2", "-r", "0.5", "-d", "2", *nu]


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(("svm", "kernel", "labels"), CASES)
def test_agrees(svm: str, kernel: str, labels: list[int], tmp_path: Path, blobs: Any) -> None:
    X, y = blobs(len(labels))
    trained = Trained(tmp_path, X, targets(svm, X, y, labels), *options(svm, kernel))
    machine = import_model(trained.path).machine
    theirs = np.array([float(line[0]) for line in trained.predicted()])
    ours = machine.predict(X)
    order, values = trained.values()
    if isinstance(machine.answer, Classes):
        assert order == labels or sorted(order) == [-1, 1]
        assert machine.answer.order == tuple(np.searchsorted(sorted(labels), order))
        assert (machine.classes == sorted(labels)).all()
    if isinstance(machine.answer, Value):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5)  # svm-predict prints six digits
    else:
        assert (ours == theirs).all()
    scores = machine.scores(X)
    if isinstance(machine.answer, Classes) and len(labels) == 2 and order == sorted(order):
        scores = -scores
    assert np.abs(scores - values[:, : scores.shape[1]]).max() <= 1e-9 * np.abs(machine.head.coef).sum()


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("svm", ["c_svc", "nu_svc"])
@pytest.mark.parametrize("labels", [*LABELS[2], *LABELS[3]], ids=str)
def test_probabilities(labels: list[int], svm: str, tmp_path: Path, blobs: Any) -> None:
    X, y = blobs(len(labels))
    trained = Trained(tmp_path, X, np.array(labels)[y], "-b", "1", *options(svm, "rbf"))
    machine = import_model(trained.path).machine
    assert isinstance(machine.calibration, Sigmoid if len(labels) == 2 else PairwiseSigmoid)
    P = machine.predict_proba(X)
    labels_there, values = trained.values(probability=True)
    np.testing.assert_allclose(P, values[:, np.argsort(labels_there)], rtol=0, atol=2e-7)
    head, *lines = trained.predicted(probability=True)
    order = np.argsort([int(label) for label in head[1:]])
    printed = np.array([[float(p) for p in line[1:]] for line in lines])[:, order]
    np.testing.assert_allclose(P, printed, rtol=0, atol=2e-6)
    assert (machine.predict(X) == [float(line[0]) for line in trained.predicted()]).all()
    sure = np.sort(printed, axis=1)[:, -1] - np.sort(printed, axis=1)[:, -2] > 1e-5
    chosen = np.array([float(line[0]) for line in lines])
    assert (machine.classes[P.argmax(axis=1)][sure] == chosen[sure]).all()


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("svm", ["epsilon_svr", "nu_svr"])
def test_noise_width_of_regression_is_dropped(svm: str, tmp_path: Path, blobs: Any) -> None:
    X, y = blobs()
    trained = Trained(tmp_path, X, targets(svm, X, y, []), "-b", "1", *options(svm, "rbf"))
    assert "probA" in trained.path.read_text()
    machine = import_model(str(trained.path)).machine
    assert machine.calibration is None
    np.testing.assert_allclose(machine.predict(X), [float(p) for (p,) in trained.predicted()], rtol=2e-5)


BINARY = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 3
rho 0.25
label 1 -1
nr_sv 2 1
SV
0.5 1:1 3:-2
0.25 2:0.5
-0.75 1:-1 2:1e-1
"""
ONE_CLASS = """svm_type one_class
kernel_type linear
nr_class 2
total_sv 1
rho 0.5
prob_density_marks 1 2 3 4 5 6 7 8 9 10
SV
1 2:3
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "model"
    path.write_bytes(text.encode("latin-1"))
    return path


def test_by_hand(tmp_path: Path) -> None:
    machine = import_model(written(tmp_path, BINARY)).machine
    vectors = [(0.5, (1, 0, -2)), (0.25, (0, 0.5, 0)), (-0.75, (-1, 0.1, 0))]
    for x in [(0.0, 0.0, 0.0), (1.0, -1.0, 2.0)]:
        distances = [(a, sum((s - t) ** 2 for s, t in zip(x, z, strict=True))) for a, z in vectors]
        score = sum(a * np.exp(-0.5 * distance) for a, distance in distances) - 0.25
        assert machine.decision(np.array(x)) == pytest.approx(score, abs=1e-15)
        assert machine.predict(np.array(x)) == (1 if score > 0 else -1)


@pytest.mark.parametrize(("labels", "expected"), [("1 -1", -1), ("-1 1", 1), ("2 8", 8), ("8 2", 2)])
def test_a_score_of_zero_is_the_second_label(labels: str, expected: int, tmp_path: Path) -> None:
    text = BINARY.replace("rho 0.25", "rho 0").replace("label 1 -1", f"label {labels}").replace("rbf", "linear")
    assert import_model(written(tmp_path, text)).machine.predict(np.zeros(3)) == expected


def test_density_marks_are_accepted(tmp_path: Path) -> None:
    machine = import_model(written(tmp_path, ONE_CLASS)).machine
    assert isinstance(machine.answer, Inlier)
    assert machine.predict(np.array([[0, 1.0], [0, 0.1]])).tolist() == [1, -1]


def test_other_line_ends_and_orders_of_keys(tmp_path: Path) -> None:
    machine = import_model(written(tmp_path, BINARY)).machine
    assert import_model(written(tmp_path, BINARY.replace("\n", "\r\n"))).machine == machine
    lines = BINARY.splitlines(keepends=True)
    assert import_model(written(tmp_path, "".join(lines[7::-1] + lines[8:]))).machine == machine


def test_n_features(tmp_path: Path) -> None:
    path = written(tmp_path, BINARY)
    assert import_model(path).machine.n_features == 3
    assert read_libsvm_machine(path, n_features=10).n_features == 10
    assert slimsvm.read_libsvm(path, n_features=10).n_features_in_ == 10
    for wrong in (2, 2**31 - 1, -1):
        with pytest.raises(ValueError, match="n_features must be at least 3"):
            read_libsvm_machine(path, n_features=wrong)
    with pytest.raises(TypeError):
        read_libsvm_machine(path, n_features=3.5)  # type: ignore[arg-type]


def test_no_vectors_and_no_features(tmp_path: Path) -> None:
    empty = "svm_type nu_svr\nkernel_type linear\nnr_class 2\ntotal_sv 0\nrho -1.5\nSV\n"
    machine = import_model(written(tmp_path, empty)).machine
    assert (machine.n_vectors, machine.n_features) == (0, 1)
    assert machine.predict(np.zeros((2, 1))).tolist() == [1.5, 1.5]
    machine = import_model(written(tmp_path, ONE_CLASS.replace(" 2:3", ""))).machine
    assert machine.n_features == 1
    assert machine.decision(np.ones(1)) == -0.5


def test_wide_vectors_are_sparse(tmp_path: Path) -> None:
    wide = import_model(written(tmp_path, BINARY.replace("3:-2", "2147483646:-2"))).machine
    assert sparse.issparse(wide.points)
    assert wide.n_features == 2**31 - 2
    assert not sparse.issparse(import_model(written(tmp_path, BINARY)).machine.points)
    for kernel in ("rbf", "linear"):
        text = BINARY.replace("3:-2", "500:-2").replace("rbf", kernel)
        narrow = import_model(written(tmp_path, text)).machine
        x = np.zeros((1, 500))
        x[0, [0, 499]] = 1.0, -2.0
        z = np.zeros((3, 500))
        z[0, 0], z[0, 499], z[1, 1], z[2, 0], z[2, 1] = 1, -2, 0.5, -1, 0.1
        k = np.exp(-0.5 * ((x - z) ** 2).sum(axis=1)) if kernel == "rbf" else (z @ x.T)[:, 0]
        assert narrow.decision(sparse.csr_array(x))[0] == pytest.approx(k @ [0.5, 0.25, -0.75] - 0.25, abs=1e-14)


def test_paths(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        import_model(tmp_path / "none")
    with pytest.raises((IsADirectoryError, PermissionError)):
        import_model(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises(FormatError, match="not a regular file"):
            import_model("/dev/zero")

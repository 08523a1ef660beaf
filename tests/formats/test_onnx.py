"""ONNX graphs: what is in them, what they do at the edges of the numbers, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import slimsvm
from oracles.random_machines import random_machine, random_rows
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import Isotonic, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import onnx as format_onnx
from slimsvm.heads import HEADS, LinearHead, MirrorHead, PairsHead, PairwiseHead
from slimsvm.kernels import KERNELS, Laplacian, Linear, Polynomial, Rbf
from slimsvm.machine import KernelMachine

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

CONTROL = {"Loop", "Scan"}
PRIMITIVES = set(
    """Abs Add ArgMax Cast Clip Concat Div Equal Exp Gather Greater GreaterOrEqual Identity Less MatMul Max Min Mul Neg
    Pow Reciprocal ReduceSum Reshape Shape Slice Softmax Sqrt Sub Tanh TopK Unsqueeze Where""".split()  # noqa: SIM905
)


def run(machine: KernelMachine, X: Any, dtype: str = "float64") -> dict[str, NDArray[Any]]:
    """The outputs of ONNX Runtime, by name."""
    content = format_onnx.files(machine, "m.onnx", dtype=dtype).contents["m.onnx"]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": np.asarray(X, dtype=dtype)}), strict=True))


def machine_of(kernel: Any, points: Any, coef: Any, intercept: Any = 0.0, answer: Any = None) -> KernelMachine:
    coef = np.asarray(coef, float)
    head = LinearHead(coef if coef.ndim == 2 else coef[:, None], np.atleast_1d(intercept))
    return KernelMachine(kernel, points, head, Value() if answer is None else answer)


def every_machine() -> list[KernelMachine]:
    rng = np.random.default_rng(0)
    kernels = {head: [k for k in KERNELS if (head, k) != ("mirror", "sigmoid")] for head in HEADS}
    return [random_machine(rng, head=head, kernel=kernel) for head in HEADS for kernel in kernels[head]]


@pytest.mark.parametrize("machine", every_machine(), ids=repr)
def test_graphs_are_valid_and_made_of_primitive_operators(machine: KernelMachine) -> None:
    for dtype in ("float32", "float64"):
        model = onnx.load_from_string(format_onnx.files(machine, "m.onnx", dtype=dtype).contents["m.onnx"])
        onnx.checker.check_model(model, full_check=True)
        assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
        assert model.ir_version == 7
        nodes = list(model.graph.node)
        bodies = [a.g for node in nodes if node.op_type in CONTROL for a in node.attribute if a.name == "body"]
        used = {node.op_type for node in [*nodes, *(n for body in bodies for n in body.node)]}
        assert used <= PRIMITIVES | CONTROL
        assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_a_later_opset_has_the_same_operators() -> None:
    """The graph may go into a model of any later opset: no operator has another form there."""
    for machine in every_machine():
        graph, _ = format_onnx.make_graph(machine, "float64")
        for opset in (13, 15, 18, onnx.defs.onnx_opset_version()):
            model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
            onnx.checker.check_model(model, full_check=True)


def test_the_same_machine_gives_the_same_bytes(tmp_path: Path) -> None:
    machine = random_machine(np.random.default_rng(5), head="pairwise", calibration="pairwise_sigmoid")
    slimsvm.estimator.save(machine, tmp_path / "m.slim")
    script = (
        "import sys, slimsvm.formats.onnx, slimsvm.storage; sys.stdout.buffer.write(slimsvm.formats.onnx.files("
        f"slimsvm.storage.read({str(tmp_path / 'm.slim')!r}), 'm.onnx').contents['m.onnx'])"
    )
    content = format_onnx.files(machine, "m.onnx").contents["m.onnx"]
    env = {"PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(slimsvm.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=True)
    assert done.stdout == content


def test_the_metadata_say_where_the_graph_comes_from() -> None:
    machine = replace(machine_of(Rbf(1.0), np.eye(2), [1.0, 2.0]), feature_names=("length", "größe"))
    content = format_onnx.files(machine, "m.onnx").contents["m.onnx"]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map == {
        "digest": machine.digest(),
        "feature_names": '["length", "größe"]',
        "machine": repr(machine),
    }
    assert session.get_modelmeta().producer_name == "slimsvm"


def test_export_writes_one_file_that_runs(tmp_path: Path) -> None:
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = slimsvm.compress(SVC(gamma=1.0).fit(X, np.array(["left", "right"])[y]), n_vectors=10, random_state=0)
    made = slimsvm.export(model, "onnx", tmp_path / "moons.onnx")
    assert made.paths == (tmp_path / "moons.onnx",)
    assert made.notes == ()
    assert made.facts["n_bytes"] == made.paths[0].stat().st_size
    assert {key: made.facts[key] for key in ("opset", "dtype", "arithmetic")} == {
        "opset": 13,
        "dtype": "float32",
        "arithmetic": "float32",
    }
    session = runtime.InferenceSession(made.paths[0], providers=["CPUExecutionProvider"])
    label, scores = session.run(None, {"X": X.astype(np.float32)})
    far = np.abs(model.decision_function(X)) > 1e-4
    assert (label == model.predict(X))[far].all()
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_any_number_of_rows(n: int, kernel: str) -> None:
    machine = random_machine(np.random.default_rng(2), kernel=kernel, head="linear", outputs=3, answer="classes")
    X = random_rows(np.random.default_rng(3), machine, n)
    out = run(machine, X)
    assert out["scores"].shape == (n, 3)
    assert (out["label"] == machine.predict(X)).all()
    np.testing.assert_allclose(out["scores"], machine.decision(X), rtol=1e-9, atol=1e-9)


def test_the_shapes_are_those_of_the_estimators() -> None:
    rng = np.random.default_rng(7)
    for machine in every_machine():
        X = random_rows(rng, machine, 5)
        out = run(machine, X)
        if isinstance(machine.answer, Value):
            assert list(out) == ["value"]
            assert out["value"].shape == machine.predict(X).shape
            continue
        assert list(out) == ["label", "scores", *(["probabilities"] if machine.calibration else [])]
        assert out["scores"].shape == machine.decision(X).shape
        assert out["label"].shape == (5,)


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_not_finite_score_nan_and_leave_the_others_alone(kernel: str, dtype: str) -> None:
    machine = random_machine(np.random.default_rng(4), kernel=kernel, head="linear", outputs=1, answer="value")
    X = random_rows(np.random.default_rng(5), machine, 4)
    bad = X.copy()
    bad[1, 0], bad[2, 1], bad[3, 0] = np.nan, np.inf, -np.inf
    good, mixed = (run(machine, rows, dtype)["value"].ravel() for rows in (X, bad))
    assert np.isnan(mixed[1:]).all()
    assert mixed[0] == good[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [Rbf(0.5), Laplacian(0.5)])
def test_squares_do_not_overflow(kernel: Any, dtype: str) -> None:
    machine = machine_of(kernel, np.array([[0.0, 1.0], [2.0, 0.0]]), [1.0, -2.0], 0.25)
    huge = 0.9 * np.finfo(dtype).max
    assert (run(machine, [[huge, 0.0], [-huge, huge]], dtype)["value"] == 0.25).all()


@pytest.mark.parametrize("kernel", [Rbf(0.5), Laplacian(0.5)])
def test_data_far_from_the_origin_keep_their_digits(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    Z = 5000 + rng.normal(size=(20, 4))
    machine = machine_of(kernel, Z, rng.normal(size=20))
    X = (Z + 0.1 * rng.normal(size=Z.shape)).astype(np.float32)
    expected = machine.scores(X.astype(np.float64))[:, 0]
    made = format_onnx.files(machine, "m.onnx")
    assert made.facts["arithmetic"] == "float32"
    assert np.abs(run(machine, X, "float32")["value"] - expected).max() < 1e-5 * np.abs(machine.head.coef).sum()


def test_a_scaler_far_from_the_origin_keeps_its_digits() -> None:
    rng = np.random.default_rng(0)
    shift, scale = np.array([1e4, -30000.1234, 0.1]), np.array([0.5, 3.0, 1.0])
    for A in (scale, np.diag(scale) + 0.1 * rng.normal(size=(3, 3))):
        machine = replace(
            machine_of(Rbf(0.5), rng.normal(size=(20, 3)), rng.normal(size=20)),
            input_map=slimsvm.machine.InputMap(shift, A),
        )
        X = (shift + rng.normal(size=(50, 3)) / scale).astype(np.float32)
        expected = machine.scores(X.astype(np.float64))[:, 0]
        assert np.abs(run(machine, X, "float32")["value"] - expected).max() < 1e-5 * np.abs(machine.head.coef).sum()


@pytest.mark.parametrize(
    ("gamma", "arithmetic"), [(1.0, "float32"), (20.0, "float64"), (300.0, "float64"), (1e6, "float64")]
)
def test_narrow_kernels_are_computed_with_more_digits(gamma: float, arithmetic: str) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 3)).astype(np.float32)
    machine = machine_of(Rbf(gamma), Z, rng.normal(size=30))
    X = (Z + rng.normal(size=Z.shape) / np.sqrt(gamma)).astype(np.float32)
    expected = machine.scores(X.astype(np.float64))[:, 0]
    total = np.abs(machine.head.coef).sum()
    assert format_onnx.files(machine, "m.onnx").facts["arithmetic"] == arithmetic
    assert np.abs(run(machine, X, "float32")["value"] - expected).max() < 1e-5 * total
    assert np.abs(run(machine, X, "float64")["value"] - expected).max() < 1e-9 * total


@pytest.mark.parametrize("kernel", [Rbf(1e-2), Laplacian(1e-2)])
@pytest.mark.parametrize("head", ["linear", "mirror"])
def test_large_tables_are_compared_row_by_row(kernel: Any, head: str) -> None:
    rng = np.random.default_rng(1)
    machine = random_machine(
        rng,
        kernel=kernel,
        head=head,
        outputs=1,
        answer="classes",
        n_vectors=90,
        n_points_features=60,
        input_map="none",
        sparse_points=False,
    )
    made = format_onnx.files(machine, "m.onnx")
    in_rows = kernel.name == "laplacian" or head == "mirror"
    model = onnx.load_from_string(made.contents["m.onnx"])
    assert any(node.op_type == "Scan" for node in model.graph.node) == in_rows
    assert any("row by row" in note for note in made.notes) == in_rows
    X = np.vstack([random_rows(rng, machine, 5), machine.points[:3]])
    total = np.abs(machine.head.coef).sum()
    assert np.abs(run(machine, X)["scores"] - machine.decision(X)).max() < 1e-9 * total
    assert run(machine, X[:0])["scores"].shape == (0,)


def test_near_a_mirror_point_distances_keep_their_digits() -> None:
    Z = np.array([[0.5, 1.0], [2.0, -1.0]])
    for kernel, dtypes in ((Rbf(0.7), ("float32", "float64")), (Laplacian(0.7), ("float32", "float64"))):
        machine = KernelMachine(kernel, Z, MirrorHead([[1.0], [-1.0]], [0.0], (0, 1), [1.0, 1.0]), Classes([0, 1]))
        X = (Z[:1] + np.array([[0.0, 0.0], [1e-5, 0.0], [1e-3, 1e-3]])).astype(np.float32)
        expected = machine.decision(X.astype(np.float64))
        for dtype in dtypes:
            bound = 1e-5 if dtype == "float32" else 1e-9
            assert np.abs(run(machine, X, dtype)["scores"] - expected).max() < 2 * bound


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ties_of_two_classes(order: tuple[int, int]) -> None:
    answer = Classes(["a", "b"], order)
    for head in (LinearHead([[0.0]], [0.0]), PairsHead([[0.0]], [0.0]), PairwiseHead([[0.0]], [0.0], (1, 0))):
        machine = KernelMachine(Rbf(1.0), [[1.0]], head, answer)
        assert run(machine, [[0.5]])["label"][0] == machine.predict([[0.5]])[0]


@pytest.mark.parametrize("break_ties", [False, True])
def test_ties_of_votes(break_ties: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        intercept = rng.integers(-1, 2, 6).astype(float)  # many zeros and cycles
        answer = Classes([3, 5, 7, 9], tuple(rng.permutation(4).tolist()), "ovr", break_ties)
        machine = KernelMachine(Rbf(1.0), [[1.0]], PairsHead(np.zeros((1, 6)), intercept), answer)
        out = run(machine, [[0.5]])
        assert out["label"][0] == machine.predict([[0.5]])[0]
        np.testing.assert_allclose(out["scores"], machine.decision([[0.5]]), atol=1e-12)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([2, 5]), "tensor(int64)"),
        (np.array([False, True]), "tensor(int64)"),
        (np.array([-1.0, 1.0]), "tensor(int64)"),
        (np.array([0.5, 1.0]), "tensor(double)"),
        (np.array(["a", "é"]), "tensor(string)"),
        (np.array(["a", "b"], dtype=object), "tensor(string)"),
        (np.array([1, 200], dtype=np.uint8), "tensor(int64)"),
    ],
)
def test_labels(labels: NDArray[Any], kind: str) -> None:
    machine = machine_of(Rbf(1.0), [[0.0], [1.0]], [-1.0, 1.0], answer=Classes(labels))
    content = format_onnx.files(machine, "m.onnx").contents["m.onnx"]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    assert session.get_outputs()[0].type == kind
    assert (session.run(["label"], {"X": np.float32([[0.0], [1.0]])})[0] == labels).all()


@pytest.mark.parametrize("labels", [np.array([b"a", b"b"]), np.array([1, 2**63], dtype=np.uint64), np.array([1j, 2j])])
def test_labels_that_onnx_does_not_have(labels: NDArray[Any]) -> None:
    with pytest.raises(UnsupportedExportError, match="Class labels of an ONNX graph"):
        format_onnx.label_table(labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_calibrations_that_random_machines_have_not(dtype: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    two = machine_of(Rbf(0.5), rng.normal(size=(6, 2)), rng.normal(size=6), answer=Classes([0, 1]))
    three = machine_of(Rbf(0.5), rng.normal(size=(6, 2)), rng.normal(size=(6, 3)), np.zeros(3), Classes([0, 1, 2]))
    knots = [-1.0, -0.5, -0.5, 0.25, 1.0], [0.0, 0.1, 0.6, 0.8, 1.0]
    pairs = KernelMachine(Rbf(0.5), three.points, PairsHead(three.head.coef, [0.0, 0.1, 0.2]), Classes([0, 1, 2]))
    in_order = replace(pairs, answer=Classes([0, 1, 2], (2, 0, 1)))
    machines = [
        replace(two, calibration=Sigmoid([-2.0], [0.1], coupled=True)),
        replace(three, calibration=Sigmoid([-2.0, -1.0, -3.0], [0.1, 0.2, 0.3], coupled=True, decides=True)),
        replace(two, calibration=Isotonic(*knots, (5,))),
        replace(three, calibration=Isotonic([0.0, 5.0, 6.0, 0.0], [0.0, 0.0, 0.0, 0.0], (1, 2, 1))),  # all are zero
        replace(two, calibration=Softmax(2.0)),
        replace(pairs, calibration=Softmax(2.0)),  # of the "ovr" decision
        replace(pairs, calibration=PairwiseSigmoid([-500.0, 500.0, -3.0], [0.0, 0.0, 0.0])),  # bounded
        replace(in_order, calibration=PairwiseSigmoid([-2.0, -1.0, -3.0], np.zeros(3))),
    ]
    for machine in machines:
        out = run(machine, X, dtype)
        expected = machine.predict_proba(np.asarray(X, dtype).astype(np.float64))
        off = np.abs(out["probabilities"] - expected).max(axis=1)
        assert np.mean(off < (1e-4 if dtype == "float32" else 1e-9)) > 0.95  # a coupling may stop one step earlier
        assert np.mean(out["label"] == machine.predict(X)) > 0.95


def test_machines_without_vectors_and_classes_without_vectors() -> None:
    X = np.ones((2, 3))
    empty = machine_of(Rbf(1.0), np.zeros((0, 3)), np.zeros((0, 1)), 0.5)
    assert (run(empty, X)["value"] == 0.5).all()
    assert (run(replace(empty, kernel=Linear()), X, "float32")["value"] == 0.5).all()
    rng = np.random.default_rng(0)
    for kernel in ("rbf", "linear"):
        machine = random_machine(rng, head="pairwise", kernel=kernel, outputs=4, empty_block=True, input_map="none")
        rows = random_rows(rng, machine, 20)
        assert (run(machine, rows)["label"] == machine.predict(rows)).all()


def test_early_exit_and_sparse_vectors_say_what_they_cost() -> None:
    rng = np.random.default_rng(0)
    staged = random_machine(rng, head="staged", kernel="rbf", outputs=1, sparse_points=True)
    notes = " ".join(format_onnx.files(staged, "m.onnx").notes)
    assert "without_early_exit()" in notes
    assert "computes in float64" in notes
    assert "stored as dense" in notes


def test_a_wide_linear_machine_is_folded_without_a_dense_copy() -> None:
    points = sparse.csr_array((np.ones(50), (np.arange(50), np.arange(50) * 50_000)), shape=(50, 3_000_000))
    machine = machine_of(Linear(), points, np.ones(50))
    assert format_onnx.files(machine, "m.onnx").facts["n_bytes"] < 13_000_000


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = machine_of(Rbf(1.0), [[0.0], [1.0]], [-1.0, 1.0], answer=Inlier())
    with pytest.raises(ValueError, match=r"must be 'float32' or 'float64'. Got 'float16'"):
        slimsvm.export(machine, "onnx", tmp_path / "m.onnx", dtype="float16")
    with pytest.raises(TypeError, match="opset"):
        slimsvm.export(machine, "onnx", tmp_path / "m.onnx", opset=9)
    wide = machine_of(Rbf(1.0), sparse.csr_array((200, 2_000_000_000)), np.ones(200), answer=Inlier())
    with pytest.raises(UnsupportedExportError, match=r"take 2.98e\+03 GiB, and an ONNX file can have 2 GiB"):
        slimsvm.export(wide, "onnx", tmp_path / "m.onnx", dtype="float64")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'slimsvm\[onnx\]'"):
        slimsvm.export(machine, "onnx", tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_numbers_that_float32_does_not_have() -> None:
    machine = machine_of(Polynomial(1.0, 0.0, 2.0), [[1e30], [1.0]], [1e60, 1.0])
    assert format_onnx.files(machine, "m.onnx").facts["arithmetic"] == "float64"
    folded = machine_of(Linear(), [[1e30], [1.0]], [1e60, 1.0])
    with pytest.raises(UnsupportedExportError, match=r"which float32 cannot represent. Export it with dtype='float64'"):
        format_onnx.files(folded, "m.onnx")
    assert run(folded, [[2.0]])["value"][0] == pytest.approx(2e90)


def test_another_runtime_computes_the_same() -> None:
    reference = pytest.importorskip("onnx.reference")
    rng = np.random.default_rng(11)
    for machine in every_machine():
        X = random_rows(rng, machine, 6)
        content = format_onnx.files(machine, "m.onnx", dtype="float64").contents["m.onnx"]
        outputs = reference.ReferenceEvaluator(onnx.load_from_string(content)).run(None, {"X": X})
        for ours, theirs in zip(run(machine, X).values(), outputs, strict=True):
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)
            else:
                assert (theirs == ours).all()

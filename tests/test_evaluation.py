"""Evaluation against the oracle: every kind of machine, every form of input, and both paths."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles import answers, calibration
from oracles import scores as oracle
from oracles.paths import PATHS, take
from oracles.random_machines import MAPS, random_machine, random_rows
from slimsvm.kernels import KERNELS
from slimsvm.machine import KernelMachine

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}  # of Σ|coef|
HEADS = [
    ("linear", 1),
    ("linear", 2),
    ("linear", 5),
    ("pairs", 3),
    ("pairwise", 2),
    ("pairwise", 3),
    ("pairwise", 4),
    ("pairwise", 5),
]
CONTENTS = list(product(HEADS, (False, True), (False, True), MAPS))

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(params=PATHS, autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def close(machine: KernelMachine, X: Any, found: Any, expected: Any, tolerance: float) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * oracle.size(machine, X))


def check_answers(machine: KernelMachine, X: Any, precision: Any) -> None:
    """Decision, labels and probabilities are what the oracle makes of the machine's own scores."""
    pairwise = machine.head.gives_pairs
    scores = machine.scores(X, precision=precision).tolist()
    expected = answers.decision(machine.answer, scores, pairwise)
    np.testing.assert_allclose(machine.decision(X, precision=precision), expected, rtol=1e-9, atol=1e-12)
    labels = answers.predict(machine.answer, scores, pairwise)
    if machine.calibration is not None:
        P = calibration.probabilities(machine.calibration, scores, machine.answer.order)  # type: ignore[attr-defined]
        np.testing.assert_allclose(machine.predict_proba(X, precision=precision), P, rtol=1e-9, atol=1e-12)
        if machine.calibration.decides:
            labels = [machine.classes.tolist()[p.index(max(p))] for p in P]
    assert machine.predict(X, precision=precision).tolist() == labels


@every_kernel
@pytest.mark.parametrize("head", HEADS, ids=lambda h: f"{h[0]}{h[1]}")
def test_every_machine_on_every_form_of_data(kernel: str, head: tuple[str, int], rng: np.random.Generator) -> None:
    for sparse_points, gammas, input_map in product((False, True), (False, True), MAPS):
        machine = random_machine(
            rng,
            kernel=kernel,
            head=head[0],
            outputs=head[1],
            sparse_points=sparse_points,
            gammas=gammas,
            input_map=input_map,
            empty_block=bool(rng.integers(2)),
        )
        for as_sparse, precision in product((False, True), TOLERANCE):
            X = random_rows(rng, machine, 5, precision, as_sparse)
            found = machine.scores(X, precision=precision)  # type: ignore[arg-type]
            assert found.dtype == np.float64
            close(machine, X, found, oracle.scores(machine, X), TOLERANCE[precision])
            check_answers(machine, X, precision)


@every_kernel
def test_labels_are_the_oracles(kernel: str, rng: np.random.Generator) -> None:
    for _ in range(20):
        machine = random_machine(rng, kernel=kernel, calibration="none")
        X = random_rows(rng, machine, 30)
        pairwise = machine.head.gives_pairs
        expected = answers.predict(machine.answer, oracle.scores(machine, X), pairwise)
        if machine.answer.name == "value":
            close(machine, X, machine.predict(X), expected, TOLERANCE["float64"])
        else:
            assert machine.predict(X).tolist() == expected


@every_kernel
@pytest.mark.parametrize("n", [1, 7, 1000])
@pytest.mark.parametrize("precision", TOLERANCE)
def test_batches_of_any_size(kernel: str, n: int, precision: Any, rng: np.random.Generator) -> None:
    machine = random_machine(rng, kernel=kernel, n_vectors=19, n_points_features=5)
    X = random_rows(rng, machine, n, precision)
    close(machine, X, machine.scores(X, precision=precision), oracle.scores(machine, X), TOLERANCE[precision])


@every_kernel
@pytest.mark.parametrize(("m", "d"), [(1, 1), (1, 40), (3, 2), (8, 8), (17, 33), (70, 16), (257, 3), (40, 129)])
@pytest.mark.parametrize("precision", TOLERANCE)
def test_sizes_around_the_edges_of_panels(
    kernel: str, m: int, d: int, precision: Any, rng: np.random.Generator
) -> None:
    wishes: dict[str, Any] = {"head": "linear", "outputs": 1, "sparse_points": False, "input_map": "none"}
    machine = random_machine(rng, kernel=kernel, n_vectors=m, n_points_features=d, **wishes)
    for as_sparse in (False, True):
        X = random_rows(rng, machine, 11, precision, as_sparse)
        close(machine, X, machine.scores(X, precision=precision), oracle.scores(machine, X), TOLERANCE[precision])


@every_kernel
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("precision", TOLERANCE)
def test_threads_give_the_same_bits(
    kernel: str, as_sparse: bool, precision: Any, rng: np.random.Generator, path: str
) -> None:
    n = 5000 if path == "core" else 300  # enough for several threads, of which NumPy's twin has one
    for head in ("linear", "pairs", "pairwise"):
        machine = random_machine(rng, kernel=kernel, head=head, n_vectors=200, n_points_features=6)
        X = random_rows(rng, machine, n, precision, as_sparse)
        one = machine.scores(X, n_jobs=1, precision=precision)
        for n_jobs in (2, 5, -1, None):
            assert one.tobytes() == machine.scores(X, n_jobs=n_jobs, precision=precision).tobytes()


@every_kernel
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
def test_a_row_alone_and_in_a_batch_agree(kernel: str, as_sparse: bool, rng: np.random.Generator) -> None:
    for _ in range(6):
        machine = random_machine(rng, kernel=kernel)
        X = random_rows(rng, machine, 33, as_sparse=as_sparse)
        batch = machine.scores(X)
        alone = np.vstack([machine.scores(X[i : i + 1]) for i in range(33)])
        close(machine, X, alone, batch, 1e-12)


@every_kernel
def test_one_sample_gives_one_answer(kernel: str, rng: np.random.Generator) -> None:
    for _ in range(12):
        machine = random_machine(rng, kernel=kernel)
        X = random_rows(rng, machine, 4)
        for i in range(4):
            close(machine, X, machine.scores(X[i]), machine.scores(X)[i], 1e-12)
            np.testing.assert_allclose(machine.decision(X[i]), machine.decision(X)[i], rtol=1e-9, atol=1e-10)
            assert np.shape(machine.decision(X[i])) == np.shape(machine.decision(X))[1:]
            assert np.shape(machine.predict(X[i])) == np.shape(machine.predict(X))[1:]
            if machine.answer.name != "value":
                assert machine.predict(X[i]) == machine.predict(X)[i]
            if machine.calibration is not None:
                np.testing.assert_allclose(machine.predict_proba(X[i]), machine.predict_proba(X)[i], atol=1e-9)


@every_kernel
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
def test_no_rows(kernel: str, as_sparse: bool, rng: np.random.Generator) -> None:
    for head in ("linear", "pairs", "pairwise"):
        machine = random_machine(rng, kernel=kernel, head=head)
        X = random_rows(rng, machine, 0, as_sparse=as_sparse)
        assert machine.scores(X).shape == (0, machine.head.n_scores)
        assert len(machine.decision(X)) == len(machine.predict(X)) == 0


@every_kernel
def test_what_is_evaluated_is_not_written(kernel: str, rng: np.random.Generator) -> None:
    machine = random_machine(rng, kernel=kernel)
    digest = machine.digest()
    for as_sparse in (False, True):
        X = random_rows(rng, machine, 9, as_sparse=as_sparse)
        before = (X.toarray() if as_sparse else X).tobytes()
        machine.predict(X)
        assert before == (X.toarray() if as_sparse else X).tobytes()
        assert machine.digest() == digest


@pytest.mark.parametrize("content", CONTENTS[:: len(CONTENTS) // 12], ids=str)
def test_precision_auto_is_near_the_oracle_for_float32(content: Any, rng: np.random.Generator) -> None:
    (head, outputs), sparse_points, gammas, input_map = content
    machine = random_machine(
        rng, head=head, outputs=outputs, sparse_points=sparse_points, gammas=gammas, input_map=input_map
    )
    X = random_rows(rng, machine, 20, np.float32)
    close(machine, X, machine.scores(X), oracle.scores(machine, X), TOLERANCE["float32"])
    assert sparse.issparse(machine.points) == sparse_points

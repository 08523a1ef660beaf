"""Early exit in the evaluation: the core, NumPy and an oracle decide at the same stage, with the same scores."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from oracles import scores as oracle
from oracles.kernels import rows, value
from oracles.paths import PATHS, take
from oracles.random_machines import MAPS, random_machine, random_rows
from slimsvm import load, storage
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import Sigmoid
from slimsvm.estimator import wrap
from slimsvm.heads import LinearHead, StagedHead
from slimsvm.kernels import KERNELS, Rbf
from slimsvm.machine import KernelMachine

NEAR = 1e-7  # of Σ|coef|: nearer to a threshold than this, either stage is right
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


def kernel_values(machine: KernelMachine, X: Any) -> list[list[float]]:
    data = rows(X) if machine.input_map is None else [oracle.mapped(machine.input_map, x) for x in rows(X)]
    points = rows(machine.points)
    widths = [None] * len(points) if machine.gammas is None else machine.gammas.tolist()
    return [[value(machine.kernel, x, z, g) for z, g in zip(points, widths, strict=True)] for x in data]


def is_near(head: Any, k: list[float], width: float) -> bool:
    """Whether a score of some stage lies within rounding of a threshold."""
    q = head.n_scores
    for t in range(head.n_stages - 1):
        scores = sorted(np.array(k) @ head.coef[:, t * q : (t + 1) * q] + head.intercept[t * q : (t + 1) * q])
        at = scores[0] if q == 1 else scores[-1] - scores[-2]
        edges = [head.upper[t], *([] if head.lower is None else [head.lower[t]])]
        if min(abs(at - edge) for edge in edges) < width:
            return True
    return False


def check(machine: KernelMachine, X: Any, near: float = NEAR, precision: Any = "float64") -> None:
    """Scores and stages are the oracle's, but where rounding decides."""
    found, counts = machine.scores(X, precision=precision), machine.kernel_evaluations(X, precision=precision)
    width = near * oracle.size(machine, X)
    left = 0
    for k, scores, count in zip(kernel_values(machine, X), found, counts, strict=True):
        if is_near(machine.head, k, width):
            continue
        stage, expected = oracle.deciding_stage(k, machine.head)
        assert count == machine.head.sizes[stage]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=width)
        left += 1
    assert left > 0.8 * X.shape[0]


@every_kernel
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_machine_on_every_form_of_data(kernel: str, outputs: int, rng: np.random.Generator, path: str) -> None:
    for sparse_points, gammas, input_map in product((False, True), (False, True), MAPS):
        wishes = {"sparse_points": sparse_points, "gammas": gammas, "input_map": input_map}
        machine = random_machine(rng, kernel=kernel, head="staged", outputs=outputs, **wishes)
        for as_sparse in (False, True):
            check(machine, random_rows(rng, machine, 20, as_sparse=as_sparse))


@every_kernel
@pytest.mark.parametrize(("m", "p"), [(1, 1), (7, 2), (33, 2), (52, 8), (80, 21), (130, 40)])
def test_sizes_around_the_edges_of_vectors(kernel: str, m: int, p: int, rng: np.random.Generator) -> None:
    for outputs in (1, 3):
        wishes = {"head": "staged", "outputs": outputs, "sparse_points": False, "input_map": "none"}
        machine = random_machine(rng, kernel=kernel, n_vectors=m, n_points_features=p, **wishes)
        for n in (1, 3, 50):
            check(machine, random_rows(rng, machine, n))


def test_thin_points_are_evaluated_by_their_index(rng: np.random.Generator) -> None:
    points = sparse.random_array((60, 400), density=0.02, rng=rng, format="csr")
    head = random_machine(rng, head="staged", outputs=1, n_vectors=60).head
    for kernel in (Rbf(0.5), KERNELS["linear"]()):
        machine = KernelMachine(kernel, points, head, Classes([0, 1]))
        check(machine, sparse.random_array((60, 400), density=0.05, rng=rng, format="csr"))
        check(machine, sparse.random_array((60, 400), density=0.05, rng=rng).toarray())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "sigmoid"])
def test_float32_keeps_away_from_thresholds(kernel: str, rng: np.random.Generator) -> None:
    """What float32 decides early, float64 decides too, at the same stage or before."""
    for outputs in (1, 3):
        wishes = {"sparse_points": False, "input_map": "none", "n_vectors": 40}
        machine = random_machine(rng, kernel=kernel, head="staged", outputs=outputs, **wishes)
        X = random_rows(rng, machine, 3000, np.float32)
        small, large = (machine.kernel_evaluations(X, precision=p) for p in ("float32", "float64"))
        assert (small >= large).all()
        assert (small == large).mean() > 0.99
        same = small == large
        scores = [machine.scores(X, precision=p)[same] for p in ("float32", "float64")]
        np.testing.assert_allclose(*scores, atol=1e-5 * oracle.size(machine, X[:1]))


@every_kernel
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_threads_give_the_same_bits(kernel: str, as_sparse: bool, precision: Any, rng: np.random.Generator) -> None:
    for outputs in (1, 3):
        machine = random_machine(rng, kernel=kernel, head="staged", outputs=outputs, n_vectors=100)
        X = random_rows(rng, machine, 20_000, precision, as_sparse)
        one = machine.scores(X, n_jobs=1, precision=precision)
        counts = machine.kernel_evaluations(X, n_jobs=1, precision=precision)
        for n_jobs in (2, 5, -1):
            assert one.tobytes() == machine.scores(X, n_jobs=n_jobs, precision=precision).tobytes()
            np.testing.assert_array_equal(counts, machine.kernel_evaluations(X, n_jobs=n_jobs, precision=precision))


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(KERNELS)), st.sampled_from([1, 3]))
@settings(max_examples=60, deadline=None)
def test_answers_agree_with_decisions_and_counts_with_sizes(seed: int, kernel: str, outputs: int) -> None:
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, kernel=kernel, head="staged", outputs=outputs)
    X = random_rows(rng, machine, 60, as_sparse=bool(rng.integers(2)))
    decision, answers = machine.decision(X), machine.predict(X)
    place = (decision > 0).astype(int) if outputs == 1 else decision.argmax(axis=1)
    np.testing.assert_array_equal(answers, machine.classes[place])
    counts = machine.kernel_evaluations(X)
    assert counts.dtype == np.intp
    assert set(counts.tolist()) <= set(machine.head.sizes)
    np.testing.assert_array_equal(machine._evaluator._numpy_scores(X, 0).shape, machine.scores(X).shape)
    full = machine.without_early_exit()
    last = counts == machine.n_vectors
    np.testing.assert_allclose(machine.scores(X)[last], full.scores(X)[last], rtol=1e-9, atol=1e-9)


def test_the_sign_is_the_answer_where_thresholds_lie_beyond_zero(path: str) -> None:
    """A stage whose classes are both below zero, or both above: the threshold that was crossed tells, not the sign."""
    stages = [(np.array([[1.0]]), np.array([-5.0])), (np.array([[1.0], [1.0]]), np.array([0.0]))]
    X = np.array([[4.0], [3.0], [2.0], [1.0]])
    points = np.array([[1.0], [1.0]])
    below = KernelMachine(KERNELS["linear"](), points, StagedHead.of(stages, [-1.5], [-2.5]), Classes([0, 1]))
    np.testing.assert_allclose(below.decision(X), [0.5, 6.0, -3.0, -4.0])
    assert below.predict(X).tolist() == [1, 1, 0, 0]
    assert below.kernel_evaluations(X).tolist() == [1, 2, 1, 1]
    stages[0] = (stages[0][0], np.array([1.0]))
    above = KernelMachine(KERNELS["linear"](), points, StagedHead.of(stages, [4.5], [2.5]), Classes([0, 1]))
    np.testing.assert_allclose(above.decision(X), [5.0, 6.0, 4.0, 2.0 - 2.5])
    assert above.predict(X).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("n", [1, 3, 100])
def test_rows_that_are_not_finite_are_refused_and_large_ones_answered(n: int, path: str) -> None:
    rng = np.random.default_rng(0)
    machine = random_machine(rng, kernel="rbf", head="staged", outputs=1, input_map="none", sparse_points=False)
    X = random_rows(rng, machine, n)
    X[-1, 0] = 1e300
    assert np.isfinite(machine.scores(X)).all()
    for bad in (np.nan, np.inf):
        X[-1, 0] = bad
        for ask in (machine.predict, machine.kernel_evaluations):
            with pytest.raises(ValueError, match=f"NaN or infinity, first in row {n - 1}"):
                ask(X)


def test_one_sample_and_no_sample(path: str, rng: np.random.Generator) -> None:
    for outputs in (1, 3):
        machine = random_machine(rng, head="staged", outputs=outputs, sparse_points=False)
        X = random_rows(rng, machine, 20)
        for i in range(20):
            assert machine.predict(X[i]) == machine.predict(X)[i]
            assert machine.kernel_evaluations(X[i]) == machine.kernel_evaluations(X)[i]
            np.testing.assert_allclose(machine.decision(X[i]), machine.decision(X)[i], atol=1e-9)
        assert machine.kernel_evaluations(X[:0]).shape == (0,)
        assert machine.predict(X[:0]).shape == (0,)


def test_files_and_pickles_keep_it(tmp_path: Any, rng: np.random.Generator) -> None:
    for outputs in (1, 3):
        machine = random_machine(rng, head="staged", outputs=outputs)
        X = random_rows(rng, machine, 50)
        assert storage.loads(storage.dumps(machine)) == machine
        slim = wrap(machine)
        slim.save(tmp_path / "staged.slim")
        back = load(tmp_path / "staged.slim")
        assert back.machine_ == pickle.loads(pickle.dumps(machine)) == machine
        assert back.decision_function(X).tobytes() == slim.decision_function(X).tobytes()
        np.testing.assert_array_equal(back.kernel_evaluations(X), machine.kernel_evaluations(X))


def test_other_heads_use_every_vector(rng: np.random.Generator) -> None:
    machine = random_machine(rng, head="pairwise", outputs=3)
    X = random_rows(rng, machine, 4)
    assert machine.kernel_evaluations(X).tolist() == [machine.n_vectors] * 4
    assert machine.without_early_exit() is machine


def test_what_does_not_go_with_stages_is_refused() -> None:
    head = StagedHead.of([(np.ones((1, 1)), np.zeros(1)), (np.ones((2, 1)), np.zeros(1))], [1.0], [-1.0])
    points = np.ones((2, 3))
    assert KernelMachine(Rbf(1.0), points, head, Classes([0, 1])).without_early_exit().head == LinearHead(
        np.ones((2, 1)), [0.0]
    )
    with pytest.raises(ValueError, match="regression machine cannot have a staged head"):
        KernelMachine(Rbf(1.0), points, head, Value())
    with pytest.raises(ValueError, match="one-class machine"):
        KernelMachine(Rbf(1.0), points, head, Inlier())
    with pytest.raises(ValueError, match="must be None with early exit"):
        KernelMachine(Rbf(1.0), points, head, Classes([0, 1]), calibration=Sigmoid([-1.0], [0.0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (1, 3)}, "needs coef"),
        ({"sizes": ()}, "needs coef"),
        ({"sizes": (2, 2)}, "sizes of StagedHead must be increasing"),
        ({"upper": [1.0, 2.0]}, "needs coef"),
        ({"lower": None}, "needs coef"),
        ({"upper": [-2.0]}, "must be at least lower"),
        ({"coef": np.ones((2, 2))}, "must be zero for the points that a stage does not use"),
        ({"intercept": np.zeros(3)}, "needs coef"),
        ({"upper": [np.inf]}, "upper of StagedHead must be finite"),
    ],
)
def test_a_staged_head_states_what_it_needs(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "coef": [[1.0, 1.0], [0.0, 1.0]],
        "intercept": [0.0, 0.0],
        "sizes": (1, 2),
        "upper": [1.0],
        "lower": [-1.0],
    }
    StagedHead(**good)
    with pytest.raises(ValueError, match=message):
        StagedHead(**(good | changes))

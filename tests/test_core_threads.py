"""The package called from many threads at the same time; `make tsan` runs this file under ThreadSanitizer.

Nothing that is imported here may import polars: its allocator starts a thread behind ThreadSanitizer's back, which then
ends the process with a segmentation fault.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles.random_machines import random_machine, random_rows
from slimsvm import PrunedPerceptronClassifier, _core
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine

needs_core = pytest.mark.skipif(not _core.available, reason="the compiled core is not there")

N_CALLERS = 8
HEADS = ("linear", "pairs", "pairwise", "mirror", "staged")
Call = Callable[[], bytes]


def at_once(work: Callable[[int], Any], n_threads: int = N_CALLERS) -> list[Any]:
    """The results of work(0), work(1), … on threads that start together."""
    start = threading.Barrier(n_threads)

    def together(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(together, range(n_threads)))


@pytest.fixture(params=[1, 2, 5], ids="{}_threads".format)
def n_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call takes this many threads, however many cores there are and however small it is."""
    monkeypatch.setattr(_core, "threads", lambda *_: request.param)


def scoring(head: str, machine: KernelMachine) -> Iterator[Call]:
    """Batches in every form, single rows and refused rows of a machine."""
    rng = np.random.default_rng(len(head))
    X = random_rows(rng, machine, 700)
    broken = X.copy()
    broken[650, 0] = np.nan
    for rows in (X, X.astype(np.float32), sparse.csr_array(X), X[:1]):
        yield lambda rows=rows: machine.scores(rows).tobytes()
    yield lambda: machine.kernel_evaluations(X).tobytes()
    yield lambda: machine.predict(X).tobytes()
    yield lambda: refusal(machine, broken).encode()


def refusal(machine: KernelMachine, X: Any) -> str:
    with pytest.raises(ValueError, match="NaN or infinity") as raised:
        machine.scores(X)
    return str(raised.value)


def other_calls() -> Iterator[Call]:
    """What else the core does without the GIL: kernel matrices, agreement of mirror points, text, hulls."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    S, T = (rng.normal(size=(n, 300)).astype(np.float32) for n in (20, 90))
    text = b"".join(b"%d 1:%r 3:%r\n" % (label, *row) for label, row in zip(y, X[:, :2].tolist(), strict=True))
    yield lambda: _core.gram(Rbf(0.5), X, X[:20], None)[0].tobytes()
    yield lambda: _core.agreement(S, T).tobytes()
    yield lambda: b"".join(part.tobytes() for part in _core.read_svmlight(text, 1, 100)[:4])
    yield lambda: PrunedPerceptronClassifier(5, random_state=0).fit(X, y).decision_function(X).tobytes()


def make_calls(head: str) -> list[Call]:
    """The calls of a machine that has not been used yet, so that its plans are made by the threads, too."""
    if head == "none":
        return list(other_calls())
    rng = np.random.default_rng(1)
    thin = random_machine(rng, kernel="rbf", head="linear", n_vectors=90, n_points_features=7, sparse_points=True)
    machine = random_machine(rng, kernel="rbf", head=head, n_vectors=90, n_points_features=7, sparse_points=False)
    return [*scoring(head, machine), *(scoring(head, thin) if head == "linear" else ())]


@needs_core
@pytest.mark.parametrize("head", [*HEADS, "none"])
def test_calls_of_many_threads_give_the_answers_of_one(head: str, n_threads: None) -> None:
    expected = [call() for call in make_calls(head)]
    calls = make_calls(head)
    n = len(calls)

    def work(number: int) -> list[int]:
        places = [(number + i) % n for i in range(2 * n)]
        return [place for place in places if calls[place]() != expected[place]]

    assert at_once(work) == [[]] * N_CALLERS


def test_one_object_serves_many_threads(binary: Any) -> None:
    X, _, _, slim = binary
    fresh = pickle.loads(pickle.dumps(slim))
    batches = [X, X[:1], X.astype(np.float32), sparse.csr_array(X)]
    expected = [slim.predict_proba(batch).tobytes() for batch in batches]

    def work(offset: int) -> list[int]:
        places = [i % 4 for i in range(offset, offset + 200)]
        return [i for i in places if fresh.predict_proba(batches[i]).tobytes() != expected[i]]

    assert at_once(work) == [[]] * N_CALLERS

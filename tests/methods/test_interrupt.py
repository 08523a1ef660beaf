"""Ctrl-C: obeyed at once, with the best so far in hand."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import slimsvm
from oracles import expansion as oracle
from oracles.parents import parent
from slimsvm.compression import compress
from slimsvm.estimator import SlimClassifier, SlimRegressor
from slimsvm.methods import ReducedSet
from slimsvm.methods.reduced_set.expansion import Expansion
from slimsvm.methods.reduced_set.incremental import Residual
from slimsvm.methods.reduced_set.select import Selection

# What each solver calls over and over.
WHERE: dict[str, tuple[type[Any], str]] = {
    "irprop": (Residual, "loss"),
    "fixed_point": (Residual, "fixed_point"),
    "lbfgs": (Expansion, "loss_and_gradient"),
    "select": (Selection, "_extend"),
}
X = np.random.default_rng(0).normal(size=(80, 2))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A Ctrl-C in the k-th call of a method."""

    def at(owner: type[Any], name: str, k: int) -> None:
        honest, calls = getattr(owner, name), iter(range(10**9))

        def interrupted(*args: Any) -> Any:
            if next(calls) == k:
                raise KeyboardInterrupt
            return honest(*args)

        monkeypatch.setattr(owner, name, interrupted)

    return at


@pytest.mark.parametrize("solver", WHERE)
def test_the_best_so_far_is_a_machine_of_its_own(solver: Any, interrupt: Any) -> None:
    machine = parent("rbf")
    calls = {"irprop": 300, "fixed_point": 60, "lbfgs": 9, "select": 4}[solver]
    interrupt(*WHERE[solver], calls)
    with pytest.raises(slimsvm.Interrupted, match="`best` of this exception is the best result so far") as caught:
        compress(machine, n_vectors=12, method=ReducedSet(solver=solver, refine=False), random_state=0)
    best: Any = caught.value.best
    assert isinstance(caught.value, KeyboardInterrupt)
    assert type(best) is SlimRegressor
    assert 1 <= best.n_vectors_ <= 12
    rho2 = oracle.rho2(machine, best.machine_)
    assert rho2 < oracle.square(machine)
    assert best.history_[-1]["rho2"] == pytest.approx(rho2, rel=1e-6)
    assert np.isfinite(best.predict(np.zeros((2, 3)))).all()


@pytest.mark.parametrize("refine", ["lbfgs", "irprop"])
def test_a_refinement_that_is_interrupted_keeps_what_it_gained(refine: Any, interrupt: Any) -> None:
    machine = parent("rbf")
    rough = compress(machine, n_vectors=5, method=ReducedSet(solver="irprop", refine=False), random_state=0)
    interrupt(Expansion, "loss_and_gradient" if refine == "lbfgs" else "joint_loss_and_gradient", 12)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(machine, n_vectors=5, method=ReducedSet(solver="irprop", refine=refine), random_state=0)
    best: Any = caught.value.best
    assert best.n_vectors_ == 5
    assert best.history_[-1]["rho2"] < rough.history_[-1]["rho2"]


def test_of_several_sizes_the_best_finished_counts(interrupt: Any) -> None:
    """The second, smaller size has hardly begun: the first is the best."""
    machine = parent("rbf")
    used = []
    honest = Expansion.loss_and_gradient

    def counted(self: Expansion, Z: Any) -> Any:
        used.append(len(Z))
        return honest(self, Z)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Expansion, "loss_and_gradient", counted)
        whole = compress(machine, n_vectors=[8, 3], method=ReducedSet(solver="lbfgs"), random_state=0)
    interrupt(Expansion, "loss_and_gradient", used.count(8) + 1)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(machine, n_vectors=[8, 3], method=ReducedSet(solver="lbfgs"), random_state=0)
    assert caught.value.best.machine_ == whole[0].machine_  # type: ignore[attr-defined]


def test_the_size_is_still_being_looked_for(interrupt: Any) -> None:
    interrupt(Residual, "loss", 200)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(parent("rbf", n=60), method=ReducedSet(solver="irprop", max_distance=1e-3), random_state=0)
    assert caught.value.best.n_vectors_ >= 1  # type: ignore[attr-defined]


def test_before_there_is_anything_the_best_is_nothing(interrupt: Any) -> None:
    interrupt(Residual, "loss", 0)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(parent("rbf"), n_vectors=5, method=ReducedSet(solver="irprop"), random_state=0)
    assert caught.value.best is None


def test_a_pipeline_keeps_its_steps(interrupt: Any) -> None:
    model = make_pipeline(MinMaxScaler(), SVC()).fit(X, Y)
    interrupt(Residual, "loss", 200)
    with pytest.raises(slimsvm.Interrupted) as caught:
        compress(model, n_vectors=9, method=ReducedSet(solver="irprop"), random_state=0)
    best: Any = caught.value.best
    assert isinstance(best, Pipeline)
    assert type(best[-1]) is SlimClassifier
    assert best.predict(X).shape == Y.shape


def test_a_classifier_keeps_the_best_in_its_machine(interrupt: Any) -> None:
    interrupt(Residual, "loss", 300)
    trainer = slimsvm.ReducedSetClassifier(20, random_state=0)
    with pytest.raises(slimsvm.Interrupted):
        trainer.fit(X, Y)
    assert 1 <= trainer.n_vectors_ < 20
    assert trainer.machine_.n_vectors == trainer.history_[-1]["n_vectors"]
    assert trainer.score(X, Y) > 0.6


def test_a_classifier_without_anything_better_keeps_its_svm(interrupt: Any) -> None:
    interrupt(Residual, "loss", 0)
    trainer = slimsvm.ReducedSetClassifier(20, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(X, Y)
    svc = SVC().fit(X, Y)
    assert trainer.n_vectors_ == len(svc.support_)
    np.testing.assert_allclose(trainer.decision_function(X), svc.decision_function(X), atol=1e-9)


LONG = """
import time
import numpy as np
import slimsvm
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
rng = np.random.default_rng(0)
head = LinearHead(rng.normal(size=(6000, 1)), [0.0])
machine = slimsvm.KernelMachine(Rbf(0.02), rng.normal(size=(6000, 40)), head, Value())
try:
    method = slimsvm.methods.ReducedSet(solver="irprop")
    slimsvm.compress(machine, n_vectors=3000, method=method, random_state=0, verbose=2)
except slimsvm.Interrupted as stop:
    print("obeyed", time.monotonic(), stop.best.n_vectors_, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_a_real_one_in_a_long_run() -> None:
    work = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert work.stdout is not None
        told = next(line for line in work.stdout if "step 3, " in line)
        assert "3 of 6000 vectors" in told
        sent = time.monotonic()
        work.send_signal(signal.SIGINT)
        said = work.communicate(timeout=20)[0].splitlines()[-1].split()
    finally:
        work.kill()
        work.wait()
    assert work.returncode == 0
    assert said[0] == "obeyed"
    assert float(said[1]) - sent < 3.0
    assert int(said[2]) >= 3

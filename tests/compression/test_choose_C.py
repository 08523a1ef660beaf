"""C of a machine of a given size: smaller than the model's C if held-out samples lose no more by that."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC, SVR

import slimsvm
from slimsvm.compression import choose_C, search
from slimsvm.compression.candidates.cache import CANDIDATES, EARLY_EXIT, CandidateCache
from slimsvm.compression.choose_C import REFITTED, SHARES, CostChooser
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.validation.folds import FOLDS, n_repeats, stratified_splits
from slimsvm.methods import Selection
from slimsvm.methods.common.progress import Progress

X, CLEAN = make_moons(200, noise=0.3, random_state=0)
Y = np.where(np.random.default_rng(0).random(200) < 0.25, 1 - CLEAN, CLEAN)  # labels that a large C follows
X_TEST, Y_TEST = make_moons(2000, noise=0.3, random_state=1)
SMALLER = "times the model's C"


def overfitted() -> Any:
    return SVC(C=30.0, gamma=3.0).fit(X, Y)


def candidates_of(svc: Any, chooser: CostChooser | None = None, rows: Any = slice(None)) -> CandidateCache:
    return CandidateCache(Problem.of(svc, X[rows], Y[rows]), Request(svc), adjust=chooser)


@pytest.fixture(scope="module")
def chosen() -> Any:
    """A machine whose size, of 60 vectors, is given by its bytes."""
    return slimsvm.compress(overfitted(), X, Y, max_bytes=724, random_state=0)


@cache
def chosen_by(scorer: Any, method: str) -> tuple[CostChooser, CandidateCache]:
    """A chooser that has chosen C for the machine of 60 vectors, and its candidates."""
    chooser = CostChooser(scorer)
    candidates = candidates_of(overfitted(), chooser)
    candidates.machine(method, 60)
    return chooser, candidates


@pytest.mark.parametrize("method", REFITTED)
def test_a_c_that_follows_every_label_is_lowered(method: str) -> None:
    chooser, candidates = chosen_by(None, method)
    chosen, plain = candidates.machine(method, 60), candidates_of(overfitted()).machine(method, 60)
    assert SMALLER in chooser.describe(candidates, method, 60)
    assert SMALLER in chooser.describe(candidates, method + EARLY_EXIT, 60)
    np.testing.assert_array_equal(chosen.points, plain.points)
    errors = [np.mean(one.predict(X_TEST) != Y_TEST) for one in (chosen, plain)]
    assert errors[0] < errors[1] - 0.02


@pytest.mark.parametrize("method", sorted(set(CANDIDATES) - set(REFITTED)))
def test_machines_without_such_coefficients_stay_as_they_are(method: str) -> None:
    svc, chooser = overfitted(), CostChooser(None)
    candidates = candidates_of(svc, chooser)
    assert candidates.machine(method, 60) == candidates_of(svc).machine(method, 60)
    assert chooser.describe(candidates, method, 60) == ""


def test_a_good_c_stays() -> None:
    """Stripes that a machine of a smaller C cannot follow."""
    points = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    labels = np.where(np.sin(8 * points[:, 0]) > 0, "a", "b")
    small = slimsvm.compress(SVC(C=0.3, gamma=30.0).fit(points, labels), points, labels, n_vectors=15, random_state=0)
    assert SMALLER not in small.report_.reason


def test_compress_chooses_c(chosen: Any) -> None:
    kept = slimsvm.compress(overfitted(), X, Y, n_vectors=60, method=chosen.report_.method, random_state=0)
    assert SMALLER in chosen.report_.reason
    assert chosen.report_.method == kept.report_.method
    assert SMALLER not in kept.report_.reason
    assert chosen.score(X_TEST, Y_TEST) > kept.score(X_TEST, Y_TEST) + 0.02


@pytest.mark.slow
def test_any_number_of_jobs_chooses_the_same_c(chosen: Any) -> None:
    again = slimsvm.compress(overfitted(), X, Y, max_bytes=724, n_jobs=2, random_state=0)
    assert again.machine_ == chosen.machine_


@pytest.mark.parametrize(
    "asked",
    [
        {"n_vectors": 20, "method": "sparse_margin"},
        {"max_loss": 0.02, "cv": 2, "method": "sparse_margin"},
        {"max_disagreement": 0.2, "cv": 2, "method": "selection"},
    ],
    ids=lambda asked: ", ".join(asked),
)
def test_c_is_the_models_where_it_is_no_choice(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A named method is that method, with the C that its settings have or the model's own."""
    monkeypatch.setattr(search, "CostChooser", None)  # calling it fails
    svc = SVC(C=30.0, gamma=3.0).fit(X[:60], Y[:60])
    assert SMALLER not in slimsvm.compress(svc, X[:60], Y[:60], random_state=0, **asked).report_.reason


def test_without_labels_the_model_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CostChooser", None)
    assert SMALLER not in slimsvm.compress(overfitted(), X, n_vectors=20, random_state=0).report_.reason


def test_where_all_vectors_stay_the_report_is_about_the_parent() -> None:
    some, labels = X[:40], Y[:40]
    svc = SVC(C=30.0, gamma=3.0).fit(some, labels)
    held_out = X_TEST[:50], Y_TEST[:50]
    with pytest.warns(UserWarning, match="it is returned unchanged"):
        same = slimsvm.compress(svc, some, labels, n_vectors=500, validation=held_out, random_state=0)
    assert SMALLER not in same.report_.reason
    assert same.report_.estimate == 0.0


def test_samples_may_be_too_few_for_any_choice() -> None:
    """A standard error by ROC AUC needs more than ten samples, and a fold of equal points has no vectors."""
    few = np.r_[np.flatnonzero(Y == 0)[:4], np.flatnonzero(Y == 1)[:4]]
    svc = SVC(gamma=3.0).fit(X[few], Y[few])
    held: Any = {"validation": (X_TEST[:50], Y_TEST[:50]), "random_state": 0}
    assert slimsvm.compress(svc, X[few], Y[few], n_vectors=2, scoring="roc_auc", **held).n_vectors_ == 2
    flat, labels = np.zeros((42, 1)), 1 - np.arange(42) % 2
    flat[0] = 1.0
    slimsvm.compress(SVC().fit(flat, labels), flat, labels, n_vectors=1, validation=(flat, labels), random_state=0)


def test_ctrl_c_in_the_calibration_leaves_the_finished_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise slimsvm.Interrupted(overfitted_machine())

    def overfitted_machine() -> Any:
        return Problem.of(overfitted()).machine

    monkeypatch.setattr(search, "validation_scores", stop)
    with pytest.raises(slimsvm.Interrupted) as caught:
        slimsvm.compress(overfitted(), X, Y, n_vectors=20, method="selection", calibrate="sigmoid", random_state=0)
    left: Any = caught.value.best
    assert left.n_vectors_ == 20


def test_folds_judge_machines_that_were_made_the_same_way() -> None:
    def losses(**asked: Any) -> list[float]:
        request = Request(overfitted(), X, Y, n_vectors=60, cv=2, **asked)
        found = search.Search(request, Problem.of(request.model, X, Y), 0, Progress("compress", 0))
        found.hold_out()
        assert found.validation is not None
        return [found.validation.assess(method, 60).loss.value for method in ("selection", "reduced_set")]

    with_choice, without = losses(), losses(method=Selection())
    assert with_choice[0] < without[0]
    assert with_choice[1] == without[1]


def test_bytes_alone_give_a_size(chosen: Any) -> None:
    assert chosen.n_vectors_ == 60
    assert SMALLER in chosen.report_.reason


def test_the_score_decides() -> None:
    """By a score that wants errors, the C is another one than by accuracy."""

    def errors(machine: Any, rows: Any, y: Any) -> float:
        return float(np.mean(machine.predict(rows) != y))

    described = []
    for scorer in (None, errors):
        chooser, candidates = chosen_by(scorer, "selection")
        described.append(chooser.describe(candidates, "selection", 60))
    assert described[0] != described[1]


def test_several_classes_weights_and_a_class_of_one_sample() -> None:
    features, labels = load_iris(return_X_y=True)
    svc = SVC(C=10.0, class_weight="balanced").fit(features, labels)
    weights = np.where(np.arange(150) % 5, 1.0, 0.0)
    small = slimsvm.compress(svc, features, labels, n_vectors=6, sample_weight=weights, random_state=0)
    assert small.score(features, labels) > 0.93
    rare = np.r_[0, 50:150]
    few = slimsvm.compress(
        SVC().fit(features[rare], labels[rare]), features[rare], labels[rare], n_vectors=6, random_state=0
    )
    assert SMALLER not in few.report_.reason


def test_ctrl_c_leaves_the_machine_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(CostChooser, "_best_share", stop)
    with pytest.raises(slimsvm.Interrupted) as caught:
        slimsvm.compress(overfitted(), X, Y, n_vectors=60, random_state=0)
    left: Any = caught.value.best
    assert left.n_vectors_ == 60
    methods = ("sparse_margin", "reduced_set+refit", "selection")  # one of them is the first choice
    kept = [slimsvm.compress(overfitted(), X, Y, n_vectors=60, method=one, random_state=0) for one in methods]
    assert left.machine_ in [one.machine_ for one in kept]


def test_values_have_no_such_choice() -> None:
    values = np.sin(2 * X[:, 0]) + X[:, 1]
    small = slimsvm.compress(SVR().fit(X, values), X, values, n_vectors=10, random_state=0)
    assert SMALLER not in small.report_.reason


def test_of_many_samples_one_part_chooses_c() -> None:
    features, labels = make_moons(5001, noise=0.05, random_state=0)
    svc = SVC(C=30.0, gamma=1.0).fit(features[:200], labels[:200])
    for n, n_folds in ((5000, 5), (5001, 1)):
        small = slimsvm.compress(svc, features[:n], labels[:n], n_vectors=5, random_state=0)
        assert SMALLER in small.report_.reason
        assert f"{n_folds} cross-validation fold" in small.report_.held_out


def test_of_few_samples_folds_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def splits(y: Any) -> list[Any]:
        return list(stratified_splits(y, FOLDS, range(n_repeats(len(y)))))

    y = np.arange(600) % 2
    assert [len(splits(y[:n])) for n in (40, 200, 300, 600)] == [20, 15, 10, 5]
    held = np.concatenate([test for _, test in splits(y[:200])])
    assert (np.bincount(held) == 3).all()
    assert len(splits(np.r_[0, np.ones(9, dtype=int)])) == 0
    assert len(splits(np.repeat([0, 1], [3, 597]))) == 3
    assert SHARES[0] == 1.0

    numbers: list[int] = []
    part_of = choose_C._part_of

    def spy(candidates: CandidateCache, part: Problem, number: int, adjust: Any) -> CandidateCache:
        numbers.append(number)
        return part_of(candidates, part, number, adjust)

    monkeypatch.setattr(choose_C, "_part_of", spy)
    svc = SVC(C=30.0, gamma=3.0).fit(X[:40], Y[:40])
    candidates_of(svc, CostChooser(None), slice(40)).machine("selection", 5)
    assert numbers == list(range(20))


@pytest.mark.parametrize(
    "asked",
    [
        {"max_loss": 0.1, "cv": 3},
        {"n_vectors": 20, "cv": 2, "groups": np.arange(120) // 2},
        {"n_vectors": 20, "validation": (X[120:240], Y[120:240])},
    ],
    ids=lambda asked: ", ".join(asked),
)
def test_held_out_samples_of_the_user_choose_c_too(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without folds of our own: a share of C is taken if it is better by a standard error, else the model's C stays."""
    monkeypatch.setattr(search, "CostChooser", None)  # calling it fails
    svc = SVC(C=1e4, gamma=3.0).fit(X[:120], Y[:120])
    small = slimsvm.compress(svc, X[:120], Y[:120], random_state=0, **asked)
    shares = {one["method"].partition("@")[2] for one in small.report_.tried}
    assert shares == {"", "0.3", "0.1", "0.03"}
    chosen = SMALLER in small.report_.reason
    losses = {one["method"].partition("@")[2]: one["loss"] for one in small.report_.tried if "@" in one["method"]}
    assert chosen or min(losses.values()) >= small.report_.estimate - small.report_.standard_error

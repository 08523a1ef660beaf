"""LIBSVM model files, against svm-predict, svm-scale, the libsvm package and our own reader."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import NEEDS_DATA, REAL, Case, check_labels, random_cases, real_case, tolerance
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC

import slimsvm
from oracles import libsvm_tools
from slimsvm import KernelMachine, UnsupportedExportError, export
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.formats.libsvm import files
from slimsvm.heads import LinearHead, MirrorHead, PairsHead, PairwiseHead
from slimsvm.importers import read_libsvm_machine
from slimsvm.input_map import InputMap
from slimsvm.kernels import Laplacian, Linear, Polynomial, Rbf

KERNELS = ("rbf", "poly", "linear", "sigmoid")
HEADS = ("linear", "pairs", "pairwise", "staged")


@pytest.fixture(scope="module")
def tools() -> None:
    libsvm_tools.require_tools("svm-predict", "svm-scale")


def logits(machine: KernelMachine, scores: Any) -> Any:
    """What decides: the scores, or what the sigmoids read where probabilities decide."""
    calibration = machine.calibration
    if isinstance(calibration, Sigmoid) and calibration.decides:
        return -(scores * calibration.a + calibration.b)
    return scores


def libsvm_scores(machine: KernelMachine, X: Any) -> Any:
    """The decision values that LIBSVM must have, and the labels (places among the classes) in its order."""
    scores, answer = logits(machine, machine.scores(X)), machine.answer
    if not isinstance(answer, Classes):
        return scores, ()
    if machine.head.gives_pairs:
        return scores, answer.order
    if answer.n_classes == 2:
        return scores if answer.order == (1, 0) else -scores, answer.order
    pairs = [scores[:, i] - scores[:, j] for i, j in combinations(range(answer.n_classes), 2)]
    return np.stack(pairs, axis=1), tuple(range(answer.n_classes))


def compare(case: Case, folder: Path, **options: Any) -> int:
    """Export, and compare scores, labels and what is read back; the number of labels compared."""
    case = Case(case.name, case.machine.without_early_exit(), case.X)
    machine, model, data = case.machine, folder / "a.model", folder / "a.data"
    done = export(machine, "libsvm", model, **options)
    data.write_text(libsvm_tools.data_text(case.X, [0] * len(case.X)))
    wanted, order = libsvm_scores(machine, case.X)
    labels, found = libsvm_tools.values(model, case.X)
    calibration = machine.calibration
    factor = 1 + np.abs(calibration.a).max() if isinstance(calibration, Sigmoid) else 1.0
    slack = 2 * factor * tolerance(machine, case.X)
    assert (np.abs(found[:, : wanted.shape[1]] - wanted).max(axis=1) <= slack).all(), case
    back = read_libsvm_machine(model)
    assert back.n_features == case.X.shape[1]
    assert (np.abs(libsvm_scores(back, case.X)[0] - wanted).max(axis=1) <= slack).all(), case
    printed = np.array([float(line[0]) for line in libsvm_tools.svm_predict(model, data)])
    if isinstance(machine.answer, Value):
        np.testing.assert_allclose(printed, case.labels.ravel(), rtol=2e-5, atol=1e-5)  # svm-predict prints six digits
        return len(printed)
    if isinstance(machine.answer, Classes):
        meaning = done.facts["labels"]
        assert [meaning[label] for label in labels] == machine.classes[list(order)].tolist()
        printed = np.array([meaning[int(label)] for label in printed])
    return check_labels(case, printed)


def accepted(cases: Any) -> Any:
    """The cases that a LIBSVM file can hold; every other one is refused."""
    for case in cases:
        with suppress(UnsupportedExportError):
            files(case.machine, "a.model")
            yield case


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("n", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_parity_on_random_machines(n: int, tmp_path: Path) -> None:
    drawn = random_cases(2 * n, kernels=KERNELS, heads=HEADS, input_map="none")
    cases = list(islice(accepted(drawn), n))
    assert len(cases) == n
    assert {case.machine.head.name for case in cases} == set(HEADS)
    compared = [compare(case, tmp_path) / len(case.X) for case in cases]
    assert np.mean(compared) > 0.7


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("name", REAL)
def test_parity_on_real_machines(name: str, tmp_path: Path) -> None:
    case = real_case(name)
    if case.machine.input_map is None:
        assert compare(case, tmp_path) > 0.9 * len(case.X)
        return
    scaled = replace(case.machine, input_map=None)
    with pytest.raises(UnsupportedExportError, match="scaling=True"):
        export(case.machine, "libsvm", tmp_path / "a.model")
    X = case.machine.input_map.apply(case.X)
    assert compare(Case(name, scaled, X), tmp_path) > 0.9 * len(X)
    assert set(NEEDS_DATA) < set(REAL)


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_scaler_goes_into_a_range_file(kernel: str, tmp_path: Path) -> None:
    wishes: dict[str, Any] = {"heads": ("linear",), "answers": ("value", "inlier"), "input_map": "diagonal"}
    for case in accepted_with_scaling(random_cases(8, kernels=(kernel,), gammas=False, **wishes)):
        model, data = tmp_path / "a.model", tmp_path / "a.data"
        done = export(case.machine, "libsvm", model, scaling=True)
        data.write_text(libsvm_tools.data_text(case.X, [0] * len(case.X)))
        if kernel == "linear":  # becomes part of the vectors
            assert [path.name for path in done.paths] == ["a.model"]
        else:
            assert [path.name for path in done.paths] == ["a.model", "a.model.range"]
            assert any("svm-scale -r a.model.range" in note for note in done.notes)
            data = libsvm_tools.svm_scale(tmp_path / "a.model.range", data)
        printed = np.array([float(line[0]) for line in libsvm_tools.svm_predict(model, data)])
        slack = 1e4 * tolerance(case.machine, case.X)  # svm-scale prints six digits
        far = (
            np.abs(case.scores[:, 0]) > slack if isinstance(case.machine.answer, Inlier) else np.ones(len(case.X), bool)
        )
        assert (np.abs(printed - case.labels.ravel())[far] <= slack[far]).all(), case


def accepted_with_scaling(cases: Any) -> list[Case]:
    kept = [case for case in cases if case.machine.head.n_scores == 1]
    assert kept
    return kept


def test_a_constant_feature_is_left_out_or_refused(tmp_path: Path) -> None:
    given = InputMap([1.0, 2.0], [0.0, 3.0], [0.5, 0.0])
    machine = KernelMachine(Rbf(0.3), [[1.0, 2.0]], LinearHead([[1.0]], [0.0]), Value(), input_map=given)
    export(machine, "libsvm", tmp_path / "a", scaling=True)
    assert (tmp_path / "a.range").read_text().splitlines()[2] == "1 1 1"
    assert read_libsvm_machine(tmp_path / "a").points.tolist() == [[0.5, 2.0]]
    with pytest.raises(UnsupportedExportError, match="replaces feature 0 by a constant"):
        export(replace(machine, kernel=Polynomial(0.3)), "libsvm", tmp_path / "a", scaling=True)


def test_what_libsvm_holds_is_read_back_equal(tmp_path: Path) -> None:
    kept = 0
    for case in random_cases(120, kernels=KERNELS, heads=("linear", "pairwise"), input_map="none", gammas=False):
        machine = case.machine
        answer = machine.answer
        if isinstance(answer, Classes):
            machine = replace(machine, answer=Classes(np.arange(answer.n_classes) - 1, answer.order))
        if isinstance(machine.calibration, Sigmoid | PairwiseSigmoid):
            machine = replace(machine, calibration=replace(machine.calibration, decides=False))
        elif machine.calibration is not None:
            machine = replace(machine, calibration=None)
        one = machine.head.n_scores == 1 and (not isinstance(answer, Value) or answer.flat)
        if not (one or (machine.head.name == "pairwise" and machine.answer.n_classes > 2)):  # type: ignore[attr-defined]
            continue
        if machine.head.name == "pairwise" and machine.answer.n_classes == 2:  # type: ignore[attr-defined]
            continue  # comes back with a linear head
        export(machine, "libsvm", tmp_path / "a.model")
        back = read_libsvm_machine(tmp_path / "a.model")
        points = sparse.csr_array(back.points).toarray()
        as_it_was = sparse.issparse(machine.points)
        back = replace(back, points=sparse.csr_array(points) if as_it_was else points)
        assert back == machine
        kept += 1
    assert kept > 30


def iris_machine() -> KernelMachine:
    """Three classes on shared vectors."""
    X, y = load_iris(return_X_y=True)
    fitted = slimsvm.ReducedSVC(12, gamma=0.3, random_state=0).fit(X, y)
    machine: KernelMachine = fitted.machine_
    return machine


def test_shared_vectors_cost_a_copy_per_class_but_one(tmp_path: Path) -> None:
    machine = iris_machine()
    assert machine.n_vectors == 12
    done = export(machine, "libsvm", tmp_path / "iris.model")
    assert done.facts["n_vectors"] == 24
    assert done.facts["n_bytes"] == (tmp_path / "iris.model").stat().st_size
    assert any("12 vectors that the classes share are written 24 times" in note for note in done.notes)
    assert read_libsvm_machine(tmp_path / "iris.model").head.blocks == (12, 12, 0)


def test_vectors_of_one_class_are_written_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coef = np.zeros((9, 3))
    coef[np.arange(9), np.repeat([0, 1, 2], 3)] = rng.normal(size=9)
    machine = KernelMachine(Rbf(0.5), rng.normal(size=(9, 2)), LinearHead(coef, rng.normal(size=3)), Classes([0, 1, 2]))
    done = export(machine, "libsvm", tmp_path / "a")
    assert (done.facts["n_vectors"], done.notes) == (9, ())
    pairwise = PairwiseHead(rng.normal(size=(9, 2)), rng.normal(size=3), (2, 3, 4))
    again = replace(machine, head=pairwise.pairs())
    assert isinstance(again.head, PairsHead)
    export(again, "libsvm", tmp_path / "b")
    assert read_libsvm_machine(tmp_path / "b").head == pairwise


@pytest.mark.usefixtures("tools")
def test_one_file_per_class(tmp_path: Path) -> None:
    machine = replace(iris_machine(), calibration=Sigmoid([-1.0, -2.0, -3.0], [0.1, 0.2, 0.3]))
    X = load_iris().data
    done = export(machine, "libsvm", tmp_path / "iris.model", binary=True)
    assert [path.name for path in done.paths] == ["iris-0.model", "iris-1.model", "iris-2.model"]
    assert any("One file per class" in note for note in done.notes)
    assert done.facts["n_vectors"] == 36
    assert done.facts["files"] == {"iris-0.model": 0, "iris-1.model": 1, "iris-2.model": 2}
    scores, chances = [], []
    for path in done.paths:
        labels, found = libsvm_tools.values(path, X)
        assert labels == [1, -1]
        scores.append(found[:, 0])
        chances.append(libsvm_tools.values(path, X, probability=True)[1][:, 0])
    np.testing.assert_allclose(np.stack(scores, axis=1), machine.scores(X), atol=1e-9 * np.abs(machine.head.coef).sum())
    P = np.stack(chances, axis=1)
    np.testing.assert_allclose(P / P.sum(axis=1, keepdims=True), machine.predict_proba(X), atol=1e-6)
    values = replace(machine, answer=Value(flat=False), calibration=None)
    with pytest.raises(UnsupportedExportError, match="predicts one value, and this machine predicts 3"):
        export(values, "libsvm", tmp_path / "v")
    assert len(export(values, "libsvm", tmp_path / "v", binary=True).paths) == 3
    svc = SVC().fit(*load_iris(return_X_y=True))
    with pytest.raises(UnsupportedExportError, match="binary=True writes one file per class"):
        export(slimsvm.compress(svc), "libsvm", tmp_path / "p", binary=True)
    done = export(replace(machine, calibration=Softmax(1.0)), "libsvm", tmp_path / "p", binary=True)
    assert any("Probabilities are left out" in note for note in done.notes)


def test_one_file_per_class_where_probabilities_decide(tmp_path: Path) -> None:
    machine = replace(iris_machine(), calibration=Sigmoid([-1.0, -0.2, -3.0], [0.4, -0.5, 0.3], decides=True))
    X = load_iris().data
    assert (machine.predict(X) != machine.scores(X).argmax(axis=1)).any()
    paths = export(machine, "libsvm", tmp_path / "iris.model", binary=True).paths
    scores = np.stack([read_libsvm_machine(path, n_features=4).decision(X) for path in paths], axis=1)
    assert (scores.argmax(axis=1) == machine.predict(X)).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("decides", [False, True])
def test_probabilities_of_two_classes(order: tuple[int, int], decides: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    machine = KernelMachine(
        Rbf(0.5),
        rng.normal(size=(6, 2)),
        LinearHead(rng.normal(size=(6, 1)), [0.2]),
        Classes([3, 7], order),
        calibration=Sigmoid([-1.5], [0.7], decides),
    )
    X = rng.normal(size=(50, 2))
    for made in (machine, replace(machine, calibration=Softmax(2.0, decides))):
        export(made, "libsvm", tmp_path / "a")
        labels, P = libsvm_tools.values(tmp_path / "a", X, probability=True)
        assert labels == [[3, 7][i] for i in order]
        np.testing.assert_allclose(P[:, :2][:, np.argsort(labels)], made.predict_proba(X), atol=1e-6)
        _, found = libsvm_tools.values(tmp_path / "a", X)
        assert (np.where(found[:, 0] > 0, *labels) == made.predict(X)).all()


def test_probabilities_of_several_classes(tmp_path: Path) -> None:
    rng, X = np.random.default_rng(2), load_iris().data
    parent = slimsvm.compress(SVC(gamma=0.3).fit(*load_iris(return_X_y=True))).machine_
    pairs = replace(parent, calibration=PairwiseSigmoid(-rng.uniform(1, 2, 3), rng.normal(size=3)))
    soft = replace(iris_machine(), calibration=Softmax(2.0, decides=True))
    for machine, off in ((pairs, 1e-6), (soft, 0.02)):  # LIBSVM stops its coupling of pairs early
        export(machine, "libsvm", tmp_path / "a")
        labels, P = libsvm_tools.values(tmp_path / "a", X, probability=True)
        assert labels == [0, 1, 2]
        np.testing.assert_allclose(P[:, :3], machine.predict_proba(X), atol=off)
    sigmoid = replace(iris_machine(), calibration=Sigmoid([-1.0, -2.0, -3.0], [0.1, 0.2, 0.3], decides=True))
    done = export(sigmoid, "libsvm", tmp_path / "a")
    assert any("Probabilities are left out" in note for note in done.notes)
    assert "probA" not in (tmp_path / "a").read_text()
    assert (read_libsvm_machine(tmp_path / "a").predict(X) == sigmoid.predict(X)).all()


def test_a_calibrated_svc_keeps_its_labels(tmp_path: Path) -> None:
    X, y = make_moons(200, noise=0.4, random_state=0)
    parent = CalibratedClassifierCV(FrozenEstimator(SVC(class_weight={0: 5}).fit(X, y))).fit(X, y)
    small = slimsvm.compress(parent)
    assert small.machine_.calibration.decides
    done = export(small, "libsvm", tmp_path / "a")
    assert any("logits" in note for note in done.notes)
    back = read_libsvm_machine(tmp_path / "a")
    assert (back.predict(X) == parent.predict(X)).all()
    np.testing.assert_allclose(back.predict_proba(X), parent.predict_proba(X), atol=1e-9)


def test_labels_that_are_no_integers_are_numbered(tmp_path: Path) -> None:
    machine = replace(iris_machine(), answer=Classes(["setosa", "versicolor", "virginica"]))
    done = export(machine, "libsvm", tmp_path / "a")
    assert dict(done.facts["labels"]) == {0: "setosa", 1: "versicolor", 2: "virginica"}
    assert any("0 is 'setosa', 1 is 'versicolor'" in note for note in done.notes)
    for labels, written in (
        ([-1.0, 2.0, 5.0], [-1, 2, 5]),
        ([0.5, 1.0, 2.0], [0, 1, 2]),
        ([0, 1, 2**31], [0, 1, 2]),
        ([-(2**63), 1, 2], [0, 1, 2]),
        (np.array(["a", "b", "c"], dtype=object), [0, 1, 2]),
    ):
        done = export(replace(machine, answer=Classes(labels)), "libsvm", tmp_path / "a")
        assert list(done.facts["labels"]) == written
        assert dict(done.facts["labels"]) == dict(zip(written, labels, strict=True))


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(0.4, 0.5, 2.0), Rbf(0.4)])
def test_maps_become_part_of_the_vectors_where_that_is_exact(kernel: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    tall = 0.7 * np.linalg.qr(rng.normal(size=(4, 3)))[0]  # orthogonal columns of one length
    shift, offset = rng.normal(size=4), rng.normal(size=4)
    maps = {
        "scale": InputMap(np.zeros(4), rng.normal(size=4)),
        "alike": InputMap(shift, [0.5, -0.5, 0.5, 0.5], offset),
        "turn": InputMap(shift, turn, offset),
        "tall": InputMap(shift[:3], tall, offset),
        "project": InputMap(np.zeros(6), rng.normal(size=(4, 6))),
        "any": InputMap(shift, rng.normal(size=4), offset),
    }
    exact = {"linear": set(maps), "poly": {"scale", "project"}, "rbf": {"alike", "turn", "tall"}}[kernel.name]
    for name, given in maps.items():
        for points in (rng.normal(size=(5, 4)), sparse.csr_array(rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5))):
            head = PairwiseHead(rng.normal(size=(5, 2)), rng.normal(size=3), (2, 2, 1))
            machine = KernelMachine(kernel, points, head, Classes([0, 1, 2]), input_map=given)
            X = rng.normal(size=(20, given.n_features_in))
            if name not in exact:
                with pytest.raises(UnsupportedExportError, match="no preprocessing"):
                    export(machine, "libsvm", tmp_path / "a")
                continue
            assert len(export(machine, "libsvm", tmp_path / "a").paths) == 1
            np.testing.assert_allclose(
                read_libsvm_machine(tmp_path / "a").scores(X), machine.scores(X), atol=1e-10, rtol=1e-10, err_msg=name
            )


def test_refusals(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    machine = KernelMachine(
        Rbf(0.5), rng.normal(size=(4, 2)), LinearHead(rng.normal(size=(4, 1)), [0.1]), Classes([0, 1])
    )
    pairs = PairsHead(rng.normal(size=(4, 3)), np.zeros(3))
    refused = [
        (replace(machine, kernel=Laplacian(0.5)), "laplacian kernel"),
        (replace(machine, head=MirrorHead(rng.normal(size=(4, 1)), [0.0], (0, 1, 2, 3), np.ones(4))), "mirror head"),
        (replace(machine, gammas=[0.1, 0.2, 0.3, 0.4]), "vectors of this machine have several, from 0.1 to 0.4"),
        (replace(machine, kernel=Polynomial(0.5, 0.0, 2.5)), "whole degree. Got 2.5"),
        (replace(machine, head=pairs, answer=Classes([0, 1, 2], break_ties=True)), "resolves them by its scores"),
        (replace(machine, calibration=Softmax(-1.0, decides=True)), "predicts by its softmax calibration"),
    ]
    for one, message in refused:
        for binary in (False, True):
            if not (binary and message.startswith("resolves")):  # refused for another reason
                with pytest.raises(UnsupportedExportError, match=message):
                    export(one, "libsvm", tmp_path / "a", binary=binary)
    assert not list(tmp_path.iterdir())
    same = replace(machine, gammas=np.full(4, 0.25))
    export(same, "libsvm", tmp_path / "a")
    assert read_libsvm_machine(tmp_path / "a").kernel == Rbf(0.25)
    with pytest.raises(TypeError, match="binary and scaling of the libsvm format must be True or False"):
        export(machine, "libsvm", tmp_path / "a", binary="yes")


def test_no_vectors(tmp_path: Path) -> None:
    machine = KernelMachine(Rbf(0.5), np.empty((0, 2)), LinearHead(np.empty((0, 1)), [1.5]), Value())
    export(machine, "libsvm", tmp_path / "a")
    assert libsvm_tools.values(tmp_path / "a", np.zeros((1, 2)))[1][0, 0] == 1.5


def test_votes_do_not_stand_in_for_a_softmax_of_pairs() -> None:
    head = PairsHead(np.zeros((1, 3)), np.array([0.1, -3.0, 0.2]))
    machine = KernelMachine(
        Rbf(1.0), np.array([[0.0, 1.0]]), head, Classes(np.arange(3)), calibration=Softmax(1.0, decides=True)
    )
    with pytest.raises(UnsupportedExportError, match="predicts by its softmax calibration"):
        files(machine, "m")

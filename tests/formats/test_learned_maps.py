"""Machines with maps as training a metric makes them: the same answers in every runtime, dead features never read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
import test_c
import test_scikit_learn
from c_programs import STRICT, self_test
from machines import Case, check_labels, check_scores, learned_cases, tolerance
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from oracles import libsvm_tools
from slimsvm import UnsupportedExportError, _core, evaluation, export, to_sklearn
from slimsvm.answers import Classes, Value
from slimsvm.estimator import load, save, wrap
from slimsvm.formats.c import files
from slimsvm.heads import LinearHead
from slimsvm.input_map import InputMap
from slimsvm.kernels import Polynomial, Rbf
from slimsvm.machine import KernelMachine

UNOPTIMISED = ["gcc", "-std=c99", *STRICT, "-O0"]
needs_compiler = pytest.mark.skipif(which("gcc") is None, reason="no C compiler")
SCALES = np.array([0.0, 2.0, 0.0, 0.5, 1.0, 0.0])
A = np.random.default_rng(0).normal(size=(2, 6)) * (SCALES != 0)
USED = [1, 3, 4]


def machine(scale: Any, **parts: Any) -> KernelMachine:
    """Two classes; the points are zero where a diagonal map is."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 2)) if scale.ndim == 2 else rng.normal(size=(5, 6)) * (scale != 0)
    head = LinearHead(rng.normal(size=(5, 1)), [0.1])
    return KernelMachine(Rbf(0.4), points, head, Classes([0, 1]), input_map=InputMap(np.ones(6), scale), **parts)


both_maps = pytest.mark.parametrize("scale", [SCALES, A], ids=["scales", "projection"])


def test_numpy_and_the_compiled_core_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in learned_cases(24, 3):
        known = case.scores, case.labels
        with monkeypatch.context() as patch:
            patch.setattr(_core, "available", False)
            again = Case(case.name, replace(case.machine), case.X)
            check_scores(case, again.scores)
            check_labels(case, again.labels)
        assert len(known[0]) == len(known[1])


def test_scores_are_those_of_points_and_rows_mapped_by_hand() -> None:
    for case in learned_cases(24, 4, heads=("linear",)):
        m = case.machine
        A = np.diag(m.input_map.scale) if m.input_map.is_diagonal else m.input_map.scale  # type: ignore[union-attr]
        mapped = np.array([[sum(A[f] * (x - m.input_map.shift)) for f in range(len(A))] for x in case.X])  # type: ignore[union-attr]
        check_scores(case, replace(m, input_map=None).scores(mapped))


@needs_compiler
@pytest.mark.parametrize("tables", ["float64", "float32"])
def test_c_in_real_numbers(tables: str, tmp_path: Path) -> None:
    cases = [case.in_float32 if tables == "float32" else case for case in learned_cases(6, 5)]
    for case, result in zip(cases, test_c.exported(cases, tmp_path, tables, UNOPTIMISED), strict=True):
        test_c.check(case, result, np.dtype(tables))


@needs_compiler
@pytest.mark.parametrize("tables", ["int16", "int8", "int8_all"])
def test_c_in_integers_loses_what_was_announced(tables: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    dead = Case("the first feature is dead", machine(A), rng.normal(size=(30, 6)))
    cases = [dead, *learned_cases(6, 6, kernels=("rbf", "laplacian", "poly"))]
    for case, result in zip(cases, test_c.exported(cases, tmp_path, tables, UNOPTIMISED), strict=True):
        test_c.check_announced(case, result)
        size = np.abs(case.machine.head.coef).sum() * max(1.0, np.abs(case.scores).max())
        assert result.made.facts["score_loss"] < (0.01 if tables == "int16" else 0.1) * size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_runtime(dtype: str) -> None:
    pytest.importorskip("onnxruntime")
    import test_onnx_parity

    for case in learned_cases(9, 7):
        test_onnx_parity.compare(case, dtype)


def test_onnx_runtime_keeps_float64_for_a_single_feature() -> None:
    pytest.importorskip("onnxruntime")
    import test_onnx_parity

    rng = np.random.default_rng(1)
    head, scale = LinearHead(rng.normal(size=(6, 1)), [0.1]), np.array([0.0, 1.31, 0.0])
    points = rng.normal(size=(6, 3)) * (scale != 0)
    one = KernelMachine(Polynomial(0.3, 0.5, 2.0), points, head, Value(), input_map=InputMap(np.full(3, 0.37), scale))
    test_onnx_parity.compare(Case("one feature", one, rng.normal(size=(20, 3))), "float64")


def test_scikit_learn_objects() -> None:
    compared = 0
    for case in learned_cases(30, 8):
        model = test_scikit_learn.made_quietly(case.machine)
        compared += 0 if model is None else test_scikit_learn.compare(case, model)
    assert compared > 100


def test_scikit_learn_has_the_map_as_its_first_step() -> None:
    for scale, kind in ((SCALES, MinMaxScaler), (SCALES + 1, StandardScaler)):
        assert isinstance(to_sklearn(machine(scale))[0], kind)
    assert [type(step) for _, step in to_sklearn(machine(A)).steps[:2]] == [StandardScaler, TruncatedSVD]


@both_maps
def test_slim_files_keep_the_map(scale: Any, tmp_path: Path) -> None:
    one = machine(scale, feature_names=tuple("abcdef"))
    save(one, tmp_path / "m.slim")
    back = load(tmp_path / "m.slim")
    assert back.machine_ == one
    assert back.features_used_.tolist() == ["b", "d", "e"]


@both_maps
def test_python_and_onnx_never_read_a_dead_feature(scale: Any) -> None:
    rng = np.random.default_rng(1)
    one, X = machine(scale), rng.normal(size=(8, 6))
    holes = X.copy()
    holes[:, [0, 2, 5]] = np.nan
    np.testing.assert_array_equal(one.scores(holes), one.scores(X))
    assert one.decision(holes[0]) == one.decision(X[0])
    model = wrap(one)
    np.testing.assert_array_equal(model.predict(holes.tolist()), model.predict(X))
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(holes)
    pytest.importorskip("onnxruntime")
    import test_onnx_parity

    holes[3, 1] = X[3, 1]
    for name, values in test_onnx_parity.run(one, X, "float64").items():
        np.testing.assert_array_equal(test_onnx_parity.run(one, holes, "float64")[name], values)


@both_maps
def test_data_are_read_in_blocks_that_number_their_rows(scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, X = machine(scale), np.random.default_rng(2).normal(size=(20, 6))
    whole, sparse_rows = one.scores(X), one.scores(sparse.csr_array(X))
    monkeypatch.setattr(evaluation, "BLOCK_VALUES", 9)
    for again in (one.scores(X), sparse_rows):
        np.testing.assert_allclose(again, whole, rtol=1e-12, atol=1e-12)
    assert one.scores(X[:0]).shape == (0, 1)
    X[13, 1] = np.nan
    with pytest.raises(ValueError, match="first in row 13"):
        one.scores(X)


@needs_compiler
@both_maps
@pytest.mark.parametrize("tables", ["float32", "int8"])
def test_c_reads_runs_of_used_features(scale: Any, tables: Any, tmp_path: Path) -> None:
    text = files(machine(scale), "m.h", tables=tables).contents["m.h"].decode()
    skips, lengths = (
        re.search(rf"m_{name}_table\[2\] M_FLASH = \{{\s*(.*?)\s*\}}", text) for name in ("skips", "lengths")
    )
    assert skips is not None
    assert lengths is not None
    assert (skips[1], lengths[1]) == ("1, 1", "1, 2")  # features 1, 3 and 4
    (tmp_path / "m.h").write_text(text)
    assert self_test(tmp_path / "m.h", tmp_path) == 0


def test_bytes_of_a_projection_in_int8() -> None:
    """p d for A, five for each row, no table of units for features alike, and two for each run of used features."""
    rng = np.random.default_rng(1)
    d, p, m, q = 60, 8, 30, 10
    scale = rng.normal(size=(p, d)) * (np.arange(d) >= 12)
    head, answer = LinearHead(rng.normal(size=(m, q)), np.zeros(q)), Classes(range(q))
    one = KernelMachine(Rbf(0.01), rng.normal(size=(m, p)), head, answer, input_map=InputMap(np.ones(d), scale))
    for X in (rng.normal(size=(50, d)), rng.integers(0, 256, size=(50, d))):
        for tables, coef in (("int8", 2), ("int8_all", 1)):
            made = files(one, "m.h", tables=tables, X=X)
            assert made.facts["n_bytes"] == p * 48 + 5 * p + 2 + m * p + coef * m * q + 4 * q
            assert made.facts["multiply_adds"] == p * 48 + m * p + m * q
    assert "#define M_INPUT_BITS(i) 0\n" in made.contents["m.h"].decode()  # pixels are inputs as they are
    units = np.logspace(-3, 3, d)
    apart = replace(one, input_map=InputMap(np.zeros(d), scale / units))
    assert (
        files(apart, "m.h", tables="int8", X=rng.normal(size=(50, d)) * units).facts["table_bytes"]["input_bits"] == 48
    )


def test_pixels_that_are_dark_in_the_given_rows_cost_no_accuracy() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(200, 20)) * (np.arange(20) > 3)
    scale = rng.normal(size=(3, 20))
    head = LinearHead(rng.normal(size=(9, 1)), [0.0])
    Z = (X[:9] - 0.5) @ scale.T
    one = KernelMachine(Rbf(0.2), Z, head, Value(), input_map=InputMap(np.full(20, 0.5), scale))
    for tables, most in (("int16", 1e-3), ("int8", 0.05), ("int8_all", 0.1)):
        assert files(one, "m.h", tables=tables, X=X).facts["score_loss"] < most * np.abs(head.coef).sum()


@both_maps
def test_libsvm_writes_scales_to_a_range_file_and_refuses_projections(scale: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    one = replace(machine(scale), answer=Value())
    if scale.ndim == 2:
        with pytest.raises(UnsupportedExportError, match=r"projection .* Apply it to the data"):
            export(one, "libsvm", tmp_path / "m", scaling=True)
        return
    libsvm_tools.require_tools("svm-predict", "svm-scale")
    X = rng.normal(size=(8, 6))
    export(one, "libsvm", tmp_path / "m", scaling=True)
    (tmp_path / "data").write_text(libsvm_tools.data_text(X, [0] * len(X)))
    scaled = libsvm_tools.svm_scale(tmp_path / "m.range", tmp_path / "data")
    printed = [float(line[0]) for line in libsvm_tools.svm_predict(tmp_path / "m", scaled)]
    assert (np.abs(printed - one.predict(X)) <= 1e4 * tolerance(one, X)).all()  # svm-scale prints six digits

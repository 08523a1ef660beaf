"""The ONNX export of machines with a preparation: ONNX Runtime reads raw columns and agrees with Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_c_raw_rows import machine

from oracles.random_preparations import random_rows
from slimsvm.answers import Classes
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.onnx import files
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.preparation import FUNCTIONS, Function, Lookup, Numeric, Power, Preparation, Quantiles

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def answers(made: KernelMachine, columns: dict[str, list[Any]], **options: Any) -> tuple[Any, Any]:
    """Labels and scores of ONNX Runtime."""
    content = files(made, "m.onnx", **options).contents["m.onnx"]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = list(columns)
    given = {}
    for one in session.get_inputs():
        if one.name == "X":
            given["X"] = np.array([[np.nan if v is None else v for v in columns[name]] for name in names]).T
        else:
            name = one.name if one.name in columns else names[int(one.name.removeprefix("column_"))]
            values = columns[name]
            text = one.type == "tensor(string)"
            kind = object if text else np.float32 if one.type == "tensor(float)" else np.float64
            given[one.name] = np.array([("" if text else np.nan) if v is None else v for v in values], dtype=kind)[
                :, None
            ]
    label, scores = session.run(None, given)[:2]
    return label, scores


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_raw_columns_agree_with_python(dtype: str, mixed: bool) -> None:
    for seed in range(3):
        made = machine(seed, mixed)
        if any(isinstance(s, Function) and s.function == "arctan" for p in made.preparation.parts for s in p.steps):  # type: ignore[union-attr]
            with pytest.raises(UnsupportedExportError, match="no arctan"):
                files(made, "m.onnx")
            continue
        columns = random_rows(np.random.default_rng(seed), 50)
        label, scores = answers(made, columns, dtype=dtype)
        wanted = made.decision(list(zip(*columns.values(), strict=True)))  # type: ignore[arg-type]
        size = np.abs(made.head.coef).sum() + 1
        allowed = size * (1e-10 if dtype == "float64" else 1e-4)
        np.testing.assert_allclose(scores, wanted, rtol=0, atol=allowed)
        sure = np.abs(wanted) > 2 * allowed
        expected = made.predict(list(zip(*columns.values(), strict=True)))  # type: ignore[arg-type]
        np.testing.assert_array_equal(label[sure].astype(str), expected[sure].astype(str))


def bent(*parts: Any, n_columns: int = 1, names: Any = None) -> KernelMachine:
    rng = np.random.default_rng(0)
    preparation = Preparation(n_columns, parts, names)
    points = rng.normal(size=(4, preparation.n_features))
    head = LinearHead(rng.normal(size=(4, 1)), [0.1])
    return KernelMachine(Rbf(0.1), points, head, Classes([0, 1]), preparation=preparation)


def test_functions_powers_and_one_matrix() -> None:
    steps: list[Any] = [Function(name) for name in FUNCTIONS if name != "arctan"]  # type: ignore[arg-type]
    steps += [Power("yeo-johnson", e) for e in (0.0, 0.5, 2.0)] + [Power("box-cox", 0.5)]
    values = np.random.default_rng(1).uniform(0.2, 2.0, 30).tolist()
    for step in steps:
        made = bent(Numeric(1, (step,)), Lookup(0, (0, 1), 2, categories=np.array([1, 2]), missing=1), n_columns=2)
        columns = {"a": [1, 2, None] * 10, "b": values}
        for inputs in ("columns", "matrix"):
            _, scores = answers(made, columns, dtype="float64", inputs=inputs)
            wanted = made.decision(list(zip(*columns.values(), strict=True)))  # type: ignore[arg-type]
            np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-11)


def test_refused_values_give_nan() -> None:
    made = bent(Lookup(0, (0, 1), 2, categories=np.array(["a", "b"])), n_columns=1, names=("c",))
    _, scores = answers(made, {"c": ["a", "b", "?", None]}, dtype="float64")
    assert np.isnan(scores).tolist() == [False, False, True, True]
    np.testing.assert_allclose(scores[:2], made.decision({"c": ["a", "b"]}), atol=1e-12)


def test_refusals() -> None:
    with pytest.raises(UnsupportedExportError, match="inputs='matrix' of an ONNX export is for numbers"):
        files(machine(0), "m.onnx", inputs="matrix")
    with pytest.raises(UnsupportedExportError, match="no QuantileTransformer"):
        files(bent(Numeric(0, (Quantiles([0.0, 1.0], [0.0, 1.0]),))), "m.onnx")
    with pytest.raises(ValueError, match="must be 'columns' or 'matrix'"):
        files(machine(0), "m.onnx", inputs="rows")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedExportError, match="no arctan"):
        files(bent(Numeric(0, (Function("arctan"),))), "m.onnx")

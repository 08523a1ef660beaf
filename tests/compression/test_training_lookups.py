"""Rows with wide one-hot columns are trained on in CSR: the same numbers, and the same machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC

import slimsvm
from oracles.random_preparations import random_preparation, random_rows
from slimsvm.compression import preparation_step
from slimsvm.compression.problem import Problem
from slimsvm.data import make_rows
from slimsvm.input_map import InputMap

CODES = [f"code {i}" for i in range(60)]


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.normal(40.0, 9.0, 300), "code": rng.choice(CODES, 300), "area": rng.choice(CODES, 300)}
    )
    worth = rng.normal(size=60)[X["code"].map(CODES.index)] + (X["age"] - 40.0) / 9.0
    return X, np.where(worth > 0, "yes", "no")


def model_of(table: Any, *steps: Any, numbers: Any = None, **options: Any) -> Any:
    numbers = StandardScaler() if numbers is None else numbers
    columns = make_column_transformer(
        (numbers, ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["code", "area"]), sparse_threshold=0
    )
    return make_pipeline(columns, *steps, SVC(C=3.0, **options)).fit(*table)


def problem_of(table: Any, model: Any) -> Problem:
    return Problem.of(model, *table, fuse=True)


@pytest.mark.parametrize("seed", range(5))
def test_csr_rows_are_the_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    preparation, columns = random_preparation(rng), random_rows(rng, 40)
    prepared = preparation.read(columns)
    instead = {0: rng.normal(size=40), preparation.width - 1: rng.normal(size=40)}
    hot = {place.stop - 1 for part, place in preparation.placed() if preparation_step._is_one_hot(part)}
    for given in (None, {at: values for at, values in instead.items() if at not in hot}):
        rows = preparation.csr(prepared, given)
        assert rows.data.all()
        np.testing.assert_array_equal(rows.toarray(), preparation.matrix(prepared, given))


def test_a_map_that_keeps_most_zeros_keeps_csr_rows() -> None:
    rng = np.random.default_rng(1)
    X = sparse.random_array((30, 40), density=0.1, format="csr", rng=rng)
    shift, scale, offset = np.zeros(40), rng.uniform(0.5, 2.0, 40), np.zeros(40)
    for filled in (0, 3, 20):
        shift[:filled], offset[:filled] = 1.5, 0.25
        given = InputMap(shift, scale, offset)
        mapped = given.apply_to(X)
        assert sparse.issparse(mapped) == (filled < 20)
        found = mapped.toarray() if sparse.issparse(mapped) else mapped
        np.testing.assert_allclose(found, given.apply(X), rtol=1e-15, atol=0)


def test_training_rows_have_one_number_per_category(table: Any) -> None:
    X = problem_of(table, model_of(table)).samples.X
    assert sparse.issparse(X)
    assert X.nnz == 3 * len(table[0])


@pytest.mark.parametrize(
    "model",
    [
        lambda table: model_of(table, StandardScaler()),  # no zero is left
        lambda table: model_of(table, numbers=FunctionTransformer(np.exp), gamma=1.0),  # too far from zero
    ],
)
def test_other_rows_stay_dense(table: Any, model: Any) -> None:
    assert not sparse.issparse(problem_of(table, model(table)).samples.X)


@pytest.mark.parametrize(
    ("method", "scaled"),
    [("sparse_margin", True), ("selection", False), ("reduced_set", False), ("growing", False)],
)
def test_machines_are_those_of_dense_rows(
    method: str, scaled: bool, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table
    model = model_of(table, *([MaxAbsScaler()] if scaled else []))
    made = []
    for thin in (preparation_step.THIN, 0.0):
        monkeypatch.setattr(preparation_step, "THIN", thin)
        small = slimsvm.compress(model, X, y, n_vectors=12, method=method, fuse=True, random_state=0)
        assert small.machine_.preparation is not None
        made.append(small)
    assert (made[0].predict(X) == made[1].predict(X)).mean() > 0.97
    assert made[0].score(X, y) == pytest.approx(made[1].score(X, y), abs=0.03)


def test_many_categories_do_not_prevent_moved_vectors(table: Any) -> None:
    """Vectors of more than 1,024 features are not moved on sparse text, but may be on prepared rows."""
    X, y = table
    known = [[f"code {i}" for i in range(600)]] * 2
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(categories=known), ["code", "area"]))
    model = make_pipeline(columns, SVC()).fit(X, y)
    small = slimsvm.compress(model, X, y, n_vectors=3, method="sparse_margin", fuse=True, random_state=0)
    assert small.machine_.without_preparation().n_features == 1201


def test_target_encodings_of_training_rows_are_cross_fitted(table: Any) -> None:
    X, y = table
    encoder = TargetEncoder(cv=StratifiedKFold(5, shuffle=True, random_state=0))
    columns = make_column_transformer((encoder, ["area"]), (OneHotEncoder(), ["code"]))
    model = make_pipeline(columns, SVC()).fit(X, y)
    problem = problem_of(table, model)
    assert sparse.issparse(problem.samples.X)
    expected = encoder.fit_transform(X[["area"]], y)
    np.testing.assert_allclose(problem.samples.X[:, [0]].toarray(), expected, rtol=1e-12)


def test_rows_in_blocks_stay_dense() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 40, 400)])
    y = (X[:, 0] + X[:, 1] % 2 > 0.5).astype(int)
    columns = make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), [1]))
    model = make_pipeline(columns, SVC(C=3.0)).fit(X, y)
    small = slimsvm.compress(model, make_rows(X, y), n_vectors=10, fuse=True, random_state=0)
    assert sparse.issparse(problem_of((X, y), model).samples.X)
    assert not sparse.issparse(Problem.of(model, make_rows(X, y), fuse=True).samples.X)
    assert small.score(X, y) > 0.9

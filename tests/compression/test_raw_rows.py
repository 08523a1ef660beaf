"""Whole pipelines through the meta-estimators: a mixed DataFrame in, one machine out, saved and exported."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler, TargetEncoder
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm.compression.problem import Problem
from slimsvm.estimator import SlimClassifier
from slimsvm.importers import import_model

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:`TargetEncoder.shuffle` and `TargetEncoder.random_state`")
QUICK: dict[str, Any] = {"n_vectors": 15, "method": "reduced_set", "random_state": 0}


def churn(n: int, seed: int) -> tuple[Any, Any]:
    """Twelve columns, five of them categories with up to 40, and missing values."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 40, n)
    frame = pd.DataFrame({f"x{i}": rng.normal(i, 1 + i, n).round(3) for i in range(7)})
    frame["city"] = np.char.add("city-", city.astype(str)).astype(object)
    for name, k in (("device", 12), ("plan", 6), ("channel", 3), ("contract", 3)):
        frame[name] = np.char.add(f"{name}-", rng.integers(0, k, n).astype(str)).astype(object)
    effect = np.random.default_rng(9).normal(size=40)
    risk = effect[city] + frame["x0"] + (frame["plan"] == "plan-1") - 0.5 * (frame["contract"] == "contract-0")
    for name in ("x1", "x2", "city", "device"):
        frame.loc[rng.random(n) < 0.05, name] = np.nan
    return frame, np.where(risk + 0.3 * rng.normal(size=n) > 0.2, "leaves", "stays")


def pipeline(last: Any = None, encoder: Any = None) -> Any:
    encoder = OneHotEncoder(handle_unknown="ignore") if encoder is None else encoder
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include=np.number)),
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), encoder),
            make_column_selector(dtype_exclude=np.number),
        ),
    )
    return make_pipeline(columns, SVC(C=3) if last is None else last)


X, Y = churn(400, 0)
X_TEST, Y_TEST = churn(1000, 1)


@pytest.fixture(scope="module")
def slim() -> Any:
    return slimsvm.CompressedClassifier(pipeline(), **QUICK).fit(X, Y)


def test_one_estimator_comes_back(slim: Any, tmp_path: Path) -> None:
    small = slim.compressed_
    assert isinstance(small, SlimClassifier)
    assert tuple(small.feature_names_in_) == tuple(X.columns)
    assert small.n_features_in_ == 12
    assert (slim.predict(X_TEST) == Y_TEST).mean() > 0.7
    slim.save(tmp_path / "churn.slim")
    again = slimsvm.load(tmp_path / "churn.slim")
    np.testing.assert_array_equal(again.predict(X_TEST), slim.predict(X_TEST))
    np.testing.assert_array_equal(clone(again).decision_function(X_TEST), small.decision_function(X_TEST))
    row = X_TEST.iloc[3].to_dict()
    assert again.predict(row) == slim.compressed_.predict(X_TEST.iloc[[3]])[0]
    text = repr(small)
    assert "Preparation(12 of 12 columns, 5 of them categories)" in text


def test_without_a_limit_the_predictions_stay(slim: Any) -> None:
    exact = slimsvm.CompressedClassifier(pipeline()).fit(X, Y)
    np.testing.assert_array_equal(exact.predict(X_TEST), exact.estimator_.predict(X_TEST))
    size = np.abs(exact.machine_.head.coef).sum()
    difference = exact.decision_function(X_TEST) - exact.estimator_.decision_function(X_TEST)
    assert np.abs(difference).max() < 1e-9 * size


def test_cross_validation_and_the_other_tasks() -> None:
    slim = slimsvm.CompressedClassifier(pipeline(), **QUICK)
    assert cross_val_score(slim, X, Y, cv=2).mean() > 0.65
    some = X[:150]
    target = some["x0"].to_numpy() + (some["plan"] == "plan-1")
    values = slimsvm.CompressedRegressor(pipeline(SVR()), **QUICK).fit(some, target)
    assert values.score(some, target) > 0.4
    inside = slimsvm.CompressedOutlierDetector(pipeline(OneClassSVM(nu=0.1)), **QUICK).fit(X)
    assert 0.7 < (inside.predict(X_TEST) == 1).mean() <= 1
    several = np.array(["a", "b", "c"])[np.digitize(target, [-0.5, 0.8])]
    for last in (SVC(), OneVsRestClassifier(SVC())):
        many = slimsvm.CompressedClassifier(pipeline(last), **QUICK).fit(some, several)
        assert (many.predict(some) == several).mean() > 0.5


def test_a_promise_and_refits_on_prepared_rows() -> None:
    model = pipeline().fit(X, Y)
    small = slimsvm.compress(model, X, Y, max_loss=0.1, cv=2, method="sparse_margin", fuse=True, random_state=0)
    assert small.machine_.preparation is not None
    assert small.report_.estimate <= 0.1
    again = slimsvm.compress(small, n_vectors=max(1, small.n_vectors_ - 1), random_state=0)
    assert again.machine_.preparation == small.machine_.preparation
    fast = slimsvm.add_early_exit(small, X, Y)
    right = small.predict(X) == Y
    assert (fast.predict(X) == Y)[right].all()


def test_bytes_of_the_preparation_count(tmp_path: Path) -> None:
    model = pipeline(encoder=TargetEncoder(random_state=0)).fit(X, Y)
    small = slimsvm.compress(model, X, Y, max_bytes=1500, method="reduced_set", fuse=True, random_state=0)
    done = slimsvm.export(small, "c", tmp_path / "m.h", X=X)
    assert small.report_.promise == {"max_bytes": 1500}
    assert small.report_.n_bytes == small.machine_.cost.n_bytes == done.facts["n_bytes"] <= 1500
    with pytest.raises(ValueError, match=r"max_bytes of compress must be above \d+, the bytes of the preparation"):
        slimsvm.compress(model, X, Y, max_bytes=100, method="reduced_set", fuse=True)


def test_training_rows_of_target_encoders_are_cross_fitted() -> None:
    """As in scikit-learn: the numbers of training rows are those of `fit_transform`, not of `transform`."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"many": [f"v{i}" for i in rng.integers(0, 150, 400)], "x": rng.normal(size=400)})
    frame.loc[::17, "many"] = np.nan
    y = rng.integers(0, 2, 400)  # noise: encodings that know a row's own target look useful
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), TargetEncoder(random_state=3)), ["many"]),
        (FunctionTransformer(np.arctan), ["x"]),
    )
    model = make_pipeline(columns, StandardScaler(), SVC()).fit(frame, y)
    problem = Problem.of(model, frame, y, fuse=True)
    assert problem.samples is not None
    machine = import_model(model, fuse=True).machine
    assert machine.preparation is not None
    wanted = clone(columns).fit_transform(frame, y)
    np.testing.assert_allclose(problem.samples.X, wanted, atol=1e-12)
    plain = machine.preparation.apply(frame)
    np.testing.assert_allclose(plain, columns.transform(frame), atol=1e-12)
    known = np.corrcoef(plain[:, 0], y)[0, 1]
    honest = np.corrcoef(problem.samples.X[:, 0], y)[0, 1]
    assert known > 0.3 > abs(honest)


def test_steps_that_stay_say_why() -> None:
    model = make_pipeline(make_column_transformer((PolynomialFeatures(), ["x0", "x3"])), StandardScaler(), SVC())
    slim = slimsvm.CompressedClassifier(model, **QUICK).fit(X, Y)  # no warning
    why = slim.compressed_.why_not_fused_
    assert why == (
        "'columntransformer' has 'polynomialfeatures', which is a PolynomialFeatures, which cannot become part of a "
        "machine"
    )
    with pytest.raises(ValueError, match="left steps before the machine: 'columntransformer' has"):
        slim.save("nowhere.slim")


PROGRAM = """#include <stdio.h>
#include "churn.h"
int main(void) {
  churn_row row;
  char text[5][64];
  while (scanf("%lf %lf %lf %lf %lf %lf %lf %63s %63s %63s %63s %63s", &row.x0, &row.x1, &row.x2, &row.x3, &row.x4,
               &row.x5, &row.x6, text[0], text[1], text[2], text[3], text[4]) == 12) {
    churn_score scores[CHURN_N_SCORES];
    const int missing_city = text[0][0] == 'n' && text[0][1] == 'a' && text[0][2] == 'n' && !text[0][3];
    const int missing_device = text[1][0] == 'n' && text[1][1] == 'a' && text[1][2] == 'n' && !text[1][3];
    row.city = missing_city ? CHURN_CAT_CITY_MISSING : churn_cat_city_of(text[0]);
    row.device = missing_device ? CHURN_CAT_DEVICE_MISSING : churn_cat_device_of(text[1]);
    row.plan = churn_cat_plan_of(text[2]);
    row.channel = churn_cat_channel_of(text[3]);
    row.contract = churn_cat_contract_of(text[4]);
    if (churn_scores_of_row(&row, scores)) return 1;
    printf("%d %.17g\\n", churn_predict_row(&row), (double)scores[0]);
  }
  return 0;
}
"""


@pytest.mark.skipif(which("gcc") is None, reason="no C compiler")
def test_c_agrees_on_a_thousand_raw_rows(slim: Any, tmp_path: Path) -> None:
    rows = X_TEST.copy()
    rows.loc[::50, "city"] = "city-never-seen"
    slimsvm.export(slim, "c", tmp_path / "churn.h", tables="float64", X=X)
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O1"]
    subprocess.run(["gcc", *flags, tmp_path / "main.c", "-o", tmp_path / "main"], check=True)
    text = "\n".join(" ".join(map(str, row)) for row in rows.itertuples(index=False)) + "\n"
    output = subprocess.run([tmp_path / "main"], input=text, capture_output=True, text=True, check=True).stdout
    place, scores = np.array([line.split() for line in output.splitlines()], dtype=float).T
    size = np.abs(slim.machine_.head.coef).sum()
    np.testing.assert_allclose(scores, slim.decision_function(rows), rtol=0, atol=1e-10 * size)
    np.testing.assert_array_equal(slim.classes_[place.astype(int)], slim.predict(rows))


def test_onnx_runtime_agrees_on_raw_rows(slim: Any, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    slimsvm.export(slim, "onnx", tmp_path / "churn.onnx", dtype="float64")
    session = runtime.InferenceSession(tmp_path / "churn.onnx", providers=["CPUExecutionProvider"])
    given = {}
    for one in session.get_inputs():
        values = X_TEST[one.name]
        text = one.type == "tensor(string)"
        given[one.name] = values.fillna("").to_numpy(dtype=object)[:, None] if text else values.to_numpy()[:, None]
    label, scores = session.run(None, given)
    size = np.abs(slim.machine_.head.coef).sum()
    np.testing.assert_allclose(scores, slim.decision_function(X_TEST), rtol=0, atol=1e-9 * size)
    np.testing.assert_array_equal(label, slim.predict(X_TEST))


def test_to_sklearn_agrees_on_raw_rows(slim: Any) -> None:
    model = slimsvm.to_sklearn(slim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = model.decision_function(X_TEST)
    size = np.abs(slim.machine_.head.coef).sum()
    np.testing.assert_allclose(scores, slim.decision_function(X_TEST), rtol=0, atol=1e-9 * size)

"""Tables with text columns and missing values on the command line: train, inspect, predict, evaluate, compress …"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC

import slimsvm

pandas = pytest.importorskip("pandas")


def people(n: int, seed: int) -> Any:
    """Customers with numbers, categories, missing values and an identifier."""
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "id": [f"id-{seed}-{i}" for i in range(n)],
            "age": rng.normal(45, 15, n).round(1),
            "calls": rng.poisson(2, n),
            "city": rng.choice(["Bonn", "Köln", "a, b", 'say "x"'], n).astype(object),
            "plan": rng.choice(list("abc"), n).astype(object),
            "grade": rng.integers(1, 4, n),
        }
    )
    risk = (
        (frame["city"] == "Bonn") * 1.5 + (frame["plan"] == "a") - (frame["age"] - 45) / 15 + 0.3 * rng.normal(size=n)
    )
    frame["churn"] = np.where(risk > 0.7, "yes", "no")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "city"] = None
    return frame


Run = Callable[..., Any]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    train, test = people(400, 0), people(150, 1)
    test.loc[0, "city"] = "never seen"
    for name, frame in (("train", train), ("test", test)):
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_csv(folder / f"{name}-komma.csv", index=False, sep=";", decimal=",")
        frame.to_parquet(folder / f"{name}.parquet")
    return folder


@pytest.fixture
def run(command: Run) -> Run:
    """Run a command, which must end with the given code."""

    def call(*arguments: Any, code: int = 0) -> Any:
        ended = command(*map(str, arguments))
        assert ended.code == code, ended.err
        return ended

    return call


@pytest.fixture
def files(tables: Path, run: Run) -> Path:
    """The folder of the tables, with a model trained on them."""
    if not (tables / "model.slim").exists():
        done = run("train", tables / "train.csv", tables / "model.slim", "--target", "churn", "--n-vectors", "15")
        assert "columns of numbers: 'age', 'calls', 'grade'; columns of categories: 'city', 'plan'." in done.err
        assert "columns are left out, because their text differs in most rows: 'id'" in done.err
    return tables


def accuracy(run: Run, folder: Path, data: str, model: str, *more: str) -> float:
    shown = run("evaluate", folder / data, folder / model, "--target", "churn", "--json", "-q", *more).out
    return float(json.loads(shown)["accuracy"])


def test_train_just_works(run: Run, files: Path) -> None:
    assert accuracy(run, files, "test.csv", "model.slim") > 0.8
    machine = slimsvm.load(files / "model.slim").machine_
    assert machine.feature_names == ("age", "calls", "city", "plan", "grade")
    frame = people(150, 1)
    by_python = machine.predict(frame)
    lines = run("predict", files / "test.csv", files / "model.slim", "-q").out.split()
    assert (np.array(lines)[1:] == by_python[1:]).all()  # the first row has a city that the frame here has not


def test_parquet_and_decimal_commas_give_the_same_model(run: Run, files: Path) -> None:
    for name, more in (("train.parquet", ()), ("train-komma.csv", ("--decimal", ","))):
        run("train", files / name, files / "other.slim", "--target", "churn", "--n-vectors", "15", "-q", *more)
        assert slimsvm.load(files / "other.slim").machine_ == slimsvm.load(files / "model.slim").machine_
        assert accuracy(run, files, name.replace("train", "test"), "other.slim", *more) > 0.8


def test_numbers_as_categories(run: Run, files: Path) -> None:
    arguments = (
        "train",
        files / "train.csv",
        files / "grades.slim",
        "--target",
        "churn",
        "-q",
        "--categorical",
        "grade",
    )
    run(*arguments, "--categorical", "id")
    machine = slimsvm.load(files / "grades.slim").machine_
    shown = json.loads(run("inspect", files / "grades.slim", "--json").out)
    kinds = {one["name"]: one["kind"] for one in shown["columns"]}
    assert kinds == {
        "id": "categories", "age": "number", "calls": "number", "city": "categories", "plan": "categories",
        "grade": "categories",
    }  # fmt: skip
    assert machine.preparation is not None
    assert accuracy(run, files, "test.csv", "grades.slim") > 0.7
    failed = run(*arguments[:-1], "colour", code=3)
    assert "there is no feature 'colour'" in failed.err


def test_inspect_shows_columns(run: Run, files: Path) -> None:
    text = run("inspect", files / "model.slim").out
    assert """4: Bonn, Köln, 'a, b', say""" in text
    median = people(400, 0)["age"].median()
    assert f"becomes {median:.6g}" in text
    assert "becomes zeros" in text


def test_held_out_scores_and_scales(run: Run, files: Path) -> None:
    common = (
        "train",
        files / "train.csv",
        files / "scored.slim",
        "--target",
        "churn",
        "--n-vectors",
        "10",
        "-q",
        "--json",
    )
    for more in (
        ("--cv", "2"),
        ("--validation", files / "test.csv", "--scale", "minmax"),
        ("--cv", "2", "--scale", "none"),
    ):
        found = json.loads(run(*common, *more).out)["held_out"]
        assert found["score"] > (0.7 if "none" not in more else 0.4)


def test_compress_frontier_and_export(run: Run, files: Path) -> None:
    data = ("--data", files / "train.csv", "--target", "churn", "-q")
    run("compress", files / "model.slim", files / "small.slim", "--n-vectors", "6", *data)
    assert accuracy(run, files, "test.csv", "small.slim") > 0.7
    held = ("--validation", files / "test.csv", "--target", "churn", "-q")
    run("compress", files / "model.slim", files / "small.slim", "--max-loss", "0.2", *held)
    table = run(
        "frontier", files / "train.csv", files / "model.slim", *held, "--sizes", "4", "--methods", "reduced_set",
        "--no-baselines",
    )  # fmt: skip
    assert "reduced_set" in table.out
    run("export", files / "model.slim", "c", files / "model.h", "--data", files / "train.csv", "-q")
    assert "typedef struct" in (files / "model.h").read_text()
    failed = run("export", files / "model.slim", "libsvm", files / "model.txt", code=4)
    assert "this machine reads raw rows" in failed.err


def test_a_pickled_pipeline(run: Run, files: Path) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.svm import SVC

    frame = people(400, 0).drop(columns="id")
    y = frame.pop("churn")
    columns = make_column_transformer(
        (SimpleImputer(), ["age", "calls"]),
        (OneHotEncoder(handle_unknown="ignore"), ["city", "plan"]),
        remainder="drop",
    )
    joblib.dump(make_pipeline(columns, SVC(C=10)).fit(frame, y), files / "pipe.joblib")
    arguments = ("--trust", "--data", files / "train.csv", "--target", "churn", "-q")
    run("compress", files / "pipe.joblib", files / "pipe.slim", "--max-loss", "0.3", "--cv", "2", *arguments)
    assert accuracy(run, files, "test.csv", "pipe.slim") > 0.5


def test_bad_tables_have_one_sentence(run: Run, files: Path, tmp_path: Path) -> None:
    run("train", files / "train.csv", tmp_path / "m.slim", "--target", "churn", "--n-vectors", "5", "-q")
    less = people(5, 2).drop(columns=["city", "id", "churn"])
    less.to_csv(tmp_path / "less.csv", index=False)
    assert "has no column 'city'" in run("predict", tmp_path / "less.csv", tmp_path / "m.slim", code=3).err
    wrong = people(5, 2).astype({"age": object})
    wrong.loc[3, "age"] = "old"
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    assert (
        "'old' in column 'age' is not a number"
        in run("predict", tmp_path / "wrong.csv", tmp_path / "m.slim", code=3).err
    )
    np.save(tmp_path / "rows.npy", np.zeros((3, 5)))
    assert "are for CSV, TSV and Parquet" in run("predict", tmp_path / "rows.npy", tmp_path / "m.slim", code=3).err


def test_decimal_commas_are_recognised(run: Run, files: Path, tmp_path: Path) -> None:
    done = run("train", files / "train-komma.csv", tmp_path / "m.slim", "--target", "churn", "--n-vectors", "3")
    assert "columns look like numbers with decimal commas: 'age'. Add --decimal , to read them." in done.err


def test_columns_of_lists_are_refused(run: Run, tmp_path: Path) -> None:
    people(60, 0).assign(tags=[["a", "b"]] * 60).to_parquet(tmp_path / "lists.parquet")
    asked = "train", tmp_path / "lists.parquet", tmp_path / "m.slim", "--target", "churn", "--n-vectors", "3"
    assert "column 'tags' holds lists or objects, not numbers or text. --ignore" in run(*asked, code=3).err
    run(*asked, "--ignore", "tags")


def test_inspect_of_columns_that_refuse_values_or_have_odd_categories(run: Run, tmp_path: Path) -> None:
    """Random rows for the time per row may be refused, and names must neither run together nor control the terminal."""
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"size": rng.lognormal(size=60), "c": rng.choice(["a, b", "\x1b[2J"], 60)})
    X["grade"] = rng.integers(2, 5, 60)
    columns = make_column_transformer(
        (FunctionTransformer(np.log), ["size"]),
        (OneHotEncoder(), ["c"]),
        (make_pipeline(FunctionTransformer(np.square), OneHotEncoder()), ["grade"]),
    )
    model = make_pipeline(columns, SVC()).fit(X, X["size"] > 1)
    slimsvm.compress(model, fuse=True).save(tmp_path / "m.slim")
    shown = run("inspect", tmp_path / "m.slim").out
    assert "µs per row" in shown
    assert r"2: '\x1b[2J', 'a, b'" in shown

"""`train` with held-out data: the same scores as the library, and a sentence for options that do not go together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import svmlight, table
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import StratifiedKFold

import slimsvm

Command = Callable[..., Any]
QUICK = ("--method", "reduced-svm", "--gamma", "1")


@pytest.fixture
def halves(moons_files: Any, tmp_path: Path) -> Any:
    """The files train.txt and held_out.txt; the second half, and its rows."""
    X, y, _ = moons_files
    svmlight(tmp_path / "train.txt", X[:100], y[:100])
    svmlight(tmp_path / "held_out.txt", X[100:], y[100:])
    return X[100:], y[100:]


def measured(ended: Any) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)["held_out"]
    return found


def test_the_score_on_validation_data(command: Command, halves: Any, tmp_path: Path) -> None:
    X, y = halves
    line = ("train", "train.txt", "m.slim", *QUICK, "--validation", "held_out.txt")
    ended = command(*line)
    predicted = slimsvm.load(tmp_path / "m.slim").predict(X)
    accuracy = np.mean(predicted == y)
    assert f"Its accuracy on held_out.txt is {accuracy:.2%} ± " in ended.out
    found = measured(command(*line, "--json"))
    assert found["score"] == pytest.approx(accuracy)
    spread = np.sqrt(accuracy * (1 - accuracy) / 100)
    assert spread < found["standard_error"] < spread + 0.01
    assert (found["scoring"], found["n_rows"], found["validation"], found["cv"]) == (
        "accuracy",
        100,
        "held_out.txt",
        None,
    )
    other = measured(command(*line, "--json", "--scoring", "balanced_accuracy"))
    assert other["score"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert other["standard_error"] > 0


def test_cross_validation_trains_on_the_other_folds(command: Command, moons_files: Any, tmp_path: Path) -> None:
    X, y, _ = moons_files
    line = ("train", "moons.txt", "m.slim", *QUICK, "--scale", "standard", "--n-vectors", "9")
    ended = command(*line, "--cv", "3")
    right = np.empty(len(y), dtype=bool)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        svmlight(tmp_path / "fold.txt", X[train], y[train])
        assert command("train", "fold.txt", "fold.slim", *line[3:]).code == 0
        right[test] = slimsvm.load(tmp_path / "fold.slim").predict(X[test]) == y[test]
    assert f"Its accuracy in 3-fold cross-validation is {right.mean():.2%} ± " in ended.out
    measured_machine = slimsvm.load(tmp_path / "m.slim").machine_
    assert command(*line).code == 0
    assert measured_machine == slimsvm.load(tmp_path / "m.slim").machine_  # of all rows, as without --cv
    assert "held_out" not in json.loads(command(*line, "--json").out)


def test_a_regression_has_r2(command: Command, tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    names = tuple("abcdefghij")
    table(tmp_path / "train.csv", X[:300], y[:300], names, target="y")
    table(tmp_path / "test.csv", X[300:, ::-1], y[300:], names[::-1], target="y")  # columns are matched by name
    line = (
        "--method",
        "sparse-regression",
        "--C",
        "10",
        "--n-vectors",
        "6",
        "-O",
        "max_iter=10",
        "--scale",
        "standard",
    )
    ended = command("train", "train.csv", "m.slim", *line, "--validation", "test.csv")
    score = r2_score(y[300:], slimsvm.load(tmp_path / "m.slim").machine_.predict(X[300:]))
    assert f"Its R² on test.csv is {score:.4f} ± " in ended.out, ended.err


def test_a_one_class_model_is_measured_by_signs(command: Command, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    table(tmp_path / "rows.csv", X[:50], y[:50], tuple("abcd"))
    signs = np.where(y == 0, 1, -1)
    table(tmp_path / "signs.csv", X, signs, tuple("abcd"))
    line = ("train", "rows.csv", "m.slim", "--method", "one-class-svm", "--nu", "0.1")
    found = measured(command(*line, "--validation", "signs.csv", "--json"))
    assert found["score"] == np.mean(slimsvm.load(tmp_path / "m.slim").predict(X) == signs)
    for flags, path in ((("--cv", "2"), "rows.csv"), (("--validation", "rows.csv"), "rows.csv")):
        ended = command(*line, *flags)
        assert ended.code == 3
        assert ended.err.startswith(
            f"slimsvm: {path} has no targets +1 and -1, by which a one-class model is measured."
        )


@pytest.mark.parametrize(
    ("flags", "code", "sentence"),
    [
        (("--cv", "3", "--validation", "held_out.txt"), 2, "--cv and --validation are two ways to hold out data."),
        (("--scoring", "roc_auc"), 2, "--scoring is measured on held-out data: add --validation, or --cv"),
        (("--cv", "101"), 3, "train.txt has 100 rows, too few for 101 folds. Lower --cv or add --validation."),
        (("--cv", "90"), 3, "rows of a class, too few for 90 folds."),
        (("--validation", "odd.txt"), 3, "odd.txt: 7 is not a class of the model. Its classes are"),
        (("--validation", "wide.txt"), 3, "it has feature 3; the model takes 2 features."),
        (("--validation", "missing.txt"), 3, "cannot read missing.txt: no such file or directory."),
        (("--validation", "m.slim"), 2, "m.slim is an input of the command, and would be overwritten."),
    ],
)
def test_mistakes_are_found_before_training(
    command: Command, halves: Any, tmp_path: Path, flags: tuple[str, ...], code: int, sentence: str
) -> None:
    X, _ = halves
    svmlight(tmp_path / "odd.txt", X[:4], [7, 7, 7, 7])
    svmlight(tmp_path / "wide.txt", np.ones((4, 3)), [0, 1, 0, 1])
    if "m.slim" in flags:
        (tmp_path / "m.slim").write_bytes(b"")
    ended = command("train", "train.txt", "m.slim", *QUICK, *flags)
    assert (ended.code, ended.err.count("\n")) == (code, 1), ended.err
    assert sentence in ended.err
    assert not (tmp_path / "m.slim").exists() or "m.slim" in flags


def test_a_score_that_the_model_does_not_have(command: Command, halves: Any, tmp_path: Path) -> None:
    ended = command("train", "train.txt", "m.slim", *QUICK, "--validation", "held_out.txt", "--scoring", "neg_log_loss")
    assert ended.code == 2
    assert "scoring of train is 'neg_log_loss' and reads predict_proba" in ended.err
    assert (tmp_path / "m.slim").exists()


def test_ctrl_c_in_cross_validation_keeps_the_model(
    command: Command, halves: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = slimsvm.ReducedSVC.fit

    def fit_or_stop(self: Any, X: Any, y: Any) -> Any:
        if len(y) < 100:
            raise KeyboardInterrupt
        return fit(self, X, y)

    monkeypatch.setattr(slimsvm.ReducedSVC, "fit", fit_or_stop)
    ended = command("train", "train.txt", "m.slim", *QUICK, "--cv", "2")
    assert ended.code == 130
    assert ended.err == "note: interrupted: m.slim is finished, but was not measured.\n"
    assert "Its accuracy on the training data is" in ended.out
    assert slimsvm.load(tmp_path / "m.slim").n_vectors_ == 10


def test_folds_are_shown_as_progress(command: Command, halves: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimsvm.cli.progress.on_terminal", lambda: True)
    ended = command("train", "train.txt", "m.slim", *QUICK, "--cv", "2")
    assert "fold 1 of 2" in ended.err
    assert "fold 2 of 2" in ended.err

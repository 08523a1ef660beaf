"""The commands on real files: the same predictions as the library, and an exit code and a sentence for each mistake."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import svmlight, table
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm.cli.trainers import TRAINERS
from slimsvm.input_map import InputMap
from slimsvm.kernels import Laplacian, Polynomial, Rbf

Command = Callable[..., Any]
HEADING = (
    "method +vectors +kernel values +dimensions +multiply-adds +bytes +µs alone +µs in a batch +agreement +accuracy"
)


def test_train_predict_evaluate_of_a_table(command: Command, iris_files: Any, tmp_path: Path) -> None:
    X, y, _ = iris_files
    trained = command("train", "iris.csv", "m.slim", "--target", "label", "--n-vectors", "6", "--scale", "standard")
    assert trained.code == 0, trained.err
    assert re.match(
        r"m\.slim: 6 vectors of 4 features, .* by sparse-margin\.\nIts accuracy on the training data is 9\d\.\d\d%\.\n",
        trained.out,
    )
    machine = slimsvm.load(tmp_path / "m.slim").machine_
    assert machine.feature_names == ("sepal_length", "sepal_width", "petal_length", "petal_width")
    assert machine.input_map is not None
    predicted = command("predict", "iris.csv", "m.slim", "--target", "label")
    assert predicted.lines == machine.predict(X).tolist()
    shares = json.loads(command("evaluate", "iris.csv", "m.slim", "--json").out)
    assert shares["accuracy"] == np.mean(machine.predict(X) == y)
    assert shares["n_vectors"] == shares["kernel_evaluations"] == 6
    assert "accuracy           9" in command("evaluate", "iris.csv", "m.slim").out


def test_predictions_go_to_a_file_as_svm_predict_writes_them(
    command: Command, moons_files: Any, tmp_path: Path
) -> None:
    X, y, slim = moons_files
    expected = slim.predict(X)
    for arguments in (("moons.txt", "moons.slim"), ("moons.slim", "moons.txt")):
        ended = command("predict", *arguments, "out.txt")
        right = int((expected == y).sum())
        assert ended.out == f"Accuracy = {right / 2:g}% ({right}/200) (classification)\n"
        assert (tmp_path / "out.txt").read_text().split() == [str(label) for label in expected]
    assert command("predict", "-q", "moons.txt", "moons.slim", "out.txt").out == ""


def test_scores_and_json_lines(command: Command, moons_files: Any) -> None:
    X, _, slim = moons_files
    rows = command("predict", "moons.txt", "moons.slim", "--scores").lines
    assert np.array_equal([float(row.split()[1]) for row in rows], slim.decision_function(X))
    rows = [json.loads(line) for line in command("predict", "moons.txt", "moons.slim", "--scores", "--json").lines]
    assert [row["prediction"] for row in rows] == slim.predict(X).tolist()
    assert [row["scores"] for row in rows] == slim.decision_function(X).tolist()


def test_standard_input(command: Command, moons_files: Any, tmp_path: Path) -> None:
    X, _, slim = moons_files
    content = table(tmp_path / "rows", X).read_bytes()
    assert command("predict", "-", "moons.slim", stdin=content).lines == [str(a) for a in slim.predict(X)]


def svm_predict(folder: Path, *options: str) -> tuple[list[str], str]:
    """What svm-predict prints about the quality and the noise, and the file that it writes."""
    line = ["svm-predict", *options, "test.txt", "model", "theirs"]
    said = subprocess.run(line, cwd=folder, check=True, capture_output=True).stdout.decode()
    return [one for one in said.splitlines() if "=" in one], (folder / "theirs").read_text()


def overlapping(labels: list[int], tmp_path: Path, options: str) -> None:
    """Train on overlapping classes, where votes and probabilities often disagree; the test rows have a new feature."""
    rng = np.random.default_rng(0)
    place = rng.permutation(np.repeat(np.arange(len(labels)), 150))
    X = np.column_stack([rng.normal(0.7 * place, 1), rng.normal(size=len(place)), np.zeros(len(place))])
    y = np.array(labels)[place]
    svmlight(tmp_path / "train.txt", X, y)
    subprocess.run(["svm-train", "-q", *options.split(), "train.txt", "model"], cwd=tmp_path, check=True)
    X[:, 2] = np.linspace(-1, 1, len(X))
    svmlight(tmp_path / "test.txt", X, y)


LIBSVM = pytest.mark.skipif(shutil.which("svm-train") is None, reason="Debian's libsvm-tools are not installed")


@LIBSVM
@pytest.mark.parametrize(("labels", "kernel"), [([1, -1], "-t 2"), ([3, 5], "-t 0"), ([7, -2, 3], "-t 2 -g 0.5")])
def test_probabilities_are_the_file_of_svm_predict(
    command: Command, labels: list[int], kernel: str, tmp_path: Path
) -> None:
    overlapping(labels, tmp_path, f"-b 1 {kernel}")
    said, theirs = svm_predict(tmp_path, "-b", "1")
    assert command("compress", "model", "model.slim").code == 0
    for model in ("model", "model.slim"):
        ours = command("predict", "-b", "1", "test.txt", model, "ours")
        assert ours.lines == said, ours.err
        assert (tmp_path / "ours").read_text() == theirs
        assert ours.err == "note: test.txt has features beyond the 2 of the model. They are zero in its vectors.\n"
    assert command("predict", "-q", "test.txt", "model", "ours").err == ""
    by_votes = (tmp_path / "ours").read_text().split()
    assert by_votes != [line.split()[0] for line in theirs.splitlines()[1:]]
    header, *lines = command("predict", "--proba", "test.txt", "model").lines
    assert header.split()[1:] == [str(label) for label in sorted(labels)]
    assert [line.split()[0] for line in lines] == by_votes


@LIBSVM
@pytest.mark.parametrize("task", ["-s 0", "-s 3 -b 1", "-s 2"])
def test_a_libsvm_model_predicts_as_svm_predict_does(command: Command, tmp_path: Path, task: str) -> None:
    overlapping([1, 0, 2], tmp_path, task)
    options = ["-b", "1"] if "-b" in task else []
    said, theirs = svm_predict(tmp_path, *options)
    ours = command("predict", *options, "test.txt", "model", "ours")
    assert ours.lines == said, ours.err
    values = [np.array(text.split(), float) for text in ((tmp_path / "ours").read_text(), theirs)]
    np.testing.assert_allclose(*values, rtol=1e-12)


@LIBSVM
def test_a_one_class_model_has_no_probabilities(command: Command, tmp_path: Path) -> None:
    overlapping([1, -1], tmp_path, "-s 2")
    ended = command("predict", "-b", "1", "test.txt", "model")
    assert (ended.code, ended.err) == (4, "slimsvm: model has no probabilities: it was trained without them.\n")


@pytest.mark.parametrize("kernel", [Rbf(1.0), Polynomial(2.0, 1.0, 3), Laplacian(1.0)], ids=repr)
@pytest.mark.parametrize("name", ["none", "scaler", "matrix"])
def test_features_that_a_model_has_not_seen_are_zero_in_its_vectors(
    command: Command, moons_files: Any, tmp_path: Path, kernel: Any, name: str
) -> None:
    X, y, slim = moons_files
    A = np.array([[2.0, 1.0], [0.5, 3.0]])
    maps = {
        "none": (None, None),
        "scaler": (InputMap([0.5, 0.2], [2.0, 3.0]), InputMap([0.5, 0.2, 0, 0], [2.0, 3.0, 1, 1])),
        "matrix": (InputMap([0.5, 0.2], A), InputMap([0.5, 0.2, 0, 0], np.column_stack([A, np.zeros((2, 2))]))),
    }
    narrow = replace(slim.machine_, kernel=kernel, input_map=maps[name][0])
    points = narrow.points if name == "matrix" else np.column_stack([narrow.points, np.zeros((8, 2))])
    wide = replace(narrow, points=points, input_map=maps[name][1])
    rows = np.column_stack([X, np.sin(np.arange(400)).reshape(-1, 2)])
    svmlight(tmp_path / "wide.txt", rows, y)
    for machine, file in ((narrow, "narrow.slim"), (wide, "wide.slim")):
        slimsvm.estimator.save(machine, tmp_path / file)
    ended = command("predict", "wide.txt", "narrow.slim", "--scores")
    scores = [float(line.split()[1]) for line in ended.lines]
    np.testing.assert_allclose(scores, wide.decision(rows), rtol=1e-9, atol=1e-12)
    ended = command("evaluate", "wide.txt", "narrow.slim", "--against", "wide.slim", "--json")
    assert json.loads(ended.out)["agreement"] == 1


def test_a_model_whose_features_have_names_knows_them_all(command: Command, iris_files: Any, tmp_path: Path) -> None:
    svmlight(tmp_path / "wide.txt", np.ones((3, 5)), np.zeros(3))
    ended = command("predict", "wide.txt", "iris.slim")
    assert (ended.code, ended.err) == (3, "slimsvm: wide.txt, line 1: it has feature 5; the model takes 4 features.\n")


def test_compress_a_libsvm_model_a_slim_file_and_a_pickle(command: Command, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    (tmp_path / "svc.pkl").write_bytes(pickle.dumps(model))
    table(tmp_path / "rows.csv", X, y, ("a", "b", "c", "d"))
    refused = command("compress", "svc.pkl", "same.slim")
    assert refused.code == 4
    assert "runs whatever code its author put into it" in refused.err
    assert "--trust" in refused.err
    assert not (tmp_path / "same.slim").exists()
    assert command("compress", "svc.pkl", "same.slim", "--trust").code == 0
    assert (slimsvm.load(tmp_path / "same.slim").predict(X) == model.predict(X)).all()
    small = json.loads(command("compress", "same.slim", "small.slim", "--n-vectors", "0.2", "--json").out)
    assert small["n_vectors"] == round(0.2 * small["parent"]["n_vectors"])
    ended = command("evaluate", "rows.csv", "small.slim", "--against", "same.slim")
    assert re.search(r"agreement +(9\d|100)\.\d\d% with same\.slim", ended.out)


def test_compress_with_data_trains_new_coefficients(command: Command, moons_files: Any, tmp_path: Path) -> None:
    ended = command("compress", "moons.slim", "refitted.slim", "--data", "moons.txt", "--n-vectors", "4")
    assert ended.lines[1].startswith("4 of 8 support vectors"), "the report has lines of its own"
    assert ended.code == 0, ended.err
    X, y, _ = moons_files
    assert np.mean(slimsvm.load(tmp_path / "refitted.slim").predict(X) == y) > 0.85


def test_a_promise_is_kept_or_ends_with_its_own_code(command: Command, moons_files: Any, tmp_path: Path) -> None:
    options = ("--data", "moons.txt", "--validation", "moons.txt", "--C", "1", "--method", "reduced_set+refit")
    kept = command("compress", "moons.slim", "kept.slim", *options, "--max-loss", "0.05", "--json")
    assert kept.code == 0, kept.err
    facts = json.loads(kept.out)
    assert facts["report"]["promise"] == {"max_loss": 0.05}
    assert facts["report"]["estimate"] <= 0.05
    assert facts["n_vectors"] == slimsvm.load(tmp_path / "kept.slim").n_vectors_
    impossible = (*options, "--max-disagreement", "0", "--max-bytes", "40")
    broken = command("compress", "moons.slim", "broken.slim", *impossible)
    assert broken.code == 5
    assert re.match(
        r"slimsvm: no model meets --max-disagreement 0\.0 and --max-bytes 40\. "
        r"The nearest one has \d vectors?, \d+ bytes "
        r"and a disagreement of 0\.\d{4} ± 0\.\d{4}\. --anyway writes it\.\n$",
        broken.err,
    )
    assert broken.err.count("\n") == 1
    assert not (tmp_path / "broken.slim").exists()
    anyway = command("compress", "moons.slim", "broken.slim", *impossible, "--anyway")
    assert anyway.code == 5
    assert anyway.err == broken.err.replace("--anyway writes it.", "broken.slim has it anyway.")
    assert slimsvm.load(tmp_path / "broken.slim").n_vectors_ < 8


def test_a_small_machine_with_probabilities(command: Command, moons_files: Any, tmp_path: Path) -> None:
    options = ("--data", "moons.txt", "--validation", "moons.txt", "--C", "1", "--method", "reduced_set+refit")
    ended = command("compress", "moons.slim", "m.slim", *options, "--n-vectors", "6", "--calibrate", "sigmoid")
    assert ended.code == 0, ended.err
    first, *rows = command("predict", "moons.txt", "m.slim", "--proba").lines
    assert first == "labels -1 1"
    expected = slimsvm.load(tmp_path / "m.slim").predict_proba(moons_files[0])
    assert np.array_equal([[float(p) for p in row.split()[1:]] for row in rows], expected)


def test_a_file_without_held_out_rows_cannot_promise(command: Command, moons_files: Any) -> None:
    ended = command("compress", "moons.slim", "m.slim", "--data", "moons.txt", "--max-loss", "0.1")
    assert ended.code == 2
    assert "validation" in ended.err


def test_frontier_as_a_table_a_picture_and_json(command: Command, moons_files: Any, tmp_path: Path) -> None:
    line = ("frontier", "moons.txt", "moons.slim", "--validation", "moons.txt", "--no-baselines")
    line += ("--sizes", "3,0.6", "--methods", "selection")
    ended = command(*line, "--plot", "frontier.svg")
    assert ended.code == 0, ended.err
    assert re.match(HEADING, ended.out)
    assert [row.split()[1] for row in ended.lines if row.startswith("selection")] == ["3", "5"]
    assert "★" in ended.out
    assert (tmp_path / "frontier.svg").read_bytes().startswith(b"<?xml")
    result = json.loads(command(*line, "--json").out)
    assert result["scoring"] == "accuracy"
    assert [row["vectors"] for row in result["rows"] if row["method"] == "selection"] == [3, 5]
    wrong = command(*line, "--plot", "frontier.nothing")
    assert wrong.code == 2
    assert wrong.err.startswith("slimsvm: cannot draw frontier.nothing: Format 'nothing' is not supported")


def test_ctrl_c_shows_the_frontier_so_far(command: Command, moons_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("frontier", "moons.txt", "moons.slim", "--validation", "moons.txt", "--no-baselines")
    line += ("--sizes", "3", "--methods", "selection")
    frontier = slimsvm.frontier

    def stop(*args: Any, **options: Any) -> Any:
        raise slimsvm.Interrupted(frontier(*args, **options))

    monkeypatch.setattr(slimsvm, "frontier", stop)
    ended = command(*line)
    assert ended.code == 130
    assert "selection" in ended.out


def test_export_to_libsvm(command: Command, moons_files: Any, tmp_path: Path) -> None:
    ended = command("export", "moons.slim", "libsvm", "moons.model")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("moons.model: ")
    again = command("predict", "moons.txt", "moons.model")
    assert again.lines == [str(label) for label in moons_files[2].predict(moons_files[0])]
    facts = json.loads(command("export", "moons.slim", "libsvm", "moons.model", "--json").out)
    assert facts["paths"] == ["moons.model"]
    wrong = command("export", "moons.slim", "libsvm", "moons.model", "-O", "nothing=1")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def test_export_to_c_measures_the_loss_on_rows(command: Command, moons_files: Any) -> None:
    ended = command("export", "moons.slim", "c", "moons.h", "-O", "tables=int16", "--data", "moons.txt")
    assert ended.code == 0, ended.err
    assert "moons.h: " in ended.out
    assert "200" in ended.err  # rows that were given
    assert command("export", "moons.slim", "onnx", "m.onnx", "--data", "moons.txt").code == 2


@pytest.mark.parametrize("method", TRAINERS)
def test_every_method_trains(command: Command, moons_files: Any, method: str) -> None:
    sizes = {
        "mirror",
        "reduced-set",
        "reduced-svm",
        "perceptron",
        "sparse-margin",
        "sparse-regression",
        "sparse-one-class",
    }
    size = ("--n-vectors", "10") if method in sizes else ()
    size += ("-O", "max_iter=20") if method.startswith("sparse") else ()
    ended = command("train", "moons.txt", "m.slim", "--method", method, *size, "--gamma", "1")
    assert ended.code == 0, ended.err
    assert f"by {method}." in ended.out
    figures = json.loads(command("evaluate", "moons.txt", "m.slim", "--json").out)
    assert figures.get("accuracy", 1) > 0.85 or TRAINERS[method].task == "inlier"
    assert figures.get("r2", 1) > 0.5


def test_regression_figures(command: Command, tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    table(tmp_path / "rows.csv", X, y, tuple("abcdefghij"), target="y")
    arguments = ("--method", "sparse-regression", "--C", "100", "--n-vectors", "6", "--scale", "standard")
    assert command("train", "rows.csv", "m.slim", *arguments, "--epsilon", "10", "-O", "max_iter=10").code == 0
    answers = slimsvm.load(tmp_path / "m.slim").machine_.predict(X)
    figures = json.loads(command("evaluate", "rows.csv", "m.slim", "--json").out)
    assert figures["mean_squared_error"] == pytest.approx(np.mean((answers - y) ** 2))
    assert figures["mean_absolute_error"] == pytest.approx(np.mean(abs(answers - y)))
    assert figures["r2"] == pytest.approx(1 - np.mean((answers - y) ** 2) / y.var())
    assert figures["squared_correlation"] == pytest.approx(np.corrcoef(answers, y)[0, 1] ** 2)


def test_inspect(command: Command, iris_files: Any) -> None:
    ended = command("inspect", "iris.slim", "--vectors", "2")
    assert ended.code == 0, ended.err
    for words in (
        "classification",
        "3: setosa, versicolor, virginica",
        "Rbf(gamma=0.25)",
        "pairwise, 3 scores",
        "µs per row",
    ):
        assert words in ended.out
    facts = json.loads(command("inspect", "iris.slim", "--json", "--vectors", "0").out)
    assert len(facts["vectors"]) == facts["n_vectors"]
    assert facts["n_bytes"] == facts["file_bytes"]
    m, d, k = facts["n_vectors"], 4, 3
    assert (facts["n_dimensions"], facts["multiply_adds"]) == (d, m * d + m * (k - 1))
    assert f"{facts['multiply_adds']:,} multiply-adds" in ended.out
    assert "as a .slim file" not in ended.out
    assert "report and history" not in ended.out  # it was not compressed
    assert command("compress", "iris.slim", "small.slim", "--n-vectors", "5").code == 0
    small = command("inspect", "small.slim").out
    assert " are the report and history of its compression)" in small


def test_labels_unseen_in_training_count_as_wrong(command: Command, moons_files: Any, tmp_path: Path) -> None:
    X, y, slim = moons_files
    labels = y.copy()
    labels[:5] = 7
    svmlight(tmp_path / "odd.txt", X, labels)
    ended = command("evaluate", "odd.txt", "moons.slim")
    assert ended.code == 0
    assert "note: 5 rows with unknown labels count as errors: 7.\n" in ended.err
    figures = json.loads(command("evaluate", "odd.txt", "moons.slim", "--json").out)
    assert figures["accuracy"] == np.mean(slim.predict(X) == labels)


def test_two_models_that_take_different_rows_are_not_compared(
    command: Command, iris_files: Any, tmp_path: Path
) -> None:
    machine = slimsvm.load(tmp_path / "iris.slim").machine_
    wide = replace(machine, points=np.column_stack([machine.points, machine.points[:, 0]]), feature_names=None)
    slimsvm.estimator.save(wide, tmp_path / "wide.slim")
    ended = command("evaluate", "iris.csv", "iris.slim", "--against", "wide.slim")
    assert (ended.code, ended.err) == (4, "slimsvm: iris.slim takes 4 features, and the other model 5.\n")


def test_a_model_that_is_not_fitted(command: Command, moons_files: Any, tmp_path: Path) -> None:
    (tmp_path / "svc.pkl").write_bytes(pickle.dumps(SVC()))
    ended = command("predict", "moons.txt", "svc.pkl", "--trust")
    assert ended.code == 4
    assert ended.err.startswith("slimsvm: cannot use svc.pkl: This SVC instance is not fitted yet.")


def test_a_one_class_machine_needs_no_targets(command: Command, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    table(tmp_path / "rows.csv", X)
    table(tmp_path / "classes.csv", X, y + 5, tuple("abcd"))
    arguments = ("--method", "one-class-svm", "--nu", "0.2")
    assert "of the training rows are inliers." in command("train", "rows.csv", "m.slim", *arguments).out
    inside = np.mean(slimsvm.load(tmp_path / "m.slim").predict(X) == 1)
    for name in ("rows.csv", "classes.csv"):
        figures = json.loads(command("evaluate", name, "m.slim", "--json").out)
        assert figures["inliers"] == inside
        assert "accuracy" not in figures


@pytest.mark.parametrize("stop", ["train", "compress"])
def test_ctrl_c_saves_the_best_so_far(
    command: Command, moons_files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    fit = slimsvm.SparseLargeMarginClassifier.fit

    def fit_and_stop(self: Any, X: Any, y: Any) -> Any:
        fit(self, X, y)
        raise KeyboardInterrupt

    def compress_and_stop(*args: Any, **options: Any) -> Any:
        raise slimsvm.Interrupted(moons_files[2])

    monkeypatch.setattr(slimsvm.SparseLargeMarginClassifier, "fit", fit_and_stop)
    monkeypatch.setattr("slimsvm.compression.compress", compress_and_stop)
    ended = command(stop, "moons.txt" if stop == "train" else "moons.slim", "best.slim", "--n-vectors", "8")
    assert ended.code == 130
    assert ended.err == "note: interrupted: best.slim is the best model so far.\n"
    assert slimsvm.load(tmp_path / "best.slim").n_vectors_ == 8


@pytest.mark.parametrize("stop", ["train", "compress"])
@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_with_nothing_to_write_says_so(
    command: Command, moons_files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str, as_json: bool
) -> None:
    def fit(self: Any, X: Any, y: Any) -> Any:
        raise KeyboardInterrupt

    def compress(*args: Any, **options: Any) -> Any:
        raise slimsvm.Interrupted(None)

    monkeypatch.setattr(slimsvm.SparseLargeMarginClassifier, "fit", fit)
    monkeypatch.setattr("slimsvm.compression.compress", compress)
    line = [stop, "moons.txt" if stop == "train" else "moons.slim", "best.slim", "--n-vectors", "8"]
    ended = command(*line, *(["--json"] if as_json else []))
    said = "interrupted before there was a model: nothing was written."
    assert ended.code == 130
    if as_json:
        assert json.loads(ended.err) == {"error": said, "kind": "interrupted", "exit_code": 130}
    else:
        assert ended.err.strip() == f"slimsvm: {said}"
    assert not (tmp_path / "best.slim").exists()


def test_rows_without_targets_are_answered_by_the_model(command: Command, moons_files: Any, tmp_path: Path) -> None:
    table(tmp_path / "rows.csv", moons_files[0])
    line = "compress moons.slim m.slim --n-vectors 5 --C 1 --method sparse_margin --data"
    said = "has no targets (--target names their column): the predictions of moons.slim are imitated.\n"
    ended = command(*line.split(), "rows.csv")
    assert (ended.code, ended.err) == (0, f"note: rows.csv {said}")
    for quiet in ([*line.split(), "rows.csv", "--quiet"], [*line.split(), "moons.txt"]):
        assert command(*quiet).err == ""


def test_a_device_is_written_and_not_replaced(command: Command, moons_files: Any) -> None:
    assert command("predict", "moons.txt", "moons.slim", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


MISTAKES = {
    # arguments: exit code and sentence
    "predict absent.csv iris.slim": (3, "cannot read absent.csv: no such file or directory."),
    "predict . iris.slim": (3, "cannot read .: is a directory."),
    "predict iris.csv absent.slim": (4, "cannot read absent.slim: no such file or directory."),
    "predict empty.csv iris.slim": (3, "empty.csv is empty."),
    "predict header.csv iris.slim": (3, "header.csv has no rows."),
    "predict iris.csv iris.csv": (
        4,
        "iris.csv is not a model: it is neither a .slim file nor a LIBSVM model nor a pickle.",
    ),
    "predict iris.csv cut.slim": (4, "Cannot load 'cut.slim': "),
    "predict iris.csv broken.model": (4, "slimsvm: broken.model, line 3: the header ends without"),
    "predict narrow.csv iris.slim": (3, "narrow.csv has no column 'petal_width', which the model was trained on."),
    "predict wide.csv moons.slim": (
        3,
        "wide.csv has 4 columns; the model takes 2. Name the target column with --target",
    ),
    "predict nan.csv moons.slim": (
        3,
        "nan.csv, row 2: feature 'b' is missing or not finite. Impute the value or drop the row.",
    ),
    "predict text.csv moons.slim": (3, "text.csv, line 3: 'x' in column 'b' is not a number."),
    "predict iris.csv iris.slim absent/out": (6, "cannot write absent/out: no such file or directory."),
    "predict iris.csv iris.slim --proba": (4, "trained without them. slimsvm compress --calibrate sigmoid adds them."),
    "predict iris.csv iris.slim --target nothing": (3, "iris.csv has no column 'nothing'. It has 'sepal_length', "),
    "predict iris.csv iris.slim --target petal_width": (3, "--target of iris.csv is 'petal_width', a feature"),
    "predict iris.csv": (2, "Missing argument 'MODEL'. See slimsvm predict --help."),
    "predict --none": (2, "No such option"),
    "guess": (2, "No such command 'guess'. See slimsvm --help."),
    "evaluate moons.txt iris.slim --format csv": (3, "moons.txt"),
    "evaluate wide.csv moons.slim": (
        3,
        "wide.csv: which column is the target? It has 4 columns and no header. Name the target column with --target.",
    ),
    "evaluate text_labels.csv moons.slim": (
        3,
        "none of the labels is a class of the model. Got no, yes; it has -1, 1.",
    ),
    "train iris.csv m.slim --target label --method relevance --n-vectors 3": (
        2,
        "--n-vectors is not an option of the method rel",
    ),
    "train iris.csv m.slim --target label -O nothing=1": (
        2,
        "-O nothing is not an option of the method sparse-margin. The options are C,",
    ),
    "train iris.csv m.slim --target label --C -1": (
        2,
        "Invalid value for '--C': -1.0 is not in the range x>0.",
    ),
    "train iris.csv m.slim --target label -O C=-1": (
        2,
        "--C must be a finite number above 0. Got -1.",
    ),
    "train iris.csv m.slim --target label --gamma wide": (2, "'wide' is neither a number nor scale or auto or median."),
    "train iris.csv m.slim --target label --method svr": (
        3,
        "iris.csv: the targets of a regression must be numbers. Got ",
    ),
    "train no_target.csv m.slim --method svr": (3, "no_target.csv, row 2: the target is missing or not finite."),
    "train one.csv m.slim --target -1": (3, "one.csv: a classifier needs at least two classes. All targets are 5."),
    "compress moons.slim small.slim --n-vectors -3": (2, "'-3' is neither a count, such as 40, nor a fraction"),
    "compress moons.slim small.slim --n-vectors 1.5": (2, "'1.5' is neither a count, such as 40, nor a fraction"),
    "compress moons.slim small.slim --n-vectors few": (2, "'few' is neither a count, such as 40, nor a fraction"),
    "export moons.slim papyrus out": (2, "the format must be one of "),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_end_in_one_sentence(
    command: Command, iris_files: Any, moons_files: Any, tmp_path: Path, line: str
) -> None:
    for name, text in {
        "empty.csv": "",
        "header.csv": "sepal_length,sepal_width,petal_length,petal_width\n",
        "broken.model": "svm_type c_svc\nkernel_type rbf\n",
        "narrow.csv": "sepal_length,sepal_width,petal_length\n1,2,3\n",
        "wide.csv": "1,2,3,4\n5,6,7,8\n",
        "nan.csv": "a,b\n1,2\n3,nan\n",
        "text.csv": "a,b\n1,2\n3,x\n",
        "text_labels.csv": "a,b,label\n1,2,no\n3,4,yes\n",
        "one.csv": "1,2,5\n3,4,5\n",
        "no_target.csv": "a,y\n1,2\n3,nan\n5,6\n",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "cut.slim").write_bytes((tmp_path / "iris.slim").read_bytes()[:-10])
    code, sentence = MISTAKES[line]
    ended = command(*line.split())
    assert sentence in ended.err
    assert ended.code == code
    assert ended.err.startswith("slimsvm: ")
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    failure = json.loads(command(*line.split(), "--json").err) if code != 2 else {"exit_code": 2}
    assert failure["exit_code"] == code


def test_a_defect_is_one_sentence_too(command: Command, moons_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("this\nshould not be")

    monkeypatch.setattr("slimsvm.machine.KernelMachine.predict", fail)
    ended = command("predict", "moons.txt", "moons.slim")
    assert ended.code == 1
    assert ended.err == (
        "slimsvm: This is a defect of slimsvm: RuntimeError: this should not be. SLIMSVM_DEBUG=1 shows where.\n"
    )
    monkeypatch.setenv("SLIMSVM_DEBUG", "1")
    ended = command("predict", "moons.txt", "moons.slim")
    assert ended.code == 1
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert "in fail\n" in ended.err
    assert ended.err.endswith("RuntimeError: this should not be. The trace above shows where.\n")


def test_columns_with_names_are_no_cause_for_warnings(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{int(a + b > 0)}\n" for a, b in rng.normal(size=(60, 2))]
    (tmp_path / "named.csv").write_text("".join(["u,v,label\n", *rows]), encoding="utf-8")
    made = command("train", "named.csv", "named.slim", "--target", "label", "--n-vectors", "6")
    assert (made.code, made.err) == (0, "")
    data = ("--data", "named.csv", "--validation", "named.csv", "--target", "label")
    size = ("--n-vectors", "3", "--method", "sparse_margin")
    small = command("compress", "named.slim", "small.slim", *data, *size)
    assert (small.code, small.err) == (0, "")


def test_report_with_a_frontier(command: Command, moons_files: Any, tmp_path: Path) -> None:
    line = "frontier moons.txt moons.slim --validation moons.txt --sizes 3 --methods selection --no-baselines --json"
    (tmp_path / "frontier.json").write_text(command(*line.split()).out, encoding="utf-8")
    line = "report moons.txt moons.slim r.html --against moons.slim --frontier frontier.json"
    ended = command(*line.split())
    assert (ended.code, ended.err) == (0, "")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="trade_off"' in page
    assert 'id="disagreement"' in page

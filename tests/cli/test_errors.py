"""A model file is parsed once, flags are checked in their own words, and defects differ from wrong usage."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import svmlight, table
from sklearn.svm import SVC, SVR, NuSVC

import slimsvm
from slimsvm.cli import compress, errors, inputs, options
from slimsvm.importers import libsvm
from slimsvm.methods import ReducedSet

Command = Callable[..., Any]


@pytest.fixture
def files(moons_files: Any, tmp_path: Path) -> Any:
    """A LIBSVM model and a pickle beside the files of moons, and data that do not fit them."""
    X, y, slim = moons_files
    slimsvm.export(slim, "libsvm", tmp_path / "moons.model")
    (tmp_path / "svc.pkl").write_bytes(pickle.dumps(SVC(gamma=1.0).fit(X, y)))
    (tmp_path / "cut.pkl").write_bytes(b"")
    table(tmp_path / "rows.csv", X)
    value = slimsvm.compress(SVR().fit(X, y))
    slimsvm.export(value, "libsvm", tmp_path / "value.model")
    svmlight(tmp_path / "wide.txt", np.column_stack([X, X])[:20], y[:20])
    svmlight(tmp_path / "three.txt", X[:20], np.where(np.arange(20) == 7, 3, y[:20]))
    svmlight(tmp_path / "one.txt", X[y == 1], y[y == 1])
    svmlight(tmp_path / "few.txt", X[:4], y[:4])
    table(tmp_path / "words.csv", X, np.where(y > 0, "yes", "no"), ("a", "b"))
    return X, y, slim


@pytest.mark.parametrize(
    "line",
    [
        "compress moons.model m.slim --n-vectors 3",
        "compress moons.model m.slim --data moons.txt --C 1 --n-vectors 3 --method reduced_set+refit",
        "frontier moons.txt moons.model --validation moons.txt --sizes 3 --methods selection --no-baselines",
        "predict moons.txt moons.model",
        "evaluate moons.txt moons.model",
        "export moons.model c m.h",
        "inspect moons.model",
    ],
)
def test_a_libsvm_model_is_parsed_once(
    command: Command, files: Any, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    parsed, parse = [], libsvm.parse

    def counted(data: bytes, source: str) -> Any:
        parsed.append(source)
        return parse(data, source)

    monkeypatch.setattr(libsvm, "parse", counted)
    ended = command(*line.split())
    assert ended.code == 0, ended.err
    assert parsed == ["moons.model"]


def test_compress_gives_the_same_bytes_as_the_library(command: Command, files: Any, tmp_path: Path) -> None:
    line = (
        "compress moons.model m.slim --data moons.txt --C 1 --n-vectors 4 --method reduced_set+refit --random-state 3"
    )
    assert command(*line.split()).code == 0
    X, y, _ = files
    small = slimsvm.compress(
        str(tmp_path / "moons.model"), X, y, n_vectors=4, method=ReducedSet(refit=True, C=1.0), random_state=3
    )
    small.save(tmp_path / "direct.slim")
    assert (tmp_path / "m.slim").read_bytes() == (tmp_path / "direct.slim").read_bytes()


CANNOT = "Cross-validation is not possible, because a LIBSVM model cannot be refitted."
FLAGS = {
    # arguments after `compress`: exit code and sentence
    "moons.model m.slim --max-loss 0.1": (2, f"--max-loss needs held-out data: add --validation, .* {CANNOT}"),
    "moons.model m.slim --max-loss 0.1 --data moons.txt": (2, f"--max-loss needs held-out data: .* {CANNOT}"),
    "moons.model m.slim --max-disagreement 0.1": (2, f"--max-disagreement needs held-out data: .* {CANNOT}"),
    "moons.model m.slim --cv 3 --n-vectors 3": (2, f"--cv needs held-out data: .* {CANNOT}"),
    "svc.pkl m.slim --trust --max-loss 0.1": (2, r"--max-loss needs held-out data: add --data, .* or --validation, "),
    "moons.model m.slim --max-loss 0.1 --cv 3 --validation moons.txt": (2, "--cv and --validation are two ways to "),
    "moons.model m.slim --validation moons.txt": (2, "--validation needs a size or a limit: add --n-vectors or, "),
    "moons.model m.slim --scoring accuracy": (2, "--scoring needs a size or a limit: add --n-vectors or, "),
    "moons.model m.slim --metric accuracy": (2, "--metric is now called --scoring."),
    "moons.model m.slim --scoring acuracy": (2, "'acuracy' is not a scorer of scikit-learn. Did you mean accuracy?"),
    "moons.model m.slim --scoring zzz": (2, "'zzz' is not a scorer of scikit-learn. Examples are balanced_accuracy, "),
    "moons.model m.slim --confidence 0.9": (2, "--confidence needs a loss that it applies to: add --max-loss or "),
    "moons.model m.slim --C 1": (2, "--C is for training on data: add --data, or leave it out."),
    "moons.model m.slim --C 1 --data moons.txt --n-vectors 3": (2, "--C is a setting of one method: add --method, "),
    "moons.model m.slim --solver merge --method selection --n-vectors 3": (
        2,
        "--solver is not an option of the method",
    ),
    "moons.model m.slim --calibrate sigmoid": (2, "--calibrate fits probabilities to labelled data: add --validation"),
    "moons.model m.slim --method selection": (2, "--method selection needs a size or a limit: add --n-vectors or "),
    "moons.model m.slim --method mirror": (2, "--method mirror trains on data: add --data, ideally the model's "),
    "moons.model m.slim --max-distance 0.1 --n-vectors 3": (2, "--max-distance determines the size: leave out either"),
    "moons.model m.slim --max-loss -1": (2, "Invalid value for '--max-loss': -1.0 is not in the range x>=0."),
    "moons.model m.slim --cv 1": (2, "Invalid value for '--cv': 1 is not in the range x>=2."),
    "moons.model m.slim -O nothing=1": (2, "-O nothing is not an option of compress. The options are calibrate, "),
    "moons.model m.slim -O X=1": (2, "-O X is not an option of compress."),
    "moons.model m.slim -O fuse=False": (2, "-O fuse is not an option of compress."),
    "moons.model m.slim -O n_vectors=3 --n-vectors 4": (2, "-O n_vectors and --n-vectors set the same option."),
    "moons.model m.slim -O scoring=r2 --scoring r2 --n-vectors 4": (2, "-O scoring and --scoring set the same option."),
    "moons.model m.slim -O n_init=0 --method reduced_set --n-vectors 3": (
        2,
        "-O n_init must be a whole number of at least 1. Got 0",
    ),
    "moons.model m.slim -O three": (2, "-O takes NAME=VALUE. Got 'three'."),
    "moons.model m.slim --n-features 1": (2, "--n-features must be at least 2, the largest index in moons.model, "),
    "moons.slim m.slim --n-features 3": (2, "--n-features is for LIBSVM models, and moons.slim is a .slim file."),
    "moons.model m.slim --n-vectors 3 --data rows.csv --calibrate sigmoid": (3, "rows.csv has no targets, which "),
    "moons.model m.slim --max-loss 0.1 --validation rows.csv": (3, "rows.csv: which column is the target?"),
    "moons.model m.slim --n-vectors 3 --data three.txt": (
        3,
        "three.txt: 3 is not a class of the model. Its classes are",
    ),
    "moons.model m.slim --n-vectors 3 --data words.csv": (3, "words.csv: no is not a class of the model. Its classes"),
    "moons.model m.slim --n-vectors 3 --data one.txt": (3, "one.txt has no row of class -1. Training data need every"),
    "svc.pkl m.slim --trust --n-vectors 3 --data few.txt --cv 5": (3, "few.txt has 4 rows, too few for 5 folds."),
    "svc.pkl m.slim --trust --max-loss 0.1 --data few.txt": (3, "few.txt has 4 rows, too few for 5 folds."),
    "svc.pkl m.slim --trust --n-vectors 3 --data moons.txt --cv 150": (
        3,
        "moons.txt has at most 100 rows of a class, ",
    ),
}


@pytest.mark.parametrize("line", FLAGS)
def test_flags_are_checked_in_their_own_words(command: Command, files: Any, tmp_path: Path, line: str) -> None:
    code, sentence = FLAGS[line]
    ended = command("compress", *line.split())
    if ".*" in sentence:
        assert re.search(sentence, ended.err), ended.err
    else:
        assert sentence in ended.err
    assert (ended.code, ended.err.count("\n"), ended.out) == (code, 1, "")
    for word in ("X_val", "validation=", "X and y", "y of compress"):
        assert word not in ended.err
    assert not (tmp_path / "m.slim").exists()


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("frontier moons.txt moons.model", 2, "frontier needs held-out data: add --validation, "),
        ("frontier moons.txt svc.pkl --trust --cv 3 --validation moons.txt", 2, "--cv and --validation are two ways"),
        ("frontier moons.txt moons.model --validation rows.csv", 3, "rows.csv: which column is the target?"),
        ("frontier rows.csv svc.pkl --trust", 3, "rows.csv: which column is the target?"),
        ("frontier moons.txt moons.model --validation moons.txt --methods none", 2, "--methods must be some"),
        ("frontier moons.txt moons.slim --validation moons.txt --memory rows.csv/m", 6, "rows.csv/m"),
        (
            "report moons.txt moons.slim r.html --image-shape 28",
            2,
            "--image-shape must be height and width, as in 28x28",
        ),
        ("report moons.txt moons.slim r.html --frontier rows.csv", 3, "rows.csv is not the output of slimsvm frontier"),
        ("report moons.txt moons.slim r.html --frontier none.json", 3, "cannot read none.json: no such file"),
        ("report moons.txt moons.slim moons.txt", 2, "moons.txt"),
        ("export moons.slim onnx m.onnx --data moons.txt", 2, "--data is for c and js, which measure their loss on"),
        ("export moons.slim c m.h -O X=1", 2, "-O X and -O y are not options of export. Use --data."),
        ("train moons.txt m.slim --C 1 -O C=2", 2, "-O C and --C set the same option. Give one of them."),
        ("train moons.txt m.slim --method svc -O tol=-1", 2, "-O tol must be a float in the range"),
        ("predict moons.txt svc.pkl", 4, "add --trust"),
        ("compress cut.pkl m.slim --trust", 4, "cannot unpickle cut.pkl: the file is cut short, or is not a pickle.\n"),
        ("evaluate moons.txt moons.slim --against value.model", 4, "value.model is a regression model, so their"),
        ("compress moons.model m.slim --n-vectors 3 --data wide.txt", 3, "Set --n-features to the number of features"),
        ("compress moons.slim m.slim --n-vectors 3 --data wide.txt", 3, "the model takes 2 features.\n"),
    ],
)
def test_mistakes_of_other_commands(command: Command, files: Any, line: str, code: int, sentence: str) -> None:
    ended = command(*line.split())
    assert sentence in ended.err
    assert (ended.code, ended.err.count("\n"), ended.out) == (code, 1, "")


def test_labels_are_matched_as_numbers_or_text(files: Any, command: Command, tmp_path: Path) -> None:
    """A table has 1.0 where the model has 1: both are the same class."""
    X, y, _ = files
    table(tmp_path / "floats.csv", X, y.astype(float), ("a", "b"))
    line = "--C 1 --n-vectors 4 --method reduced_set+refit"
    for name in ("floats.csv", "moons.txt"):
        assert command("compress", "moons.slim", f"{name}.slim", "--data", name, *line.split()).code == 0
    assert (tmp_path / "floats.csv.slim").read_bytes() == (tmp_path / "moons.txt.slim").read_bytes()


def test_targets_of_a_one_class_model_that_are_not_signs_are_ignored(
    command: Command, files: Any, tmp_path: Path
) -> None:
    assert command("train", "moons.txt", "one.slim", "--method", "one-class-svm", "--nu", "0.3").code == 0
    svmlight(tmp_path / "fives.txt", files[0], np.full(len(files[0]), 5))
    ended = command("compress", "one.slim", "small.slim", "--data", "fives.txt", "--n-vectors", "4")
    assert ended.code == 0, ended.err
    assert "note: fives.txt: the targets are ignored; those of a one-class model are +1 and -1.\n" in ended.err


def of_slimsvm(body: str) -> Callable[..., Any]:
    """A function that looks as if it were a part of slimsvm."""
    names: dict[str, Any] = {"__name__": "slimsvm.somewhere", "np": np}
    exec(f"def function(*args, **keywords):\n    {body}", names)
    function: Callable[..., Any] = names["function"]
    return function


CLASSIFIED = {
    # what a call into the library does: the exit code
    "raise ValueError('n_vectors of compress must be at most 3.')": 2,
    "raise TypeError('max_iter of GrowingSVC must be a whole number.')": 2,
    "raise ModuleNotFoundError('this needs onnx. Install it.')": 2,
    "from slimsvm import FormatError; raise FormatError('line 3: no.')": 4,
    "from slimsvm import UnsupportedModelError; raise UnsupportedModelError('no.')": 4,
    "from slimsvm import UnsupportedExportError; raise UnsupportedExportError('no.')": 4,
    "from slimsvm import PromiseError; raise PromiseError('no.')": 5,
    "raise PermissionError(13, 'Permission denied', 'folder')": 6,
    "raise MemoryError": 1,
    "np.zeros(2) + np.zeros(3)": 1,
    "np.linalg.inv(np.zeros((2, 2)))": 1,
    "int('three')": 1,
    "len(3)": 1,
    "np.nothing": 1,
    "{}['key']": 1,
    "[][0]": 1,
    "1 / 0": 1,
    "assert False": 1,
    "raise RuntimeError('no.')": 1,
}


@pytest.mark.parametrize("body", CLASSIFIED)
def test_defects_differ_from_wrong_usage(
    command: Command, moons_files: Any, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr("slimsvm.compression.compress", of_slimsvm(body))
    ended = command("compress", "moons.slim", "m.slim", "--n-vectors", "3")
    assert ended.code == CLASSIFIED[body], ended.err
    assert ended.err.count("\n") == 1
    is_defect = ended.code == 1 and "Memory" not in body
    assert ("This is a defect of slimsvm" in ended.err) == is_defect


def test_a_refusal_is_raised_on_purpose_by_slimsvm_or_scikit_learn() -> None:
    X = np.arange(10.0)[:, None]
    with pytest.raises(ValueError, match="infeasible") as compiled:  # raised in compiled code of scikit-learn
        NuSVC(nu=0.9).fit(X, np.arange(10) < 2)
    assert errors.is_refusal(compiled.value)
    with pytest.raises(ValueError, match="no") as own:
        raise ValueError("no")  # neither slimsvm nor scikit-learn
    assert not errors.is_refusal(own.value)
    assert not errors.is_refusal(ValueError("never raised"))


def test_the_checks_know_the_library() -> None:
    """The names that the command line repeats are those of the library."""
    names = set(inspect.signature(slimsvm.compress).parameters)
    frontier_names = set(inspect.signature(slimsvm.frontier).parameters)
    flags = {str(param.name) for param in compress.command.params if not getattr(param, "hidden", False)}
    own = {
        "path",
        "anyway",
        "settings",
        "format",
        "target",
        "ignore",
        "header",
        "array",
        "zero_based",
        "decimal",
        "seed",
    }
    own |= {"trust", "quiet", "as_json", "data", "n_features", "C", "solver", "max_distance"}
    assert flags - own <= names
    assert set(compress.LIMITS) <= names
    assert {"cv", "memory", "sizes", "methods", "baselines", "scoring"} <= frontier_names
    assert inspect.signature(slimsvm.frontier).parameters["cv"].default == inputs.DEFAULT_FOLDS
    assert options.flag("max_latency_us") == "--max-latency-us"

"""The arguments of `compress`: their names, the settings of methods, and the limit on time."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm import PromiseError, compress, frontier
from slimsvm.compression.request import Request, method_settings
from slimsvm.estimator import SlimClassifier
from slimsvm.exceptions import FormatError
from slimsvm.methods import Growing, MirrorPoints, ReducedSet, Selection, SparseMargin
from slimsvm.methods.settings import BY_NAME

X, Y = make_moons(120, noise=0.25, random_state=0)
PARENT = SVC(C=5.0, gamma=1.0).fit(X, Y)
HELD_OUT = make_moons(200, noise=0.25, random_state=1)


def names_of(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("scoring", "max_loss", "most"),
    [(None, 5, 1), ("accuracy", 1.0, 1), ("f1_macro", 2.0, 1), ("roc_auc", 1, 1), ("matthews_corrcoef", 3.0, 2)],
)
def test_a_loss_that_the_score_cannot_have(scoring: str | None, max_loss: float, most: float) -> None:
    name = scoring or "accuracy"
    with pytest.raises(
        ValueError,
        match=rf"max_loss of compress is in units of the score, and {name} can lose at most {most}: pass 0.05 for five "
        rf"points. Got {max_loss:g}\.",
    ):
        compress(PARENT, X, Y, max_loss=max_loss, scoring=scoring)


def test_a_score_without_a_worst_value_may_lose_any_number() -> None:
    values = SVR().fit(X, 100 * X[:, 0])
    for scoring in ("neg_mean_squared_error", "r2", lambda model, X, y: -float(np.mean((model.predict(X) - y) ** 2))):
        small = compress(
            values, X, 100 * X[:, 0], max_loss=1e5, scoring=scoring, cv=2, method="selection", random_state=0
        )
        assert small.n_vectors_ <= 2


def test_compress_has_21_parameters() -> None:
    parameters = inspect.signature(compress).parameters
    assert len(parameters) == 21
    positional = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == ["model", "X", "y"]
    assert all(one.kind is one.KEYWORD_ONLY for name, one in parameters.items() if name not in positional)
    assert {"scoring", "fuse", "method", "max_time"} < set(parameters)
    for name in parameters:
        assert f"    {name} : " in (compress.__doc__ or ""), name


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("metric", r"scoring=\.\.\."),
        ("fold", r"fuse=\.\.\."),
        *((name, rf"ReducedSet\({name}=") for name in ("solver", "init", "refine", "n_init", "max_distance")),
        ("C", r"SparseMargin\(C="),
        ("n_features", r"slimsvm\.read_libsvm\(path, n_features="),
        ("precision", r"small\.set_params\(precision="),
        *(
            (name, rf"MirrorPoints\({name}=")
            for name in ("n_pairs", "preimage", "choice", "search", "n_candidates", "n_samples")
        ),
    ],
)
def test_an_old_keyword_names_the_new_one(name: str, instead: str) -> None:
    with pytest.raises(TypeError, match=rf"^compress has no parameter '{name}' any more\. Pass .*{instead}"):
        compress(PARENT, **{name: 1})
    assert name not in names_of(compress)


@pytest.mark.parametrize(
    ("name", "instead"), [("metric", r"scoring=\.\.\."), ("C", "a model with that C"), ("n_features", "read_libsvm")]
)
def test_an_old_keyword_of_frontier_names_the_new_one(name: str, instead: str) -> None:
    with pytest.raises(TypeError, match=rf"^frontier has no parameter '{name}' any more\. Pass .*{instead}"):
        frontier(PARENT, X, Y, **{name: 1})
    assert name not in names_of(frontier)


def test_what_the_old_keywords_name_exists() -> None:
    for settings, names in (
        (ReducedSet, ("solver", "init", "refine", "n_init", "max_distance", "C")),
        (SparseMargin, ("C", "loss")),
        (MirrorPoints, ("n_pairs", "preimage", "choice", "search", "n_candidates", "n_samples")),
    ):
        assert set(names) <= {field.name for field in fields(settings)}
    assert compress(PARENT).set_params(precision="float64").precision == "float64"


def test_an_unknown_keyword_is_python_s_own_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        compress(PARENT, colour="red")  # type: ignore[call-arg]


# ---------------------------------------------------------------- settings of methods


def test_a_name_stands_for_default_settings() -> None:
    assert method_settings("auto", "compress") is None
    expected = [SparseMargin(), ReducedSet(refit=True), Selection(), Growing(), ReducedSet(), MirrorPoints()]
    expected += [SparseMargin(metric="diagonal"), SparseMargin(metric="projection")]
    assert [method_settings(one.name, "compress") for one in expected] == expected
    assert set(BY_NAME) == {one.name for one in expected}
    with pytest.raises(FrozenInstanceError):
        expected[0].C = 3.0  # type: ignore[misc]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_name_and_its_settings_give_the_same_machine(name: str) -> None:
    one, other = (
        compress(PARENT, X, Y, n_vectors=6, method=method, random_state=0) for method in (name, BY_NAME[name])
    )
    assert one.machine_ == other.machine_


def test_settings_are_those_asked_for_or_the_default_ones() -> None:
    asked = Request(PARENT, method=ReducedSet(solver="merge", max_distance=0.2))
    assert asked.settings(ReducedSet) == ReducedSet(solver="merge", max_distance=0.2)
    assert asked.settings(MirrorPoints) == MirrorPoints()
    assert asked.max_distance == 0.2
    assert Request(PARENT).settings(ReducedSet) == ReducedSet()
    assert Request(PARENT, method=Selection()).max_distance is None


def test_settings_reach_the_method() -> None:
    told: dict[str, Any] = {"n_vectors": 6, "random_state": 0}
    select = compress(PARENT, X, Y, method=ReducedSet(solver="select"), **told)
    assert {tuple(row) for row in select.vectors_} <= {tuple(row) for row in PARENT.support_vectors_}
    refitted = compress(PARENT, X, Y, method=ReducedSet(solver="select", refit=True), **told)
    np.testing.assert_array_equal(refitted.vectors_, select.vectors_)
    assert refitted.report_.method == "reduced_set+refit"
    judged = compress(PARENT, X, Y, method=ReducedSet(solver="select"), cv=2, **told)  # the same if it is judged
    assert judged.machine_.n_vectors == 6
    assert {tuple(row) for row in judged.vectors_} <= {tuple(row) for row in PARENT.support_vectors_}
    soft, hard = (compress(PARENT, X, Y, method=SparseMargin(C=C), **told) for C in (0.01, 100.0))
    assert np.abs(soft.decision_function(X)).mean() < np.abs(hard.decision_function(X)).mean()
    for name, kind in (("growing", Growing), ("selection", Selection)):
        own, other = (compress(PARENT, X, Y, method=kind(C=C), **told) for C in (5.0, 0.05))
        assert own.machine_ == compress(PARENT, X, Y, method=name, **told).machine_  # type: ignore[arg-type]
        assert own.machine_ != other.machine_


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (ReducedSet(solver="newton"), "solver of compress must be one of 'auto'"),  # type: ignore[arg-type]
        (ReducedSet(init="zeros"), "init of compress must be one of 'auto'"),  # type: ignore[arg-type]
        (ReducedSet(refine="often"), "refine of compress must be one of"),  # type: ignore[arg-type]
        (ReducedSet(n_init=0), r"n_init of compress must be a whole number of at least 1.* Got 0\."),
        (ReducedSet(max_distance=1.0), r"max_distance of compress must be a number from 0 to below 1.* Got 1\.0\."),
        (ReducedSet(refit="yes"), r"refit of compress must be one of False, True\. Got 'yes'\."),  # type: ignore[arg-type]
        (ReducedSet(refit=True, C=0.0), r"C of compress must be a finite number above 0.* Got 0\.0\."),
        (ReducedSet(C=2.0), r"C of compress is the cost in the refit\. Pass ReducedSet\(refit=True, C=\.\.\.\)"),
        (SparseMargin(loss="log"), "loss of compress must be one of 'auto', 'hinge', 'squared_hinge'"),  # type: ignore[arg-type]
        (SparseMargin(C=float("nan")), "C of compress must be a finite number above 0"),
        (Selection(C=-1.0), "C of compress must be a finite number above 0"),
        (Growing(C="5"), "C of compress must be a finite number above 0"),  # type: ignore[arg-type]
        (MirrorPoints(n_pairs=0), "n_pairs of compress must be a whole number of at least 1"),
        (MirrorPoints(preimage="best"), "preimage of compress must be one of"),  # type: ignore[arg-type]
        (MirrorPoints(choice="all"), "choice of compress must be one of"),  # type: ignore[arg-type]
        (MirrorPoints(search="none"), "search of compress must be one of"),  # type: ignore[arg-type]
        (MirrorPoints(n_candidates=0), "n_candidates of compress must be a whole number"),
        (MirrorPoints(n_samples=-5), "n_samples of compress must be a whole number"),
        (
            3,
            r"method of compress must be one of 'auto', .* or settings such as slimsvm.*ReducedSet\(\)\. Got 3",
        ),
        (ReducedSet, "method of compress must be one of 'auto'"),
    ],
    ids=str,
)
def test_bad_settings(method: Any, sentence: str) -> None:
    told: dict[str, Any] = {} if getattr(method, "max_distance", None) else {"n_vectors": 6}
    with pytest.raises(ValueError, match=sentence):
        compress(PARENT, X, Y, method=method, **told)


def test_a_squared_hinge_is_not_for_one_class_models() -> None:
    inside = OneClassSVM(nu=0.3, gamma=1.0).fit(X)
    sentence = r"method='sparse_margin' of compress takes loss='hinge' for this model\. Got loss='squared_hinge'"
    for asked in ({"n_vectors": 8}, {"max_loss": 0.1, "cv": 2}):
        with pytest.raises(ValueError, match=sentence):
            compress(inside, X, method=SparseMargin(loss="squared_hinge"), **asked)  # type: ignore[arg-type]
    same, auto = (
        compress(inside, X, n_vectors=8, method=SparseMargin(loss=loss), random_state=0) for loss in ("hinge", "auto")
    )
    assert same.machine_ == auto.machine_
    values = X[:, 0] + X[:, 1]
    for loss in ("hinge", "squared_hinge"):
        method = SparseMargin(loss=loss)  # type: ignore[arg-type]
        assert compress(PARENT, X, Y, n_vectors=6, method=method, random_state=0).score(X, Y) > 0.85
        assert (
            compress(SVR().fit(X, values), X, values, n_vectors=8, method=method, random_state=0).score(X, values) > 0.9
        )


# ---------------------------------------------------------------- max_time

TINY = 1e-9  # seconds, which are over before anything is judged


@pytest.mark.parametrize(("method", "budget"), [("selection", 0.1), ("auto", 0.3)])
def test_time_that_runs_out_leaves_a_machine_within_the_budget(method: Any, budget: float) -> None:
    told: dict[str, Any] = {"max_loss": budget, "validation": HELD_OUT, "method": method, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match=r"stopped after max_time=1e-09 seconds.* larger max_time") as caught:
        small = compress(PARENT, X, Y, max_time=TINY, **told)
    assert [one.filename for one in caught] == [__file__]  # the line that asked for it
    assert small.report_.estimate <= budget
    assert small.n_vectors_ < len(PARENT.support_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at_leisure, unlimited = (compress(PARENT, X, Y, max_time=limit, **told) for limit in (3600.0, None))
    assert at_leisure.machine_ == unlimited.machine_
    assert len(at_leisure.report_.tried) > len(small.report_.tried)
    assert at_leisure.n_vectors_ <= small.n_vectors_


def test_time_that_runs_out_too_early_is_an_error_that_says_so() -> None:
    told: dict[str, Any] = {"max_loss": 0.0, "confidence": 0.999, "validation": HELD_OUT, "random_state": 0}
    sentence = (
        r"^max_loss=0 of compress was not reached before time ran out: the search for a size stopped after "
        r"max_time=1e-09 seconds, and the nearest machine so far, of \d+, loses .* `best` of this error is that "
        r"machine\. Pass a larger max_time\.$"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PromiseError, match=sentence) as caught:
            compress(PARENT, X, Y, max_time=TINY, method="selection", **told)
    best: Any = caught.value.best
    assert isinstance(best, SlimClassifier)
    assert best.n_vectors_ < len(PARENT.support_)
    assert len(best.report_.tried) == 1


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf"), "60", True])
def test_max_time_is_a_number_of_seconds(wrong: Any) -> None:
    with pytest.raises(ValueError, match="max_time of compress must be a finite number above 0"):
        compress(PARENT, X, Y, max_loss=0.1, max_time=wrong)


@pytest.mark.parametrize("options", [{}, {"n_vectors": 5}, {"method": ReducedSet(max_distance=0.1)}])
def test_without_a_search_there_is_nothing_to_limit(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="max_time of compress limits the search for a size, and none is made here"):
        compress(PARENT, X, Y, max_time=60.0, **options)


# ---------------------------------------------------------------- read_libsvm


def test_read_libsvm(tmp_path: Path) -> None:
    path = tmp_path / "moons.model"
    slimsvm.export(compress(PARENT), "libsvm", path)
    read = slimsvm.read_libsvm(path)
    assert isinstance(read, SlimClassifier)
    np.testing.assert_array_equal(read.predict(X), PARENT.predict(X))
    assert read.machine_ == compress(path).machine_
    wide = slimsvm.read_libsvm(str(path), n_features=5)
    assert wide.n_features_in_ == 5
    np.testing.assert_array_equal(wide.predict(np.c_[X, np.zeros((120, 3))]), PARENT.predict(X))
    padded = np.c_[X, np.zeros((120, 3))]
    small = compress(wide, padded, Y, n_vectors=8, method=SparseMargin(C=5.0), random_state=0)
    assert small.n_features_in_ == 5
    assert small.score(padded, Y) > 0.85
    with pytest.raises(ValueError, match="n_features must be at least 2"):
        slimsvm.read_libsvm(path, n_features=1)
    path.write_text("nothing of the kind")
    with pytest.raises(FormatError, match="line 1"):
        slimsvm.read_libsvm(path)
    with pytest.raises(FileNotFoundError):
        slimsvm.read_libsvm(tmp_path / "none")

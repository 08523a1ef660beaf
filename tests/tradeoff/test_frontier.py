"""The frontier: figures that independent loops confirm, the same table again, and work that is not done twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import balanced_accuracy_score, get_scorer, log_loss, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import slimsvm
from slimsvm import frontier
from slimsvm.compression import timing
from slimsvm.compression.candidates.cache import CandidateCache
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.optim.platt import fit_sigmoid
from slimsvm.tradeoff.table import Frontier

TIMES = ("us_alone", "us_batch")
QUICK: dict[str, Any] = {"sizes": [3, 8], "methods": ["reduced_set", "reduced_set+refit"], "baselines": False}


@pytest.fixture(scope="module")
def moons() -> Any:
    return make_moons(160, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def svc(moons: Any) -> Any:
    return SVC(C=5, gamma=1.0).fit(*moons)


@pytest.fixture(scope="module")
def full(svc: Any, moons: Any) -> Any:
    """Every method and baseline that applies."""
    return frontier(svc, *moons, sizes=[3, 8], cv=StratifiedKFold(3), random_state=0)


def without_times(found: Frontier) -> Any:
    names = [name for name in found.records.dtype.names or () if name not in TIMES]
    return found.records[names].tolist()


def row(found: Frontier, method: str, size: int = 0) -> Any:
    rows = found.records[(found.records["method"] == method) & (found.records["size"] == size)]
    assert len(rows) == 1
    return rows[0]


def test_the_table_has_every_method_and_size(full: Frontier) -> None:
    methods = ["sparse_margin", "reduced_set+refit", "selection", "growing", "reduced_set"]
    methods += ["sparse_margin+diagonal", "sparse_margin+projection", "nystroem", "subsampled"]
    expected = [("parent", 0), ("exact", 0), *((m, s) for m in methods for s in (3, 8))]
    expected += [("boosted trees", n) for n in (25, 75, 500)]
    assert full.records[["method", "size"]].tolist() == expected
    assert full.scoring == "accuracy"
    assert not full.skipped
    assert (full.records["us_alone"] > 0).all()
    assert (full.records["us_batch"] > 0).all()
    sized = full.records[(full.records["size"] > 0) & (full.records["method"] != "boosted trees")]
    assert (sized["vectors"] <= sized["size"]).all()
    assert (sized["kepp"] == sized["vectors"]).all()
    np.testing.assert_allclose(full.records["loss"], full.records["score"][0] - full.records["score"], atol=1e-12)
    assert full.records["agreement"][0] == 1.0


@pytest.mark.parametrize("baselines", [[], False])
def test_no_baselines(svc: Any, moons: Any, baselines: Any) -> None:
    found = frontier(svc, *moons, cv=2, sizes=[3], methods=["reduced_set"], baselines=baselines, random_state=0)
    assert found.records["method"].tolist() == ["parent", "exact", "reduced_set"]


def test_the_parent_is_refitted_on_the_folds(full: Frontier, svc: Any, moons: Any) -> None:
    X, y = moons
    answers = cross_val_predict(svc, X, y, cv=StratifiedKFold(3))
    parent = row(full, "parent")
    right = float(np.mean(answers == y))
    assert parent["score"] == pytest.approx(right)
    assert parent["score_se"] == pytest.approx(np.sqrt(right * (1 - right) / len(y)), rel=0.1)
    assert parent["vectors"] == len(svc.support_)
    assert parent["bytes"] == 4 * (len(svc.support_) * 3 + 1)
    assert row(full, "exact")["score"] == parent["score"]


def test_baselines_are_what_a_user_would_do(full: Frontier, moons: Any) -> None:
    X, y = moons
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    right, agree = [], []
    for number, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        features = Nystroem(gamma=1.0, n_components=8, random_state=seed + number)
        model = make_pipeline(features, LinearSVC(C=5, random_state=seed + number)).fit(X[train], y[train])
        parent = SVC(C=5, gamma=1.0).fit(X[train], y[train])
        right.append(model.predict(X[test]) == y[test])
        agree.append(model.predict(X[test]) == parent.predict(X[test]))
    found = row(full, "nystroem", 8)
    assert found["score"] == pytest.approx(np.concatenate(right).mean())
    assert found["agreement"] == pytest.approx(np.concatenate(agree).mean())
    assert row(full, "subsampled", 8)["vectors"] <= 8
    trees = row(full, "boosted trees", 25)
    assert trees["vectors"] == 0
    assert trees["bytes"] > 1000


def test_trees_are_as_good_as_a_user_would_make_them() -> None:
    """Of rare classes with weights: the model's class weights and the sample weights count for trees, too."""
    # scikit-learn's weighted quantiles of more than 255 values take a second for each model.
    X, y = make_classification(400, 6, n_informative=4, n_redundant=0, weights=[0.93], class_sep=0.7, random_state=2)
    name, weights = np.array(["common", "rare"])[y], np.where(X[:, 0] > 0, 1.0, 0.3)
    told: dict[str, Any] = {"scoring": "balanced_accuracy", "methods": [], "baselines": ["boosted trees"]}
    cv = StratifiedKFold(2)
    model = SVC(C=5, class_weight="balanced").fit(X, name)
    found = frontier(model, X, name, cv=cv, sample_weight=weights, random_state=0, **told)
    plain = clone(model).set_params(class_weight=None).fit(X, name)
    without = frontier(plain, X, name, cv=cv, random_state=0, **told)
    alone = []
    for train, test in cv.split(X, y):
        own = HistGradientBoostingClassifier(class_weight="balanced", random_state=0)
        own.fit(X[train], name[train], sample_weight=weights[train])
        alone.append(balanced_accuracy_score(name[test], own.predict(X[test]), sample_weight=weights[test]))
    scores = found.records[found.records["method"] == "boosted trees"]["score"]
    assert len(scores) == 3
    assert max(scores) > np.mean(alone) - 0.02
    assert min(scores) > max(without.records[without.records["method"] == "boosted trees"]["score"])


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_trees_have_weights_only_if_they_differ(monkeypatch: pytest.MonkeyPatch, class_weight: Any) -> None:
    """Equal weights give the same trees, but scikit-learn needs several times as long with them."""
    X, y = make_classification(120, 6, weights=[0.7], random_state=0)
    fit, seen = HistGradientBoostingClassifier.fit, []

    def watched(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        seen.append(sample_weight)
        return fit(self, X, y, sample_weight=sample_weight)

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", watched)
    model = SVC(class_weight=class_weight).fit(X, y)
    frontier(model, X, y, cv=2, methods=[], baselines=["boosted trees"], random_state=0)
    assert seen
    assert all((weights is None) == (class_weight is None) for weights in seen)


def test_a_search_passes_its_score_on(moons: Any) -> None:
    X, y = moons
    search = GridSearchCV(SVC(gamma=1.0), {"C": [1.0, 5.0]}, scoring=["f1", "roc_auc"], refit="f1", cv=2).fit(X, y)
    assert frontier(search, X, y, cv=2, random_state=0, **QUICK).scoring == "f1"
    assert frontier(search, X, y, cv=2, scoring="accuracy", random_state=0, **QUICK).scoring == "accuracy"
    search.scorer_ = {"f1": get_scorer("neg_log_loss")}
    assert frontier(search, X, y, cv=2, random_state=0, **QUICK).scoring == "neg_log_loss"


def test_scores_of_probabilities(moons: Any) -> None:
    """Every model is judged by probabilities that were fitted on other held-out samples, or by its own."""
    X, y = moons
    plain = {"validation": (X[100:], y[100:]), "scoring": "neg_log_loss", "sizes": [8], "random_state": 0}
    model = SVC(C=5).fit(X[:100], y[:100])
    found = frontier(model, X[:100], y[:100], methods=["reduced_set"], **plain)
    rows = {row["method"]: row for row in found.records}
    assert set(rows) == {"parent", "exact", "reduced_set", "nystroem", "subsampled", "boosted trees"}
    scores, held, P = model.decision_function(X[100:]), y[100:], np.empty(60)
    half = np.zeros(60, dtype=bool)
    for label in (0, 1):
        half[np.flatnonzero(held == label)[::2]] = True
    for part in (half, ~half):
        own, positive = scores[part], (held[part] == 1).sum()
        targets = np.where(held[part] == 1, (positive + 1) / (positive + 2), 1 / (len(own) - positive + 2))
        a, b = fit_sigmoid(own, targets, np.ones(len(own)))
        P[~part] = 1 / (1 + np.exp(a * scores[~part] + b))
    assert rows["parent"]["score"] == pytest.approx(-log_loss(held, P))
    trees = HistGradientBoostingClassifier(max_iter=25, max_leaf_nodes=4, early_stopping=False, random_state=0)
    smallest = next(row for row in found.records if row["method"] == "boosted trees")
    seed = np.random.RandomState(0).randint(2**31 - 1)
    trees.set_params(random_state=seed).fit(X[:100], y[:100])
    assert smallest["score"] == pytest.approx(-log_loss(held, trees.predict_proba(X[100:])))
    with pytest.raises(ValueError, match="reduced_set\\+early_exit has no probabilities"):
        frontier(model, X[:100], y[:100], methods=["reduced_set+early_exit"], **plain)


def test_preprocessing_is_measured_once(moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = moons
    model = make_pipeline(StandardScaler(), SVC(C=5)).fit(X, y)
    transform, calls = StandardScaler.transform, []
    monkeypatch.setattr(timing, "ROUNDS", 3)  # whatever the clock says
    monkeypatch.setattr(StandardScaler, "transform", lambda self, X: (calls.append(0), transform(self, X))[1])
    counts = []
    for sizes in ([3], [3, 4, 5, 6]):
        calls.clear()
        found = frontier(model, X, y, cv=2, random_state=0, **{**QUICK, "sizes": sizes})
        counts.append(len(calls))
        assert (found.records["us_alone"] > 0).all()
    assert counts[1] == counts[0]


def test_validation_judges_the_model_itself(svc: Any, moons: Any) -> None:
    X, y = moons
    X_new, y_new = make_moons(100, noise=0.3, random_state=1)
    found = frontier(svc, X, y, validation=(X_new, y_new), random_state=0, **QUICK)
    assert row(found, "parent")["score"] == pytest.approx(svc.score(X_new, y_new))
    small = CandidateCache(Problem.of(svc, X, y), Request(svc), int(np.random.RandomState(0).randint(2**31 - 1)))
    for m in (3, 8):
        machine = small.machine("reduced_set", m)
        assert row(found, "reduced_set", m)["score"] == pytest.approx(np.mean(machine.predict(X_new) == y_new))


def test_the_same_seed_gives_the_same_table(svc: Any, moons: Any) -> None:
    one = frontier(svc, *moons, cv=3, random_state=3, **QUICK)
    for n_jobs in (1, 3):
        again = frontier(svc, *moons, cv=3, random_state=3, n_jobs=n_jobs, **QUICK)
        assert without_times(again) == without_times(one)


def test_other_scores(svc: Any, moons: Any) -> None:
    some = np.r_[np.flatnonzero(moons[1] == 0), np.flatnonzero(moons[1])[:24]]  # on which accuracy is something else
    X, y = moons[0][some], moons[1][some]
    folds = StratifiedKFold(2)
    found = frontier(svc, X, y, cv=folds, scoring="balanced_accuracy", random_state=0, **QUICK)
    assert found.scoring == "balanced_accuracy"
    parts = []
    for train, test in folds.split(X, y):
        parts.append(balanced_accuracy_score(y[test], SVC(C=5, gamma=1.0).fit(X[train], y[train]).predict(X[test])))
    assert row(found, "parent")["score"] == pytest.approx(np.mean(parts))
    assert 0 < row(found, "reduced_set", 3)["score_se"] < 0.2

    def mine(model: Any, X: Any, y: Any) -> float:
        return float(balanced_accuracy_score(y, model.predict(X)))

    own = frontier(svc, X, y, cv=folds, scoring=mine, random_state=0, **{**QUICK, "baselines": ["nystroem"]})
    assert own.scoring == "mine"
    shared = len(found.records)
    assert own.records["method"][:shared].tolist() == found.records["method"].tolist()
    assert len(set(found.records["score"].tolist())) > 2
    np.testing.assert_allclose(own.records["score"][:shared], found.records["score"], atol=1e-12)


def test_values(moons: Any) -> None:
    X = moons[0]
    t = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    svr = SVR(C=10, epsilon=0.05).fit(X, t)
    folds = GroupKFold(2)
    found = frontier(svr, X, t, cv=folds, groups=np.arange(160) % 2, sizes=[15], random_state=0)
    assert found.scoring == "R²"
    halves = [(np.arange(0, 160, 2), np.arange(1, 160, 2)), (np.arange(1, 160, 2), np.arange(0, 160, 2))]
    own = [r2_score(t[b], SVR(C=10, epsilon=0.05).fit(X[a], t[a]).predict(X[b])) for a, b in halves]
    assert row(found, "parent")["score"] == pytest.approx(np.mean(own), abs=1e-6)
    assert set(found.skipped) == {"growing"}
    assert row(found, "sparse_margin", 15)["score"] > 0.9
    assert row(found, "sparse_margin", 15)["agreement"] > 0.9


def test_one_class_models_are_compared_with_themselves(moons: Any) -> None:
    X = moons[0]
    found = frontier(OneClassSVM(nu=0.2).fit(X), X, cv=2, sizes=[8], random_state=0)
    assert found.scoring == "agreement with the original model"
    np.testing.assert_allclose(found.records["score"], found.records["agreement"])
    assert row(found, "parent")["score"] == 1.0
    assert set(found.skipped) == {"growing", "boosted trees"}
    labels = np.where(np.arange(160) < 140, 1, -1)
    assert frontier(OneClassSVM(nu=0.2).fit(X), X, labels, cv=2, random_state=0, **QUICK).scoring == "accuracy"


def test_forms_of_models_and_data(moons: Any, tmp_path: Path) -> None:
    X, y = pd.DataFrame(moons[0], columns=["a", "b"]), np.array(["no", "yes"])[moons[1]]
    pipeline = make_pipeline(StandardScaler(), SVC(C=5)).fit(X, y)
    named = frontier(pipeline, X, y, cv=2, random_state=0, **{**QUICK, "baselines": ["nystroem", "subsampled"]})
    assert row(named, "nystroem", 8)["score"] > 0.8
    weights = np.ones(160)
    weights[:40] = 0
    part = frontier(SVC(C=5).fit(moons[0], y), moons[0], y, cv=2, sample_weight=weights, random_state=0, **QUICK)
    assert row(part, "parent")["score_se"] > row(named, "parent")["score_se"]
    csr = sparse.csr_array(moons[0])
    thin = frontier(SVC(C=5).fit(csr, y), csr, y, cv=2, sizes=[8], methods=["selection"], random_state=0)
    assert thin.skipped == {"boosted trees": "does not take sparse data"}
    small = slimsvm.compress(SVC(C=5).fit(moons[0], y))
    alone = frontier(small, moons[0], y, validation=(moons[0], y), random_state=0, **QUICK)
    assert "exact" not in alone.records["method"]  # the parent itself is slimsvm's
    slimsvm.export(slimsvm.compress(SVC(C=5).fit(*moons)), "libsvm", tmp_path / "moons.model")
    filed = frontier(tmp_path / "moons.model", *moons, validation=moons, random_state=0, **QUICK)
    assert filed.records["score"].tolist() == alone.records["score"].tolist()
    with pytest.raises(ValueError, match=r"cv of frontier refits.*a LIBSVM model file cannot.*validation="):
        frontier(tmp_path / "moons.model", *moons, **QUICK)


def test_early_exit_needs_fewer_evaluations(svc: Any, moons: Any) -> None:
    methods = ["reduced_set+refit", "reduced_set+refit+early_exit"]
    found = frontier(svc, *moons, cv=2, sizes=[12], methods=methods, baselines=False, random_state=0)
    fast = row(found, methods[1], 12)
    assert fast["vectors"] == 12
    assert 1 <= fast["kepp"] < 12


def test_finished_parts_are_not_made_again(
    svc: Any, moons: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = frontier(svc, *moons, cv=2, random_state=0, memory=tmp_path, **QUICK)

    def never(*args: Any) -> Any:
        raise AssertionError("made again")

    monkeypatch.setattr(CandidateCache, "machine", never)
    monkeypatch.setattr(SVC, "fit", never)
    again = frontier(svc, *moons, cv=2, random_state=0, memory=tmp_path, **QUICK)
    assert without_times(again) == without_times(one)
    with pytest.raises(AssertionError, match="made again"):
        frontier(svc, *moons, cv=2, random_state=1, memory=tmp_path, **QUICK)
    for part in (tmp_path / "slimsvm").iterdir():
        part.write_bytes(part.read_bytes()[:50])
    with pytest.raises(AssertionError, match="made again"):
        frontier(svc, *moons, cv=2, random_state=0, memory=tmp_path, **QUICK)


KILLED = """
import sys
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC
import slimsvm
X, y = make_moons(160, noise=0.3, random_state=0)
svc = SVC(C=5, gamma=1.0).fit(X, y)
methods = ["reduced_set", "reduced_set+refit", "sparse_margin"]
from slimsvm.compression.candidates.cache import CandidateCache
made = CandidateCache.machine
def machine(self, method, m):
    if method == "sparse_margin":
        print("waiting", flush=True)
        import time; time.sleep(60)
    return made(self, method, m)
CandidateCache.machine = machine
slimsvm.frontier(svc, X, y, cv=2, sizes=[3, 8], methods=methods, baselines=False, random_state=0, memory=sys.argv[1])
"""


def test_a_killed_run_goes_on_where_it_stopped(
    svc: Any, moons: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline().strip() == "waiting"
        run.send_signal(signal.SIGKILL)
    methods = ["reduced_set", "reduced_set+refit", "sparse_margin"]
    options: dict[str, Any] = {"cv": 2, "sizes": [3, 8], "methods": methods, "baselines": False, "random_state": 0}
    plain = frontier(svc, *moons, **options)
    built: list[str] = []
    machine = CandidateCache.machine
    monkeypatch.setattr(
        CandidateCache, "machine", lambda self, method, m: (built.append(method), machine(self, method, m))[1]
    )
    resumed = frontier(svc, *moons, memory=tmp_path, **options)
    assert without_times(resumed) == without_times(plain)
    assert "reduced_set+refit" not in built
    assert built[0] == "sparse_margin"


def test_ctrl_c_leaves_what_is_finished(svc: Any, moons: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = CandidateCache.machine

    def stops(self: CandidateCache, method: str, m: int) -> Any:
        if method == "reduced_set+refit":
            raise KeyboardInterrupt
        return machine(self, method, m)

    monkeypatch.setattr(CandidateCache, "machine", stops)
    with pytest.raises(slimsvm.Interrupted) as stop:
        frontier(svc, *moons, cv=2, random_state=0, **QUICK)
    left: Any = stop.value.best
    assert left.records["method"].tolist() == ["parent", "exact", "reduced_set", "reduced_set"]
    assert np.isnan(left.records["us_alone"]).all()


def test_progress_is_told(svc: Any, moons: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="slimsvm"):
        frontier(svc, *moons, cv=2, random_state=0, verbose=1, **QUICK)
    told = [record.getMessage().split(": ", 1)[1] for record in caplog.records]
    shares = [line for line in told if line.endswith("%")]
    assert [line.split("; ")[1] for line in shares] == ["1 of 2 methods done, 50%", "2 of 2 methods done, 100%"]
    assert not any("ρ²" in line for line in told)  # of single machines only verbose=2 tells


def test_pareto_front_and_tables(full: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    for cost in ("vectors", "bytes", "us_batch"):
        front = full.pareto(cost)
        points = [(float(c), float(s)) for c, s in zip(full.records[cost], full.records["score"], strict=True)]
        for (c, s), kept in zip(points, front, strict=True):
            beaten = any(a <= c and b >= s and (a < c or b > s) for a, b in points if a > 0)
            assert kept == (c > 0 and not beaten)
    frame = full.table
    assert isinstance(frame, pd.DataFrame)
    assert frame["score"].tolist() == full.records["score"].tolist()
    text = repr(full)
    assert "boosted trees" in text
    assert len(text.splitlines()) == len(full.records) + 1
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert full.table.score.tolist() == full.records["score"].tolist()
    with pytest.raises(ImportError, match="needs pandas"):
        full.to_frame()


def test_errors_say_what_to_do(svc: Any, moons: Any) -> None:
    X, y = moons
    for options, message in (
        ({"methods": ["magic"]}, "methods of frontier must be some of .*Got 'magic'"),
        ({"methods": "growing"}, "methods of frontier must be a list"),
        ({"baselines": ["magic"]}, "baselines of frontier must be some of"),
        ({"sizes": []}, "n_vectors of frontier must hold at least one"),
        ({"sizes": [0]}, "n_vectors of frontier must be a whole number"),
        ({"scoring": "magic"}, "scoring of frontier must be the name"),
        ({"memory": 3}, "memory of frontier must be a path"),
        ({"cv": 1}, "cv of frontier must be at least 2"),
        ({"validation": X}, "validation of frontier must be a pair"),
        ({"validation": (X, y), "groups": y}, "groups of frontier go with cv"),
        ({"validation": (X, None)}, "validation of frontier needs y_val"),
        ({"groups": y[:5]}, "groups of frontier must name a group"),
    ):
        with pytest.raises(ValueError, match=message):
            frontier(svc, X, y, **options)
    with pytest.raises(ValueError, match="cv of frontier refits the model in each fold and needs y"):
        frontier(svc, X)
    with pytest.raises(ValueError, match=r"cv of frontier refits.*validation=\(X_val, y_val\)"):
        frontier(slimsvm.compress(svc), X, y)
    with pytest.raises(ValueError, match="growing is for models that answer with classes"):
        frontier(SVR().fit(X, X[:, 0]), X, X[:, 0], methods=["growing"])

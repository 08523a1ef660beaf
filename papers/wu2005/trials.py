"""One trial: a family of methods on one machine of one split, and what the machines made are worth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Place, Row
from problems import SETTINGS, WHOLE, data_of, labels_of, machines_of, settings_of, size_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import slimsvm

KEY = ("set", "split", "machine", "method", "share")


@dataclass(frozen=True)
class Task:
    """What to run: `family` makes the rows of one method or two; all but the SVM know its number of support vectors."""

    family: str
    set: str
    split: int
    machine: str
    share: float
    place: Place
    support_vectors: int = 0

    def wanted(self) -> list[tuple[Any, ...]]:
        """What tells the rows of this task from all others."""
        return [(self.set, self.split, self.machine, method, self.share) for method in FAMILIES[self.family][0]]

    def scores_path(self, method: str) -> Path | None:
        """Where the scores of one of several machines are kept, until all are there."""
        if self.machine == WHOLE:
            return None
        return scores_path(self.place, (self.set, self.split, self.machine, method, self.share))


@dataclass(frozen=True)
class Made:
    """A classifier, what its last training took, what choosing it took before, and what was minimised."""

    method: str
    model: Any
    seconds: float
    search_seconds: float = 0.0
    value: float = 0.0
    solver: str = ""


def scores_path(place: Place, key: tuple[Any, ...]) -> Path:
    """The file of a machine's scores and vectors."""
    return place.folder / "scores" / ("{}-{}-{}-{}-{:g}.npz".format(*key))


def tasks_of(name: str, place: Place, families: list[str], splits: int, support: dict[Any, int]) -> list[Task]:
    """Every trial of some families on one set; `support` has N_SV by split and machine."""
    return [
        Task(family, name, split, machine, share, place, support.get((split, machine), 0))
        for split in range(splits)
        for family in families
        for machine in machines_of(name, place.smoke)
        for share in (SETTINGS["shares"] if FAMILIES[family][1] else [0.0])
    ]


def run(task: Task) -> list[Row]:
    """The rows of one trial, one per method; scores of one of several machines are kept beside."""
    X, y, X_test, y_test = data_of(task.set, task.split, task.place.smoke)
    y, y_test = labels_of(y, task.machine), labels_of(y_test, task.machine)
    with warnings.catch_warnings():
        # What did not converge is judged by its error like the rest; n_iter tells where the limit was reached.
        warnings.simplefilter("ignore", ConvergenceWarning)
        made = FAMILIES[task.family][2](task, X, y)
    rows = []
    for one in made:
        path = task.scores_path(one.method)
        if path is not None:
            keep_scores(path, one.model, X_test)
        rows.append(_row(task, one, float(one.model.score(X_test, y_test))))
    return rows


def keep_scores(path: Path, model: Any, X_test: Any) -> None:
    """The scores on the test rows and the vectors of one machine; the file appears whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part.npz")
    vectors = model.support_vectors_ if isinstance(model, SVC) else model.vectors_
    np.savez(beside, scores=model.decision_function(X_test), vectors=vectors)
    beside.replace(path)


def _row(task: Task, made: Made, accuracy: float) -> Row:
    model = made.model
    vectors = len(model.support_) if isinstance(model, SVC) else model.n_vectors_
    return {
        **dict(zip(KEY, (task.set, task.split, task.machine, made.method, task.share), strict=True)),
        "C": getattr(model, "C", ""),
        "gamma": model.gamma,
        "solver": made.solver,
        "support_vectors": task.support_vectors or vectors,
        "vectors": vectors,
        "vectors_total": vectors,
        "test_error": 100.0 * (1.0 - accuracy),
        "value": made.value,
        "n_iter": int(np.sum(getattr(model, "n_iter_", 0))),
        "seconds": made.seconds,
        "search_seconds": made.search_seconds,
    }


def _timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    begin = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - begin


def _options(task: Task) -> dict[str, Any]:
    """The SVM's parameters, which all methods but the RSVM, the MRSVM and the RVM share with it."""
    settings = settings_of(task.set, task.place.smoke)
    return {"C": settings["C"], "gamma": settings["gamma"]}


def _svm(task: Task, X: Any, y: Any) -> list[Made]:
    model, seconds = _timed(SVC(**_options(task), cache_size=1000), X, y)
    return [Made("svm", model, seconds)]


def _reduced_sets(task: Task, X: Any, y: Any) -> list[Made]:
    """RS: the best of the solvers by ρ². MRS: the same once more, so with the same vectors, for the margin."""
    size, found = size_of(task.share, task.support_vectors), []
    for chosen in settings_of(task.set, task.place.smoke)["runs"]:
        blank = slimsvm.ReducedSetClassifier(size, **_options(task), **chosen, random_state=task.split)
        model, seconds = _timed(blank, X, y)
        found.append(Made("rs", model, seconds, value=model.history_[-1]["rho2"], solver=" ".join(_named(chosen))))
    best = min(found, key=lambda made: made.value)
    others = sum(made.seconds for made in found) - best.seconds
    margin, seconds = _timed(clone(best.model).set_params(coef="margin"), X, y)
    if not np.array_equal(margin.vectors_, best.model.vectors_):
        raise AssertionError("RS and MRS have different vectors: the same seed must give the same.")
    return [
        Made("rs", best.model, best.seconds, others, best.value, best.solver),
        Made("mrs", margin, seconds, others, best.value, best.solver),
    ]


def _named(chosen: dict[str, Any]) -> list[str]:
    return [chosen["solver"]] + ([chosen["init"]] if chosen["init"] != "auto" else [])


def _reduced_svms(task: Task, X: Any, y: Any) -> list[Made]:
    """RSVM with C and γ by cross-validation. MRSVM: the same samples, C and γ, for the margin."""
    size = size_of(task.share, task.support_vectors)
    model, search_seconds = _searched(
        task, slimsvm.ReducedSVC(size, random_state=task.split), X, y, C="C", gamma="gamma"
    )
    made = []
    for method, coef in (("rsvm", "rsvm"), ("mrsvm", "margin")):
        fitted, seconds = _timed(clone(model).set_params(coef=coef), X, y)
        made.append(Made(method, fitted, seconds, search_seconds, fitted.objective_))
    return made


def _searched(task: Task, model: Any, X: Any, y: Any, **names: str) -> tuple[Any, float]:
    """The model, not fitted, with the parameters of the best accuracy in cross-validation; of equals the first.

    `names` says which powers of two in the grid serve for which parameter.
    """
    settings = settings_of(task.set, task.place.smoke)
    grid = {parameter: [2.0**power for power in settings["grid"][name]] for parameter, name in names.items()}
    if all(len(values) == 1 for values in grid.values()):
        return model.set_params(**{name: values[0] for name, values in grid.items()}), 0.0
    folds = StratifiedKFold(settings["folds"], shuffle=True, random_state=task.split)
    begin = time.perf_counter()
    search = GridSearchCV(model, grid, cv=folds, refit=False, error_score="raise").fit(X, y)
    return model.set_params(**search.best_params_), time.perf_counter() - begin


def _sparse_margin(task: Task, X: Any, y: Any) -> list[Made]:
    blank = slimsvm.SparseLargeMarginClassifier(
        size_of(task.share, task.support_vectors),
        **_options(task),
        **SETTINGS["slmc"][task.family],
        solver="lbfgs",
        max_iter=settings_of(task.set, task.place.smoke)["max_iter"],
        random_state=task.split,
    )
    model, seconds = _timed(blank, X, y)
    return [Made(task.family, model, seconds, value=model.objective_)]


def _relevance(task: Task, X: Any, y: Any) -> list[Made]:
    blank = slimsvm.RelevanceVectorClassifier(kernel="rbf", max_candidates=len(X), random_state=task.split)
    model, search_seconds = _searched(task, blank, X, y, gamma="rvm_gamma")
    model, seconds = _timed(model, X, y)
    return [Made("rvm", model, seconds, search_seconds, model.log_marginal_likelihood_)]


# By family: the methods it makes, whether the share of vectors is chosen, and what makes them.
FAMILIES: dict[str, tuple[list[str], bool, Callable[[Task, Any, Any], list[Made]]]] = {
    "svm": (["svm"], False, _svm),
    "rs": (["rs", "mrs"], True, _reduced_sets),
    "rsvm": (["rsvm", "mrsvm"], True, _reduced_svms),
    **{method: ([method], True, _sparse_margin) for method in SETTINGS["slmc"]},
    "rvm": (["rvm"], False, _relevance),
}
METHODS = [method for methods, _, _ in FAMILIES.values() for method in methods]

"""What is run: the choice of parameters by cross-validation, one trial of one method, and one category of Reuters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Row
from problems import SETTINGS, SMOKE, data_of, reuters, setting
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from slimsvm import GrowingSVC, KernelMachine, MultiKernelGrowingSVC, add_early_exit
from slimsvm.methods import WidthSearchCV

METHODS = ("gsvc", "searched", "mk", "svc")  # the paper's width, our own search for it, several widths, the whole SVM
EARLY = {"gsvc": "fc", "searched": "searched fc", "mk": "mk fc"}  # the same machines with early exit, as they grew
ORDERED = {"gsvc": "ordered", "searched": "searched ordered"}  # with their vectors ordered by what they add


@dataclass(frozen=True)
class Task:
    """A method on a set: its parameters are chosen where `trial` is None, else it is run with them."""

    set: str
    method: str
    smoke: bool
    trial: int | None = None
    C: float = 0.0
    gamma: float = 0.0


def model(task: Task) -> Any:
    """The estimator of a task."""
    if task.method == "svc":
        return SVC(C=task.C or 1.0, gamma=task.gamma or "scale", cache_size=1000)
    options: dict[str, Any] = {"random_state": task.trial or 0, "early_exit": task.trial is not None}
    if task.C:
        options["C"] = task.C
    if task.smoke:
        options["max_vectors"] = SMOKE["max_vectors"]
    if task.method == "mk":
        return MultiKernelGrowingSVC(gamma=gamma_of(SETTINGS["sigma_first"]), **options)
    settings = SETTINGS["sets"][task.set]
    gamma = task.gamma or gamma_of(settings["sigma"])
    return GrowingSVC(gamma=gamma, vectors_per_class=settings["vectors_per_class"], **options)


def gamma_of(sigma: float) -> float:
    """γ of exp(−‖x − z‖²/(2σ²))."""
    return 1.0 / (2.0 * sigma**2)


def choose(task: Task) -> list[Row]:
    """C, and γ where it is not given, by cross-validation on the training part of the first trial."""
    X, y, _, _ = data_of(task.set, task.smoke)
    folds = StratifiedKFold(setting("folds", task.smoke), shuffle=True, random_state=0)
    grid = {"C": setting("C", task.smoke)}
    begin = time.perf_counter()
    search: Any
    if task.method in ("searched", "svc"):
        search = WidthSearchCV(
            model(task),
            grid,
            low=gamma_of(setting("sigma_high", task.smoke)),
            high=gamma_of(setting("sigma_low", task.smoke)),
            n_coarse=setting("n_coarse", task.smoke),
            n_fine=setting("n_fine", task.smoke),
            cv=folds,
            refit=False,
        )
    else:
        search = GridSearchCV(model(task), grid, cv=folds, refit=False)
    search.fit(X, y)
    best = search.best_params_
    gamma = best.get("gamma", 0.0 if task.method == "mk" else model(task).gamma)
    chosen = {"set": task.set, "method": task.method, "C": float(best["C"]), "gamma": float(gamma)}
    measured = {"cv_error": 100 * (1 - float(search.best_score_)), "seconds": time.perf_counter() - begin}
    return [chosen | measured]


def run(task: Task) -> list[Row]:
    """A row of the machine, and rows of the same with early exit. `lost`: training samples that early exit loses."""
    X, y, X_test, y_test = data_of(task.set, task.smoke, task.trial or 0)
    begin = time.perf_counter()
    fitted = model(task).fit(X, y)
    seconds = time.perf_counter() - begin
    base = {"set": task.set, "method": task.method, "trial": task.trial}
    if task.method == "svc":
        error, size = 100 * (1 - fitted.score(X_test, y_test)), len(fitted.support_)
        return [base | {"error": error, "kepp": size, "n_vectors": size, "lost": 0, "seconds": seconds}]
    full = fitted.machine_.without_early_exit()
    base |= {"n_vectors": full.n_vectors, "seconds": seconds}
    named = {task.method: full, EARLY[task.method]: fitted.machine_}
    if task.method in ORDERED:
        named[ORDERED[task.method]] = add_early_exit(full, X, y)
    right = full.predict(X) == y
    return [
        base | {"method": name} | measured(machine, X[right], y[right], X_test, y_test)
        for name, machine in named.items()
    ]


def measured(machine: KernelMachine, X: Any, y: Any, X_test: Any, y_test: Any) -> Row:
    """Test error, kernel evaluations, and how many of the samples (X, y) that the full machine gets right are lost."""
    return {
        "error": 100 * float(np.mean(machine.predict(X_test) != y_test)),
        "kepp": float(np.mean(machine.kernel_evaluations(X_test))),
        "lost": int(np.sum(machine.predict(X) != y)),
    }


@dataclass(frozen=True)
class Category:
    """One category of Reuters in one form, all its trials."""

    category: str
    form: str
    smoke: bool


def run_category(task: Category) -> list[Row]:
    """Break-even points of every trial, and of the linear SVM; C by cross-validation for each."""
    wanted = SETTINGS["reuters"]
    X, Y, X_test, Y_test = reuters(task.form, task.smoke)
    place = wanted["categories"].index(task.category)
    y, y_test = Y[:, place] > 0, Y_test[:, place] > 0
    folds = StratifiedKFold(2 if task.smoke else wanted["folds"], shuffle=True, random_state=0)
    grid = {"C": wanted["C"][task.form][-1:] if task.smoke else wanted["C"][task.form]}
    rows = []
    for method in ("svm", "gsvc"):
        size = SMOKE["max_vectors"] if task.smoke else wanted["max_vectors"]
        options = {"vectors_per_class": wanted["vectors_per_class"], "max_vectors": size}
        new: Any = SVC(kernel="linear") if method == "svm" else GrowingSVC(kernel="linear", random_state=0, **options)
        scoring = "average_precision"  # the rank of the documents counts, not the share of the few that are relevant
        C = GridSearchCV(new, grid, cv=folds, scoring=scoring, refit=False).fit(X, y).best_params_["C"]
        few = SMOKE["trials"] if task.smoke else wanted["trials"]
        for trial in range(1 if method == "svm" else few):
            new.set_params(C=C, **({} if method == "svm" else {"random_state": trial}))
            begin = time.perf_counter()
            fitted = new.fit(X, y)
            seconds = time.perf_counter() - begin
            nodes = len(fitted.support_) if method == "svm" else fitted.n_vectors_
            known = {"category": task.category, "form": task.form, "method": method, "trial": trial, "C": float(C)}
            point = break_even(fitted.decision_function(X_test), y_test)
            rows.append(
                known | {"break_even": point, "nodes": nodes, "relevant": int(y_test.sum()), "seconds": seconds}
            )
    return rows


def break_even(scores: Any, relevant: Any) -> float:
    """Precision = recall, in %: the share of relevant documents among as many of the highest scores as there are."""
    count = int(relevant.sum())
    return 100.0 * float(np.mean(relevant[np.argsort(-scores, kind="stable")[:count]])) if count else float("nan")

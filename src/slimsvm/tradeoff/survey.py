"""The computation of a frontier: machines and baselines are fitted on each fold, optionally cached, and scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from slimsvm._unwrap import compressed_model
from slimsvm._words import plural
from slimsvm.compression.candidates.cache import CANDIDATES, CandidateCache
from slimsvm.compression.candidates.naming import EARLY_EXIT
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.timing import microseconds, some_rows
from slimsvm.compression.validation.estimates import disagreement, loss, score
from slimsvm.compression.validation.folds import Fold, fitted_parent, folds_with_own_parents, validation_fold
from slimsvm.compression.validation.scoring import Scoring, reads_probabilities
from slimsvm.estimator import MachineEstimator, wrap
from slimsvm.heads import StagedHead
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.progress import Progress
from slimsvm.optim import limited
from slimsvm.parameters import resolve_sizes
from slimsvm.tradeoff.baselines import BASELINES, Baseline, fit_baselines
from slimsvm.tradeoff.store import Store
from slimsvm.tradeoff.table import Frontier

SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)  # default sizes, up to half the parent's vectors
COLUMNS = [
    ("method", "U40"),
    ("kind", "U8"),
    ("size", "i8"),
    ("vectors", "f8"),
    ("kepp", "f8"),
    ("dimensions", "i8"),
    ("multiply_adds", "i8"),
    ("bytes", "i8"),
    ("us_alone", "f8"),
    ("us_batch", "f8"),
    ("score", "f8"),
    ("score_se", "f8"),
    ("loss", "f8"),
    ("loss_se", "f8"),
    ("agreement", "f8"),
]
TIMES = ("us_alone", "us_batch")
UNTIMED = dict.fromkeys(TIMES, np.nan)
SECONDS = 0.04  # of measuring a time, after which no further run begins
Model = KernelMachine | Baseline


@dataclass
class Line:
    """A method, its sizes, and its models: a list for each fold, with one model per size."""

    method: str
    kind: str
    sizes: list[int]
    models: list[list[Model]] = field(default_factory=list)


@dataclass(frozen=True)
class Clock:
    """Measures microseconds per sample, one at a time and in a batch, on rows of X.

    The Pipeline steps before a machine are the same for all models, so they are measured once: `steps` is their time.
    """

    problem: Problem
    X: Any
    steps: dict[str, float]

    @staticmethod
    def of(problem: Problem, X: Any) -> Clock:
        """A clock for the models of a problem and of its folds."""
        before = [(name, step) for name, step in problem.imported.steps if hasattr(step, "transform")]
        X = some_rows(X)
        return Clock(problem, X, _measured(Pipeline(before).transform, X) if before else dict.fromkeys(TIMES, 0.0))

    def times(self, made: Model) -> dict[str, float]:
        """The times of a model, with those of the steps before it."""
        model = wrap(made) if isinstance(made, KernelMachine) else made
        own = _measured(model.predict, self._transformed)
        return {name: own[name] + self.steps[name] for name in TIMES}

    def whole(self, model: Any) -> dict[str, float]:
        """The times of the user's own model."""
        return _measured(model.predict, self.X)

    @cached_property
    def _transformed(self) -> Any:
        return self.problem.transform(self.X)


def _measured(ask: Callable[[Any], Any], X: Any) -> dict[str, float]:
    """With one thread, as machines have by default: several would measure how busy the computer is."""
    with warnings.catch_warnings(), limited(1, "openmp"), limited(1, "blas"):
        warnings.simplefilter("ignore", UserWarning)  # baselines were fitted without feature names
        return dict(zip(TIMES, microseconds(ask, X, SECONDS), strict=True))


class Survey:
    """Machines and baselines of one model, over sizes and folds."""

    def __init__(self, request: Request, problem: Problem, store: Store, progress: Progress) -> None:
        self.request, self.problem, self.store, self.progress = request, problem, store, progress
        self._details = Progress("frontier", request.verbose - 1)  # of each machine: only with verbose=2
        scoring = Scoring.of(request, problem.task)
        self.scorer, self.scoring = scoring.scorer, "R²" if scoring.name == "r2" else scoring.name
        self.lines: list[Line] = []
        self.skipped: dict[str, str] = {}
        self.folds: list[Fold] = []

    def choose(self, sizes: Any, methods: Sequence[str] | None, baselines: bool | Sequence[str]) -> None:
        """Choose the methods and baselines that apply; ValueError if one that was named does not apply."""
        counts = self._sizes(sizes)
        asked = None if methods is None else _names(methods, "methods")
        for name in asked if asked is not None else [n for n, r in CANDIDATES.items() if r.automatic]:
            self._add(name, "machine", self._against(name), counts, asked is not None)
        wanted = None if isinstance(baselines, (bool, np.bool_)) else _names(baselines, "baselines")
        for name in wanted if wanted is not None else list(BASELINES) if baselines else []:
            if name not in BASELINES:
                raise ValueError(
                    f"baselines of frontier must be some of {', '.join(map(repr, BASELINES))}. Got {name!r}."
                )
            against = BASELINES[name].reason_against(self.problem)
            self._add(name, "baseline", against, BASELINES[name].sizes(counts), wanted is not None)

    def _sizes(self, sizes: Any) -> list[int]:
        most = self.problem.n_vectors
        if sizes is None:
            return [size for size in SIZES if 2 * size <= most] or [max(1, most // 2)]
        return sorted(set(resolve_sizes(sizes, most, "frontier")))

    def _against(self, name: str) -> str:
        plain = name.removesuffix(EARLY_EXIT)
        if plain not in CANDIDATES:
            raise ValueError(f"methods of frontier must be some of {', '.join(map(repr, CANDIDATES))}. Got {name!r}.")
        if plain != name and reads_probabilities(self.scorer):
            return f"has no probabilities, which scoring={self.scoring!r} reads"
        return CANDIDATES[plain].reason_against(self.problem)

    def _add(self, name: str, kind: str, against: str, sizes: list[int], asked: bool) -> None:
        if against and asked:
            raise ValueError(f"{name} {against}. Leave it out of {'methods' if kind == 'machine' else 'baselines'}.")
        if against:
            self.skipped[name] = against
        else:
            self.lines.append(Line(name, kind, sizes))

    def hold_out(self) -> None:
        """Hold samples out, with parents that never saw them."""
        request, supervised = self.request, self.problem.task.supervised
        if request.validation is not None:
            if request.groups is not None:
                raise ValueError("groups of frontier go with cv, and validation was given. Leave one of them out.")
            self.folds = [validation_fold(self._candidates_of(self.problem, 0), request, supervised)]
        elif request.y is None and supervised:
            raise ValueError(
                "cv of frontier refits the model in each fold and needs y. Pass y, or validation=(X_val, y_val)."
            )
        else:
            self.folds = folds_with_own_parents(
                self.problem,
                request,
                self._candidates_of,
                cv=request.cv,
                seed=request.seed,
                progress=self.progress,
                fit_parent=self._parent,
            )
        self.keys = [_key(fold, request.seed) for fold in self.folds] if self.store else []

    def _parent(self, model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        return self.store.get(lambda: fitted_parent(model, X, y, sample_weight), "parent", model, X, y, sample_weight)

    def _candidates_of(self, problem: Problem, number: int) -> CandidateCache:
        return CandidateCache(problem, self.request, self.request.seed + number, progress=self._details)

    def make_all(self) -> None:
        """Fit every method at every size on every fold."""
        folds = range(len(self.folds))
        with warnings.catch_warnings(), limited(1 if len(folds) > 1 else None, "blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)  # the score shows how good the machine is
            warnings.filterwarnings("ignore", message="Early exit drops the calibration")
            for number, line in enumerate(self.lines):
                line.models = Parallel(self.request.n_jobs, prefer="threads")(
                    delayed(self._make)(line, i) for i in folds
                )
                done, n = number + 1, len(self.lines)
                told, parts = "%s on %s; %d of %s done, %d%%", plural(len(folds), "held-out part")
                self.progress.tell(told, line.method, parts, done, plural(n, "method"), 100 * done // n, always=True)

    def _make(self, line: Line, i: int) -> list[Model]:
        fold, seed = self.folds[i], self.request.seed + i
        key = self.keys[i] if self.keys else ""
        return self.store.get(lambda: _make_line(line, seed, fold), line.method, line.sizes, key)

    def table(self, measure: bool = True) -> Frontier:
        """The table of the models made so far; `measure` says whether their times are measured."""
        return Frontier(self._records(measure), self.scoring, self.skipped)

    def _records(self, measure: bool) -> NDArray[Any]:
        model, clock = self.request.model, Clock.of(self.problem, self.request.X) if measure else None
        exact = Line("exact", "machine", [0], [[fold.candidates.problem.parent] for fold in self.folds])
        whole = self._row(exact, 0, None) | self._own_costs(clock)
        own = isinstance(compressed_model(model), (MachineEstimator, KernelMachine)) or not hasattr(model, "predict")
        parent = whole | {"method": "parent", "kind": "parent"}
        rows = [parent if own or clock is None else parent | clock.whole(model)]
        rows += [] if own else [whole]  # the model itself, evaluated by slimsvm
        of_fold = None if clock is None else replace(clock, problem=self.folds[0].candidates.problem)
        lines = [line for line in self.lines if line.models]
        rows += [self._row(line, j, of_fold) for line in lines for j in range(len(line.sizes))]
        return np.array([tuple(row[name] for name, _ in COLUMNS) for row in rows], dtype=COLUMNS)

    def _own_costs(self, clock: Clock | None) -> dict[str, Any]:
        """The costs of the model itself, not of the models refitted on folds."""
        machine = self.problem.parent
        kepp = float(machine.n_vectors)
        if isinstance(machine.head, StagedHead):  # it is not refitted, so it takes the rows of the folds
            kepp = float(np.mean(machine.kernel_evaluations(self.folds[0].X)))
        return (
            {"vectors": machine.n_vectors, "kepp": kepp}
            | _costs(machine)
            | ({} if clock is None else clock.times(machine))
        )

    def _row(self, line: Line, j: int, clock: Clock | None) -> dict[str, Any]:
        folds, made = self.folds, [some[j] for some in line.models]
        parts = [fold.compare(one) for fold, one in zip(folds, made, strict=True)]
        reached, lost = score(parts, self.scorer), loss(parts, self.scorer)
        kepp = [_evaluations(one, fold) for one, fold in zip(made, folds, strict=True)]
        return {
            "method": line.method,
            "kind": line.kind,
            "size": line.sizes[j],
            "vectors": float(np.mean([one.n_vectors for one in made])),
            "kepp": float(np.mean(kepp)),
            **_costs(made[0]),
            **(UNTIMED if clock is None else clock.times(made[0])),
            "score": reached.value,
            "score_se": reached.error,
            "loss": lost.value if lost.paired is None else lost.paired,
            "loss_se": lost.error,
            "agreement": 1.0 - disagreement(parts).value,
        }


def _make_line(line: Line, seed: int, fold: Fold) -> list[Model]:
    """The models of one method at all sizes on one fold."""
    if line.kind == "baseline":
        return list(fit_baselines(line.method, fold.candidates.problem, line.sizes, seed))
    return [fold.candidates.machine(line.method, m) for m in line.sizes]


def _key(fold: Fold, seed: int) -> str:
    """A hash of everything that the machines of a fold depend on."""
    problem, samples = fold.candidates.problem, fold.candidates.problem.samples
    data = (samples.X, samples.y, samples.weights) if samples is not None else None
    return str(joblib.hash((problem.parent.digest(), data, problem.terms, seed)))


def _evaluations(made: Model, fold: Fold) -> float:
    """Kernel evaluations per sample."""
    if isinstance(made, Baseline):
        return float(made.n_vectors)
    return float(np.mean(made.kernel_evaluations(fold.X)))


def _costs(made: Model) -> dict[str, int]:
    """The counted costs of a model, by the names of the columns."""
    cost = made if isinstance(made, Baseline) else made.cost
    return {"dimensions": cost.n_dimensions, "multiply_adds": cost.multiply_adds, "bytes": cost.n_bytes}


def _names(names: Sequence[str], what: str) -> list[str]:
    if isinstance(names, str):
        raise ValueError(f"{what} of frontier must be a list of names. Got {names!r}.")
    return list(names)

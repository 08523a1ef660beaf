"""The work behind a frontier: what is made on each fold, kept on disk where asked for, and judged together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from slimsvm.answers import Inlier, Value
from slimsvm.compression.baselines import BASELINES, Rival, make_rivals
from slimsvm.compression.evidence import Fold, fitted_parent, on_folds, on_validation
from slimsvm.compression.metrics import disagreement, loss, resolve_metric, score
from slimsvm.compression.recipes import EARLY_EXIT, RECIPES, Workshop
from slimsvm.compression.source import Source
from slimsvm.compression.speed import microseconds
from slimsvm.compression.store import Store
from slimsvm.estimator import MachineEstimator
from slimsvm.formats.c import table_bytes
from slimsvm.machine import KernelMachine
from slimsvm.methods.progress import Progress
from slimsvm.methods.sizes import resolve_sizes
from slimsvm.optim import limited

SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)  # where none are asked for, those up to half the parent's vectors
COLUMNS = [
    ("method", "U40"),
    ("kind", "U8"),
    ("size", "i8"),
    ("vectors", "f8"),
    ("kepp", "f8"),
    ("bytes", "i8"),
    ("us_alone", "f8"),
    ("us_batch", "f8"),
    ("score", "f8"),
    ("score_se", "f8"),
    ("loss", "f8"),
    ("loss_se", "f8"),
    ("agreement", "f8"),
]
Made = KernelMachine | Rival


@dataclass
class Line:
    """A method, the sizes to make, and what was made: for each fold, one of each size."""

    method: str
    kind: str
    sizes: list[int]
    made: list[list[Made]] = field(default_factory=list)


class Survey:
    """Machines and baselines of one model, over sizes and folds."""

    def __init__(
        self, source: Source, model: Any, metric: Any, seed: int, store: Store, n_jobs: int | None, progress: Progress
    ) -> None:
        self.source, self.model, self.seed, self.store = source, model, seed, store
        self.n_jobs, self.progress = n_jobs, progress
        self.scorer = resolve_metric(metric, source.machine.answer, "frontier")
        self.metric = metric_name(metric, source)
        self.lines: list[Line] = []
        self.skipped: dict[str, str] = {}

    def choose(self, sizes: Any, methods: Sequence[str] | None, baselines: bool | Sequence[str]) -> None:
        """What to make: the methods and baselines that apply; those asked for by name must."""
        counts = self._sizes(sizes)
        asked = None if methods is None else _names(methods, "methods")
        for name in asked if asked is not None else [n for n, r in RECIPES.items() if r.automatic]:
            self._add(name, "machine", self._against(name), counts, asked is not None)
        wanted = None if isinstance(baselines, (bool, np.bool_)) else _names(baselines, "baselines")
        for name in wanted if wanted is not None else list(BASELINES) if baselines else []:
            if name not in BASELINES:
                raise ValueError(
                    f"baselines of frontier must be some of {', '.join(map(repr, BASELINES))}. Got {name!r}."
                )
            against = BASELINES[name].reason_against(self.source)
            self._add(name, "baseline", against, counts if BASELINES[name].sized else [0], wanted is not None)

    def _sizes(self, sizes: Any) -> list[int]:
        most = self.source.n_vectors
        if sizes is None:
            return [size for size in SIZES if 2 * size <= most] or [max(1, most // 2)]
        return sorted(set(resolve_sizes(sizes, most, "frontier")))

    def _against(self, name: str) -> str:
        plain = name.removesuffix(EARLY_EXIT)
        if plain not in RECIPES:
            raise ValueError(f"methods of frontier must be some of {', '.join(map(repr, RECIPES))}. Got {name!r}.")
        return RECIPES[plain].reason_against(self.source)

    def _add(self, name: str, kind: str, against: str, sizes: list[int], asked: bool) -> None:
        if against and asked:
            raise ValueError(f"{name} {against}. Leave it out of {'methods' if kind == 'machine' else 'baselines'}.")
        if against:
            self.skipped[name] = against
        else:
            self.lines.append(Line(name, kind, sizes))

    def gather(self, X: Any, y: Any, *, cv: Any, validation: Any, groups: Any, sample_weight: Any) -> None:
        """The held-out samples, and for folds the parents that never saw them."""
        shared: dict[str, Any] = {"n_jobs": self.n_jobs, "progress": self.progress}
        if validation is not None:
            if groups is not None:
                raise ValueError("groups of frontier go with cv, and validation was given. Leave one of them out.")
            shop = self._shop(self.source, 0)
            labels = not isinstance(self.source.machine.answer, Inlier)
            self.evidence = on_validation(shop, validation, self.scorer, labels, whose="frontier", **shared)
        else:
            if y is None and not isinstance(self.source.machine.answer, Inlier):
                raise ValueError(
                    "cv of frontier refits the model in each fold and needs y. Pass y, or validation=(X_val, y_val)."
                )
            self.evidence = on_folds(
                self.model,
                X,
                y,
                self.source,
                self._shop,
                cv=cv,
                groups=groups,
                sample_weight=sample_weight,
                scorer=self.scorer,
                seed=self.seed,
                fit=self._parent,
                whose="frontier",
                **shared,
            )
        self.keys = [_key(fold, self.seed) for fold in self.evidence.folds] if self.store else []

    def _parent(self, model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        return self.store.get(lambda: fitted_parent(model, X, y, sample_weight), "parent", model, X, y, sample_weight)

    def _shop(self, source: Source, number: int) -> Workshop:
        return Workshop(source, self.seed + number, progress=self.progress)

    def make_all(self) -> None:
        """Every line on every fold."""
        folds = range(len(self.evidence.folds))
        with warnings.catch_warnings(), limited(1 if len(folds) > 1 else None, "blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)  # what a machine is worth is measured
            warnings.filterwarnings("ignore", message="Early exit drops the calibration")
            for number, line in enumerate(self.lines):
                line.made = Parallel(self.n_jobs, prefer="threads")(delayed(self._make)(line, i) for i in folds)
                done = "%s on %d held-out part(s); %d of %d methods done"
                self.progress.tell(done, line.method, len(folds), number + 1, len(self.lines), always=True)

    def _make(self, line: Line, i: int) -> list[Made]:
        fold, seed = self.evidence.folds[i], self.seed + i
        key = self.keys[i] if self.keys else ""
        return self.store.get(lambda: make_line(line, seed, fold), line.method, line.sizes, key)

    def records(self, X: Any, measure: bool = True) -> NDArray[Any]:
        """The table of what has been made so far, with times where they are to be measured."""
        folds = self.evidence.folds
        exact = Line("exact", "machine", [0], [[fold.shop.source.machine] for fold in folds])
        whole = self._row(exact, 0, X, False) | self._own_costs(X, measure)
        own = isinstance(self.model, (MachineEstimator, KernelMachine)) or not hasattr(self.model, "predict")
        times = microseconds(self.model.predict, X) if measure and not own else (whole["us_alone"], whole["us_batch"])
        rows = [whole | {"method": "parent", "kind": "parent", "us_alone": times[0], "us_batch": times[1]}]
        rows += [] if own else [whole]  # the model itself, answered by slimsvm
        lines = [line for line in self.lines if line.made]
        rows += [self._row(line, j, X, measure) for line in lines for j in range(len(line.sizes))]
        return np.array([tuple(row[name] for name, _ in COLUMNS) for row in rows], dtype=COLUMNS)

    def _own_costs(self, X: Any, measure: bool) -> dict[str, Any]:
        """What the model itself costs, not those that stand for it on folds."""
        machine = self.source.machine
        times = _times(self.source, machine, X) if measure else (np.nan, np.nan)
        kepp = float(np.mean(machine.kernel_evaluations(self.evidence.folds[0].X)))
        size: dict[str, Any] = {"vectors": machine.n_vectors, "kepp": kepp, "bytes": table_bytes(machine)}
        return size | {"us_alone": times[0], "us_batch": times[1]}

    def _row(self, line: Line, j: int, X: Any, measure: bool) -> dict[str, Any]:
        folds, made = self.evidence.folds, [some[j] for some in line.made]
        parts = [fold.beside(one) for fold, one in zip(folds, made, strict=True)]
        reached, lost = score(parts, self.scorer), loss(parts, self.scorer)
        kepp = [_evaluations(one, fold) for one, fold in zip(made, folds, strict=True)]
        times = _times(folds[0].shop.source, made[0], X) if measure else (np.nan, np.nan)
        return {
            "method": line.method,
            "kind": line.kind,
            "size": line.sizes[j],
            "vectors": float(np.mean([one.n_vectors for one in made])),
            "kepp": float(np.mean(kepp)),
            "bytes": made[0].n_bytes if isinstance(made[0], Rival) else table_bytes(made[0]),
            "us_alone": times[0],
            "us_batch": times[1],
            "score": reached.value,
            "score_se": reached.error,
            "loss": lost.value if lost.paired is None else lost.paired,
            "loss_se": lost.error,
            "agreement": 1.0 - disagreement(parts).value,
        }


def make_line(line: Line, seed: int, fold: Fold) -> list[Made]:
    """One method at all sizes on one fold."""
    if line.kind == "baseline":
        return list(make_rivals(line.method, fold.shop.source, line.sizes, seed))
    return [fold.shop.machine(line.method, m) for m in line.sizes]


def metric_name(metric: Any, source: Source) -> str:
    """What the score of a frontier is called."""
    if metric is None:
        answer, samples = source.machine.answer, source.samples
        if isinstance(answer, Value):
            return "R²"
        known = samples is not None and samples.given
        return "agreement with the parent" if isinstance(answer, Inlier) and not known else "accuracy"
    return metric if isinstance(metric, str) else str(getattr(metric, "__name__", "score"))


def _key(fold: Fold, seed: int) -> str:
    """A name for all that machines of a fold are made from."""
    source, samples = fold.shop.source, fold.shop.source.samples
    data = (samples.X, samples.y, samples.weights) if samples is not None else None
    return str(joblib.hash((source.machine.digest(), data, source.terms, seed)))


def _evaluations(made: Made, fold: Fold) -> float:
    """Kernel evaluations per sample."""
    if isinstance(made, Rival):
        return float(made.n_vectors)
    return float(np.mean(made.kernel_evaluations(fold.X)))


def _times(source: Source, made: Made, X: Any) -> tuple[float, float]:
    """µs per sample, alone and in a batch, behind the steps that come before the machine."""
    if isinstance(made, KernelMachine):
        model: Any = source.finished(made)
    else:
        steps = source.imported.steps
        model = Pipeline([*steps, ("model", made.model)]) if steps else made.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # baselines were trained on columns without names
        return microseconds(model.predict, X)


def _names(names: Sequence[str], what: str) -> list[str]:
    if isinstance(names, str) or not len(names):
        raise ValueError(f"{what} of frontier must be a list of names. Got {names!r}.")
    return list(names)

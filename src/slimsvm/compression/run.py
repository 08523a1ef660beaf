"""One call of `compress`, from the request to fitted estimators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from slimsvm._warn import warn_user
from slimsvm.compression.calibrate import calibration_kind, fold_scores, with_probabilities
from slimsvm.compression.candidates.coefficients import refitted
from slimsvm.compression.choose_C import with_a_cost
from slimsvm.compression.direct import mirrored, reduced, unchanged
from slimsvm.compression.preparation_step import preparation_of
from slimsvm.compression.problem import Problem
from slimsvm.compression.request import Request
from slimsvm.compression.search import Compressed, Search
from slimsvm.compression.timing import speedup
from slimsvm.compression.validation.scoring import Scoring, largest_loss, resolve_scoring
from slimsvm.exceptions import PromiseError
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.parameters import resolve_sizes
from slimsvm.report import Report
from slimsvm.tables import preparation_tables


class Run:
    """The problem of a request, and the estimators that answer it."""

    def __init__(self, request: Request) -> None:
        self._rng = np.random.default_rng(request.seed)
        # Mirror points are looked for among data that need no labels, so these are checked there.
        self._mirrored = request.method is not None and request.method.name == "mirror" and not request.validated
        self.problem = _problem(request, with_data=not self._mirrored)
        if request.fuse is True and self.problem.imported.why_not_fused:
            warn_user(
                f"fuse=True of {request.whose} left steps before the machine, so the result is a Pipeline: "
                f"{self.problem.imported.why_not_fused}. For a single machine, apply these steps to the data first."
            )
        if self.problem.samples is not None:
            self.problem = with_a_cost(self.problem, self._rng)
        self._sizes: list[int] | None = None
        if request.n_vectors is not None and not self._mirrored:
            self._sizes = resolve_sizes(request.n_vectors, self.problem.n_vectors, request.whose)
        if self._sizes is not None and request.promise.as_dict():
            if np.ndim(request.n_vectors):
                raise ValueError("n_vectors of compress with a promise is the most vectors, one number. Got several.")
            request = replace(request, promise=replace(request.promise, n_vectors=self._sizes[0]))
        self._asked = request
        request = _within_bytes(request, self.problem)
        self.request = request
        self._kind = calibration_kind(request, self.problem)
        if self.problem.machine is not self.problem.parent and self._kind is None and request.calibrate == "auto":
            self._warn_of_lost_probabilities()
        if request.scoring is not None:
            resolve_scoring(request.scoring, self.problem.task, request.whose)  # refused even if nothing is scored
        scoring = Scoring.of(request, self.problem.task)
        if scoring.scoring is None or isinstance(scoring.scoring, str):  # other scorers may have any unit
            request.promise.check_unit(largest_loss(scoring.name), scoring.name, request.whose)

    def _warn_of_lost_probabilities(self) -> None:
        if self._sizes is not None or self.request.max_distance is not None:
            warn_user(
                "The model averages the probabilities of several models, and one model in their place needs labelled "
                "data for its own, so the result has none. Pass X and y, or calibrate=None to accept this without a "
                "warning."
            )

    def estimators(self) -> list[Any]:
        """The estimator that keeps the promise, or one for each size asked for."""
        request, problem, sizes = self.request, self.problem, self._sizes
        if self._mirrored:
            return self._direct(lambda: mirrored(request, problem, self._rng))
        if request.validated or (sizes is not None and not self._needs_no_search):
            return self._searched()
        if sizes is None and request.max_distance is None:
            return self._direct(lambda: [unchanged(problem, self._refits)])
        return self._direct(lambda: reduced(request, problem, sizes, self._refits, self._rng))

    @property
    def _needs_no_search(self) -> bool:
        """Whether a given size needs no trials: reduced sets, and models without data."""
        method = self.request.method
        return self.request.X is None if method is None else method.name in ("reduced_set", "reduced_set+refit")

    @property
    def _refits(self) -> bool:
        """Whether machines that are not judged have coefficients refitted on the data."""
        name = "auto" if self.request.method is None else self.request.method.name
        with_data = self.problem.samples is not None and name not in ("reduced_set", "mirror")
        return name == "reduced_set+refit" or with_data

    def _searched(self) -> list[Any]:
        """Estimators chosen by trials, or on held-out samples."""
        with Progress("compress", self.request.verbose) as progress:
            search = self._search(progress)
            with keeping_best(lambda: self._kept(search, None), inner=lambda kept: self._kept(search, kept)):
                try:
                    search.hold_out()
                    by_promise = bool(self.request.promise.as_dict())
                    made = [search.smallest()] if by_promise else [search.of_size(m) for m in self._sizes or ()]
                    kind = self._kind
                    if kind is not None:
                        made = [search.with_probabilities(one, kind) for one in made]
                except PromiseError as error:
                    best: Any = error.best
                    error.best = self._estimator(best)
                    raise
        return [self._estimator(one) for one in made]

    def _kept(self, search: Search, kept: Any) -> Any:
        """The estimator of the best machine so far, if there is one."""
        best = search.last or (kept if isinstance(kept, KernelMachine) else search.best_so_far())
        return None if best is None else self._estimator(Compressed(best))

    def _search(self, progress: Progress) -> Search:
        return Search(self.request, self.problem, int(self._rng.integers(2**31)), progress)

    def _direct(self, make: Callable[[], list[Compressed]]) -> list[Any]:
        """Estimators of machines that are not judged."""
        with keeping_best(inner=self._estimator), Progress("compress", self.request.verbose) as progress:
            made = make()
            if self._kind is not None or any(one.report is not None for one in made):
                search = self._search(progress)
                made = [self._judged(one, search) for one in made]
            return [self._estimator(one) for one in made]

    def _judged(self, made: Compressed, search: Search) -> Compressed:
        """The machine with estimates if it was made for a size, and with probabilities; Ctrl-C leaves it without."""
        with keeping_best(lambda: made):
            if made.report is not None:
                made = search.estimated(made)
            if self._kind is not None:
                made = replace(made, machine=self._calibrated(made.machine, search))
            return made

    def _calibrated(self, machine: KernelMachine, search: Search) -> KernelMachine:
        kind, n_jobs = self._kind, self.request.n_jobs
        assert kind is not None
        if not self._refits:
            name = "mirror" if self._mirrored else "reduced_set"
            return search.calibrated(machine, name, machine.n_vectors, kind)
        seed = int(self._rng.integers(2**31))
        # The vectors of a refit are the same in every fold.
        return with_probabilities(
            machine,
            kind,
            lambda: fold_scores(machine, self.problem, lambda part, _: refitted(part, machine), seed, n_jobs),
            self.request.calibrate != "auto",
        )

    def _estimator(self, made: Compressed) -> Any:
        """The machine as an estimator behind the Pipeline's steps, with its history and report."""
        keep = self.request.calibrate is not None
        machine = made.machine if keep else replace(made.machine, calibration=None)
        model = self.problem.estimator(machine, self.request.n_jobs)
        report = None if made.report is None else self._complete(made.report, machine)
        for one in (model, model.steps[-1][1]) if isinstance(model, Pipeline) else (model,):
            if made.history is not None:
                one.history_ = made.history
            if report is not None:
                one.report_ = report
        return model

    def _complete(self, report: Report, machine: KernelMachine) -> Report:
        """The report with the parent's costs, and how many times faster batches of the data are predicted.

        With a preparation, its columns and tables are counted, and the limit on bytes is the one that was asked for.
        """
        problem, samples = self.problem, self.problem.samples
        cost, parent = problem.whole(machine).cost, problem.whole(problem.parent).cost
        faster = None if samples is None else speedup(problem.parent.predict, machine.predict, samples.X)
        known = replace(report, parent_features=parent.n_features, parent_multiply_adds=parent.multiply_adds)
        if preparation_of(problem.imported) is not None:
            limit = {"max_bytes": self._asked.promise.max_bytes} if "max_bytes" in report.promise else {}
            known = replace(known, promise=report.promise | limit, n_bytes=cost.n_bytes, n_features=cost.n_features)
        return replace(known, speedup=faster)


def _within_bytes(request: Request, problem: Problem) -> Request:
    """The request with the limit on bytes that the tables of the preparation leave for the machine."""
    preparation, most = preparation_of(problem.imported), request.promise.max_bytes
    if preparation is None or most is None:
        return request
    extra = sum(table.n_bytes for table in preparation_tables(preparation, "float32"))
    if extra >= most:
        raise ValueError(
            f"max_bytes of {request.whose} must be above {extra}, the bytes of the preparation's tables. Got {most}."
        )
    return replace(request, promise=replace(request.promise, max_bytes=most - extra))


def _problem(request: Request, with_data: bool) -> Problem:
    if not with_data:
        return Problem.of(request.model, fuse=request.fuse)
    return Problem.of(
        request.model,
        request.X,
        request.y,
        sample_weight=request.sample_weight,
        C=None if request.method is None else request.method.C,
        fuse=request.fuse,
        whose=request.whose,
        seed=request.seed,
        max_time=request.max_time,
    )

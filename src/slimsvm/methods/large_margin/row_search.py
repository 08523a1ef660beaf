"""The search for vectors on rows in blocks: starts from a sample, then passes over all rows (`streaming.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.methods.common.points import Points
from slimsvm.methods.large_margin.checkpoint import Checkpoint, as_history, fingerprint
from slimsvm.methods.large_margin.metric import Placement, Pull, most_useful
from slimsvm.methods.large_margin.objective import MarginFit
from slimsvm.methods.large_margin.placing import Found, OnPlace
from slimsvm.methods.large_margin.rows import RowData
from slimsvm.methods.large_margin.search import Search, SearchProblem, SearchResult
from slimsvm.methods.large_margin.streaming import RowTask, Tools, search_rows
from slimsvm.optim.margin_problem import MarginSolution
from slimsvm.optim.result import Status


class RowSearch(Search):
    """A search whose descents read all rows."""

    def __init__(self, data: RowData, estimator: Any, *arguments: Any) -> None:
        super().__init__(estimator, *arguments)
        self.data = data
        self.deadline.spend(data.seconds)
        mark = "" if estimator.checkpoint is None else fingerprint(estimator, data.survey)
        self.checkpoint = Checkpoint(estimator.checkpoint, mark)
        self.used: NDArray[np.intp] | None = None  # the features that the descent reads
        self.n_searches = 0

    def _with_fewer_features(
        self, problem: SearchProblem, result: SearchResult, pull: Pull | None, n_features: int
    ) -> SearchResult:
        A = result.found.place.A
        assert A is not None
        self.used = most_useful(self.points, A, n_features)
        try:
            return super()._with_fewer_features(problem, result, pull, n_features)
        finally:
            self.used = None

    def _search_once(
        self, points: Points, problem: SearchProblem, start: Placement, pull: Pull | None, keep: OnPlace | None = None
    ) -> SearchResult:
        assert problem.margin_of is not None
        self.n_searches += 1
        before = self.checkpoint.ended(self.rng)
        if before is not None:
            return _from_checkpoint(*before)
        history: list[dict[str, Any]] = []
        tools = Tools(self.progress, self.deadline, self.checkpoint, keep or _forget)
        task = RowTask(self.data, points, problem.margin, problem.margin_of, self.loss, self.used)
        place, fit = search_rows(task, start, self.schedule, self.rng, self.n_searches, tools, history, pull)
        penalty = 0.0 if pull is None or place.A is None else pull(place.A)[0]
        result = SearchResult(Found(place, float(fit.solution.value.sum()), len(history)), fit, penalty, history)
        if not self.deadline.stopped:
            self.checkpoint.end(*_for_checkpoint(result), self.rng)
        return result


def _forget(place: Placement) -> None:
    """For searches after the first, whose placements need not be kept."""


def _for_checkpoint(result: SearchResult) -> tuple[dict[str, Any], dict[str, Any]]:
    place, fit = result.found.place, result.fit
    arrays = {"Z": place.Z, "beta": fit.beta, "b": fit.b, "value": fit.solution.value, "gap": fit.solution.gap}
    if place.A is not None:
        arrays["A"] = place.A
    return arrays, {"penalty": float(result.penalty), "history": result.history}


def _from_checkpoint(arrays: dict[str, Any], facts: dict[str, Any]) -> SearchResult:
    nothing, history = np.zeros((0, 0)), as_history(facts)
    solution = MarginSolution(nothing, arrays["b"], nothing, arrays["value"], arrays["gap"], 0, Status.CONVERGED)
    found = Found(Placement(arrays["Z"], arrays.get("A")), float(arrays["value"].sum()), len(history))
    return SearchResult(found, MarginFit(arrays["beta"], arrays["b"], solution), facts["penalty"], history)

"""The width of a kernel by a search in two stages (Parrado-Hernández et al. 2003, section 4.1).

A few widths over the whole range first, by five-fold cross-validation; then ten between the two best of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, ParameterGrid

from slimsvm.parameters import check_count, check_number

Evaluate = Callable[[list[dict[str, Any]]], dict[str, Any]]


class WidthSearchCV(GridSearchCV):  # type: ignore[misc]
    """GridSearchCV whose grid of widths is refined where it is best.

    The default range is the paper's, σ from 50 to 0.5, with γ = 1/(2σ²). Everything else, such as `best_params_`,
    `best_estimator_`, `cv_results_` and `refit`, is as in GridSearchCV.

    Parameters
    ----------
    estimator : a classifier or Pipeline with a width to choose.
    param_grid : dict, list of dict or None, default=None
        Other parameters to search together with the width, for example {"C": [1, 10, 100]}. The second stage uses the
        combinations that were best at the two best widths.
    parameter : str, default="gamma"
        The name of the width parameter; in a Pipeline for example "growingsvc__gamma".
    low, high : float, default=2e-4 and 2.0
        The ends of the range, both tried.
    n_coarse, n_fine : int, default=7 and 10
        The numbers of widths in the two stages, evenly spaced on a logarithmic scale.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score : as in GridSearchCV. With
        several metrics `refit` names the one that decides.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GridSearchCV._parameter_constraints,
        "param_grid": [dict, list, None],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        parameter: str = "gamma",
        low: float = 2e-4,
        high: float = 2.0,
        n_coarse: int = 7,
        n_fine: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = 5,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.parameter = parameter
        self.low = low
        self.high = high
        self.n_coarse = n_coarse
        self.n_fine = n_fine

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """Evaluate the widths of both stages; scikit-learn calls this."""
        self._check_range()
        others = list(ParameterGrid(self.param_grid or {}))
        widths = np.geomspace(self.low, self.high, int(self.n_coarse))
        results = evaluate_candidates([{**other, self.parameter: float(g)} for g in widths for other in others])
        scores = self._scores(results).reshape(len(widths), len(others))
        best = np.argsort(-scores.max(axis=1), kind="stable")[:2]
        kept = [others[i] for i in np.unique(scores[best].argmax(axis=1))]
        between = np.geomspace(widths[best.min()], widths[best.max()], int(self.n_fine) + 2)[1:-1]
        evaluate_candidates([{**other, self.parameter: float(g)} for g in between for other in kept])

    def _check_range(self) -> None:
        whose = type(self).__name__
        check_number(self.low, "low", whose, above=0)
        check_number(self.high, "high", whose, above=0)
        check_count(self.n_coarse, "n_coarse", whose, least=2)
        check_count(self.n_fine, "n_fine", whose)
        if self.low >= self.high:
            raise ValueError(f"low of {whose} must be below high. Got {self.low!r} and {self.high!r}.")

    def _scores(self, results: dict[str, Any]) -> NDArray[np.float64]:
        """The scores that decide; failed fits come last."""
        name = f"mean_test_{self.refit}" if isinstance(self.refit, str) else "mean_test_score"
        if name not in results:
            raise ValueError("refit of WidthSearchCV must name the metric that decides, where scoring has several.")
        return np.nan_to_num(np.asarray(results[name], dtype=np.float64), nan=-np.inf)

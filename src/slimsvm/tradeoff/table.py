"""The table of a frontier: score and costs of each method at each size, of the parent and of the baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.plots.frontier import COSTS, FrontierDisplay


class Frontier:
    """Score and costs of each method at each size, of the parent and of the baselines.

    Attributes
    ----------
    records : structured array, one row for each method and size. Columns: `method`; `kind` ("parent", "machine" or
        "baseline"); `size`, the requested number of vectors (for boosted trees, of trees; 0 if there is none);
        `vectors`, the mean over folds; `kepp`, kernel evaluations per sample; `dimensions` of a vector and
        `multiply_adds` per sample (0 for trees); `bytes` of the tables in float32 (of trees, of their pickle);
        `us_alone` and `us_batch`, measured microseconds per sample, one at a time and in a batch; `score` by `scoring`,
        and its standard error `score_se`; `loss` against the parent, and its standard error `loss_se`, paired;
        `agreement`, the share of predictions that equal the parent's (for regression, the share of their variance).
    scoring : the name of the score.
    skipped : the methods and baselines that do not apply, each with the reason.
    """

    def __init__(self, records: NDArray[Any], scoring: str, skipped: dict[str, str]) -> None:
        self.records, self.scoring, self.skipped = records, scoring, skipped

    @property
    def table(self) -> Any:
        """The table as a pandas DataFrame if pandas is installed, else as a record array."""
        try:
            return self.to_frame()
        except ImportError:
            return self.records.view(np.recarray)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas  # type: ignore[import-untyped, unused-ignore]
        except ImportError as reason:
            raise ImportError("to_frame of Frontier needs pandas, which is not installed. Use `records`.") from reason
        return pandas.DataFrame({name: self.records[name] for name in self.records.dtype.names or ()})

    def pareto(self, cost: str = "us_alone") -> NDArray[np.bool_]:
        """Which rows are on the Pareto front: no other row has a better score at no more cost, or less cost at no
        worse score.
        """
        costs, scores = self.records[cost].astype(float), self.records["score"]
        known = np.isfinite(scores) & np.isfinite(costs) & (costs > 0)
        beaten = [
            bool((known & (costs <= c) & (scores >= s) & ((costs < c) | (scores > s))).any())
            for c, s in zip(costs, scores, strict=True)
        ]
        return np.asarray(known & ~np.array(beaten, dtype=bool))

    def plot(self, *, ax: Any = None, **kwargs: Any) -> FrontierDisplay:
        """A plot of the score against microseconds per sample and against vectors; see `FrontierDisplay.plot`."""
        fronts = {cost: self.pareto(cost) for cost in COSTS}
        return FrontierDisplay(records=self.records, scoring=self.scoring, fronts=fronts).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        head = f"{'method':<28}{'vectors':>8}{'dim':>6}{'mult-adds':>11}{'bytes':>10}{'µs alone':>10}{'µs batch':>10}"
        head += f"  {self.scoring}"
        lines = [
            f"{row['method']:<28}{row['vectors']:>8.0f}{row['dimensions']:>6}{row['multiply_adds']:>11}"
            f"{row['bytes']:>10}{row['us_alone']:>10.1f}{row['us_batch']:>10.2f}"
            f"  {row['score']:.4f} ± {row['score_se']:.4f}"
            for row in self.records
        ]
        return "\n".join([head, *lines])

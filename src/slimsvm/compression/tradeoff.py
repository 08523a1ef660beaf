"""The whole trade-off of a model: machines of several sizes by several methods, beside what users would do instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm.compression.source import Source
from slimsvm.compression.store import Store
from slimsvm.compression.survey import Survey
from slimsvm.exceptions import Interrupted
from slimsvm.methods.progress import Progress
from slimsvm.plots.frontier import FrontierDisplay


class Frontier:
    """A table over sizes and methods, with the parent and the baselines.

    Attributes
    ----------
    records : structured array, one row for each method and size. Columns: `method`; `kind` ("parent", "machine" or
        "baseline"); `size`, what was asked for (0 where there is no such thing); `vectors`, the mean over folds;
        `kepp`, kernel evaluations per pattern; `bytes`, of the tables in float32 (of trees, of their pickle);
        `us_alone` and `us_batch`, microseconds per sample, one at a time and in a batch, measured; `score` by `metric`
        and its standard error `score_se`; `loss` against the parent and its standard error `loss_se`, paired;
        `agreement`, the share of answers that are the parent's (of values, the share of their variance).
    metric : what `score` is.
    skipped : the methods and baselines that do not apply, each with the reason.
    """

    def __init__(self, records: NDArray[Any], metric: str, skipped: dict[str, str]) -> None:
        self.records, self.metric, self.skipped = records, metric, skipped

    @property
    def table(self) -> Any:
        """The table as a pandas DataFrame where pandas is installed, else as a record array."""
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
        """The rows that no other row beats: none has a better score at no more cost, or less cost at no worse score."""
        costs, scores = self.records[cost].astype(float), self.records["score"]
        known = np.isfinite(scores) & np.isfinite(costs) & (costs > 0)
        beaten = [
            bool((known & (costs <= c) & (scores >= s) & ((costs < c) | (scores > s))).any())
            for c, s in zip(costs, scores, strict=True)
        ]
        return np.asarray(known & ~np.array(beaten, dtype=bool))

    def plot(self, *, ax: Any = None, **kwargs: Any) -> FrontierDisplay:
        """Draw the score against microseconds per sample and against vectors: see `FrontierDisplay.plot`."""
        fronts = {cost: self.pareto(cost) for cost in ("us_alone", "us_batch", "vectors", "kepp", "bytes")}
        return FrontierDisplay(records=self.records, metric=self.metric, fronts=fronts).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        head = f"{'method':<28}{'vectors':>8}{'bytes':>10}{'µs alone':>10}{'µs batch':>10}  {self.metric}"
        lines = [
            f"{row['method']:<28}{row['vectors']:>8.0f}{row['bytes']:>10}{row['us_alone']:>10.1f}{row['us_batch']:>10.2f}"
            f"  {row['score']:.4f} ± {row['score_se']:.4f}"
            for row in self.records
        ]
        return "\n".join([head, *lines])


def frontier(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sizes: Any = None,
    methods: Sequence[str] | None = None,
    cv: Any = 5,
    validation: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    baselines: bool | Sequence[str] = True,
    metric: Any = None,
    C: float | None = None,
    n_features: int | None = None,
    n_jobs: int | None = None,
    memory: Any = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Frontier:
    """What a model's size may be traded for: machines of several sizes by several methods, judged on held-out data.

    Parameters
    ----------
    model : what `compress` takes
        A fitted scikit-learn SVM, a Pipeline that ends in one, a LIBSVM model file, a slimsvm estimator, ...
    X, y : (N, d) and (N,)
        Data like those that the model was trained on, as it takes them, and their classes or values.
    sizes : sequence of int or float, default=None
        Numbers of vectors, or shares of the parent's; by default 5, 10, 20, 50, ... up to half of them.
    methods : sequence of str, default=None
        "reduced_set", "reduced_set+refit", "sparse_margin", "growing", "selection" or "mirror", each also with
        "+early_exit" behind it; by default all that apply but for "mirror".
    cv : int or splitter, default=5
        Folds, in each of which the model is refitted with its own parameters and compressed; the held-out samples of
        all folds are the evidence. `groups` are kept together.
    validation : (X_val, y_val), default=None
        Data that the model never saw, in place of folds: the model itself is compressed. The only way for a file.
    groups, sample_weight : (N,), default=None
        As in scikit-learn. Samples of weight zero are left out.
    baselines : bool or sequence of str, default=True
        "nystroem" (features and a linear SVM), "subsampled" (the same kind of SVM on part of the data) and "boosted
        trees" (HistGradientBoosting, of its own size), for comparison.
    metric : str or scorer, default=None
        A scikit-learn scorer; by default accuracy, R² of values, and agreement with the parent of one-class models
        without labels.
    C : float, default=None
        What a unit of slack costs, for models that do not say.
    n_features : int, default=None
        Of a LIBSVM model file, the width of the data.
    n_jobs : int, default=None
        Folds that are worked on at a time (joblib's threads).
    memory : str, path or joblib.Memory, default=None
        Where to keep finished parts on disk: the same call goes on where an interrupted one stopped.
    random_state : int, RandomState instance or None, default=None
        The same seed gives the same table but for measured times.
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.

    Returns
    -------
    Frontier
        With `table`, `plot()`, `pareto()` and `skipped`.

    Raises
    ------
    Interrupted
        A KeyboardInterrupt whose `best` is the Frontier of the methods finished so far.
    """
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    with Progress("frontier", verbose) as progress:
        source = Source.of(model, X, y, C=C, sample_weight=sample_weight, n_features=n_features, whose="frontier")
        survey = Survey(source, model, metric, seed, Store(memory, "frontier"), n_jobs, progress)
        survey.choose(sizes, methods, baselines)
        survey.gather(X, y, cv=cv, validation=validation, groups=groups, sample_weight=sample_weight)
        try:
            survey.make_all()
        except KeyboardInterrupt:
            raise Interrupted(Frontier(survey.records(X, measure=False), survey.metric, survey.skipped)) from None
        return Frontier(survey.records(X), survey.metric, survey.skipped)

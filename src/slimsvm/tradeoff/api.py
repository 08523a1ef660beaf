"""`frontier`: the whole trade-off between size and accuracy of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from slimsvm.compression.choose_C import with_a_cost
from slimsvm.compression.problem import Problem
from slimsvm.compression.renamed import renamed
from slimsvm.compression.request import Request
from slimsvm.methods.common.interrupt import keeping_best
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.large_margin.rows import in_blocks
from slimsvm.tradeoff.store import Store
from slimsvm.tradeoff.survey import Survey
from slimsvm.tradeoff.table import Frontier


@renamed(
    metric="scoring=...",
    C="a model with that C",
    n_features="model=slimsvm.read_libsvm(path, n_features=...)",
)
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
    scoring: Any = None,
    n_jobs: int | None = None,
    memory: Any = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Frontier:
    """Return the trade-off between size and accuracy of a model: several sizes and methods, judged on held-out data.

    Parameters
    ----------
    model : what `compress` accepts
        A fitted scikit-learn SVM, a Pipeline that ends in one, a LIBSVM model file, a slimsvm estimator, ...
    X, y : (N, d) and (N,)
        Training data, ideally the data the model was trained on, in the form its `predict` accepts, and their labels or
        values.
    sizes : sequence of int or float, default=None
        Numbers of vectors, or shares of the model's; by default 5, 10, 20, 50, ... up to half of them.
    methods : sequence of str, default=None
        "reduced_set", "reduced_set+refit", "sparse_margin", "sparse_margin+diagonal", "sparse_margin+projection",
        "growing", "selection" or "mirror", each also with "+early_exit" appended. By default all that apply, except
        "mirror".
    cv : int or splitter, default=5
        Cross-validation folds. In each of them the model is refitted with its own parameters and compressed; scores are
        those of the held-out samples of all folds.
    validation : (X_val, y_val), default=None
        Data that the model never saw, instead of folds: the model itself is compressed. The only way for a LIBSVM file.
    groups : (N,) array, default=None
        Group of each sample. Samples of one group are kept in the same fold.
    sample_weight : (N,) array, default=None
        Weights of the samples. Samples of weight zero are ignored.
    baselines : bool or sequence of str, default=True
        Models to compare with: "nystroem" (Nystroem features and a linear SVM), "subsampled" (the same kind of SVM on
        part of the data) and "boosted trees" (HistGradientBoosting, of its own sizes), all with the model's Pipeline
        steps and class weights. An empty list means none.
    scoring : str or callable, default=None
        A scikit-learn scorer. The default is the scoring of `model` if it is a parameter search, else accuracy for
        classifiers, R² for regressors, and agreement with the model for one-class models without labels.
    n_jobs : int, default=None
        Number of folds to process in parallel, by threads.
    memory : str, path or joblib.Memory, default=None
        Folder in which finished parts are kept, so that the same call resumes after an interruption.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same table except for measured times.
    verbose : int, default=0
        1 logs progress once a second, 2 logs every step.

    Returns
    -------
    Frontier
        With `table`, `plot()`, `pareto()` and `skipped`.

    Raises
    ------
    Interrupted
        On Ctrl-C, a KeyboardInterrupt whose `best` is the Frontier of the methods finished so far.
    """
    if in_blocks(X):
        raise ValueError(
            "X of frontier must be data in memory, because the methods and baselines that it compares read all samples "
            "at once. Got rows in blocks. Pass a sample of them, or compress the model to one size on all rows."
        )
    request = Request(
        model,
        X,
        y,
        scoring=scoring,
        cv=None if validation is not None else cv,
        validation=validation,
        groups=groups,
        sample_weight=sample_weight,
        seed=int(check_random_state(random_state).randint(2**31 - 1)),
        n_jobs=n_jobs,
        verbose=verbose,
        whose="frontier",
    )
    with Progress("frontier", verbose) as progress:
        problem = Problem.of(model, X, y, sample_weight=sample_weight, whose="frontier")
        problem = with_a_cost(problem, np.random.default_rng(request.seed))
        survey = Survey(request, problem, Store(memory, "frontier"), progress)
        survey.choose(sizes, methods, baselines)
        survey.hold_out()
        with keeping_best(lambda: survey.table(measure=False)):
            survey.make_all()
        return survey.table()

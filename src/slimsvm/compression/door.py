"""The public door: a trained model in, a faster one with the same answers out, as small as a promise allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from slimsvm.compression.coefficients import refitted
from slimsvm.compression.costs import with_a_cost
from slimsvm.compression.evidence import Given
from slimsvm.compression.job import Job
from slimsvm.compression.metrics import Scorer, metric_name, resolve_metric
from slimsvm.compression.plain import Made as Plain
from slimsvm.compression.plain import as_it_is, mirrored, reduced
from slimsvm.compression.probabilities import (
    Calibrate,
    Scores,
    is_labelled,
    own_scores,
    wanted_kind,
    with_probabilities,
)
from slimsvm.compression.promises import Promise
from slimsvm.compression.recipes import METHODS, mirror_settings
from slimsvm.compression.source import Source
from slimsvm.evaluation import Precision
from slimsvm.exceptions import Interrupted, PromiseError
from slimsvm.machine import KernelMachine
from slimsvm.methods.calibrate import Kind
from slimsvm.methods.progress import Progress
from slimsvm.methods.reduction import Init, Refine, Settings, Solver
from slimsvm.methods.sizes import check_distance, resolve_sizes

Method = Literal["auto", "sparse_margin", "reduced_set+refit", "selection", "growing", "reduced_set", "mirror"]


def compress(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    max_loss: float | None = None,
    max_disagreement: float | None = None,
    max_bytes: int | None = None,
    max_latency_us: float | None = None,
    n_vectors: Any = None,
    confidence: float | None = None,
    metric: Any = None,
    cv: Any = None,
    validation: Any = None,
    groups: Any = None,
    method: Method = "auto",
    calibrate: Calibrate = "auto",
    max_distance: float | None = None,
    solver: Solver = "auto",
    init: Init = "auto",
    refine: Refine = True,
    n_init: int = 1,
    C: float | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    fold: bool = False,
    n_features: int | None = None,
    n_jobs: int | None = None,
    precision: Precision = "auto",
    **options: Any,
) -> Any:
    """The same model as a fitted estimator that answers faster, as small as what may be lost allows.

    `max_loss=0.005` gives the smallest machine whose accuracy, on samples that neither it nor the model saw, is at most
    half a point below the model's. `n_vectors=40` gives the best machine of that size. Without a promise and a size
    all vectors stay and no data are needed; with data their coefficients are trained anew.

    Parameters
    ----------
    model : estimator, KernelMachine, str or path
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge; a Pipeline that ends in one, or in a Nystroem and
        a linear model; a CalibratedClassifierCV (with one calibrated classifier), OneVsRestClassifier,
        OneVsOneClassifier, FrozenEstimator or search around one; the path of a LIBSVM model file; or a slimsvm
        estimator or KernelMachine.
    X : (N, d) array, CSR matrix or DataFrame, default=None
        Data to train on, best those of the model, and as it takes them: a Pipeline's transformers are applied.
    y : (N,) array, default=None
        Their labels, of all classes of the model, or values. Without them the model's own answers serve.
    max_loss : float, default=None
        The most that `metric` may be below the model's, on held-out samples. The smallest such machine is returned.
    max_disagreement : float, default=None
        The largest share of decisions that may differ from the model's, on held-out samples; needs no labels. (Of a
        regression: the squared difference, over the variance of the model's answers.)
    max_bytes : int, default=None
        The most bytes of the tables of the C export, in float32.
    max_latency_us : float, default=None
        The most microseconds of one `predict` of one sample by the machine, steps of a Pipeline in front of it aside,
        as measured here and now. Only with it do choices depend on the clock, and may early exit be added.
    n_vectors : int, float or sequence of these, default=None
        The number of vectors, or their share of the model's distinct support vectors. Several sizes give a list of
        estimators. Together with a promise it is the most vectors that there may be.
    confidence : float, default=None
        Such as 0.95: upper bounds of loss and disagreement at this level must keep the promise, not their estimates.
    metric : str or callable, default=None
        A scorer of scikit-learn ("balanced_accuracy", "roc_auc", "r2", …) or scorer(estimator, X, y), of which more is
        better. By default accuracy, R² of a regression, and agreement with y, or the model, of one-class machines.
    cv : int, splitter or iterable, default=None
        The folds that are held out: in each the model is fitted anew with its own parameters. A number means shuffled
        folds, stratified for classes; None five of them, and of fewer than 500 samples again and again, up to four
        times, for on few samples much is luck.
    validation : (X_val, y_val), default=None
        In place of folds, data that the model never saw; the only way for models that cannot be fitted anew, such as a
        file. y_val may be None if `max_disagreement` is all that is promised.
    groups : (N,) array, default=None
        Samples of a group are never divided between folds.
    method : str, default="auto"
        "sparse_margin": vectors placed where the margin on the data is largest; "reduced_set": where they stand for the
        model's expansion best, without data; "reduced_set+refit": the same, with coefficients of the largest margin;
        "selection": some of the support vectors; "growing": hard samples, added step by step; "auto": the best of
        these, by trials on part of the data. "mirror": pairs of mirror points (Chen & Chen 2002), with n_pairs,
        preimage, choice, search, n_candidates and n_samples of `MirrorPointClassifier` as further keywords.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Probabilities for a classifier, from labelled samples that were held out: validation data, the folds of cv, or
        folds made for it. "auto" gives the kind that the model has, if any, where there are labelled data; without such
        a reduced set keeps the model's own. None gives no probabilities.
    max_distance : float, default=None
        In place of a size, the largest ρ²/‖Ψ‖² allowed of a reduced set, Ψ being the model's expansion in feature
        space; the smallest size that keeps to it is found. Data, if given, serve for probabilities alone.
    solver : {"auto", "lbfgs", "irprop", "fixed_point", "merge", "select"}, default="auto"
        How the vectors of a reduced set are found. "lbfgs": all at once, with the coefficients eliminated. "irprop" and
        "fixed_point": one by one, each where it explains most of what is left (Suttorp & Igel 2007). "merge": support
        vectors are merged in pairs. "select": a subset of the support vectors, greedily, which works for every kernel
        and keeps sparse vectors sparse. "auto": "select" for kernels without a gradient and for sparse vectors, else
        "lbfgs". A linear kernel needs no more vectors than outputs, whatever the solver. With solver, init, refine or
        n_init named, "auto" is a reduced set.
    init : {"auto", "random", "alpha", "kernel_kmeans", "weighted_kmeans"}, default="auto"
        Where "irprop", "fixed_point" and "lbfgs" start from: at support vectors drawn in the proportion of the classes,
        or by |α|; at the centres of kernel k-means, or of k-means weighted by |α|. "auto": weighted k-means for
        "lbfgs", else random.
    refine : bool, "lbfgs" or "irprop", default=True
        Whether "irprop", "fixed_point" and "merge" end with a descent on all vectors: by L-BFGS (True), or by the
        paper's 100 steps of iRprop+ on vectors and coefficients.
    n_init : int, default=1
        Runs of a reduced set from different starts, of which the best is kept.
    C : float, default=None
        What a unit of slack costs in training, as in SVC; by default the C of the model, and where it has none (a file,
        a KernelMachine, NuSVC) that of a small cross-validation. For a given size and labels "auto" may take a part of
        it, with which held-out samples of X lose hardly more. The model's `class_weight` goes with it.
    sample_weight : (N,) array, default=None
        Weights of the samples of X, in training and in what is estimated; those of weight zero are left out.
    random_state : int, RandomState instance or None, default=None
        The same seed gives the same machine, for any n_jobs.
    verbose : int, default=0
        Whether progress is logged: 1 once a second, 2 everything.
    fold : bool, default=False
        Whether the affine transformers of a Pipeline that lie directly before its model (scalers, PCA, TruncatedSVD)
        become part of the machine. If all do, the result is a bare estimator, which can be saved and exported.
    n_features : int, default=None
        Of a LIBSVM model file, the width of the data; by default the largest index in the file.
    n_jobs : int, default=None
        The number of folds that are worked on at a time, and of threads that the estimator predicts with.
    precision : {"auto", "float32", "float64"}, default="auto"
        What the estimator computes in; "auto" takes float32 for float32 data where rounding is harmless.

    Returns
    -------
    SlimClassifier, SlimRegressor, SlimOutlierDetector or Pipeline
        A Pipeline where transformers stay in front of the machine, with these and the slim estimator as its last step.
        A list where n_vectors is a sequence. A smaller estimator has `report_` (a `Report`: promise, estimate, standard
        error, method and reason, all that was tried) and `history_`: a dict per step of the method; of a reduced set
        with `n_vectors`, `rho2` and `relative` (ρ² and ρ²/‖Ψ‖²; NaN for more than 20,000 support vectors unless
        `max_distance` is given), and, where they apply, `n_iter`, `converged`, `stuck` and `refined`.

    Raises
    ------
    PromiseError
        Where promises cannot all be kept; it says which, and its `best` is the nearest possible estimator.
    UnsupportedModelError
        For a model that cannot be imported exactly, with the reason.
    NotFittedError
        For a model that has not been fitted.
    FormatError
        For a LIBSVM model file that is damaged, with the line and the reason.
    Interrupted
        A KeyboardInterrupt whose `best` is the best estimator so far, or None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from slimsvm.compression import compress
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC().fit(X, y)
    >>> slim = compress(svc)
    >>> bool((slim.predict(X) == svc.predict(X)).all())
    True
    >>> small = compress(svc, X, y, max_loss=0.01, random_state=0)
    >>> small.report_.estimate <= 0.01, small.n_vectors_ < 20
    (True, True)
    """
    settings = Settings(solver, init, refine, n_init)
    settings.check("compress")
    _check_method(method, options)
    promise = Promise(max_loss, max_disagreement, max_bytes, max_latency_us, None, confidence)
    _check_evidence(promise, method, n_vectors, max_distance, cv, validation, groups, metric)
    judged = bool(promise.as_dict()) or cv is not None or validation is not None
    mirror = method == "mirror" and not judged
    if method == "mirror" and C is not None:
        raise ValueError("C of compress is not for method='mirror'. Leave it out.")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    data: dict[str, Any] = {} if mirror else {"X": X, "y": y, "C": C, "sample_weight": sample_weight}
    source = Source.of(model, fold=fold, n_features=n_features, **data)
    if source.samples is not None:
        source = with_a_cost(source, rng)
    sizes = None if n_vectors is None or mirror else resolve_sizes(n_vectors, source.n_vectors, "compress")
    if sizes is not None and promise.as_dict():
        if np.ndim(n_vectors):
            raise ValueError("n_vectors of compress with a promise is the most vectors, one number. Got several.")
        promise = replace(promise, n_vectors=sizes[0])
    if max_distance is not None:
        method = "reduced_set"  # trained coefficients would be farther away
    elif method == "auto" and settings != Settings() and (judged or sizes is not None):
        method = "reduced_set" if source.untaught else "reduced_set+refit"
    order = _Order(
        Given(model, X, y, cv, validation, groups, sample_weight, fold),
        source,
        promise,
        method,
        metric=metric_name(metric, source.machine.answer),
        scorer=resolve_metric(metric, source.machine.answer, "compress"),
        settings=settings,
        options=options,
        rng=rng,
        kind=wanted_kind(calibrate, source.machine, is_labelled(X, y, validation)),
        calibrate=calibrate,
        verbose=verbose,
        n_jobs=n_jobs,
        precision=precision,
        own_C=C is not None,
    )
    if mirror:
        slims = order.plain(lambda: mirrored(source, X, y, sample_weight, n_vectors, options, rng, verbose))
    elif judged or (sizes is not None and not order.is_plain):
        slims = order.judged(sizes)
    elif sizes is None and max_distance is None:
        slims = order.plain(lambda: [as_it_is(source, order.taught)])
    else:
        distance = None if max_distance is None else check_distance(max_distance, "compress")
        told: Any = {"max_distance": distance, "taught": order.taught, "verbose": verbose}
        slims = order.plain(lambda: reduced(source, sizes, settings, rng, **told))
    return slims if np.ndim(n_vectors) else slims[0]


@dataclass
class _Order:
    """What `compress` was asked for: from which source, by what, and how the machines are handed over."""

    given: Given
    source: Source
    promise: Promise
    method: str
    metric: str
    scorer: Scorer | None
    settings: Settings
    options: dict[str, Any]
    rng: np.random.Generator
    kind: Kind | None
    calibrate: Calibrate
    verbose: int
    n_jobs: int | None
    precision: Precision
    own_C: bool

    @property
    def is_plain(self) -> bool:
        """Whether a given size needs no trials."""
        return self.method in ("reduced_set", "reduced_set+refit") or (self.method == "auto" and self.given.X is None)

    @property
    def taught(self) -> bool:
        """Whether machines that nothing judges have coefficients trained on the data."""
        with_data = self.source.samples is not None and self.method not in ("reduced_set", "mirror")
        return self.method == "reduced_set+refit" or with_data

    def plain(self, make: Callable[[], list[Plain]]) -> list[Any]:
        """Estimators of machines that nothing judges."""
        try:
            return [self._finished(*self._probable(one)) for one in make()]
        except Interrupted as stop:
            left: Any = stop.best
            raise Interrupted(left and self._finished(*left)) from None

    def judged(self, sizes: list[int] | None) -> list[Any]:
        """Estimators of the machine that keeps the promise, or of given sizes, by trials and on what is held out."""
        with Progress("compress", self.verbose) as progress:
            job = self._job(progress)
            try:
                job.gather()
                made = [job.within()] if self.promise.as_dict() else [job.of_size(m) for m in sizes or ()]
                if self.kind is not None:
                    made = [job.with_probabilities(one, self.kind, self._asked) for one in made]
            except PromiseError as error:
                best: Any = error.best
                error.best = self._finished(best.machine, best.history, best.report)
                raise
            except KeyboardInterrupt as stop:
                kept = job.so_far(stop)
                raise Interrupted(kept and self._finished(kept)) from None
        return [self._finished(one.machine, one.history, one.report) for one in made]

    @property
    def _asked(self) -> bool:
        return self.calibrate != "auto"

    @property
    def _softens(self) -> bool:
        """Whether C is a choice: for a machine that shall be good, and not near to the model; by folds of any rows."""
        free = self.method == "auto" and not self.own_C and not self.promise.limits and self.given.y is not None
        return free and self.given.groups is None and isinstance(self.given.cv, (int, type(None)))

    def _job(self, progress: Progress) -> Job:
        return Job(
            self.given,
            self.source,
            self.promise,
            self.method,
            scorer=self.scorer,
            metric=self.metric,
            settings=self.settings,
            options=self.options,
            soften=self._softens,
            seed=int(self.rng.integers(2**31)),
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def _probable(self, made: Plain) -> Plain:
        """What was made the plain way, with probabilities; Ctrl-C leaves it without."""
        try:
            return made if self.kind is None else (self._calibrated(made[0], self.kind), *made[1:])
        except KeyboardInterrupt:
            raise Interrupted(made) from None

    def _calibrated(self, machine: KernelMachine, kind: Kind) -> KernelMachine:
        if not self.taught:
            with Progress("compress", self.verbose) as progress:
                name = "mirror" if self.method == "mirror" else "reduced_set"
                return self._job(progress).calibrated(machine, name, machine.n_vectors, kind, self._asked)
        seed = int(self.rng.integers(2**31))

        def scores() -> Scores:  # the vectors of a refit are the same in every fold
            return own_scores(machine, self.source, lambda part, _: refitted(part, machine), seed, self.n_jobs)

        return with_probabilities(machine, kind, scores, self._asked)

    def _finished(self, machine: KernelMachine, history: Any = None, report: Any = None) -> Any:
        """A machine as an estimator behind the source's steps, with its history and report."""
        machine = machine if self.calibrate is not None else replace(machine, calibration=None)
        model = self.source.finished(machine, n_jobs=self.n_jobs, precision=self.precision)
        for one in (model, model.steps[-1][1]) if isinstance(model, Pipeline) else (model,):
            if history is not None:
                one.history_ = history
            if report is not None:
                one.report_ = report
        return model


def _check_method(method: Any, options: dict[str, Any]) -> None:
    if method not in METHODS:
        raise ValueError(f"method of compress must be one of {', '.join(map(repr, METHODS))}. Got {method!r}.")
    if method != "mirror" and options:
        raise TypeError(f"compress got an unexpected keyword argument {next(iter(options))!r}.")
    if options:
        mirror_settings({"n_vectors": 2, **options})


def _check_evidence(
    promise: Promise, method: str, n_vectors: Any, max_distance: Any, cv: Any, validation: Any, groups: Any, metric: Any
) -> None:
    """Refuse what does not go together."""
    asked = n_vectors is not None or bool(promise.as_dict())
    if max_distance is not None and asked:
        raise ValueError(
            "compress takes max_distance alone: with n_vectors or a promise the size is given by these. Leave one out."
        )
    if max_distance is not None and method not in ("auto", "reduced_set"):
        raise ValueError(f"max_distance of compress is about reduced sets, not for method={method!r}. Leave one out.")
    if method in ("sparse_margin", "selection", "growing") and not asked:
        raise ValueError(f"method={method!r} of compress goes with a size or a promise, such as max_loss=0.005.")
    if cv is not None and validation is not None:
        raise ValueError("compress takes cv or validation, not both: either folds are held out or other data.")
    if groups is not None and validation is not None:
        raise ValueError("groups of compress go with cv: validation data are held out as they are. Leave one out.")
    if groups is not None and cv is None and asked and not promise.limits:
        raise ValueError("groups of compress are for folds, and none are made here. Pass cv=5, say, or leave them out.")
    for name, value in (("cv", cv), ("validation", validation), ("groups", groups), ("metric", metric)):
        if value is not None and not asked:
            raise ValueError(f"{name} of compress goes with a promise, such as max_loss=0.005, or with n_vectors.")

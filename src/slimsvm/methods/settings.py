"""Settings of the methods that `compress` can use, one frozen dataclass per method.

`compress(model, X, y, n_vectors=40, method=ReducedSet(solver="irprop"))`; a name stands for the method's defaults:
`method="reduced_set"` means `ReducedSet()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from slimsvm.methods.large_margin.metric_start import Metric, resolve_dimensions
from slimsvm.methods.mirror.build import Choice, MirrorSettings
from slimsvm.methods.mirror.pairs import Preimage, Search
from slimsvm.methods.reduced_set.reduce import DISTANCE, Init, ReducedSetSettings, Refine, Solver
from slimsvm.parameters import check_choice, check_number

RefitLoss = Literal["auto", "hinge", "squared_hinge"]


@dataclass(frozen=True)
class ReducedSet:
    """Few vectors that approximate the model's expansion in feature space; needs no data (Suttorp & Igel 2007).

    Parameters
    ----------
    solver : {"auto", "lbfgs", "irprop", "fixed_point", "merge", "select"}, default="auto"
        How the vectors are found. "lbfgs" moves all of them at once, with the coefficients eliminated. "irprop" and
        "fixed_point" add one vector at a time, each where it explains most of the rest. "merge" merges support vectors
        in pairs. "select" picks support vectors greedily; it works for every kernel and keeps sparse vectors sparse.
        "auto" means "select" for kernels without a gradient and for sparse vectors, else "lbfgs". A linear kernel needs
        no more vectors than outputs, whatever the solver.
    init : {"auto", "random", "alpha", "kernel_kmeans", "weighted_kmeans"}, default="auto"
        Start of "irprop", "fixed_point" and "lbfgs": support vectors drawn in proportion to the classes or to `|α|`, or
        the centres of kernel k-means or of k-means weighted by `|α|`. "auto" means "weighted_kmeans" for "lbfgs", else
        "random".
    refine : bool, "lbfgs" or "irprop", default=True
        Whether "irprop", "fixed_point" and "merge" end with a descent on all vectors: L-BFGS (True), or the paper's 100
        steps of iRprop+ on vectors and coefficients.
    n_init : int, default=1
        Number of runs from different starts; the best is kept.
    max_distance : float, default=None
        Instead of a size, the largest ρ²/‖Ψ‖² allowed, the squared distance to the model's expansion Ψ relative to its
        squared norm. The smallest size within it is found.
    refit : bool, default=False
        Whether the coefficients are refitted for the largest margin on the training data.
    C : float, default=None
        Cost of a unit of slack in the refit; by default the model's own C.
    """

    solver: Solver = "auto"
    init: Init = "auto"
    refine: Refine = True
    n_init: int = 1
    max_distance: float | None = None
    refit: bool = False
    C: float | None = None

    @property
    def name(self) -> str:
        """The method's name in reports."""
        return "reduced_set+refit" if self.refit else "reduced_set"

    @property
    def reduction(self) -> ReducedSetSettings:
        """The settings of the reduction itself."""
        return ReducedSetSettings(self.solver, self.init, self.refine, self.n_init)

    def check(self, whose: str) -> None:
        """Refuse settings that no run can work with."""
        self.reduction.check(whose)
        check_number(self.max_distance, "max_distance", whose, least=0, below=1, optional=True, note=DISTANCE)
        check_choice(self.refit, "refit", whose, (False, True))
        _check_cost(self.C, whose)
        if self.C is not None and not self.refit:
            raise ValueError(
                f"C of {whose} is the cost in the refit. Pass ReducedSet(refit=True, C=...), or leave it out."
            )


@dataclass(frozen=True)
class SparseMargin:
    """Vectors placed where the margin on the training data is largest (Wu, Schölkopf & Bakır 2005).

    With `metric="diagonal"` or `metric="projection"`, a map of the features is learned together with the vectors, as in
    `SparseLargeMarginClassifier`; for the rbf kernel only.

    Parameters
    ----------
    loss : {"auto", "hinge", "squared_hinge"}, default="auto"
        Loss for the coefficients. "auto" fits both where that is cheap, and keeps the one that agrees with the model
        more often.
    C : float, default=None
        Cost of a unit of slack; by default the model's own C.
    metric : {"fixed", "diagonal", "projection"}, default="fixed"
        Whether the model's metric stays, a scale per feature is learned, or a projection.
    n_components : int or float, default=None
        Dimensions of the projection, or their share of the features. With a budget, the default is found by the search;
        without one it is a third of up to 64 features, and of more features 10 and one more for each output.
    max_features : int or float, default=None
        The most features that a diagonal metric may use, or their share; by default all. With a budget, the default is
        found by the search.
    """

    loss: RefitLoss = "auto"
    C: float | None = None
    metric: Metric = "fixed"
    n_components: int | float | None = None
    max_features: int | float | None = None

    @property
    def name(self) -> str:
        """The method's name in reports."""
        return "sparse_margin" if self.metric == "fixed" else f"sparse_margin+{self.metric}"

    def dimensions(self, d: int) -> int | None:
        """The dimensions that a map of d features should have; None if they are not given."""
        name = "max_features" if self.metric == "diagonal" else "n_components"
        given = getattr(self, name)
        return None if given is None else resolve_dimensions(given, d, "SparseMargin", name)

    def check(self, whose: str) -> None:
        """Refuse settings that no run can work with."""
        check_choice(self.loss, "loss", whose, get_args(RefitLoss))
        _check_cost(self.C, whose)
        check_choice(self.metric, "metric", whose, get_args(Metric))
        for name, metric in (("n_components", "projection"), ("max_features", "diagonal")):
            given = getattr(self, name)
            if given is None:
                continue
            if self.metric != metric:
                raise ValueError(
                    f"{name} of SparseMargin goes with metric={metric!r}. Got metric={self.metric!r}. Leave it out."
                )
            check_number(given, name, "SparseMargin", above=0)


@dataclass(frozen=True)
class Selection:
    """Some of the model's support vectors, chosen greedily, with refitted coefficients if there are data.

    Parameters
    ----------
    C : float, default=None
        Cost of a unit of slack in the refit; by default the model's own C.
    """

    C: float | None = None
    name: ClassVar[str] = "selection"

    def check(self, whose: str) -> None:
        """Refuse settings that no run can work with."""
        _check_cost(self.C, whose)


@dataclass(frozen=True)
class Growing:
    """Training samples that are hard to classify, added step by step (Parrado-Hernández et al. 2003).

    Parameters
    ----------
    C : float, default=None
        Cost of a unit of slack; by default the model's own C.
    """

    C: float | None = None
    name: ClassVar[str] = "growing"

    def check(self, whose: str) -> None:
        """Refuse settings that no run can work with."""
        _check_cost(self.C, whose)


@dataclass(frozen=True)
class MirrorPoints:
    """Decisions by the distances to pairs of mirror points (Chen & Chen 2002).

    Parameters
    ----------
    n_pairs : int, default=None
        The most pairs per hyperplane. By default as many as `n_vectors` of `compress` allows, and 10 without it.
    preimage, choice, search, n_candidates, n_samples
        As in `MirrorPointClassifier`.
    """

    n_pairs: int | None = None
    preimage: Preimage = "opposite"
    choice: Choice = "programme"
    search: Search = "irprop"
    n_candidates: int | None = 500
    n_samples: int | None = 2000
    name: ClassVar[str] = "mirror"
    C: ClassVar[None] = None

    def with_size(self, n_vectors: int | None) -> MirrorSettings:
        """The settings for machines of at most `n_vectors` vectors."""
        n_pairs = 10 if self.n_pairs is None and n_vectors is None else self.n_pairs
        return MirrorSettings(
            n_pairs, n_vectors, self.preimage, self.choice, self.search, self.n_candidates, self.n_samples
        )

    def check(self, whose: str) -> None:
        """Refuse settings that no run can work with."""
        self.with_size(2).check(whose)


MethodSettings = ReducedSet | SparseMargin | Selection | Growing | MirrorPoints
_ALL: tuple[MethodSettings, ...] = (
    SparseMargin(),
    SparseMargin(metric="diagonal"),
    SparseMargin(metric="projection"),
    ReducedSet(refit=True),
    Selection(),
    Growing(),
    ReducedSet(),
    MirrorPoints(),
)
BY_NAME = {one.name: one for one in _ALL}


def _check_cost(C: Any, whose: str) -> None:
    check_number(C, "C", whose, above=0, optional=True)

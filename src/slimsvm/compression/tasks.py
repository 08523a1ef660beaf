"""What compressing depends on the task for: classification, regression or one-class.

Everything else in `compression/` and `tradeoff/` asks the task instead of looking at the kind of answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import SGDOneClassSVM
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM
from sklearn.utils.multiclass import check_classification_targets

from slimsvm.answers import Answer, Classes, Inlier, Value
from slimsvm.importers.terms import Terms
from slimsvm.machine import KernelMachine
from slimsvm.methods.large_margin.training_problem import RefitProblem
from slimsvm.optim.margin_problem import Loss

if TYPE_CHECKING:
    from slimsvm.compression.problem import Problem


class Task(ABC):
    """The contract of a task."""

    scoring: ClassVar[str] = "accuracy"  # the score by which a loss is measured if the user names none
    has_labels: ClassVar[bool] = True  # whether answers are labels, which are right or wrong
    answers: ClassVar[tuple[str, ...]] = ("predict", "decision_function")  # methods that a score can read
    is_classification: ClassVar[bool] = False
    supervised: ClassVar[bool] = True
    refit_losses: ClassVar[tuple[Loss, ...]] = ("hinge",)  # tried when coefficients are refitted exactly
    cheap_loss: ClassVar[Loss] = "squared_hinge"  # used where the exact hinge would take long, and to move vectors
    random_folds: ClassVar[Any] = KFold
    random_group_folds: ClassVar[Any] = None

    def splitter(self, n_folds: int, grouped: bool, seed: int) -> Any:
        """A splitter of shuffled folds that keeps groups together, stratified for classes."""
        if not grouped:
            return self.random_folds(n_folds, shuffle=True, random_state=seed)
        if self.random_group_folds is None:
            return GroupKFold(n_folds)
        return self.random_group_folds(n_folds, shuffle=True, random_state=seed)

    @abstractmethod
    def checked_targets(
        self, y: NDArray[Any], labelled: bool, machine: KernelMachine, whose: str, all_classes: bool
    ) -> NDArray[Any]:
        """The user's targets, or an error that says what is wrong with them."""

    @abstractmethod
    def refit_problem(self, problem: Problem) -> RefitProblem:
        """The training problem for new coefficients."""

    @abstractmethod
    def against_refit(self, answer: Answer, terms: Terms) -> str:
        """Why coefficients cannot be refitted; empty if they can."""

    def can_train(self, y: NDArray[Any], machine: KernelMachine) -> bool:
        """Whether a parent can be trained on these targets."""
        return True

    def n_scores(self, machine: KernelMachine) -> int:
        """The number of outputs of a refitted machine."""
        return machine.head.n_scores

    @abstractmethod
    def svm(self, terms: Terms, kernel: dict[str, Any], epsilon: Callable[[], float]) -> Any:
        """scikit-learn's SVM with these terms and kernel parameters, unfitted."""

    @abstractmethod
    def linear_svm(self, terms: Terms, seed: int) -> Any:
        """scikit-learn's linear SVM with these terms, unfitted."""

    @abstractmethod
    def boosted_trees(self, **options: Any) -> Any:
        """scikit-learn's gradient-boosted trees, unfitted; None if there are none for this task."""


class _Classification(Task):
    is_classification = True
    refit_losses = ("hinge", "squared_hinge")
    random_folds, random_group_folds = StratifiedKFold, StratifiedGroupKFold

    def checked_targets(
        self, y: NDArray[Any], labelled: bool, machine: KernelMachine, whose: str, all_classes: bool
    ) -> NDArray[Any]:
        if not labelled:
            return y
        check_classification_targets(y)
        classes, known = np.unique(y), machine.classes
        problems = [(np.setdiff1d(classes, known), "holds labels that the model does not know")]
        problems += [(np.setdiff1d(known, classes), "lacks classes of the model")] if all_classes else []
        for found, what in problems:
            if len(found):
                raise ValueError(f"y of {whose} {what}: {', '.join(map(repr, found[:5].tolist()))}.")
        return y

    def refit_problem(self, problem: Problem) -> RefitProblem:
        assert problem.samples is not None
        return RefitProblem.of_classes(problem.machine, problem.samples.X, problem.samples.y, problem.costs)

    def against_refit(self, answer: Answer, terms: Terms) -> str:
        if terms.thresholded:
            return "would lose the threshold that was set after the training of the model"
        return "" if terms.C is not None else NO_COST

    def can_train(self, y: NDArray[Any], machine: KernelMachine) -> bool:
        return len(np.unique(y)) == len(machine.classes)

    def n_scores(self, machine: KernelMachine) -> int:
        return len(machine.classes) if len(machine.classes) > 2 else 1

    def svm(self, terms: Terms, kernel: dict[str, Any], epsilon: Callable[[], float]) -> Any:
        return SVC(C=float(terms.C or 1.0), class_weight=terms.class_weight, **kernel)

    def linear_svm(self, terms: Terms, seed: int) -> Any:
        return LinearSVC(C=float(terms.C or 1.0), class_weight=terms.class_weight, random_state=seed)

    def boosted_trees(self, **options: Any) -> Any:
        return HistGradientBoostingClassifier(**options)


class _Regression(Task):
    scoring, has_labels, answers = "r2", False, ("predict",)

    def checked_targets(
        self, y: NDArray[Any], labelled: bool, machine: KernelMachine, whose: str, all_classes: bool
    ) -> NDArray[Any]:
        y = np.asarray(y, dtype=np.float64)
        if not np.isfinite(y).all():
            raise ValueError(f"y of {whose} must hold finite numbers. Got NaN or infinity.")
        return y

    def refit_problem(self, problem: Problem) -> RefitProblem:
        samples = problem.samples
        assert samples is not None
        costs = float(problem.terms.C or 1) * samples.weights
        return RefitProblem.of_values(problem.machine, samples.X, samples.y, problem.epsilon, costs)

    def against_refit(self, answer: Answer, terms: Terms) -> str:
        if isinstance(answer, Value) and not answer.flat:
            return "is for one value per sample, and this model has several"
        if isinstance(answer, Value) and answer.function is not None:
            return f"is for models that predict their scores, and this one predicts their {answer.function}"
        if terms.C is None:
            return NO_COST
        unknown = terms.epsilon is None and terms.nu is None
        return "needs the epsilon of a regression, and this model has none" if unknown else ""

    def svm(self, terms: Terms, kernel: dict[str, Any], epsilon: Callable[[], float]) -> Any:
        return SVR(C=float(terms.C or 1.0), epsilon=epsilon(), **kernel)

    def linear_svm(self, terms: Terms, seed: int) -> Any:
        return LinearSVR(C=float(terms.C or 1.0), epsilon=float(terms.epsilon or 0.0), random_state=seed)

    def boosted_trees(self, **options: Any) -> Any:
        return HistGradientBoostingRegressor(**options)


class _OneClass(Task):
    supervised = False
    cheap_loss = "hinge"

    def checked_targets(
        self, y: NDArray[Any], labelled: bool, machine: KernelMachine, whose: str, all_classes: bool
    ) -> NDArray[Any]:
        if labelled and not np.isin(y, (-1, 1)).all():
            raise ValueError(f"y of {whose} must hold +1 (inside) and -1 (outside) for a one-class model.")
        return y

    def refit_problem(self, problem: Problem) -> RefitProblem:
        samples = problem.samples
        assert samples is not None
        return RefitProblem.of_one_class(problem.machine, samples.X, float(problem.terms.nu or 0.5), samples.weights)

    def against_refit(self, answer: Answer, terms: Terms) -> str:
        return "" if terms.nu is not None else "needs the nu of a one-class SVM, and this model has none"

    def svm(self, terms: Terms, kernel: dict[str, Any], epsilon: Callable[[], float]) -> Any:
        return OneClassSVM(nu=float(terms.nu or 0.5), **kernel)

    def linear_svm(self, terms: Terms, seed: int) -> Any:
        return SGDOneClassSVM(nu=float(terms.nu or 0.5), random_state=seed)

    def boosted_trees(self, **options: Any) -> Any:
        return None


NO_COST = (
    "needs C, the cost of a unit of slack, and this model has none. Pass it with the method's settings, such as "
    "slimsvm.methods.SparseMargin(C=1.0)"
)
TASKS: dict[type[Answer], Task] = {Classes: _Classification(), Value: _Regression(), Inlier: _OneClass()}


def task_of(answer: Answer) -> Task:
    """The task of a machine with this answer."""
    return TASKS[type(answer)]

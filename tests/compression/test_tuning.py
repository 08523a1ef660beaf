"""C, width and penalty of a small machine, chosen on held-out samples."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC, SVR

from slimsvm.compression.candidates.naming import factor_of, share_of
from slimsvm.compression.choose_method import MethodChoice
from slimsvm.compression.problem import Problem
from slimsvm.compression.tuning import tuned
from slimsvm.compression.validation.estimates import Estimate

X, Y = make_moons(60, noise=0.3, random_state=0)
PROBLEM = Problem.of(SVC().fit(X, Y), X, Y)


class _Judge:
    """Validation by a table: how much less a candidate loses than the first one, with a standard error of 0.01."""

    def __init__(self, gains: dict[str, float]) -> None:
        self.gains, self.asked = gains, list[str]()

    def assess(self, method: str, m: int) -> None:
        self.asked.append(method)

    def difference(self, one: tuple[str, int], other: tuple[str, int]) -> Estimate:
        if other[0] == "sparse_margin@0.1":
            raise ValueError("too few samples")
        return Estimate(self.gains.get(other[0], 0.0), 0.01, 0.01)


def choose(gains: dict[str, float], problem: Problem = PROBLEM, **options: Any) -> tuple[MethodChoice, _Judge]:
    judge, choice = _Judge(gains), MethodChoice("sparse_margin", "it was the best")
    return tuned(judge, problem, choice, ("sparse_margin", 5), **options), judge  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gains", "share", "factor"),
    [
        ({}, 1.0, 1.0),
        ({"sparse_margin@0.3": 0.005}, 1.0, 1.0),  # within a standard error
        ({"sparse_margin@0.3": 0.02, "sparse_margin@0.03": 0.05}, 0.03, 1.0),
        ({"sparse_margin~2": 0.03}, 1.0, 2.0),
    ],
)
def test_a_change_needs_a_lead_of_a_standard_error(gains: dict[str, float], share: float, factor: float) -> None:
    choice, _ = choose(gains)
    assert (share_of(choice.method), factor_of(choice.method)) == (share, factor)
    assert ("it loses" in choice.reason) == (choice.method != "sparse_margin")


def test_reasons_name_the_change() -> None:
    assert "With 2 times the model's γ it loses 0.0300 less" in choose({"sparse_margin~2": 0.03})[0].reason
    assert "With 0.3 times the model's C it loses 0.0200 less" in choose({"sparse_margin@0.3": 0.02})[0].reason


def test_c_may_be_left_alone_and_values_have_none() -> None:
    assert not any("@" in name for name in choose({}, with_C=False)[1].asked)
    values = Problem.of(SVR().fit(X, X[:, 0]), X, X[:, 0])
    assert not any("@" in name for name in choose({}, values)[1].asked)


def test_widths_are_for_the_rbf_kernel() -> None:
    other = Problem.of(SVC(kernel="poly").fit(X, Y), X, Y)
    assert not any("~" in name for name in choose({}, other)[1].asked)

"""The words of a report."""

from __future__ import annotations

import pytest

from slimsvm.report import Report, report_of


def report(n_vectors: int, **figures: float) -> Report:
    return Report({"max_loss": 0.01, "confidence": 0.95}, "selection", "it was asked for", n_vectors, 66, **figures)


def test_zero_has_no_sign() -> None:
    text = str(report(4, estimate=-1e-9, standard_error=0.0, bound=-1e-9))
    assert "0.0000 ± 0.0000" in text
    assert "-0" not in text


@pytest.mark.parametrize(
    ("n_vectors", "start"),
    [
        (4, "4 of 66 support vectors (16.5 times fewer), by selection."),
        (66, "66 vectors, as many as the original model has, by selection."),
        (70, "70 vectors instead of 66 support vectors, by selection."),
    ],
)
def test_the_first_line_is_about_the_size(n_vectors: int, start: str) -> None:
    assert str(report(n_vectors)).splitlines()[0] == start


def test_an_unknown_kind_of_disagreement_is_refused() -> None:
    with pytest.raises(ValueError, match="disagreement_of of the report must be one of labels, values"):
        report_of(report(4).as_dict() | {"disagreement_of": "names"})

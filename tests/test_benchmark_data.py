"""Tests that need the benchmark data do not pass without them."""

from __future__ import annotations

import pytest

from oracles import benchmark_data


@pytest.mark.parametrize(("ci", "end"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_missing_data_skip_a_test_and_fail_it_on_ci(
    ci: str, end: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(benchmark_data, "has_data", lambda: False)
    with pytest.raises(end, match="SLIMSVM_DATA names another one"):
        benchmark_data.need_data()

"""The benchmark data beside the project, for tests that cannot do without them."""

from __future__ import annotations

import os

import pytest

from shared_data import DATA, has_data


def need_data() -> None:
    """Skips the test where the folder of the benchmark data is missing; with CI=true that is a failure."""
    if not has_data():
        missing = f"the folder of the benchmark data, {DATA}, is missing; SLIMSVM_DATA names another one"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)

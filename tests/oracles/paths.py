"""Running a test once through the compiled core and once through NumPy."""

from __future__ import annotations

import os

import pytest

from slimsvm import _core

PATHS = ("core", "numpy")


def take(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate by `path` until the test ends; skip the core where it is missing and need not be there."""
    if path == "numpy":
        monkeypatch.setattr(_core, "available", False)
    elif not _core.available:
        if os.environ.get("SLIMSVM_REQUIRE_CORE"):
            pytest.fail("the compiled core is missing, and SLIMSVM_REQUIRE_CORE is set")
        pytest.skip("the compiled core was not built")

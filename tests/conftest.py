"""What all tests share: the benchmark data beside the project, where it is there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Callable[..., dict[str, Any]]:
    """`load(name, split=None)` of the benchmark data; skips the test where the data folder is missing."""
    if not (DATA / "load.py").exists():
        pytest.skip("the benchmark data folder ../shared/data is not beside this checkout")
    spec = importlib.util.spec_from_file_location("shared_data_loader", DATA / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    load: Callable[..., dict[str, Any]] = module.load
    return load

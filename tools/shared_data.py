"""The benchmark data beside the project, ../shared/data, for tests, benchmarks and reproductions."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("SLIMSVM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def has_data() -> bool:
    """Whether the data are there; the environment variable SLIMSVM_DATA names another folder."""
    return (DATA / "load.py").exists()


def load(name: str, split: int | None = None) -> dict[str, Any]:
    """The arrays of one set, by the data folder's own loader."""
    return _loader()(name, split=split)


@cache
def _loader() -> Callable[..., dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("shared_data_loader", DATA / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loader: Callable[..., dict[str, Any]] = module.load
    return loader

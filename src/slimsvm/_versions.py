"""Versions of slimsvm and its dependencies, for bug reports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from slimsvm import _core

DEPENDENCIES = ("numpy", "scipy", "scikit-learn")


def _installed(package: str, missing: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return missing


__version__ = _installed("slimsvm", "0+unknown")


def versions() -> dict[str, str]:
    """The versions of slimsvm, Python and the dependencies, the platform, and the core in use."""
    return {
        "slimsvm": __version__,
        "python": platform.python_version(),
        **{package: _installed(package, "not installed") for package in DEPENDENCIES},
        "platform": platform.platform(),
        "core": _core_in_use(),
    }


def show_versions() -> None:
    """Print `versions()`, one line each."""
    for name, value in versions().items():
        print(f"{name:>12}: {value}")


def _core_in_use() -> str:
    if not _core.available:
        return "NumPy (the compiled core is not installed)"
    return f"compiled ({_core.instruction_set})"

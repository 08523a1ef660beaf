"""Pictures are drawn into memory, and thrown away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    pytest.importorskip("matplotlib").use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")

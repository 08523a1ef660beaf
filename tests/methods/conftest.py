"""What tests of methods share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slimsvm.methods.large_margin.objective import MarginObjective


@pytest.fixture
def stop_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`stop_after(n)`: Ctrl-C instead of the evaluation of W that comes after n others."""

    def stop(n: int) -> None:
        calls, real = 0, MarginObjective.__call__

        def interrupted(self: MarginObjective, Z: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > n:
                raise KeyboardInterrupt
            return real(self, Z)

        monkeypatch.setattr(MarginObjective, "__call__", interrupted)

    return stop

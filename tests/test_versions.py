"""The versions for bug reports."""

from __future__ import annotations

import numpy as np
import pytest

from slimsvm._versions import __version__, show_versions, versions


def test_versions(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = versions()
    assert found["slimsvm"] == __version__
    assert found["numpy"] == np.__version__
    assert list(found)[:2] == ["slimsvm", "python"]
    assert {"scipy", "scikit-learn", "platform"} < set(found)
    show_versions()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == list(found.values())
    monkeypatch.setattr("slimsvm._core.available", False)
    assert versions()["core"].startswith("NumPy")
    monkeypatch.setattr("slimsvm._core.available", True)
    monkeypatch.setattr("slimsvm._core.instruction_set", "avx2")
    assert versions()["core"] == "compiled (avx2)"

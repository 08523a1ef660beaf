"""The fuzzer of tools/fuzz.py: it finds what is planted, goes on after it, and is quiet about the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from oracles.scripts import run_script

FUZZ = Path(__file__).resolve().parents[1] / "tools" / "fuzz.py"

# Files of one kind; what becomes of one is told by its number.
PLANTED = """
import os, runpy, signal, sys
sys.argv = ["fuzz.py"]
fuzz = runpy.run_path({path!r}, run_name="fuzz")
names = fuzz["file_number"].__globals__
def check(path):
    number = int(path.read_bytes())
    if number == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 5:
        while True:
            pass
    if number == 7:
        raise IndexError("planted")
    if number == 9:
        bytearray(1 << 28)
    return "answered", ""
kind = fuzz["Kind"]("models", lambda: [b"0"], None, check, ".bin")
names["KINDS"] = {{"planted": kind}}
names["file_number"] = lambda seed, number, what: ("planted", b"%d" % number)
names["FOLDER"] = fuzz["ROOT"] / "build" / "fuzz-planted"
names["CPU_SECONDS"] = 0.2
totals = fuzz["fuzz"](0, 1, 12, 100, "models", 1)
print(totals.counts.tolist())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and /proc")
def test_planted_findings_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    script = tmp_path / "planted.py"
    script.write_text(PLANTED.format(path=str(FUZZ)))
    ended = run_script(script, [], {})
    *said, counts = ended.stdout.splitlines()
    assert counts == "[8, 0, 1, 1, 1, 1]", ended.stdout + ended.stderr
    found = {line.split(":")[0]: line for line in said if not line.startswith("  ")}
    assert set(found) == {"crash", "hang", "foreign", "memory"}
    assert "SIGSEGV" in found["crash"]
    assert "IndexError: planted" in found["foreign"]
    assert sum("again: python tools/fuzz.py --seed 0 --first 7 --count 1" in line for line in said) == 1


EVERY = """
import runpy, sys
sys.argv = ["fuzz.py", "--what", "every", "--step", "{step}", "--jobs", "1"]
fuzz = runpy.run_path({path!r}, run_name="fuzz")
print(fuzz["n_damaged"]())
fuzz["main"]()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and /proc")
@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.slow)])
def test_truncations_and_bit_flips_of_data_files_are_read_or_refused(step: int, tmp_path: Path) -> None:
    """Exit code 0 or 3 from `slimsvm predict` for NPY, CSR, CSC and Parquet, within the limits on memory and time."""
    pytest.importorskip("pyarrow")
    script = tmp_path / "every.py"
    script.write_text(EVERY.format(path=str(FUZZ), step=step))
    ended = run_script(script, [], {})
    n_files, counts = ended.stdout.split("\n", 1)
    assert (ended.returncode, "0 crashes, 0 foreign exceptions, 0 hangs" in counts) == (0, True), ended
    assert int(n_files) > 30_000
    assert counts.startswith(f"every, seed 0: {-(-int(n_files) // step):,} files ")  # and no time limit left out any

"""svmlight text: the compiled reader beside NumPy and Python's own numbers, on good, random and damaged lines."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from slimsvm import _core
from slimsvm.data.files import Wanted, open_data
from slimsvm.data.files.svmlight import WIDEST, read_by_numpy
from slimsvm.exceptions import DataError

READERS = {"numpy": read_by_numpy} | ({"core": _core.read_svmlight} if _core.available else {})
NUMBERS = ["1", "-1", "+3", "0", "-0", "0.5", ".5", "5.", "1e5", "1E-5", "-2.5e+03", "nan", "-NaN", "inf", "+Infinity"]
STRANGE = ["", "1e", "e5", ".", "+", "--1", "1-2", "1_0", "0x1", "na", "?", "infi", "nano", "1.2.3", "\x00", "é", "1,5"]
SPACES, STRANGE_SPACES = [" ", "  ", "\t", " \t "], ["", "\r", "\f", "\v", "\r ", "\xa0", "\x1c"]
STRANGE_FIELDS = ["qid:3", "qid:x:y", "qid:", "#", "# 1:2", "x", "1:2:3", ":", "1:", ":1", "-1:2", "0:1", "1.0:2"]
STRANGE_FIELDS += [f"{2**31 - 2}:1", f"{2**31 - 1}:1", f"{2**31}:1", f"{2**64 + 5}:1", "7" * 5000 + ":1"]


def random_line(random: Random) -> str:
    """A line that is good about half of the time, and has some strange parts otherwise."""
    strangeness = random.choice([0.0, 0.0, 0.05, 0.2])

    def one(good: list[str], strange: list[str]) -> str:
        return random.choice(strange if random.random() < strangeness else good)

    parts = [one(["", " ", "\t"], ["\f", "qid:1 ", "# ", "\r"]), one(NUMBERS, STRANGE)]
    index = random.randrange(3) if random.random() < strangeness else 1
    for _ in range(random.randrange(6)):
        field = f"{'0' * random.randrange(3)}{index}:{random.choice(NUMBERS)}"
        parts += [one(SPACES, STRANGE_SPACES), one([field], STRANGE_FIELDS)]
        index += random.randrange(0 if random.random() < strangeness else 1, 4)
    return "".join([*parts, one(["", " ", "\r", " # note", " qid:3"], ["\f", "\v", " qid:", "#"]), "\n"])


def bits(found: Any) -> Any:
    """What a reader returns as values that compare: types and bits, with one kind of NaN."""
    if found is None:
        return None
    *arrays, width = found
    return width, [(a.dtype, np.where(np.isnan(a), np.nan, a).tobytes()) for a in arrays]


def outcome(path: Path, wanted: Wanted) -> Any:
    """Rows and targets of a file, or the sentence about what is wrong with it."""
    try:
        blocks = list(open_data(str(path), wanted, "svmlight").blocks())
    except DataError as failure:
        return str(failure)
    rows = [block.X if isinstance(block.X, np.ndarray) else block.X.tocoo() for block in blocks]
    parts = [[X] if isinstance(X, np.ndarray) else [X.row, X.col, X.data] for X in rows]
    return [bits((*part, block.y, X.shape)) for part, block, X in zip(parts, blocks, rows, strict=True)]


@pytest.mark.skipif(not _core.available, reason="the compiled core is missing")
def test_the_core_and_numpy_read_the_same() -> None:
    random, n_good = Random(0), 0
    for k in range(4000):
        text = "".join(random_line(random) for _ in range(random.randrange(1, 4))).encode()
        first, widest = k % 2, (4, WIDEST)[k // 2 % 2]
        ours = bits(_core.read_svmlight(text, first, widest))
        assert ours == bits(read_by_numpy(text, first, widest)), text
        n_good += ours is not None
    assert 1000 < n_good < 3000


@pytest.mark.parametrize("accepts_more", [False, True])
def test_damaged_files_give_the_same_rows_or_the_same_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepts_more: bool
) -> None:
    random, path, refused = Random(1), tmp_path / "rows", set()
    wanted = Wanted(n_features=9, accepts_more_features=accepts_more)
    good = b"1 1:0.5 3:-2e3\r\n# note\n-1 2:1 qid:7 9:4 # more\n\n 2\t5:inf \n"
    for _ in range(400):
        text = bytearray(good)
        for _ in range(random.randrange(1, 4)):
            text[random.randrange(len(text))] = random.choice([random.randrange(256), *b" :\n\r#1-.q"])
        path.write_bytes(text[: random.choice([len(text), random.randrange(1, len(text))])])
        found = []
        for available in {_core.available, False}:
            monkeypatch.setattr(_core, "available", available)
            found.append(outcome(path, wanted))
        monkeypatch.undo()
        assert found[0] == found[-1], text
        refused.add(found[0] if isinstance(found[0], str) else "")
    assert len(refused) > 40


@pytest.mark.parametrize("reader", READERS)
def test_numbers_are_the_nearest_doubles(reader: str) -> None:
    random = Random(2)
    texts = [repr(struct.unpack("d", random.randbytes(8))[0]) for _ in range(500)]
    texts += [
        f"{random.choice('+-')}{random.uniform(0, 10):.{k % 25}f}e{random.randrange(-330, 310)}" for k in range(500)
    ]
    texts += [f"{random.getrandbits(60)}e{random.randrange(-30, 30)}" for _ in range(500)]
    texts += [
        f"{2**53 + 1}",
        f"{2**53 + 3}e22",
        "9007199254740993" + "0" * 30 + "1e-31",
        "1" * 400,
        "0." + "0" * 400 + "1",
    ]
    texts += [
        "0" * 500 + "1.5",
        "1" + "0" * 400 + "e-400",
        "0." + "0" * 400 + "1e400",
        "0e" + "9" * 30,
        "1e-" + "9" * 30,
    ]
    texts += [
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623158e308",
        "1.8e308",
        "-1e309",
    ]
    labels, *_ = READERS[reader]("".join(f"{text}\n" for text in texts).encode(), 1, 1)
    expected = np.array([float(text) for text in texts])
    assert np.array_equal(labels, expected, equal_nan=True)
    assert np.array_equal(np.signbit(labels), np.signbit(expected))


BAD = {
    "? 1:2\n": "the target '?' is not a number",
    "na 1:2\n": "the target 'na' is not a number",
    "1-2 1:3\n": "the target '1-2' is not a number",
    "1 1:2-3 2:4\n": "'1:2-3' is not index:value",
    "1 1:２\n": "'1:２' is not index:value",
    "1 1:1\f2:2\n": "only spaces and tabs may be between the fields of a line",
    f"1 {2**31}:1\n": f"the largest index is {2**31 - 1}. Got '{2**31}'",
    "1 " + "7" * 5000 + ":1\n": "the largest index is 2147483647. Got '7777777",
}


@pytest.mark.parametrize("available", sorted({False, _core.available}))
@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:9])
def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, available: bool) -> None:
    monkeypatch.setattr(_core, "available", available)
    (tmp_path / "rows").write_text("1 1:1\n" + text, encoding="utf-8")
    assert f"rows, line 2: {BAD[text]}" in outcome(tmp_path / "rows", Wanted())


def test_the_core_refuses_room_that_does_not_fit() -> None:
    if not _core.available:
        pytest.skip("the compiled core is missing")
    rows, entries = np.empty(1), (np.empty(1, np.int32), np.empty(1))
    read = _core._native.read_svmlight
    with pytest.raises(ValueError, match="starts must have one number more than labels"):
        read(b"1\n", 1, 5, rows, np.empty(1, np.int64), *entries)
    assert read(b"1 1:1\n2 1:1\n", 1, 5, rows, np.empty(2, np.int64), *entries) == (1, 1, 1, False)
    assert read(b"1 1:1 2:1", 1, 5, rows, np.empty(2, np.int64), *entries)[3] is False

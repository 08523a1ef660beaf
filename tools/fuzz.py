"""Load mutated model and data files, and count what goes wrong.

    python tools/fuzz.py                        # ten minutes, all kinds of files
    python tools/fuzz.py --seed 7 --count 100000 --what models
    python tools/fuzz.py --seed 7 --first 1234 --count 1      # one file again
    python tools/fuzz.py --what every           # every truncation and every bit flip of small data files

File number i of a seed is always the same. Each is read in a child process: a model is loaded, asked for answers and
saved again; data go through the commands `slimsvm predict` and `slimsvm evaluate`. Right outcomes are an answer, or the
documented error: FormatError for models, exit code 3 for data. Findings are

  crash    the child ended by a signal
  foreign  any other exception or exit code
  hang     more than a second of CPU time, or 20 seconds in all
  memory   more than 64 MiB plus 10 times the size of the file, on top of what the process had before

A file with a finding is saved in build/fuzz, with the command that reads it again.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}

import argparse
import contextlib
import gzip
import io
import math
import mmap
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from data.make_golden import machines
from oracles import mutations
from oracles.random_machines import random_machine
from slimsvm import storage
from slimsvm.answers import Classes
from slimsvm.cli.app import run
from slimsvm.cli.errors import is_refusal
from slimsvm.estimator import wrap
from slimsvm.exceptions import FormatError, UnsupportedExportError
from slimsvm.formats import libsvm
from slimsvm.heads import LinearHead
from slimsvm.importers import read_libsvm_machine
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine

FOLDER = ROOT / "build" / "fuzz"
CPU_SECONDS, SECONDS = 1.0, 20.0
EXTRA, TIMES = 64 << 20, 10
CHUNK = 1000  # files that a child reads
OUTCOMES = ("answered", "refused", "foreign", "memory", "hang", "crash")
FINDINGS = OUTCOMES[2:]
PLACE, SLOWEST = len(OUTCOMES), len(OUTCOMES) + 1  # after the counts, in what parent and child share
Report = tuple[str, str]  # the outcome, and what is to be said about it


@dataclass(frozen=True)
class Kind:
    """Files of one kind.

    group : models or data.
    honest : the files before mutation.
    mutate : a function (data, rng) → damaged data.
    check : a function of the path of a file → its report.
    suffix : of the files' names.
    """

    group: str
    honest: Callable[[], list[bytes]]
    mutate: mutations.Mutate
    check: Callable[[Path], Report]
    suffix: str


def file_number(seed: int, number: int, what: str) -> tuple[str, bytes]:
    """The name of the kind and the content of a file."""
    if what == "every":
        return damaged_file(number)
    names = kinds_of(what)
    name = names[number % len(names)]
    kind, rng = KINDS[name], np.random.default_rng([seed, number])
    honest = kind.honest()
    return name, kind.mutate(honest[rng.integers(len(honest))], rng)


def damaged_file(number: int) -> tuple[str, bytes]:
    """One of the truncations and bit flips of the first file of each kind in EVERY."""
    for name in EVERY:
        data = KINDS[name].honest()[0]
        if number < 9 * len(data):
            place, way = divmod(number, 9)
            return name, data[:place] if way == 8 else mutations.with_flipped_bit(data, place, way)
        number -= 9 * len(data)
    raise IndexError("there are fewer truncations and bit flips")


def n_damaged() -> int:
    """How many truncations and bit flips there are."""
    return sum(9 * len(KINDS[name].honest()[0]) for name in EVERY)


def kinds_of(what: str) -> list[str]:
    """The names of the kinds of a group, or of all."""
    if what == "every":
        return list(EVERY)
    return [name for name, kind in KINDS.items() if what in (kind.group, "all")]


# ---------------------------------------------------------------- honest files


@cache
def honest_machines() -> list[KernelMachine]:
    rng = np.random.default_rng(0)
    return [*machines().values(), *(random_machine(rng) for _ in range(20))]


@cache
def slim_files() -> list[bytes]:
    files = [storage.dumps(machine) for machine in honest_machines()]
    history = storage.Notes(history=[{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}])
    return [*files, storage.dumps(honest_machines()[0], history)]


@cache
def libsvm_files() -> list[bytes]:
    found = []
    for machine in honest_machines():
        with contextlib.suppress(UnsupportedExportError):
            found += libsvm.files(machine, "m").contents.values()
    return [data for data in found if data.startswith(b"svm_type")]


def rows() -> tuple[Any, Any]:
    X = np.random.default_rng(1).normal(size=(6, 3)).round(3)
    return X, np.array([0, 1, 0, 1, 1, 0])


@cache
def model() -> KernelMachine:
    """What mutated data are given to."""
    X, y = rows()
    return KernelMachine(Rbf(0.5), X, LinearHead(2.0 * y[:, None] - 1.0, [0.1]), Classes(np.array([0, 1])))


def saved(save: Callable[[Any], Any]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


@cache
def npy_files() -> list[bytes]:
    X, _ = rows()
    forms = (X, X.astype("<f4"), X.astype(">f8"), np.asfortranarray(X), (10 * X).astype(np.int8))
    return [saved(lambda file, form=form: np.save(file, form)) for form in forms]


@cache
def npz_files() -> list[bytes]:
    X, y = rows()
    texts = np.array(["no", "yes"])[y]
    return [
        saved(lambda file: np.savez(file, X=X, y=y)),
        saved(lambda file: np.savez_compressed(file, X=np.asfortranarray(X), y=texts)),
        saved(lambda file: np.savez_compressed(file, data=X.astype(np.float32), target=y.astype("S"))),
    ]


@cache
def sparse_files(format: str) -> list[bytes]:
    X = rows()[0] * (np.random.default_rng(2).random((6, 3)) < 0.6)
    made = sparse.csr_array(X).asformat(format)
    return [saved(lambda file, how=how: sparse.save_npz(file, made, compressed=how)) for how in (True, False)]


@cache
def csv_files() -> list[bytes]:
    X, y = rows()
    lines = [",".join(map(str, row)) for row in X.tolist()]
    labelled = [f"{line},{'yes' if label else 'no'}" for line, label in zip(lines, y, strict=True)]
    quoted = ['"a","b","c",target', *(f'"{line.replace(",", chr(34) + "," + chr(34))}",1' for line in lines)]
    texts = [lines, ["a,b,c", *lines], ["a,b,c,label", *labelled], quoted]
    return [("\n".join(text) + "\n").encode() for text in texts] + [
        "\n".join(line.replace(",", "\t") for line in lines).encode()
    ]


@cache
def gzip_files() -> list[bytes]:
    return [gzip.compress(data, mtime=0) for data in csv_files()]


@cache
def svmlight_files() -> list[bytes]:
    X, y = rows()
    lines = [f"{label} 1:{a} 2:{b} 3:{c}" for label, (a, b, c) in zip(y, X.tolist(), strict=True)]
    return [
        ("\n".join(lines) + "\n").encode(),
        ("\n".join(f"{line.replace(' 2', ' # c 2', 1)}" for line in lines)).encode(),
    ]


@cache
def parquet_files() -> list[bytes]:
    import pyarrow
    import pyarrow.parquet

    X, y = rows()
    columns = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": (10 * X[:, 2]).astype(np.int16), "label": y}
    table = pyarrow.table(columns)
    forms: list[dict[str, Any]] = [
        {"compression": "snappy"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd"},
    ]
    return [saved(lambda file, how=how: pyarrow.parquet.write_table(table, file, **how)) for how in forms]


# ---------------------------------------------------------------- what is done with a file


def check_slim(path: Path) -> Report:
    """Load a .slim file as `slimsvm.load` does."""
    try:
        machine, notes = storage.read_with_notes(path)
    except FormatError:
        return "refused", ""
    if storage.loads(storage.dumps(machine, notes)) != machine:
        return "foreign", "the machine is another one after it is saved and loaded"
    return asked(machine)


def check_libsvm(path: Path) -> Report:
    """Load a LIBSVM model."""
    try:
        machine = read_libsvm_machine(path)
    except FormatError:
        return "refused", ""
    return asked(machine)


def asked(machine: KernelMachine) -> Report:
    """Ask a machine that was loaded for everything that it answers; it may refuse rows that its kernel overflows on."""
    d = machine.n_features
    entries = ([1.0, 2.0, -1.0], ([0, 1, 1], [0, 0, d - 1]))
    X = sparse.csr_array(entries if d else ([], ([], [])), shape=(3, d))
    try:
        answers = [machine.decision(X), machine.predict(X)]
        answers += [] if machine.calibration is None else [machine.predict_proba(X)]
        answers += [machine.predict(np.zeros((3, d)))] if d <= 1000 else []
    except ValueError as error:
        if not is_refusal(error):
            raise
        return "refused", ""
    for answer in answers:
        if len(answer) != 3 or (answer.dtype.kind == "f" and not np.isfinite(answer).all()):
            return "foreign", f"the answers to three rows are {answer.tolist()}"
    if machine.calibration is not None and not ((answers[2] >= 0) & (answers[2] <= 1)).all():
        return "foreign", f"probabilities are {answers[2].tolist()}"
    repr(wrap(machine))
    return "answered", ""


def commanded(command: str, *options: str) -> Callable[[Path], Report]:
    """Read data with a command."""

    def check(path: Path) -> Report:
        said = io.StringIO()
        arguments = [command, str(path), str(path.parent / "model.slim"), *options]
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            try:
                run(arguments)
            except SystemExit as end:
                code = end.code
        text = said.getvalue()
        if code == 1 and "not enough memory" in text:
            return "memory", text
        return (
            ("answered", "")
            if code == 0
            else ("refused", "")
            if code == 3
            else ("foreign", f"exit code {code}: {text}")
        )

    return check


predict, evaluate = commanded("predict"), commanded("evaluate")


def predict_and_evaluate(path: Path) -> Report:
    """Both commands, for files with targets."""
    first, second = predict(path), evaluate(path)
    return first if first[0] in FINDINGS or second[0] == "refused" else second


KINDS = {
    "slim": Kind("models", slim_files, mutations.mutated_slim, check_slim, ".slim"),
    "libsvm": Kind("models", libsvm_files, mutations.mutated_text, check_libsvm, ".model"),
    "npy": Kind("data", npy_files, mutations.mutated_array, predict, ".npy"),
    "npz": Kind("data", npz_files, mutations.mutated_archive, predict_and_evaluate, ".npz"),
    "csr": Kind("data", lambda: sparse_files("csr"), mutations.mutated_archive, predict, ".npz"),
    "csc": Kind("data", lambda: sparse_files("csc"), mutations.mutated_archive, predict, ".npz"),
    "coo": Kind("data", lambda: sparse_files("coo"), mutations.mutated_archive, predict, ".npz"),
    "csv": Kind("data", csv_files, mutations.mutated_text, predict_and_evaluate, ".csv"),
    "csv.gz": Kind("data", gzip_files, mutations.mutated_gzip, predict_and_evaluate, ".csv.gz"),
    "svmlight": Kind("data", svmlight_files, mutations.mutated_text, predict_and_evaluate, ".svm"),
    "parquet": Kind("data", parquet_files, mutations.mutated_binary, predict_and_evaluate, ".parquet"),
}


EVERY = ("npy", "csr", "csc", "parquet")


# ---------------------------------------------------------------- the child


def read_files(seed: int, numbers: range, what: str, shared: Any) -> None:
    """Read files, and count what becomes of them in `shared`, which the parent sees even if this process dies."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory(prefix="slimsvm-fuzz-") as folder:
        storage.write(model(), Path(folder) / "model.slim")
        for name in kinds_of(what):  # what is imported at the first use is not counted
            for data in KINDS[name].honest():
                report = reported(name, written(folder, name, data))
                assert report[0] == "answered" or name == "svmlight", (name, report)
        for signal_number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(signal_number, signal.SIG_DFL)
        for number in numbers:
            name, data = file_number(seed, number, what)
            path = written(folder, name, data)
            shared[PLACE] = number
            outcome, seconds = guarded(name, path, len(data))
            shared[OUTCOMES.index(outcome[0])] += 1
            shared[SLOWEST] = max(shared[SLOWEST], int(1e6 * seconds))
            if outcome[0] in FINDINGS:
                save_finding(seed, number, what, *outcome)


def written(folder: str, name: str, data: bytes) -> Path:
    path = Path(folder) / f"file{KINDS[name].suffix}"
    path.unlink(missing_ok=True)  # some file systems write a file to the disk at once if it was emptied first
    path.write_bytes(data)
    return path


def guarded(name: str, path: Path, size: int) -> tuple[Report, float]:
    """The report on a file and the CPU seconds that it took; a hang kills this process."""
    soft = resource.getrlimit(resource.RLIMIT_AS)[1]
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + EXTRA + TIMES * size, soft))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    start = time.process_time()
    try:
        return reported(name, path), time.process_time() - start
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, soft))


def reported(name: str, path: Path) -> Report:
    """The report on a file; any exception that comes this far is foreign."""
    try:
        return KINDS[name].check(path)
    except MemoryError as error:
        return "memory", repr(error)
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"


def save_finding(seed: int, number: int, what: str, outcome: str, said: str) -> None:
    """Save a file, and say how to read it again."""
    name, data = file_number(seed, number, what)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{outcome}-{seed}-{number}{KINDS[name].suffix}"
    path.write_bytes(data)
    print(f"{outcome}: {path.relative_to(ROOT)}: {' '.join(said.split())[:300]}")
    print(f"  again: python tools/fuzz.py --seed {seed} --first {number} --count 1 --what {what}", flush=True)


# ---------------------------------------------------------------- the parent


@dataclass
class Child:
    """A process that reads a range of files; `shared` has the counts, the current number and the slowest file."""

    numbers: range
    shared: Any
    pid: int


@dataclass
class Totals:
    """Counts of all children."""

    counts: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(len(OUTCOMES), dtype=np.int64))
    slowest: float = 0.0

    def add(self, shared: Any) -> None:
        self.counts += shared[: len(OUTCOMES)]
        self.slowest = max(self.slowest, shared[SLOWEST] / 1e6)


def fuzz(seed: int, first: int, count: int | None, seconds: float, what: str, jobs: int, step: int = 1) -> Totals:
    """Read every `step`-th of `count` files in children, `jobs` at a time, until the time is used up."""
    totals, children, end = Totals(), {}, time.monotonic() + seconds
    waiting: Iterator[range] = chunks(first, count, step)
    again: list[range] = []
    for name in kinds_of(what):
        KINDS[name].honest()  # made once, before the children are forked
    while True:
        while len(children) < jobs and (again or time.monotonic() < end):
            numbers = again.pop() if again else next(waiting, None)
            if numbers is None:
                break
            child = started(seed, numbers, what)
            children[child.pid] = child
        if not children:
            return totals
        pid, status = os.wait()
        child = children.pop(pid)
        ended(child, os.waitstatus_to_exitcode(status), seed, what)
        totals.add(child.shared)
        rest = range(int(child.shared[PLACE]) + step, child.numbers.stop, step)
        if status and rest:
            again.append(rest)


def chunks(first: int, count: int | None, step: int) -> Iterator[range]:
    number = first
    while count is None or number < first + count:
        stop = number + CHUNK * step
        yield range(number, stop if count is None else min(stop, first + count), step)
        number = stop


def started(seed: int, numbers: range, what: str) -> Child:
    shared = np.frombuffer(mmap.mmap(-1, 8 * (len(OUTCOMES) + 2)), dtype=np.int64)
    shared[PLACE] = -1
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            read_files(seed, numbers, what, shared)
            code = 0
        except BaseException as error:
            print(f"the fuzzer itself failed: {error!r}", file=sys.stderr, flush=True)
        os._exit(code)
    return Child(numbers, shared, pid)


def ended(child: Child, code: int, seed: int, what: str) -> None:
    """Attribute the death of a child to the file that it was reading."""
    if code == 0:
        return
    if child.shared[PLACE] < 0 or code == 1:
        raise SystemExit("a child failed before it read a mutated file, or failed by itself")
    outcome = "hang" if -code in (signal.SIGPROF, signal.SIGALRM) else "crash"
    child.shared[OUTCOMES.index(outcome)] += 1
    said = f"exit code {code}" if code > 0 else signal.Signals(-code).name
    save_finding(seed, int(child.shared[PLACE]), what, outcome, said)


def main() -> None:
    """Fuzz, and print the counts; the exit code is 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="when to stop (default: 600; with `--what every`, never)")
    parser.add_argument("--count", type=int, help="how many files at most (default: any number)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first file (default: 0)")
    parser.add_argument("--what", choices=["all", "models", "data", "every"], default="all")
    parser.add_argument("--step", type=int, default=1, help="read every STEP-th file (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    options = parser.parse_args()
    began = time.monotonic()
    count, seconds = options.count, options.seconds
    if seconds is None:
        seconds = math.inf if options.what == "every" else 600.0
    if options.what == "every":
        count = n_damaged() - options.first if count is None else min(count, n_damaged() - options.first)
    totals = fuzz(options.seed, options.first, count, seconds, options.what, options.jobs, options.step)
    counts = dict(zip(OUTCOMES, totals.counts.tolist(), strict=True))
    print(
        f"{options.what}, seed {options.seed}: {sum(counts.values()):,} files in {time.monotonic() - began:.0f} s, "
        f"{counts['answered']:,} answered, {counts['refused']:,} refused, {counts['crash']} crashes, "
        f"{counts['foreign']} foreign exceptions, {counts['hang']} hangs over 1 s, "
        f"{counts['memory']} beyond the memory bound; the slowest took {totals.slowest:.3f} s"
    )
    raise SystemExit(any(counts[name] for name in FINDINGS))


if __name__ == "__main__":
    main()

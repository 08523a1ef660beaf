"""Checkpoints of a training on rows in blocks: all that it needs to go on as if it had never been stopped.

A checkpoint is a container like a .slim file (`_container.py`), without code, with a checksum, and written in one step.
It has the searches that have ended, and the state of the one that has not: vectors, map, coefficients, the moments of
Adam, the curvature, the generator of random numbers, and how many batches have been read. The first pass over the rows
and the start are made again when a training is resumed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm import _container
from slimsvm._files import write_whole
from slimsvm.exceptions import FormatError
from slimsvm.methods.large_margin.descent import Descent

if TYPE_CHECKING:
    from slimsvm.data.survey import Survey

SECONDS = 5.0  # between two checkpoints
KIND = "checkpoint"
UNRELATED = ("verbose", "n_jobs", "precision", "checkpoint", "max_time")  # parameters that change no result
Arrays = dict[str, Any]


@dataclass
class Position:
    """How far a descent is: whole passes, batches of the present one, and the sum of their objectives."""

    n_passes: int = 0
    n_batches: int = 0
    value: float = 0.0


class Checkpoint:
    """The checkpoint of an estimator's training on rows; without a path, nothing is written or restored."""

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: str = "") -> None:
        self.path, self._fingerprint = path, fingerprint
        self._ended: list[tuple[Arrays, dict[str, Any]]] = []  # searches that have ended
        self._current: tuple[Arrays, dict[str, Any]] | None = None
        self._n_replayed = 0
        self._saved = time.monotonic()
        if path is not None and not Path(path).resolve().parent.is_dir():  # said now, and not at the first save
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        if path is not None and Path(path).exists():
            self._read(path)

    def _read(self, path: str | os.PathLike[str]) -> None:
        try:
            tensors, content, _ = _container.unpack(Path(path).read_bytes())
            if not isinstance(content, dict) or content.get("kind") != KIND:
                raise FormatError("it is not a checkpoint.")
            if content["fingerprint"] != self._fingerprint:
                raise FormatError("it belongs to a training with other parameters, data or versions.")
            searches = content["searches"]
            for number, facts in enumerate(searches):
                start = f"{number}."
                arrays = {name.removeprefix(start): a for name, a in tensors.items() if name.startswith(start)}
                if facts["ended"]:
                    self._ended.append((arrays, facts))
                else:
                    self._current = arrays, facts
        except (FormatError, KeyError, TypeError) as error:
            reason = str(error) if isinstance(error, FormatError) else "it lacks what a checkpoint has."
            raise FormatError(
                f"checkpoint {path} cannot be resumed: {reason} Delete it or name another file."
            ) from None

    def ended(self, rng: np.random.Generator) -> tuple[Arrays, dict[str, Any]] | None:
        """The next search, if it had ended before; `rng` goes on from where it was after it."""
        if self._n_replayed >= len(self._ended):
            return None
        arrays, facts = self._ended[self._n_replayed]
        self._n_replayed += 1
        _set_state(rng, facts["rng"])
        return arrays, facts

    def end(self, arrays: Arrays, facts: dict[str, Any], rng: np.random.Generator) -> None:
        """Add a search that has ended."""
        self._ended.append((arrays, facts | {"ended": True, "rng": _state(rng)}))
        self._n_replayed, self._current = len(self._ended), None
        self._write()

    def restore(self, descent: Descent, rng: np.random.Generator, history: list[dict[str, Any]]) -> Position | None:
        """Put a descent where it was, and say how far that is; None if there is nothing to restore."""
        if self._current is None:
            return None
        arrays, facts = self._current
        set_state(descent, arrays, facts)
        _set_state(rng, facts["rng"])
        history[:] = as_history(facts)
        return Position(facts["n_passes"], facts["n_batches"], facts["value"])

    def save_if_due(
        self, descent: Descent, rng: np.random.Generator, at: Position, history: list[dict[str, Any]]
    ) -> None:
        """Save if the last time is some seconds ago."""
        if self.path is not None and time.monotonic() - self._saved >= SECONDS:
            self.save(descent, rng, at, history)

    def save(self, descent: Descent, rng: np.random.Generator, at: Position, history: list[dict[str, Any]]) -> None:
        """Save the state of a descent."""
        if self.path is None:
            return
        arrays, facts = state(descent)
        facts |= {"n_passes": at.n_passes, "n_batches": at.n_batches, "value": at.value, "history": list(history)}
        self._current = arrays, facts | {"ended": False, "rng": _state(rng)}
        self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        searches = [*self._ended, *([] if self._current is None else [self._current])]
        tensors = {f"{number}.{name}": a for number, (arrays, _) in enumerate(searches) for name, a in arrays.items()}
        content = {"kind": KIND, "fingerprint": self._fingerprint, "searches": [facts for _, facts in searches]}
        write_whole(self.path, _container.pack(tensors, content))
        self._saved = time.monotonic()


def state(descent: Descent) -> tuple[Arrays, dict[str, Any]]:
    """The numbers that a descent has changed since its start."""
    descent.fetch()
    copies = {name: a.copy() for name, a in _arrays(descent).items()}
    if descent.inverse is not None:
        copies["inverse"] = descent.inverse.copy()
    return copies, {"n_steps": descent.n_steps, "next_refresh": descent.next_refresh}


def set_state(descent: Descent, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Put a descent into a state that `state` gave."""
    for name, x in _arrays(descent).items():
        x[...] = _like(arrays, name, x)
    descent.inverse = arrays.get("inverse")
    descent.n_steps, descent.next_refresh = facts["n_steps"], facts["next_refresh"]
    descent.push()


def _arrays(descent: Descent) -> Arrays:
    """The arrays that steps change in place."""
    found: Arrays = {"W": descent.W, "W_mean": descent.W_mean}
    for name, adam in (("vectors", descent.vectors), ("map", descent.map)):
        if adam is not None:
            found |= {f"{name}.x": adam.x, f"{name}.mean": adam.mean, f"{name}.square": adam.square}
    return found


def _like(arrays: Arrays, name: str, x: Any) -> Any:
    found = arrays.get(name)
    if found is None or found.shape != x.shape or found.dtype != x.dtype:
        raise FormatError(f"The checkpoint cannot be resumed: it lacks {name} of shape {x.shape}.")
    return found


def as_history(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The history of a search, whose keys JSON has sorted."""
    return [{"step": one["step"], "objective": one["objective"]} for one in facts["history"]]


def fingerprint(estimator: Any, survey: Survey) -> str:
    """What a checkpoint belongs to: the parameters of an estimator, its data, and the versions that compute."""
    import slimsvm

    parameters = {name: repr(value) for name, value in estimator.get_params().items() if name not in UNRELATED}
    versions = [slimsvm.__version__, np.__version__]
    sha = hashlib.sha256(json.dumps([type(estimator).__name__, parameters, versions], sort_keys=True).encode())
    moments = survey.moments
    for array in (moments.mean, moments.squares, moments.low, moments.high, survey.counts, survey.weights):
        sha.update(np.ascontiguousarray(array).tobytes())
    sha.update(
        f"{survey.n_rows} {survey.level!r} {None if survey.classes is None else survey.classes.tolist()}".encode()
    )
    return sha.hexdigest()


def _state(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a generator, whose 128-bit numbers are written as text."""
    full: Any = rng.bit_generator.state
    inner = {name: str(value) for name, value in full["state"].items()}
    return {"state": inner, "has_uint32": full["has_uint32"], "uinteger": full["uinteger"]}


def _set_state(rng: np.random.Generator, given: dict[str, Any]) -> None:
    full: Any = rng.bit_generator.state
    inner = {name: int(value) for name, value in given["state"].items()}
    rng.bit_generator.state = full | given | {"state": inner}

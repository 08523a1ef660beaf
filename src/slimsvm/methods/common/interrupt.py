"""Ctrl-C during long work: the best result so far is kept, everywhere in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from slimsvm.exceptions import Interrupted


@contextmanager
def keeping_best(
    best: Callable[[], object] | None = None, *, inner: Callable[[Any], object] | None = None
) -> Iterator[None]:
    """Turn Ctrl-C inside the block into `Interrupted(best())`, or `Interrupted(None)` without `best`.

    Blocks may be nested. `inner` turns what an inner block kept into the result of this one; it is called only if the
    inner block kept something. Without `inner`, what an inner block kept is dropped in favour of `best()`.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        kept = stop.best if isinstance(stop, Interrupted) else None
        if inner is not None and kept is not None:
            raise Interrupted(inner(kept)) from None
        raise Interrupted(None if best is None else best()) from None

"""Checks of parameters. All errors have the same form: "C of SVC must be a finite number above 0. Got -1."

`whose` is the class or function that the parameter belongs to. A `note` gives the reason or the remedy, and follows the
bounds after a comma. With `optional`, None is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from slimsvm._warn import warn_user
from slimsvm._words import plural

AUTO_VECTORS, AUTO_PER_CLASS = 50, 10  # more vectors take longer and rarely make a better model


def check_number(
    value: Any,
    name: str,
    whose: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    optional: bool = False,
    note: str = "",
) -> None:
    """Raise ValueError unless the value is a finite number within the given bounds."""
    if optional and value is None:
        return
    number = _finite(value)
    if (
        number is None
        or (above is not None and number <= above)
        or (least is not None and number < least)
        or (below is not None and number >= below)
    ):
        _refuse(value, name, whose, _interval(above, least, below), optional, note)


def check_count(value: Any, name: str, whose: str, *, least: int = 1, optional: bool = False, note: str = "") -> None:
    """Raise ValueError unless the value is a whole number of at least `least`."""
    if optional and value is None:
        return
    if not _is_whole(value) or value < least:
        _refuse(value, name, whose, f"a whole number of at least {least}", optional, note)


def check_choice(value: Any, name: str, whose: str, allowed: Sequence[str | bool]) -> None:
    """Raise ValueError unless the value is one of `allowed`; 1 does not count as True."""
    if not isinstance(value, (str, bool, np.bool_)) or value not in allowed:
        _refuse(value, name, whose, f"one of {', '.join(map(repr, allowed))}")


def auto_size(n: int, n_classes: int = 1) -> int:
    """The number of vectors that "auto" means: a tenth of n samples or support vectors, but no more than are useful.

    These are 50, or 10 for each class if that is more.
    """
    return max(1, min(round(n / 10), max(AUTO_VECTORS, AUTO_PER_CLASS * n_classes)))


def resolve_size(
    n_vectors: Any,
    most: int,
    whose: str,
    name: str = "n_vectors",
    of: str = "support vectors",
    auto: int | None = None,
) -> int:
    """A count, from an int or from a float in (0, 1): that fraction of `most`, rounded, and at least 1.

    `auto` is the count that "auto" means; without it the word is refused.
    """
    if auto is not None and isinstance(n_vectors, str) and n_vectors == "auto":
        return auto
    if _is_whole(n_vectors) and n_vectors >= 1:
        return int(n_vectors)
    if isinstance(n_vectors, (float, np.floating)) and 0.0 < n_vectors < 1.0:
        return max(1, round(float(n_vectors) * most))
    word = "" if auto is None else "'auto', "
    wanted = f"{word}a whole number of at least 1, or a share of the {of} above 0 and below 1"
    return _refuse(n_vectors, name, whose, wanted)


def resolve_sizes(n_vectors: Any, most: int, whose: str, auto: int | None = None) -> list[int]:
    """A list of counts, from one size or a sequence of sizes; warns if one is above `most`, the support vectors."""
    many = isinstance(n_vectors, Sequence) and not isinstance(n_vectors, (str, bytes))
    many = many or (hasattr(n_vectors, "__len__") and getattr(n_vectors, "ndim", 0) == 1)
    if many and len(n_vectors) == 0:
        raise ValueError(f"n_vectors of {whose} must hold at least one size. Got {n_vectors!r}.")
    sizes = [resolve_size(one, most, whose, auto=auto) for one in (n_vectors if many else [n_vectors])]
    if max(sizes) > most:
        warn_user(
            f"n_vectors of {whose} is {max(sizes)}, and the model has {plural(most, 'distinct support vector')}: it is "
            f"returned unchanged."
        )
    return sizes


def resolve_sample_size(n_vectors: Any, n_samples: int, whose: str, auto: int) -> int:
    """A number of vectors of at most `n_samples`, the training samples; warns if `n_vectors` is larger."""
    m = resolve_size(n_vectors, n_samples, whose, of="training samples", auto=auto)
    if m > n_samples:
        warn_user(
            f"n_vectors of {whose} is {m}, and there are only {n_samples} training samples, so {n_samples} is used."
        )
    return min(m, n_samples)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _finite(value: Any) -> float | None:
    """The value as a float; None if it is not a finite number."""
    if not _is_whole(value) and not isinstance(value, (float, np.floating)):
        return None
    try:
        number = float(value)
    except OverflowError:  # an int that no float can hold
        return None
    return number if math.isfinite(number) else None


def _interval(above: float | None, least: float | None, below: float | None) -> str:
    if below is None:
        low = f" above {above:g}" if above is not None else f" of at least {least:g}" if least is not None else ""
        return f"a finite number{low}"
    if least is not None:
        return f"a number from {least:g} to below {below:g}"
    return f"a number above {above:g} and below {below:g}" if above is not None else f"a finite number below {below:g}"


def _refuse(value: Any, name: str, whose: str, wanted: str, optional: bool = False, note: str = "") -> NoReturn:
    wanted += ", or None" if optional else ""
    wanted += f", {note}" if note else ""
    raise ValueError(f"{name} of {whose} must be {wanted}. Got {value!r}.")

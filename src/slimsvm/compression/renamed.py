"""Old names of parameters: an error that names the new one, instead of Python's "unexpected keyword argument"."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def renamed(**new_names: str) -> Callable[[F], F]:
    """A decorator that refuses old names of parameters; each value says what to pass instead."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name in new_names:
                    whose = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                    raise TypeError(f"{whose} has no parameter {name!r} any more. Pass {new_names[name]} instead.")
            return function(*args, **keywords)

        return checked  # type: ignore[return-value]

    return decorate

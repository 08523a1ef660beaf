"""Counts and errors in words."""

from __future__ import annotations


def plural(n: float, word: str, form: str = "") -> str:
    """A number of things: "1 vector", "3 vectors". `form` is a format of the number, such as ","."""
    return f"{n:{form}} {word}{'' if n == 1 else 's'}"


def one_line(error: BaseException | str) -> str:
    """The message of an error or a warning, on one line."""
    return " ".join(str(error).split())


def reason(error: OSError) -> str:
    """Why the system refused a file, in words."""
    return (error.strerror or str(error)).lower()

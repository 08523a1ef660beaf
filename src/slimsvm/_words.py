"""Counts in words."""

from __future__ import annotations


def plural(n: float, word: str, form: str = "") -> str:
    """A number of things: "1 vector", "3 vectors". `form` is a format of the number, such as ","."""
    return f"{n:{form}} {word}{'' if n == 1 else 's'}"

"""What can go wrong, one exit code each; the message is one sentence for the user."""

from __future__ import annotations

from typing import ClassVar

INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE


class Failure(Exception):
    """The contract: a sentence, a kind for scripts, and the exit code."""

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1


class UsageFailure(Failure):
    """What was asked for makes no sense, or needs a package that is not installed."""

    kind = "usage"
    exit_code = 2


class DataFailure(Failure):
    """Data that are missing, unreadable, or do not fit the model."""

    kind = "data"
    exit_code = 3


class ModelFailure(Failure):
    """A model that is missing, damaged, not supported, or not trusted; or that a format cannot hold."""

    kind = "model"
    exit_code = 4


class PromiseFailure(Failure):
    """No machine keeps what was asked for, such as a largest loss and a largest size at once."""

    kind = "promise"
    exit_code = 5


class OutputFailure(Failure):
    """A result that cannot be written."""

    kind = "output"
    exit_code = 6


def reason(error: OSError) -> str:
    """Why the system refused a file, in words."""
    return (error.strerror or str(error)).lower()

"""Every way a command can fail, with one exit code each; the message is one sentence for the user."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

from slimsvm._words import one_line
from slimsvm.cli.words import in_flags, in_reading_flags
from slimsvm.exceptions import DataError, FormatError, PromiseError, UnsupportedExportError, UnsupportedModelError

if TYPE_CHECKING:
    from slimsvm.data.files import Block, Source

INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE
RAISE = dis.opmap["RAISE_VARARGS"]


class Failure(Exception):
    """The contract: a sentence, a kind for scripts, and the exit code."""

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1


class UsageFailure(Failure):
    """The arguments make no sense, or need a package that is not installed."""

    kind = "usage"
    exit_code = 2


class DataFailure(Failure):
    """The data are missing, unreadable, or do not fit the model."""

    kind = "data"
    exit_code = 3


class ModelFailure(Failure):
    """The model is missing, damaged, not supported, not trusted, or cannot be written in the requested format."""

    kind = "model"
    exit_code = 4


class PromiseFailure(Failure):
    """No model meets all limits, such as a largest loss together with a largest size."""

    kind = "promise"
    exit_code = 5


class OutputFailure(Failure):
    """A result cannot be written."""

    kind = "output"
    exit_code = 6


def sentence(error: BaseException | str) -> str:
    """The message of an error or a warning, on one line, in the words of the command line."""
    if isinstance(error, DataError):  # it may quote anything that is in a file
        return in_reading_flags(one_line(error))
    return in_flags(one_line(error))


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn an error of a call into the library into a failure with the same sentence; let defects pass.

    The library raises ValueError, and sometimes TypeError, for parameters that it cannot accept. NumPy and Python
    raise the same classes inside a computation that has gone wrong: `is_refusal` tells them apart.
    """
    try:
        yield
    except PromiseError:
        raise
    except DataError as error:
        raise DataFailure(sentence(error)) from error
    except (FormatError, UnsupportedModelError, UnsupportedExportError) as error:
        raise ModelFailure(sentence(error)) from error
    except (ValueError, TypeError, ImportError) as error:
        if not is_refusal(error):
            raise
        raise UsageFailure(sentence(error)) from error


@contextmanager
def blamed(source: Source, block: Block) -> Iterator[None]:
    """Report as bad data what a machine refuses about a block."""
    try:
        yield
    except ValueError as error:
        source.require_finite(block)
        if not is_refusal(error):
            raise
        raise DataFailure(f"{source.name}, in the rows from {block.first_row}: {sentence(error)}") from error


def is_refusal(error: BaseException) -> bool:
    """Whether slimsvm or scikit-learn refused something on purpose, so that the message is meant for the user.

    A refusal comes from a `raise` statement of slimsvm, or from anywhere in scikit-learn, whose compiled parts have no
    statements to look at. An error that NumPy or Python itself raised in a line of slimsvm is a defect.
    """
    place = _innermost(error.__traceback__)
    if place is None:
        return False
    package = place.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return package == "sklearn" or (package == "slimsvm" and place.tb_frame.f_code.co_code[place.tb_lasti] == RAISE)


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace

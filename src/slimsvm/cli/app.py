"""The group of commands, and how errors end: in one sentence and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

import click

from slimsvm._words import reason
from slimsvm.cli import output
from slimsvm.cli.errors import BROKEN_PIPE, INTERRUPTED, DataFailure, Failure, ModelFailure, OutputFailure, sentence
from slimsvm.exceptions import DataError, FormatError, UnsupportedExportError, UnsupportedModelError

COMMANDS = ("demo", "train", "compress", "predict", "evaluate", "frontier", "report", "export", "inspect")
WRITERS = ("train", "compress")  # they write a model, and after Ctrl-C the best one so far
DEBUG = "SLIMSVM_DEBUG"  # the environment variable that shows the trace of a defect
EPILOG = """\b
Examples:
  slimsvm train train.csv model.slim --target label --scale standard
  slimsvm compress libsvm.model small.slim --n-vectors 0.05
  slimsvm predict test.csv small.slim predictions.txt
  slimsvm export small.slim libsvm small.model

\b
Exit codes:
  0 success, 1 a defect of slimsvm or out of memory, 2 wrong usage, 3 bad data,
  4 bad model, 5 no model meets the limits, 6 output cannot be written,
  130 interrupted, 141 output pipe closed, 143 terminated.
"""


class ClosedPipe(Exception):
    """Standard output was closed by its reader; click would turn a BrokenPipeError into exit code 1."""


class Commands(click.Group):
    """A group whose commands are modules of this package, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"slimsvm.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from slimsvm._versions import versions

        output.pairs(versions())
        ctx.exit()


@click.command(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show versions and exit."
)
def app() -> None:
    """Train, compress, evaluate and export kernel machines with few vectors.

    Data are svmlight or LIBSVM text, CSV, TSV, NPY, NPZ or Parquet; "-" is standard input. Models are .slim files,
    LIBSVM models, and, with --trust, pickles of scikit-learn models.
    """


def run(arguments: list[str] | None = None) -> None:
    """Run a command, by default that of sys.argv, and exit the process with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    output.show_warnings()
    try:
        code = app.main(args=arguments, prog_name="slimsvm", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        code = _interrupted(arguments)
    except (ClosedPipe, BrokenPipeError):
        code = BROKEN_PIPE
    except Exception as error:
        code = _report(error, as_json="--json" in arguments)
    _exit(code if isinstance(code, int) else 0)


def _interrupted(arguments: list[str]) -> int:
    """Say that nothing was written, if the command writes a model, and return the exit code."""
    if arguments[:1] and arguments[0] in WRITERS:
        text = "interrupted before there was a model: nothing was written."
        fields = {"error": text, "kind": "interrupted", "exit_code": INTERRUPTED}
        click.echo(output.json_line(fields) if "--json" in arguments else f"slimsvm: {text}", err=True)
    return INTERRUPTED


def _report(error: Exception, as_json: bool) -> int:
    """Write an error to standard error, and return its exit code."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2; its text is the help
        click.echo(error.format_message(), err=True)  # type: ignore[attr-defined]
        return 2
    text, kind, code = _described(error)
    if as_json:
        text = output.json_line({"error": text, "kind": kind, "exit_code": code})
    else:
        text = f"slimsvm: {output.escaped(text)}"
    click.echo(text, err=True)
    return code


def _described(error: Exception) -> tuple[str, str, int]:
    """The sentence, kind and exit code of an error. Any error that is not expected is a defect."""
    if isinstance(error, Failure):
        return str(error), error.kind, error.exit_code
    if isinstance(error, click.ClickException):
        return _usage(error), "usage", error.exit_code
    if isinstance(error, DataError):
        return sentence(error), DataFailure.kind, DataFailure.exit_code
    if isinstance(error, (FormatError, UnsupportedModelError, UnsupportedExportError)):
        return sentence(error), ModelFailure.kind, ModelFailure.exit_code
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{reason(error)}.", OutputFailure.kind, OutputFailure.exit_code
    if isinstance(error, MemoryError):
        return "there is not enough memory.", "memory", 1
    advice = f"{DEBUG}=1 shows where."
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
        advice = "The trace above shows where."
    message = sentence(error).removesuffix(".")
    return f"This is a defect of slimsvm: {type(error).__name__}: {message}. {advice}", "internal", 1


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "slimsvm"
    return f"{message}{'' if message.endswith(('.', '?', ')')) else '.'} See {path} --help."


def _exit(code: int) -> None:
    """Exit; after a closed pipe, discard what Python still holds for it, so that it does not complain."""
    if code == BROKEN_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code == INTERRUPTED:
        # CPython remembers an interrupt inside eval, and `python -m` would die of it; the next eval forgets it.
        eval("0")
    sys.exit(code)

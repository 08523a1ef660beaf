"""The group of commands, and what becomes of errors: one sentence and an exit code."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

import click

from slimsvm.cli import output
from slimsvm.cli.errors import BROKEN_PIPE, INTERRUPTED, Failure

COMMANDS = ("demo", "train", "compress", "predict", "evaluate", "frontier", "export", "inspect")
EPILOG = """\b
Examples:
  slimsvm train train.csv model.slim --target label --scale standard
  slimsvm compress libsvm.model small.slim --n-vectors 0.05
  slimsvm predict test.csv small.slim answers.txt
  slimsvm export small.slim libsvm small.model

\b
Exit codes:
  0 done, 1 a defect of slimsvm, 2 wrong usage, 3 bad data, 4 bad model,
  5 a promise that no machine keeps, 6 output that cannot be written,
  130 interrupted, 141 nobody reads the output, 143 ended by another process.
"""


class Unread(Exception):
    """Nobody reads standard output any more; click would make exit code 1 of a BrokenPipeError."""


class Commands(click.Group):
    """A group whose commands are modules of this package, loaded when they are wanted."""

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
            raise Unread from error


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from slimsvm._versions import versions

        output.pairs(versions())
        ctx.exit()


@click.command(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Versions.")
def app() -> None:
    """Kernel machines with few vectors: train, compress, predict, hand on.

    Data are svmlight or LIBSVM text, CSV, TSV, NPY, NPZ or Parquet; "-" is standard input. Models are .slim files,
    LIBSVM models, and with --trust pickles of scikit-learn.
    """


def run() -> None:
    """Run the command that the arguments ask for, and end the process with its exit code."""
    output.show_warnings()
    try:
        code = app.main(prog_name="slimsvm", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        _tell_usage(error)
        code = error.exit_code
    except Failure as error:
        code = _tell(str(error), error.kind, error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except (Unread, BrokenPipeError):
        code = BROKEN_PIPE
    except Exception as error:
        code = _tell_defect(error)
    _end(code if isinstance(code, int) else 0)


def _tell(message: str, kind: str, code: int) -> int:
    if "--json" in sys.argv:
        text = json.dumps({"error": message, "kind": kind, "exit_code": code}, ensure_ascii=False)
    else:
        text = f"slimsvm: {message}"
    click.echo(text, err=True)
    return code


def _tell_usage(error: click.UsageError) -> None:
    where = error.ctx.command_path if error.ctx else "slimsvm"
    advice = f"See {where} --help."
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2
        click.echo(error.format_message(), err=True)
        return
    message = error.format_message()
    _tell(f"{message}{'' if message.endswith(('.', '?', ')')) else '.'} {advice}", "usage", error.exit_code)


def _tell_defect(error: Exception) -> int:
    if os.environ.get("SLIMSVM_DEBUG"):
        raise error
    if isinstance(error, MemoryError):
        return _tell("there is not enough memory for this.", "memory", 1)
    message = " ".join(str(error).split())
    advice = "This is a defect of slimsvm; SLIMSVM_DEBUG=1 shows where."
    return _tell(f"{type(error).__name__}: {message} {advice}", "internal", 1)


def _end(code: int) -> None:
    """End without a word about a pipe that nobody reads: what Python still holds for it goes nowhere."""
    if code == BROKEN_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code == INTERRUPTED:
        # CPython remembers an interrupt inside eval, and `python -m` would die of it; the next eval forgets it.
        eval("0")
    sys.exit(code)

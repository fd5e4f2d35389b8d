"""The program: its commands, and what an error or a signal turns into."""

import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.calls import calls
from coreeval.cli.demo import demo
from coreeval.cli.detect import detect
from coreeval.cli.diff import diff
from coreeval.cli.estimate import estimate
from coreeval.cli.evaluate import evaluate
from coreeval.cli.export import export
from coreeval.cli.gdelt import gdelt
from coreeval.cli.init import init
from coreeval.cli.models import models
from coreeval.cli.output import note, show_error
from coreeval.cli.prompts import prompts
from coreeval.cli.push import push
from coreeval.cli.refresh import refresh, resume, retry
from coreeval.cli.release import release, verify
from coreeval.cli.review import review
from coreeval.cli.schedule import schedule
from coreeval.cli.status import status
from coreeval.cli.trace import trace
from coreeval.cli.validate import validate
from coreeval.cli.view import view
from coreeval.errors import CoreEvalError, Interrupted, RunError, UsageError

NAME = "coreeval"
DEBUG = "--debug"
app = typer.Typer(
    name=NAME,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for each in (demo, init, validate, estimate, refresh, resume, retry, evaluate, status, trace, view):
    app.command()(each)
for command in (release, verify, review, diff, export, push):
    app.command()(command)
for group in (prompts, models, calls, gdelt, detect, schedule):
    app.add_typer(group)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"coreeval {metadata.version('coreeval')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep a benchmark ahead of the models that it measures.

    To see it work: coreeval demo. For a benchmark of yours: coreeval init, then validate,
    estimate, refresh.
    """
    if context.invoked_subcommand is None:
        note(context.get_help())
        raise typer.Exit(UsageError.exit_code)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json, debug = "--json" in given, DEBUG in given
    given = [argument for argument in given if argument != DEBUG]  # accepted anywhere
    try:
        return _commands()(given, prog_name=NAME, standalone_mode=False) or 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place to tell of it
        if debug:
            note("".join(traceback.format_exception(error)))
        told = _told(error)
        show_error(told, as_json)
        return told.exit_code


@cache
def _commands() -> Callable[..., int | None]:
    """Return what runs a command line; putting it together takes longer than many a command."""
    return typer.main.get_command(app)


def _told(error: BaseException) -> CoreEvalError:
    """Return any error as one that is meant for the user."""
    if isinstance(error, CoreEvalError):
        return error
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return Interrupted("stopped by Ctrl-C")
    if isinstance(error, OSError):
        return RunError(error.strerror or str(error), where=str(error.filename or ""))
    return _usage_error(error) or _fault(error)


def _usage_error(error: BaseException) -> UsageError | None:
    """Return a wrong command line as our own error; None for anything else."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    context = getattr(error, "ctx", None)
    where = context.command_path if context else NAME
    return UsageError(str(message()), where=where, hint=f"see: {where} --help")


def _fault(error: BaseException) -> CoreEvalError:
    """Return a fault of our own as one message."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return CoreEvalError(
        f"this is a fault of CoreEval, not yours: {type(error).__name__}: {error}",
        where=f"{Path(last.filename).name}, line {last.lineno}",
        hint=f"please report it with what the same command says with {DEBUG}",
    )

"""The program: its commands, and what an error or a signal turns into."""

import sys
from typing import Annotated

import typer

from coreeval.cli.demo import demo
from coreeval.cli.init import init
from coreeval.cli.output import show_error
from coreeval.cli.refresh import refresh, resume, retry
from coreeval.cli.status import status
from coreeval.cli.trace import trace
from coreeval.cli.validate import validate
from coreeval.errors import CoreEvalError, Interrupted, UsageError

DEBUG = "--debug"
app = typer.Typer(
    name="coreeval",
    help="Keep a benchmark ahead of the models that it measures.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (demo, init, validate, refresh, resume, retry, status, trace):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"coreeval {metadata.version('coreeval')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep a benchmark ahead of the models that it measures."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json, debug = "--json" in given, DEBUG in given
    given = [argument for argument in given if argument != DEBUG]  # accepted anywhere
    try:
        code = app(given, standalone_mode=False)
    except CoreEvalError as error:
        if debug:
            raise
        show_error(error, as_json)
        return error.exit_code
    except KeyboardInterrupt:
        stopped = Interrupted("stopped by Ctrl-C")
        show_error(stopped, as_json)
        return stopped.exit_code
    except typer.Abort:
        return Interrupted.exit_code
    except Exception as error:
        usage = _usage_error(error)
        if debug or usage is None:
            raise
        show_error(usage, as_json)
        return usage.exit_code
    return int(code or 0)


def _usage_error(error: Exception) -> UsageError | None:
    """Return a wrong command line as our own error; None for a bug."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "coreeval"
    return UsageError(str(message()), where=where, hint=f"see: {where} --help")

"""The program: its commands, and how errors and signals are reported.

`pause_garbage_collection` makes the imports of a run faster.
"""

import atexit
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coreeval.cli.completion import read_words
from coreeval.cli.output import DEBUG_ASKED, note, note_traceback, show_error
from coreeval.errors import (
    DEBUG,
    CoreEvalError,
    Interrupted,
    UsageError,
    to_coreeval_error,
)

NAME = "coreeval"
COMMANDS = (
    "demo", "init", "validate", "estimate", "refresh", "resume", "retry", "evaluate", "status",
    "runs", "trace", "view", "release", "verify", "review", "annotate", "diff", "gate", "export",
    "push", "cassette", "takedown",
    "prompts", "models", "plugins", "calls", "gdelt", "detect", "schedule", "docs",
)  # fmt: skip
"""Commands and command groups in the order of the help; each has a module in `coreeval.cli`."""
HOMES = {
    "push": "export",
    "resume": "refresh",
    "retry": "refresh",
    "verify": "release",
}
"""Modules of the commands that share one."""


_STOPPED = "stopped by Ctrl-C"
ALLOW_PLUGINS = "--allow-plugins"
_ANYWHERE = (DEBUG, ALLOW_PLUGINS)
"""Options that are accepted before and after a command."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"coreeval {metadata.version('coreeval')}")
        raise typer.Exit


def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an error.")] = False,
    allow_plugins: Annotated[
        bool,
        typer.Option(
            ALLOW_PLUGINS, help="Run the plugins that a config names, and remember this choice."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep a benchmark ahead of the models that it measures.

    To see an example, run coreeval demo. For your own benchmark, run coreeval init, then validate,
    estimate and refresh. To read more, run coreeval docs.
    """
    if context.invoked_subcommand is None:
        note(context.get_help())
        raise typer.Exit(UsageError.exit_code)


class _Program(TyperGroup):
    """A command group that reports Ctrl-C like any error; typer would exit silently with 130."""

    def invoke(self, ctx: Any) -> object:  # noqa: ANN401 - typer hides the class that it wants here
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted(_STOPPED) from None


def build_app(names: Sequence[str]) -> typer.Typer:
    """Return the program with these commands."""
    made = typer.Typer(
        name=NAME,
        cls=_Program,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    made.callback(invoke_without_command=True)(options)
    for name in names:
        found = getattr(import_module(f"coreeval.cli.{HOMES.get(name, name)}"), name)
        if isinstance(found, typer.Typer):
            made.add_typer(found)
        else:
            made.command()(found)
    return made


def app(given: list[str]) -> int:
    """Run a command line and return its exit code.

    Only the requested command is imported; importing all would take longer than `status` may take.
    """
    words = given if (typed := read_words()) is None else typed[1:]
    asked = (words[0],) if words[:1] and words[0] in COMMANDS else COMMANDS
    return _build_program(asked)(given, prog_name=NAME, standalone_mode=False) or 0


@cache
def _build_program(names: tuple[str, ...]) -> Callable[..., int | None]:
    """Return the function that runs a command line; building it is slower than many commands."""
    return typer.main.get_command(build_app(names))


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json, debug = "--json" in given, DEBUG_ASKED.set(DEBUG in given)
    agrees = ALLOW_PLUGINS in given
    given = [argument for argument in given if argument not in _ANYWHERE]
    try:
        if agrees:
            _allow_plugins(True)
        return app(given)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place to tell of it
        note_traceback(error)
        if read_words() is not None:
            return 1  # a message would be inserted into the shell's command line
        told = _to_coreeval_error(error, given)
        show_error(told, as_json)
        return told.exit_code
    finally:
        DEBUG_ASKED.reset(debug)
        if agrees:
            _allow_plugins(False)
        _close_tracing()


def _allow_plugins(agreed: bool) -> None:
    from coreeval.tools.plugins import allow_named_plugins  # needed by few commands

    allow_named_plugins(agreed)


def _close_tracing() -> None:
    """Report traces not sent to LangSmith; only commands that ask models import the module."""
    tracing = sys.modules.get("coreeval.models.tracing")
    if tracing is not None and (unsent := tracing.TRACING.close()):
        note(unsent)


def _to_coreeval_error(error: BaseException, given: Sequence[str]) -> CoreEvalError:
    """Return any error as an error for the user of a command with these arguments."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return Interrupted(_STOPPED)
    if isinstance(error, UnicodeEncodeError) and (odd := _find_odd_argument(given)):
        hint = "ids are UTF-8 text: run the command without an id to list them, and copy one"
        return UsageError("this argument is not UTF-8", where=odd, hint=hint)
    return _usage_error(error) or to_coreeval_error(error)


def _find_odd_argument(given: Sequence[str]) -> str:
    """Return the first argument that is not UTF-8, with escapes; "" if there is none."""
    shown = (argument.encode(errors="backslashreplace").decode() for argument in given)
    return next((text for text, told in zip(shown, given, strict=True) if text != told), "")


def _usage_error(error: BaseException) -> UsageError | None:
    """Return a command line mistake as our own error; None for other errors."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    cause = error.__cause__
    if cause is not None and "pydantic" in sys.modules:
        _use_own_words(error, cause)
    context = getattr(error, "ctx", None)
    where = context.command_path if context else NAME
    return UsageError(str(message()), where=where, hint=f"see: {where} --help")


def _use_own_words(error: BaseException, cause: BaseException) -> None:
    """Describe an invalid value of an option in the same way as in a config."""
    from pydantic import ValidationError

    from coreeval.config.value_errors import describe_value_error

    if isinstance(cause, ValidationError) and hasattr(error, "message"):
        error.message = describe_value_error(cause.errors()[0])


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while the block imports, and exempt the imported objects for good.

    Modules are never freed, but the collector scans them repeatedly, which takes a quarter of the
    import time of LangGraph and the SDKs.
    """
    known = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
            atexit.register(gc.unfreeze)  # extension modules are freed like all others
        gc.enable()

"""docs/commands.md: every command with its arguments and options, from the command tree."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from coreeval.cli.app import COMMANDS, NAME, build_app
from scripts.reference.markdown import NOTICE, table

_INTRO = f"""\
# Commands

{NOTICE}

This page lists what `coreeval COMMAND --help` prints. Three options work with every command and
are not repeated: `--help` shows the help, `--json` prints one JSON document ([json.md](json.md)),
and `--debug` shows the traceback of an error. Exit codes are listed in [run.md](run.md).
"""
_COMMON = {"--help", "--json", "--debug"}
_TYPES = {"int": " N", "float": " X", "str": " TEXT"}
"""What stands for the value of an option that names none."""
_PLAIN_NAME = re.compile(r"\{([A-Z_]+)(?:\.{3})?\}")
_EXTRAS = re.compile(r"\s*\[([^\[\]]*)\]$")
"""What the help appends to a description: a default, bounds, a variable of the environment."""
_BOUNDS = re.compile(r"(?P<low>[\d.e-]+)<(?P<equal>=?)x<=(?P<high>[\d.e-]+)")
_UNBOUNDED = 10**9
"""The largest number of any option (`cli.options`), which is not worth a word."""


def build_page() -> str:
    """Return the page."""
    tree = typer.main.get_command(build_app(COMMANDS))
    parts = [_INTRO, *(_describe(path, each) for path, each in walk_commands(tree))]
    return "\n".join(parts)


def walk_commands(tree: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer hides its class
    """Yield every command that can be run, with its full name, in the order of the help."""
    yield from _walk(NAME, tree)


def _walk(path: str, group: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    for name, each in group.commands.items():
        full = f"{path} {name}"
        yield full, each
        if hasattr(each, "commands"):
            yield from _walk(full, each)


def _describe(path: str, command: Any) -> str:  # noqa: ANN401
    """Return the section of one command, or of a group whose commands follow."""
    context = command.context_class(command, info_name=path)
    rows = [row for each in command.params if (row := _row(each, context))]
    lines = [f"## `{path}`", "", _read_help(command), ""]
    if hasattr(command, "commands"):
        named = ", ".join(f"[`{name}`](#{_anchor(f'{path} {name}')})" for name in command.commands)
        lines += [f"Commands: {named}.", ""]
    else:
        usage = _PLAIN_NAME.sub(r"\1", " ".join([path, *command.collect_usage_pieces(context)]))
        lines += ["```text", usage.replace("[[", "[").replace("]]", "]"), "```", ""]
    if rows:
        lines += [table(("argument or option", "meaning"), rows), ""]
    return "\n".join(lines)


def _read_help(command: Any) -> str:  # noqa: ANN401
    return inspect.cleandoc(command.help or "").replace("\f", "").strip()


def _anchor(path: str) -> str:
    return path.replace(" ", "-")


def _row(parameter: Any, context: Any) -> tuple[str, str] | None:  # noqa: ANN401
    """Return what the help says of an argument or option; None for those of every command."""
    if _COMMON.intersection(parameter.opts) or getattr(parameter, "hidden", False):
        return None
    record = parameter.get_help_record(context)
    if record is None:
        return None
    types = _TYPES if parameter.param_type_name == "option" else {}
    name = re.sub(r"\s*<(\w+)[^>]*>", lambda found: types.get(found[1], ""), record[0])
    bare = re.sub(r"^\[([A-Z]+)\]$", r"\1", name)
    return f"`{bare}`", _describe_values(record[1])


def _describe_values(text: str) -> str:
    """Return a help text with what the help appends in brackets as sentences."""
    found = _EXTRAS.search(text)
    if not found:
        return text
    said = (_say(each.strip()) for each in found[1].split(";"))
    return " ".join([text[: found.start()], *filter(None, said)])


def _say(extra: str) -> str:
    """Return one of these as a sentence; nothing for bounds that never matter."""
    kind, _, value = extra.partition(": ")
    if kind == "required":
        return "Required."
    if kind == "default":
        return f"Default: `{value}`."
    if kind == "env var":
        return f"Environment variable: `{value}`."
    bounds = _BOUNDS.fullmatch(extra)
    assert bounds, extra
    low, high = float(bounds["low"]), float(bounds["high"])
    least = bounds["low"] if bounds["equal"] else f"more than {bounds['low']}"
    if high < _UNBOUNDED:
        return f"From {least} to {bounds['high']}."
    return "" if low <= 1 else f"At least {least}."

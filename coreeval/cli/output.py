"""The output of commands: one JSON document on stdout with `--json`, otherwise words.

Also formats outcomes, roles played by rules, wrapped texts and their differences.
"""

import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from coreeval.errors import CoreEvalError
from coreeval.meanings import COMPARABILITY, OUTCOMES
from coreeval.tools.formatting import format_quantity
from coreeval.tools.terminal import brief as brief
from coreeval.tools.terminal import command as command
from coreeval.tools.terminal import note as note
from coreeval.tools.terminal import one_line as one_line
from coreeval.tools.terminal import plain as plain
from coreeval.tools.terminal import write_line

if TYPE_CHECKING:
    from coreeval.runs.history import ArmDiff
    from coreeval.schema import Arm


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Document = Mapping[str, Any]
DEBUG_ASKED = ContextVar("DEBUG_ASKED", default=False)
"""Whether the command line requested tracebacks."""
REMOVED, ADDED, END = "\ue000", "\ue001", "\ue002"
"""Marks around removed or added text, for `say(…, coloured=True)`: private-use characters."""
_COLOURS = {REMOVED: "\x1b[31m", ADDED: "\x1b[32m", END: "\x1b[0m"}
_BRACKETS = re.compile(f"({REMOVED})([^{END}]*){END}|({ADDED})([^{END}]*){END}")


def say(text: str, *, coloured: bool = False) -> None:
    """Write a line for people to stdout; `coloured` shows diff marks as colours."""
    write_line(sys.stdout, _apply_marks(plain(text)) if coloured else plain(text))


def _apply_marks(text: str) -> str:
    """Return a text with diff marks as colours on a terminal, otherwise as `[-…-]` and `{+…+}`."""
    if on_terminal() and not os.environ.get("NO_COLOR"):
        return re.sub(f"[{''.join(_COLOURS)}]", lambda mark: _COLOURS[mark[0]], text)
    return _BRACKETS.sub(lambda m: f"[-{m[2]}-]" if m[1] else f"{{+{m[4]}+}}", text)


def on_terminal() -> bool:
    """Return whether stdout is a terminal that can show colours."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def redraw(text: str) -> None:
    """Replace the previous text on a terminal; elsewhere, write below it."""
    clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() else ""
    write_line(sys.stdout, clear + plain(text))


def show(
    document: Document, as_json: bool, words: Callable[[], str], *, coloured: bool = False
) -> None:
    """Print a result as a document or in words."""
    if as_json:
        _print_json(document)
    else:
        say(words(), coloured=coloured)


def show_error(error: CoreEvalError, as_json: bool) -> None:
    """Print an error: a document on stdout with `--json`, else one message on stderr."""
    if as_json:
        _print_json({"error": error.as_dict()})
    else:
        note(f"error: {error}")


def note_traceback(error: BaseException) -> None:
    """Write the traceback of an error to stderr if the command line requested it."""
    if DEBUG_ASKED.get():
        note("".join(traceback.format_exception(error)))


DIFFERENCES: Final = 3
"""The most differences between the arms to print (own choice); the report has them all."""


def comparability_lines(found: Document | None) -> Iterator[str]:
    """Yield whether the arms are comparable, and their differences; nothing if not measured."""
    if found is None:
        return
    yield f"arms:    {COMPARABILITY.get(found['verdict'], one_line(found['verdict']))}"
    sentences = found["sentences"]
    yield from (f"         {one_line(each)}" for each in sentences[:DIFFERENCES])
    if len(sentences) > DIFFERENCES:
        yield f"         and {len(sentences) - DIFFERENCES} more differences: see the report"


def _print_json(document: Document) -> None:
    # ASCII only: valid in every encoding, and without characters that control a terminal.
    write_line(sys.stdout, json.dumps(document, indent=2))


def outcome_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each outcome that occurred: name, number, meaning."""
    for name, meaning in OUTCOMES.items():
        if counts.get(name):
            yield f"  {name:<20}{counts[name]:>8}   {meaning}"


def control_lines(counts: Mapping[str, int] | None) -> Iterator[str]:
    """Yield the progress of the pass that writes the control arm, once it has begun."""
    if counts and counts["total"]:
        ended = counts["total"] - counts["pending"]
        total = format_quantity(counts["total"], "sample has", "samples have")
        yield f"control arm: {ended} of {total} ended"
        yield from outcome_lines(counts)


def offline_lines(roles: list[str]) -> list[str]:
    """Return a line saying that rules played these roles; none if models played them all."""
    from coreeval.runs.status import ROLES

    who = "every role" if len(roles) == len(ROLES) else ", ".join(roles)
    return [
        f"offline: rules played {who}; the result demonstrates the process, not a model's quality"
    ] * bool(roles)


WIDTH = 100
_MARKS = str.maketrans("", "", REMOVED + ADDED + END)


def text_lines(title: str, fields: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a sample's text fields."""
    for name, text in fields.items():
        yield from wrap_text(f"{title} {name}: {text}")


def difference_lines(diffs: "Iterable[ArmDiff]", before: "Arm", after: "Arm") -> Iterator[str]:
    """Yield the differences between two arms, with removed and added text marked."""
    marks = {"same": ("", ""), "removed": (REMOVED, END), "added": (ADDED, END)}
    for diff in diffs:
        if (diff.before, diff.after) == (before, after):
            words = "".join(
                piece.text.translate(_MARKS).join(marks[piece.op]) for piece in diff.pieces
            )
            yield from wrap_marked_text(f"{before} -> {after} {diff.field}: {words}")


def wrap_text(text: str) -> list[str]:
    """Return indented lines; addresses are not broken, so they stay clickable."""
    return wrap_marked_text(text.translate(_MARKS))


def wrap_marked_text(text: str) -> list[str]:
    """Return indented lines that keep their marks."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )

"""How commands speak: one JSON document on stdout with `--json`, else words; errors once."""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from coreeval.errors import CoreEvalError

AsJson = Annotated[bool, typer.Option("--json", help="Print one machine-readable document.")]
Document = Mapping[str, Any]
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters that move the cursor, colour or reorder what a terminal shows."""
REMOVED, ADDED, END = "\ue000", "\ue001", "\ue002"
"""Marks round a text that is gone or new, for `say(…, coloured=True)`: characters of nobody's."""
_COLOURS = {REMOVED: "\x1b[31m", ADDED: "\x1b[32m", END: "\x1b[0m"}
_BRACKETS = re.compile(f"({REMOVED})([^{END}]*){END}|({ADDED})([^{END}]*){END}")


def plain(text: str) -> str:
    """Return the text without what a terminal would obey: samples and news are not ours."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return the text on one line, so that it cannot pass for a line of ours."""
    return " ".join(text.split())


def say(text: str, *, coloured: bool = False) -> None:
    """Write a line for people to stdout; `coloured` shows what the marks of a diff enclose."""
    _write(sys.stdout, _apply_marks(plain(text)) if coloured else plain(text))


def _apply_marks(text: str) -> str:
    """Return a text whose marks are colours on a terminal, else `[-…-]` and `{+…+}` as in git."""
    if _on_terminal() and not os.environ.get("NO_COLOR"):
        return re.sub(f"[{''.join(_COLOURS)}]", lambda mark: _COLOURS[mark[0]], text)
    return _BRACKETS.sub(lambda m: f"[-{m[2]}-]" if m[1] else f"{{+{m[4]}+}}", text)


def _on_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def note(text: str) -> None:
    """Write a line to stderr: progress, warnings, errors."""
    _write(sys.stderr, plain(text))


def redraw(text: str) -> None:
    """Put a text in the place of the one before it; where there is no terminal, below it."""
    clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() else ""
    _write(sys.stdout, clear + plain(text))


def show(
    document: Document, as_json: bool, words: Callable[[], str], *, coloured: bool = False
) -> None:
    """Print a result, as a document or in words."""
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


def brief(path: Path) -> Path:
    """Return a path as short as it can be written here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def command(name: str, *arguments: str | Path) -> str:
    """Return a command line that can be copied; words in capitals are the reader's to fill in."""
    words = (str(brief(word)) if isinstance(word, Path) else word for word in arguments)
    return shlex.join(["coreeval", name, *words])


def size_words(size: float) -> str:
    """Return bytes in the largest unit that fits them."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _print_json(document: Document) -> None:
    # ASCII only: valid in every encoding, and no character is left that a terminal would obey.
    _write(sys.stdout, json.dumps(document, indent=2))


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except BrokenPipeError:  # head or less has seen enough; the exit code still tells the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

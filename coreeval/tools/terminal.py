"""Lines on a terminal: foreign texts without control codes, and short paths."""

import os
import shlex
import sys
from pathlib import Path
from typing import TextIO

from coreeval.errors import OBEYED


def plain(text: str) -> str:
    """Return the text without terminal control codes, because samples and news are untrusted."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return the text on one line, so that it cannot imitate a line of our own output."""
    return " ".join(text.split())


def note(text: str) -> None:
    """Write a line to stderr: progress, warnings, errors."""
    write_line(sys.stderr, plain(text))


def write_line(stream: TextIO, text: str) -> None:
    """Write a line to a stream; characters that its encoding lacks are escaped."""
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except BrokenPipeError:  # the reader, such as less, has closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def brief(path: Path) -> Path:
    """Return a path relative to the current folder if possible."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def command(name: str, *arguments: str | Path) -> str:
    """Return a command line to copy; words in capitals are placeholders."""
    words = (str(brief(word)) if isinstance(word, Path) else word for word in arguments)
    return shlex.join(["coreeval", name, *words])

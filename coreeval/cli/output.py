"""How commands speak: one JSON document on stdout with `--json`, else words; errors once."""

import json
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from coreeval.errors import CoreEvalError

AsJson = Annotated[bool, typer.Option("--json", help="Print one machine-readable document.")]
Document = Mapping[str, Any]


def say(text: str) -> None:
    """Write a line for people to stdout."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Write a line to stderr: progress, warnings, errors."""
    sys.stderr.write(text + "\n")


def show(document: Document, as_json: bool, words: Callable[[], str]) -> None:
    """Print a result, as a document or in words."""
    say(json.dumps(document, indent=2, ensure_ascii=False) if as_json else words())


def show_error(error: CoreEvalError, as_json: bool) -> None:
    """Print an error: a document on stdout with `--json`, else one message on stderr."""
    if as_json:
        say(json.dumps({"error": error.as_dict()}, indent=2, ensure_ascii=False))
    else:
        note(f"error: {error}")


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)

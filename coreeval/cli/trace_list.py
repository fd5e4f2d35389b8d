"""Samples as a list in words, and their stories as lines of JSON, for `coreeval trace`."""

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from coreeval.cli.meanings import offline_note
from coreeval.cli.output import Document, brief, command, one_line, show
from coreeval.cli.story import story_document
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.viewer.history import SampleHistory

WIDEST_ID = 40
REASON = 80
"""Characters of a reason that fit into the list."""


def list_lines(listing: Document, run: Path, offset: int, filtered: bool) -> Iterator[str]:
    """Yield a line for each sample of a list, and how to see the others.

    Args:
        listing: What `--json` prints.
        run: The run.
        offset: How many samples were left out before.
        filtered: Whether only some samples were asked for.
    """
    rows, total = listing["samples"], listing["total"]
    if not rows:
        yield _none(total, filtered)
        return
    ids = [one_line(row["sample"]) for row in rows]
    wide = min(WIDEST_ID, max(len("sample"), *map(len, ids)))
    yield f"{'sample':<{wide}}  {'outcome':<19}  attempts  {'usd':>9}  reason"
    for sample, row in zip(ids, rows, strict=True):
        usd = "unknown" if row["usd"] is None else f"{row['usd']:.4f}"
        reason = textwrap.shorten(row["reason"], REASON, placeholder=" …")
        start = f"{sample:<{wide}}  {row['outcome']:<19}  {row['attempts']:>8}"
        yield f"{start}  {usd:>9}  {reason}".rstrip()
    last = offset + len(rows)
    if last < total or offset:
        more = f"; the next: --offset {last}" if last < total else ""
        yield f"{offset + 1} to {last} of {total}{more}"
    yield f"one in detail: {command('trace', run, ids[0])}"
    yield from offline_note(listing["offline_roles"])


def _none(total: int, filtered: bool) -> str:
    if total:
        return f"there are no more than {total}"
    return "no sample is like that" if filtered else "no sample has ended yet"


def export(stories: "Iterable[SampleHistory]", path: Path, as_json: bool) -> None:
    """Write stories as they are read, a line of JSON each.

    Raises:
        UsageError: the file cannot be written, or stdout is asked for two things.
    """
    if str(path) != "-":
        number = _to_file(stories, path)
        document = {"file": str(path), "stories": number}
        show(document, as_json, lambda: f"{number} stories: {brief(path)}")
    elif as_json:
        raise UsageError("--json and --jsonl - both write to stdout", hint="leave out one of them")
    else:
        _write(stories, sys.stdout)


def _to_file(stories: "Iterable[SampleHistory]", path: Path) -> int:
    try:
        with path.open("w", encoding="utf-8") as file:
            return _write(stories, file)
    except OSError as error:
        raise UsageError(
            f"this file cannot be written: {error.strerror}", where=str(path)
        ) from None


def _write(stories: "Iterable[SampleHistory]", file: IO[str]) -> int:
    lines = (json.dumps(story_document(story)) + "\n" for story in stories)
    return sum(1 for line in lines if file.write(line))

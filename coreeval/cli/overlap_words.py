"""An overlap in the words of a terminal: the sums, then hits in two columns, word against word."""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from coreeval.cli.output import Document, one_line

if TYPE_CHECKING:
    from coreeval.evaluation.overlap.search import BenchmarkOverlap, Hit, TextEntry
    from coreeval.tools.text import DiffPiece

COLUMN = 48
"""Cells of a terminal that each of the two texts has."""
ROWS = 12
"""Lines of a text that are shown."""
BAD = 5
NAMED = 3
_MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}


def overlap_lines(overlap: "BenchmarkOverlap", document: Document, most: int) -> Iterator[str]:
    """Yield the sums, what was left out, and the first hits.

    Args:
        overlap: The overlap.
        document: The same as a document, with the paths of what was written.
        most: How many hits are shown.
    """
    for name in ("a", "b"):
        if side := document[name]:
            yield from _side(name.upper(), side)
    counts = ", ".join(f"{number} {kind}" for kind, number in document["counts"].items())
    yield f"hits: {counts} (near: resemblance {overlap.search.threshold:g} or more)"
    yield from document["notes"]
    for hit in islice(overlap.hits, most):
        yield from _hit(hit)
    if (left := len(overlap.hits) - most) > 0:
        yield f"and {left} more hits: --show N, --csv FILE, --page FILE or --json"
    for name in ("csv", "page"):
        if document[name]:
            yield f"{name + ':':<6}{document[name]}"


def _side(name: str, side: Document) -> Iterator[str]:
    share = side["in_hits"] / side["items"]
    kinds = {kind: number for kind, number in side["in_hits_by_kind"].items() if number}
    alike = kinds.pop("template", 0)
    by_kind = ", ".join(f"{kind} {number}" for kind, number in kinds.items())
    yield (
        f"{name}  {one_line(side['source'])}: {side['items']} items, "
        f"{side['in_hits']} of them found again ({share:.1%})"
    )
    if by_kind:
        yield f"   by kind: {by_kind}"
    if alike:
        yield f"   {alike} share a template with another item, which does not make them the same"
    bad = side["bad_rows"]
    for row in bad[:BAD]:
        yield f"   left out: {row['file']}, line {row['line']}: {one_line(row['reason'])}"
    if len(bad) > BAD:
        yield f"   and {len(bad) - BAD} more rows, all of them with --json"


def _hit(hit: "Hit") -> Iterator[str]:
    from coreeval.evaluation.overlap.overlap_report import side_by_side

    answer = {True: "   same answer", False: "   ANSWERS DIFFER", None: ""}[hit.same_answer]
    degree = "" if hit.kind in ("exact", "normalised") else f" {hit.similarity:.2f}"
    yield ""
    yield f"{hit.kind}{degree}{answer}{_place(hit)}"
    yield f"  {_padded(_named(hit.a))}  | {_named(hit.b)}"
    both = side_by_side(hit)
    columns = (_wrapped(both.left), _wrapped(both.right))
    for left, right in islice(zip_longest(*columns, fillvalue=""), ROWS):
        yield f"  {_padded(left)}  | {right}"
    if max(map(len, columns)) > ROWS:
        yield f"  {_padded('…')}  | …"


def _place(hit: "Hit") -> str:
    if hit.within is None:
        return ""
    side = {"a": "left", "b": "right"}[hit.within.side]
    return f"   characters {hit.within.start} to {hit.within.end} of the text on the {side}"


def _named(items: Sequence["TextEntry"]) -> str:
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(one_line(each.id) for each in items[:NAMED]) + more


def _wrapped(pieces: Sequence["DiffPiece"]) -> list[str]:
    """Return the lines of a marked text, cut at blanks where there are some."""
    text = one_line("".join(_marked(piece) for piece in pieces))
    lines = [""]
    for word in _words(text):
        if _cells(lines[-1] + word) > COLUMN:
            lines.append("")
        lines[-1] += word
    return [line.strip() for line in lines]


def _marked(piece: "DiffPiece") -> str:
    bare = piece.text.rstrip()
    return _MARKS[piece.op].format(bare) + piece.text[len(bare) :]


def _words(text: str) -> Iterator[str]:
    """Yield words with the blank after them; of wide characters and of very long words, each."""
    for word in text.split(" "):
        if _cells(word) > COLUMN // 2:
            yield from word
            yield " "
        else:
            yield f"{word} "


def _cells(text: str) -> int:
    """Return how many cells of a terminal a text takes (Unicode Standard Annex 11)."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def _padded(text: str) -> str:
    return text + " " * (COLUMN - _cells(text))

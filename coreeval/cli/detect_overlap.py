"""`coreeval detect overlap`: items that two benchmarks share, or that one has twice.

The text output has the totals, then hits in two columns with word diffs.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.options import LARGEST_COUNT
from coreeval.cli.output import AsJson, Document, one_line, show
from coreeval.errors import UsageError
from coreeval.tools.formatting import list_first
from coreeval.tools.outputs import PAGE, refuse_foreign_output

if TYPE_CHECKING:
    from coreeval.evaluation.overlap.search import BenchmarkOverlap, Hit, TextEntry
    from coreeval.tools.embeddings import Embedder
    from coreeval.tools.text import DiffPiece


def overlap(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A benchmark: a config, or [FORMAT:]PATH[@SPLIT].",
            show_default=False,
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="[B]",
            help="Another benchmark; without it, duplicates within A are reported.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Built-in task or task file that defines the fields."),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="Compare this field only; repeatable."),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Minimum resemblance at which two texts count as a near hit."
        ),
    ] = 0.4,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Also search for paraphrases, using these embeddings: minilm, minilm:PATH or "
            "provider:name.",
            show_default=False,
        ),
    ] = None,
    paraphrase: Annotated[
        float,
        typer.Option(
            "--paraphrase-threshold",
            min=0.0,
            max=1.0,
            help="Minimum cosine similarity at which two texts count as paraphrases.",
        ),
    ] = 0.75,
    most: Annotated[
        int,
        typer.Option(
            "--show", metavar="N", min=0, max=LARGEST_COUNT, help="Maximum number of hits to show."
        ),
    ] = 10,
    table: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", dir_okay=False, help="Write all hits to a CSV file."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write the hits to an HTML page."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find items that two benchmarks share: identical, similar, or contained in a longer text."""
    from coreeval.evaluation.overlap.search import OverlapSearch, check_threshold, find_overlap

    check_threshold(threshold, "--threshold")
    if a == b:
        hint = "omit B to find duplicates within A"
        raise UsageError("A and B are the same", where="coreeval detect overlap", hint=hint)
    from coreeval.evaluation.overlap.overlap_report import (
        HITS,
        overlap_document,
        write_overlap_csv,
        write_overlap_page,
    )
    from coreeval.evaluation.overlap.sources import ReadOptions, read_texts

    for path, beginning in ((table, HITS), (page, PAGE)):
        if path:
            refuse_foreign_output(path, beginning)
    how = ReadOptions(task=task, fields=tuple(field or ()))
    first, second = read_texts(a, how), None if b is None else read_texts(b, how)
    with _open_embeddings(embeddings) as embeds:
        search = OverlapSearch(threshold=threshold, embeds=embeds, paraphrase=paraphrase)
        found = find_overlap(first, second, search=search)
    document = {
        **overlap_document(found),
        "csv": table and str(write_overlap_csv(table, found)),
        "page": page and str(write_overlap_page(page, found)),
    }
    show(document, as_json, lambda: "\n".join(overlap_lines(found, document, most)))


@contextmanager
def _open_embeddings(model: str | None) -> "Iterator[Embedder | None]":
    """Open embeddings with the workspace's cache; yield None if none are requested."""
    if model is None:
        yield None
        return
    from coreeval.tools.embeddings import open_cached_embeddings
    from coreeval.tools.workspace import workspace_for

    with open_cached_embeddings(model, workspace_for(Path.cwd())) as embeds:
        yield embeds


COLUMN = 48
"""The width of each of the two texts in terminal cells."""
ROWS = 12
"""The most lines shown of a text."""
BAD = 5
NAMED = 3
_MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}


def overlap_lines(overlap: "BenchmarkOverlap", document: Document, most: int) -> Iterator[str]:
    """Yield the totals, what was left out, and the first hits.

    Args:
        overlap: The overlap.
        document: The overlap as a document, with the paths of the files written.
        most: The number of hits to show.
    """
    for name in ("a", "b"):
        if side := document[name]:
            yield from _side_lines(name.upper(), side)
    counts = ", ".join(f"{number} {kind}" for kind, number in document["counts"].items())
    yield f"hits: {counts} (near: resemblance {overlap.search.threshold:g} or more)"
    yield from document["notes"]
    for hit in islice(overlap.hits, most):
        yield from _hit_lines(hit)
    if (left := len(overlap.hits) - most) > 0:
        yield f"and {left} more hits; to see them, use --show N, --csv FILE, --page FILE or --json"
    for name in ("csv", "page"):
        if document[name]:
            yield f"{name + ':':<6}{document[name]}"


def _side_lines(name: str, side: Document) -> Iterator[str]:
    share = side["in_hits"] / side["items"]
    kinds = {kind: number for kind, number in side["in_hits_by_kind"].items() if number}
    alike = kinds.pop("template", 0)
    by_kind = ", ".join(f"{kind} {number}" for kind, number in kinds.items())
    yield (
        f"{name}  {one_line(side['source'])}: {side['items']} items, {side['in_hits']} of them "
        f"repeated ({share:.1%})"
    )
    if by_kind:
        yield f"   by kind: {by_kind}"
    if alike:
        yield f"   {alike} share a template with another item; this is not counted as a repetition"
    bad = side["bad_rows"]
    for row in bad[:BAD]:
        yield f"   skipped: {row['file']}, line {row['line']}: {one_line(row['reason'])}"
    if len(bad) > BAD:
        yield f"   and {len(bad) - BAD} more rows; --json lists them all"


def _hit_lines(hit: "Hit") -> Iterator[str]:
    from coreeval.evaluation.overlap.overlap_report import side_by_side

    answer = {True: "   same answer", False: "   ANSWERS DIFFER", None: ""}[hit.same_answer]
    degree = "" if hit.kind in ("exact", "normalised") else f" {hit.similarity:.2f}"
    yield ""
    yield f"{hit.kind}{degree}{answer}{_format_place(hit)}"
    yield f"  {_pad_text(_list_names(hit.a))}  | {_list_names(hit.b)}"
    both = side_by_side(hit)
    columns = (_wrap_pieces(both.left), _wrap_pieces(both.right))
    for left, right in islice(zip_longest(*columns, fillvalue=""), ROWS):
        yield f"  {_pad_text(left)}  | {right}"
    if max(map(len, columns)) > ROWS:
        yield f"  {_pad_text('…')}  | …"


def _format_place(hit: "Hit") -> str:
    if hit.within is None:
        return ""
    side = {"a": "left", "b": "right"}[hit.within.side]
    return f"   characters {hit.within.start} to {hit.within.end} of the text on the {side}"


def _list_names(items: Sequence["TextEntry"]) -> str:
    return list_first([one_line(each.id) for each in items], NAMED)


def _wrap_pieces(pieces: Sequence["DiffPiece"]) -> list[str]:
    """Return the lines of a marked text, broken at blanks if there are any."""
    text = one_line("".join(_mark_piece(piece) for piece in pieces))
    lines = [""]
    for word in _split_words(text):
        if _count_cells(lines[-1] + word) > COLUMN:
            lines.append("")
        lines[-1] += word
    return [line.strip() for line in lines]


def _mark_piece(piece: "DiffPiece") -> str:
    bare = piece.text.rstrip()
    return _MARKS[piece.op].format(bare) + piece.text[len(bare) :]


def _split_words(text: str) -> Iterator[str]:
    """Yield each word with its trailing blank; wide or very long words by character."""
    for word in text.split(" "):
        if _count_cells(word) > COLUMN // 2:
            yield from word
            yield " "
        else:
            yield f"{word} "


def _count_cells(text: str) -> int:
    """Return the number of terminal cells that a text takes (Unicode Standard Annex 11)."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def _pad_text(text: str) -> str:
    return text + " " * (COLUMN - _count_cells(text))

"""`coreeval.overlap`: the items that two benchmarks share, or that one has twice."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

from coreeval.api.arguments import require_number
from coreeval.api.rows import (
    PathLike,
    Rows,
    count_bad_rows,
    is_path,
    list_rows,
    make_bad_table,
    to_plain,
)
from coreeval.api.tables import Cell, Result, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.evaluation.benchmarks.item_records import ItemRecord
from coreeval.evaluation.overlap.overlap_report import (
    overlap_document,
    write_overlap_csv,
    write_overlap_page,
)
from coreeval.evaluation.overlap.search import (
    PARAPHRASE,
    THRESHOLD,
    BenchmarkOverlap,
    BenchmarkTexts,
    Hit,
    OverlapSearch,
    check_threshold,
    find_overlap,
)
from coreeval.evaluation.overlap.sources import ReadOptions, collect_texts, read_texts
from coreeval.tools.embeddings import open_cached_embeddings
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from pydantic import JsonValue

Texts = Iterable[str] | Rows | PathLike
"""Texts: a list of texts, rows, or a benchmark as `[FORMAT:]PATH[@SPLIT]` or a config."""
TEXT = "text"
"""The column that is compared by default."""
_HITS = parse_columns(
    "kind similarity:number same_answer:boolean a_ids:texts b_ids:texts a_text b_text longer "
    "start:integer end:integer"
)


@dataclass(frozen=True, kw_only=True, repr=False)
class OverlapResult(Result):
    """The items that two benchmarks share, most certain first."""

    found: BenchmarkOverlap
    """The overlap, as computed by the command."""

    @property
    def document(self) -> "Mapping[str, JsonValue]":
        """The document that `coreeval detect overlap --json` prints."""
        whole = {**overlap_document(self.found), "csv": None, "page": None}
        return cast("Mapping[str, JsonValue]", whole)

    @property
    def pairs(self) -> Table:
        """One row per hit: two texts, and the ids of the items that contain them.

        `longer`, `start` and `end` give the position of a contained text in the other one.
        """
        return Table("overlapping texts", _HITS, map(_make_row, self.found.hits))

    @property
    def table(self) -> Table:
        """One row per hit; see `pairs`."""
        return self.pairs

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of hits by kind, for the kinds that were searched."""
        return cast("Mapping[str, int]", self.document["counts"])

    @property
    def bad_rows(self) -> Table:
        """The rows that are not texts, each with the reason."""
        sides = (self.found.a, self.found.b)
        return make_bad_table(chain.from_iterable(side.bad_rows for side in sides if side))

    @property
    def summary(self) -> str:
        """The number of items and of hits, in a line."""
        sides = [side for side in (self.found.a, self.found.b) if side]
        items = [
            f"{number} of {len(side.entries)} items of {side.name} are repeated"
            for side, number in zip(sides, self.found.items(), strict=True)
        ]
        return "; ".join([*items, *count_bad_rows(self.bad_rows)])

    def write_csv(self, path: PathLike) -> Path:
        """Write one row per hit to a CSV file; return its path."""
        return write_overlap_csv(Path(path), self.found)

    def write_page(self, path: PathLike) -> Path:
        """Write the hits to an HTML page with word diffs; return its path."""
        return write_overlap_page(Path(path), self.found)


def _make_row(hit: Hit) -> tuple[Cell, ...]:
    within = (hit.within.side, hit.within.start, hit.within.end) if hit.within else (None,) * 3
    ids = (tuple(each.id for each in side) for side in (hit.a, hit.b))
    return (hit.kind, round(hit.similarity, 4), hit.same_answer, *ids, *hit.texts, *within)


def overlap(
    a: Texts,
    b: Texts | None = None,
    *,
    fields: Sequence[str] = (),
    task: str | None = None,
    threshold: float = THRESHOLD,
    embeddings: str | None = None,
    paraphrase_threshold: float = PARAPHRASE,
) -> OverlapResult:
    """Find items that two benchmarks share: identical, similar, or contained in a longer text.

    This is `coreeval detect overlap`, also for texts in memory.

    Args:
        a: A list of texts; rows as dicts, a data frame or an Arrow table; or a benchmark in the
            form that the command accepts: a config, or `[FORMAT:]PATH[@SPLIT]`.
        b: The other benchmark; None to find duplicates within `a`.
        fields: The columns or fields to compare; by default, the `text` column of rows, or the
            fields of the benchmark's task.
        task: Built-in task or task file that defines the fields of a benchmark.
        threshold: The lowest resemblance at which two texts count as a near hit, from 0.2 to 0.99.
        embeddings: minilm, minilm:PATH or provider:name, to search for paraphrases too.
        paraphrase_threshold: The lowest cosine similarity at which two texts count as paraphrases.

    Raises:
        UsageError: an argument cannot be used.
        DatasetError: a file cannot be read, or has no texts.
    """
    check_threshold(require_number("threshold", threshold, 0, 1), "threshold")
    require_number("paraphrase_threshold", paraphrase_threshold, 0, 1)
    if isinstance(fields, str):
        raise UsageError("fields is a text, not a list", where="fields", hint=f"[{fields!r}]")
    how = ReadOptions(task=task, fields=tuple(fields))
    first = _read(a, "a", how)
    second = None if b is None else _read(b, "b", how)
    opened = (
        nullcontext()
        if embeddings is None
        else open_cached_embeddings(embeddings, workspace_for(Path.cwd()))
    )
    with opened as embeds:
        search = OverlapSearch(threshold=threshold, embeds=embeds, paraphrase=paraphrase_threshold)
        return OverlapResult(found=find_overlap(first, second, search=search))


def _read(given: Texts, where: str, how: ReadOptions) -> BenchmarkTexts:
    if is_path(given):
        return read_texts(str(given), how)
    rows, fields = _list_texts(given, where), how.fields or (TEXT,)
    if not rows:
        raise UsageError("there are no texts", where=where)
    if not any(set(fields) & row.keys() for row in rows):
        raise UsageError(
            f"no row has {' or '.join(map(repr, fields))}",
            where=where,
            hint="name the columns to compare with fields=[...]; available columns: "
            f"{', '.join(rows[0])}",
        )
    records = (ItemRecord(number, row) for number, row in enumerate(rows, start=1))
    return collect_texts(f"<{where}>", records, fields)


def _list_texts(given: Iterable[str] | Rows, where: str) -> list[dict[str, object]]:
    """Return rows; an item that is not a row, such as a text, becomes a row with one column."""
    if hasattr(given, "columns") or isinstance(given, Mapping) or not isinstance(given, Iterable):
        return list_rows(cast("Rows", given), where)
    rows = [each if isinstance(each, Mapping) else {TEXT: to_plain(each)} for each in given]
    return list_rows(rows, where)

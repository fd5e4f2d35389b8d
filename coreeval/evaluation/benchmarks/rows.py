"""Turns rows of files into samples: their columns, and the checks that all formats share."""

import difflib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.schema import BadRow, Sample, Task, TaskKind
from coreeval.tasks import kind_of
from coreeval.tasks.kinds import ItemDefect, is_encodable
from coreeval.tools.formatting import list_first

MOST_LISTED = 100
"""The most columns that a message lists or compares with a name (own choice)."""
SHOWN = 200
"""The most characters to keep of a bad row."""
LONGEST_ID = 1_000
"""The most characters of an id; ids become names in archives, which have at most 65,535 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A row as read from its file, not yet checked against the task."""

    file: str
    line: int
    """The line in the file, from 1."""
    number: int
    """The number for a generated id, from 1; the line, unless a header precedes the rows."""
    values: Mapping[str, object]
    """Values by our column names, such as those of the task's fields and `label`; None if the row
    has no value."""
    id: str | None = None
    """The source's own id; None if it has none."""
    cluster: str = ""
    """A value shared with related rows, e.g. those about one document; empty if unknown."""
    part: str = ""
    """The part between task and split in a generated id: a stance target."""
    raw: str = ""
    """The row as found, for the report if it is bad."""


RowOrBad = SourceRow | BadRow
Rows = Iterator[RowOrBad]


@dataclass(frozen=True, kw_only=True)
class BenchmarkFormat:
    """The functions that read the benchmarks of one format."""

    splits: Callable[[DatasetConfig], list[str]]
    """A function that lists the names of the splits, or raises a DatasetError if there is nothing
    to read."""
    rows: Callable[[DatasetConfig, Task, str], Rows]
    """A function that opens a split; it raises errors that are known in advance before the first
    row."""
    digest: Callable[[DatasetConfig, str], str]
    """A function that returns the sha256 of the data that `rows` reads."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Other names for splits, e.g. `validation` for `val`."""
    kind: TaskKind | None = "labels"
    """The kind of task of the benchmarks; None for any kind."""
    fields: tuple[str, ...] = ()
    """The fields that the benchmarks have; empty if the task decides."""


def make_bad_row(file: str, line: int, reason: str, raw: str) -> BadRow:
    """Return a bad row with its text truncated."""
    text = raw.encode("utf-8", "replace").decode()[:SHOWN]
    return BadRow(file=file, line=line, reason=reason, text=text)


MOST_BAD = 100_000
"""The most bad rows of a file that has more of them than good ones; each is kept with its reason,
and takes hundreds of times the two bytes that it may have (own choice)."""


def refuse_mostly_bad(bad: int, good: int, first: BadRow, *, where: str) -> None:
    """Raise an error if a file has very many bad rows so far, and fewer good ones.

    Args:
        bad: The number of bad rows so far.
        good: The number of good ones.
        first: The first bad row.
        where: The file or benchmark, for the message.

    Raises:
        DatasetError: there are more than `MOST_BAD` bad rows.
    """
    if bad > MOST_BAD and bad > good:
        raise DatasetError(
            f"{bad:,} of the first {bad + good:,} rows cannot be used",
            where=where,
            hint=f"in line {first.line} of {first.file}, {first.reason}; check that "
            "dataset.format fits the file",
        )


def make_checker(task: Task, split: str) -> Callable[[RowOrBad], Sample | BadRow]:
    """Return a function that turns the rows of one split into samples, called once per row."""
    read, seen = kind_of(task).make_reader(task), set[str]()

    def check(row: RowOrBad) -> Sample | BadRow:
        if isinstance(row, BadRow):
            return row
        reason = _find_row_id_defect(row, seen)
        if reason is None and not is_encodable(row.cluster):
            reason = "the cluster contains an incomplete character (a lone surrogate)"
        try:
            parts = read(row.values)
        except ItemDefect as defect:
            reason = reason or str(defect)
        if reason:
            return make_bad_row(row.file, row.line, reason, row.raw)
        if row.id is not None:
            seen.add(row.id)
        return Sample(
            id=row.id or "/".join(_make_ids(row, task, split)),
            split=split,
            fields=parts.fields,
            label=parts.label.id,
            label_text=parts.label.name,
            cluster=row.cluster,
        )

    return check


def _make_ids(row: SourceRow, task: Task, split: str) -> Iterator[str]:
    return filter(None, (task.name, row.part, split, str(row.number)))


def _find_row_id_defect(row: SourceRow, seen: set[str]) -> str | None:
    if row.id is None:
        return None
    return find_id_defect(row.id, seen)


def find_id_defect(own: str, seen: Container[str]) -> str | None:
    """Return the reason why a source's own id cannot be used, or None."""
    if not own.strip():
        return "the id is empty"
    if len(own) > LONGEST_ID:
        return f"the id has more than {LONGEST_ID:,} characters"
    if not is_encodable(own):
        return "the id contains an incomplete character (a lone surrogate)"
    return f"the id {own!r} occurs twice" if own in seen else None


_OPTIONAL = ("id", "cluster")
"""Columns that a table may lack."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The columns of a table that make up a sample."""

    values: Mapping[str, str]
    """The file's columns by our names."""
    id: str | None
    """The column with the id; None if the table has no ids."""
    cluster: str | None = None
    """The column with the cluster; None if the table has no clusters."""

    @property
    def names(self) -> set[str]:
        """Return the names of all columns."""
        optional = (name for name in (self.id, self.cluster) if name is not None)
        return {*self.values.values(), *optional}

    def row(
        self, values: Mapping[str, object], *, file: str, line: int, number: int, raw: str
    ) -> SourceRow:
        """Return the row for a record's values by column."""
        own = None if self.id is None else values.get(self.id)
        cluster = None if self.cluster is None else values.get(self.cluster)
        return SourceRow(
            file=file,
            line=line,
            number=number,
            values={name: values.get(column) for name, column in self.values.items()},
            id=None if self.id is None else "" if own is None else str(own),
            cluster="" if cluster is None else str(cluster),
            raw=raw,
        )


def find_columns(
    config: DatasetConfig, task: Task, present: Sequence[str], *, where: str
) -> TableColumns:
    """Find the columns named in `dataset.columns`, or those with the task's own names.

    Raises:
        DatasetError: a column does not exist, or a name in `dataset.columns` is not a field.
    """
    kind, common = kind_of(task), kind_of(task).find_columns(present)
    given = {name: name for name in present}
    asked = {**common, **given, **config.columns}
    needed = [
        name
        for name in kind.required(task)
        if name in asked or not all(other in asked for other in kind.instead.get(name, ("",)))
    ]
    ours = (*needed, *kind.optional, *_OPTIONAL)
    for name in config.columns:
        if name not in ours:
            raise DatasetError(
                f"dataset.columns names {name!r}, which the task {task.name} does not have",
                where=where,
                hint=_suggest_field(name, ours),
            )
    for name in (*needed, *config.columns):
        column = asked.get(name, name)
        if column not in present:
            others = {mapped for other, mapped in config.columns.items() if other != name}
            _require_column(name, column, present, others, where)
    may_come = {*needed, *kind.optional, *asked}
    asked = {name: asked.get(name, name) for name in ours if name in may_come}
    return TableColumns(
        values={name: column for name, column in asked.items() if name not in _OPTIONAL},
        id=asked.get("id"),
        cluster=asked.get("cluster"),
    )


def _require_column(
    name: str, column: str, present: Sequence[str], others: Container[str], where: str
) -> None:
    """Raise an error for a column that does not exist; `others` are those of other names."""
    mapping = f"dataset.columns: {{{name}: ITS COLUMN}}"
    near = _find_nearest(column, [each for each in present if each not in others])
    raise DatasetError(
        f"there is no column {column!r} for {name!r}",
        where=where,
        hint=f"{_suggest(near, present)}; or set the column with {mapping}",
    )


def _suggest_field(name: str, ours: Sequence[str]) -> str:
    """Return the names that `dataset.columns` may have; letters stand for options."""
    long = [known for known in ours if len(known) > 1]
    letters = [known for known in ours if len(known) == 1]
    near = name.upper() if name.upper() in letters else _find_nearest(name, long)
    shown = [*long, f"{', '.join(letters[:2])} … (the column of each option)"] if letters else long
    return _suggest(near, shown)


def _suggest(near: str, known: Sequence[str]) -> str:
    there = f"available: {list_first(known, MOST_LISTED)}"
    return f"did you mean {near!r}? {there}" if near else there


def _find_nearest(word: str, known: Iterable[str]) -> str:
    """Return the most similar name; "" if none is similar, or if two are equally so."""
    usual = [name for name in list(known)[:MOST_LISTED] if len(name) <= LONGEST_ID]
    near = difflib.get_close_matches(word[:LONGEST_ID], usual, n=2, cutoff=0.5)
    likeness = [difflib.SequenceMatcher(None, name, word[:LONGEST_ID]).ratio() for name in near]
    return near[0] if near and len(set(likeness)) == len(likeness) else ""


def text_fields(config: DatasetConfig, task: Task, count: int) -> tuple[str, ...]:
    """Return the task's fields; raise DatasetError unless there are `count` of them."""
    if len(task.fields) == count:
        return task.fields
    wants = ", ".join(task.fields)
    raise DatasetError(
        f"{config.format} has {count} text(s) per sample, but the task {task.name} "
        f"requires {wants}",
        where=config.path,
        hint="dataset.format and task must match",
    )

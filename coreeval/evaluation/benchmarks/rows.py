"""From a row of a file to a sample: the checks that all formats share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from coreeval.config import DatasetConfig
from coreeval.schema import BadRow, Sample, Task
from coreeval.tasks import make_label_finder

SHOWN = 200
"""Characters of a bad row that are kept."""
BLANK = " \t\r\n"
"""What is stripped from the ends of a text; spaces inside it are never touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as its file has it, not yet held against the task."""

    file: str
    line: int
    """Line of the file, from 1."""
    number: int
    """Number for an id made here, from 1; the line, except where a header precedes the rows."""
    fields: Mapping[str, object]
    """Value by the task's field names; None where the row has none."""
    label: object
    id: str | None = None
    """The source's own; None where it has none."""
    cluster: str = ""
    """What it has in common with other rows, such as a document; empty if unknown."""
    part: str = ""
    """What stands between task and split in an id made here: a stance target."""
    raw: str = ""
    """The row as found, for the report of a bad one."""


Found = Row | BadRow
Rows = Iterator[Found]


@dataclass(frozen=True, kw_only=True)
class Source:
    """How the benchmarks of one format are read."""

    splits: Callable[[DatasetConfig], list[str]]
    """Names of the splits there; raises a DatasetError where there is nothing to read."""
    rows: Callable[[DatasetConfig, Task, str], Rows]
    """Opens a split: complains before the first row about what can be known by then."""
    digest: Callable[[DatasetConfig, str], str]
    """sha256 of what `rows` reads."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Other names for splits, e.g. `validation` for `val`."""


def bad_row(file: str, line: int, reason: str, raw: str) -> BadRow:
    """Return a row that is no sample, with its text cut short."""
    text = raw.encode("utf-8", "replace").decode()[:SHOWN]
    return BadRow(file=file, line=line, reason=reason, text=text)


def checker(task: Task, split: str) -> Callable[[Found], Sample | BadRow]:
    """Return a function that turns the rows of one split into samples, one after the other."""
    find, seen = make_label_finder(task), set[str]()

    def check(row: Found) -> Sample | BadRow:
        if isinstance(row, BadRow):
            return row
        reason = _defect_of_id(row, seen) or _defect_of_fields(row)
        label = find(row.label)
        if reason is None and label is None:
            reason = _no_label(row.label, task)
        if reason or label is None:
            return bad_row(row.file, row.line, str(reason), row.raw)
        if row.id is not None:
            seen.add(row.id)
        return Sample(
            id=row.id or "/".join(_made_id(row, task, split)),
            split=split,
            fields={name: str(text).strip(BLANK) for name, text in row.fields.items()},
            label=label.id,
            label_text=label.name,
            cluster=row.cluster,
        )

    return check


def _made_id(row: Row, task: Task, split: str) -> Iterator[str]:
    return filter(None, (task.name, row.part, split, str(row.number)))


def _defect_of_id(row: Row, seen: set[str]) -> str | None:
    if row.id is None:
        return None
    if not row.id.strip():
        return "the id is empty"
    return f"the id {row.id!r} is there twice" if row.id in seen else None


def _defect_of_fields(row: Row) -> str | None:
    return next(filter(None, (_defect(*item) for item in row.fields.items())), None)


def _defect(name: str, text: object) -> str | None:
    if text is None:
        return f"the field {name} is missing"
    if not isinstance(text, str):
        return f"the field {name} is no text but {type(text).__name__}"
    if not text.strip():
        return f"the field {name} is empty"
    if not encodable(text):
        return f"the field {name} holds half a character (a lone surrogate)"
    return None


def encodable(text: str) -> bool:
    """Tell whether a text can be written as UTF-8: JSON may hold half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_label(value: object, task: Task) -> str:
    if value is None or value == "":
        return "the label is missing"
    names = ", ".join(f"{label.id} {label.name}" for label in task.labels)
    return f"the label {value!r} is none of the task {task.name} ({names})"

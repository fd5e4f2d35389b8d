"""Which column of a table is the id, the label and each text."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.rows import Row
from coreeval.schema import Task

_OPTIONAL = ("id", "cluster")
"""What a table may leave out."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table that make a sample."""

    fields: Mapping[str, str]
    """Column by the task's field name."""
    label: str
    id: str | None
    """None where the table has no ids of its own."""
    cluster: str | None = None
    """None where the table does not say which rows belong together."""

    def row(
        self, values: Mapping[str, object], *, file: str, line: int, number: int, raw: str
    ) -> Row:
        """Return the row that a record's values by column make."""
        own = None if self.id is None else values.get(self.id)
        cluster = None if self.cluster is None else values.get(self.cluster)
        return Row(
            file=file,
            line=line,
            number=number,
            fields={name: values.get(column) for name, column in self.fields.items()},
            label=values.get(self.label),
            id=None if self.id is None else "" if own is None else str(own),
            cluster="" if cluster is None else str(cluster),
            raw=raw,
        )


def columns_of(config: DatasetConfig, task: Task, present: Sequence[str], *, where: str) -> Columns:
    """Find the columns by `dataset.columns`, else by the task's own names.

    Raises:
        DatasetError: a column that is not there, or a name in `dataset.columns` that is no field.
    """
    ours = (*task.fields, "label", *_OPTIONAL)
    for name in config.columns:
        if name not in ours:
            raise DatasetError(
                f"dataset.columns names {name!r}, which the task {task.name} does not have",
                where=where,
                hint=_near(name, ours),
            )
    asked = {name: config.columns.get(name, name) for name in ours}
    for name in _OPTIONAL:
        if name not in config.columns and name not in present:
            del asked[name]
    for name, column in asked.items():
        if column not in present:
            _missing(name, column, present, where)
    return Columns(
        fields={name: asked[name] for name in task.fields},
        label=asked["label"],
        id=asked.get("id"),
        cluster=asked.get("cluster"),
    )


def _missing(name: str, column: str, present: Sequence[str], where: str) -> None:
    mapping = f"dataset.columns: {{{name}: ITS COLUMN}}"
    raise DatasetError(
        f"there is no column {column!r} for {name!r}",
        where=where,
        hint=f"{_near(column, present)}; or say which one it is with {mapping}",
    )


def _near(word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    there = f"there are {', '.join(names)}"
    return f"did you mean {near[0]!r}? {there}" if near else there


def text_fields(config: DatasetConfig, task: Task, count: int) -> tuple[str, ...]:
    """Return the fields of a task that suits a format with so many texts for each sample."""
    if len(task.fields) == count:
        return task.fields
    wants = ", ".join(task.fields)
    raise DatasetError(
        f"{config.format} has {count} text(s) for each sample; the task {task.name} wants {wants}",
        where=config.path,
        hint="dataset.format and task must fit each other",
    )

"""The kinds of task: what the gold of a sample is, and in which fields and columns it stands.

A sample of any kind is text by field name plus a label. The options of a choice are fields named
by their letters, the accepted answers to a question and the reference summary are fields that
judges and targets are not shown. The task of one sample has exactly the fields of that sample.
"""

from collections.abc import Iterable, Mapping

from coreeval.schema import Task, TaskKind
from coreeval.tasks.kinds.answer import ANSWER
from coreeval.tasks.kinds.base import (
    ColumnType,
    ItemDefect,
    ItemParts,
    Kind,
    PublishedItem,
    is_encodable,
)
from coreeval.tasks.kinds.choice import CHOICE
from coreeval.tasks.kinds.labels import LABELS
from coreeval.tasks.kinds.summary import SUMMARY_KIND

KINDS: Mapping[TaskKind, Kind] = {
    kind.name: kind for kind in (LABELS, CHOICE, ANSWER, SUMMARY_KIND)
}


def kind_of(task: Task) -> Kind:
    """Return what a task's kind knows."""
    return KINDS[task.kind]


def adapt_task(task: Task, fields: Iterable[str]) -> Task:
    """Return the task of a sample that has these fields: its options, and what is hidden."""
    return kind_of(task).adapt(task, tuple(fields))


__all__ = [
    "KINDS",
    "ColumnType",
    "ItemDefect",
    "ItemParts",
    "Kind",
    "PublishedItem",
    "adapt_task",
    "is_encodable",
    "kind_of",
]

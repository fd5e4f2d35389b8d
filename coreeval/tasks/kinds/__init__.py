"""The kinds of task: what the gold of a sample is, and in which fields and columns it stands.

A sample of any kind is text by field name plus a label. The options of a choice are fields named
by their letters, the accepted answers to a question and the reference summary are fields that
judges and targets are not shown. The task of one sample has exactly the fields of that sample.
"""

from collections.abc import Iterable, Mapping

from coreeval.schema import Label, Task, TaskKind
from coreeval.tasks.kinds.answer import ANSWER, ANSWERS
from coreeval.tasks.kinds.base import (
    ColumnType,
    Display,
    ItemDefect,
    ItemParts,
    Kind,
    PublishedItem,
    Texts,
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


def find_kind(fields: Texts, label: str) -> Kind:
    """Return the kind of a sample with these fields and this label's name.

    Stores and logs of a run know samples without their task.
    """
    others = (kind for kind in KINDS.values() if kind is not LABELS)
    return next((each for each in others if each.display.is_of_kind(fields, label)), LABELS)


def explain_odd_item(task: Task, fields: Texts, label: Label) -> str:
    """Return why a stored sample is none of its task's kind; "" if it is one.

    What only a task with labels may have is left to whoever knows its labels.
    """
    if task.kind == "labels":
        return ""
    own = adapt_task(task, fields)
    if missing := [name for name in own.fields if not fields.get(name)]:
        return f"the field {missing[0]} is missing"
    told = (label.id, label.name)
    if told not in {(known.id, known.name) for known in own.labels}:
        return f"the label {label.id} with the name {label.name!r} is not one of the sample's"
    if not kind_of(task).display.is_of_kind(fields, label.name):
        return f"it is not a sample of the kind {task.kind}"
    try:
        kind_of(task).check_stored(fields)
    except ItemDefect as error:
        return str(error)
    return ""


def find_display(fields: Texts, label: str) -> Display:
    """Return how people read a sample, by its fields and its label's name."""
    return find_kind(fields, label).display


def title_fields(fields: Texts, label: str) -> dict[str, str]:
    """Return a sample's texts by their titles, which tell the right option and the answers' type.

    Accepted answers stand in one line.
    """
    titles = find_display(fields, label).titles(fields, label)
    texts = {**fields, ANSWERS: " | ".join(fields.get(ANSWERS, "").split("\n"))}
    return {title: texts[name] for name, title in titles.items() if name in fields}


def adapt_task(task: Task, fields: Iterable[str]) -> Task:
    """Return the task of a sample that has these fields: its options, and what is hidden."""
    return kind_of(task).adapt(task, tuple(fields))


__all__ = [
    "KINDS",
    "ColumnType",
    "Display",
    "ItemDefect",
    "ItemParts",
    "Kind",
    "PublishedItem",
    "Texts",
    "adapt_task",
    "explain_odd_item",
    "find_display",
    "find_kind",
    "is_encodable",
    "kind_of",
    "title_fields",
]

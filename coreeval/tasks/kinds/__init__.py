"""The kinds of task: what the gold of a sample is, and which fields and columns hold it.

A sample of any kind has texts by field name, and a label. The options of a choice are fields named
by their letters; the accepted answers to a question and the reference summary are fields that
judges and targets do not see. The task of one sample has exactly that sample's fields.
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
    """Return the kind of a task."""
    return KINDS[task.kind]


def find_kind(fields: Texts, label: str) -> Kind:
    """Return the kind of a sample with these fields and this label name.

    Stores and logs of a run have samples without their task.
    """
    others = (kind for kind in KINDS.values() if kind is not LABELS)
    return next((each for each in others if each.display.is_of_kind(fields, label)), LABELS)


def explain_odd_item(task: Task, fields: Texts, label: Label) -> str:
    """Return why a stored sample is not of its task's kind; "" if it is.

    Samples of tasks with labels are checked by code that knows the labels.
    """
    if task.kind == "labels":
        return ""
    own = adapt_task(task, fields)
    if missing := [name for name in own.fields if not fields.get(name)]:
        return f"the {missing[0]} field is missing"
    told = (label.id, label.name)
    if told not in {(known.id, known.name) for known in own.labels}:
        return f"the label {label.id} with the name {label.name!r} is not a label of this sample"
    if not kind_of(task).display.is_of_kind(fields, label.name):
        return f"it is not a sample of the kind {task.kind}"
    try:
        kind_of(task).check_stored(fields)
    except ItemDefect as error:
        return str(error)
    return ""


def find_display(fields: Texts, label: str) -> Display:
    """Return how a sample is shown to people, given its fields and its label's name."""
    return find_kind(fields, label).display


def title_fields(fields: Texts, label: str) -> dict[str, str]:
    """Return a sample's texts by title; titles say which option is right, and the answers' type.

    Accepted answers are on one line.
    """
    titles = find_display(fields, label).titles(fields, label)
    texts = {**fields, ANSWERS: " | ".join(fields.get(ANSWERS, "").split("\n"))}
    return {title: texts[name] for name, title in titles.items() if name in fields}


def adapt_task(task: Task, fields: Iterable[str]) -> Task:
    """Return the task of a sample with these fields: its options and its hidden fields."""
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

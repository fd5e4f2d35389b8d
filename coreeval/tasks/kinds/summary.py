"""Documents with a reference summary."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from coreeval.schema import Label, Sample, Task
from coreeval.tasks.kinds.base import (
    ColumnType,
    Display,
    ItemDefect,
    ItemParts,
    ItemTrait,
    Kind,
    PublishedItem,
    Values,
    count_units,
    cut_gold,
    match_names,
    read_bounded_text,
    read_texts,
)

SUMMARY = "summary"
"""The field with the reference summary."""
_NAMES: Final = {"document": ("article", "text"), SUMMARY: ("highlights",)}
_LABEL = Label(id=0, name=SUMMARY, meaning="the summary says what matters in the document")


def _read(task: Task, values: Values) -> ItemParts:
    fields = read_texts(task, values) | {SUMMARY: read_bounded_text(values, SUMMARY)}
    if len(fields[SUMMARY]) > sum(len(fields[name]) for name in task.fields):
        raise ItemDefect("the summary is longer than the document; are the columns swapped?")
    return ItemParts(fields=fields, label=_LABEL)


def _traits(task: Task, sample: Sample) -> Iterator[ItemTrait]:
    for name in _fields(task):
        yield ItemTrait(f"words per {name}", count_units(sample.fields[name]))


def _columns(task: Task) -> dict[str, ColumnType]:
    return dict.fromkeys(_fields(task), "string")


def _fields(task: Task) -> tuple[str, ...]:
    return (*(name for name in task.fields if name != SUMMARY), SUMMARY)


def _write(task: Task, fields: Mapping[str, str], label: Label) -> dict[str, object]:
    return {name: fields[name] for name in _fields(task)}


def _adapt(task: Task, names: object) -> Task:
    return task.model_copy(update={"fields": _fields(task), "hidden_fields": (SUMMARY,)})


SUMMARY_KIND = Kind(
    describe=lambda task: "a reference summary",
    name="summary",
    labels=lambda task: (_LABEL,),
    required=lambda task: (*task.fields, SUMMARY),
    find_columns=partial(match_names, common=_NAMES),
    traits=_traits,
    gold=lambda fields, name: fields[SUMMARY],
    make_reader=lambda task: partial(_read, task),
    columns=_columns,
    write=_write,
    restore=lambda values: PublishedItem(values, _LABEL.id, _LABEL.name),
    adapt=_adapt,
    compared=cut_gold,
    display=Display(
        hub_task="summarization",
        gold_word="summary",
        label_title="gold",
        about="Each sample is a document with a reference summary.",
        columns={SUMMARY: "the reference summary"},
        rated=lambda fields, label: {
            name: text for name, text in fields.items() if name != SUMMARY
        },
        titles=lambda fields, label: {name: name for name in fields},
        is_of_kind=lambda fields, label: SUMMARY in fields and label == _LABEL.name,
    ),
)

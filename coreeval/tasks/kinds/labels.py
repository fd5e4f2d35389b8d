"""Tasks whose gold is a label of the task: the kind of the CoreEval paper."""

from collections.abc import Callable, Mapping

from coreeval.schema import Label, Task
from coreeval.tasks.kinds.base import (
    ColumnType,
    Display,
    ItemDefect,
    ItemParts,
    Kind,
    PublishedItem,
    Values,
    cut_gold,
    read_text,
)
from coreeval.tasks.label_finder import make_label_finder


def _make_reader(task: Task) -> Callable[[Values], ItemParts]:
    find = make_label_finder(task)

    def read(values: Values) -> ItemParts:
        fields = {name: read_text(values, name) for name in task.fields}
        value = values.get("label")
        label = find(value)
        if label is None:
            raise ItemDefect(_describe_label_defect(value, task))
        return ItemParts(fields=fields, label=label)

    return read


def _describe_label_defect(value: object, task: Task) -> str:
    if value is None or value == "":
        return "the label is missing"
    names = ", ".join(f"{label.id} {label.name}" for label in task.labels)
    return f"the label {value!r} is not in the task {task.name} ({names})"


def _columns(task: Task) -> dict[str, ColumnType]:
    return {**dict.fromkeys(task.fields, "string"), "label": "int64", "label_text": "string"}


def _write(task: Task, fields: Mapping[str, str], label: Label) -> dict[str, object]:
    texts = {name: fields[name] for name in task.fields}
    return texts | {"label": label.id, "label_text": label.name}


def _restore(values: Values) -> PublishedItem:
    texts = {name: text for name, text in values.items() if name not in ("label", "label_text")}
    if "label" not in values or "label_text" not in values:
        raise ItemDefect("there is no label")
    return PublishedItem(texts, values["label"], values["label_text"])


LABELS = Kind(
    name="labels",
    labels=lambda task: task.labels,
    required=lambda task: (*task.fields, "label"),
    make_reader=_make_reader,
    columns=_columns,
    write=_write,
    restore=_restore,
    adapt=lambda task, names: task,
    compared=cut_gold,
    display=Display(
        hub_task="text-classification",
        gold_word="label",
        label_title="label",
        titles=lambda fields, label: {name: name for name in fields},
        is_of_kind=lambda fields, label: True,
    ),
    template_variables=(),
    gold_variable="labels",
    describe=lambda task: ", ".join(label.name for label in task.labels),
)

"""Questions with accepted short answers: with a context, or closed book."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal, get_args

from coreeval.schema import Label, Task
from coreeval.tasks.kinds.base import (
    ColumnType,
    ItemDefect,
    ItemParts,
    Kind,
    PublishedItem,
    Values,
    check_encodable,
    read_list,
    read_text,
)

AnswerType = Literal["text", "number", "date", "yes_no"]
ANSWERS: Final = "answers"
"""The field with the accepted answers, one a line; the first is the gold."""
CARRIED: Final = ("unit", "tolerance")
PROGRAM: Final = "program"
"""The calculation of a numeric answer, in FinQA's notation."""
HIDDEN: Final = (ANSWERS, *CARRIED, PROGRAM)
_MEANINGS: Final[Mapping[AnswerType, str]] = {
    "text": "the answer is a name or a few words",
    "number": "the answer is a number",
    "date": "the answer is a date",
    "yes_no": "the answer is yes or no",
}
TYPES: Final = tuple(
    Label(id=place, name=name, meaning=_MEANINGS[name])
    for place, name in enumerate(get_args(AnswerType))
)
_NUMBER: Final = re.compile(
    r"\(?[-+\u2212\u2013$\u20ac\u00a3 ]*\d[\d,. ]*\s*(?:%|percent|thousand|million|billion|"
    r"trillion|bn|m|k)?\)?\s*",
    re.IGNORECASE,
)
_TOLERANCE: Final = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?%?", re.IGNORECASE)
_LONGEST_ANSWER: Final = 2_000


def split_answers(fields: Mapping[str, str]) -> list[str]:
    """Return the accepted answers in a sample's fields, the gold first."""
    return fields[ANSWERS].split("\n")


def _read(task: Task, values: Values) -> ItemParts:
    if values.get("choices") is not None:
        raise ItemDefect("it has choices, and the task has kind: answer; is its kind choice?")
    fields = {name: read_text(values, name) for name in task.fields}
    accepted = _read_answers(values.get(ANSWERS))
    fields[ANSWERS] = "\n".join(accepted)
    fields |= _read_details(values)
    return ItemParts(fields=fields, label=_read_type(values.get("answer_type"), accepted))


def _read_answers(value: object) -> list[str]:
    if isinstance(value, Mapping):  # SQuAD's form: texts and where they start
        value = value.get("text")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, str) and not value.lstrip().startswith("["):
        value = [value]
    if value is None:
        raise ItemDefect("the field answers is missing")
    found = dict.fromkeys(text for text in read_list(value, ANSWERS) if text)
    if not found:
        raise ItemDefect("the field answers is empty")
    if any(len(text) > _LONGEST_ANSWER for text in found):
        raise ItemDefect(f"an answer has more than {_LONGEST_ANSWER:,} characters")
    return list(found)


def _read_details(values: Values) -> dict[str, str]:
    found = dict[str, str]()
    for name in (*CARRIED, PROGRAM):
        value = values.get(name)
        if value is not None and str(value).strip():
            found[name] = check_encodable(name, " ".join(str(value).split()))
    if "tolerance" in found and not _TOLERANCE.fullmatch(found["tolerance"]):
        raise ItemDefect(
            f"the tolerance {found['tolerance']!r} is neither a number from 0 on nor a percentage"
        )
    return found


def _read_type(value: object, accepted: Sequence[str]) -> Label:
    if value is None or value == "":
        return _guess_type(accepted)
    for known in TYPES:
        if str(value).strip().casefold() == known.name:
            return known
    names = ", ".join(known.name for known in TYPES)
    raise ItemDefect(f"the answer_type {value!r} is none of {names}")


def _guess_type(accepted: Sequence[str]) -> Label:
    """Return what kind of answer the gold is; only what is surely a number counts as one."""
    gold = accepted[0]
    if gold.casefold() in ("yes", "no"):
        return TYPES[3]
    return TYPES[1] if _NUMBER.fullmatch(gold) else TYPES[0]


def _columns(task: Task) -> dict[str, ColumnType]:
    return {
        **{name: "string" for name in task.fields if name not in HIDDEN},
        ANSWERS: "strings",
        "answer_type": "string",
        **dict.fromkeys((*CARRIED, PROGRAM), "string"),
    }


def _write(task: Task, fields: Mapping[str, str], label: Label) -> dict[str, object]:
    return {
        **{name: fields[name] for name in task.fields if name not in HIDDEN},
        ANSWERS: split_answers(fields),
        "answer_type": label.name,
        **{name: fields.get(name) for name in (*CARRIED, PROGRAM)},
    }


def _restore(values: Values) -> PublishedItem:
    accepted, told = values.get(ANSWERS), values.get("answer_type")
    label = next((known for known in TYPES if known.name == told), None)
    if not isinstance(accepted, list) or label is None:
        raise ItemDefect("answers must be a list, and answer_type one of the known types")
    own = (*HIDDEN, "answer_type")
    texts = {name: text for name, text in values.items() if name not in own}
    texts[ANSWERS] = "\n".join(map(str, accepted))
    texts |= {name: values[name] for name in HIDDEN[1:] if values.get(name) is not None}
    return PublishedItem(texts, label.id, label.name)


def _adapt(task: Task, names: Sequence[str]) -> Task:
    hidden = tuple(name for name in HIDDEN if name in names)
    carried = tuple(name for name in CARRIED if name in names)
    base = tuple(name for name in task.fields if name not in HIDDEN)
    changes = {
        "fields": (*base, *hidden),
        "hidden_fields": hidden,
        "carried_fields": carried,
    }
    return task.model_copy(update=changes)


ANSWER = Kind(
    name="answer",
    labels=lambda task: TYPES,
    required=lambda task: (*task.fields, ANSWERS),
    optional=("answer_type", *CARRIED, PROGRAM, "choices"),
    make_reader=lambda task: partial(_read, task),
    columns=_columns,
    write=_write,
    restore=_restore,
    adapt=_adapt,
)

"""Multiple choice: a question and its options, a field each, named by their letters."""

from collections.abc import Mapping, Sequence
from functools import partial
from string import ascii_uppercase

from coreeval.schema import MOST_OPTIONS, Label, Task
from coreeval.tasks.kinds.base import (
    ColumnType,
    ItemDefect,
    ItemParts,
    Kind,
    PublishedItem,
    Values,
    read_list,
    read_text,
)

LETTERS = ascii_uppercase[:MOST_OPTIONS]
_FEWEST = 2


def option_fields(names: Sequence[str]) -> list[str]:
    """Return those of a sample's fields that hold its options, in their order."""
    return [name for name in names if name in LETTERS]


def _labels(task: Task) -> tuple[Label, ...]:
    return _letter_labels(LETTERS[: task.options])


def _letter_labels(letters: Sequence[str]) -> tuple[Label, ...]:
    return tuple(
        Label(id=place, name=letter, meaning=f"option {letter} is right")
        for place, letter in enumerate(letters)
    )


def _read(task: Task, values: Values) -> ItemParts:
    fields = {name: read_text(values, name) for name in task.fields}
    options = read_list(values.get("choices"), "choices")
    _check_options(options, task)
    right = _find_right_option(values, options)
    named = dict(zip(LETTERS, options, strict=False))
    return ItemParts(fields=fields | named, label=_letter_labels(LETTERS)[right])


def _check_options(options: Sequence[str], task: Task) -> None:
    if len(options) < _FEWEST:
        raise ItemDefect(f"a choice has at least {_FEWEST} options, and this has {len(options)}")
    if len(options) > task.options:
        hint = f"options: {min(len(options), MOST_OPTIONS)}"
        raise ItemDefect(
            f"it has {len(options)} options, and the task has at most {task.options} ({hint})"
        )
    seen = dict[str, str]()
    for letter, text in zip(LETTERS, options, strict=False):
        if not text:
            raise ItemDefect(f"the option {letter} is empty")
        if text in seen:
            raise ItemDefect(f"the options {seen[text]} and {letter} are the same: {text[:100]!r}")
        seen[text] = letter


def _find_right_option(values: Values, options: Sequence[str]) -> int:
    """Return the index of the right option, given as index, letter or text."""
    given, text = values.get("answer"), values.get("answer_text")
    if given is None or given == "":
        if not isinstance(text, str) or not text.strip():
            raise ItemDefect("the answer is missing: its index from 0, its letter or its text")
        return _find_option_text(text, options)
    right = _find_option(given, options)
    if isinstance(text, str) and text.strip() and _fold(text) != _fold(options[right]):
        raise ItemDefect(
            f"answer is option {LETTERS[right]}, and answer_text says {text!r}: which is right?"
        )
    return right


def _find_option(given: object, options: Sequence[str]) -> int:
    if isinstance(given, list | tuple):
        if len(given) != 1:
            raise ItemDefect(f"it has {len(given)} right options; a choice has one")
        given = given[0]
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ItemDefect(f"the answer {given!r} is no index, letter or text of an option")
    said = str(given).strip()
    if len(said) == 1 and said.upper() in LETTERS[: len(options)]:
        return LETTERS.index(said.upper())
    number = said.removesuffix(".0")
    if number.isdecimal() and number.isascii():
        if len(number) < len(str(MOST_OPTIONS)) + 1 and int(number) < len(options):
            return int(number)
        last = len(options) - 1
        if number not in options:
            raise ItemDefect(f"the answer {said} is no index of an option: they are 0 to {last}")
    return _find_option_text(said, options)


def _find_option_text(said: str, options: Sequence[str]) -> int:
    exact = [place for place, text in enumerate(options) if text == " ".join(said.split())]
    found = exact or [place for place, text in enumerate(options) if _fold(text) == _fold(said)]
    if len(found) != 1:
        letters = ", ".join(LETTERS[: len(options)])
        raise ItemDefect(f"the answer {said[:100]!r} is none of the options {letters}")
    return found[0]


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _columns(task: Task) -> dict[str, ColumnType]:
    return {
        **dict.fromkeys(task.fields, "string"),
        "choices": "strings",
        "answer": "int64",
        "answer_text": "string",
    }


def _write(task: Task, fields: Mapping[str, str], label: Label) -> dict[str, object]:
    return {
        **{name: fields[name] for name in task.fields if name not in LETTERS},
        "choices": [fields[name] for name in option_fields(list(fields))],
        "answer": label.id,
        "answer_text": fields[label.name],
    }


def _restore(values: Values) -> PublishedItem:
    own = ("choices", "answer", "answer_text")
    options, right = values.get("choices"), values.get("answer")
    if not isinstance(options, list) or not isinstance(right, int):
        raise ItemDefect("choices must be a list, and answer an index")
    if not 0 <= right < len(options) <= MOST_OPTIONS:
        raise ItemDefect(f"answer {right} is no index of the {len(options)} choices")
    if values.get("answer_text") != options[right]:
        raise ItemDefect("answer_text is another one than the option that answer names")
    texts = {name: text for name, text in values.items() if name not in own}
    named = dict(zip(LETTERS, options, strict=False))
    return PublishedItem(texts | named, right, LETTERS[right])


def _adapt(task: Task, names: Sequence[str]) -> Task:
    letters = option_fields(names)
    base = tuple(name for name in task.fields if name not in LETTERS)
    changes = {"fields": (*base, *letters), "labels": _letter_labels(letters)}
    return task.model_copy(update=changes)


CHOICE = Kind(
    name="choice",
    labels=_labels,
    required=lambda task: (*task.fields, "choices", "answer"),
    optional=("answer_text",),
    make_reader=lambda task: partial(_read, task),
    columns=_columns,
    write=_write,
    restore=_restore,
    adapt=_adapt,
    template_variables=("item", "choices"),
    gold_variable="choices",
)

"""Multiple choice: a question and its options, one field each, named by their letters."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import Final

from coreeval.schema import MOST_OPTIONS, Label, Sample, Task
from coreeval.tasks.kinds.base import (
    QUESTION,
    REMARK,
    ColumnType,
    Display,
    ItemDefect,
    ItemParts,
    ItemTrait,
    Kind,
    PublishedItem,
    Texts,
    Values,
    count_units,
    match_names,
    parse_object,
    read_list,
    read_texts,
)

LETTERS = ascii_uppercase[:MOST_OPTIONS]
_FEWEST = 2
_LONGEST_OPTION: Final = 5_000
_SEVERAL: Final = re.compile(r"[A-Z](?:(?:\s*[,;/&|+]\s*|\s+and\s+)[A-Z])+")
_NAMES: Final = {"choices": ("options",), "answer": ("answerkey",)}
_OPTION_COLUMNS: Final = ("{letter}", "choice{letter}", "option{letter}", "choice{index}",
                          "option{index}", "choice{number}", "option{number}")  # fmt: skip
"""Folded names of columns that each hold an option; numbers start from 1, indices from 0."""


def option_fields(names: Sequence[str]) -> list[str]:
    """Return the fields of a sample that hold its options, in order."""
    return [name for name in names if name in LETTERS]


def _labels(task: Task) -> tuple[Label, ...]:
    return _letter_labels(LETTERS[: task.options])


def _letter_labels(letters: Sequence[str]) -> tuple[Label, ...]:
    return tuple(
        Label(id=place, name=letter, meaning=f"option {letter} is right")
        for place, letter in enumerate(letters)
    )


def _find_columns(present: Sequence[str]) -> dict[str, str]:
    found = match_names(present, _NAMES)
    return found if "choices" in {*present, *found} else found | _find_option_columns(present)


def _find_option_columns(present: Sequence[str]) -> dict[str, str]:
    """Return the columns that hold options, by letter, for the first naming scheme that matches."""
    for pattern in _OPTION_COLUMNS:
        names = {
            letter: (pattern.format(letter=letter.lower(), index=place, number=place + 1),)
            for place, letter in enumerate(LETTERS)
        }
        found = match_names(present, names)
        if LETTERS[0] in found and LETTERS[1] in found:
            return found
    return {}


def _read(task: Task, values: Values) -> ItemParts:
    fields = read_texts(task, values)
    options, names = _read_options(values)
    _check_options(options, task)
    right = _find_right_option(values, options, names)
    named = dict(zip(LETTERS, options, strict=False))
    return ItemParts(fields=fields | named, label=_letter_labels(LETTERS)[right])


def _read_options(values: Values) -> tuple[list[str], list[str]]:
    """Return the options and their names in the row, such as A, B and C or 1, 2 and 3."""
    given = parse_object(values.get("choices"), "choices")
    if given is None and values.get(LETTERS[0]) is not None:
        given = [values.get(letter) for letter in LETTERS]
        while given and (given[-1] is None or not str(given[-1]).strip()):
            given.pop()
        options = read_list(["" if each is None else each for each in given], "choices")
        return options, list(LETTERS[: len(options)])
    if given is None:
        raise ItemDefect("the choices are missing: use a list, or one column for each option")
    told: object = None
    if isinstance(given, Mapping):  # ARC's form
        told = given.get("label")
        given = given.get("text")
    elif isinstance(given, list):
        told = [each["label"] for each in given if isinstance(each, Mapping) and "label" in each]
    options = read_list(given, "choices")
    if not isinstance(told, list) or not told:
        return options, list(LETTERS[: len(options)])
    names = read_list(told, "the labels of the choices")
    if len(names) != len(options) or len(set(names)) != len(names):
        raise ItemDefect(f"the labels of {len(options)} choices are {', '.join(names)[:100]!r}")
    return options, names


def _check_options(options: Sequence[str], task: Task) -> None:
    if len(options) < _FEWEST:
        raise ItemDefect(
            f"a choice needs at least {_FEWEST} options, but this one has {len(options)}"
        )
    if len(options) > task.options:
        hint = f"options: {min(len(options), MOST_OPTIONS)}"
        raise ItemDefect(
            f"it has {len(options)} options, but the task allows at most {task.options} ({hint})"
        )
    seen = dict[str, str]()
    for letter, text in zip(LETTERS, options, strict=False):
        if not text:
            raise ItemDefect(f"the option {letter} is empty")
        if len(text) > _LONGEST_OPTION:
            raise ItemDefect(f"the option {letter} has more than {_LONGEST_OPTION:,} characters")
        if text in seen:
            raise ItemDefect(f"the options {seen[text]} and {letter} are the same: {text[:100]!r}")
        seen[text] = letter


def _find_right_option(values: Values, options: Sequence[str], names: Sequence[str]) -> int:
    """Return the index of the right option, which is given as an index, a letter or a text."""
    given, text = values.get("answer"), values.get("answer_text")
    by_text = None
    if isinstance(text, str) and text.strip():
        by_text = _find_option_text(text, options)
    if given is None or given == "":
        if by_text is None:
            raise ItemDefect(
                "the answer is missing: write its index (from 0), its letter or its text"
            )
        return by_text
    meant = _find_options(_read_single(given), options, names)
    if by_text is not None and by_text not in meant:
        raise ItemDefect(
            f"answer is option {LETTERS[meant[0]]}, but answer_text says {str(text)[:100]!r}: "
            "which is right?"
        )
    if by_text is None and len(meant) > 1:
        raise ItemDefect(
            f"the answer {given!r} may be option {LETTERS[meant[0]]} or the text of option "
            f"{LETTERS[meant[1]]}; specify which in an `answer_text` column"
        )
    return meant[0] if by_text is None else by_text


def _read_single(given: object) -> float | str:
    """Return an answer, which may also be a list with one element."""
    if isinstance(given, list | tuple):
        if len(given) != 1:
            raise ItemDefect(f"it has {len(given)} right options, but a choice has only one")
        given = given[0]
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ItemDefect(f"the answer {given!r} is not the index, letter or text of an option")
    return given


def _find_options(given: float | str, options: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the options that an answer may mean: one by name or index, and one by text."""
    said = str(given).strip()
    place = _find_named_option(said, names)
    if not isinstance(given, str) and place is not None:
        return [place]
    by_text = _find_texts(said, options)
    if place is None and len(by_text) != 1:
        raise ItemDefect(_describe_answer_defect(said, names))
    return list(dict.fromkeys([*([] if place is None else [place]), *by_text]))


def _find_named_option(said: str, names: Sequence[str]) -> int | None:
    """Return the option with a name or an index; None if there is none."""
    for fold in (str, str.casefold):
        for place, name in enumerate(names):
            if fold(said) == fold(name):
                return place
    number = said.removesuffix(".0")
    if not (number.isdecimal() and number.isascii()) or len(number) > len(str(MOST_OPTIONS)):
        return None
    if not _are_letters(names):  # with names 1, 2, 3 it is unclear which one an index means
        return None
    return int(number) if int(number) < len(names) else None


def _are_letters(names: Sequence[str]) -> bool:
    return list(names) == list(LETTERS[: len(names)])


def _describe_answer_defect(said: str, names: Sequence[str]) -> str:
    if _SEVERAL.fullmatch(said):
        return f"the answer {said[:100]!r} names several right options, but a choice has only one"
    if said.removesuffix(".0").isdecimal() and _are_letters(names):
        last = len(names) - 1
        return f"the answer {said[:100]} is not the index of an option: indices are 0 to {last}"
    return f"the answer {said[:100]!r} is not one of the options {', '.join(names)}"


def _find_option_text(said: str, options: Sequence[str]) -> int:
    found = _find_texts(said, options)
    if len(found) != 1:
        letters = ", ".join(LETTERS[: len(options)])
        raise ItemDefect(f"the answer {said[:100]!r} is not one of the options {letters}")
    return found[0]


def _find_texts(said: str, options: Sequence[str]) -> list[int]:
    """Return the options with exactly this text, or else those with it in any case."""
    exact = [place for place, text in enumerate(options) if text == " ".join(said.split())]
    return exact or [place for place, text in enumerate(options) if _fold(text) == _fold(said)]


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _traits(task: Task, sample: Sample) -> Iterator[ItemTrait]:
    options = [sample.fields[name] for name in option_fields(list(sample.fields))]
    yield ItemTrait("options per question", len(options))
    yield ItemTrait("right option", sample.label_text)
    if QUESTION in sample.fields:
        yield ItemTrait("words per question", count_units(sample.fields[QUESTION]))
    if len({_fold(text) for text in options}) < len(options):
        yield ItemTrait(REMARK, "two options differ only in upper and lower case")


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
        raise ItemDefect(f"answer {right} is not an index of the {len(options)} choices")
    if values.get("answer_text") != options[right]:
        raise ItemDefect("answer_text differs from the option that answer names")
    texts = {name: text for name, text in values.items() if name not in own}
    named = dict(zip(LETTERS, options, strict=False))
    return PublishedItem(texts | named, right, LETTERS[right])


def _used_labels(task: Task, texts: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the letters of the sample with the most options; no other letter can be an answer."""
    return list(LETTERS[: max((len(option_fields(list(each))) for each in texts), default=0)])


def _adapt(task: Task, names: Sequence[str]) -> Task:
    letters = option_fields(names)
    base = tuple(name for name in task.fields if name not in LETTERS)
    changes = {"fields": (*base, *letters), "labels": _letter_labels(letters)}
    return task.model_copy(update=changes)


def _join_item(task: Task, fields: Texts) -> dict[str, str]:
    """Return the question with its options as one text, because models remember both together."""
    letters = option_fields(list(fields))
    shown = [text for name, text in fields.items() if name not in letters]
    return {"item": "\n".join((*shown, *(f"{letter}. {fields[letter]}" for letter in letters)))}


def _titles(fields: Texts, label: str) -> dict[str, str]:
    return {name: f"{name} (right)" if name == label else name for name in fields}


def _is_choice(fields: Texts, label: str) -> bool:
    letters = option_fields(list(fields))
    return label in letters and len(letters) >= _FEWEST and "".join(letters) in LETTERS


CHOICE = Kind(
    used_labels=_used_labels,
    name="choice",
    labels=_labels,
    required=lambda task: (*task.fields, "choices", "answer"),
    needed_fields=(QUESTION,),
    optional=("answer_text", *LETTERS),
    instead={"choices": (LETTERS[0], LETTERS[1])},
    find_columns=_find_columns,
    traits=_traits,
    gold=lambda fields, letter: fields[letter],
    make_reader=lambda task: partial(_read, task),
    columns=_columns,
    write=_write,
    restore=_restore,
    adapt=_adapt,
    compared=_join_item,
    display=Display(
        hub_task="multiple-choice",
        gold_word="option",
        label_title="right option",
        label_note="The letter gives the position of the right option, not its content, because "
        "each question has its own options.",
        about="Each sample is a question with its own options. One of them is right.",
        columns={
            "choices": "the options, in the order in which they are shown",
            "answer": "index of the right option, from 0",
            "answer_text": "the right option",
        },
        titles=_titles,
        is_of_kind=_is_choice,
    ),
    template_variables=("item", "choices"),
    gold_variable="choices",
    describe=lambda task: f"one of at most {task.options} options",
)

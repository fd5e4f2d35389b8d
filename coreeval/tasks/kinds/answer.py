"""Questions with accepted short answers, with a context or closed-book."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final, Literal, get_args

from coreeval.schema import Label, Sample, Task
from coreeval.tasks.kinds.base import (
    CONTEXT,
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
    check_encodable,
    count_units,
    cut_gold,
    match_names,
    parse_object,
    read_list,
    read_texts,
)

AnswerType = Literal["text", "number", "date", "yes_no"]
ANSWERS: Final = "answers"
"""The field with the accepted answers, one per line; the first is the gold."""
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
_TEXT, _NUMERIC, _DATE, _YES_NO = TYPES
_NUMBER: Final = re.compile(
    r"\(?[-+\u2212\u2013$\u20ac\u00a3 ]*\d[\d,. ]*\s*(?:%|percent|thousand|million|billion|"
    r"trillion|bn|m|k)?\)?\s*",
    re.IGNORECASE,
)
_TOLERANCE: Final = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?%?", re.IGNORECASE)
_WIDEST_SHARE: Final = 100
_SMALLEST: Final = Decimal("1e-15")
_LARGEST: Final = Decimal("1e15")
_LONGEST_ANSWER: Final = 2_000
_LONGEST_VALUE: Final = 100
_EXPONENT: Final = re.compile(r"\de\+?(\d+)", re.IGNORECASE)
_LARGEST_POWER: Final = 200
_MOST_ANSWERS: Final = 1_000
_LONGEST_DETAIL: Final[Mapping[str, int]] = {"unit": 200, "tolerance": 2_000, PROGRAM: 2_000}
"""Limits on lengths and on accepted answers (own choice): every answer of a model is compared with
all accepted ones, in their unit, and it takes long to search a text for numbers and dates."""
_NAMES: Final = {ANSWERS: ("answer",), CONTEXT: ("passage", "paragraph")}
_SIGNS: Final = re.compile(r"%|\$|\u20ac|\u00a3|\bper ?cent\b|\bdollars?\b|\beuros?\b", re.I)
_UNITS: Final = {"percent": "%", "per cent": "%", "dollar": "$", "dollars": "$", "euro": "\u20ac",
                 "euros": "\u20ac"}  # fmt: skip
_CHINESE_AND_JAPANESE: Final = frozenset(("CJK", "HIRAGANA", "KATAKANA"))


def split_answers(fields: Mapping[str, str]) -> list[str]:
    """Return the accepted answers in a sample's fields, the gold first."""
    return fields[ANSWERS].split("\n")


def _read(task: Task, values: Values) -> ItemParts:
    if values.get("choices") is not None:
        raise ItemDefect("it has choices, but the task has kind: answer; should that be choice?")
    shown = read_texts(task, values)
    accepted = _read_answers(values.get(ANSWERS))
    details = _read_details(values)
    label = _read_type(values.get("answer_type"), accepted)
    if label in (_NUMERIC, _DATE):
        _check_length(accepted, label)
    if label == _TEXT:
        _check_script(accepted, shown)
    if label == _NUMERIC:
        _check_units([*accepted, details.get("unit", "")])
    return ItemParts(fields={**shown, ANSWERS: "\n".join(accepted), **details}, label=label)


def _read_answers(value: object) -> list[str]:
    value = parse_object(value, ANSWERS)
    if isinstance(value, Mapping):  # SQuAD's form: texts and their start positions
        value = value.get("text")
    if isinstance(value, bool):
        value = ["yes" if value else "no"]
    if isinstance(value, int | float) or (
        isinstance(value, str) and not value.lstrip().startswith("[")
    ):
        value = [value]
    if value is None:
        raise ItemDefect("the answers field is missing")
    found = dict.fromkeys(text for text in read_list(value, ANSWERS) if text)
    if not found:
        raise ItemDefect("the answers field is empty")
    if len(found) > _MOST_ANSWERS:
        raise ItemDefect(f"it has {len(found):,} answers, but the maximum is {_MOST_ANSWERS:,}")
    if any(len(text) > _LONGEST_ANSWER for text in found):
        raise ItemDefect(f"an answer has more than {_LONGEST_ANSWER:,} characters")
    return list(found)


def _check_length(accepted: Sequence[str], label: Label) -> None:
    """Raise ItemDefect if an accepted number or date is longer or larger than one can be."""
    if any(len(text) > _LONGEST_VALUE for text in accepted):
        raise ItemDefect(
            f"an answer has more than {_LONGEST_VALUE} characters, but its type is {label.name}"
        )
    powers = (int(found[1]) for text in accepted for found in _EXPONENT.finditer(text))
    if label == _NUMERIC and any(power > _LARGEST_POWER for power in powers):
        raise ItemDefect(f"an answer is larger than 1e{_LARGEST_POWER}")


def _check_units(numbers: Sequence[str]) -> None:
    """Raise ItemDefect if signs such as % and $ contradict each other."""
    signs = (found[0].casefold() for text in numbers for found in _SIGNS.finditer(text))
    units = dict.fromkeys(_UNITS.get(sign, sign) for sign in signs)
    if len(units) > 1:
        raise ItemDefect(
            f"the accepted answers have different units ({' and '.join(units)}); remove those not "
            "in the item's unit"
        )


def _check_script(accepted: Sequence[str], shown: Mapping[str, str]) -> None:
    """Raise ItemDefect if the gold is in a script that its passage and question do not use."""
    gold, texts = accepted[0], shown.values()
    if len(shown) < _WITH_CONTEXT or any(gold in text for text in texts):
        return
    scripts = _list_scripts(gold)
    if scripts and scripts.isdisjoint(_list_scripts("".join(texts))):
        raise ItemDefect(
            f"the answer {gold[:100]!r} is in another script than its passage; were rows of two "
            "languages mixed?"
        )


_WITH_CONTEXT: Final = 2
"""The required fields of a question with a passage."""


def _list_scripts(text: str) -> set[str]:
    """Return the Unicode scripts of a text's letters; kana and kanji count as one."""
    used = unicodedata.normalize("NFKC", "".join(set(text)))
    letters = (letter for letter in used if letter.isalpha())
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in letters}
    return {"CJK" if script in _CHINESE_AND_JAPANESE else script for script in scripts}


def _read_details(values: Values) -> dict[str, str]:
    found = dict[str, str]()
    for name in (*CARRIED, PROGRAM):
        value = values.get(name)
        if value is None or value != value or not str(value).strip():
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ItemDefect(f"the {name} must be text or a number, not {type(value).__name__}")
        found[name] = check_encodable(name, " ".join(str(value).split()))
        if len(found[name]) > _LONGEST_DETAIL[name]:
            raise ItemDefect(f"the {name} has more than {_LONGEST_DETAIL[name]:,} characters")
    if "tolerance" in found:
        _check_tolerance(found["tolerance"])
    return found


def _check_stored(fields: Texts) -> None:
    """Raise ItemDefect if a tolerance is not valid."""
    if "tolerance" in fields:
        _check_tolerance(fields["tolerance"])


def _check_tolerance(tolerance: str) -> None:
    """Raise ItemDefect if a tolerance is not a number, cannot be computed, or accepts anything.

    The bounds are our choice: no measurement is finer, and at 100 % even 0 would be right.
    """
    if not _TOLERANCE.fullmatch(tolerance):
        raise ItemDefect(
            f"the tolerance {tolerance[:100]!r} is neither a non-negative number nor a percentage"
        )
    value, is_share = _read_tolerance(tolerance.removesuffix("%")), tolerance.endswith("%")
    if is_share and value >= _WIDEST_SHARE:
        raise ItemDefect(
            f"the tolerance {tolerance[:100]!r} must be below 100%, because "
            "otherwise the answer 0 would be accepted"
        )
    if value and not _SMALLEST <= value <= _LARGEST:
        raise ItemDefect(
            f"the tolerance {tolerance[:100]!r} is not between {_SMALLEST:g} and {_LARGEST:g}"
        )


def _read_tolerance(number: str) -> Decimal:
    """Return a number as answers are later compared with it; even 0 may have a large exponent."""
    try:
        return Decimal(number)
    except InvalidOperation:
        raise ItemDefect(
            f"the exponent of the tolerance {number[:100]!r} is too large or too small"
        ) from None


def _read_type(value: object, accepted: Sequence[str]) -> Label:
    if value is None or value == "":
        return _guess_type(accepted)
    for known in TYPES:
        if str(value).strip().casefold() == known.name:
            return known
    names = ", ".join(known.name for known in TYPES)
    raise ItemDefect(f"the answer_type {value!r} is not one of {names}")


def _guess_type(accepted: Sequence[str]) -> Label:
    """Return the type of the gold; it counts as a number only if this is certain."""
    gold = accepted[0]
    if gold.casefold() in ("yes", "no"):
        return _YES_NO
    return _NUMERIC if _NUMBER.fullmatch(gold) else _TEXT


def _traits(task: Task, sample: Sample) -> Iterator[ItemTrait]:
    accepted = split_answers(sample.fields)
    yield ItemTrait("answer type", sample.label_text)
    yield ItemTrait("accepted answers per question", len(accepted))
    if "unit" in sample.fields:
        yield ItemTrait("unit", sample.fields["unit"])
    shown = {name: text for name, text in sample.fields.items() if name not in HIDDEN}
    for name, text in shown.items():
        yield ItemTrait(f"words per {name}", count_units(text))
    context = [text for name, text in shown.items() if name != QUESTION]
    gold = accepted[0].casefold()
    if sample.label == _TEXT.id and context and not any(gold in _fold(text) for text in context):
        yield ItemTrait(REMARK, "the first answer does not occur verbatim in the context")
    if sample.label == _NUMERIC.id and _differ(accepted, sample.fields.get("tolerance", "0")):
        yield ItemTrait(REMARK, "accepted answers differ by more than the tolerance")


def _differ(accepted: Sequence[str], tolerance: str) -> bool:
    """Return whether numbers differ by more than the tolerance, a number or a percentage.

    Percentages are shares, even if another accepted answer is written as a share.
    """
    found = [(text, _DIGITS.search(text)) for text in accepted]
    numbers = [
        float(each[0].replace(",", "")) / (100 if "%" in text else 1)
        for text, each in found
        if each
    ]
    allowed = float(tolerance.removesuffix("%")) / 100
    if tolerance.endswith("%"):
        allowed *= max(map(abs, numbers), default=0)
    elif "%" not in accepted[0]:
        allowed *= 100
    return bool(numbers) and max(numbers) - min(numbers) > allowed


_DIGITS: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


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


def _titles(fields: Texts, label: str) -> dict[str, str]:
    """Return the fields' titles; the title of the answers has their type, unit and tolerance."""
    told = [label.replace("_", " or ")]
    told += [f"in {fields['unit']}"] if "unit" in fields else []
    told += [f"tolerance {fields['tolerance']}"] if "tolerance" in fields else []
    titles = {name: name for name in fields if name not in HIDDEN}
    titles[ANSWERS] = f"accepted answers ({', '.join(told)})"
    return titles | ({PROGRAM: "calculation"} if PROGRAM in fields else {})


def _is_answer(fields: Texts, label: str) -> bool:
    return ANSWERS in fields and label in get_args(AnswerType)


ANSWER = Kind(
    describe=lambda task: f"a short answer: {', '.join(known.name for known in TYPES)}",
    name="answer",
    labels=lambda task: TYPES,
    required=lambda task: (*task.fields, ANSWERS),
    needed_fields=(QUESTION,),
    optional=("answer_type", *CARRIED, PROGRAM, "choices"),
    find_columns=partial(match_names, common=_NAMES),
    traits=_traits,
    gold=lambda fields, name: split_answers(fields)[0],
    is_read_as_text=True,
    make_reader=lambda task: partial(_read, task),
    columns=_columns,
    write=_write,
    restore=_restore,
    check_stored=_check_stored,
    adapt=_adapt,
    compared=cut_gold,
    display=Display(
        hub_task="question-answering",
        gold_word="answer",
        label_title="answer type",
        about="Each sample is a question with the short answers that are accepted.",
        columns={
            ANSWERS: "the accepted answers; the first is the gold",
            "answer_type": f"what the answer is: {', '.join(get_args(AnswerType))}",
            "unit": "the unit of a number; empty if it has none",
            "tolerance": "by how much a number may differ, absolute or as a percentage",
            PROGRAM: "the calculation of a number; empty if none is known",
        },
        titles=_titles,
        rated=lambda fields, label: {
            name: text for name, text in fields.items() if name not in HIDDEN
        },
        is_of_kind=_is_answer,
    ),
)

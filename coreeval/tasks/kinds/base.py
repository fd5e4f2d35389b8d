"""The definition of a kind of task: its columns, and converting rows to samples and back."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from coreeval.schema import Label, Sample, Task, TaskKind

ColumnType = Literal["string", "int64", "strings"]
"""The type of a column in Parquet; `strings` is a list of strings."""
Values = Mapping[str, object]
"""The values of a row, by column."""
BLANK: Final = " \t\r\n"
"""The characters stripped from both ends of a text; spaces inside it are never changed."""

LONGEST_TEXT: Final = 400_000
"""The most characters of a text, about 100,000 tokens of English (own choice): several roles see
it, some of them together with another text."""
LONGEST_QUESTION: Final = 15_000
"""The most characters of a field `question`, about 2,500 English words (own choice)."""
QUESTION: Final = "question"
CONTEXT: Final = "context"


class ItemDefect(ValueError):
    """The reason that a row is not a valid sample, for the list of bad rows."""


@dataclass(frozen=True, kw_only=True)
class ItemParts:
    """The content of a row: the text of each field, and the label."""

    fields: dict[str, str]
    label: Label


class PublishedItem(NamedTuple):
    """The fields and the label of a row of an arm; their types are not checked."""

    fields: Mapping[str, object]
    label: object
    label_text: object


class ItemTrait(NamedTuple):
    """A property that is counted over the samples of a benchmark, for checks."""

    name: str
    value: int | str
    """A number, or a category of the sample."""


REMARK: Final = "remark"
"""The name of a trait that deserves a look but is not a defect."""


Texts = Mapping[str, str]
"""The fields of a sample."""


def cut_gold(task: Task, fields: Texts) -> dict[str, str]:
    """Return the task's own fields, which do not hold the gold."""
    return {name: fields[name] for name in task.fields if name not in task.hidden_fields}


@dataclass(frozen=True, kw_only=True)
class Display:
    """How samples of a kind are shown to people: on pages, in sheets, in dataset cards."""

    hub_task: str
    """The `task_categories` of the dataset card on the Hugging Face hub."""
    gold_word: str
    """The thing that a judge or target must find, in one word."""
    label_title: str
    """The meaning of a sample's label."""
    label_note: str = ""
    """The meaning of shares by label; a sentence, or empty."""
    about: str = ""
    """A description of a sample in one sentence; empty if the label space describes it."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the columns of an arm that are not the task's own fields."""
    titles: Callable[[Texts, str], Mapping[str, str]]
    """Returns the titles of the fields to show to people, in order; a field without a title is part
    of another one's title."""
    rated: Callable[[Texts, str], Mapping[str, str]] = lambda fields, label: fields
    """Returns the texts that raters see next to the gold."""
    is_of_kind: Callable[[Texts, str], bool]
    """Returns whether a sample with these fields and this label name can be of this kind."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of task: everything that `coreeval.tasks` and the readers of rows need."""

    name: TaskKind
    labels: Callable[[Task], tuple[Label, ...]]
    """Returns the label space of a task whose file does not state one."""
    required: Callable[[Task], tuple[str, ...]]
    """Returns the required columns of a benchmark."""
    needed_fields: tuple[str, ...] = ()
    """The required fields of a task of this kind."""
    optional: tuple[str, ...] = ()
    """The optional columns of a benchmark."""
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns that together replace a required one, by its name."""
    find_columns: Callable[[Sequence[str]], Mapping[str, str]] = lambda present: {}
    """Returns the columns of a file with other common names, by our names."""
    traits: Callable[[Task, Sample], Iterator[ItemTrait]] = lambda task, sample: iter(())
    """Yields the counted properties of a sample."""
    gold: Callable[[Mapping[str, str], str], str] = lambda fields, label_text: label_text
    """Returns the gold of a sample in words, given its fields and the name of its label."""
    is_read_as_text: bool = False
    """Whether a blind judge's verdict on a sample is a text, such as an answer in words."""
    make_reader: Callable[[Task], Callable[[Values], ItemParts]]
    """Returns the function that reads a row by column, and raises ItemDefect if it is not a valid
    sample."""
    columns: Callable[[Task], Mapping[str, ColumnType]]
    """Returns the columns of a published arm that hold the sample."""
    write: Callable[[Task, Mapping[str, str], Label], dict[str, object]]
    """Returns the values of these columns for a sample's fields and label."""
    restore: Callable[[Values], PublishedItem]
    """Returns the sample that `write` wrote, given the values of these columns; raises ItemDefect
    if `write` cannot have written them."""
    check_stored: Callable[[Texts], None] = lambda fields: None
    """Raises ItemDefect if a stored sample has values that no reader of rows accepts."""
    adapt: Callable[[Task, Sequence[str]], Task]
    """Returns the task of a sample with these fields."""
    compared: Callable[[Task, Texts], dict[str, str]]
    """Returns the texts of a sample that a target may have read, without the gold, for detectors of
    memory and overlap."""
    display: Display
    template_variables: tuple[str, ...] = ("item",)
    """Additional variables of templates besides fields, `$labels` and `$target`; `$item` shows all
    fields that are not hidden."""
    used_labels: Callable[[Task, Iterable[Mapping[str, str]]], list[str]] = lambda task, texts: [
        label.name for label in task.labels
    ]
    """Returns the names of the labels that samples with these texts can have."""
    describe: Callable[[Task], str]
    """Returns a short description of the gold of a task's samples."""
    gold_variable: str = ""
    """The variable that lists the possible answers; empty if any answer is possible."""


def match_names(present: Sequence[str], common: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the columns with common names, by our names; names with several matches are left out.

    Args:
        present: The columns of a file.
        common: Common names by ours, in lower case and without `_`, `-` and spaces.
    """
    folded = {fold_column(name): name for name in reversed(present)}
    found = {
        ours: [folded[name] for name in names if name in folded] for ours, names in common.items()
    }
    return {ours: columns[0] for ours, columns in found.items() if len(columns) == 1}


def fold_column(name: str) -> str:
    """Return the name of a column in lower case and without `_`, `-` and spaces."""
    return "".join(letter for letter in name.casefold() if letter not in "_- ")


def count_units(text: str) -> int:
    """Return the length of a text: its words, or its letters in a script without spaces."""
    return len(text.split()) + len(UNSPACED.findall(text))


UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
"""Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese and
Chinese."""


def read_texts(task: Task, values: Values) -> dict[str, str]:
    """Return the texts of the task's fields.

    Raises:
        ItemDefect: one of them is missing, empty, not a text, or too long.
    """
    return {name: read_bounded_text(values, name) for name in task.fields}


def read_bounded_text(values: Values, name: str) -> str:
    """Return the text of a field as `read_text` does; raise ItemDefect also if it is too long."""
    text = read_text(values, name)
    most = LONGEST_QUESTION if name == QUESTION else LONGEST_TEXT
    if len(text) > most:
        advice = (
            "a passage needs its own field, such as fields: [context, question]"
            if name == QUESTION
            else "shorten it, or remove the row"
        )
        raise ItemDefect(
            f"the {name} field has {len(text):,} characters, but the maximum is {most:,}; {advice}"
        )
    return text


def read_text(values: Values, name: str) -> str:
    """Return the text of a field.

    Raises:
        ItemDefect: it is missing, empty or not a text.
    """
    text = values.get(name)
    if text is None:
        raise ItemDefect(f"the {name} field is missing")
    if not isinstance(text, str):
        raise ItemDefect(f"the {name} field must be a text, not {type(text).__name__}")
    if not text.strip():
        raise ItemDefect(f"the {name} field is empty")
    return check_encodable(name, text.strip(BLANK))


def check_encodable(name: str, text: str) -> str:
    """Return a text; raise ItemDefect if it has half a character (a lone surrogate)."""
    if not is_encodable(text):
        raise ItemDefect(f"the {name} field contains an incomplete character (a lone surrogate)")
    return text


def is_encodable(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; JSON may contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_list(value: object, name: str) -> list[str]:
    """Return the texts of a list, given as a list or as JSON; numbers become texts.

    Raises:
        ItemDefect: it is not a list of texts.
    """
    given = _parse_json(value) if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ItemDefect(
            f"{name} must be a list, not {type(given).__name__}; in a table, write a list "
            'as JSON: ["one", "two"]'
        )
    return [_write_value(each, name) for each in given]


def parse_object(value: object, name: str) -> object:
    """Return the object that a text in a cell is as JSON; any other value unchanged.

    Raises:
        ItemDefect: the text is an object in another form, such as Python's, or has no `text`.
    """
    if not isinstance(value, str) or not _OBJECT.match(value):
        return value
    found = _parse_json(value)
    if not isinstance(found, Mapping) or "text" not in found:
        raise ItemDefect(
            f"{name} is an object, but not JSON with the key text; in a table, write "
            '{"text": ["one", "two"]} or ["one", "two"]'
        )
    return found


_OBJECT: Final = re.compile(r"""\s*\{\s*(["'])\w+\1\s*:""")


def _write_value(value: object, name: str) -> str:
    """Return a text with each run of spaces replaced by one space, or a number as text."""
    if isinstance(value, Mapping) and "text" in value:  # with its letter or start position
        value = value["text"]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ItemDefect(f"{name} must be a list of texts, but contains {type(value).__name__}")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ItemDefect(f"{name} has a number that is not finite")
        value = int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value
    return check_encodable(name, " ".join(str(value).split()))


_LARGEST_EXACT: Final = 1 << 53
"""The largest integer up to which floats represent every integer."""


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

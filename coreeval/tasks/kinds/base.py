"""What a kind of task must know: its columns, how a row becomes fields and a label, and back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from coreeval.schema import Label, Task, TaskKind

ColumnType = Literal["string", "int64", "strings"]
"""The type of a column in Parquet; `strings` is a list of strings."""
Values = Mapping[str, object]
"""The values of a row by column."""
BLANK: Final = " \t\r\n"
"""The characters stripped from the ends of a text; spaces inside it are never changed."""


class ItemDefect(ValueError):
    """The reason that a row is no sample, for the list of bad rows."""


@dataclass(frozen=True, kw_only=True)
class ItemParts:
    """What a row says: the text of each field, and its label."""

    fields: dict[str, str]
    label: Label


class PublishedItem(NamedTuple):
    """The fields and the label of a row of an arm, of whatever types somebody wrote there."""

    fields: Mapping[str, object]
    label: object
    label_text: object


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of task: everything that `coreeval.tasks` and the readers of rows know of it."""

    name: TaskKind
    labels: Callable[[Task], tuple[Label, ...]]
    """Returns the label space of a task whose file does not state one."""
    required: Callable[[Task], tuple[str, ...]]
    """Returns the columns that a benchmark must have."""
    optional: tuple[str, ...] = ()
    """The columns that it may have besides."""
    make_reader: Callable[[Task], Callable[[Values], ItemParts]]
    """Returns the function that reads a row by column, and raises ItemDefect if it is no sample."""
    columns: Callable[[Task], Mapping[str, ColumnType]]
    """Returns the columns of a published arm that hold the sample."""
    write: Callable[[Task, Mapping[str, str], Label], dict[str, object]]
    """Returns the values of these columns for a sample's fields and label."""
    restore: Callable[[Values], PublishedItem]
    """Returns the sample that `write` wrote, from the values of these columns; raises ItemDefect if
    it cannot have written them."""
    adapt: Callable[[Task, Sequence[str]], Task]
    """Returns the task of a sample with these fields."""
    template_variables: tuple[str, ...] = ("item",)
    """What a template may name besides fields, `$labels` and `$target`: `$item` shows all fields
    that are not hidden."""
    gold_variable: str = ""
    """The variable that spells out what the answer can be; empty where it can be anything."""


def read_text(values: Values, name: str) -> str:
    """Return the text of a field.

    Raises:
        ItemDefect: it is missing, empty or no text.
    """
    text = values.get(name)
    if text is None:
        raise ItemDefect(f"the field {name} is missing")
    if not isinstance(text, str):
        raise ItemDefect(f"the field {name} is no text but {type(text).__name__}")
    if not text.strip():
        raise ItemDefect(f"the field {name} is empty")
    return check_encodable(name, text.strip(BLANK))


def check_encodable(name: str, text: str) -> str:
    """Return a text; raise ItemDefect if it has half a character (a lone surrogate)."""
    if not is_encodable(text):
        raise ItemDefect(f"the field {name} holds half a character (a lone surrogate)")
    return text


def is_encodable(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; JSON may contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_list(value: object, name: str) -> list[str]:
    """Return the texts of a list, given as one or as JSON; numbers are written out.

    Raises:
        ItemDefect: it is no list of texts.
    """
    given = _parse_json_list(value) if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ItemDefect(f"{name} must be a list, and is {type(value).__name__}")
    found = list[str]()
    for each in given:
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise ItemDefect(f"{name} must be a list of texts, and has {type(each).__name__}")
        found.append(check_encodable(name, " ".join(str(each).split())))
    return found


def _parse_json_list(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

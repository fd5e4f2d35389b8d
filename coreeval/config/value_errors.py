"""Describes what is wrong with one value: the value, and an example of a valid one."""

from typing import Final

from pydantic_core import ErrorDetails

from coreeval.config.credentials import hide_credentials

MOST_VALUE: Final = 60
"""The most characters of a value that a message repeats."""
_WHOLE: Final = "is not a whole number, such as 10"
_NUMBER: Final = "is not a number, such as 0.5"
_BOOLEAN: Final = "is neither true nor false"
_DATE: Final = "is not a date: write YYYY-MM-DD, such as 2026-03-15"
_LIST: Final = "is not a list, such as [a, b]"
_MAPPING: Final = "is not a mapping of keys to values"
_WORDS: Final = {
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "is too large a number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": "is not a finite number",
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "string_type": "is not a text: put it in quotes",
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_type": _DATE,
    "datetime_parsing": _DATE,
    "datetime_from_date_parsing": _DATE,
    "datetime_object_invalid": _DATE,
    "datetime_type": _DATE,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "dict_type": _MAPPING,
    "mapping_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "literal_error": "is not one of {expected}",
    "enum": "is not one of {expected}",
    "greater_than": "is too small: it must be more than {gt}",
    "greater_than_equal": "is too small: it must be at least {ge}",
    "less_than": "is too large: it must be less than {lt}",
    "less_than_equal": "is too large: it must be at most {le}",
    "too_short": "has too few entries: it needs at least {min_length}",
    "too_long": "has too many entries: it may have at most {max_length}",
    "string_too_short": "is too short: it needs at least {min_length} characters",
    "string_too_long": "is too long: it may have at most {max_length} characters",
}
"""Descriptions of pydantic's error types, worded to follow the value."""


def describe_value_error(details: ErrorDetails) -> str:
    """Describe what is wrong with a value, which is repeated and may come from anywhere."""
    if details["type"] == "missing":
        return "this key is required"
    words = _WORDS.get(details["type"])
    if words is None:
        return str(details["msg"]).removeprefix("Value error, ")
    return f"{_show(details['input'])} {words.format_map(details.get('ctx', {}))}"


def _show(value: object) -> str:
    """Return a value as a person would write it, cut to a length for messages."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return str(value).lower()
    shown = hide_credentials(repr(value))
    return shown if len(shown) <= MOST_VALUE else f"{shown[:MOST_VALUE]}…"

"""What an answer about a series says: a value, one of two dates, or nothing, by written rules."""

from coreeval.evaluation.numleak.parsing.choices import ReadChoice, read_choice
from coreeval.evaluation.numleak.parsing.reading import (
    BadReply,
    Readings,
    points_of,
)
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value

__all__ = [
    "BadReply",
    "ReadChoice",
    "ReadValue",
    "Readings",
    "points_of",
    "read_choice",
    "read_value",
]

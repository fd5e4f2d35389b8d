"""Parsers of answers about a series, by documented rules: a value, one of two dates, or nothing."""

from coreeval.evaluation.numleak.parsing.points import AnswerReadings, BadReply, read_points
from coreeval.evaluation.numleak.parsing.probe_answers import ReadChoice, read_choice
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value

__all__ = [
    "AnswerReadings",
    "BadReply",
    "ReadChoice",
    "ReadValue",
    "read_choice",
    "read_points",
    "read_value",
]

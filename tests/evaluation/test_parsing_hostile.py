"""However an answer is made up, reading it takes time in proportion to its length at most."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import pytest

from coreeval.evaluation import answer_parsers
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.evaluation.numleak.parsing import read_choice, read_value
from coreeval.evaluation.numleak.parsing.probe_answers import read_disputed, read_prose, read_score
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import load_units
from coreeval.models.answer_text import extract_final_answer, extract_json
from coreeval.models.answers import InvalidAnswer
from coreeval.schema import Label
from coreeval.tasks import load_task

MONTH: Final = Period.parse("2008-09", "monthly")
PERCENT: Final = load_units()["percent"]
EMOTION: Final = LabelShape(load_task("emotion"))
NAME: Final = "the Fama-French market excess return (Mkt-RF) factor, Mkt-RF, monthly return"
LENGTH: Final = 250_000
SECONDS: Final = 1.5


def label(text: str) -> None:
    with suppress(InvalidAnswer):
        EMOTION.parse(text)


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "value": lambda text: read_value(text, unit=PERCENT, period=MONTH, name=NAME),
    "prose": lambda text: read_prose(text, unit=PERCENT, period=MONTH, name=NAME),
    "disputed": lambda text: read_disputed(text, stated=-42.0, unit=PERCENT, period=MONTH),
    "score": lambda text: read_score(text, period=MONTH),
    "date": lambda text: read_choice(text, first=MONTH, second=MONTH.shift(1)),
    "option": lambda text: answer_parsers.read_choice(text, {"A": "tin", "B": "gold"}),
    "label": label,
    "final answer": extract_final_answer,
    "JSON": extract_json,
}
SIGNS: Final = (
    *(" ", "1", "-", "(", "\n", "{", "[", "}", '"', "\\", "/", "*", "_", "~", "$", "<", "\t", "`"),
    *("1. ", "1,", "a: ", "a|b\n", "1|2\n", "a,b\n", '{"a":', "```\n", "x```\n", "\\boxed{"),
    *("<think>", "</think>", "<answer>", "<|channel|>", "March 2020 ", "2020-03,"),
    *(
        "joy ",
        "not joy ",
        "A ",
        "A is ",
        "the answer is ",
        "s&p 1,",
        "the market return ",
        "is the ",
    ),
)


@pytest.mark.parametrize("reader", READERS)
def test_many_of_one_sign_are_read_at_once(reader: str) -> None:
    for sign in SIGNS:
        text = sign * (LENGTH // len(sign))
        started = time.process_time()
        READERS[reader](text)
        assert time.process_time() - started < SECONDS, sign


def test_options_of_any_length_are_normalised_once_for_an_answer() -> None:
    options = {letter: f"{letter * 3} " * 100_000 for letter in "ABCD"}
    for text in ("I think (A) ", "the answer is A. ", "A is wrong. ", '{"answer": "A"} '):
        started = time.process_time()
        answer_parsers.read_choice(text * (20_000 // len(text)), options)
        assert time.process_time() - started < SECONDS, text


def test_words_that_introduce_an_option_are_read_at_once() -> None:
    options = {letter: f"option {letter}" for letter in "ABCD"}
    for words in ("option ", "option choice is the ", "antwort ist ", "A is the most likely "):
        text = words * (20_000 // len(words))
        started = time.process_time()
        answer_parsers.read_choice(text, options)
        assert time.process_time() - started < SECONDS, words


def test_many_stops_and_labels_with_stops_are_read_at_once() -> None:
    labels = tuple(
        Label(id=at, name=name, meaning=name) for at, name in enumerate(["1", "1.5", "a.b"])
    )
    shape = LabelShape(load_task("emotion").model_copy(update={"labels": labels}))
    for sign in ("1.", "1.0", "1.50", ".0", "a.", "a.b", "a.b.", "-1.5", "1.0000000", "1!?"):
        started = time.process_time()
        with suppress(InvalidAnswer):
            shape.parse(sign * (LENGTH // len(sign)))
        assert time.process_time() - started < SECONDS, sign

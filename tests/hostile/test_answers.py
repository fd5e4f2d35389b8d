"""Answers made to take long to read: each is read, or refused, in bounded time."""

import time

import pytest
from pydantic import BaseModel, ConfigDict

from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.models.answer_text import MOST_REPAIRED, strip_thoughts
from coreeval.models.answers import MOST_ANSWER_CHARACTERS, MOST_VALUES, InvalidAnswer, OutputSchema
from coreeval.tasks import load_task

LONGEST_S = 0.5
"""CPU time that one answer of the greatest length may take here; 0.04 s when this was written."""


class Item(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid")
    a: int
    b: str


class Answer(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(extra="forbid")
    items: tuple[Item, ...]


SHAPE = OutputSchema(Answer)
LABELS = LabelShape(load_task("emotion"))
KEYS = ",".join(f'"k{number}":0' for number in range(MOST_ANSWER_CHARACTERS // 13))
ANSWERS = {
    "thoughts opened": "<think>" * (MOST_ANSWER_CHARACTERS // 7),
    "thoughts closed": "</think>" * (MOST_ANSWER_CHARACTERS // 8),
    "thoughts of two names": "<think><thought>" * (MOST_ANSWER_CHARACTERS // 16),
    "no colon": '{"a",' + '"a",' * (MOST_ANSWER_CHARACTERS // 4 - 2) + "}",
    "quotes": "{" + '"' * (MOST_ANSWER_CHARACTERS - 2) + "}",
    "braces": "{x"
    + "{" * (MOST_ANSWER_CHARACTERS // 2 - 2)
    + "}" * (MOST_ANSWER_CHARACTERS // 2 - 2),
    "brackets": '{"items":' + "[" * (MOST_ANSWER_CHARACTERS // 2),
    "a key twice": f'{{{KEYS},"k{MOST_ANSWER_CHARACTERS // 13 - 1}":0}}',
    "other keys": f"{{{KEYS}}}",
    "empty items": '{"items":[' + ",".join(["{}"] * (MOST_ANSWER_CHARACTERS // 4)) + "]}",
    "numbers": '{"items":[' + "1," * (MOST_ANSWER_CHARACTERS // 2 - 9) + "1]}",
    "good items": '{"items":['
    + ",".join(['{"a":1,"b":"x"}'] * (MOST_ANSWER_CHARACTERS // 17))
    + "]}",
    "nested objects": '{"a":' * 900 + "1" + "}" * 900,
    "nested lists": '{"items":' + "[" * 900 + "]" * 900 + "}",
    "labels": "joy " * (MOST_ANSWER_CHARACTERS // 4 - 1),
    "quotes in a string": '{"a":"' + '"' * (MOST_REPAIRED - 8) + '"}',
    "a number": '{"items":' + "9" * (MOST_ANSWER_CHARACTERS - 20) + "}",
}


@pytest.mark.parametrize("shape", [SHAPE, LABELS], ids=["object", "label"])
@pytest.mark.parametrize("mend", [True, False])
@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS.keys())
def test_no_answer_takes_long_to_read(
    text: str, mend: bool, shape: OutputSchema[BaseModel]
) -> None:
    began = time.process_time()
    with pytest.raises(InvalidAnswer):
        shape.parse(text, mend=mend)
    assert time.process_time() - began < LONGEST_S


def test_an_answer_may_have_so_many_values_and_no_more() -> None:
    items = ['{"a":1,"b":"x"}'] * (MOST_VALUES // 3)  # a brace and two commas each, nearly
    assert len(SHAPE.parse(f'{{"items":[{",".join(items[:-1])}]}}').items) == len(items) - 1
    with pytest.raises(InvalidAnswer, match="more than 20,000 values"):
        SHAPE.parse(f'{{"items":[{",".join([*items, items[0]])}]}}')


def test_thoughts_of_a_megabyte_take_time_in_proportion() -> None:
    began = time.process_time()
    assert strip_thoughts("<think>" * 150_000) == ""
    assert time.process_time() - began < LONGEST_S

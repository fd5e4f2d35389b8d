"""Answers are read strictly, and the schema says exactly what is read."""

import json
from math import inf, nan
from typing import Annotated, Literal

import pytest
from pydantic import BeforeValidator

from coreeval.models.answers import (
    FIRST_TOKENS,
    InvalidAnswer,
    OutputSchema,
    dump_first_tokens,
    refuse_truth_value,
)
from coreeval.schema import Value


class Part(Value):
    field: str
    score: int | None
    kind: Literal["a", "b"] = "a"


class Whole(Value):
    parts: tuple[Part, ...] = ()
    fields: dict[str, str]
    only: Literal["x"] = "x"


SHAPE = OutputSchema(
    Whole, name="whole", choices={"field": ("one", "two")}, records={"fields": ("one", "two")}
)
GOOD = (
    '{"parts":[{"field":"one","score":null,"kind":"b"}],"fields":{"one":"1","two":"2"},"only":"x"}'
)


def test_a_good_answer_is_read() -> None:
    part = Part(field="one", score=None, kind="b")
    assert SHAPE.parse(GOOD) == Whole(parts=(part,), fields={"one": "1", "two": "2"}, only="x")


def test_the_schema_is_strict_and_holds_what_the_task_adds() -> None:
    fields = {"one": {"type": "string"}, "two": {"type": "string"}}
    part = {
        "field": {"type": "string", "enum": ["one", "two"]},
        "score": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "kind": {"type": "string", "enum": ["a", "b"]},
    }
    assert SHAPE.schema == {
        "$defs": {
            "Part": {
                "type": "object",
                "properties": part,
                "required": ["field", "score", "kind"],
                "additionalProperties": False,
            }
        },
        "type": "object",
        "properties": {
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
            "fields": {
                "type": "object",
                "properties": fields,
                "required": ["one", "two"],
                "additionalProperties": False,
            },
            "only": {"type": "string", "enum": ["x"]},
        },
        "required": ["parts", "fields", "only"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"Here you are: {GOOD}", "it is not one JSON object"),
        (GOOD + GOOD, "it is not one JSON object"),
        ("[]", "answer"),
        ("null", "answer"),
        (GOOD.replace('"only":"x"', '"only":"x","only":"x"'), "'only' stands twice"),
        (GOOD.replace('"score":null', '"score":NaN'), "NaN is not JSON"),
        (GOOD.replace('"score":null', '"score":' + "9" * 5000), "cannot be read"),
        ("[" * 10_000, "cannot be read"),
        (GOOD.replace('"1"', '"\\ud800"'), "surrogate"),
        (GOOD.replace('"kind":"b"', '"kind":"c"'), "parts.0.kind"),
        (GOOD.replace(',"kind":"b"', ""), "parts[0].kind is missing"),
        (GOOD.replace(',"only":"x"', ""), "only is missing"),
        (GOOD.replace('"only":"x"', '"only":"x","more":1'), "more"),
        (GOOD.replace('"field":"one"', '"field":"three"'), "allowed: one, two"),
        (GOOD.replace(',"two":"2"', ""), "exactly the keys one, two"),
        (GOOD.replace('"two":"2"', '"two":"2","three":"3"'), "exactly the keys"),
    ],
)
def test_what_is_no_answer(text: str, says: str) -> None:
    with pytest.raises(InvalidAnswer, match=says.replace("[", r"\[").replace("]", r"\]")):
        SHAPE.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"<think>\nwhich?\n</think>\n{GOOD}",
        f"<think>a</think>\n```\n{GOOD}\n```",
        f"\n {GOOD} \n",
    ],
)
@pytest.mark.parametrize("mend", [True, False])
def test_thoughts_and_one_fence_are_passed_over(text: str, mend: bool) -> None:
    assert SHAPE.parse(text, mend=mend) == SHAPE.parse(GOOD)


@pytest.mark.parametrize("text", ["<think>all of it was thought", "```\n\n```", "<think></think>"])
def test_what_holds_nothing_is_empty(text: str) -> None:
    with pytest.raises(InvalidAnswer, match=r"^empty$"):
        SHAPE.parse(text)


def test_slips_are_mended_only_where_that_is_asked_for() -> None:
    slipped = f"Here you are: {GOOD[:-1]},}} Anything else?"
    assert SHAPE.parse(slipped, mend=True) == SHAPE.parse(GOOD)
    with pytest.raises(InvalidAnswer):
        SHAPE.parse(slipped)


@pytest.mark.parametrize(
    "text",
    [
        "no object at all",
        GOOD[:-1],
        GOOD[: len(GOOD) // 2],
        GOOD.replace(',"only":"x"', ""),
        GOOD.replace('"kind":"b"', '"kind":"c"'),
        '{"a":' * 100_000 + "}",
        "{" + "[" * 100_000 + "}",
    ],
    ids=lambda text: text[:40],
)
def test_what_is_missing_or_wrong_is_not_mended(text: str) -> None:
    with pytest.raises(InvalidAnswer):
        SHAPE.parse(text, mend=True)


def test_the_complaint_is_bounded_and_does_not_repeat_the_answer() -> None:
    parts = ",".join('{"field":"one","score":"SECRET","kind":"a"}' for _ in range(50))
    with pytest.raises(InvalidAnswer) as caught:
        SHAPE.parse(GOOD.replace('{"field":"one","score":null,"kind":"b"}', parts))
    assert "and 47 more" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "SECRET" not in str(caught.value)


def test_a_class_that_no_strict_schema_can_say() -> None:
    with pytest.raises(TypeError, match="strict schema cannot express"):
        OutputSchema(Whole)


def told(*tokens: str, logprob: float = -0.5) -> dict[str, object]:
    return {"content": [{"token": one, "logprob": logprob, "top_logprobs": []} for one in tokens]}


def kept(told: object, text: str) -> list[str]:
    found = dump_first_tokens(told, text)
    return [one["token"] for one in json.loads(found)] if found else []


def test_the_first_tokens_are_kept_and_no_more() -> None:
    assert kept(told("-", "3"), "-3") == ["-", "3"]
    many = ["a "] * 99
    assert len(kept(told(*many), "".join(many))) == FIRST_TOKENS


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["<think>", "4?", "</think>", "\n", "-", "3"], "<think>4?</think>\n-3"),
        (["4", "?", " so", "-", "3"], "-3"),  # a server that keeps thoughts apart
    ],
)
def test_thoughts_are_passed_over(tokens: list[str], text: str) -> None:
    assert kept(told(*tokens), text) == ["-", "3"]


def test_where_tokens_are_not_the_text_all_are_kept() -> None:
    assert kept(told("\ufffd", "\ufffd", "3"), "\u22123") == ["\ufffd", "\ufffd", "3"]


@pytest.mark.parametrize(
    "nothing",
    [None, nan, [], {}, {"content": None}, {"content": []}, {"content": [{"token": 3}]},
     {"tokens": ["a"], "token_logprobs": [-1]}, told("a", logprob=-inf)],
)  # fmt: skip
def test_what_is_no_list_of_tokens_is_nothing(nothing: object) -> None:
    assert dump_first_tokens(nothing, "a") == ""


def test_rounding_and_half_characters_do_no_harm() -> None:
    beside = [{"token": "b", "logprob": -inf}, {"token": "c", "logprob": 1e-9}]
    place = {"token": "\ud83d", "logprob": 1e-7, "top_logprobs": beside}
    (found,) = json.loads(dump_first_tokens({"content": [place]}, "x"))
    assert found == {"token": "?", "logprob": 0.0, "top_logprobs": [{"token": "c", "logprob": 0.0}]}


@pytest.mark.parametrize("number", ['"1"', "true", "1.0", "1.5", '"1 "'])
def test_a_number_is_neither_a_text_nor_a_truth_value(number: str) -> None:
    said = GOOD.replace("null", number)
    with pytest.raises(InvalidAnswer, match=r"parts\.0\.score: Input should be a valid integer"):
        SHAPE.parse(said)
    assert SHAPE.parse(GOOD.replace("null", "1")).parts[0].score == 1


class Rated(Value):
    fluency: Annotated[Literal[1, 2, 3], BeforeValidator(refuse_truth_value)]
    natural: bool = True


@pytest.mark.parametrize(
    "said", ['{"fluency": true, "natural": true}', '{"fluency": 1, "natural": 1}']
)
def test_a_truth_value_is_not_a_number(said: str) -> None:
    shape = OutputSchema(Rated)
    with pytest.raises(InvalidAnswer, match=r"truth value|valid boolean"):
        shape.parse(said)
    assert shape.parse('{"fluency": 1, "natural": true}').fluency == 1

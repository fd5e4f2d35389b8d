"""The first tokens of an answer: from where it begins, in the form in which they came."""

import json
from math import inf, nan

import pytest

from coreeval.models.logprobs import FIRST, first_tokens


def told(*tokens: str, logprob: float = -0.5) -> dict[str, object]:
    return {"content": [{"token": one, "logprob": logprob, "top_logprobs": []} for one in tokens]}


def kept(told: object, text: str) -> list[str]:
    found = first_tokens(told, text)
    return [one["token"] for one in json.loads(found)] if found else []


def test_the_first_tokens_are_kept_and_no_more() -> None:
    assert kept(told("-", "3"), "-3") == ["-", "3"]
    many = ["a "] * 99
    assert len(kept(told(*many), "".join(many))) == FIRST


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
    assert first_tokens(nothing, "a") == ""


def test_rounding_and_half_characters_do_no_harm() -> None:
    beside = [{"token": "b", "logprob": -inf}, {"token": "c", "logprob": 1e-9}]
    place = {"token": "\ud83d", "logprob": 1e-7, "top_logprobs": beside}
    (found,) = json.loads(first_tokens({"content": [place]}, "x"))
    assert found == {"token": "?", "logprob": 0.0, "top_logprobs": [{"token": "c", "logprob": 0.0}]}

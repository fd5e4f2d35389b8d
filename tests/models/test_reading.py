"""What a model said, and the JSON in it."""

import json

import pytest

from coreeval.models.reading import json_text, mended, without_thoughts

GOOD = '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (GOOD, GOOD),
        (f"<think>is it 2?</think>{GOOD}", GOOD),
        (f"<THINK>{{}}</Think>\n{GOOD}", f"\n{GOOD}"),
        (f"<thinking>a\nb</thinking><reasoning>c</reasoning>{GOOD}", GOOD),
        (f"the opening tag was swallowed </think>{GOOD}", GOOD),
        (f"<think>a</think> b </think>{GOOD}", GOOD),
        (f"{GOOD}<think>was that right?", GOOD),
        (f"<think>never closed {GOOD}", ""),
        ('{"a": "1 < 2 and <b>bold</b>"}', '{"a": "1 < 2 and <b>bold</b>"}'),
    ],
)
def test_thoughts_are_never_the_answer(text: str, left: str) -> None:
    assert without_thoughts(text) == left


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f" {GOOD}\n", GOOD),
        (f"```json\n{GOOD}\n```", GOOD),
        (f"```\n{GOOD}\n```\n", GOOD),
        (f"```JSON  \n\n{GOOD}\n\n  ```", GOOD),
        (f"<think>\n```json\n{{}}\n```\n</think>\n```json\n{GOOD}\n```", GOOD),
        ('{"a": "```json\\n1\\n```"}', '{"a": "```json\\n1\\n```"}'),
        ("", ""),
    ],
)
def test_one_code_fence_may_stand_round_an_answer(text: str, found: str) -> None:
    assert json_text(text) == found


def test_of_two_fences_nobody_knows_which_is_the_answer() -> None:
    text = "```json\n{}\n```\nor\n```json\n{}\n```"
    assert json_text(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (GOOD, {"a": 1}),
        (f"Sure! {GOOD} I hope that helps.", {"a": 1}),
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ("{'a': 'it is'}", {"a": "it is"}),
        ('{a: "x"}', {"a": "x"}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": "\u00e9\U0001f600", "b": true,}', {"a": "\u00e9\U0001f600", "b": True}),
    ],
)
def test_slips_of_json_are_mended(text: str, value: object) -> None:
    assert json.loads(mended(text)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no object",
        "} {",
        '{"a": 1',
        '{"a": [{"b": 1}, {"b":',
        '{"a": [{"b": 1}, {"b": 2}, ',
        '{"a": {"b": 1}, "c": "cut o',
    ],
)
def test_the_end_of_an_object_is_not_made_up(text: str) -> None:
    assert mended(text) == text

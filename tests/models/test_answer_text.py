"""What a model said, and the JSON in it."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.models.answer_text import (
    MOST_REPAIRED,
    extract_final_answer,
    extract_json,
    iter_objects,
    repair_json,
    repair_object,
    strip_thoughts,
)

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
        ("<think>a <reasoning>b</reasoning> c", ""),
        (f"<think>a <reasoning>b</reasoning> c</think>{GOOD}", GOOD),
        (f"[THINK]a[/THINK]{GOOD}", GOOD),
        (f"\u25c1think\u25b7a\u25c1/think\u25b7{GOOD}", GOOD),
        (f"<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>{GOOD}<|end|>", GOOD),
        ("<|channel|>analysis<|message|>a", ""),
        (f"analysisThe user asks.assistantfinal{GOOD}", GOOD),
        ("analysisThe user asks", ""),
        ("analysis of the text", "analysis of the text"),
    ],
)
def test_thoughts_are_never_the_answer(text: str, left: str) -> None:
    assert strip_thoughts(text) == left


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
    assert extract_json(text) == found


def test_of_two_fences_nobody_knows_which_is_the_answer() -> None:
    text = "```json\n{}\n```\nor\n```json\n{}\n```"
    assert extract_json(text) == text


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
    assert json.loads(repair_json(text)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not an object",
        "} {",
        '{"a": 1',
        '{"a": [{"b": 1}, {"b":',
        '{"a": [{"b": 1}, {"b": 2}, ',
        '{"a": {"b": 1}, "c": "cut o',
    ],
)
def test_the_end_of_an_object_is_not_made_up(text: str) -> None:
    assert repair_json(text) == text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("joy", "joy"),
        ("I think so. <answer>joy</answer>", "joy"),
        ("<think>a</think><answer> joy", "joy"),
        ("<answer>joy</answer> or <answer>joy</answer>", "joy"),
        ("<answer>joy</answer> or <answer>anger</answer>", "joy\nanger"),
        ("<final_answer>joy</final_answer>", "joy"),
    ],
)
def test_what_stands_in_tags_for_an_answer_is_the_answer(text: str, answer: str) -> None:
    assert extract_final_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('Here: {"a": 1} and {"b": 2}.', [{"a": 1}, {"b": 2}]),
        ("{a: 1,}", [{"a": 1}]),
        ('[{"a": 1}]', [[{"a": 1}]]),
        (r"\boxed{1} and x_{a: b}", []),
        ('{"a": 1', []),
        ("{ nothing }", []),
    ],
)
def test_the_objects_of_a_text_are_found(text: str, values: list[object]) -> None:
    found = list(iter_objects(text))
    assert [value for value, _, _ in found] == values
    assert all(text[start:end].strip()[-1] in "}]" for _, start, end in found)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_what_is_json_stays_the_same_value(
    value: dict[str, object], indent: int | None, escaped: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    mended = repair_object(text)
    assert mended is not None and json.loads(mended) == value


@given(st.text(alphabet="{}[]:,\"'\\/* \na1“”", max_size=60))
def test_whatever_comes_ends_without_an_error(text: str) -> None:
    repair_object(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "he said "hi" to me", "b": 1}', {"a": 'he said "hi" to me', "b": 1}),
        ("{'a': 'it's fine'}", {"a": "it's fine"}),
        ("{'a': 'it\\'s fine'}", {"a": "it's fine"}),
        ("{\u201ca\u201d: \u201cx\u201d}", {"a": "x"}),
        ('{a: very positive, "b": None}', {"a": "very positive", "b": None}),
        ('{"a": "one" "b": [{"c": 1} {"d": 2}]}', {"a": "one", "b": [{"c": 1}, {"d": 2}]}),
        ('{"a": 1, // first\n "b": /* second */ True}', {"a": 1, "b": True}),
        ('{"a": "\\d \\u00e9 \\n \t"}', {"a": "\\d \u00e9 \n \t"}),
        ('{"a": 1/2}', {"a": "1/2"}),
    ],
)
def test_slips_are_put_right(text: str, value: object) -> None:
    assert json.loads(str(repair_object(text))) == value


@pytest.mark.parametrize(
    "text",
    ['{"a": }', '{"a": ,}', '{"a": [1,,2]}', '{,"a": 1}', '{"a": 1,,}', '{"a" 1}'],
)
def test_a_missing_value_is_not_made_up(text: str) -> None:
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(repair_object(text) or "")


def test_an_object_that_is_too_long_is_not_mended() -> None:
    assert repair_object("{a: 1}" + " " * MOST_REPAIRED) is None


@pytest.mark.parametrize("part", ['"a",', '"', "'", "{", '{"a":[', "“a”,", "a ", "/*", "\\", "1 "])
def test_the_time_is_bounded(part: str) -> None:
    text = "{" + part * ((MOST_REPAIRED - 2) // len(part)) + "}"
    began = time.process_time()
    repair_object(text)
    assert time.process_time() - began < 0.5

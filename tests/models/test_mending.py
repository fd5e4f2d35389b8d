"""Slips of JSON: what is put right, what is left alone, and how long it may take."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.models.mending import MOST_MENDED, put_right

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
    mended = put_right(text)
    assert mended is not None and json.loads(mended) == value


@given(st.text(alphabet="{}[]:,\"'\\/* \na1“”", max_size=60))
def test_whatever_comes_ends_without_an_error(text: str) -> None:
    put_right(text)


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
    assert json.loads(str(put_right(text))) == value


@pytest.mark.parametrize(
    "text",
    ['{"a": }', '{"a": ,}', '{"a": [1,,2]}', '{,"a": 1}', '{"a": 1,,}', '{"a" 1}'],
)
def test_a_missing_value_is_not_made_up(text: str) -> None:
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(put_right(text) or "")


def test_an_object_that_is_too_long_is_not_mended() -> None:
    assert put_right("{a: 1}" + " " * MOST_MENDED) is None


@pytest.mark.parametrize("part", ['"a",', '"', "'", "{", '{"a":[', "“a”,", "a ", "/*", "\\", "1 "])
def test_the_time_is_bounded(part: str) -> None:
    text = "{" + part * ((MOST_MENDED - 2) // len(part)) + "}"
    began = time.process_time()
    put_right(text)
    assert time.process_time() - began < 0.5

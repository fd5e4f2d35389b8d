"""A call as a row and back: the same to the last byte, or not at all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from coreeval.tools.stores.call_records import (
    SHARED,
    SMALL,
    CallRecord,
    call_key,
    call_request,
    canonical_json,
    compress,
    decode_record,
    decompress,
    encode_record,
    text_hash,
)
from tests.tools.stores.call_samples import INSTRUCTIONS, record, request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=2 * SMALL)

VALUES = st.recursive(
    st.one_of(
        st.text(),
        st.integers(),
        st.booleans(),
        st.none(),
        st.floats(min_value=1e-4, max_value=1e15),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)


def there_and_back(one: CallRecord) -> CallRecord:
    row, texts = encode_record(one)
    return decode_record(row, texts.__getitem__)


def test_equal_values_are_equal_text() -> None:
    assert canonical_json({"b": [1, "\u00e9"], "a": None}) == '{"a":null,"b":[1,"\u00e9"]}'
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})


@given(VALUES)
def test_canonical_json_is_what_the_standard_library_writes(value: JsonValue) -> None:
    written = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert canonical_json({"a": value}) == f'{{"a":{written}}}'


def test_the_key_depends_on_everything_that_is_asked() -> None:
    asked = {
        "provider": "openai",
        "endpoint": "http://127.0.0.1/v1",
        "model": "m",
        "parameters": {"temperature": 0.0},
        "schema": {"name": "x"},
        "messages": [{"role": "user", "content": "hello"}],
        "draw": 0,
    }
    others = {
        "provider": "other",
        "endpoint": "http://127.0.0.1/v2",
        "model": "n",
        "parameters": {},
        "schema": {"name": "y"},
        "messages": [{"role": "system", "content": "hello"}],
        "draw": 1,
    }
    changed = [asked, *({**asked, name: value} for name, value in others.items())]
    keys = [call_key(call_request(**each)) for each in changed]  # type: ignore[arg-type]
    assert len(set(keys)) == 1 + len(others)
    assert keys[0] == call_key(call_request(**asked))  # type: ignore[arg-type]


@given(TEXTS)
def test_any_text_comes_back_from_its_bytes(text: str) -> None:
    assert decompress(compress(text)) == text


def test_long_texts_are_compressed_and_short_ones_are_not() -> None:
    assert len(compress("a" * 100 * SMALL)) < SMALL
    assert compress("a" * (SMALL - 1)).endswith(b"a" * (SMALL - 1))


@pytest.mark.parametrize("body", [b"", b"x", b"\x78\x01", b"\0\xff", compress("a" * SMALL)[:-1]])
def test_bytes_that_are_no_text_are_said_to_be_damaged(body: bytes) -> None:
    with pytest.raises(ValueError):
        decompress(body)


@given(TEXTS, TEXTS, TEXTS, st.floats(0, 1e9), st.none() | st.floats(0, 1e6))
def test_any_record_comes_back_from_its_row(
    system: str, user: str, answer: str, seconds: float, usd: float | None
) -> None:
    one = record(user, answer, system=system, seconds=seconds, usd=usd, tries=user, error=answer)
    assert there_and_back(one) == one


def test_instructions_and_schemas_are_kept_once_for_all_requests() -> None:
    rows, shared = [], dict[str, str]()
    for number in range(3):
        row, texts = encode_record(record(str(number), system=INSTRUCTIONS))
        rows.append(row)
        shared |= texts
    assert shared == {text_hash(INSTRUCTIONS): INSTRUCTIONS}
    assert all(INSTRUCTIONS not in decompress(row["request"]) for row in rows)
    assert decode_record(rows[1], shared.__getitem__) == record("1", system=INSTRUCTIONS)


def test_a_long_schema_is_shared_and_comes_back_as_it_was() -> None:
    schema = {"name": "x", "schema": {f"property {n}": {"type": "string"} for n in range(40)}}
    asked = json.loads(request("\u00e9", system=INSTRUCTIONS)) | {"schema": schema}
    one = replace(record(), request=canonical_json(asked))
    row, texts = encode_record(one)
    assert set(texts.values()) == {canonical_json(schema), INSTRUCTIONS}
    assert len(decompress(row["request"])) < SHARED + 200
    assert there_and_back(one) == one


def test_what_is_short_or_not_instructions_stands_in_the_row() -> None:
    for one in (record("x" * 9 * SHARED), record(system="x" * (SHARED - 1))):
        row, texts = encode_record(one)
        assert texts == {}
        assert decompress(row["request"]) == one.request


def test_a_text_that_looks_like_a_reference_is_none() -> None:
    sha = canonical_json({"sha256": text_hash(INSTRUCTIONS)})
    one = record(sha, sha, system=sha)
    assert there_and_back(one) == one


# -- damage -------------------------------------------------------------------------------------


def gone(_sha: str) -> str:
    raise ValueError("gone")


def test_a_shared_text_that_is_gone_is_damage() -> None:
    row, _ = encode_record(record(system=INSTRUCTIONS))
    with pytest.raises(ValueError, match="gone"):
        decode_record(row, gone)


WHOLE, TEXTS_OF = encode_record(record("b" * SMALL, "c" * SMALL, system=INSTRUCTIONS, error="e"))


def others(value: object) -> Sequence[object]:
    """Return a value with each of its bytes flipped in turn, as far as it has bytes."""
    if isinstance(value, bytes):
        flips = [(place, bit) for place in range(len(value)) for bit in range(8)]
        return [
            bytes([*value[:place], value[place] ^ 1 << bit, *value[place + 1 :]])
            for place, bit in flips
        ]
    if isinstance(value, str):
        flipped = [chr(ord(letter) ^ 1) for letter in value]
        return [f"{value[:n]}{one}{value[n + 1 :]}" for n, one in enumerate(flipped)] + [
            f"{value} "
        ]
    if isinstance(value, bool):
        return [not value]
    assert isinstance(value, int | float)
    return [value + 1, value - 1, -value - 1, None]


@pytest.mark.parametrize("column", WHOLE)
def test_any_flipped_byte_of_any_column_is_found(column: str) -> None:
    assert decode_record(WHOLE, TEXTS_OF.__getitem__).error == "e"
    for value in others(WHOLE[column]):
        with pytest.raises((ValueError, TypeError, KeyError)):
            decode_record({**WHOLE, column: value}, TEXTS_OF.__getitem__)


def test_every_column_of_a_record_is_covered() -> None:
    assert {one.name for one in fields(CallRecord)} | {"checksum"} == set(WHOLE)


def swapped(row: Mapping[str, object], one: str, other: str) -> dict[str, object]:
    return {**row, one: row[other], other: row[one]}


@pytest.mark.parametrize(
    ("one", "other"),
    [("request", "response"), ("prompt_tokens", "cached_tokens"), ("role", "method")],
)
def test_values_that_changed_places_are_found(one: str, other: str) -> None:
    with pytest.raises(ValueError, match="checksum"):
        decode_record(swapped(WHOLE, one, other), TEXTS_OF.__getitem__)


def test_a_letter_that_moved_to_the_next_column_is_found() -> None:
    row, _ = encode_record(record(method="ab", model_returned="c"))
    with pytest.raises(ValueError, match="checksum"):
        decode_record({**row, "method": "a", "model_returned": "bc"}, gone)


def test_a_price_that_became_unknown_is_found() -> None:
    row, _ = encode_record(record(usd=0.0))
    with pytest.raises(ValueError, match="checksum"):
        decode_record({**row, "usd": None}, gone)


def test_keys_and_checksums_are_those_of_stores_that_are_there() -> None:
    """Another key asks and pays again; another checksum counts each stored call as damaged."""
    one, plain = record(), record(logprobs="")
    assert one.key == "07faf010905ae44af540e0727cd908c660324ccace435cf6559c416bd9197ac6"
    checksums = [encode_record(each)[0]["checksum"] for each in (one, plain)]
    assert checksums == [
        "3dbac0ca761c9fe484b810c2bdde827151b8c068a6f2c3c91dba2d69550715ab",
        "8a096799aa103456983949f4807b8332a755d8a96c5ab0dc5684c92b0aa1b063",
    ]


@pytest.mark.parametrize(("length", "texts"), [(SHARED - 1, 0), (SHARED, 1)])
def test_instructions_are_shared_from_a_length_on(length: int, texts: int) -> None:
    one = record(system="x" * length)
    assert len(encode_record(one)[1]) == texts
    assert there_and_back(one) == one


@pytest.mark.parametrize(("length", "texts"), [(SHARED - 1, 0), (SHARED, 1)])
def test_a_schema_is_shared_from_the_same_length_on(length: int, texts: int) -> None:
    schema = {"name": "x" * (length - len('{"name":""}'))}
    one = record(request=canonical_json(json.loads(request()) | {"schema": schema}))
    assert len(encode_record(one)[1]) == texts
    assert there_and_back(one) == one


def test_a_request_that_shares_nothing_is_kept_to_the_letter() -> None:
    """Its key is the hash of these letters."""
    one = record(request=json.dumps(json.loads(request("\u00e9")), indent=1))
    assert there_and_back(one) == one


def test_a_call_without_log_probabilities_comes_back() -> None:
    assert there_and_back(record(logprobs="")) == record(logprobs="")


def test_what_nobody_told_of_a_call_is_nothing() -> None:
    told = CallRecord(key="k", draw=0, role="r", request="{}", response="", valid=False)
    numbers = (told.prompt_tokens, told.cached_tokens, told.completion_tokens, told.seconds)
    assert numbers == (0, 0, 0, 0.0) and told.usd is None

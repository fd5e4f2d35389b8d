"""Recorded replies: reading and writing their file, and the entropy of first tokens."""

import gzip
import json
from math import log
from pathlib import Path
from typing import Any

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import Records
from coreeval.evaluation.numleak.replies import (
    VARIANTS,
    Reply,
    Token,
    read_out,
    read_replies,
    token_entropy,
)
from tests.support.logprobs import FLAT, PEAKED, token, tokens

RECORD: dict[str, Any] = {
    "model": "m",
    "series": "mkt_rf",
    "date": "2020-03",
    "variant": "value",
    "response": "-13.39",
}
PAIR = {**RECORD, "variant": "pair", "other_date": "2020-04"}


def packed(lines: tuple[str | bytes | dict[str, Any], ...]) -> bytes:
    """Return lines as a file has them."""
    raw = (
        line if isinstance(line, bytes) else line.encode() if isinstance(line, str)
        else json.dumps(line).encode()
        for line in lines
    )  # fmt: skip
    return b"\n".join(raw) + b"\n"


def read(path: Path, *lines: str | bytes | dict[str, Any]) -> Records[Reply]:
    """Return what is read from a file of these lines."""
    path.write_bytes(packed(lines))
    return read_replies(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "said.jsonl"


def test_whole_records(path: Path) -> None:
    found = read(
        path,
        {**RECORD, "truth": -13.39, "tokens": 12},
        {**RECORD, "date": 202004, "response": None, "kind": "refused"},
        {**PAIR, "seed": 3},
        {**RECORD, "variant": "fictitious", "name": "Gray factor", "draw": 1},
    )
    assert not found.bad
    assert found.good == (
        Reply(model="m", series="mkt_rf", date="2020-03", response="-13.39", truth=-13.39),
        Reply(model="m", series="mkt_rf", date="202004", response=None, kind="refused"),
        Reply(model="m", series="mkt_rf", date="2020-03", variant="pair", other_date="2020-04",
              response="-13.39", seed=3),
        Reply(model="m", series="mkt_rf", date="2020-03", variant="fictitious", name="Gray factor",
              response="-13.39", draw=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({k: v for k, v in RECORD.items() if k != "model"}, "model is missing"),
        ({k: v for k, v in RECORD.items() if k != "response"}, "response is missing"),
        ({**RECORD, "series": ""}, "series: string should have at least 1 character"),
        ({**RECORD, "response": 5.44}, "response: input should be a valid string"),
        ({**RECORD, "truth": "about 5"}, "truth: input should be a valid number"),
        ({**RECORD, "truth": True}, "truth must be a number, not True"),
        (json.dumps(RECORD)[:-1] + ', "truth": NaN}', "truth must be a number, not nan"),
        ({**RECORD, "truth": 10**400}, "truth is larger than 1e+15"),
        ({**RECORD, "variant": "A"}, f"no variant 'A'; available variants: {', '.join(VARIANTS)}"),
        ({**RECORD, "variant": ["A"]}, "no variant ['A']"),
        ({**RECORD, "variant": "pair"}, "`other_date` is missing"),
        ({**RECORD, "variant": "forced_choice"}, "a forced_choice question compares two dates"),
        ({**RECORD, "variant": "fictitious"}, "`name` is missing"),
        ({**RECORD, "variant": "phrasing"}, "what was asked: `phrasing` is missing"),
        ({**RECORD, "variant": "contradiction"}, "what was asked: `stated` is missing"),
        (json.dumps(RECORD)[:-1] + ', "stated": NaN}', "stated must be a number, not nan"),
        ({**RECORD, "variant": "continuation", "shown": 8}, "what was asked: `wanted` is missing"),
        ({**RECORD, "shown": 0}, "shown: input should be greater than or equal to 1"),
        ({**RECORD, "kind": "late"}, "kind: input should be 'answered'"),
        (
            {**RECORD, "response": "\ud800"},
            "response contains an incomplete character (a lone surrogate)",
        ),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["a"]', "the value is not a JSON object"),
        (b'{"model": "\xff"}', "the line is not UTF-8"),
    ],
)
def test_a_line_that_is_no_reply_is_kept_with_its_number(
    path: Path, line: str | bytes | dict[str, Any], reason: str
) -> None:
    found = read(path, RECORD, line, {**RECORD, "date": "2020-04"})
    assert [each.date for each in found.good] == ["2020-03", "2020-04"]
    (bad,) = found.bad
    assert (bad.file, bad.line) == ("said.jsonl", 2)
    assert reason in bad.reason and len(bad.text) <= 200


def test_a_question_is_answered_once(path: Path) -> None:
    lines = (RECORD, {**RECORD, "draw": 1}, PAIR, "", {**RECORD, "response": "7"}, PAIR)
    found = read(path, *lines)
    assert [each.response for each in found.good] == ["-13.39"] * 3
    assert [bad.line for bad in found.bad] == [5, 6]
    assert "first in line 1" in found.bad[0].reason and "`draw`" in found.bad[0].reason
    assert "first in line 3" in found.bad[1].reason


def test_packed_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl.gz"
    path.write_bytes(gzip.compress(packed((RECORD, "{"))))
    found = read_replies(path)
    assert len(found.good) == 1 and [bad.line for bad in found.bad] == [2]


@pytest.mark.parametrize("cut", [slice(0, 40), slice(20, None)])
def test_a_damaged_packed_file_is_told(tmp_path: Path, cut: slice) -> None:
    path = tmp_path / "said.jsonl.gz"
    lines = (({**RECORD, "date": f"{year}-01"}) for year in range(1900, 2000))
    path.write_bytes(gzip.compress(packed(tuple(lines)))[cut])
    with pytest.raises(DatasetError, match="cannot read") as refused:
        read_replies(path)
    assert refused.value.where == str(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file of answers is empty"),
        (b"\n \n", "the file of answers is empty"),
        (b"\n{}\nno\n", "the file has 2 lines, but none is an answer; line 2: model is missing"),
    ],
)
def test_a_file_without_a_reply_is_an_error(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        read_replies(path)
    assert refused.value.message == message


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot read"):
        read_replies(path)


def test_a_score_under_another_date_is_another_question(path: Path) -> None:
    mood = {**RECORD, "variant": "sentiment", "response": "-0.4"}
    found = read(
        path, mood, {**mood, "shown_date": 202009}, {**mood, "shown_date": "2020-03"}, mood
    )
    assert [one.shown_date for one in found.good] == [None, "202009", "2020-03"]
    assert len(found.bad) == 1


HALVES, QUARTERS = (0.5, 0.5), (0.25, 0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("shares", "bits"),
    [
        ((1.0, 1e-30), 0.0),
        (HALVES, 1.0),
        (QUARTERS, 2.0),
        ((0.5, 0.25), 1.5),  # a quarter is left over: one more outcome
        ((0.5, 0.25, 0.125, 0.0625, 0.03125), 1.9375),
        ((0.5, 0.5000001), 1.0),  # rounding: nothing is left over
        ((0.25, 0.25, 0.25, 0.125, 0.0625, 0.0625), 2.375),  # the sixth is in the rest
    ],
)
def test_bits_of_one_place(shares: tuple[float, ...], bits: float) -> None:
    assert token_entropy(token("3", shares)) == pytest.approx(bits, abs=1e-6)


def test_the_token_that_was_said_counts_where_it_is_not_among_the_most_probable() -> None:
    drawn = Token(text="9", logprob=log(0.25), top=(("1", log(0.5)),))
    assert token_entropy(drawn) == pytest.approx(1.5)
    twice = Token(text="1", logprob=log(0.5), top=(("1", log(0.5)),))
    assert token_entropy(twice) == pytest.approx(1.0)


def test_what_is_no_distribution_has_no_entropy() -> None:
    assert token_entropy(Token(text="3", logprob=-0.1)) is None
    assert token_entropy(token("3", (0.9, 0.9))) is None
    never = Token(text="3", logprob=0.0, top=(("3", 0.0), ("4", float("-inf"))))
    assert token_entropy(never) == 0.0


def by_hand(*said: tuple[str, tuple[float, ...]]) -> tuple[Token, ...]:
    return tuple(token(text, shares) for text, shares in said)


DOT, SURE = (".", (1.0, 1e-30)), (1.0, 1e-30)


@pytest.mark.parametrize(
    ("said", "value", "bits"),
    [
        ((("-", HALVES), ("3", QUARTERS), DOT, ("12", QUARTERS)), -3.12, 1.5),
        ((("+", SURE), ("3", QUARTERS), DOT, ("12", HALVES)), 3.12, 1.0),
        ((("3", QUARTERS), DOT, ("12", QUARTERS)), 3.12, 1.0),  # the sign is decided in it
        ((("-3", QUARTERS), DOT, ("12", QUARTERS)), -3.12, 1.0),
        (((' "', HALVES), (" ", HALVES), ("\u2212", SURE), ("3", HALVES)), -3.0, 0.5),
        ((("It", FLAT), (" was", FLAT), (" 3", HALVES), ("%", FLAT)), 3.0, 0.5),
        ((("200", FLAT), ("8", FLAT), (": ", FLAT), ("3", HALVES)), 3.0, 0.5),
        ((("$", FLAT), ("1", HALVES), (",", FLAT), ("234", FLAT)), 1234.0, 0.5),
        ((("a fall of ", FLAT), ("3", HALVES), ("%", FLAT)), -3.0, 0.5),
    ],
)
def test_the_two_decisions_that_a_value_begins_with(
    said: tuple[tuple[str, tuple[float, ...]], ...], value: float, bits: float
) -> None:
    found = read_out(by_hand(*said), value)
    assert found.bits == pytest.approx(bits, abs=1e-6) and not found.why


def test_whether_a_plus_is_written_makes_no_difference() -> None:
    signs, digits = (0.75, 0.25), (0.5, 0.5)
    joint = tuple(a * b for a in signs for b in digits)
    written = read_out(by_hand(("+", signs), ("3", digits)), 3.0).bits
    assert written == pytest.approx(read_out(by_hand(("3", joint)), 3.0).bits)


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("I cannot say.", None, "no value was read"),
        ("230 basis points", 2.3, "does not occur in the first tokens"),
        ("It was Q3, and", 3.0, "does not occur in the first tokens"),
        ("", 3.0, "does not occur in the first tokens"),
    ],
)
def test_an_answer_without_its_value_has_none(text: str, value: float | None, why: str) -> None:
    found = read_out(tokens(text, PEAKED), value)
    assert found.bits is None and why in found.why


def test_a_place_that_tells_nothing_of_others_has_none() -> None:
    alone = tuple(Token(text=text, logprob=-0.1) for text in ("-", "3"))
    assert "probabilities" in read_out(alone, -3.0).why

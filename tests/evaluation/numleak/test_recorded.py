"""Files of recorded answers: every line is either a reply or a bad line with its reason."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import Records
from coreeval.evaluation.numleak.recorded import read_replies
from coreeval.evaluation.numleak.replies import VARIANTS, Reply

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
        ({**RECORD, "truth": True}, "truth is no number but True"),
        (json.dumps(RECORD)[:-1] + ', "truth": NaN}', "truth is no number but nan"),
        ({**RECORD, "truth": 10**400}, "truth is larger than 1e+15"),
        ({**RECORD, "variant": "A"}, f"no variant 'A'; there are {', '.join(VARIANTS)}"),
        ({**RECORD, "variant": ["A"]}, "no variant ['A']"),
        ({**RECORD, "variant": "pair"}, "other_date is missing"),
        ({**RECORD, "variant": "forced_choice"}, "a forced_choice compares two dates"),
        ({**RECORD, "variant": "fictitious"}, "name is missing"),
        ({**RECORD, "variant": "phrasing"}, "asked with: phrasing is missing"),
        ({**RECORD, "variant": "contradiction"}, "asked with: stated is missing"),
        (json.dumps(RECORD)[:-1] + ', "stated": NaN}', "stated is no number but nan"),
        ({**RECORD, "variant": "continuation", "shown": 8}, "asked with: wanted is missing"),
        ({**RECORD, "shown": 0}, "shown: input should be greater than or equal to 1"),
        ({**RECORD, "kind": "late"}, "kind: input should be 'answered'"),
        ({**RECORD, "response": "\ud800"}, "response holds half a character"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["a"]', "JSON, but no object"),
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
    with pytest.raises(DatasetError, match="cannot be read") as refused:
        read_replies(path)
    assert refused.value.where == str(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file of answers is empty"),
        (b"\n \n", "the file of answers is empty"),
        (b"\n{}\nno\n", "none of its 2 lines is an answer; line 2: model is missing"),
    ],
)
def test_a_file_without_a_reply_is_an_error(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        read_replies(path)
    assert refused.value.message == message


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        read_replies(path)


def test_a_score_under_another_date_is_another_question(path: Path) -> None:
    mood = {**RECORD, "variant": "sentiment", "response": "-0.4"}
    found = read(
        path, mood, {**mood, "shown_date": 202009}, {**mood, "shown_date": "2020-03"}, mood
    )
    assert [one.shown_date for one in found.good] == [None, "202009", "2020-03"]
    assert len(found.bad) == 1

"""Files of scored candidates: good lines, other lines, and bad ones with their reasons."""

import gzip
import json
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.rankings.reading import Candidate, read_candidates

LINE = {"model": "m", "date": "2000-01", "candidate": "true", "text": "+1.0", "mean_logprob": -0.5}
GOOD = Candidate(model="m", date="2000-01", candidate="true", text="+1.0", mean_logprob=-0.5)


def write(path: Path, *lines: object) -> Path:
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    path.write_text(text, encoding="utf-8")
    return path


def test_our_names_and_the_authors_both_are_read(tmp_path: Path) -> None:
    theirs = {"type": "record", "model_tag": "m", "date": 200001, "candidate": "sign_flip",
              "candidate_text": "-1.0", "mean_logprob": -1, "n_tokens": 5}  # fmt: skip
    summary = {"type": "summary", "model_tag": "m", "n": 30}
    found = read_candidates(write(tmp_path / "a.jsonl", LINE, "", theirs, summary))
    assert found.good == (
        GOOD,
        Candidate(model="m", date="200001", candidate="sign_flip", text="-1.0", mean_logprob=-1),
    )
    assert (found.bad, found.passed_over) == ((), 1)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    assert read_candidates(packed) == found


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "JSON, but no object"),
        ({**LINE, "mean_logprob": 0.1}, "mean_logprob: input should be less than or equal to 0"),
        ({**LINE, "mean_logprob": None}, "mean_logprob: input should be a valid number"),
        ('{"model":"m","date":"1","candidate":"a","mean_logprob":-Infinity}', "mean_logprob is no"),
        ('{"model":"m","date":"1","candidate":"a","mean_logprob":NaN}', "mean_logprob: "),
        ({key: each for key, each in LINE.items() if key != "model"}, "model: field required"),
        ({**LINE, "candidate": ""}, "candidate: string should have at least 1 character"),
        ({**LINE, "text": "\ud800", "date": "2001"}, "half a character"),
        (LINE, "this candidate of this date is there twice, first in line 1"),
    ],
)
def test_a_bad_line_has_its_number_and_reason(tmp_path: Path, line: object, reason: str) -> None:
    found = read_candidates(write(tmp_path / "a.jsonl", LINE, line))
    assert found.good == (GOOD,)
    (bad,) = found.bad
    assert (bad.file, bad.line) == ("a.jsonl", 2) and reason in bad.reason


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "is empty"),
        (["{"], "none of its 1 lines is a candidate; line 1: not JSON"),
        ([{"type": "summary"}], "none of its 1 lines is a candidate"),
    ],
)
def test_a_file_without_a_candidate_is_refused(
    tmp_path: Path, lines: list[object], said: str
) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        read_candidates(write(tmp_path / "a.jsonl", *lines))
    assert caught.value.where.endswith("a.jsonl") and 'called "true"' in caught.value.hint


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        read_candidates(tmp_path / "none.jsonl")

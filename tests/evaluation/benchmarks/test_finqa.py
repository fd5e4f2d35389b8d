"""FinQA: records made by hand, and the real ones of the development data if they are there."""

import json
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import list_splits
from coreeval.evaluation.benchmarks.load import FORMATS
from coreeval.evaluation.metrics.short_answers import Accepted, grade_short_answer
from tests.evaluation.benchmarks.kit import dataset, put, read
from tests.evaluation.benchmarks.kit_kinds import CLOSED_BOOK, READING, answers_of

REAL = Path(__file__).parents[4] / "shared/data/finqa_raw/finqa_sample20.json"


def record(**changes: object) -> dict[str, object]:
    asked = {
        "question": "what share of revenue came from transport ?",
        "answer": "17%",
        "exe_ans": 0.17043,
        "program": "divide(2577, 15121)",
    }
    whole: dict[str, object] = {
        "pre_text": ["revenue is shown below .", "."],
        "table": [["", "2010"], ["transport", "$ 2577"]],
        "post_text": ["all amounts are in millions ."],
        "filename": "X/2010/page_1.pdf",
        "id": "X/2010/page_1.pdf-1",
    }
    parts = {key: changes.pop(key) for key in list(changes) if key in whole or key == "table_ori"}
    return whole | parts | {"qa": asked | changes}


def test_the_context_is_text_table_and_text(tmp_path: Path) -> None:
    path = put(tmp_path / "train.json", json.dumps([record()]))
    (found,) = read("finqa", tmp_path, READING, split="train").samples
    assert found.fields == {
        "context": "revenue is shown below .\n | 2010\ntransport | $ 2577\n"
        "all amounts are in millions .",
        "question": "what share of revenue came from transport ?",
        "answers": "17%\n0.17043",
        "unit": "%",
        "tolerance": "1%",
        "program": "divide(2577, 15121)",
    }
    assert (found.id, found.cluster) == ("X/2010/page_1.pdf-1", "X/2010/page_1.pdf")
    assert found.label_text == "number"
    assert list_splits(dataset("finqa", tmp_path)) == ["train"]
    closed = read("finqa", path, CLOSED_BOOK, split="train").samples[0]
    assert "context" not in closed.fields


@pytest.mark.parametrize(
    ("written", "computed", "answers", "unit"),
    [
        ("17%", 0.17043, ["17%", "0.17043"], "%"),
        ("-5.6%", -12.58173, ["-5.6%", "-12.58173%"], "%"),
        ("6.5%", 6.5, ["6.5%"], "%"),
        ("%", 0.065, ["0.065"], "%"),
        ("0.5%", 0.0049, ["0.5%", "0.0049"], "%"),
        ("$ 1,234.5", 1234.5, ["$ 1,234.5", "1234.5"], "$"),
        ("380", 3.8, ["380", "3.8"], None),
        ("559", 559.0, ["559"], None),
        ("559", 559, ["559"], None),
        ("", 12.50000, ["12.5"], None),
        ("increased", 12.5, ["12.5"], None),
        ("-0.0", -0.0, ["-0.0", "0"], None),
    ],
)
def test_numbers_are_the_written_and_the_computed_answer(
    tmp_path: Path, written: str, computed: float, answers: list[str], unit: str | None
) -> None:
    path = put(tmp_path / "t.json", json.dumps([record(answer=written, exe_ans=computed)]))
    (found,) = read("finqa", path, READING).samples
    assert answers_of(found) == answers
    assert (found.label_text, found.fields.get("unit")) == ("number", unit)
    assert found.fields["tolerance"] == "1%"


@pytest.mark.parametrize(
    ("written", "computed", "answers", "kind"),
    [
        ("", "yes", "yes", "yes_no"),
        ("Yes", None, "yes", "yes_no"),
        ("the pension plan", None, "the pension plan", "text"),
    ],
)
def test_other_answers(
    tmp_path: Path, written: str, computed: object, answers: str, kind: str
) -> None:
    path = put(tmp_path / "t.json", json.dumps([record(answer=written, exe_ans=computed)]))
    (found,) = read("finqa", path, READING).samples
    assert (found.fields["answers"], found.label_text) == (answers, kind)
    assert not {"unit", "tolerance"} & set(found.fields)


def test_what_is_no_record_says_why(tmp_path: Path) -> None:
    bad: list[tuple[object, str]] = [
        ("text", "the entry is not an object with the key qa"),
        ({"pre_text": []}, "the entry is not an object with the key qa"),
        (record(pre_text="text"), "pre_text, post_text or table is not a list"),
        (record(table=["row"]), "pre_text, post_text or table is not a list"),
        (record(answer="", exe_ans=None), "qa has neither answer nor exe_ans"),
        (record(exe_ans=float("nan")), "exe_ans is not a number below 1e+15"),
        (record(exe_ans=10**400), "exe_ans is not a number below 1e+15"),
        (record(question=None, id="2"), "the question field is missing"),
        (record(pre_text=[], table=[], post_text=[], id="3"), "the context field is empty"),
    ]
    path = put(tmp_path / "t.json", json.dumps([record(), *(entry for entry, _ in bad)], indent=1))
    found = read("finqa", path, READING)
    assert [row.reason for row in found.bad_rows] == [reason for _, reason in bad]
    assert len({row.line for row in found.bad_rows}) == len(bad)


@pytest.mark.parametrize("key", ["qa", "question"])
def test_a_key_twice_is_a_bad_row(tmp_path: Path, key: str) -> None:
    twice = json.dumps(record()).replace(f'"{key}": ', f'"{key}": 0, "{key}": ')
    found = read("finqa", put(tmp_path / "t.json", f"[{twice}, {json.dumps(record())}]"), READING)
    [row] = found.bad_rows
    assert row.reason == f"the key '{key}' occurs twice in an object"


def test_a_file_of_lines_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "t.json", f"{json.dumps(record())}\n{json.dumps(record())}\n")
    with pytest.raises(DatasetError, match="no JSON list"):
        read("finqa", path, READING)


@pytest.mark.skipif(not REAL.is_file(), reason="the development data are not there")
def test_the_real_records() -> None:
    found = read("finqa", REAL, READING, split="train")
    assert len(found.samples) == 20 and not found.bad_rows
    kinds = [sample.label_text for sample in found.samples]
    assert (kinds.count("number"), kinds.count("yes_no")) == (19, 1)
    by_id = {sample.id: sample for sample in found.samples}
    assert answers_of(by_id["AES/2010/page_225.pdf-3"]) == ["17%", "0.17043"]
    assert answers_of(by_id["ABMD/2012/page_75.pdf-1"]) == ["yes"]
    context = by_id["ADI/2009/page_49.pdf-1"].fields["context"]
    assert " | October 31, 2009 | November 1, 2008\nFair value" in context
    assert FORMATS["finqa"].digest(dataset("finqa", REAL, "train"), "train")


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("17%", True),
        ("17.04%", True),
        ("0.1704", True),
        ("17", True),
        ("16.6%", False),
        ("0.17%", False),
        ("-17%", False),
        ("$17", False),
    ],
)
def test_an_answer_is_graded_as_meant(tmp_path: Path, said: str, right: bool) -> None:
    path = put(tmp_path / "t.json", json.dumps([record()]))
    found = read("finqa", path, READING).samples[0]
    due = Accepted(
        answers=answers_of(found),
        type="number",
        unit=found.fields["unit"],
        tolerance=found.fields["tolerance"],
        question=found.fields["question"],
    )
    assert grade_short_answer(said, due).right is right

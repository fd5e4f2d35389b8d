"""MMLU and its like, and choices in tables of one's own. The questions are made by hand."""

import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import list_splits
from tests.evaluation.benchmarks.kit import dataset, put, read, reasons
from tests.evaluation.benchmarks.kit_kinds import QUIZ, as_json, make_task, options_of

LINES = (
    'Which planet is the largest?,Mars,"Jupiter, of course",Venus,Earth,B\n'
    '"What follows\n2, 4?",6,8,D,,A\n'
)


def test_the_original_files_have_no_header(tmp_path: Path) -> None:
    for name in ("test/astronomy_test", "test/anatomy_test", "dev/anatomy_dev"):
        put(tmp_path / f"{name}.csv", LINES)
    assert list_splits(dataset("mmlu", tmp_path)) == ["dev", "test"]
    found = read("mmlu", tmp_path, QUIZ)
    assert [sample.id for sample in found.samples] == [
        "anatomy/test/1", "anatomy/test/2", "astronomy/test/1", "astronomy/test/2"
    ]  # fmt: skip
    first, second = found.samples[:2]
    assert options_of(first) == ["Mars", "Jupiter, of course", "Venus", "Earth"]
    assert (first.label, first.label_text) == (1, "B")
    assert options_of(second) == ["6", "8", "D"] and second.fields["question"][-5:] == "2, 4?"
    alone = read("mmlu", tmp_path / "test" / "anatomy_test.csv", QUIZ)
    assert alone.samples == found.samples[:2]


def test_a_letter_is_never_taken_for_the_text_of_an_option(tmp_path: Path) -> None:
    path = put(tmp_path / "test.csv", "Which blood type is rare?,O,A,B,AB,B\n")
    found = read("mmlu", path, QUIZ).samples[0]
    assert (found.id, found.label_text, found.fields["B"]) == ("own/test/1", "B", "A")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Why?,one,two,E", "not an option letter (A to B)"),
        ("Why?,one,two,1", "not an option letter (A to B)"),
        ("Why?,one,two,", "not an option letter (A to B)"),
        ("Why?,A", "the line has 2 cells, but it must have a question, 2 to 26 options"),
        (f"Why?,{','.join(map(str, range(27)))},A", "29 cells"),
        ("Why?,one,,three,A", "the option B is empty"),
        ("Why?,one,one,A", "the options A and B are the same: 'one'"),
        (",one,two,A", "the question field is empty"),
        ('"Why?,one,two,A', "a quotation mark is never closed"),
    ],
)
def test_a_line_that_is_no_question_says_why(tmp_path: Path, line: str, reason: str) -> None:
    path = put(tmp_path / "test.csv", f"Good?,yes,no,A\n{line}\nGood?,yes,no,B\n")
    found = read("mmlu", path, QUIZ)
    assert len(found.samples) == 2 and reason in found.bad_rows[0].reason


def test_up_to_26_options(tmp_path: Path) -> None:
    line = f"Why?,{','.join(map(str, range(26)))},Z\n"
    found = read("mmlu", put(tmp_path / "test.csv", line), QUIZ).samples[0]
    assert len(options_of(found)) == 26 and found.label == 25
    with pytest.raises(DatasetError) as caught:
        read("mmlu", tmp_path / "test.csv", make_task("choice"))
    assert "26 options, but the task allows at most 4 (options: 26)" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "question,A,B,C,answer\nWhich?,x,y,z,B\nWhich?,x,y,,0\n",
        "Question,option_a,option_b,option_c,answer\nWhich?,x,y,z,B\nWhich?,x,y,,0\n",
        "question,choice_1,choice_2,choice_3,answerKey\nWhich?,x,y,z,y\nWhich?,x,y,,a\n",
        "question,choice_0,choice_1,choice_2,answer\nWhich?,x,y,z,1\nWhich?,x,y,,0\n",
        'question,choices,answer\nWhich?,"[""x"", ""y"", ""z""]",b\nWhich?,"[""x"", ""y""]",x\n',
    ],
)
@pytest.mark.parametrize("kind", ["mmlu", "csv"])
def test_a_header_names_the_columns(tmp_path: Path, kind: str, text: str) -> None:
    named = {"columns": {"question": "Question"}} if text.startswith("Q") else {}
    found = read(kind, put(tmp_path / "test.csv", text), QUIZ, **named)
    assert [options_of(sample) for sample in found.samples] == [["x", "y", "z"], ["x", "y"]]
    assert [sample.label for sample in found.samples] == [1, 0]


def test_columns_of_options_by_any_name(tmp_path: Path) -> None:
    path = put(tmp_path / "test.csv", "question,good,evil,answer\nWhich?,x,y,B\n")
    with pytest.raises(DatasetError, match="no column 'choices'"):
        read("csv", path, QUIZ)
    found = read("csv", path, QUIZ, columns={"A": "good", "B": "evil"})
    assert options_of(found.samples[0]) == ["x", "y"]


@pytest.mark.parametrize(
    ("columns", "hint"),
    [
        # all four are equally near to it: following a guess would exchange options
        ({"A": "option_one"}, "available: question, opt_a, opt_b, opt_c, opt_d, answer; or set"),
        ({"A": "opt_1", "B": "opt_b", "C": "opt_c", "D": "opt_d"}, "did you mean 'opt_a'?"),
        ({"A": "opt_a", "B": "opt_bb"}, "did you mean 'opt_b'?"),
        ({"a": "opt_a"}, "did you mean 'A'? available: question, choices, answer, answer_text, id, "
         "cluster, A, B … (the column of each option)"),
        ({"anwser": "opt_a"}, "did you mean 'answer'?"),
    ],
)  # fmt: skip
def test_a_hint_never_exchanges_options(tmp_path: Path, columns: dict[str, str], hint: str) -> None:
    path = put(tmp_path / "test.csv", "question,opt_a,opt_b,opt_c,opt_d,answer\nWhich?,x,y,z,w,B\n")
    with pytest.raises(DatasetError) as caught:
        read("csv", path, QUIZ, columns=columns)
    assert hint in caught.value.hint
    assert ("did you mean" in caught.value.hint) == ("did you mean" in hint)


HUB: list[dict[str, object]] = [
    {"question": "Which?", "subject": "any", "choices": ["x", "y", "z"], "answer": 2},
    {"question": "What?", "subject": "any", "choices": ["x", "y"], "answer": 0},
]
ARC: list[dict[str, object]] = [
    {"id": "one", "question": "Which?", "answerKey": "2",
     "choices": {"text": ["x", "y"], "label": ["1", "2"]}},
    {"id": "two", "question": "Which?", "answerKey": "D",
     "choices": {"text": ["w", "x", "y", "z"], "label": ["A", "B", "C", "D"]}},
]  # fmt: skip


@pytest.mark.parametrize("rows", [HUB, ARC])
@pytest.mark.parametrize("kind", ["mmlu", "parquet", "jsonl"])
def test_the_forms_of_the_hub(tmp_path: Path, kind: str, rows: list[dict[str, object]]) -> None:
    if kind == "jsonl":
        path = as_json(tmp_path / "test.jsonl", rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test-00000-of-00001.parquet")
        path = tmp_path
    found = read(kind, path, QUIZ)
    if rows is HUB:
        assert [sample.label for sample in found.samples] == [2, 0]
    else:
        assert [(sample.id, sample.label) for sample in found.samples] == [("one", 1), ("two", 3)]
        assert options_of(found.samples[0]) == ["x", "y"]


def test_choices_as_an_object_in_a_cell(tmp_path: Path) -> None:
    cell = json.dumps(ARC[0]["choices"]).replace('"', '""')
    rows = f"Which?,\"{cell}\",2\nWhich?,\"{{'text': ['x', 'y']}}\",A\n"
    found = read("csv", put(tmp_path / "x.csv", f"question,choices,answer\n{rows}"), QUIZ)
    assert [(options_of(one), one.label) for one in found.samples] == [(["x", "y"], 1)]
    assert "choices is an object, but not JSON with the key text" in found.bad_rows[0].reason


def test_the_splits_of_a_folder_without_tables(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        read("mmlu", tmp_path, QUIZ)
    assert "test/SUBJECT_test.csv" in caught.value.hint


def test_the_rows_that_are_no_choice(tmp_path: Path) -> None:
    good: dict[str, object] = {"question": "Which?", "choices": ["x", "y", "z"], "answer": "A"}
    arc: dict[str, object] = {"text": ["x", "y"], "label": ["A", "A"]}
    bad: list[tuple[dict[str, object], str]] = [
        ({"answer": "A, C"}, "'A, C' names several right options, but a choice has only one"),
        ({"answer": ["A", "B"]}, "it has 2 right options, but a choice has only one"),
        ({"answer": None}, "the answer is missing: write its index (from 0), its letter or its"),
        ({"answer": "w"}, "the answer 'w' is not one of the options A, B, C"),
        ({"answer": "3"}, "the answer 3 is not the index of an option: indices are 0 to 2"),
        ({"answer": True}, "the answer True is not the index, letter or text of an option"),
        ({"choices": ["x"]}, "a choice needs at least 2 options, but this one has 1"),
        ({"choices": list(map(str, range(27)))}, "27 options, but the task allows at most 26"),
        ({"choices": ["x", " x ", "y"]}, "the options A and B are the same: 'x'"),
        ({"choices": "x, y"}, 'in a table, write a list as JSON: ["one", "two"]'),
        ({"choices": [["x"], "y"]}, "choices must be a list of texts, but contains list"),
        ({"choices": ["x", "y" * 5001]}, "the option B has more than 5,000 characters"),
        ({"choices": arc}, "the labels of 2 choices are 'A, A'"),
        (
            {"choices": ["2", "1", "0"], "answer": "2"},
            "'2' may be option C or the text of option A",
        ),
        (
            {"choices": ["O", "A", "B"], "answer": "B"},
            "'B' may be option B or the text of option C",
        ),
        (
            {"question": "why " * 10_000},
            "the question field has 39,999 characters, but the maximum is 15,000",
        ),
    ]
    rows = [good, *(good | change for change, _ in bad)]
    found = read("jsonl", as_json(tmp_path / "test.jsonl", rows), QUIZ)
    assert len(found.samples) == 1
    for (line, reason), (number, (_, wanted)) in zip(
        reasons(found.bad_rows), enumerate(bad, start=2), strict=True
    ):
        assert line == number and wanted in reason, reason


def test_labels_that_differ_in_case_are_told_apart(tmp_path: Path) -> None:
    row: dict[str, object] = {"question": "Which?", "answerKey": "A"}
    rows = [
        row | {"choices": {"text": ["x", "y"], "label": labels}}
        for labels in (["a", "A"], ["A", "a"], ["b", "a"])
    ]
    found = read("jsonl", as_json(tmp_path / "test.jsonl", rows), QUIZ)
    assert [sample.label for sample in found.samples] == [1, 0, 1]


def test_a_number_is_an_index_and_a_text_says_which_is_meant(tmp_path: Path) -> None:
    row: dict[str, object] = {"question": "How many?", "choices": ["2", "1", "0"]}
    rows = [row | {"answer": 2}, row | {"answer": "2", "answer_text": "2"}, row | {"answer": "1"}]
    found = read("jsonl", as_json(tmp_path / "test.jsonl", rows), QUIZ)
    assert [sample.label for sample in found.samples] == [2, 0, 1]


def test_options_that_differ_in_case_are_two(tmp_path: Path) -> None:
    path = put(tmp_path / "test.csv", "Which genotype is heterozygous?,AA,aa,Aa,C\n")
    assert read("mmlu", path, QUIZ).samples[0].fields["C"] == "Aa"

"""What can be compared: all that the loaders read, and tables whose columns are named."""

import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import CoreEvalError, DatasetError, UsageError
from coreeval.evaluation.overlap.sources import ReadOptions, read_texts
from tests.cli.kit import DEMO, config_text

ROWS = [
    {"id": "x", "question": "Who?", "more": "Here", "label": "yes", "cluster": "p1"},
    {"id": "y", "question": " ", "more": "Here"},
    {"id": "x", "question": "When?", "more": "Here"},
]
BOTH = ReadOptions(fields=("question", "more"))


def test_a_config_and_its_dataset_named_by_hand_are_the_same(tmp_path: Path) -> None:
    config = tmp_path / "trial.yaml"
    config.write_text(config_text({}), encoding="utf-8")
    one = read_texts(str(config), ReadOptions())
    other = read_texts(f"tweeteval:{DEMO / 'emotion'}@test", ReadOptions(task="emotion"))
    assert one.entries == other.entries and one.entries[0].id == "emotion/test/1"
    train = read_texts(f"{config}@train", ReadOptions())
    assert {entry.id.split("/")[1] for entry in train.entries} == {"train"}
    assert train.entries[0].answer in {"anger", "joy", "optimism", "sadness"}


def test_the_fields_of_a_pair_are_lines_or_one_is_chosen() -> None:
    pair = read_texts(f"mrpc:{DEMO / 'mrpc'}", ReadOptions()).entries[0]
    first, second = pair.text.split("\n")
    only = read_texts(f"mrpc:{DEMO / 'mrpc'}", ReadOptions(fields=("sentence2",))).entries[0]
    assert only.text == second != first
    with pytest.raises(UsageError, match="no field 'text'"):
        read_texts(f"mrpc:{DEMO / 'mrpc'}", ReadOptions(fields=("text",)))


def test_stance_is_read_over_all_targets() -> None:
    found = read_texts(f"tweeteval:{DEMO / 'stance'}", ReadOptions(task="stance")).entries
    assert all(entry.id.startswith("stance/") for entry in found)


def test_the_answer_of_a_choice_is_the_text_of_its_right_option(tmp_path: Path) -> None:
    task = tmp_path / "quiz.yaml"
    task.write_text("name: quiz\nkind: choice\ndescription: Questions.\n", encoding="utf-8")
    table = tmp_path / "test.csv"
    table.write_text("Which planet is red?,Mars,Venus,A\n", encoding="utf-8")
    (found,) = read_texts(f"mmlu:{table}", ReadOptions(task=str(task))).entries
    assert (found.text, found.answer) == ("Which planet is red?\nA. Mars\nB. Venus", "Mars")


def test_items_have_input_and_output(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"input": "What?", "output": "A", "options": ["one", "two"]}\n{}\n')
    found = read_texts(str(path), ReadOptions())
    assert [(each.id, each.text, each.answer) for each in found.entries] == [
        ("jsonl/own/1", "What?\nA. one\nB. two", "A")
    ]
    assert [row.line for row in found.bad_rows] == [2]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_a_table_is_read_by_its_columns(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif ending == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    else:
        mark = {"csv": ",", "tsv": "\t"}[ending]
        lines = [ROWS[0], *({"label": "", "cluster": "", **row} for row in ROWS)]
        cells = [[str(row[name]) for name in ROWS[0]] for row in lines]
        path.write_text("\n".join(map(mark.join, [list(ROWS[0]), *cells[1:]])), encoding="utf-8")
    found = read_texts(str(path), BOTH)
    assert [(each.id, each.text, each.answer, each.cluster) for each in found.entries] == [
        ("x", "Who?\nHere", "yes", "p1")
    ]
    assert [row.reason for row in found.bad_rows] == [
        "question is empty",
        "the id 'x' occurs twice",
    ]


def test_a_path_may_have_an_at_sign(tmp_path: Path) -> None:
    path = tmp_path / "me@home.jsonl"
    path.write_text('{"question": "Who?"}\n', encoding="utf-8")
    found = read_texts(f"jsonl:{path}", ReadOptions(fields=("question",)))
    assert found.entries[0].id == "me@home.jsonl:1"


@pytest.mark.parametrize(
    ("source", "how", "wrong"),
    [
        ("rows.xlsx", ReadOptions(), "the source has no format"),
        ("rows.csv", ReadOptions(), "--field COLUMN or --task TASK"),
        ("tweeteval:there", ReadOptions(), "pass --task TASK"),
        ("none.jsonl", BOTH, "no such file"),
        (
            "rows.csv",
            ReadOptions(fields=("text",)),
            "none of the 1 rows contains a text; the first: text is mis",
        ),
        ("none.yaml", ReadOptions(), "none.yaml"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, how: ReadOptions, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("question\nWho?\n", encoding="utf-8")
    with pytest.raises(CoreEvalError) as error:
        read_texts(source, how)
    assert wrong in str(error.value)


def test_a_split_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"question": "Who?"}\n', encoding="utf-8")
    with pytest.raises(DatasetError, match="no split 'test'"):
        read_texts(f"jsonl:{tmp_path}", ReadOptions(fields=("question",)))


def test_of_a_choice_question_and_options_are_compared(tmp_path: Path) -> None:
    task = tmp_path / "quiz.yaml"
    task.write_text("name: quiz\nkind: choice\ndescription: Try it.\n")
    row = {"id": "q1", "question": "Who?", "choices": ["Bo Li", "Cy Poe"], "answer": 1}
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n")
    place = str(tmp_path / "test.jsonl")
    (entry,) = read_texts(place, ReadOptions(task=str(task))).entries
    assert (entry.text, entry.answer) == ("Who?\nA. Bo Li\nB. Cy Poe", "Cy Poe")
    (entry,) = read_texts(place, ReadOptions(task=str(task), fields=("question",))).entries
    assert entry.text == "Who?"

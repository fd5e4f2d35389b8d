"""Questions and summaries in files of one's own. All rows are made by hand."""

import json
import tracemalloc
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.benchmarks.traits import TraitCounts
from coreeval.schema import Sample
from tests.evaluation.benchmarks.kit import EMOTION, dataset, put, read
from tests.evaluation.benchmarks.kit_kinds import (
    CLOSED_BOOK,
    QUIZ,
    READING,
    SUMMARIES,
    answers_of,
    as_json,
)

PASSAGE = "The bridge was opened in 1932.\nYear | Length\n1932 | 503 m"
ROW: dict[str, object] = {"context": PASSAGE, "question": "When?", "answers": ["in 1932", "1932"]}
STORY = {"document": "It rained all day. Nothing else happened.", "summary": "It rained."}


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "tsv"])
def test_answers_in_every_format(tmp_path: Path, kind: str) -> None:
    path, flat = tmp_path / f"test.{kind}", PASSAGE.replace("\n", " ")
    if kind == "jsonl":
        as_json(path, [ROW])
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist([ROW]), path)
    elif kind == "csv":
        put(path, f'context,question,answers\n"{PASSAGE}",When?,"[""in 1932"", ""1932""]"\n')
    else:
        put(path, f'context\tquestion\tanswers\n{flat}\tWhen?\t["in 1932", "1932"]\n')
    (found,) = read(kind, path, READING).samples
    assert found.fields["context"] == (flat if kind == "tsv" else PASSAGE)
    assert answers_of(found) == ["in 1932", "1932"] and found.label_text == "text"


@pytest.mark.parametrize(
    ("given", "accepted", "kind"),
    [
        ("in 1932", ["in 1932"], "text"),
        (1932, ["1932"], "number"),
        (1932.0, ["1932"], "number"),
        (-0.25, ["-0.25"], "number"),
        ([3, 3.0, "three"], ["3", "three"], "number"),
        (True, ["yes"], "yes_no"),
        (' {"text": ["1932", "in 1932"], "answer_start": [25, 22]}', ["1932", "in 1932"], "number"),
        ("{1932}", ["{1932}"], "text"),
        ({"text": ["1932", "in 1932", "1932"], "answer_start": [25, 22, 25]},
         ["1932", "in 1932"], "number"),
        ([{"text": "in 1932", "answer_start": 22}], ["in 1932"], "text"),
        (["in  1932\n"], ["in 1932"], "text"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("column", ["answers", "answer"])
def test_answers_in_several_forms(
    tmp_path: Path, column: str, given: object, accepted: list[str], kind: str
) -> None:
    row = {"passage": PASSAGE, "question": "When?", column: given}
    (found,) = read("jsonl", as_json(tmp_path / "test.jsonl", [row]), READING).samples
    assert answers_of(found) == accepted and found.label_text == kind


def test_details_of_an_answer(tmp_path: Path) -> None:
    row = {"question": "How long?", "answer": "503", "unit": "m", "tolerance": 0.5,
           "answer_type": "Number"}  # fmt: skip
    (found,) = read("jsonl", as_json(tmp_path / "test.jsonl", [row]), CLOSED_BOOK).samples
    assert found.fields == {
        "question": "How long?", "answers": "503", "unit": "m", "tolerance": "0.5"
    }  # fmt: skip


def test_the_rows_that_are_no_question(tmp_path: Path) -> None:
    bad: list[tuple[dict[str, object], str]] = [
        ({"answers": []}, "the answers field is empty"),
        ({"answers": ["", " "]}, "the answers field is empty"),
        ({"answers": None}, "the answers field is missing"),
        ({"answers": [["1932"]]}, "answers must be a list of texts, but contains list"),
        ({"answers": [float("nan")]}, "answers has a number that is not finite"),
        ({"answers": ["x" * 2_001]}, "an answer has more than 2,000 characters"),
        ({"answers": ["5", "5" * 101]}, "more than 100 characters, but its type is number"),
        ({"answers": "1e400", "answer_type": "number"}, "an answer is larger than 1e200"),
        ({"answers": ["May " * 26], "answer_type": "date"}, "but its type is date"),
        ({"answers": [*range(1_001)]}, "it has 1,001 answers, but the maximum is 1,000"),
        ({"unit": "m" * 201}, "the unit has more than 200 characters"),
        ({"tolerance": "1" * 2_001}, "the tolerance has more than 2,000 characters"),
        ({"program": "add(1, 2), " * 200}, "the program has more than 2,000 characters"),
        ({"answers": "[1932"}, "answers must be a list, not str"),
        ({"answers": "{'text': ['1932'], 'answer_start': [3]}"}, "not JSON with the key text"),
        ({"answers": "{'text': array(['1932'], dtype=object)}"}, "not JSON with the key text"),
        ({"answers": '{"aliases": ["1932"]}'}, "not JSON with the key text"),
        ({"answers": '{"text": [], "answer_start": []}'}, "the answers field is empty"),
        ({"context": ""}, "the context field is empty"),
        ({"context": None}, "the context field is missing"),
        ({"context": "x " * 200_001}, "the context field has 400,001 characters, but"),
        ({"question": "why " * 10_000}, "a passage needs its own field, such as"),
        ({"answers": ["мост"]}, "'мост' is in another script than its passage"),
        ({"answers": ["5 %", "$ 5"]}, "the accepted answers have different units (% and $)"),
        ({"answers": ["5 percent"], "unit": "$"}, "different units (% and $)"),
        ({"unit": ["m"]}, "the unit must be text or a number, not list"),
        ({"tolerance": True}, "the tolerance must be text or a number, not bool"),
        ({"choices": ["1932", "1933"]}, "it has choices, but the task has kind: answer"),
    ]
    rows = [ROW, *(ROW | change for change, _ in bad)]
    found = read("jsonl", as_json(tmp_path / "test.jsonl", rows), READING)
    assert len(found.samples) == 1
    for row, (_, reason) in zip(found.bad_rows, bad, strict=True):
        assert reason in row.reason


def test_kinds_are_not_mixed_however_late_it_shows(tmp_path: Path) -> None:
    late = ROW | {"choices": ["1932", "1933"]}
    found = read("jsonl", as_json(tmp_path / "test.jsonl", [ROW] * 60 + [late]), READING)
    assert len(found.samples) == 60 and "should that be choice?" in found.bad_rows[0].reason
    asked = {"question": "When?", "choices": ["1932", "1933"], "answer": 0}
    rows = [asked] * 60 + [ROW]
    found = read("jsonl", as_json(tmp_path / "test.jsonl", rows), QUIZ)
    assert len(found.samples) == 60 and "the choices are missing" in found.bad_rows[0].reason


@pytest.mark.parametrize(
    "change",
    [
        {"answers": ["1931"]},  # abstractive, and a number
        {"answers": ["橋"], "context": "東京のはし"},
        {"answers": ["ミル"], "context": "東京の橋"},
        {"answers": ["мост"], "question": "What is a bridge in Russian: мост or река?"},
        {"answers": ["5 %", "5 percent", "5"], "unit": "%"},
        {"answers": ["№ 5"]},
        {"answers": [5], "tolerance": float("nan"), "unit": ""},
    ],
)
def test_unusual_answers_are_no_defect(tmp_path: Path, change: dict[str, object]) -> None:
    path = as_json(tmp_path / "test.jsonl", [ROW | change])
    assert len(read("jsonl", path, READING).samples) == 1


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "names", [("document", "summary"), ("article", "highlights"), ("text", "summary")]
)
def test_summaries_by_their_common_names(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    row = dict(zip(names, STORY.values(), strict=True))
    path = tmp_path / f"test.{kind}"
    if kind == "jsonl":
        as_json(path, [row])
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)
    assert read(kind, path, SUMMARIES).samples[0].fields == STORY


def test_of_two_common_names_one_must_be_said(tmp_path: Path) -> None:
    row = {"article": STORY["document"], "text": "x", "highlights": STORY["summary"]}
    path = as_json(tmp_path / "test.jsonl", [row])
    with pytest.raises(DatasetError, match="no column 'document'") as caught:
        read("jsonl", path, SUMMARIES)
    assert "dataset.columns: {document: ITS COLUMN}" in caught.value.hint
    found = read("jsonl", path, SUMMARIES, columns={"document": "article"})
    assert found.samples[0].fields == STORY


def test_a_column_of_our_name_comes_before_common_ones(tmp_path: Path) -> None:
    path = as_json(tmp_path / "test.jsonl", [STORY | {"article": "x", "highlights": "y"}])
    assert read("jsonl", path, SUMMARIES).samples[0].fields == STORY


def test_a_summary_is_no_longer_than_its_document(tmp_path: Path) -> None:
    exchanged = {"document": STORY["summary"], "summary": STORY["document"]}
    found = read("jsonl", as_json(tmp_path / "test.jsonl", [STORY, exchanged]), SUMMARIES)
    assert len(found.samples) == 1
    assert "are the columns swapped?" in found.bad_rows[0].reason


def test_tasks_with_labels_take_no_common_names(tmp_path: Path) -> None:
    path = as_json(tmp_path / "test.jsonl", [{"article": "so happy", "label": "joy"}])
    with pytest.raises(DatasetError, match="no column 'text'"):
        read("jsonl", path)


def test_formats_of_labels_refuse_other_kinds(tmp_path: Path) -> None:
    put(tmp_path / "test_text.txt", "so happy\n")
    put(tmp_path / "test_labels.txt", "1\n")
    assert read("tweeteval", tmp_path, EMOTION).samples
    with pytest.raises(DatasetError, match="tweeteval is for tasks of the kind labels"):
        read("tweeteval", tmp_path, QUIZ)


def test_text_that_many_rows_share_is_measured_within_structs(tmp_path: Path) -> None:
    long = "x" * (40 << 20)
    rows = [{"question": "?", "choices": {"text": [long, long]}, "answer": 0}] * 2
    rows.append({"question": "?", "choices": {"text": ["a", "b"]}, "answer": 0})
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    found = read("parquet", tmp_path, QUIZ)
    assert len(found.samples) == 1
    assert [row.reason for row in found.bad_rows] == ["the row has more than 64 MiB of values"] * 2


def test_large_files_are_read_row_by_row(tmp_path: Path) -> None:
    line = json.dumps({"document": "word " * 8_000, "summary": "a word"})
    path = put(tmp_path / "test.jsonl", f"{line}\n" * 500)
    assert path.stat().st_size > 16 << 20
    tracemalloc.start()
    try:
        counts = TraitCounts(SUMMARIES)
        for row in iter_benchmark(dataset("jsonl", path), SUMMARIES):
            assert isinstance(row, Sample)
            counts.add(row)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert next(iter(counts.describe())) == "words per document: 8,000"

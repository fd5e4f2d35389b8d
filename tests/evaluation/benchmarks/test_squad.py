"""SQuAD 1.1 and 2.0. The articles are made by hand."""

import json
import tracemalloc
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import iter_benchmark, list_splits
from coreeval.schema import Sample
from tests.evaluation.benchmarks.kit import dataset, put, read, reasons
from tests.evaluation.benchmarks.kit_kinds import CLOSED_BOOK, QUIZ, READING, answers_of, make_task

PASSAGE = "The bridge was opened in 1932 and is 503 metres long. It was built by Dorman Long."
QUESTIONS: list[object] = [
    {
        "id": "q1",
        "question": "When was the bridge opened?",
        "answers": [
            {"text": "in 1932", "answer_start": 22},
            {"text": "1932", "answer_start": 25},
            {"text": "in 1932", "answer_start": 22},
        ],
    },
    {"id": "q2", "question": "Who painted it?", "answers": [], "is_impossible": True},
    {
        "id": "q3",
        "question": "Who built it?",
        "answers": [{"text": "Dorman Long", "answer_start": 70}],
        "is_impossible": False,
    },
    {"id": "q4", "question": "How heavy is it?", "answers": []},
    {"id": "q5", "question": "How long is it?", "answers": "503 metres"},
    "How high is it?",
]


def document(questions: list[object] = QUESTIONS, passage: object = PASSAGE) -> str:
    paragraphs: list[object] = [{"context": "Another one.", "qas": []}]
    paragraphs.append({"context": passage, "qas": questions})
    return json.dumps({"version": "v2.0", "data": [{"title": "Bridge", "paragraphs": paragraphs}]})


def test_questions_with_their_passage_and_answers(tmp_path: Path) -> None:
    path = put(tmp_path / "dev-v2.0.json", document())
    found = read("squad", path, READING, split="dev")
    first, second = found.samples
    assert list(first.fields) == ["context", "question", "answers"]
    assert first.id == "q1" and first.fields["context"] == PASSAGE
    assert answers_of(first) == ["in 1932", "1932"]
    assert (first.label_text, second.label_text) == ("text", "text")
    assert first.cluster == second.cluster == "Bridge/2"
    assert [row.reason.partition(";")[0] for row in found.bad_rows] == [
        "the passage does not answer the question (is_impossible)",
        "the question has no answers",
        "answers is not a list of objects with text",
        "paragraph Bridge/2 has a question that is not an object",
    ]


def test_splits_are_named_without_the_version(tmp_path: Path) -> None:
    for name in ("train-v1.1", "dev-v1.1"):
        put(tmp_path / f"{name}.json", document())
    assert list_splits(dataset("squad", tmp_path)) == ["dev", "train"]
    assert len(read("squad", tmp_path, READING, split="validation").samples) == 2
    put(tmp_path / "dev-v2.0.json", document())
    with pytest.raises(DatasetError, match="two files belong to the split 'dev'"):
        list_splits(dataset("squad", tmp_path))


@pytest.mark.parametrize(
    ("article", "reason"),
    [
        ("text", "article 1 has no `paragraphs` list"),
        ({"title": "One"}, "article 1 has no `paragraphs` list"),
        ({"paragraphs": [{"context": "x"}]}, "paragraph 1/1 has no `qas` list"),
        ({"paragraphs": [3]}, "paragraph 1/1 has no `qas` list"),
        (
            {"title": "x" * 1_001, "paragraphs": []},
            "the title of article 1 has more than 1,000 characters",
        ),
    ],
)
def test_what_is_no_article_is_a_bad_row(tmp_path: Path, article: object, reason: str) -> None:
    whole = json.loads(document())["data"]
    path = put(tmp_path / "dev.json", json.dumps({"data": [article, *whole]}))
    found = read("squad", path, READING, split="dev")
    assert found.bad_rows[0].reason == reason and len(found.samples) == 2


def test_a_passage_must_be_there_unless_the_task_is_closed_book(tmp_path: Path) -> None:
    path = put(tmp_path / "dev.json", document(passage=" "))
    with pytest.raises(DatasetError) as caught:
        read("squad", path, READING)
    assert "the context field is empty" in caught.value.hint
    assert list(read("squad", path, CLOSED_BOOK).samples[0].fields) == ["question", "answers"]


def test_a_task_of_another_kind_or_with_other_fields_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "dev.json", document())
    with pytest.raises(DatasetError, match="squad is for tasks of the kind answer"):
        read("squad", path, QUIZ)
    with pytest.raises(DatasetError, match="squad has no field 'passage'") as caught:
        read("squad", path, make_task("answer", fields=["passage", "question"]))
    assert "question, context" in caught.value.hint


@pytest.mark.parametrize("key", ["title", "context", "question", "answer_start"])
def test_a_key_twice_is_a_bad_row(tmp_path: Path, key: str) -> None:
    text = document().replace(f'"{key}": ', f'"{key}": 0, "{key}": ')
    with pytest.raises(DatasetError, match=f"the key '{key}' occurs twice"):
        read("squad", put(tmp_path / "dev-v2.0.json", text), READING, split="dev")


def test_ids_that_are_there_twice_are_bad_rows(tmp_path: Path) -> None:
    path = put(tmp_path / "dev.json", document([QUESTIONS[0], QUESTIONS[0]]))
    found = read("squad", path, READING)
    assert reasons(found.bad_rows) == [(1, "the id 'q1' occurs twice")]


def test_articles_are_read_one_after_the_other(tmp_path: Path) -> None:
    def article(number: int) -> dict[str, object]:
        asked = {"id": str(number), "question": "When?",
                 "answers": [{"text": "1932", "answer_start": 0}]}  # fmt: skip
        return {"title": str(number), "paragraphs": [{"context": PASSAGE * 500, "qas": [asked]}]}

    path = put(tmp_path / "dev.json", json.dumps({"data": [article(at) for at in range(420)]}))
    assert path.stat().st_size > 16 << 20
    tracemalloc.start()
    try:
        rows = iter_benchmark(dataset("squad", path, "dev"), READING)
        assert sum(isinstance(row, Sample) for row in rows) == 420
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_questions_share_their_passage_in_memory(tmp_path: Path) -> None:
    questions: list[object] = [
        {"id": str(at), "question": "Why?", "answers": [{"text": "1932"}]} for at in range(500)
    ]
    passage = "\n" + "in 1932 " * 40_000
    path = put(tmp_path / "dev.json", document(questions, passage))
    found = read("squad", path, CLOSED_BOOK, split="dev")
    assert len(found.samples) == 500
    texts = [
        sample.fields["context"] for sample in read("squad", path, READING, split="dev").samples
    ]
    assert len(set(map(id, texts))) == 1  # a file of a megabyte took gigabytes

"""What is counted over the samples of a benchmark. All rows are made by hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from coreeval.evaluation.benchmarks.traits import TraitCounts
from coreeval.schema import Sample, Task
from tests.evaluation.benchmarks.kit import EMOTION, read
from tests.evaluation.benchmarks.kit_kinds import QUIZ, READING, SUMMARIES, as_json, make_task

PASSAGE = "The bridge was opened in 1932.\nYear | Length\n1932 | 503 m"
ROW: dict[str, object] = {"context": PASSAGE, "question": "When?", "answers": ["in 1932", "1932"]}
STORY = {"document": "It rained all day. Nothing else happened.", "summary": "It rained."}


def traits_of(task: Task, samples: Iterator[Sample]) -> list[str]:
    counts = TraitCounts(task)
    for sample in samples:
        counts.add(sample)
    return list(counts.describe())


def load_traits(tmp_path: Path, task: Task, rows: Sequence[object]) -> list[str]:
    found = read("jsonl", as_json(tmp_path / "test.jsonl", rows), task)
    assert not found.bad_rows
    return traits_of(task, iter(found.samples))


def test_traits_of_questions(tmp_path: Path) -> None:
    rows = [
        ROW,
        ROW | {"answers": ["in the Thirties"], "question": "When was it?"},
        ROW | {"answers": ["17%", "12%"], "tolerance": "1%", "unit": "%"},
        ROW | {"answers": ["17%", "0.171"], "tolerance": "1%", "unit": "%"},
        ROW | {"answers": ["17%", "17.4%"], "tolerance": 0.5, "unit": "%"},
        ROW | {"answers": ["17", "17.6"], "tolerance": 0.5},
    ]
    assert load_traits(tmp_path, READING, rows) == [
        "answer type: number 4, text 2",
        "unit: % 3",
        "accepted answers per question: 1 to 2, median 2",
        "words per context: 13",
        "words per question: 1 to 3, median 1",
        "note: of 2 samples, accepted answers differ by more than the tolerance",
        "note: of 1 sample, the first answer does not occur verbatim in the context",
    ]


def test_traits_of_choices_summaries_and_labels(tmp_path: Path) -> None:
    choices = [
        {"question": "Which one?", "choices": ["x", "y"], "answer": 1},
        {"question": "Which?", "choices": ["Aa", "aa", "AA"], "answer": 1},
    ]
    assert load_traits(tmp_path, QUIZ, choices) == [
        "right option: B 2",
        "options per question: 2 to 3, median 2",
        "words per question: 1 to 2, median 1",
        "note: of 1 sample, two options differ only in upper and lower case",
    ]
    assert load_traits(tmp_path, SUMMARIES, [STORY]) == [
        "words per document: 7", "words per summary: 2"
    ]  # fmt: skip
    assert load_traits(tmp_path, EMOTION, [{"text": "so happy", "label": "joy"}]) == []


def test_repeated_texts_are_noted(tmp_path: Path) -> None:
    row = {"question": "Which?", "choices": ["x", "y"], "answer": 1}
    other = row | {"choices": ["y", "x"]}
    assert not any("repeat" in line for line in load_traits(tmp_path, QUIZ, [row, other]))
    name = f"{QUIZ.name}/test/3"
    assert load_traits(tmp_path, QUIZ, [row, other, row | {"answer": 0}])[-1] == (
        f"note: 1 sample repeats the texts of an earlier one: {name}"
    )
    assert load_traits(tmp_path, QUIZ, [row, other, row, row])[-1] == (
        f"note: 2 samples repeat the texts of an earlier one: the first is {name}"
    )


def test_many_values_of_a_trait_are_not_all_listed(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": "5", "unit": f"u{number:02}"} for number in range(30)]
    assert "u25 1 and 4 more" in load_traits(tmp_path, make_task("answer"), rows)[1]


def test_letters_count_as_words_in_scripts_without_spaces(tmp_path: Path) -> None:
    row = {"question": "\u4f01\u4e1a\u5e94\u5f53\u9009\u54ea\u4e00\u4e2a\uff1f", "answer": 0}
    rows = [row | {"choices": ["\u7532", "\u4e59"]}]
    assert "words per question: 9" in load_traits(tmp_path, QUIZ, rows)

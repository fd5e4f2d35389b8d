"""Rows of every kind become fields and a label, and come back from the columns of an arm."""

from pathlib import Path
from typing import Any

import pytest

from coreeval.config import DatasetConfig
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.schema import Label, Task
from coreeval.tasks import adapt_task, hash_task, kind_of, load_task
from coreeval.tasks.kinds import ItemDefect
from coreeval.tasks.task_file import parse_task_file

QUIZ = {
    "question": "Who founded Microsoft with Paul Allen?",
    "choices": ["Bill Gates", "Steve Jobs", "Larry Page"],
    "answer": 0,
}
QUESTION = {"context": "Two nations met.", "question": "How many?", "answers": ["2", "two"]}
REPORT = {"document": "It rained all day. Nothing else happened.", "summary": "It rained."}


def load(tmp_path: Path, kind: str, **more: object) -> Task:
    lines = [f"name: own\nkind: {kind}\ndescription: Something to try.\n"]
    lines += [f"{key}: {value}\n" for key, value in more.items()]
    path = tmp_path / "task.yaml"
    path.write_text("".join(lines))
    return load_task(str(path))


def choice(tmp_path: Path, **more: object) -> Task:
    return load(tmp_path, "choice", **more)


def answer(tmp_path: Path, **more: object) -> Task:
    return load(tmp_path, "answer", fields="[context, question]", **more)


def read(task: Task, row: dict[str, Any]) -> tuple[dict[str, str], Label]:
    parts = kind_of(task).make_reader(task)(row)
    return parts.fields, parts.label


@pytest.mark.parametrize("right", [1, "1", "B", "b", "Steve Jobs", "steve jobs", [1], 1.0])
def test_the_right_option_is_an_index_a_letter_or_a_text(tmp_path: Path, right: object) -> None:
    fields, label = read(choice(tmp_path), QUIZ | {"answer": right})
    assert list(fields) == ["question", "A", "B", "C"]
    assert (label.id, label.name) == (1, "B")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": 3}, "not the index of an option: indices are 0 to 2"),
        ({"answer": "D"}, "not one of the options"),
        ({"answer": [0, 1]}, "2 right options, but a choice has only one"),
        ({"answer": None}, "the answer is missing"),
        ({"answer_text": "Steve Jobs"}, "answer is option A, but answer_text says 'Steve Jobs'"),
        ({"choices": ["one"]}, "at least 2 options, but this one has 1"),
        ({"choices": ["a", "b", "c", "d", "e"]}, "5 options, but the task allows at most 4"),
        ({"choices": ["a", " a ", "c"]}, "the options A and B are the same"),
        ({"choices": ["a", "", "c"]}, "the option B is empty"),
        ({"choices": "a, b"}, "choices must be a list"),
        ({"question": " "}, "the question field is empty"),
    ],
)
def test_a_row_that_is_no_choice_says_why(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(ItemDefect, match=reason):
        read(choice(tmp_path), QUIZ | change)


@pytest.mark.parametrize(
    ("given", "accepted", "kind"),
    [
        (["2", "two", "2"], "2\ntwo", "number"),
        ("Paris", "Paris", "text"),
        ({"text": ["in May", "May"], "answer_start": [3, 6]}, "in May\nMay", "text"),
        (3.5, "3.5", "number"),
        ("$ 3.8 million", "$ 3.8 million", "number"),
        ("yes", "yes", "yes_no"),
    ],
)
def test_answers_come_in_several_forms(
    tmp_path: Path, given: object, accepted: str, kind: str
) -> None:
    fields, label = read(answer(tmp_path), QUESTION | {"answers": given})
    assert fields["answers"] == accepted
    assert label.name == kind


@pytest.mark.parametrize("tolerance", ["0", "0%", "0.0", "1e-9", "99.9%", "1e-15", "1e15"])
def test_a_tolerance_that_can_be_computed_is_kept(tmp_path: Path, tolerance: str) -> None:
    fields, _ = read(answer(tmp_path), QUESTION | {"tolerance": tolerance})
    assert fields["tolerance"] == tolerance


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answers": []}, "the answers field is empty"),
        ({"answers": None}, "the answers field is missing"),
        ({"answer_type": "colour"}, "not one of text, number, date, yes_no"),
        ({"tolerance": "about"}, "neither a non-negative number nor a percentage"),
        ({"tolerance": "1e9999999%"}, "must be below 100%"),
        ({"tolerance": "9" * 1000}, "is not between 1e-15 and 1e\\+15"),
        ({"tolerance": "1e-99999999999"}, "is not between"),
        ({"tolerance": "0." + "0" * 400 + "1%"}, "is not between"),
        ({"tolerance": "0e99999999999999999999"}, "the exponent of the tolerance '0e9+' is too"),
        ({"tolerance": "0e-99999999999999999999%"}, "is too large or too small"),
        ({"tolerance": "1e99999999999999999999%"}, "is too large or too small"),
        ({"tolerance": "100%"}, "must be below 100%, because otherwise the answer 0 would be"),
        ({"choices": ["a", "b"]}, "should that be choice?"),
        ({"context": ""}, "the context field is empty"),
    ],
)
def test_a_row_that_is_no_question_says_why(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(ItemDefect, match=reason):
        read(answer(tmp_path), QUESTION | change)


def test_a_summary_longer_than_its_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ItemDefect, match="are the columns swapped"):
        read(
            load(tmp_path, "summary"),
            {"document": REPORT["summary"], "summary": REPORT["document"]},
        )


@pytest.mark.parametrize("kind", ["choice", "answer", "summary"])
def test_a_published_row_comes_back_as_it_was(tmp_path: Path, kind: str) -> None:
    own = {"choice": QUIZ, "answer": QUESTION | {"unit": "days", "tolerance": 0.5}}
    task = answer(tmp_path) if kind == "answer" else load(tmp_path, kind)
    fields, label = read(task, own.get(kind, REPORT))
    row = kind_of(task).write(task, fields, label)
    assert set(row) == set(kind_of(task).columns(task))
    found = kind_of(task).restore(row)
    assert (dict(found.fields), found.label) == (fields, label.id)
    assert adapt_task(task, fields).fields == tuple(fields)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (
            "choice",
            ["Who founded Microsoft with Paul Allen?\nA. Bill Gates\nB. Steve Jobs\nC. Larry Page"],
        ),
        ("answer", ["Two nations met.", "How many?"]),
        ("summary", [REPORT["document"]]),
    ],
)
def test_what_is_compared_does_not_hold_the_gold(
    tmp_path: Path, kind: str, texts: list[str]
) -> None:
    rows: dict[str, dict[str, Any]] = {
        "choice": QUIZ,
        "answer": QUESTION | {"unit": "days"},
        "summary": REPORT,
    }
    task = answer(tmp_path) if kind == "answer" else load(tmp_path, kind)
    fields, _ = read(task, rows[kind])
    assert [*kind_of(task).compared(task, fields).values()] == texts
    own = adapt_task(task, fields)
    assert [*kind_of(task).compared(own, fields).values()] == texts


def test_what_holds_the_gold_is_hidden(tmp_path: Path) -> None:
    fields, _ = read(answer(tmp_path), QUESTION | {"unit": "days"})
    task = adapt_task(answer(tmp_path), fields)
    assert task.shown_fields == ("context", "question")
    assert task.carried_fields == ("unit",)


def test_a_choice_has_the_letters_of_its_options_as_labels(tmp_path: Path) -> None:
    fields, _ = read(choice(tmp_path), QUIZ)
    task = choice(tmp_path)
    assert [each.name for each in task.labels] == ["A", "B", "C", "D"]
    assert [each.name for each in adapt_task(task, fields).labels] == ["A", "B", "C"]


def test_a_benchmark_of_choices_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "test.csv"
    path.write_text('question,choices,answer\nWhich?,"[""x"", ""y""]",B\nWhich?,"[""x""]",A\n')
    found = load_benchmark(DatasetConfig(format="csv", path=str(path)), choice(tmp_path))
    assert [sample.label_text for sample in found.samples] == ["B"]
    assert [bad.reason for bad in found.bad_rows] == [
        "a choice needs at least 2 options, but this one has 1"
    ]


def test_a_task_with_labels_keeps_its_hash() -> None:
    assert hash_task(load_task("emotion")).startswith("093b36759feb6aa6")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kind": "choise"}, "did you mean 'choice'?"),
        ({"kind": "answer", "options": 3}, "a task of the kind answer has no options"),
        ({"kind": "choice", "labels": []}, "a task of the kind choice has no labels"),
        ({"kind": ["choice"]}, "there is no kind ['choice']"),
        ({"kind": {"a": 1}}, "there is no kind {'a': 1}"),
        ({"kind": None}, "there is no kind None"),
        ({"kind": "choice", "options": 1}, "a choice needs at least 2 options"),
        ({"kind": "choice", "fields": ["question", "A"]}, "'A' is a reserved name"),
        ({"kind": "answer", "fields": ["A", "question"]}, ""),
        ({"kind": "choice", "hidden_fields": ["x"]}, "the kind sets it"),
        ({"kind": "choice", "templates": ["$item"]}, ""),
        ({"kind": "choice", "templates": ["$itme $choices"]}, "did you mean 'item'"),
    ],
)
def test_a_task_file_of_another_kind_is_checked(keys: dict[str, object], said: str) -> None:
    found = parse_task_file({"name": "own", "description": "Try it."} | keys)
    told = " ".join(f"{one.message} {one.hint}" for one in found) if isinstance(found, list) else ""
    assert said in told and bool(said) == bool(told)


def test_a_choice_is_scored_over_the_letters_that_its_samples_have(tmp_path: Path) -> None:
    task, texts = choice(tmp_path), [{"question": "?", "A": "x", "B": "y"}, {"A": "x"}]
    assert kind_of(task).used_labels(task, texts) == ["A", "B"]
    emotion = load_task("emotion")
    assert kind_of(emotion).used_labels(emotion, []) == [each.name for each in emotion.labels]

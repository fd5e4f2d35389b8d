"""Runs of choices, answers and summaries are released, verified, compared and described."""

import asyncio
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.releases.comparable import open_comparable
from coreeval.releases.contents import find_contradictions
from coreeval.releases.diff import compare_in_full
from coreeval.releases.sample_tables import load_originals
from coreeval.releases.verify import require_whole
from coreeval.schema import TaskKind
from coreeval.tasks.kinds import title_fields
from tests.releases.kinds import OPEN, SEMANTIC, UPDATED, make_kind_run
from tests.releases.people import rewrite

OTHERS = [kind for kind in get_args(TaskKind) if kind != "labels"]
COLUMNS = {
    "choice": ["question", "choices", "answer", "answer_text"],
    "answer": ["context", "question", "answers", "answer_type", "unit", "tolerance", "program"],
    "summary": ["document", "summary"],
}
GOLD = {"choice": "Ada Roe", "answer": ["3", "three"], "summary": "A dam was opened."}
ENDS = ["outcome", "attempts", "semantic_status"]


@pytest.mark.parametrize("kind", OTHERS)
def test_a_release_has_the_columns_of_its_kind(tmp_path: Path, kind: TaskKind) -> None:
    release = make_kind_run(tmp_path, kind, licence=OPEN).release()
    require_whole(release.path)
    assert not list(find_contradictions(release))
    for arm in ("updated", "semantic", "original"):
        table = pq.read_table(release.file(arm))
        assert table.column_names == ["id", *COLUMNS[kind], *ENDS]
    (row,) = pq.read_table(release.file("updated")).to_pylist()
    gold = {"choice": "answer_text", "answer": "answers", "summary": "summary"}[kind]
    assert row[gold] == GOLD[kind]
    assert [each.fields for each in release.arm("updated")] == [UPDATED[kind]]
    assert [each.fields for each in release.arm("semantic")] == [SEMANTIC[kind]]


@pytest.mark.parametrize("kind", OTHERS)
def test_originals_that_may_not_be_passed_on_are_fetched(tmp_path: Path, kind: TaskKind) -> None:
    made = make_kind_run(tmp_path, kind)
    release = made.release()
    found = load_originals(release.path, made.benchmark)
    assert [each.id for each in found] == ["q1", "q2", "q3"]
    texts = release.file("original").read_bytes()
    assert b"bridge" not in texts and b"river" not in texts


@pytest.mark.parametrize("kind", OTHERS)
def test_the_judges_answer_to_a_question_is_no_label_and_stays_in_the_run(
    tmp_path: Path, kind: TaskKind
) -> None:
    made = make_kind_run(tmp_path, kind, licence=OPEN)
    asyncio.run(rewrite(made, "q1", original_label="said by a judge"))
    first, *_ = made.release().samples()
    assert first.original_label == ("" if kind == "answer" else "said by a judge")


@pytest.mark.parametrize("kind", OTHERS)
def test_a_run_and_its_release_do_not_differ(tmp_path: Path, kind: TaskKind) -> None:
    made = make_kind_run(tmp_path, kind)
    sides = map(open_comparable, (made.files.root, made.release().path))
    found = compare_in_full(*sides)
    assert (found.samples.kept, found.samples.changed, found.samples.added) == (1, 0, 0)


def test_a_name_in_an_option_is_taken_down(tmp_path: Path) -> None:
    made = make_kind_run(tmp_path, "choice")
    listed = tmp_path / "takedown.txt"
    listed.write_text("Ada Roe\n")
    release = made.release(takedown=listed, allow_empty_arm=True)
    assert not list(release.arm("updated"))
    assert release.manifest.takedown.withheld == 1


@pytest.mark.parametrize(
    ("kind", "task", "told"),
    [
        ("choice", "multiple-choice", "| answer | integer | index of the right option, from 0 |"),
        ("answer", "question-answering", "| answers | list of texts | the accepted answers; "),
        ("summary", "summarization", "| summary | text | the reference summary |"),
    ],
)
def test_cards_say_what_a_sample_is(tmp_path: Path, kind: TaskKind, task: str, told: str) -> None:
    made = make_kind_run(tmp_path, kind)
    release = made.release()
    for card in (made.files.dataset / "README.md", release.path / "README.md"):
        text = card.read_text("utf-8")
        assert f"task_categories:\n- {task}\n" in text
        assert told in text and "## Labels" not in text


def test_the_card_of_choices_says_what_letters_are(tmp_path: Path) -> None:
    card = (make_kind_run(tmp_path, "choice").release().path / "README.md").read_text("utf-8")
    assert "| right option | accepted | of the benchmark | of the updated arm |\n" in card
    assert "\n| B | 50.0%" in card and "\n| C |" not in card
    assert "The letter gives the position of the right option" in card
    assert "- name: choices\n    list: string\n" in card


def test_titles_tell_the_gold() -> None:
    choice = {"question": "Which?", "A": "x", "B": "y"}
    assert list(title_fields(choice, "B")) == ["question", "A", "B (right)"]
    answer = {"question": "How many?", "answers": "2\ntwo", "unit": "days", "tolerance": "1%"}
    told = "accepted answers (number, in days, tolerance 1%)"
    assert title_fields(answer, "number") == {"question": "How many?", told: "2 | two"}
    labels = {"A": "first text", "B": "second text"}
    assert title_fields(labels, "better") == labels

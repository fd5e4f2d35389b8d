"""Runs of choices, answers and summaries are released, verified, compared and described."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.agents.safety import EMPTY_TAKEDOWN
from coreeval.releases.carry_over import CarryOver, CarryOverTerms
from coreeval.releases.comparable import open_comparable
from coreeval.releases.contents import find_contradictions
from coreeval.releases.diff import compare_in_full
from coreeval.releases.release import Release
from coreeval.releases.sample_tables import load_originals
from coreeval.releases.sources import Horizon
from coreeval.releases.verify import require_whole
from coreeval.runs.manifest import full_counts, read_manifest, write_manifest
from coreeval.schema import Result, TaskKind
from coreeval.tasks.kinds import title_fields
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kinds import OPEN, SEMANTIC, UPDATED, make_kind_run
from tests.releases.kit import NOW, Made
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


LONG = "the mayor opened the old bridge at noon"
"""Eight words."""


def _keeping(folder: Path, fields: dict[str, str], **dataset: object) -> Made:
    """Return a run whose first sample was reworded, except for these fields."""
    made = make_kind_run(folder, "summary" if "summary" in fields else "choice", **dataset)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        sample = store.sample("q1")
    kept = sample.fields | fields
    with closing(sqlite3.connect(made.files.store)) as database, database:
        database.execute("UPDATE samples SET fields = ? WHERE id = 'q1'", [json.dumps(kept)])
    new = {name: f"New words: {text}" for name, text in kept.items()}
    asyncio.run(rewrite(made, "q1", semantic=new | fields, updated=new))
    return made


def _semantic(release: Release) -> tuple[list[str], int, str]:
    rows = [row.id for row in release.arm("semantic")]
    return rows, release.manifest.semantic_left_out, next(release.samples()).semantic_status


@pytest.mark.parametrize("fields", [{"summary": "A dam."}, {"A": LONG, "B": "Bo Li"}])
def test_a_reworded_sample_with_whole_texts_of_the_benchmark_is_not_released(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    release = _keeping(tmp_path, fields).release()
    require_whole(release.path)
    assert _semantic(release) == ([], 1, "licence")
    assert "1 other is left out, because part" in (release.path / "README.md").read_text("utf-8")
    assert [row.id for row in release.arm("updated")] == ["q1"]


@pytest.mark.parametrize("fields", [{"summary": "A dam."}, {"A": LONG, "B": "Bo Li"}])
def test_a_reworded_sample_with_whole_texts_is_released_if_the_licence_allows(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    release = _keeping(tmp_path, fields, licence=OPEN).release()
    require_whole(release.path)
    assert _semantic(release) == (["q1"], 0, "reworded")
    assert "left out" not in (release.path / "README.md").read_text("utf-8")


def test_short_options_may_stay_in_a_release(tmp_path: Path) -> None:
    release = _keeping(tmp_path, {"A": LONG.removesuffix(" noon"), "B": "Bo Li"}).release()
    assert _semantic(release) == (["q1"], 0, "reworded")


def test_a_rejected_sample_is_not_replaced_by_whole_texts_of_the_benchmark(tmp_path: Path) -> None:
    made = _keeping(tmp_path, {"summary": "A dam."})
    config = made.files.config.read_text()
    made.files.config.write_text(config.replace("on_reject: drop", "on_reject: semantic"))
    asyncio.run(rewrite(made, "q1", outcome="rejected_facts", updated=None, facts=()))
    manifest = read_manifest(made.files.manifest)
    counts = full_counts(3, {"rejected_facts": 1, "no_knowledge": 2})
    write_manifest(made.files.manifest, manifest.model_copy(update={"counts": counts}))
    release = made.release(allow_empty_arm=True)
    require_whole(release.path)
    assert release.manifest.on_reject == "semantic" and not list(release.arm("updated"))


def test_a_sample_that_is_kept_from_a_release_without_its_reworded_text_has_none(
    tmp_path: Path,
) -> None:
    made = _keeping(tmp_path, {"summary": "A dam."})
    release = made.release("1")
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        known = list(store.sample_results())
    terms = CarryOverTerms(
        horizon=Horizon(), takedown=EMPTY_TAKEDOWN, min_precision="cluster", targets=()
    )
    made.files.store.unlink()
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        store.add_samples(CarryOver(release, terms).iter_rows(each.sample for each in known))
        for sample_id in store.pending():
            asyncio.run(store.commit(Result(sample_id=sample_id, outcome="no_knowledge")))
        kept = store.result("q1")
    assert kept and kept.updated and kept.semantic is None
    manifest = read_manifest(made.files.manifest)
    write_manifest(made.files.manifest, manifest.model_copy(update={"kept": 1}))
    second = made.release("2")
    require_whole(second.path)
    assert _semantic(second) == ([], 1, "licence")
    assert [row.kept_from for row in second.samples()] == ["1", None, None]


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

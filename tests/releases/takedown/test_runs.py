"""What is taken out of a run.db besides the texts of samples: ids, causes; what stays is told."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.releases.takedown.calls import UNREADABLE_FILE
from coreeval.releases.takedown.run_rows import erase_rows, find_matches, iter_found
from coreeval.releases.takedown.runs import erase_from_run, list_results, list_searched
from coreeval.runs.manifest import read_manifest, write_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.foreign_schema import SEARCH_INDEX
from coreeval.tools.stores.run_queries import SampleFilter
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from tests.releases.kit import make_run

FINDER = NameFinder(["Zoe Quux"])
SAMPLE = "INSERT INTO {table} (seq, id, split, fields, label, label_text{more}) VALUES ({values})"
CALL = (
    "INSERT INTO calls (sample_id, attempt, node, key, role, model, draw, cached, "
    "prompt_tokens, completion_tokens, seconds, usd) VALUES (?, 1, 'n', ?, 'judge', ?, 0, 0, 1, 1, "
    "0.0, 0.25)"
)
RESULT = (
    "INSERT INTO results (sample_id, outcome, reason, attempts, rung, semantic_status, "
    "original_label, ended_at, cause) VALUES (?, 'failed', ?, 1, '', '', '', '', ?)"
)

INDEXED = f"CREATE VIRTUAL TABLE temp.indexed USING fts5vocab(main, {SEARCH_INDEX}, row)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a run.db without rows."""
    path = tmp_path / "run.db"
    RunStore.open(path, now=utc_now).close()
    return path


def change(path: Path, *statements: tuple[str, Sequence[object]]) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        for statement, values in statements:
            file.execute(statement, values)


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as file:
        return sorted(file.execute(query).fetchall())


def indexed(path: Path) -> list[Any]:
    """Return the trigrams of two words that the index of searches has."""
    with closing(sqlite3.connect(path)) as file:
        file.execute(INDEXED)
        query = "SELECT term FROM indexed WHERE term IN ('quu', 'not') ORDER BY term"
        return file.execute(query).fetchall()


def sample(seq: int, name: str, text: str, label: str = "joy") -> tuple[str, Sequence[object]]:
    values = "?, ?, 'test', json_object('text', ?), 0, ?"
    return SAMPLE.format(table="samples", more="", values=values), (seq, name, text, label)


def train_item(seq: int, name: str) -> tuple[str, Sequence[object]]:
    values = "?, ?, 'train', '{}', 0, 'joy', 'reworded', ''"
    return SAMPLE.format(table="train_items", more=", status, reason", values=values), (seq, name)


def test_calls_of_what_left_the_run_keep_their_cost_and_no_id(path: Path) -> None:
    """`gone/1` left by its text, the others by their ids; one left before ids were replaced."""
    change(
        path,
        sample(1, "gone/1", "said Zoe Quux"),
        sample(2, "zoe-quux/2", "nothing"),
        sample(3, "other/3", "nothing"),
        train_item(1, "train:zoe_quux/1"),
        *((CALL, (each, f"k{n}", "m")) for n, each in enumerate(
            ("gone/1", "zoe-quux/2", "other/3", "train:zoe_quux/1", "zoe-quux/8", "target m"))),
    )  # fmt: skip
    found = find_matches(path, FINDER)
    erase_rows(path, found)
    ids = dict(rows(path, "SELECT key, sample_id FROM calls"))
    earlier = ids.pop("k4")
    assert ids == {
        "k0": "taken down/1", "k1": "taken down/2", "k2": "other/3",
        "k3": "train:taken down/1", "k5": "target m",
    }  # fmt: skip
    assert earlier.startswith("taken down/")
    assert rows(path, "SELECT sum(usd) FROM calls") == [(1.5,)]
    told = [(each.kind, each.count) for each in iter_found(path, found)]
    assert told == [
        ("ids of samples taken down", 1), ("samples of the benchmark", 2), ("train items", 1),
    ]  # fmt: skip
    assert not [*iter_found(path, find_matches(path, FINDER))]


def test_names_of_labels_and_models_are_reported(path: Path) -> None:
    change(path, sample(1, "s", "nothing", "by Zoe Quux"), (CALL, ("s", "k", "openai:zoe-quux")))
    found = find_matches(path, FINDER)
    erase_rows(path, found)
    assert rows(path, "SELECT label_text FROM samples") == [("by Zoe Quux",)]
    (left,) = iter_found(path, found)
    assert (left.kind, left.action, left.count) == ("names in a run", "reported", 2)
    assert "delete the run" in left.to_do


@pytest.mark.parametrize("reason", ["Zoe Quux is unknown: stop", b"Zoe Quux, in bytes"])
def test_the_cause_of_a_sample_goes_with_its_reason(path: Path, reason: str | bytes) -> None:
    change(path, sample(1, "s", "nothing"), (RESULT, ("s", reason, "Zoe Quux is unknown")))
    erase_rows(path, find_matches(path, FINDER))
    assert rows(path, "SELECT reason, cause FROM results") == [(TAKEN_DOWN, TAKEN_DOWN)]
    assert rows(path, "SELECT cause FROM listing") == [(TAKEN_DOWN,)]


def test_an_answer_of_the_blind_judge_is_blanked_and_a_label_is_reported(path: Path) -> None:
    asked = json.dumps({"question": "Who sang?", "answers": "Bo Li"})
    values = "?, ?, 'test', ?, 0, 'text'"
    question = SAMPLE.format(table="samples", more="", values=values)
    change(
        path,
        (question, (1, "q", asked)),
        (question, (2, "damaged", "[1]")),
        sample(3, "s", "nothing"),
        *((RESULT, (each, "", "")) for each in ("q", "damaged", "s")),
        ("UPDATE results SET original_label = 'Zoe Quux'", ()),
    )
    found = find_matches(path, FINDER)
    erase_rows(path, found)
    left = rows(path, "SELECT sample_id, original_label FROM results")
    assert left == [("damaged", TAKEN_DOWN), ("q", TAKEN_DOWN), ("s", "Zoe Quux")]
    assert [(each.kind, each.count) for each in iter_found(path, found)] == [
        ("answers of the label judge", 2), ("names in a run", 1),
    ]  # fmt: skip


def test_an_unfinished_sample_that_was_offered_erased_news_searches_again(path: Path) -> None:
    """Also a failed one, which stays failed until `retry`."""
    news = "INSERT INTO evidence (id, body) VALUES (?, json_object('id', ?, 'title', ?))"
    search = "INSERT INTO searches (sample_id, asked, events, need) VALUES (?, '[]', ?, '')"
    ended = {"failed": "failed", "accepted": "accepted", "rejected": "rejected"}
    offers = {"open": "e1", "other": "e2", **dict.fromkeys(ended, "e1"), "damaged": None}
    change(
        path,
        (news, ("e1", "e1", "Zoe Quux sang")),
        (news, ("e2", "e2", "nothing")),
        *(sample(number, each, "nothing") for number, each in enumerate(offers)),
        *((search, (each, json.dumps([["k", "name", known and [known]]])))
          for each, known in offers.items()),
        *((RESULT, (each, "", "")) for each in ended),
        *(("UPDATE results SET outcome = ? WHERE sample_id = ?", (ended[each], each))
          for each in ended),
        ("INSERT INTO stages (name, detail, ended_at) VALUES ('news', '', '')", ()),
    )  # fmt: skip
    found = find_matches(path, FINDER)
    assert (found.gone, found.unfinished) == ({"open"}, True)
    erase_rows(path, found)
    left = rows(path, "SELECT sample_id FROM searches")
    assert left == [("accepted",), ("damaged",), ("other",), ("rejected",)]
    assert rows(path, "SELECT count(*) FROM results") == [(3,)]
    assert rows(path, "SELECT count(*) FROM stages") == [(0,)]
    told = [(each.kind, each.count, each.action) for each in iter_found(path, found)]
    assert told == [("news", 1, "blanked"), ("samples", 1, "reopened")]


def test_words_that_were_erased_leave_the_index_of_searches(path: Path) -> None:
    change(
        path,
        sample(1, "s", "Zoe Quux sang"),
        sample(2, "t", "nothing"),
        sample(3, "u", "nothing"),
        (RESULT, ("s", "", "")),
        (RESULT, ("t", "said of Zoe Quux", "")),
        (RESULT, ("u", "", "")),
        ("INSERT INTO heartbeat VALUES (1, 1, 'h', '', '{}', NULL)", ()),  # indexes them
    )
    assert indexed(path) == [("not",), ("quu",)]
    assert b"zoe" in path.read_bytes(), "the index has small letters"
    erase_rows(path, find_matches(path, FINDER))
    assert indexed(path) == [("not",)]
    assert b"zoe" not in path.read_bytes()
    with closing(RunStore.open(path, now=utc_now)) as store:
        assert store.listing.page(SampleFilter(text="quux")).total == 0
        assert store.listing.page(SampleFilter(text=TAKEN_DOWN)).total == 1


def test_scores_of_texts_go_with_the_results_of_the_run(path: Path) -> None:
    files = RunFiles(path.parent)
    change(path, sample(0, "s/1", "Zoe Quux sang"), (RESULT, ("s/1", "", "")))
    scores = files.detector_folder("membership") / "abc.jsonl"
    cells = files.detector_folder("finetune") / "abc.jsonl"
    for each in (scores, cells):
        each.parent.mkdir(parents=True)
        each.write_text('{"key": "00"}\n{"tokens": ["17", "4"]}\n')
    list(erase_from_run(files, FINDER, dry=True))
    assert scores.exists()
    found = list(erase_from_run(files, FINDER, dry=False))
    assert "results of the run" in [each.kind for each in found]
    assert not scores.exists() and cells.exists()


@pytest.mark.parametrize("cassette", ["", "f00d"])
def test_a_run_that_repeats_a_cassette_is_not_resumed(tmp_path: Path, cassette: str) -> None:
    files = make_run(tmp_path).files
    known = read_manifest(files.manifest)
    write_manifest(files.manifest, known.model_copy(update={"cassette": cassette}))
    change(files.store, ("UPDATE results SET updated = json_object('text', 'Zoe Quux sang')", ()))
    (told,) = (
        each.to_do
        for each in erase_from_run(files, FINDER, dry=False)
        if each.kind == "results of the run"
    )
    assert ("delete the run and the cassette" in told) == bool(cassette)
    assert ("coreeval resume" in told) == (not cassette)


def test_results_are_searched_in_a_run_with_a_damaged_store_too(tmp_path: Path) -> None:
    """Only those that name the person are deleted: the others cannot be made again."""
    files = make_run(tmp_path).files
    files.store.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    for arm, text in (("updated", "Zoe Quux sang"), ("semantic", "somebody sang")):
        shard = files.dataset / arm / "test-00000-of-00001.parquet"
        shard.parent.mkdir(parents=True)
        pq.write_table(pa.table({"text": [text]}), shard)
    before = list_results(files)
    for dry in (True, False):
        found = {each.kind: each for each in erase_from_run(files, FINDER, dry=dry)}
        assert (found["results of the run"].count, found["results of the run"].to_do) == (1, "")
        assert found[UNREADABLE_FILE].path == files.store
        assert len(list_results(files)) == len(before) - (not dry)
    assert read_manifest(files.manifest).status == "interrupted"


def test_results_that_a_damaged_store_lost_are_made_again(tmp_path: Path) -> None:
    files = make_run(tmp_path).files
    change(
        files.store, ("INSERT INTO stages (name, ended_at, detail) VALUES ('report', '', '{}')", ())
    )
    assert list(erase_from_run(files, FINDER, dry=False)) == []
    whole = files.store.read_bytes()
    files.store.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    files.report_json.write_text('"Zoe Quux"')
    list(erase_from_run(files, FINDER, dry=False))
    files.store.write_bytes(whole)
    for dry in (True, False):
        (found,) = erase_from_run(files, FINDER, dry=dry)
        assert (found.kind, "coreeval resume" in found.to_do) == ("results of the run", True)
    assert rows(files.store, "SELECT * FROM stages") == []
    assert list(erase_from_run(files, FINDER, dry=False)) == []


def test_a_damaged_manifest_does_not_protect_the_names_in_the_store(tmp_path: Path) -> None:
    """The results are deleted; the run is interrupted once the manifest is there again."""
    files = make_run(tmp_path).files
    stage = "INSERT INTO stages (name, ended_at, detail) VALUES ('report', '', '{}')"
    change(files.store, ("UPDATE results SET updated = json_object('text', 'Zoe Quux sang')", ()),
           (stage, ()))  # fmt: skip
    shard = files.dataset / "updated" / "test-00000-of-00001.parquet"
    shard.parent.mkdir(parents=True)
    pq.write_table(pa.table({"text": ["Zoe Quux sang"]}), shard)
    whole = files.manifest.read_bytes()
    files.manifest.write_bytes(whole[:200])
    for dry in (True, False):
        found = {each.kind: each for each in erase_from_run(files, FINDER, dry=dry)}
        assert {"samples", "results of the run"} <= found.keys()
        assert found["results of the run"].to_do == "" and shard.exists() == dry
        assert found[UNREADABLE_FILE].path == files.manifest
        assert "restore it from a backup" in found[UNREADABLE_FILE].to_do
    assert files.manifest in list_searched(files), "the run stays marked"
    assert "Zoe" not in str(rows(files.store, "SELECT updated FROM results"))
    assert files.manifest.read_bytes() == whole[:200]
    files.manifest.write_bytes(whole)
    list(erase_from_run(files, FINDER, dry=True))
    assert read_manifest(files.manifest).status == "complete"
    assert list(erase_from_run(files, FINDER, dry=False)) == []
    told = read_manifest(files.manifest)
    assert told.status == "interrupted" and told.counts["pending"] > 0


def test_a_damaged_result_does_not_protect_the_names_in_the_store(tmp_path: Path) -> None:
    files = make_run(tmp_path).files
    change(files.store, ("UPDATE results SET updated = json_object('text', 'Zoe Quux sang')", ()))
    damaged = files.dataset / "updated" / "test-00000-of-00001.parquet"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"PAR1 and no more")
    kinds = {each.kind for each in erase_from_run(files, FINDER, dry=False)}
    assert {"samples", "results of the run"} <= kinds
    assert UNREADABLE_FILE not in kinds and not damaged.exists()
    assert "Zoe" not in str(rows(files.store, "SELECT updated FROM results"))

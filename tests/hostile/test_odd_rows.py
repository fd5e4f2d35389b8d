"""A run.db with rows that CoreEval does not write: one message that names the run and the row."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.cli import main
from coreeval.errors import RunCorrupt, RunStateError
from coreeval.evaluation.answer_codes import code_answers
from coreeval.releases.exports.export import export
from coreeval.schema import TaskKind
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kinds import make_kind_run
from tests.releases.kit import make_run
from tests.support.odd_rows import odd_row

ODD_ROWS = {
    "UPDATE results SET ended_at = X'fffe'": "ended_at",
    "UPDATE results SET ended_at = 'yesterday'": "ended_at",
    "UPDATE results SET outcome = 'won'": "outcome",
    "UPDATE results SET attempts = 'two'": "attempts",
    "UPDATE results SET updated = 'null' WHERE outcome = 'accepted'": "without a text",
    """UPDATE results SET updated = '{"words": "a"}' WHERE updated <> 'null'""": "fields differ",
    """UPDATE results SET freshness = '{"precision": []}'""": "freshness",
    """UPDATE results SET freshness = '{"earliest": "2026-11-02T00:00:00", "precision": "exact",
       "after_cutoff": {}}'""": "time zone",
    "UPDATE samples SET label_text = -1 WHERE id LIKE '%/2'": "label",
    "UPDATE samples SET fields = '[]'": "fields",
    "UPDATE samples SET fields = '{' WHERE seq = 2": "fields",
    """UPDATE samples SET fields = '{"text": "\\ud800"}'""": "fields",
    "UPDATE samples SET id = 'x' WHERE seq = 1": "result without a sample",
    "UPDATE facts SET evidence_id = -1": "without its evidence",
    "UPDATE facts SET after = 'null'": "after",
    "UPDATE evidence SET id = 'x' WHERE rowid = 1": "evidence",
    "UPDATE evidence SET body = json_set(body, '$.published_at', 5)": "published_at",
    "UPDATE steps SET seconds = 1e999": "seconds",
    """UPDATE steps SET detail = '{"evidence": {"x": "named"}}', node = 'retrieve'
       WHERE rowid = 1""": "news",
    """UPDATE steps SET detail = '{"plan": 5}'""": "plan",
    "UPDATE steps SET sample_id = 'targets' WHERE rowid = 1": "steps without a sample",
    "UPDATE verdicts SET passed = 'yes'": "passed",
    "UPDATE listing SET attempts = X'fffe'": "attempts",
    "UPDATE listing SET sample = 'x' WHERE seq = 1": "list",
    "INSERT INTO predictions VALUES ('t', 'updated', 1, 'x', 'joy', '', '', '', NULL, NULL)": (
        "kind"
    ),
    "INSERT INTO predictions VALUES ('t', 'updated', 1, 'x', 'joy', 'answered', '', '', 1, NULL)": (
        "a graded prediction is right or wrong"
    ),
    "INSERT INTO predictions VALUES ('t', 'updated', 1, 'x', 'joy', 'answered', '', '', 1, 2.0)": (
        "a score must be from 0 to 1"
    ),
    "INSERT INTO stages VALUES ('assemble', '2026-11-02', '{\"semantic\": Infinity}')": "semantic",
    "INSERT INTO stages VALUES ('evaluate', '2026-11-02', '{\"targets\": 5}')": "targets",
    "INSERT INTO heartbeat VALUES (1, 2, 'a', '2026-11-02', '{\"x\": 5}', 'null')": "in_flight",
    "INSERT INTO fetches VALUES (1, '', 'doc', 1, 1, 1, 0.5, '5')": "notes",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    return make_run(tmp_path_factory.mktemp("made")).files.root


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(made, tmp_path / "run"))


def change(run: Path, statement: str) -> None:
    """Change a run's database as its sender may."""
    with closing(sqlite3.connect(run / "run.db")) as database, database:
        assert database.execute(statement).rowcount > 0


@pytest.mark.parametrize("statement", ODD_ROWS)
def test_an_odd_row_is_found_and_named(run: Path, statement: str) -> None:
    change(run, statement)
    assert ODD_ROWS[statement] in odd_row(run)


def test_a_run_as_coreeval_makes_it_has_no_odd_row(run: Path) -> None:
    assert odd_row(run) == ""


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "status": lambda run: ["status", str(run)],
    "json": lambda run: ["status", str(run), "--json"],
    "trace": lambda run: ["trace", str(run)],
    "review": lambda run: ["review", str(run)],
    "diff": lambda run: ["diff", str(run), str(run)],
    "release": lambda run: ["release", str(run), "--version", "1", "--out", f"{run}-out"],
    "jsonl": lambda run: ["export", str(run), "--to", "jsonl", "--out", f"{run}-out"],
}


@pytest.mark.parametrize(
    ("command", "statement"),
    [
        ("trace", "UPDATE listing SET ended_at = X'fffe'"),
        ("status", "INSERT INTO heartbeat VALUES (1, 2, 'a', '-1', '{}', 'null')"),
        ("json", "UPDATE results SET outcome = 'failed', reason = X'fffe'"),
        ("trace", "UPDATE samples SET fields = '[]'"),
        ("diff", """UPDATE results SET freshness = '{"precision": []}'"""),
        ("review", """UPDATE results SET semantic = '{"text": 5}'"""),
        ("release", "UPDATE facts SET evidence_id = -1"),
        ("jsonl", """UPDATE results SET semantic = '5'"""),
    ],
)
def test_a_command_on_a_run_with_an_odd_row_is_one_message(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    statement: str,
) -> None:
    monkeypatch.chdir(run.parent)
    change(run, statement)
    assert main(COMMANDS[command](run)) == RunCorrupt.exit_code
    said = "".join(capsys.readouterr())
    assert "run.db contains data that CoreEval does not write" in said
    assert str(run / "run.db") in said
    assert "restore the file from a backup" in said


ODD_ITEMS: dict[TaskKind, dict[str, str]] = {
    "choice": {
        "UPDATE samples SET label_text = 'Z' WHERE seq = 1": "the label 1 with the name 'Z'",
        "UPDATE samples SET label = 99 WHERE seq = 1": "the label 99",
        "UPDATE results SET updated = json_remove(updated, '$.B') WHERE updated <> 'null'": "label",
        """UPDATE results SET updated = json_remove(updated, '$.question')
           WHERE updated <> 'null'""": "the question field is missing",
        "UPDATE samples SET fields = json_remove(fields, '$.A')": "the label",
    },
    "answer": {
        "UPDATE samples SET fields = json_remove(fields, '$.answers')": "not a sample of the kind",
        """UPDATE results SET updated = json_set(updated, '$.answers', '')
           WHERE updated <> 'null'""": "the answers field is missing",
        "UPDATE samples SET label_text = 'zzz'": "the name 'zzz'",
        """UPDATE samples SET fields = json_set(fields, '$.tolerance', 'abc')
           WHERE seq = 1""": "the tolerance 'abc'",
    },
    "summary": {
        """UPDATE results SET updated = json_remove(updated, '$.summary')
           WHERE updated <> 'null'""": "the summary field is missing",
        "UPDATE samples SET fields = json_remove(fields, "
        "'$.document')": "document field is missing",
    },
}


@pytest.mark.parametrize("kind", ODD_ITEMS)
def test_an_odd_item_is_one_message(tmp_path: Path, kind: TaskKind) -> None:
    made = make_kind_run(tmp_path, kind).files.root
    assert odd_row(made) == ""  # samples of one benchmark may have more options or a unit
    for number, (statement, says) in enumerate(ODD_ITEMS[kind].items()):
        run = Path(shutil.copytree(made, tmp_path / f"odd{number}"))
        change(run, statement)
        for to in ("lm-eval", "csv"):
            with pytest.raises(RunCorrupt, match="does not write") as caught:
                export(run, to=to, out=tmp_path / f"{to}{number}")
            assert says in str(caught.value), statement
            assert caught.value.where == str(run / "run.db")


def test_a_schema_version_that_is_no_number_is_one_message(run: Path) -> None:
    change(run, "UPDATE schema_version SET version = X'fffe'")
    with pytest.raises(RunCorrupt, match=r"the schema version of .* is not a number"):
        RunStore.open(run / "run.db", now=utc_now)


@pytest.mark.parametrize(
    ("stage", "detail"),
    [("assemble", '{"updated": "\\ud800"}'), ("assemble", '{"semantic": null}'),
     ("pcr", "{}"), ("evaluate", '{"targets": 5}'), ("numleak", '{"notes": "x"}')],
)  # fmt: skip
def test_what_a_stage_did_not_note_is_not_taken_from_it(run: Path, stage: str, detail: str) -> None:
    change(run, f"INSERT INTO stages VALUES ('{stage}', '2026-11-02', '{detail}')")
    with (
        RunStore.open(run / "run.db", now=utc_now) as store,
        pytest.raises(RunCorrupt, match=f"stages of '{stage}'"),
    ):
        store.stage(stage)


def test_an_outcome_that_is_none_is_not_counted(run: Path) -> None:
    change(run, "UPDATE results SET outcome = '2025-99-99'")
    with (
        RunStore.open(run / "run.db", now=utc_now) as store,
        pytest.raises(RunCorrupt, match="the outcome '2025-99-99'"),
    ):
        store.counts()


def test_a_fault_of_coreeval_stays_one(run: Path) -> None:
    with (
        pytest.raises(KeyError, match="ours"),
        RunStore.open(run / "run.db", now=lambda: datetime(2026, 1, 1, tzinfo=UTC)),
    ):
        raise KeyError("ours")


def test_a_label_that_is_none_of_the_task_is_told() -> None:
    with pytest.raises(RunCorrupt, match=r"not in the task: '-1' of '1'"):
        next(code_answers([], gold={"1": "-1"}, labels=["joy", "anger"]))


def test_a_manifest_with_odd_models_is_one_message(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run.parent)
    said = json.loads((run / "manifest.json").read_text())
    said["models"]["default"] = {"model": 0}
    (run / "manifest.json").write_text(json.dumps(said))
    assert main(["trace", str(run)]) == RunStateError.exit_code
    assert "the manifest is damaged: models: default.model: Input" in capsys.readouterr().err

"""`coreeval calls`: what is kept is counted, exported and cleared away, and no run loses any."""

import asyncio
import io
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from coreeval.cli import main
from coreeval.config import load_config
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.batch_records import CollectedAnswer
from coreeval.tools.stores.call_records import CallRecord, call_key, encode_record
from coreeval.tools.stores.call_store import open_calls
from tests.cli.kit import CONFIG, Said, Shell
from tests.cli.test_docs import documented
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer
from tests.tools.stores.test_call_batches import question

OLD = (datetime.now(UTC) - timedelta(days=40)).isoformat(timespec="milliseconds")
PRICE = {"input": 1, "output": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a run of two samples in its workspace and one of four beside it."""
    folder = tmp_path_factory.mktemp("made")
    config = folder / "trial.yaml"
    config.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    answers = OfflineAnswers(load_config(config), folder / "news")
    with LLMServer(answers).in_thread() as server:
        good = {"model": "openai:good", "base_url": server.url}
        models = {"default": good, "label_judge": {**good, "model": "openai:judge", "price": PRICE}}
        config.write_text(yaml.safe_dump(CONFIG | {"models": models}), encoding="utf-8")
        assert main(["refresh", str(config), "--limit", "2"]) == 0
        beside = ["--run-dir", str(folder / "beside")]
        assert main(["refresh", str(config), "--limit", "4", *beside]) == 0
    answers.close()
    yield folder


@pytest.fixture
def folder(made: Path, shell: Shell) -> Path:
    """Return a copy of it that is the current folder."""
    shutil.copytree(made, shell.folder, dirs_exist_ok=True)
    for manifest in shell.folder.rglob("manifest.json"):
        told = json.loads(manifest.read_text("utf-8"))
        told["workspace"] = str(shell.folder / ".coreeval")
        manifest.write_text(json.dumps(told), encoding="utf-8")
    return shell.folder


def run_of(folder: Path) -> Path:
    """Return the run in the workspace."""
    (run,) = (folder / ".coreeval" / "runs" / "trial").iterdir()
    return run


def change(folder: Path, statement: str) -> None:
    """Change rows of the call store, checksums left as they are."""
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db", isolation_level=None)) as file:
        file.execute(statement)


def rewrite(folder: Path, **columns: str) -> None:
    """Give every call other values, checksums with them."""
    store = open_calls(folder / ".coreeval" / "calls.db")
    records = [vars(record) | columns for record in store.records()]
    store.close()
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as file:
        for record in records:
            row, _ = encode_record(CallRecord(**record))
            names = ", ".join(f"{name} = ?" for name in row)
            values = [*row.values(), row["key"]]
            file.execute(f"UPDATE calls SET {names} WHERE key = ?", values)
        file.commit()


def count(folder: Path, table: str = "calls") -> int:
    """Return the number of rows of a table."""
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as file:
        return int(file.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def keys_of(run: Path) -> set[str]:
    """Return the calls that a run refers to."""
    with closing(sqlite3.connect(run / "run.db")) as file:
        return {key for (key,) in file.execute("SELECT key FROM calls")}


# -- stats ----------------------------------------------------------------------------------------


def test_the_calls_are_counted_by_model_role_and_payer(shell: Shell, folder: Path) -> None:
    said = shell("calls", "stats", "--json")
    assert (said.code, said.err) == (0, "")
    document = said.document
    assert set(document) == documented("coreeval calls stats")
    assert document["calls"] == count(folder) == sum(one["calls"] for one in document["models"])
    players = {(one["model"], one["role"]): one for one in document["models"]}
    assert ("openai:judge", "label_judge") in players and ("openai:good", "composer") in players
    judge = players["openai:judge", "label_judge"]
    priced = (judge["prompt_tokens"] + 2 * judge["completion_tokens"]) / 1e6
    assert judge["usd"] == pytest.approx(priced) and judge["unpriced"] == 0
    assert players["openai:good", "composer"]["usd"] is None
    assert document["unpriced"] == document["calls"] - judge["calls"]
    assert len(document["payers"]) == 2 and document["damaged"] == 0
    assert document["bytes"] > 10_000


def test_the_words_say_the_same(shell: Shell, folder: Path) -> None:
    said = shell("calls", "stats").out
    assert said.startswith(f".coreeval/calls.db: {count(folder)} calls, ")
    assert "openai:judge  label_judge" in said and "unknown" in said
    assert "paid by trial/" in said and "damaged" not in said
    assert re.search(r"paid by trial/\S+ \d+ calls, 0\.\d{4} USD and \d+ calls at an unknown", said)


def test_bad_answers_and_damaged_rows_are_told(shell: Shell, folder: Path) -> None:
    change(folder, "UPDATE calls SET response = X'00' WHERE rowid = 1")
    change(folder, f"INSERT INTO reservations VALUES ('1', 'trial/x@y', 'k', 0.25, '{OLD}')")
    document = shell("calls", "stats", "--json").document
    assert (document["damaged"], document["calls"]) == (1, count(folder) - 1)
    idle = {"payer": "trial/x@y", "calls": 0, "usd": 0.0, "unpriced": 0, "reserved_usd": 0.25}
    assert idle in document["payers"]
    said = shell("calls", "stats").out
    assert "damaged rows in the call store: 1;" in said
    assert "0.2500 USD for requests with an unknown outcome" in said


def test_another_workspace_can_be_named(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "news")
    error = shell("calls", "stats", "--json").error
    assert error["kind"] == "usage" and "--workspace" in error["hint"]
    assert not (folder / "news" / ".coreeval").exists()
    there = folder / ".coreeval"
    assert shell("calls", "stats", "--workspace", there, "--json").document["calls"]
    monkeypatch.setenv("COREEVAL_HOME", str(there))
    assert shell("calls", "stats", "--json").document["calls"]


# -- export ---------------------------------------------------------------------------------------


def test_an_exported_run_can_be_repeated_without_its_models(shell: Shell, folder: Path) -> None:
    run = run_of(folder)
    for model in ("good", "judge"):
        out = f"{model}.jsonl"
        said = shell("calls", "export", "--model", f"openai:{model}", "--out", out, "--run", run)
        assert said.code == 0 and f'"replay:{out}"' in said.out
    again = {"default": "replay:good.jsonl", "label_judge": "replay:judge.jsonl"}
    config = shell.config({"models": again})
    said = shell("refresh", config, "--limit", "2", "--run-dir", "again", "--json")
    before = json.loads((run / "manifest.json").read_text("utf-8"))
    assert said.document["counts"] == before["counts"]
    assert said.document["cost"]["billed_calls"] == 0 < said.document["cost"]["cached_calls"]
    stats = shell("calls", "stats", "--json").document
    assert not any(one["payer"].startswith("again") for one in stats["payers"])
    assert sum(one["calls"] for one in stats["payers"]) < stats["calls"]


def test_only_what_a_run_used_is_exported(shell: Shell, folder: Path) -> None:
    def exported(*more: str | Path) -> Mapping[str, object]:
        asked = ("--model", "openai:good", "--out", "a.jsonl", *more, "--json")
        document = shell("calls", "export", *asked).document
        assert set(document) == documented("coreeval calls export")
        assert document["answers"] == len(Path("a.jsonl").read_text("utf-8").splitlines())
        return document

    few = exported("--run", run_of(folder))
    assert 0 < int(str(few["answers"])) < int(str(exported()["answers"]))
    assert exported("--run", folder / "beside")["answers"] == exported()["answers"]
    change(folder, "DELETE FROM calls WHERE role = 'extractor'")
    assert exported("--run", run_of(folder))["missing"] == 2


@pytest.mark.parametrize(
    ("model", "hint"), [("openai:goood", "openai:good"), ("anthropic:claude", "openai:judge")]
)
def test_a_model_that_never_answered(shell: Shell, folder: Path, model: str, hint: str) -> None:
    said = shell("calls", "export", "--model", model, "--out", "a.jsonl", "--json")
    assert said.code == 2
    assert model in said.error["message"] and hint in said.error["hint"]
    assert not Path("a.jsonl").exists()


def test_two_answers_of_one_request_are_refused_and_a_run_tells_them_apart(
    shell: Shell, folder: Path
) -> None:
    store = open_calls(folder / ".coreeval" / "calls.db")
    record = next(one for one in store.records() if one.role == "composer")
    asked = json.loads(record.request)
    asked["parameters"]["temperature"] = 1.5
    request = json.dumps(asked)
    other = replace(record, key=call_key(request), request=request, response="{}")
    asyncio.run(store.put(other))
    store.close()
    asked_for = ("calls", "export", "--model", "openai:good", "--out", "a.jsonl", "--json")
    error = shell(*asked_for).error
    assert "two answers" in error["message"] and "--run RUN" in error["hint"]
    assert not Path("a.jsonl").exists()
    assert shell(*asked_for, "--run", run_of(folder)).code == 0


# -- gc -------------------------------------------------------------------------------------------


def gc(shell: Shell, *arguments: str) -> Said:
    """Clear away without confirmation."""
    return shell("calls", "gc", "--yes", "--json", *arguments)


def test_what_a_run_of_the_workspace_refers_to_stays(shell: Shell, folder: Path) -> None:
    rewrite(folder, started_at=OLD, paid_by="somebody else")
    before, kept = count(folder), keys_of(run_of(folder))
    said = gc(shell)
    assert (said.code, said.err) == (0, "")
    assert set(said.document) == documented("coreeval calls gc")
    assert said.document["calls"] == before - len(kept) == len(keys_of(folder / "beside") - kept)
    assert said.document["payers"] == {"somebody else": said.document["calls"]}
    assert said.document["bytes_after"] < said.document["bytes_before"]
    store = open_calls(folder / ".coreeval" / "calls.db")
    assert {record.key for record in store.records()} == kept
    assert store.corrupt_rows == 0
    store.close()
    assert gc(shell).document["deleted"] is False


def test_what_is_young_stays(shell: Shell, folder: Path) -> None:
    before = count(folder)
    assert gc(shell).document["calls"] == 0
    assert count(folder) == before
    assert gc(shell, "--older-than", "0").document["calls"] > 0


def test_what_a_run_elsewhere_paid_for_stays_on_demand(shell: Shell, folder: Path) -> None:
    rewrite(folder, started_at=OLD)
    assert gc(shell, "--keep-runs").document["calls"] == 0
    assert gc(shell).document["calls"] > 0


def test_texts_damaged_rows_and_lost_reservations_go(shell: Shell, folder: Path) -> None:
    run = run_of(folder)
    payer = f"trial/{run.name}@{json.loads((run / 'manifest.json').read_text())['now']}"
    change(folder, f"INSERT INTO reservations VALUES ('1', '{payer}', 'k', 0.25, '{OLD}')")
    change(folder, f"INSERT INTO reservations VALUES ('2', 'trial/gone@then', 'k', 0.25, '{OLD}')")
    change(folder, "INSERT INTO texts VALUES ('0', X'00')")
    change(folder, "UPDATE calls SET valid = 0 WHERE rowid = 1")
    document = gc(shell).document
    assert (document["damaged"], document["texts"], document["reservations"]) == (1, 1, 1)
    assert (count(folder, "reservations"), count(folder, "texts") > 0) == (1, True)


async def send_elsewhere(folder: Path, days: float, state: str, *, answered: bool) -> None:
    """Send a batch of one question, as a run in another folder did some days ago."""
    made = utc_now() - timedelta(days=days)
    with closing(open_calls(folder / ".coreeval" / "calls.db", "trial/elsewhere@then")) as calls:
        await calls.batches.queue(question("k"))
        (length,) = calls.batches.queue_lengths()
        batch = await calls.batches.begin(length, ["k"], made_at=made, budget_usd=10.0)
        assert batch is not None
        reservation = calls.batches.requests_of(batch)["k"].reservation
        if answered:
            answer = CollectedAnswer(key="k", reservation=reservation, answer=b"said", usd=0.1)
            await calls.batches.keep(batch, [answer], {"usd": 0.1})
        await calls.batches.update(batch, {"state": state})
    change(folder, f"UPDATE reservations SET made_at = '{made.isoformat()}'")


@pytest.mark.parametrize(
    ("state", "days", "options", "goes"),
    [
        ("sent", 0.01, (), False),
        ("sending", 20, ("--older-than", "7"), False),
        ("sent", 20, ("--older-than", "7"), False),
        ("sent", 20, ("--older-than", "7", "--open-batches"), True),
        ("sent", 20, ("--open-batches",), False),
        ("sent", 31, (), True),
        ("sent", 31, ("--keep-runs",), False),
        ("collected", 20, (), False),
        ("collected", 20, ("--older-than", "7"), True),
        ("lost", 20, ("--older-than", "7"), True),
    ],
)
def test_batches_of_runs_elsewhere_go_with_their_money_once_they_are_old(
    shell: Shell, folder: Path, state: str, days: float, options: tuple[str, ...], goes: bool
) -> None:
    asyncio.run(send_elsewhere(folder, days, state, answered=state == "collected"))
    before = [count(folder, each) for each in ("batches", "batch_requests", "reservations")]
    document = gc(shell, *options).document
    after = [count(folder, each) for each in ("batches", "batch_requests", "reservations")]
    assert (before, after) == ([1, 1, 1], [0, 0, 0] if goes else [1, 1, 1])
    assert (document["batches"], document["reservations"]) == (int(goes), int(goes))
    is_open = state in ("sent", "sending") and "--keep-runs" not in options
    assert document["open_batches_kept"] == int(is_open and not goes)


def test_an_open_batch_that_stays_is_told_with_the_reason(shell: Shell, folder: Path) -> None:
    asyncio.run(send_elsewhere(folder, 1, "sent", answered=False))
    said = shell("calls", "gc", "--dry-run")
    assert "kept: 1 open batch from runs outside the workspace" in said.out
    assert "--open-batches" in said.out


def test_what_a_damaged_row_cost_stays_spent_where_its_payer_stays(
    shell: Shell, folder: Path
) -> None:
    change(folder, "UPDATE calls SET usd = 0.25, valid = 0 WHERE rowid = 1")
    change(folder, "UPDATE calls SET usd = 0.5, valid = 0, paid_by = 'gone@then' WHERE rowid = 2")
    before = count(folder, "reservations")
    assert gc(shell).document["damaged"] == 2
    assert count(folder, "reservations") == before + 1


def test_a_dry_run_only_looks(shell: Shell, folder: Path) -> None:
    rewrite(folder, started_at=OLD)
    before = count(folder)
    with FileLock(run_of(folder) / "run.lock"):
        said = shell("calls", "gc", "--dry-run")
    assert said.code == 0 and said.out.startswith("not deleted:")
    assert "/beside@" in said.out
    assert count(folder) == before


def test_nothing_goes_while_a_run_is_worked_on(shell: Shell, folder: Path) -> None:
    with FileLock(run_of(folder) / "run.lock"):
        assert gc(shell, "--older-than", "0").error["kind"] == "locked"
    store = open_calls(folder / ".coreeval" / "calls.db")  # as a run that is kept elsewhere has it
    error = gc(shell, "--older-than", "0").error
    store.close()
    assert error["kind"] == "locked" and "another process" in error["message"]
    assert gc(shell, "--older-than", "0").document["deleted"] is True


def test_nothing_goes_when_a_run_cannot_be_read(shell: Shell, folder: Path) -> None:
    (run_of(folder) / "run.db").write_bytes(b"no database at all" * 500)
    before = count(folder)
    assert gc(shell, "--older-than", "0").error["kind"] == "corrupt"
    assert count(folder) == before


def test_nothing_goes_without_a_yes(shell: Shell, folder: Path) -> None:
    before = count(folder)
    said = shell("calls", "gc", "--older-than", "0")
    assert said.code == 2 and "--yes" in said.err
    assert count(folder) == before


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "deleted"), [("y\n", True), ("n\n", False)])
def test_at_a_terminal_it_asks(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str, deleted: bool
) -> None:
    before = count(folder)
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    said = shell("calls", "gc", "--older-than", "0")
    assert said.code == 0 and "delete this?" in said.err
    assert said.out.lstrip().startswith("deleted:" if deleted else "not deleted:")
    assert (count(folder) < before) is deleted

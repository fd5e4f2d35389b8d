"""`coreeval trace` tells what happened, and what it quotes cannot act on a terminal or a page."""

import asyncio
import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.cli.output import brief, command, one_line, plain, say
from coreeval.runs.manifest import read_manifest, write_manifest
from coreeval.schema import Evidence
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord
from tests.cli.kit import Shell
from tests.tools.stores.call_samples import record

NOW = datetime(2026, 11, 1, tzinfo=UTC)
HOSTILE = "\x1b[2J\x1b]0;owned\x07Apple\u202e <script>alert(1)</script>\x9b31m"
UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def test_the_list_has_a_line_for_each_sample(shell: Shell, finished: Path) -> None:
    lines = shell("trace", finished).out.splitlines()
    assert lines[0].split() == ["sample", "outcome", "attempts", "usd", "reason"]
    assert [line.split()[0] for line in lines[1:6]] == [f"emotion/test/{n}" for n in range(1, 6)]
    assert all(len(line) <= 160 for line in lines[:6])


def test_the_story_of_one(shell: Shell, finished: Path) -> None:
    rows = shell("trace", finished, "--json").document["samples"]
    accepted = next(row["sample"] for row in rows if row["outcome"] == "accepted")
    words = shell("trace", finished, accepted).out
    story = shell("trace", finished, accepted, "--json").document
    updated = story["result"]["updated"]["text"]
    assert one_line(updated) in one_line(words)
    assert "    source: 202" in words
    assert story["result"]["facts"][0]["evidence_id"] in story["evidence"]
    assert "https://" in words
    assert "rules played" in words
    for step in story["steps"]:
        assert f"\n{step['node']} " in words


def test_an_outcome_that_nothing_had(shell: Shell, finished: Path) -> None:
    said = shell("trace", finished, "--outcome", "failed")
    assert (said.code, said.out) == (0, "no sample matches\n")
    about = "no sample matches: "
    said = shell("trace", finished, "--right", "original", "--wrong", "updated")
    assert said.out.startswith(
        f"{about}no target was evaluated on the original texts; evaluate one: coreeval"
    )
    assert said.out.endswith(" --target PROVIDER:NAME\n")
    said = shell("trace", finished, "--wrong", "control")
    assert (said.code, said.out) == (0, f"{about}the run has no control texts\n")
    stopped = Path(shutil.copytree(finished, shell.folder / "stopped"))
    manifest = read_manifest(stopped / "manifest.json")
    changed = manifest.model_copy(update={"status": "interrupted"})
    write_manifest(stopped / "manifest.json", changed)
    said = shell("trace", stopped, "--wrong", "updated")
    assert said.out == f"{about}no target has been evaluated on the updated texts yet\n"


def test_the_list_is_filtered_sorted_and_paged(shell: Shell, finished: Path) -> None:
    def ids(*options: str) -> list[str]:
        rows = shell("trace", finished, "--json", *options).document["samples"]
        return [row["sample"].rpartition("/")[2] for row in rows]

    assert ids() == ["1", "2", "3", "4", "5"]
    assert ids("--sort", "sample", "--desc", "--offset", "1", "--limit", "2") == ["4", "3"]
    assert ids("--text", "TEST/2") == ["2"]
    assert set(ids("--outcome", "accepted")) | set(ids("--outcome", "no_knowledge")) < set("12345")
    assert ids("--attempts", "1", "--label", "nobody's") == []
    assert ids("--outcome", "pending") == []
    part = shell("trace", finished, "--limit", "2")
    assert "1 to 2 of 5; next page: --offset 2" in part.out
    assert "the list has only 5 samples" in shell("trace", finished, "--offset", "9").out


def test_filters_that_cannot_be_meant(shell: Shell, finished: Path) -> None:
    for options, told in (
        (("--outcome", "acepted"), "did you mean 'accepted'?"),
        (("--sort", "cost"), "known: order, sample"),
        (("emotion/test/1", "--min-cost", "1"), "--min-cost applies only to the list"),
        (("--text", "a", "--hide-texts"), "--text would search texts that --hide-texts hides"),
        (("--jsonl", "-", "--json"), "both write to stdout"),
        (("--jsonl", "no/such/folder"), "cannot write"),
        (("--jsonl", "."), "name a new file in an existing folder"),
    ):
        said = shell("trace", finished, *options)
        assert (said.code, told in said.err + said.out) == (2, True), said


def test_stories_as_lines_of_json(shell: Shell, finished: Path) -> None:
    said = shell("trace", finished, "--jsonl", "stories.jsonl", "--outcome", "accepted", "--json")
    lines = (shell.folder / "stories.jsonl").read_text("ascii").splitlines()
    assert said.document == {"file": "stories.jsonl", "stories": len(lines)}
    assert all(json.loads(line)["result"]["outcome"] == "accepted" for line in lines)
    (line,) = shell("trace", finished, "emotion/test/2", "--jsonl", "-").out.splitlines()
    story = shell("trace", finished, "emotion/test/2", "--json").document
    assert json.loads(line) == {k: v for k, v in story.items() if k != "offline_roles"}


def test_what_is_shared_has_no_texts(shell: Shell, finished: Path) -> None:
    rows = shell("trace", finished, "--json", "--hide-texts").document["samples"]
    assert all(row["excerpt"].startswith("[") for row in rows)
    accepted = next(row["sample"] for row in rows if row["outcome"] == "accepted")
    updated = shell("trace", finished, accepted, "--json").document["result"]["updated"]["text"]
    words = shell("trace", finished, accepted, "--hide-texts").out
    assert one_line(updated) not in one_line(words)
    assert "characters, sha256" in words
    assert "source: 202" in words


def test_what_differs_is_marked_and_coloured_on_a_terminal(
    shell: Shell, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = shell("trace", finished, "--json", "--outcome", "accepted").document["samples"]
    words = shell("trace", finished, rows[0]["sample"]).out
    assert "original -> updated text: " in words
    assert re.search(r"\[-[^]]+-\]", words)
    assert re.search(r"\{\+[^}]+\+\}", words)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("coreeval.cli.output.on_terminal", lambda: True)
    coloured = shell("trace", finished, rows[0]["sample"]).out
    assert "\x1b[31m" in coloured
    assert "\x1b[32m" in coloured
    assert "[-" not in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert shell("trace", finished, rows[0]["sample"]).out == words


def test_prompts_and_answers(shell: Shell, finished: Path) -> None:
    asked = record(f"what of {HOSTILE}?", "no\nanswer    forged", error="truncated")
    run = Path(shutil.copytree(finished, shell.folder / "asked"))
    manifest = read_manifest(run / "manifest.json")
    home = str(shell.folder / "home")
    write_manifest(run / "manifest.json", manifest.model_copy(update={"workspace": home}))
    with closing(open_calls(shell.folder / "home" / "calls.db")) as calls:
        asyncio.run(calls.put(asked))
    with closing(RunStore.open(run / "run.db", now=lambda: NOW)) as store:
        known = {"role": "composer", "model": "openai:m", "draw": 0, "cached": False, "usd": 0.5}
        made = [CallRow(key=key, **known) for key in (asked.key, "lost")]  # type: ignore[arg-type]
        store.history.record(
            StepRecord(
                sample_id="emotion/test/1",
                attempt=9,
                node="compose",
                started_at="2026-11-01",
                seconds=0.0,
                calls=tuple(made),
            )
        )
    said = shell("trace", run, "emotion/test/1", "--calls").out
    assert "composer: openai:m, prompt composer" in said
    assert "\n    | what of �[2J" in said
    assert "\n    answer\n    | no\n    | answer    forged\n" in said
    assert "no longer in the call store" in said
    assert "| what of" not in shell("trace", run, "emotion/test/1").out
    assert shell("trace", run, "--json", "--min-cost", "0.9").document["total"] == 0


def test_an_id_that_is_no_text(shell: Shell, finished: Path) -> None:
    told = shell("trace", finished, os.fsdecode(b"\xff"), "--json")
    assert (told.code, told.error["kind"]) == (2, "usage")
    assert told.error["message"] == "this argument is not UTF-8"
    assert told.error["where"] == r"\udcff"


def test_a_sample_that_is_not_there(shell: Shell, finished: Path) -> None:
    said = shell("trace", finished, "irony/test/3")
    assert said.code == 2
    assert "did you mean emotion/test/3?" in said.err
    assert "coreeval trace" in shell("trace", finished, "nothing", "--json").error["hint"]


def test_hostile_news_and_samples_do_nothing_to_a_terminal(shell: Shell, finished: Path) -> None:
    run = Path(shutil.copytree(finished, shell.folder / "hostile"))
    store = RunStore.open(run / "run.db", now=lambda: NOW)
    item = Evidence(
        id="e" * 16,
        url="https://example.org/" + HOSTILE,
        domain="example.org",
        title=HOSTILE,
        published_at=NOW,
        published_precision="exact",
        origin="trial",
    )
    asyncio.run(store.history.add_evidence([item]))
    store.history.record(
        StepRecord(
            sample_id="emotion/test/1",
            attempt=9,
            node="retrieve",
            started_at="2026-11-01",
            seconds=0.0,
            error=HOSTILE,
            detail={"evidence": [item.id], "rung": "named"},
        )
    )
    store.close()
    said = shell("trace", run, "emotion/test/1")
    assert "�[2J" in said.out
    assert not UNSEEN.search(said.out)
    as_json = shell("trace", run, "emotion/test/1", "--json")
    assert as_json.out.isascii()
    assert as_json.document["evidence"][item.id]["title"] == HOSTILE


def test_hostile_samples_from_file_to_page(shell: Shell) -> None:
    rows = [
        {"id": "a\nforged line", "text": f"so angry {HOSTILE}", "label": "anger"},
        {"id": "b", "text": "fuming 😡", "label": HOSTILE},
    ]
    path = shell.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    config = shell.config({"dataset": {"format": "jsonl", "path": str(path)}})
    run = shell.folder / "<img src=x onerror=alert(1)>"
    done = shell("refresh", config, "--run-dir", run)
    assert done.code == 0
    said = [done, shell("status", run), shell("trace", run), shell("trace", run, "a\nforged line")]
    for each in said:
        assert each.code == 0
        assert not UNSEEN.search(each.out)
        assert "\nforged" not in each.out
    page = (run / "report.html").read_text("utf-8")
    assert "<img" not in page
    assert "&lt;img" in page


def test_plain_keeps_what_people_write() -> None:
    text = "naïve 😡 family 👩‍👩‍👧 مرحبا\n\ttab"
    assert plain(text) == text


def test_commands_can_be_copied(shell: Shell) -> None:
    assert brief(shell.folder / "a run") == Path("a run")
    assert command("trace", shell.folder / "a run", "id/1") == "coreeval trace 'a run' id/1"
    assert command("status", Path("/elsewhere")) == "coreeval status /elsewhere"


def test_a_terminal_that_cannot_show_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", narrow)
    say("café 😡")
    narrow.seek(0)
    assert narrow.read() == "café \\U0001f621\n"


def test_a_reader_that_leaves_early(finished: Path) -> None:
    program = Path(sys.executable).parent / "coreeval"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [program, "trace", finished], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")

"""`coreeval runs`, and the names by which commands find a run."""

import json
import os
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from coreeval.runs.names import find_run, list_run_folders, short_id
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import Workspace
from tests.cli.kit import Shell
from tests.tools.stores.test_call_batches import begin

STARTS = ("20261101T080000Z", "20261102T080000Z", "20261102T080000Z-2")


@pytest.fixture
def here(finished: Path, shell: Shell) -> Workspace:
    """Return a workspace with three runs of one benchmark and one of another."""
    made = Workspace(shell.folder / ".coreeval")
    for name, start in [*(("demo-trial", start) for start in STARTS), ("other", STARTS[0])]:
        shutil.copytree(finished, made.runs / name / start)
    return made


def test_runs_are_found_by_id_start_name_and_latest(here: Workspace) -> None:
    newest = here.runs / "demo-trial" / STARTS[2]
    assert list_run_folders(here)[0] == newest
    for word in ("latest", "demo-trial", "trial", "demo-trial/latest", short_id(newest)):
        assert find_run(word, here) == newest, word
    assert find_run("other", here) == here.runs / "other" / STARTS[0]
    assert find_run("demo-trial/20261101", here) == here.runs / "demo-trial" / STARTS[0]
    assert find_run(short_id(newest)[:5], here) == newest
    (here.root / "plain").mkdir()
    assert find_run(str(here.root / "plain"), here) == here.root / "plain"


def test_every_command_finds_a_run_by_its_id(here: Workspace, shell: Shell) -> None:
    newest = here.runs / "demo-trial" / STARTS[2]
    word, other = short_id(newest), short_id(here.runs / "other" / STARTS[0])
    assert shell("view", word, "--bundle", "pages", "--json").document["run"] == str(newest)
    assert shell("diff", other, word).code == 0
    assert shell("review", word).code == 0
    assert shell("export", "latest", "--to", "csv", "--out", "csv").code == 0
    assert shell("prompts", "show", "composer", "--run", word).code == 0
    assert f"where: {newest}" in shell("annotate", "export", "latest", "--out", "rated").err
    for name in ("verify", "gate"):
        unreleased = shell(name, word)
        assert f"run {word} (demo-trial/{STARTS[2]}) has no release yet" in unreleased.err
        assert f"coreeval release {word} --version" in unreleased.err
    assert shell("release", word, "--version", "1").code == 0
    assert shell("verify", word).code == 0
    assert shell("gate", word).out.startswith("trial 1 ")


@pytest.mark.parametrize(
    "command",
    [
        "status W",
        "view W",
        "diff W W",
        "review W",
        "verify W",
        "gate W",
        "export W --to csv --out o",
    ],
)
def test_a_name_of_no_run_is_told_with_the_nearest(
    here: Workspace, shell: Shell, command: str
) -> None:
    said = shell(*command.replace("W", "demo-trail").split())
    assert said.code == 2
    assert re.search(r"there is no (run|run or release|release or run) 'demo-trail'", said.err)
    assert f"where: {here.runs}" in said.err and "did you mean 'demo-trial'?" in said.err


def test_a_word_for_several_runs_is_refused(here: Workspace, shell: Shell) -> None:
    said = shell("status", "20261101")
    assert said.code == 2
    assert "matches 2 runs" in said.err
    assert short_id(here.runs / "other" / STARTS[0]) in said.err


def test_status_and_trace_without_a_run_look_at_the_newest(here: Workspace, shell: Shell) -> None:
    newest = here.runs / "demo-trial" / STARTS[2]
    assert Path(shell("status", "--json").document["run"]) == newest
    assert shell("trace", "--json").document == shell("trace", newest, "--json").document


def test_resume_without_a_run_continues_the_newest(here: Workspace, shell: Shell) -> None:
    newest = here.runs / "demo-trial" / STARTS[2]
    said = shell("resume", "--json")
    assert said.document["run"] == str(newest)
    assert "the run was already complete; nothing to do" in said.err


def test_without_runs_latest_says_where_it_looked(shell: Shell) -> None:
    said = shell("status")
    assert said.code == 2
    assert "there are no runs yet" in said.err and ".coreeval/runs" in said.err


def test_the_list_is_filtered_and_tagged(here: Workspace, shell: Shell) -> None:
    (here.runs / "other" / STARTS[0] / "manifest.json").write_text("{")
    rows = shell("runs", "--json").document["runs"]
    assert {row["name"]: row["status"] for row in rows} == {
        "demo-trial": "complete",
        "other": "damaged",
    }
    assert shell("runs", "tag", "latest", "weekly", "good").code == 0
    assert [row["tags"] for row in shell("runs", "--tag", "good", "--json").document["runs"]] == [
        ["good", "weekly"]
    ]
    assert shell("runs", "tag", "latest", "good", "--remove").out.rstrip().endswith(": weekly")
    assert len(shell("runs", "--name", "other", "--json").document["runs"]) == 1
    assert len(shell("runs", "--status", "complete", "--json").document["runs"]) == 3
    said = shell("runs")
    assert said.out.count("complete") == 3 and "damaged" in said.out
    assert "no matching runs in" in shell("runs", "--tag", "none").out
    assert "there is no state" in shell("runs", "--status", "done").err
    assert "is not a valid tag" in shell("runs", "tag", "latest", "two words").err


def test_a_pipe_in_place_of_the_tags_is_not_read(here: Workspace, shell: Shell) -> None:
    os.mkfifo(here.runs / "other" / STARTS[0] / "tags.txt")
    rows = shell("runs", "--name", "other", "--json").document["runs"]
    assert [(row["status"], row["tags"]) for row in rows] == [("damaged", [])]


def test_only_a_run_that_nobody_works_on_is_deleted(here: Workspace, shell: Shell) -> None:
    run = here.runs / "other" / STARTS[0]
    with FileLock(run / "run.lock"):
        said = shell("runs", "delete", "other", "--yes")
    assert said.code != 0 and "the run is still in progress" in said.err
    assert run.exists()
    said = shell("runs", "delete", "other")  # nobody can be asked
    assert said.code == 2 and "needs confirmation" in said.err
    assert run.exists()
    assert shell("runs", "delete", "other", "--yes", "--json").document["deleted"] == str(run)
    assert not run.exists()
    assert shell("runs", "delete", shell.folder, "--yes").code == 2
    assert shell.folder.exists()


def test_a_folder_or_file_named_like_a_run_does_not_hide_it(here: Workspace, shell: Shell) -> None:
    (shell.folder / "latest").mkdir()
    (shell.folder / "demo-trial").mkdir()
    shell.write("other", "")
    for word, place in {
        "latest": "demo-trial",
        "demo-trial": "demo-trial",
        "other": "other",
    }.items():
        assert Path(shell("status", word, "--json").document["run"]).parent == here.runs / place
    newest = here.runs / "demo-trial" / STARTS[2]
    shutil.copytree(newest, shell.folder / "latest", dirs_exist_ok=True)
    assert find_run("latest", here) == Path("latest")  # a run of this folder
    (shell.folder / "plain").mkdir()
    assert "no manifest.json" in shell("status", "plain").err


def test_deleting_a_run_leaves_what_coreeval_did_not_make(here: Workspace, shell: Shell) -> None:
    run = here.runs / "other" / STARTS[0]
    told = json.loads((run / "manifest.json").read_text())
    told["models"]["targets"] = [{"model": "openai:org/one"}]
    (run / "manifest.json").write_text(json.dumps(told))
    own = (
        *("tags.txt", "annotation.json", ".report.html.0.tmp", "control/run.db-wal"),
        *("detectors/finetune.json", "detectors/membership/abc.jsonl"),
        *("numleak/openai_org_one.jsonl", "numleak/openai_org_one-2.utility.jsonl"),
    )
    foreign = (
        "notes.txt",
        "src/a.py",
        "dataset/mine.csv",
        ".coreeval/calls.db",
        "detectors/x.json",
        "numleak/mine.jsonl",
        "cassette/prompts/replacer.md",  # the run repeats no cassette
        "cassette/workspace/calls.db-wal",
    )
    for name in (*own, *foreign):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    said = shell("runs", "delete", "other", "--yes", "--json")
    assert (said.code, said.err) == (0, "")
    assert said.document["kept"] == [
        str(run / name)
        for name in (
            *(".coreeval", "cassette", "dataset/mine.csv", "detectors/x.json", "notes.txt"),
            *("numleak/mine.jsonl", "src"),
        )
    ]
    left = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    assert left == set(foreign)

    run = here.runs / "demo-trial" / STARTS[0]
    told = json.loads((run / "manifest.json").read_text())
    told["source"]["path"] = str(run / "config.yaml")
    (run / "manifest.json").write_text(json.dumps(told))
    os.chdir(run)
    said = shell("runs", "delete", ".", "--yes")
    assert (
        said.code == 0
        and "kept, because they are not part of the run:\n  config.yaml\n" in said.out
    )
    assert [path.name for path in run.iterdir()] == ["config.yaml"]


async def test_a_run_with_an_open_batch_is_not_deleted(
    here: Workspace, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = here.runs / "other" / STARTS[0]
    manifest = run / "manifest.json"
    told = json.loads(manifest.read_text())
    told |= {"run": f"other/{STARTS[0]}", "workspace": str(here.root)}
    payer = f"{told['run']}@{told['now']}"
    with closing(open_calls(here.calls, payer)) as calls:
        batch = await begin(calls, "k")
        assert batch is not None
    for status in ("complete", "interrupted", "stopped", "running"):
        manifest.write_text(json.dumps(told | {"status": status}))
        said = shell("runs", "delete", "other", "--yes")
        assert said.code == 1 and "1 call of the run is in an open batch" in said.err, status
        assert "coreeval resume" in said.err
    shutil.copytree(run, shell.folder / "far" / "moved")
    manifest.write_text("{")
    assert "restore its files from a backup" in shell("runs", "delete", "other", "--yes").err
    renamed = run.rename(run.with_name("renamed"))
    said = shell("runs", "delete", renamed, "--yes")
    assert said.code == 1 and "1 call of the run is in an open batch" in said.err
    renamed.rename(run)
    (shell.folder / "home").mkdir()
    with monkeypatch.context() as changed:
        changed.setenv("COREEVAL_HOME", str(shell.folder / "home"))
        assert "open batch" in shell("runs", "delete", "far/moved", "--yes").err
    with closing(open_calls(here.calls, payer)) as calls:
        assert batch
        await calls.batches.update(batch, {"state": "lost"})
    calls_db = here.calls.rename(here.calls.with_name("calls.moved"))
    moved = shell.folder / "far" / "moved"
    for batching in (True, False):  # without its call store, nothing says whether one is open
        (moved / "manifest.json").write_text(json.dumps(told | {"batching": batching}))
        said = shell("runs", "delete", "far/moved", "--yes")
        assert (said.code, "call store that says whether" in said.err) == (batching, batching)
    calls_db.rename(here.calls)
    assert shell("runs", "delete", "other", "--yes").code == 0 and not run.exists()
    assert here.calls.exists()


def test_a_run_behind_a_link_is_not_deleted(here: Workspace, shell: Shell) -> None:
    (here.runs / "other").rename(shell.folder / "elsewhere")
    (here.runs / "other").symlink_to(shell.folder / "elsewhere")
    (here.runs / "demo-trial" / "20261201T080000Z").symlink_to(here.runs / "other" / STARTS[0])
    before = sorted((shell.folder / "elsewhere").rglob("*"))
    for word in (
        "other",
        "latest",
        shell.folder / "elsewhere" / ".." / ".coreeval/runs/other" / STARTS[0],
    ):
        said = shell("runs", "delete", word, "--yes")
        assert said.code == 2 and "this is a link" in said.err, word
    assert sorted((shell.folder / "elsewhere").rglob("*")) == before


def test_a_damaged_run_can_be_deleted(here: Workspace, shell: Shell) -> None:
    runs = [here.runs / "demo-trial" / start for start in STARTS]
    (runs[0] / "manifest.json").write_text("{")
    (runs[1] / "run.db").write_bytes(b"no database")
    (runs[2] / "run.db").unlink()
    for run in runs:
        assert shell("runs", "delete", run, "--yes").code == 0 and not run.exists()
    piped = here.runs / "other" / STARTS[0]
    os.mkfifo(piped / "tags.txt")
    assert shell("runs", "delete", piped, "--yes", "--json").document["kept"] == [
        str(piped / "tags.txt")
    ]
    assert [path.name for path in piped.iterdir()] == ["tags.txt"]
    (piped / "manifest.json").write_text("{}")  # whose this is, nothing says
    (piped / "config.yaml").write_text("mine: 1")
    assert shell("runs", "delete", piped, "--yes").code == 2
    (piped / "run.lock").symlink_to(piped / "config.yaml")
    assert "run.lock is a link" in shell("runs", "delete", piped, "--yes").err
    assert (piped / "config.yaml").read_text() == "mine: 1"


def test_updated_is_understood_as_accepted(finished: Path, shell: Shell) -> None:
    asked = [
        shell("trace", finished, "--outcome", name, "--json").document["samples"]
        for name in ("updated", "accepted")
    ]
    assert asked[0] == asked[1]
    assert asked[0] != shell("trace", finished, "--json").document["samples"]

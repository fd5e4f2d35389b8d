"""A run as its user sees it: what is printed, what is refused, how it goes on."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from coreeval.agents.roles import CompositionRequest, Team
from coreeval.agents.team import TeamInputs, build_team
from coreeval.cli.evaluate import _target_lines
from coreeval.cli.refresh import summarize_failures
from coreeval.cli.score_lines import score_lines
from coreeval.config import ROLES
from coreeval.graph.execute import RunHooks
from coreeval.graph.run import refresh
from coreeval.runs.manifest import read_manifest
from coreeval.runs.no_result import explain_no_result
from coreeval.runs.target_scores import read_scores
from coreeval.schema import Composition, Task
from coreeval.tools.stores.run_triggers import cause_of
from tests.cli.kit import DEMO, Shell
from tests.releases.kit import make_run

PROGRAM = Path(sys.executable).parent / "coreeval"
EMOTION = {name: (DEMO / "emotion" / name).read_text("utf-8") for name in
           ("test_text.txt", "test_labels.txt", "mapping.txt")}  # fmt: skip


def with_status(run: Path, status: str) -> None:
    """Write a status into a run's manifest."""
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    text = json.dumps(manifest | {"status": status, "ended_at": ""})
    (run / "manifest.json").write_text(text, "utf-8")


def test_words_and_document_agree(shell: Shell) -> None:
    config = shell.config()
    said = shell("refresh", config, "--limit", "2", "--run-dir", "r")
    assert said.code == 0
    assert said.out.startswith("complete: 2 samples\n")
    assert "coreeval trace r\n" in said.out
    assert "offline: rules played every role" in said.out
    before, _, after = said.err.partition("plan\n")
    assert "the offline roles are a demonstration: they rewrote 7 of 300 real tweets" in before
    assert "of 2 samples mention something that this news is about" in before and after
    assert "run: r; after a stop, continue with: coreeval resume r\n" in before
    again = shell("refresh", config, "--limit", "2", "--run-dir", "s", "--json")
    assert again.code == 0
    counts = again.document["counts"]
    assert counts.pop("total") == 2 == sum(counts.values())
    for name in ("dataset", "report"):
        assert Path(again.document[name]).exists()


def test_a_new_run_is_named_so_that_resume_finds_it_from_here(shell: Shell) -> None:
    config = Path(shell.config())
    said = shell("refresh", config, "--limit", "1")
    started = re.search(r"^run: .*; after a stop, continue with: coreeval (.*)$", said.err, re.M)
    assert started and re.fullmatch(r"resume [0-9a-f]{6}", started[1])
    assert shell(*started[1].split(), "--json").document["run"]
    other = shell.folder / "other"
    other.mkdir()
    config.rename(other / config.name)
    said = shell("refresh", other / config.name, "--limit", "1")
    started = re.search(r"^run: .*; after a stop, continue with: coreeval (.*)$", said.err, re.M)
    assert started and "/" in started[1]
    assert shell(*started[1].split(), "--json").document["run"]


ENDED = {
    "no_knowledge": r"fits \(2025-08-01 to 2026-10-01 has \d+ articles on \d+ days\)",
    "rejected_facts": "coreeval prompts try",
    "label_unrecoverable": "describe each label",
    "unsafe": "coreeval docs safety",
    "failed": "coreeval retry RUN",
}


def test_a_run_that_accepted_nothing_says_why(finished: Path) -> None:
    manifest = read_manifest(finished / "manifest.json")

    def explain(**counts: int) -> str | None:
        total = {"total": sum(counts.values())}
        changed = manifest.model_copy(update={"counts": total | counts})
        return explain_no_result(finished, changed)

    for ended, expected in ENDED.items():
        said = explain(**{ended: 3, "rejected_form": 1}, accepted=0)
        assert said and said.startswith(
            f"no sample was accepted; 3 of 4 samples ended as {ended}: "
        )
        assert re.search(expected, said) and said.endswith(f" --outcome {ended}")
    assert explain(no_knowledge=3, accepted=1) is None
    assert explain() is None
    assert "min_precision" not in (explain(no_knowledge=3) or "")
    exact = manifest.knowledge.model_copy(update={"min_precision": "exact"})
    told = explain_no_result(
        finished,
        manifest.model_copy(update={"knowledge": exact, "counts": {"total": 1, "no_knowledge": 1}}),
    )
    assert told and "min_precision: crawl (the store has 38 more articles" in told
    stopped = manifest.model_copy(update={"status": "interrupted", "counts": {"failed": 1}})
    assert explain_no_result(finished, stopped) is None


def test_a_directory_takes_one_run(shell: Shell, copied: Path) -> None:
    said = shell("refresh", shell.config(), "--run-dir", copied)
    assert said.code == 2
    assert "complete" in said.err
    assert "--run-dir" in said.err


def test_nothing_is_left_to_do_on_a_complete_run(shell: Shell, copied: Path) -> None:
    before = json.loads((copied / "manifest.json").read_text("utf-8"))["counts"]
    resumed, retried = shell("resume", copied), shell("retry", copied, "--json")
    assert (resumed.code, retried.code) == (0, 0)
    assert "was already complete" in resumed.err
    assert "no samples of the run had failed" in retried.err
    assert retried.document["counts"] == before
    assert retried.document["scores"]["targets"] == []
    assert (
        "scores:  no target was evaluated; evaluate one: coreeval evaluate copied " in resumed.out
    )


def test_the_scores_of_a_run_are_a_line_for_each_target(copied: Path) -> None:
    report = json.loads((copied / "report.json").read_text("utf-8"))
    score = {"estimate": 0.5, "ci_low": 0.25, "ci_high": 0.75, "n": 5}
    none = {"estimate": None, "ci_low": None, "ci_high": None, "n": 0}
    arms = [{"arm": "original", "macro_f1": score}, {"arm": "semantic", "macro_f1": none}]
    report["arms"]["targets"] = [{"target": "openai:x\ny", "all_samples": {"arms": arms}}]

    def told(rows: dict[str, int]) -> list[str]:
        changed = report | {"arm_rows": {"provenance": 3, **rows}}
        (copied / "report.json").write_text(json.dumps(changed), "utf-8")
        found = read_scores(copied)
        assert found and "provenance" not in found["texts"]
        return list(score_lines(found, copied))

    _, heads, line = told({"updated": 0})
    assert heads.split() == ["target", "original", "semantic", "updated"]
    assert re.split(r"  +", line.strip()) == [
        "openai:x y", "0.500 (0.250 to 0.750, n = 5)", "every question was refused",
        "there are no texts",
    ]  # fmt: skip
    assert told({"updated": 2})[-1].endswith("  not evaluated")
    sides = [{"arm": arm, "macro_f1": score} for arm in ("original", "updated")]
    pair = dict(zip(("first", "second"), sides, strict=True)) | {"macro_f1_difference": score}
    report["arms"]["targets"][0]["all_samples"]["comparisons"] = [pair]
    assert told({"updated": 2})[-1] == (
        "  openai:x y on the same samples: original 0.500, updated 0.500, "
        "difference +0.500 (+0.250 to +0.750, n = 5)"
    )
    right = {**score, "estimate": 1.0}
    report["arms"]["targets"][0]["all_samples"]["arms"] = [
        {**each, "accuracy": right} for each in sides
    ]
    pair |= {"first": {**sides[0], "accuracy": right}, "second": {**sides[1], "accuracy": right}}
    pair["accuracy_difference"] = {**score, "estimate": 0.0}
    report["arms"]["kind"] = "choice"
    heading, _, line, paired = told({"updated": 2})
    assert heading.startswith("scores:  accuracy with its 95 % interval")
    assert line.count("1.000 (") == 2 and "original 1.000, updated 1.000, diff" in paired
    answers = dict.fromkeys(("refused", "unparsed", "truncated"), 0)
    arms = [{**each, "accuracy": right, "answers": answers} for each in sides]
    target = {"target": "x", "all_samples": {"arms": arms, "comparisons": [pair]}}
    heads, first, _, _, change = [*_target_lines(target, "choice")][2:]
    assert "accuracy" in heads and "1.000" in first and "+0.000" in change
    report["arms"]["targets"][0]["all_samples"]["comparisons"] = []
    assert told({"updated": 2, "control": 1})[1].endswith("  control")
    (copied / "report.json").write_text("{", "utf-8")
    (line,) = score_lines(read_scores(copied), copied)
    assert "write it again: coreeval evaluate" in line


def test_failed_samples(shell: Shell) -> None:
    record = {"messages": [{"role": "user", "content": "another"}], "schema": "s", "content": "{}"}
    answers = shell.write("answers.jsonl", json.dumps(record) + "\n")
    config = shell.config({"models.composer": f"replay:{answers}"})
    said = shell("refresh", config, "--limit", "2", "--run-dir", "r", "--json")
    assert said.code == 1
    failed = said.document["counts"]["failed"]
    assert failed > 0
    state = shell("status", "r", "--json").document
    assert state["status"] == "complete"
    assert len(state["failed"]) == failed
    words = shell("status", "r")
    assert words.code == 0
    assert "coreeval retry r" in words.out
    assert f"  failed: {state['failed'][0]['sample']}: " in words.out
    assert shell("retry", "r", "--json").code == 1
    listed = shell("trace", "r", "--outcome", "failed", "--json").document["samples"]
    assert [row["outcome"] for row in listed] == ["failed"] * failed


def test_no_line_of_the_benchmark_is_lost(shell: Shell) -> None:
    folder = shell.folder / "tweets"
    folder.mkdir()
    labels = EMOTION["test_labels.txt"].split("\n")
    labels[1], labels[3] = "9", "rage"
    for name, text in EMOTION.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "test_labels.txt").write_text("\n".join(labels), "utf-8")
    config = shell.config({"dataset.path": str(folder)})
    said = shell("refresh", config, "--run-dir", "r")
    assert said.code == 0
    assert "  bad rows                   2   " in said.out
    state = shell("status", "r", "--json").document
    assert len(state["bad_rows"]) == 2
    assert state["counts"]["total"] + 2 == 24
    assert {row["line"] for row in state["bad_rows"]} == {2, 4}
    words = shell("status", "r").out
    assert "line 2: " in words
    assert "rage" in words


def test_a_run_is_not_put_among_the_files_of_a_user(shell: Shell) -> None:
    config = shell.config()
    before = config.read_bytes()
    for folder in (".", ".coreeval"):
        refused = shell("refresh", config, "--run-dir", folder)
        assert refused.code == 2 and "choose a new or empty folder: --run-dir DIR" in refused.err
    (shell.folder / "used").mkdir()
    shell.write("used/mine.txt", "")
    error = shell("refresh", config, "--run-dir", "used", "--json").error
    assert error["kind"] == "run_state" and error["where"].endswith("mine.txt")
    assert [path.name for path in (shell.folder / "used").iterdir()] == ["mine.txt"]
    assert config.read_bytes() == before and not (shell.folder / "run.lock").exists()


def test_a_killed_run_is_told_from_one_that_runs(shell: Shell, copied: Path) -> None:
    with_status(copied, "running")
    assert shell("status", copied, "--json").document["status"] == "killed"
    killed = shell("status", copied).out
    assert "its process died before" in killed
    assert "last activity" in killed
    assert "coreeval resume copied" in killed
    with FileLock(copied / "run.lock"):
        assert shell("status", copied, "--json").document["status"] == "running"
        refused = shell("resume", copied, "--json")
    assert (refused.code, refused.error["kind"]) == (1, "locked")
    assert shell("resume", copied).code == 0
    assert shell("status", copied, "--json").document["status"] == "complete"


def test_looking_at_a_run_without_its_store_makes_none(shell: Shell, copied: Path) -> None:
    (copied / "run.db").unlink()
    for command in ("status", "trace"):
        said = shell(command, copied, "--json")
        assert (said.code, said.error["kind"]) == (1, "corrupt")
    assert not (copied / "run.db").exists()


def test_a_damaged_store_and_manifest(shell: Shell, copied: Path) -> None:
    (copied / "run.db").write_bytes(b"no database" * 100)
    said = shell("status", copied, "--json")
    assert (said.code, said.error["kind"]) == (1, "corrupt")
    (copied / "manifest.json").write_text("{}", "utf-8")
    said = shell("status", copied, "--json")
    assert (said.code, said.error["kind"]) == (2, "run_state")


def test_a_changed_config_is_the_users_choice(shell: Shell) -> None:
    config = shell.config()
    assert shell("refresh", config, "--limit", "1", "--run-dir", "r").code == 0
    settings: dict[str, Any] = yaml.safe_load(config.read_text("utf-8"))
    settings["run"] = {"seed": 8}
    config.write_text(yaml.safe_dump(settings), "utf-8")
    said = shell("resume", "r", "--json")
    assert (said.code, said.error["kind"]) == (2, "run_state")
    assert "run.seed" in said.error["message"]
    assert shell("resume", "r", "--keep").code == 0
    anew = shell("resume", "r", "--anew", "--json")
    assert anew.code == 0
    assert Path(anew.document["run"]) != shell.folder / "r"


def test_a_dry_run_names_the_command_with_its_budget_and_leaves_the_run_as_it_was(
    shell: Shell,
) -> None:
    assert shell("refresh", shell.config(), "--limit", "1", "--run-dir", "r").code == 0
    files = [shell.folder / "r" / name for name in ("config.yaml", "manifest.json")]
    before = [file.read_bytes() for file in files]
    said = shell("evaluate", "r", "--target", "offline:classifier", "--budget", "2", "--dry-run")
    assert said.code == 0 and "--target offline:classifier --budget 2" in said.out
    assert [file.read_bytes() for file in files] == before


def test_ctrl_c_and_resume(shell: Shell) -> None:
    config = shell.config({"run": {"concurrency": 1}})
    command = [str(PROGRAM), "refresh", str(config), "--run-dir", "r", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert any(line.startswith("refresh ") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    left = json.loads(out)
    assert left["status"] == "interrupted"
    assert 0 < left["counts"]["pending"] <= 24
    assert "coreeval resume r" in shell("status", "r").out
    said = shell("resume", "r", "--json")
    assert said.code == 0
    assert said.document["counts"]["pending"] == 0


def test_a_part_of_the_benchmark_is_chosen_by_seed_labels_and_ids(shell: Shell) -> None:
    config = shell.config()
    chosen = ("--limit", "2", "--sample", "stratified", "--label", "joy", "--label", "anger")
    run = shell("refresh", config, *chosen, "--run-dir", "r", "--json").document["run"]
    rows = shell("trace", run, "--json").document["samples"]
    assert sorted(row["label"] for row in rows) == ["anger", "joy"]
    manifest = json.loads((Path(run) / "manifest.json").read_text())
    told = "2 stratified samples (seed 7) with the labels joy, anger"
    assert manifest["limit"] == 2 and told in manifest["notes"][0]
    assert told in (Path(run) / "report.html").read_text()
    ids = shell.write("ids.txt", "emotion/test/1\nemotion/test/0\n")
    for options, parts in {
        ("--ids", "ids.txt"): ("'emotion/test/0'", "did you mean 'emotion/test/"),
        ("--ids", "gone.txt"): ("file of ids", "gone.txt"),
        ("--label", "jyo"): ("'jyo'", "did you mean 'joy'?"),
        ("--sample", "random"): (
            "--sample requires --limit, but --limit is missing",
            "--limit N",
        ),
        ("--limit", "2", "--sample", "randm"): ("'randm' is not a valid order", "'random'"),
    }.items():
        said = shell("refresh", config, *options, "--run-dir", "x")
        assert said.code == 2 and all(part in said.err for part in parts), said.err
        assert not (shell.folder / "x").exists()
    assert ids.exists()


class SameText:
    """A composer of somebody's own: it leaves texts as they are."""

    async def __call__(self, request: CompositionRequest) -> Composition:
        return Composition(fields=request.sample.fields)


def test_a_role_of_somebody_s_own_is_told_as_theirs(shell: Shell) -> None:
    def hire(task: Task, materials: TeamInputs) -> Team:
        return replace(build_team(task, materials), composer=SameText())

    done = refresh(shell.config(), limit=1, run_dir="r", around=RunHooks(hire=hire))
    own = f"python:{__name__}.SameText"
    assert done.manifest.models["composer"] == {"model": own}
    others = [role for role in ROLES if role != "composer"]
    assert shell("status", "r", "--json").document["offline_roles"] == others
    card = (done.run_dir / "dataset" / "README.md").read_text()
    by_rules = card.partition("**Offline roles**")[2].partition(")")[0]
    assert own in card and "replacer" in by_rules and "composer" not in by_rules
    report = json.loads((done.run_dir / "report.json").read_text())
    (composer,) = [role for role in report["roles"] if role["role"] == "composer"]
    assert (composer["model"], composer["by_rules"], composer["prompt"]) == (own, False, None)


def test_a_failure_is_shown_as_the_first_sample_has_it(tmp_path: Path) -> None:
    reason = "openai:m at http://127.0.0.1:8000/v1: the answer is not JSON: KeyError: 'label' " * 2
    run = make_run(tmp_path).files.root
    with closing(sqlite3.connect(run / "run.db")) as store, store:
        change = "UPDATE results SET outcome = 'failed', reason = ?, cause = ? WHERE outcome = ?"
        store.execute(change, (reason, cause_of("failed", reason), "unsafe"))
    told, again = summarize_failures(run)
    assert told == f"failed:  1 sample; cause: {reason.strip()}"
    assert again.startswith("again:   coreeval retry")

"""`coreeval schedule`: what it says, in words and as documents, on a real run and release."""

import json
import sys
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.cli.kit import DEMO, Shell
from tests.cli.test_docs import documented


def weekly(shell: Shell, **more: object) -> str:
    """Write a config that has fallen due, on five samples; return its name."""
    texts = (DEMO / "emotion" / "test_text.txt").read_text("utf-8").splitlines()[:5]
    rows = ({"text": text, "label": "joy"} for text in texts)
    shell.write("five.jsonl", "\n".join(map(json.dumps, rows)))
    schedule = {"cron": "0 3 * * MON", "timezone": "Europe/Berlin"} | more
    dataset = {"format": "jsonl", "path": "five.jsonl"}
    return shell.config({"dataset": dataset, "schedule": schedule}).name


def test_due_twice(shell: Shell) -> None:
    hook = 'echo "$COREEVAL_OUTCOME $COREEVAL_VERSION" >> told'
    config = weekly(shell, hooks={"success": [hook]})
    explained = shell("schedule", "due", "--explain", config, "--json").document
    version = explained["schedules"][0]["newest"]["version"]
    refused = shell("schedule", "due", config)
    assert refused.code == 2 and "--accept-hooks" in refused.err
    assert not (shell.folder / "told").exists()
    assert hook in shell("schedule", "install", config, "--accept-hooks").out
    first = shell("schedule", "due", config)
    assert first.code == 0
    assert first.out.startswith(f"trial: {version} is released: .coreeval/releases/trial/{version}")
    assert (shell.folder / "told").read_text() == f"released {version}\n"
    release = shell.folder / ".coreeval" / "releases" / "trial" / version
    assert shell("verify", release).code == 0
    assert "schedule:" not in (release / "config.yaml").read_text(), "hooks are private"
    again = shell("schedule", "due", config)
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith("trial: nothing is due; next Mon ")
    assert shell("schedule", "due", "--quiet", config).out == ""
    assert (shell.folder / "told").read_text().count("\n") == 1
    document = shell("schedule", "due", config, "--json").document
    assert set(document) == documented("coreeval schedule due")
    assert document["schedules"][0]["ending"] == "nothing"


def test_explain_does_nothing(shell: Shell) -> None:
    config = weekly(shell)
    said = shell("schedule", "due", "--explain", config)
    assert said.code == 0
    assert "trial: 0 3 * * MON in Europe/Berlin: At 03:00 on Monday" in said.out
    assert said.out.count("\n  next   Mon ") == 5
    assert " 03:00 CE" in said.out
    document = shell("schedule", "due", "--explain", config, "--json").document
    assert set(document) == documented("coreeval schedule due --explain")
    coming = [datetime.fromisoformat(each["due_at"]) for each in document["schedules"][0]["next"]]
    assert all(later - sooner == timedelta(weeks=1) for sooner, later in pairwise(coming))
    assert not (shell.folder / ".coreeval").exists()


@pytest.mark.parametrize("command", [["due"], ["due", "--explain"], ["run"], ["install", "--cron"]])
def test_a_typo_is_one_message(shell: Shell, command: list[str]) -> None:
    config = weekly(shell, cron="0 3 * * MONN")
    said = shell("schedule", *command, config)
    assert said.code == 2
    assert said.err.count("error: ") == 1
    assert "'MONN' is not a valid day-of-week (0-7 or SUN-SAT" in said.err


def test_a_fault_of_ours_has_a_traceback_only_with_debug(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("coreeval.schedule.plan.load_config", broken)
    config = weekly(shell)
    said = shell("schedule", "due", config)
    assert (said.code, said.out) == (1, "")
    assert "this is a bug in CoreEval, not your mistake: KeyError: 'ours'" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in shell("schedule", "due", config, "--debug").err


def test_a_failure_is_told_as_errors_are(shell: Shell) -> None:
    config = weekly(shell)
    (shell.folder / "five.jsonl").unlink()
    said = shell("schedule", "due", config)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: trial ")
    assert "to do: " in said.err
    document = shell("schedule", "due", config, "--json").document
    assert document["schedules"][0]["trouble"]["kind"] == "dataset"
    explained = shell("schedule", "due", "--explain", config).out
    assert "failed after 2 tries" in explained


def test_a_run_that_waits_at_a_gate_is_replaced_once_its_config_has_changed(shell: Shell) -> None:
    config = weekly(shell, gates="gates.yaml")
    path = shell.folder / config
    shell.write("gates.yaml", "gates: {acceptance: {min: 1.0}}\n")
    first = shell("schedule", "due", config, "--json")
    assert first.code == 4
    [run] = [each["run"] for each in first.document["schedules"]]
    hooks = yaml.safe_load(path.read_text())
    hooks["schedule"]["hooks"] = {"gate": ["true"]}
    hooks["run"] = {**hooks.get("run", {}), "budget_usd": 1.0}
    path.write_text(yaml.safe_dump(hooks))
    assert shell("schedule", "install", config, "--accept-hooks").code == 0
    [same] = shell("schedule", "due", config, "--json").document["schedules"]
    assert (same["ending"], same["run"], same["note"]) == ("gate", run, "")
    changed = hooks | {"run": hooks["run"] | {"seed": 8}}
    path.write_text(yaml.safe_dump(changed))
    said = shell("schedule", "due", config)
    assert said.code == 4
    note = f"  a new run replaces {run}, because the following has changed since it began: run.seed"
    assert note in said.out
    shell.write("gates.yaml", "gates: {acceptance: {min: 0.0}}\n")
    [done] = shell("schedule", "due", config, "--json").document["schedules"]
    assert (done["ending"], done["note"]) == ("released", "")
    assert done["run"] != run
    frozen = yaml.safe_load((Path(done["release"]) / "config.yaml").read_text())
    assert frozen["run"]["seed"] == 8


def test_run_without_its_extra(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "coreeval.schedule.daemon", raising=False)
    monkeypatch.setitem(sys.modules, "apscheduler.schedulers.background", None)
    said = shell("schedule", "run", weekly(shell))
    assert said.code == 2
    assert "pip install 'coreeval[scheduler]'" in said.err


def test_install_prints_or_writes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    config = weekly(shell)
    assert shell("schedule", "install", config).code == 2
    assert shell("schedule", "install", config, "--cron", "--github").code == 2
    line = shell("schedule", "install", config, "--cron", "--print").out
    assert line.endswith("trial.yaml # coreeval-trial\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(shell.folder / "units"))
    document = shell("schedule", "install", config, "--systemd", "--json").document
    assert set(document) == documented("coreeval schedule install")
    folder = shell.folder / "units" / "systemd" / "user"
    assert {path.name for path in folder.iterdir()} == {
        "coreeval-trial.service",
        "coreeval-trial.timer",
    }
    outside = shell("schedule", "install", config, "--github", "--print")
    assert (outside.code, shell("schedule", "install", config, "--github").code) == (0, 2)
    assert "the config is not in a git repository yet; " in outside.err
    assert f"the workflow assumes a repository in {shell.folder}" in outside.err
    (shell.folder / ".git").mkdir()
    printed = shell("schedule", "install", config, "--github", "--print").out
    assert printed == outside.out
    assert "coreeval schedule due trial.yaml" in printed
    assert not (shell.folder / ".github").exists()


def test_install_asks_for_hooks_and_hands_on_what_was_accepted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / ".git").mkdir()
    config = weekly(shell, hooks={"success": ["./publish.sh"]})
    refused = shell("schedule", "install", config, "--github")
    assert refused.code == 2 and "./publish.sh" in refused.err
    assert not (shell.folder / ".github").exists()
    assert "--accepted" not in shell("schedule", "install", config, "--github", "--print").out
    document = shell("schedule", "install", config, "--github", "--accept-hooks", "--json").document
    assert document["accepted"]["hooks"] == ["./publish.sh"]
    (digest,) = document["accepted"]["digests"]
    (workflow,) = document["units"].values()
    assert f"coreeval schedule due --accepted {digest} trial.yaml" in workflow
    monkeypatch.setenv("COREEVAL_HOME", str(shell.folder / "runner"))
    refused = shell("schedule", "due", "--accepted", "0" * 64, config)
    assert refused.code == 2 and "are new or have changed and need to be accepted" in refused.err
    shell.write("publish.sh", "#!/bin/sh\ntouch published\n")
    (shell.folder / "publish.sh").chmod(0o755)
    assert shell("schedule", "due", "--accepted", digest, config).code == 0
    assert (shell.folder / "published").exists()


@pytest.mark.parametrize(
    ("way", "place"), [("cron", "~/.pgpass"), ("systemd", "environment.d"), ("github", "")]
)
def test_install_says_where_the_address_of_a_database_belongs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, way: str, place: str
) -> None:
    monkeypatch.setenv("COREEVAL_STORE_URL", "postgresql://me:hidden@host/runs")
    config = weekly(shell)
    before = (shell.folder / config).read_text("utf-8")
    for store in ("sqlite", "postgresql"):
        settings = yaml.safe_load(before)
        settings.setdefault("run", {})["store"] = store
        shell.write(config, yaml.safe_dump(settings))
        said = shell("schedule", "install", config, f"--{way}", "--print")
        assert (said.code, "hidden" in said.out + said.err) == (0, False)
        expected = store == "postgresql" and way != "github"
        assert ("COREEVAL_STORE_URL" in said.err and place in said.err) == expected

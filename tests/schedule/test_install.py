"""Units that cron, systemd and GitHub read: checked by their own readers where they are here."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from coreeval.errors import RunError, UsageError
from coreeval.schedule.install import (
    CRONTAB,
    ScheduleGroup,
    UnitKind,
    make_cron_line,
    make_systemd_units,
    make_units,
    make_utc_lines,
    make_workflow,
    require_repository,
)
from coreeval.schedule.plan import open_plan
from coreeval.schedule.write_units import replace_cron_line, write_units
from tests.schedule.kit import FakeSchedule


@contextmanager
def looks(folder: Path, schedule: object = "0 3 * * MON") -> Iterator[ScheduleGroup]:
    with open_plan(FakeSchedule(folder, schedule=schedule).config) as plan:
        yield ScheduleGroup([plan])


def test_the_crontab_line_is_what_a_shell_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COREEVAL_HOME", str(tmp_path / "ho me"))
    with looks(tmp_path / "100% 'mine'") as given:
        line = make_cron_line(given)
        config = str(given.plans[0].path)
    minutes, *stars, command = line.split(" ", 5)
    assert minutes.endswith("-59/15")
    assert stars == ["*"] * 4
    assert "\\%" in command
    assert "%" not in command.replace("\\%", ""), "cron ends the command at a bare %"
    words = shlex.split(command.replace("\\%", "%"), comments=True)
    assert words[0] == f"COREEVAL_HOME={tmp_path / 'ho me'}"
    assert words[1:] == [
        sys.executable, "-P", "-m", "coreeval", "schedule", "due", "--quiet", config
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["cron", "systemd"])
def test_no_module_of_the_configs_folder_is_run(way: str, tmp_path: Path) -> None:
    """The hooks are not accepted, so that the real package ends with 2 before it does anything."""
    hooked = {"cron": "0 3 * * MON", "hooks": {"success": ["touch ran"]}}
    folder = tmp_path / "theirs"
    with looks(folder, hooked) as given:
        if way == "cron":
            command = make_cron_line(given).split(" ", 5)[5]
        else:
            lines = make_systemd_units(given)["coreeval-n.service"].splitlines()
            said = dict(line.split("=", 1) for line in lines if "=" in line)
            command, folder = said["ExecStart"], Path(said["WorkingDirectory"])
    for module in ("coreeval", "yaml", "json", "typer", "pydantic"):
        (folder / f"{module}.py").write_text("open('ran', 'w')\nraise SystemExit(0)\n")
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert not (folder / "ran").exists()
    assert done.returncode == 2 and "--accept-hooks" in done.stderr


def test_a_line_is_installed_once(tmp_path: Path) -> None:
    with looks(tmp_path) as given:
        line = make_cron_line(given)
    others = "MAILTO=me\n0 1 * * * backup # coreeval-nn\n"
    once = replace_cron_line(others, line)
    assert once == f"{others}{line}\n"
    assert replace_cron_line(once, line) == once
    moved = line.replace("--quiet", "")
    assert replace_cron_line(once, moved) == f"{others}{moved}\n"


def test_what_is_due_often_is_looked_at_often(tmp_path: Path) -> None:
    with looks(tmp_path, "*/5 * * * *") as given:
        assert make_cron_line(given).startswith("* * * * * ")
        assert "OnCalendar=*:*\n" in make_systemd_units(given)["coreeval-n.timer"]


def test_only_a_line_feed_ends_a_line_of_a_crontab(tmp_path: Path) -> None:
    """The tail of a comment would be a line that cron runs."""
    with looks(tmp_path) as given:
        line = make_cron_line(given)
    for mark in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        others = f"# old:{mark}0 1 * * * wipe\n\n"
        assert replace_cron_line(others, line) == f"{others}{line}\n"
    assert replace_cron_line("# no line feed", line) == f"# no line feed\n{line}\n"


class FakeCrontab:
    """A stand-in for crontab, which keeps its table in a file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table = folder / "table"
        self.program = folder / "bin" / "crontab"
        self.program.parent.mkdir()
        monkeypatch.setenv("PATH", f"{self.program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        self.list_by(f'cat "{self.table}"')

    def list_by(self, command: str) -> None:
        """Show the table by a shell command."""
        writes = f'cat > "{self.table}"'
        self.program.write_text(f"#!/bin/sh\ncase $1 in -l) {command};; -) {writes};; esac\n")
        self.program.chmod(0o755)

    def refuse_by(self, words: str) -> None:
        """Show no table."""
        self.list_by(f'echo "{words}" >&2; exit 1')


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCrontab:
    return FakeCrontab(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "words", ["no crontab for me", "crontab: can't open 'me': No such file or directory"]
)
def test_a_crontab_is_written(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crontab: FakeCrontab
) -> None:
    with looks(tmp_path) as given:
        units, copy = make_units(given, "cron"), given.crontab_copy
        line = make_cron_line(given)
    crontab.refuse_by(words)
    write_units(units, force=False, crontab_copy=copy)
    assert crontab.table.read_text() == f"{line}\n"
    crontab.list_by(f'cat "{crontab.table}"')
    write_units(units, force=False, crontab_copy=copy)
    assert crontab.table.read_text() == f"{line}\n"
    assert not copy.exists(), "there was nothing to lose"
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="no crontab command"):
        write_units(units, force=False, crontab_copy=copy)


@pytest.mark.parametrize(
    "words",
    ["", "crontab: cannot connect to /var/spool: Permission denied", "you (me) are not allowed"],
)
def test_a_crontab_that_is_not_shown_is_not_replaced(
    words: str, tmp_path: Path, crontab: FakeCrontab
) -> None:
    crontab.table.write_text("0 1 * * * backup\n")
    crontab.refuse_by(words)
    with (
        looks(tmp_path) as given,
        pytest.raises(RunError, match="cannot read the existing crontab") as refused,
    ):
        write_units(make_units(given, "cron"), force=False, crontab_copy=given.crontab_copy)
    assert words in refused.value.message
    assert crontab.table.read_text() == "0 1 * * * backup\n"


def test_two_installs_at_once_lose_no_line(tmp_path: Path, crontab: FakeCrontab) -> None:
    crontab.table.write_text("0 1 * * * backup\n")
    crontab.list_by(f'cat "{crontab.table}"; sleep 0.5')

    def install(name: str) -> None:
        line = f"* * * * * coreeval schedule due {name}.yaml # coreeval-{name}"
        write_units({CRONTAB: line}, force=False, crontab_copy=tmp_path / name)

    with ThreadPoolExecutor() as pool:
        list(pool.map(install, "ab"))
    assert len(crontab.table.read_text().splitlines()) == 3


def test_a_line_of_other_configs_is_kept(tmp_path: Path, crontab: FakeCrontab) -> None:
    """The name alone may be that of another workspace's unit, or of two configs: a-b and a, b."""
    with looks(tmp_path / "100% one") as given:
        first, copy = make_units(given, "cron"), given.crontab_copy
    with looks(tmp_path / "two") as given:
        second = make_units(given, "cron")
    one, two = first["crontab"], second["crontab"]
    crontab.table.touch()
    assert write_units(first, force=False, crontab_copy=copy) == []
    with pytest.raises(UsageError, match="a different unit has this name") as refused:
        write_units(second, force=False, crontab_copy=copy)
    assert refused.value.where == one and crontab.table.read_text() == f"{one}\n"
    assert write_units(second, force=True, crontab_copy=copy) == [one]
    assert crontab.table.read_text() == f"{two}\n"
    crontab.table.write_text(two.replace(sys.executable, "/usr/bin/python3") + "\n")
    assert write_units(second, force=False, crontab_copy=copy) == []
    assert crontab.table.read_text() == f"{two}\n"
    crontab.table.write_text(f'0 1 * * * echo "mine {two[two.rindex(" # ") :]}\n')
    with pytest.raises(UsageError, match="a different unit has this name"):
        write_units(second, force=False, crontab_copy=copy)


def test_a_crontab_keeps_its_bytes(tmp_path: Path, crontab: FakeCrontab) -> None:
    before = b"# K\xf6ln\r\n# a\rb\x0c0 1 * * * wipe\n0 1 * * * backup\n"
    crontab.table.write_bytes(before)
    with looks(tmp_path) as given:
        for _ in range(2):
            write_units(make_units(given, "cron"), force=False, crontab_copy=given.crontab_copy)
        assert crontab.table.read_bytes() == before + make_cron_line(given).encode() + b"\n"
        assert given.crontab_copy.read_bytes() == before
        assert given.crontab_copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_reads_the_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREEVAL_HOME", str(tmp_path / 'a "b" 100% $c'))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with looks(tmp_path / "100% mine") as given:
        units = make_units(given, "systemd")
        write_units(units, force=False, crontab_copy=given.crontab_copy)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", *units], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_timer_catches_up_and_spreads(tmp_path: Path) -> None:
    with looks(tmp_path) as given:
        units = make_systemd_units(given)
    lines = units["coreeval-n.timer"].splitlines()
    assert {"OnCalendar=*:0/15", "Persistent=true", "RandomizedDelaySec=5min"} <= set(lines)
    assert "Environment" not in units["coreeval-n.service"]
    assert "@@" not in "".join(units.values())


def test_the_workflow_is_yaml_that_names_what_it_needs(tmp_path: Path) -> None:
    schedule = {
        "cron": "0 3 * * MON",
        "timezone": "Europe/Berlin",
        "hooks": {"failure": [{"webhook_env": "HOOK_URL"}]},
    }
    office = FakeSchedule(tmp_path / "sub", schedule=schedule)
    settings = yaml.safe_load(office.config.read_text())
    settings["models"] = {"default": "openai:m", "fact_judge": {"model": "anthropic:x"}}
    settings["models"]["targets"] = [{"model": "openai:t"}]
    judge = {"model": "openai:judge", "api_key_env": "JUDGE_KEY"}
    settings["detect"] = {"numleak": {"series": ["ff_mkt_rf"], "defences": {"judge": judge}}}
    office.config.write_text(yaml.safe_dump(settings))
    with open_plan(office.config) as plan:
        text = make_workflow(ScheduleGroup([plan]), tmp_path)
    found = yaml.safe_load(text)
    assert list(found[True]) == ["schedule", "workflow_dispatch"]  # YAML 1.1 reads `on` so
    steps = {step.get("name", step.get("uses")): step for step in found["jobs"]["due"]["steps"]}
    assert steps["Renew what is due"]["run"].split() == [
        "coreeval",
        "schedule",
        "due",
        "sub/n.yaml",
    ]
    assert steps["Renew what is due"]["env"] == {
        name: f"${{{{ secrets.{name} }}}}"
        for name in ("ANTHROPIC_API_KEY", "HOOK_URL", "JUDGE_KEY", "OPENAI_API_KEY")
    }
    assert '- run: pip install "coreeval==' in text
    settings["run"] = {"store": "postgresql"}
    office.config.write_text(yaml.safe_dump(settings))
    with open_plan(office.config) as plan:
        other = make_workflow(ScheduleGroup([plan]), tmp_path)
    assert "COREEVAL_STORE_URL: ${{ secrets.COREEVAL_STORE_URL }}" in other
    assert '- run: pip install "coreeval[postgresql]==' in other
    saved = steps["Keep the files of an unfinished run"]
    assert (saved["uses"], saved["if"]) == ("actions/cache/save@v5", "always()")
    assert saved["with"].items() <= steps["actions/cache/restore@v5"]["with"].items()
    cached = saved["with"]["path"].split()
    kept = steps["Keep releases and state"]["run"]
    assert "sub/.coreeval/runs" in cached
    assert "sub/.coreeval/releases sub/.coreeval/schedule/*.json" in kept
    assert not any("releases" in path or "schedule" in path for path in cached), "one place each"
    assert subprocess.run(["bash", "-n"], input=kept, text=True).returncode == 0


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ({"cron": "0 3 * * MON", "timezone": "Europe/Berlin"}, "1,2"),
        ({"cron": "0 0 1 * *", "timezone": "Australia/Sydney"}, "13,14"),
        ("0 3,15 * * *", "3,15"),
        ("0 * * * *", "*"),
    ],
)
def test_github_looks_at_both_hours_of_a_zone_with_summer_time(
    tmp_path: Path, schedule: object, hours: str
) -> None:
    with looks(tmp_path, schedule) as given:
        [line] = make_utc_lines(given)
    minute, *rest = line.split()
    assert 3 <= int(minute) < 18
    assert rest == [hours, "*", "*", "*"]


def test_units_of_somebody_else_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with looks(tmp_path) as given:
        units = make_units(given, "github")
        [path] = map(Path, units)
        assert path == tmp_path / ".github" / "workflows" / "coreeval-n.yml"
        for _ in range(2):
            write_units(units, force=False, crontab_copy=given.crontab_copy)
        path.write_text("mine")
        with pytest.raises(UsageError, match="a different unit has this name"):
            write_units(units, force=False, crontab_copy=given.crontab_copy)
        assert path.read_text() == "mine"
        write_units(units, force=True, crontab_copy=given.crontab_copy)
        assert path.read_text() == units[str(path)]


def test_a_unit_of_other_bytes_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with looks(tmp_path) as given:
        units, copy = make_units(given, "systemd"), given.crontab_copy
    path = Path(next(iter(units)))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"# K\xf6ln\n")
    with pytest.raises(UsageError, match="a different unit has this name"):
        write_units(units, force=False, crontab_copy=copy)
    write_units(units, force=True, crontab_copy=copy)
    assert path.read_text() == units[str(path)]


@pytest.mark.parametrize("name", ["x\\", "x ", "100% x"])
def test_the_folder_of_a_service_ends_its_line(name: str, tmp_path: Path) -> None:
    """systemd goes on with the next line after a backslash, and drops blanks."""
    with looks(tmp_path / name) as given:
        lines = make_systemd_units(given)["coreeval-n.service"].splitlines()
    [folder] = [line for line in lines if line.startswith("WorkingDirectory=")]
    assert folder == f"WorkingDirectory={tmp_path}/{name.replace('%', '%%')}/"


def test_paths_that_no_unit_can_hold(tmp_path: Path) -> None:
    with looks(tmp_path / "two\nlines") as given:
        for make in (make_cron_line, make_systemd_units):
            with pytest.raises(UsageError, match=r"a path with '\\n'"):
                make(given)
        with pytest.raises(UsageError, match="not in the repository"):
            make_workflow(given, tmp_path / "elsewhere")
        with pytest.raises(UsageError, match="not in a git repository"):
            require_repository(given.plans[0].path)


@pytest.mark.parametrize(
    "name",
    ["a\n      - run: curl evil", "a\r- b", "a\x85- b", "a\u2028- b", "${{ secrets.KEY }}"],
)
def test_the_name_of_a_folder_adds_nothing_to_a_workflow(name: str, tmp_path: Path) -> None:
    with (
        looks(tmp_path / name) as given,
        pytest.raises(
            UsageError, match="cannot be used in a unit: it would change the unit"
        ) as refused,
    ):
        make_workflow(given, tmp_path)
    assert refused.value.where == ascii(f"{name}/.coreeval")


def test_a_pipe_in_a_units_place_is_another_unit(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with looks(tmp_path) as given:
        units = make_units(given, "github")
        [path] = map(Path, units)
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
        with pytest.raises(UsageError, match="a different unit has this name"):
            write_units(units, force=False, crontab_copy=given.crontab_copy)


def test_a_workflow_is_not_written_through_a_link_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".github").symlink_to(tmp_path / "elsewhere")
    with looks(tmp_path) as given, pytest.raises(UsageError, match="a link occupies the path"):
        make_units(given, "github")


@pytest.mark.parametrize(
    "name", ["-a", "!a", "#a", "~a", ":a", " a", "a*b", "a?", "a[b]", "a\\b", "sub/x*"]
)
def test_a_folder_that_a_workflow_would_misread_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    with (
        looks(folder) as given,
        pytest.raises(
            UsageError,
            match="cannot be used in a workflow",
        ) as refused,
    ):
        make_workflow(given, tmp_path)
    assert refused.value.where == ascii(f"{name}/.coreeval")


@pytest.mark.parametrize("name", ["my data", "C# and more!", "a-b", "a' b", "100%", "(x) & y; z"])
def test_a_folder_of_other_signs_is_a_path_of_the_workflow(name: str, tmp_path: Path) -> None:
    with looks(tmp_path / name) as given:
        found = yaml.safe_load(make_workflow(given, tmp_path))
    steps = {step.get("name", step.get("uses")): step for step in found["jobs"]["due"]["steps"]}
    assert shlex.split(steps["Renew what is due"]["run"])[3:] == [f"{name}/n.yaml"]
    cached = steps["actions/cache/restore@v5"]["with"]["path"].splitlines()
    assert cached[-1] == f"{name}/.coreeval/runs"
    kept = tmp_path / name / ".coreeval" / "releases"
    kept.mkdir(parents=True)
    loop = steps["Keep releases and state"]["run"].split("for kept in")[1].split("done")[0]
    said = subprocess.run(
        ["bash", "-c", f"for kept in{loop}done".replace("git add --force", "echo")],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert said.stdout.splitlines() == [f"{name}/.coreeval/releases"]


def test_no_unit_takes_the_cache_of_another(tmp_path: Path) -> None:
    """GitHub restores any entry whose key begins with a restore key."""
    keys = list[dict[str, str]]()
    for name in ("n", "n-2"):
        with open_plan(FakeSchedule(tmp_path, name=name).config) as plan:
            found = yaml.safe_load(make_workflow(ScheduleGroup([plan]), tmp_path))
        steps = found["jobs"]["due"]["steps"]
        keys.append(next(step["with"] for step in steps if "restore" in step.get("uses", "")))
    first, second = keys
    assert first["key"].startswith(first["restore-keys"])
    assert not second["key"].startswith(first["restore-keys"])


def test_outside_a_repository_the_hint_is_one_that_helps(tmp_path: Path) -> None:
    with looks(tmp_path) as given, pytest.raises(UsageError) as refused:
        make_units(given, "github")
    assert "git init" in refused.value.hint and "see the workflow" not in refused.value.hint


@pytest.mark.parametrize("way", ["systemd", "github"])
def test_the_names_of_many_configs_are_too_long_for_a_unit(way: UnitKind, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with ExitStack() as stack:
        names = [letter * 90 for letter in "abc"]
        plans = [
            stack.enter_context(open_plan(FakeSchedule(tmp_path, name=name).config))
            for name in names
        ]
        with pytest.raises(UsageError, match="the maximum is 200"):
            make_units(ScheduleGroup(plans), way)
        assert make_units(ScheduleGroup(plans[:2]), way)
        assert make_units(ScheduleGroup(plans), "cron")


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_in_a_units_place_is_told(
    force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with looks(tmp_path) as given:
        units = make_units(given, "systemd")
        Path(list(units)[1]).mkdir(parents=True)
        with pytest.raises(UsageError, match="a folder occupies the path of the unit"):
            write_units(units, force=force, crontab_copy=given.crontab_copy)
    assert not Path(next(iter(units))).exists(), "nothing is written"


def test_a_file_in_the_place_of_the_units_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "systemd").write_text("mine")
    with looks(tmp_path) as given:
        units = make_units(given, "systemd")
        with pytest.raises(RunError, match="cannot write the unit"):
            write_units(units, force=False, crontab_copy=given.crontab_copy)

"""`coreeval demo --kind` repeats the bundled recordings: each kind has one, and all are small."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from coreeval.errors import UsageError
from coreeval.graph.bundled import RECORDED, RecordedKind, demo_data, write_recording
from coreeval.graph.detect import read_inputs
from coreeval.graph.execute import DEFAULT_HOOKS, build_run_context
from coreeval.graph.run import open_run, open_workspace
from coreeval.releases.cassettes.format import SampleLine
from coreeval.releases.cassettes.read import open_cassette
from coreeval.schema import TaskKind
from tests.cli.kit import Shell

_MOST_BYTES = 140_000


@pytest.mark.parametrize("kind", get_args(RecordedKind))
def test_a_recorded_run_is_repeated_to_the_byte(shell: Shell, kind: RecordedKind) -> None:
    said = shell("demo", "--kind", kind, "--dir", "demo")
    assert said.code == 0, said.out
    assert said.out.count("identical bytes") == len(RECORDED[kind])
    assert "rules played" not in said.out
    tail = said.out.partition("Where to look:\n")[2]
    runs = re.findall(r"coreeval trace (\S+)\n", tail)
    assert len(runs) == len(RECORDED[kind])
    assert all(shell("trace", run).code == 0 for run in runs)
    recordings = re.findall(r"coreeval cassette show (\S+)\n", tail)
    assert len(recordings) == len(RECORDED[kind])
    assert all(shell("cassette", "show", file).code == 0 for file in recordings)


def test_detectors_are_told_which_questions_share_a_passage(shell: Shell) -> None:
    assert shell("demo", "--kind", "answer", "--dir", "demo").code == 0
    files, manifest, setup = open_run("demo/reading", None, may_repeat=True)
    with closing(
        build_run_context(setup, manifest, files, open_workspace(manifest), DEFAULT_HOOKS)
    ) as run:
        assert not any(cluster for _, cluster, _ in run.store.clusters())
        read = list(read_inputs(run).texts())
    passages = [one.arms["original"]["context"] for one in read]
    names = [one.sample.cluster or one.sample.id for one in read]
    assert len(set(zip(names, passages, strict=True))) == len(set(names)) == len(set(passages))
    assert len(set(passages)) < len(read)


def test_a_second_time_goes_into_another_folder(shell: Shell) -> None:
    for _ in range(2):
        document = shell("demo", "--kind", "summary", "--dir", "demo", "--json").document
        assert [one["same"] for one in document["replays"]] == [True]
    assert {one.name for one in Path("demo").iterdir()} == {"recorded", "reports", "reports-2"}
    assert [one.name for one in Path("demo/recorded").iterdir()] == ["reports.cassette"]


def test_a_demo_that_was_killed_begins_again(shell: Shell) -> None:
    command = [sys.executable, "-m", "coreeval", "demo", "--kind", "summary", "--dir", "demo"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
        until = time.monotonic() + 60
        while not Path("demo/reports/run.db").exists() and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(one.pid, signal.SIGKILL)
    assert Path("demo/reports/run.db").exists()
    said = shell("demo", "--kind", "summary", "--dir", "demo")
    assert said.code == 0
    assert "demo/reports-2" in said.out


def test_every_kind_but_that_of_the_rules_is_recorded(tmp_path: Path) -> None:
    assert {*get_args(TaskKind)} == {*RECORDED, "labels"} == {*get_args(RecordedKind), "labels"}
    names = [name for each in RECORDED.values() for name in each]
    for name in names:
        cassette = open_cassette(write_recording(name, tmp_path))
        assert cassette.head.run.task == name
        assert cassette.head.texts
        assert sum(1 for _ in cassette.lines(SampleLine)) >= 8
        assert (demo_data() / name / "task.yaml").exists()
    assert (demo_data() / "recorded.tar.xz").stat().st_size < _MOST_BYTES


def test_a_python_without_lzma_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(UsageError, match="built without lzma") as raised:
        write_recording("quiz", tmp_path / "new")
    assert raised.value.where.endswith("recorded.tar.xz")
    assert not (tmp_path / "new").exists()

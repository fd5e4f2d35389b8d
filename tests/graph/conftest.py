"""One server with the six roles for all tests of runs, and a fresh workspace for each test."""

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from coreeval.config import load_config
from coreeval.tools.workspace import Workspace
from tests.graph.kit import MOMENT, Lab, Undisturbed, config_of, ended
from tests.support.answers import OfflineAnswers
from tests.support.batch_server import BatchServer
from tests.support.careless import Careless

MakeLab = Callable[[Path], Lab]


@pytest.fixture(scope="session")
def make_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLab]:
    """Start the server, and return what puts a workspace beside prepared news into a folder."""
    cache = tmp_path_factory.mktemp("answers")
    config = cache / "any.yaml"
    config.write_text(yaml.safe_dump(config_of("http://127.0.0.1:9/v1")))
    answers = OfflineAnswers(load_config(config), cache)
    server = BatchServer(answers)

    def make(folder: Path) -> Lab:
        shutil.copytree(Workspace(cache).gdelt, Workspace(folder / ".coreeval").gdelt)
        return Lab(folder=folder, server=server, answers=Careless(answers))

    with server.in_thread():
        yield make
    answers.close()


@pytest.fixture
def lab(make_lab: MakeLab, tmp_path: Path, undisturbed: Undisturbed) -> Iterator[Lab]:
    """Return a workspace of its own; `undisturbed` comes first, so that requests are told apart."""
    made = make_lab(tmp_path)
    made.forget()
    yield made
    made.forget()


@pytest.fixture(scope="session")
def undisturbed(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Return what a run gives that nothing happens to: accepted and rejected texts, retries."""
    lab = make_lab(tmp_path_factory.mktemp("undisturbed"))
    lab.forget()
    lab.refresh()
    results = lab.results()
    assert {1, 2} <= {result.attempts for result in results.values()}
    assert len({result.outcome for result in results.values()}) > 2
    return Undisturbed(
        lab=lab,
        results=results,
        arms=lab.arms(),
        asked=frozenset(lab.asked()),
        shapes=tuple(lab.asked_shapes()),
    )


@pytest.fixture(scope="session")
def dead(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Return a run that was killed; its databases are whole and in one file each."""
    lab = make_lab(tmp_path_factory.mktemp("dead"))
    lab.forget()
    assert ended(lab.child("refresh", die=MOMENT)) == -signal.SIGKILL
    return in_one_file_each(lab)


@pytest.fixture(scope="session")
def halted(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Return a run that was stopped by SIGINT."""
    lab = make_lab(tmp_path_factory.mktemp("halted"))
    lab.forget()
    lab.trap("", 12, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = lab.child("refresh")
    assert ended(child) == 130
    return in_one_file_each(lab)


def in_one_file_each(lab: Lab) -> Lab:
    """Put what stands beside the databases into them, so that they can be copied and damaged."""
    for file in (lab.files.store, lab.files.checkpoints, lab.workspace.calls):
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return lab


@pytest.fixture
def killed(dead: Lab, tmp_path: Path, undisturbed: Undisturbed) -> Iterator[Lab]:
    """Return a copy of the killed run, workspace and all, that thinks it was always there."""
    yield from moved(dead, tmp_path)


@pytest.fixture
def stopped(halted: Lab, tmp_path: Path, undisturbed: Undisturbed) -> Iterator[Lab]:
    """Return a copy of the stopped run."""
    yield from moved(halted, tmp_path)


@pytest.fixture
def finished(undisturbed: Undisturbed, tmp_path: Path) -> Iterator[Lab]:
    """Return a copy of the undisturbed run, which has no target."""
    yield from moved(undisturbed.lab, tmp_path)


def moved(left: Lab, folder: Path) -> Iterator[Lab]:
    """Copy what a run left behind into a folder of its own."""
    shutil.copytree(left.folder, folder, dirs_exist_ok=True)
    lab = Lab(folder, left.server, left.answers, dict(left.changes))
    manifest = lab.files.manifest.read_text()
    lab.files.manifest.write_text(manifest.replace(str(left.folder), str(folder)))
    lab.forget()
    yield lab
    lab.forget()

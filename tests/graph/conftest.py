"""One server with the six roles for all tests of runs, and a fresh workspace for each test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from coreeval.config import load_config
from coreeval.tools.workspace import Workspace
from tests.graph.kit import Lab, Undisturbed, config_of
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer

MakeLab = Callable[[Path], Lab]


@pytest.fixture(scope="session")
def make_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLab]:
    """Start the server, and return what puts a workspace beside prepared news into a folder."""
    cache = tmp_path_factory.mktemp("answers")
    config = cache / "any.yaml"
    config.write_text(yaml.safe_dump(config_of("http://127.0.0.1:9/v1")))
    answers = OfflineAnswers(load_config(config), cache)
    server = LLMServer(answers)

    def make(folder: Path) -> Lab:
        shutil.copytree(Workspace(cache).gdelt, Workspace(folder / ".coreeval").gdelt)
        return Lab(folder=folder, server=server, answers=answers)

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
    """Return what a run gives that nothing happens to."""
    lab = make_lab(tmp_path_factory.mktemp("undisturbed"))
    lab.forget()
    lab.refresh()
    return Undisturbed(results=lab.results(), arms=lab.arms(), asked=frozenset(lab.asked()))

"""A shell in an empty folder, and one finished run to look at."""

import contextlib
import io
import shutil
from pathlib import Path

import pytest
import yaml

from coreeval.cli import main
from tests.cli.kit import CONFIG, Shell


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Return a caller of commands whose current folder is empty."""
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a complete run on five samples; only to look at."""
    folder = tmp_path_factory.mktemp("finished")
    config, run = folder / "finished.yaml", folder / "run"
    config.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(["refresh", str(config), "--limit", "5", "--run-dir", str(run)])
    assert code == 0
    return run


@pytest.fixture
def copied(finished: Path, shell: Shell) -> Path:
    """Return a finished run that a test may spoil."""
    return Path(shutil.copytree(finished, shell.folder / "copied"))

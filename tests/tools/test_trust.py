"""What was agreed to in a workspace is remembered there, and counts only for who agreed."""

import json
import shutil
import stat
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt
from coreeval.tools.endpoints import EndpointPair
from coreeval.tools.trust import TrustRecord, trusted_endpoints
from coreeval.tools.workspace import Workspace

PAIR = EndpointPair("OTHER_KEY", "https://models.example")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def workspace(tmp_path: Path, own_home: Path) -> Workspace:
    return Workspace(tmp_path / "w")


def test_nothing_is_trusted_at_first_and_looking_writes_nothing(
    workspace: Workspace, own_home: Path
) -> None:
    assert trusted_endpoints(workspace) == frozenset()
    assert not workspace.root.exists() and not own_home.exists()


def test_pairs_are_remembered_once(workspace: Workspace, own_home: Path) -> None:
    other = EndpointPair("OTHER_KEY", "https://second.example")
    TrustRecord(workspace).trust_endpoints([PAIR, PAIR])
    TrustRecord.at(workspace.trusted).trust_endpoints([other])
    assert trusted_endpoints(workspace) == {PAIR, other}
    assert len(json.loads(workspace.trusted.read_text())["trusted"]) == 2
    (key,) = own_home.rglob("trust.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text() not in workspace.trusted.read_text()


def test_hooks_are_those_accepted_last(workspace: Workspace) -> None:
    record = TrustRecord(workspace)
    record.trust_endpoints([PAIR])
    here, there = Path("/here"), Path("/there")
    record.accept_hooks("n", here, "first")
    record.accept_hooks("other", here, "first")
    record.accept_hooks("n", here, "second")
    accepted = [record.accepts_hooks("n", here, digest) for digest in ("first", "second")]
    assert accepted == [False, True]
    assert record.accepts_hooks("other", here, "first")
    assert not record.accepts_hooks("n", there, "second")
    record.accept_hooks("n", there, "first")
    assert record.accepts_hooks("n", there, "first") and record.accepts_hooks("n", here, "second")
    assert record.endpoints() == {PAIR}


def test_a_record_that_came_with_a_folder_counts_for_nothing(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    TrustRecord(workspace).trust_endpoints([PAIR])
    moved = Workspace(tmp_path / "elsewhere")
    shutil.copytree(workspace.root, moved.root)
    assert trusted_endpoints(moved) == frozenset()
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    TrustRecord(moved).trust_endpoints([])
    assert trusted_endpoints(workspace) == frozenset()


def test_an_altered_entry_counts_for_nothing(workspace: Workspace) -> None:
    TrustRecord(workspace).trust_endpoints([PAIR])
    text = workspace.trusted.read_text()
    workspace.trusted.write_text(text.replace("models.example", "evil.example"))
    assert trusted_endpoints(workspace) == frozenset()
    workspace.trusted.write_text(text.replace("OTHER_KEY", "OPENAI_API_KEY"))
    assert trusted_endpoints(workspace) == frozenset()


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 2}', "\udcff"])
def test_a_damaged_record_is_an_error_and_stays(workspace: Workspace, text: str) -> None:
    TrustRecord(workspace).trust_endpoints([PAIR])
    workspace.trusted.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RunCorrupt, match="cannot be read"):
        trusted_endpoints(workspace)
    with pytest.raises(RunCorrupt):
        TrustRecord(workspace).trust_endpoints([PAIR])
    assert workspace.trusted.read_bytes() == text.encode(errors="surrogateescape")

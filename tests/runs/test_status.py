"""What is read of a run while it goes on: the words of the schema, light, from old files too."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import get_args

import pytest

from coreeval.config import ROLES as CONFIGURED
from coreeval.config import ModelsConfig
from coreeval.errors import ReleaseError, RunStateError
from coreeval.releases import create
from coreeval.runs import manifest as manifests
from coreeval.runs import status as looking
from coreeval.runs.manifest import Status, read_manifest
from coreeval.runs.status import read_bad_lines, read_comparability, read_failures, read_status
from coreeval.schema import Outcome
from tests.releases.kit import Made

HEAVY = ("pydantic", "sqlalchemy", "asyncio", "filelock", "yaml")


def test_the_words_are_those_of_the_schema(people: Made) -> None:
    assert get_args(Outcome) == looking.ENDS
    assert tuple(CONFIGURED) == looking.ROLES
    assert get_args(Status) == looking.STATUSES
    models = ModelsConfig.model_validate(read_manifest(people.files.manifest).models)
    assert read_status(people.files.root).ruled == models.rule_based_roles


def test_looking_imports_nothing_heavy(people: Made) -> None:
    looks = "from coreeval.runs.status import read_status; read_status(Path(sys.argv[1]))"
    tells = f"print([name for name in {HEAVY} if name in sys.modules])"
    program = f"import sys; from pathlib import Path; {looks}; {tells}"
    command = [sys.executable, "-c", program, str(people.files.root)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_files_of_a_run_that_are_too_large_are_not_read(
    people: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run from somebody else may have files of terabytes in a few kilobytes."""
    monkeypatch.setattr(looking, "MOST_FILE_BYTES", most := 1 << 20)
    for module in (manifests, create):
        monkeypatch.setattr(module, "MOST_DATA_BYTES", most)
    files = people.files
    manifest = read_manifest(files.manifest)
    report = {"comparability": {"verdict": "comparable", "sentences": []}}
    files.report_json.write_text(json.dumps(report) + " " * most)
    assert read_comparability(files.root) is None
    files.annotation.write_text("{}" + " " * most)
    with pytest.raises(ReleaseError, match="OSError"):
        create.read_ratings(files, manifest)
    files.manifest.write_text(files.manifest.read_text() + " " * most)
    with pytest.raises(RunStateError, match="it is larger than"):
        read_status(files.root)


def test_as_many_troubles_as_are_wanted(people: Made) -> None:
    ids = [f"x{number}" for number in range(5)]
    with closing(sqlite3.connect(people.files.root / "run.db", isolation_level=None)) as db:
        db.execute("UPDATE results SET outcome = 'failed', reason = 'because ' || sample_id")
        db.executemany(
            "INSERT INTO bad_rows (file, line, reason, text) VALUES ('f', 1, ?, 't')",
            [(name,) for name in ids],
        )
    failed, counts = read_failures(people.files.root), read_status(people.files.root).counts
    assert len(failed) == counts["failed"] == counts["total"] > 2
    assert read_failures(people.files.root, most=2) == failed[:2]
    assert all(one.reason == f"because {one.sample}" for one in failed)
    assert [row.reason for row in read_bad_lines(people.files.root, most=3)] == ids[:3]

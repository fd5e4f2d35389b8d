"""A run and two releases of it to export; only to look at."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from coreeval.config import load_config
from coreeval.runs.arms import write_arms
from coreeval.runs.card import write_card
from coreeval.runs.manifest import read_manifest
from coreeval.schema import Result
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kit import NOW, Made, make_run
from tests.support.results import replace_result

OPEN = {"licence": {"name": "CC0 1.0", "url": "https://example.org/cc0", "redistribute": True}}


@dataclass(frozen=True)
class Sources:
    """What can be exported."""

    run: Path
    closed: Path
    """A release that may not pass the originals on."""
    free: Path
    """One that may."""


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Return the directories of a run, assembled, and of releases."""
    closed = make_run(tmp_path_factory.mktemp("closed"))
    free = make_run(tmp_path_factory.mktemp("free"), dataset=OPEN)
    assemble(closed)
    return Sources(closed.files.root, closed.release().path, free.release().path)


def changed_run(folder: Path, **result: object) -> Path:
    """Return a run whose first sample ended otherwise."""
    made = make_run(folder)
    ended = Result.model_validate({"sample_id": "emotion/test/1", **result})
    store = RunStore.open(made.files.store, now=lambda: NOW)
    asyncio.run(replace_result(store, ended))
    store.close()
    assemble(made)
    return made.files.root


def assemble(made: Made) -> None:
    """Write the dataset of a run that was made by hand."""
    task, config = load_task("emotion"), load_config(made.files.config)
    store = RunStore.open(made.files.store, now=lambda: NOW)
    rows = write_arms(store, task, made.files.dataset, split="test", on_reject="drop")
    store.close()
    manifest = read_manifest(made.files.manifest)
    write_card(made.files.dataset, task, config, manifest, rows)

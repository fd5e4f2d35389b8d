"""Runs in PostgreSQL: they come to what runs in files come to, whatever dies on the way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coreeval.runs.status import read_bad_lines, read_failures, read_status
from coreeval.tools.stores.places import find_schema, marker_of
from tests.graph.conftest import MakeLab
from tests.graph.kit import CONCURRENCY, Lab, Undisturbed, assert_whole
from tests.postgresql.server import Server

IN_POSTGRESQL = {"concurrency": CONCURRENCY, "store": "postgresql"}


@pytest.fixture
def lab(
    make_lab: MakeLab, tmp_path: Path, undisturbed: Undisturbed, server: Server
) -> Iterator[Lab]:
    made = make_lab(tmp_path)
    made.forget()
    made.write(run=IN_POSTGRESQL)
    yield made
    made.forget()


def test_a_run_comes_to_the_same_as_in_files(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.refresh()
    assert_whole(lab, undisturbed)
    assert set(lab.asked()) == undisturbed.asked == lab.answered()
    assert not list(lab.folder.rglob("run.db*"))
    assert not list(lab.folder.rglob("calls.db*"))
    told = json.loads(marker_of(lab.files.store).read_text())
    assert told == {"store": "postgresql", "schema": find_schema(lab.files.store)}


def test_status_reads_it(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.refresh()
    mine, theirs = read_status(lab.files.root), read_status(undisturbed.lab.files.root)
    assert mine.counts == theirs.counts
    assert mine.spend == theirs.spend
    assert mine.status == "complete"
    assert read_failures(lab.files.root) == [] == read_bad_lines(lab.files.root)

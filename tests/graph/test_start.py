"""What a run may be started, resumed and joined with."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import CredentialError, RunLocked, RunStateError
from coreeval.graph.run import refresh
from coreeval.graph.work import Surroundings
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.support.llm_server import Reply

LATER = {"concurrency": CONCURRENCY, "max_attempts": 1}


def test_one_process_at_a_time(lab: Lab, undisturbed: Undisturbed) -> None:
    trap = lab.trap("plan", 1, lambda: Reply(delay_s=1.0, status=503))
    child = lab.child("refresh")
    assert trap.sprung.wait(30)
    with pytest.raises(RunLocked, match="another process") as caught:
        lab.resume()
    assert caught.value.where == str(lab.files.root)
    with pytest.raises(RunStateError, match="run here already"):
        lab.refresh()
    assert ended(child) == 0
    assert_whole(lab, undisturbed)


def test_a_changed_config_is_refused_or_left_aside(killed: Lab, undisturbed: Undisturbed) -> None:
    usual = killed.config.read_text()
    killed.write(run=LATER, name="other")
    with pytest.raises(RunStateError) as caught:
        killed.resume()
    assert caught.value.message.endswith("since the run began: name, run.max_attempts")
    assert "--keep" in caught.value.hint and "--anew" in caught.value.hint
    assert killed.asked() == []
    killed.resume("keep")
    assert_whole(killed, undisturbed)  # with one attempt it would not be

    killed.config.write_text(f"# a thought\n{usual}")
    assert killed.resume().manifest.status == "complete"


def test_a_changed_config_can_have_a_run_of_its_own(killed: Lab) -> None:
    before = killed.manifest
    killed.write(run=LATER)
    answered = killed.answered()
    anew = killed.resume("anew")
    assert anew.run_dir.parent == killed.workspace.runs / "survival"
    assert (anew.manifest.status, anew.manifest.counts["total"]) == ("complete", SAMPLES)
    assert killed.manifest == before
    assert answered.isdisjoint(killed.asked())


def test_refresh_beside_an_unfinished_run_names_resume(lab: Lab) -> None:
    moment = datetime(2026, 11, 1, 3, tzinfo=UTC)
    lab.server.answers = lambda _: Reply(status=401, error={"message": "no"})
    with pytest.raises(CredentialError):
        refresh(lab.config, limit=3, around=Surroundings(now=lambda: moment))
    first = lab.workspace.runs / "survival" / "20261101T030000Z"
    assert first.is_dir()
    lab.forget()
    for place in (None, first):
        with pytest.raises(RunStateError) as caught:
            refresh(lab.config, limit=3, run_dir=place)
        assert f"coreeval resume {first}" in caught.value.hint
    assert lab.asked() == []


def test_two_runs_may_start_in_one_second(lab: Lab) -> None:
    moment = Surroundings(now=lambda: datetime(2026, 11, 1, 3, tzinfo=UTC))
    runs = [refresh(lab.config, limit=1, around=moment).run_dir.name for _ in range(3)]
    assert runs == ["20261101T030000Z", "20261101T030000Z-2", "20261101T030000Z-3"]


def test_a_limit_and_lines_that_are_no_samples(lab: Lab) -> None:
    rows: list[object] = [
        {"text": "Gold price hit a record, so happy", "label": 1},
        {"text": "no label here"},
        {"text": "an unknown label", "label": 9},
        {"text": "Windows made me furious again", "label": 0},
        {"text": "never reached", "label": 0},
    ]
    source = lab.folder / "rows.jsonl"
    lines = [*map(json.dumps, rows[:3]), "{not json", *map(json.dumps, rows[3:])]
    source.write_text("\n".join(lines) + "\n")
    lab.write(
        dataset={"format": "jsonl", "path": str(source)},
        models={"default": "offline"},
    )
    summary = lab.refresh(limit=2)
    assert summary.manifest.counts["total"] == 2 == len(lab.results())
    assert summary.manifest.bad_rows == 3
    assert summary.manifest.limit == 2
    assert bad_lines(lab.files.store) == [2, 3, 4]


def bad_lines(path: Path) -> list[int]:
    store = RunStore.open(path, now=utc_now)
    try:
        return [row.line for row in store.bad_rows()]
    finally:
        store.close()

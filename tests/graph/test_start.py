"""What a run may be started, resumed and joined with."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import RunLocked, RunStateError
from coreeval.graph.run import refresh
from coreeval.graph.work import Surroundings, utc_now
from coreeval.tools.stores.runs import RunStore
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.support.llm_server import Reply

LATER = {"concurrency": CONCURRENCY, "max_attempts": 2}


def interrupted(lab: Lab) -> None:
    """Leave a run behind that was killed."""
    ended(lab.child("refresh", die="after:judge_original:6"))


def test_one_process_at_a_time(lab: Lab, undisturbed: Undisturbed) -> None:
    trap = lab.trap("plan", 1, lambda: Reply(delay_s=2.0, status=503))
    child = lab.child("refresh")
    assert trap.sprung.wait(30)
    with pytest.raises(RunLocked, match="another process") as caught:
        lab.resume()
    assert caught.value.where == str(lab.files.root)
    with pytest.raises(RunStateError, match="run here already"):
        lab.refresh()
    assert ended(child) == 0
    assert_whole(lab, undisturbed)


def test_a_changed_config_is_named_and_refused(lab: Lab) -> None:
    interrupted(lab)
    lab.write(run=LATER)
    lab.forget()
    with pytest.raises(RunStateError, match=r"changed since the run began: run\.max_attempts$") as e:
        lab.resume()
    assert "--keep" in e.value.hint and "--anew" in e.value.hint
    assert lab.asked() == []


def test_a_changed_config_can_be_left_aside(lab: Lab, undisturbed: Undisturbed) -> None:
    interrupted(lab)
    lab.write(run=LATER, name="other")
    lab.resume("keep")
    assert_whole(lab, undisturbed)


def test_a_changed_config_can_have_a_run_of_its_own(lab: Lab) -> None:
    interrupted(lab)
    before = lab.manifest
    lab.write(run=LATER)
    answered = lab.answered()
    lab.forget()
    anew = lab.resume("anew")
    assert anew.run_dir.parent == lab.workspace.runs / "survival"
    assert (anew.manifest.status, anew.manifest.counts["total"]) == ("complete", SAMPLES)
    assert lab.manifest == before
    assert answered.isdisjoint(lab.asked())


def test_a_comment_is_no_change(lab: Lab, undisturbed: Undisturbed) -> None:
    interrupted(lab)
    lab.config.write_text(f"# a thought\n{lab.config.read_text()}")
    lab.resume()
    assert_whole(lab, undisturbed)


def test_refresh_beside_an_unfinished_run_names_resume(lab: Lab) -> None:
    stopped = threading.Event()
    moment = datetime(2026, 11, 1, 3, tzinfo=UTC)
    lab.server.answers = lambda _: Reply(status=401, error={"message": "no"})
    with pytest.raises(Exception, match="refused"):
        refresh(lab.config, limit=3, around=Surroundings(now=lambda: moment))
    first = lab.workspace.runs / "survival" / "20261101T030000Z"
    assert first.is_dir() and not stopped.is_set()
    lab.forget()
    for place in (None, first):
        with pytest.raises(RunStateError) as caught:
            refresh(lab.config, limit=3, run_dir=place)
        assert f"coreeval resume {first}" in caught.value.hint
    assert lab.asked() == []


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

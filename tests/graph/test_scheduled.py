"""A scheduled run that is stopped in the middle, and started again: one release, nothing twice."""

import json
import os
import signal
import time
from contextlib import nullcontext
from multiprocessing.process import BaseProcess
from pathlib import Path

from coreeval.graph.monitor import ignore_progress
from coreeval.releases.release import read_release
from coreeval.schedule.steps import GraphSteps
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import PATIENCE_S, Lab, config_of, ended
from tests.support import worker

SCHEDULE = {"cron": "0 3 * * MON", "timezone": "Europe/Berlin"}


def started(lab: Lab) -> BaseProcess:
    return worker.start(["schedule", "run", str(lab.config)], out=lab.out, environment={})


def state(lab: Lab) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(
        (lab.workspace.root / "schedule" / "survival.json").read_text()
    )
    return found


def releases(lab: Lab) -> list[Path]:
    return sorted(lab.workspace.releases.glob("survival/*/release.json"))


def test_sigterm_in_the_middle_of_a_refresh(lab: Lab) -> None:
    lab.write(schedule=SCHEDULE)
    lab.trap("", 12, lambda: os.kill(child.pid or 0, signal.SIGTERM))
    child = started(lab)
    assert ended(child) == 130, lab.out.read_text()
    assert state(lab)["begun"]["outcome"] == "interrupted"
    assert releases(lab) == []
    answered = lab.answered()
    assert answered
    lab.forget()

    lab.write(schedule=SCHEDULE | {"max_failed": 0.1})  # decides nothing about the run
    child = started(lab)
    deadline = time.monotonic() + PATIENCE_S
    while "is released" not in lab.out.read_text():
        assert child.is_alive() and time.monotonic() < deadline, lab.out.read_text()
        time.sleep(0.05)
    os.kill(child.pid or 0, signal.SIGTERM)
    assert ended(child) == 0, "nothing was at work"
    assert answered.isdisjoint(lab.asked()), "a question was paid for twice"
    [release] = releases(lab)
    known = state(lab)
    assert known["begun"] is None
    assert known["finished"]["release"] == str(release.parent)
    assert len(list(lab.workspace.runs.glob("survival/*"))) == 1


def test_a_run_with_open_samples_is_resumed_whatever_its_manifest_says(lab: Lab) -> None:
    before = lab.refresh().manifest
    with RunStore.open(lab.files.store, now=utc_now) as store:
        assert store.forget("accepted")
    assert lab.manifest.status == "complete"
    assert GraphSteps(lambda: nullcontext(ignore_progress)).resume(lab.files.root).finished
    with RunStore.open(lab.files.store, now=utc_now) as store:
        assert store.pending() == []
    assert lab.manifest.counts == before.counts


def test_a_licence_that_changed_while_a_release_waited_applies_to_it(lab: Lab) -> None:
    dataset = config_of(lab.server.url)["dataset"]
    assert isinstance(dataset, dict)
    lab.write(dataset=dataset | {"licence": {"name": "CC-BY-4.0", "redistribute": True}})
    lab.refresh(limit=2)
    asked = len(lab.asked())
    lab.write(dataset=dataset | {"licence": {"name": "closed", "redistribute": False}})
    steps = GraphSteps(lambda: nullcontext(ignore_progress))
    assert steps.list_changes(lab.files.root) == []
    assert steps.resume(lab.files.root).finished
    assert len(lab.asked()) == asked
    made = steps.release(lab.files.root, "1", require_review=False, gates=None)
    assert not read_release(made).manifest.licence.redistribute

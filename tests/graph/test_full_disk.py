"""A full disk stops a run with one message; with room again it goes on, and nothing was lost."""

import json

import pytest

from tests.graph.kit import CONCURRENCY, Lab, Undisturbed, assert_whole, ended

FULL = ["calls.db:20", "calls.db:60", "run.db:50", "run.db:65"]
"""Files that may have so many pages and no more."""
MOST = 2 * CONCURRENCY
"""Calls that may be in flight: a sample is reworded while its news is looked for."""


@pytest.mark.parametrize("full", FULL)
def test_a_full_disk(lab: Lab, undisturbed: Undisturbed, full: str) -> None:
    assert ended(lab.child("refresh", full=full)) == 1
    told(lab, full)
    assert not lab.files.dataset.exists()
    once, answered = lab.asked(), lab.answered()
    assert len(set(once)) == len(once) <= len(answered) + MOST

    lab.forget()
    assert ended(lab.child("resume", full=full)) == 1
    told(lab, full)
    assert answered.isdisjoint(lab.asked()) and answered <= lab.answered()

    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)


def told(lab: Lab, full: str) -> None:
    """Assert that the last process said what is wrong, once, and blamed no sample for it."""
    said = lab.out.read_text()
    error = json.loads(said[said.index('{\n  "error"') :])["error"]
    assert "disk is full" in error["message"] and "resume" in error["hint"]
    assert error["where"].endswith(full.partition(":")[0])
    assert said.count("disk is full") == 1 and "Traceback" not in said
    assert lab.manifest.status == "stopped"
    assert lab.manifest.counts["failed"] == 0

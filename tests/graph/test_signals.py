"""SIGINT and SIGTERM: the first drains, the second stops at once; either way the run goes on."""

import json
import os
import signal
import threading
import time
from multiprocessing.process import BaseProcess

import pytest

from tests.graph.kit import SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.support.llm_server import Reply

HELD_S = 30.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_steps_in_flight_finish(
    lab: Lab, undisturbed: Undisturbed, number: signal.Signals
) -> None:
    lab.trap("", 12, lambda: os.kill(child.pid or 0, number))
    child = lab.child("refresh")
    assert ended(child) == 130
    assert_interrupted(lab)
    answered, asked = lab.answered(), lab.asked()
    assert set(asked) == answered, "a step in flight was not finished"
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert answered | set(lab.asked()) == undisturbed.asked
    assert_whole(lab, undisturbed)


def test_the_second_signal_stops_at_once(lab: Lab, undisturbed: Undisturbed) -> None:
    """A model that hangs must not keep anybody waiting who has asked twice."""

    def hang() -> Reply:
        os.kill(child.pid or 0, signal.SIGINT)
        threading.Thread(target=ask_again, args=(child,)).start()
        return Reply(delay_s=HELD_S)

    lab.trap("composition", 1, hang)
    child = lab.child("refresh")
    began = time.monotonic()
    assert ended(child) == 130
    assert time.monotonic() - began < HELD_S / 2
    assert_interrupted(lab)
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)


def ask_again(child: BaseProcess) -> None:
    time.sleep(0.5)  # time enough to drain all but the request that hangs
    os.kill(child.pid or 0, signal.SIGINT)


def assert_interrupted(lab: Lab) -> None:
    """Assert that the manifest and what was printed tell the same, and that it adds up."""
    manifest, counts = lab.manifest, dict(lab.manifest.counts)
    assert (manifest.status, bool(manifest.ended_at)) == ("interrupted", True)
    assert counts.pop("total") == SAMPLES == sum(counts.values())
    assert 0 < counts["pending"] <= SAMPLES
    assert counts["failed"] == 0
    assert not lab.files.dataset.exists()
    assert f'"status": "{manifest.status}"' in lab.out.read_text()
    assert json.dumps(lab.manifest.counts["pending"]) in lab.out.read_text()

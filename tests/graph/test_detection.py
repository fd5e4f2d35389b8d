"""Asking targets: an outage is no wrong answer, a bad answer is, and a signal loses neither."""

import os
import signal
from collections.abc import Mapping

import pytest

from coreeval import cli
from coreeval.errors import RunError
from coreeval.evaluation.targets import GIVE_UP_AFTER
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.runs import RunStore
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab, ended
from tests.support.llm_server import Reply, Request, refused
from tests.support.wire import Prompted

TARGET = "openai:target"
SHAPE = "LabelAnswer"
POISON = "Got the new Pixel"
"""How the text of one sample begins in all its arms."""


@pytest.fixture
def tested(lab: Lab) -> Lab:
    """Return a workspace whose config has a target on the same server."""
    models = {
        "default": {"model": "openai:scripted", "base_url": lab.server.url},
        "targets": [{"model": TARGET, "base_url": lab.server.url}],
    }
    lab.write(models=models)
    return lab


class Troubled:
    """Answers well, but for the target: from a number of questions on, or about one text."""

    def __init__(self, lab: Lab, reply: Reply, *, after: int = 10**6, about: str = "\0") -> None:
        self._answers, self._reply, self._left, self._about = lab.answers, reply, after, about

    async def __call__(self, request: Request) -> str | Reply:
        prompted = Prompted(request)
        if prompted.shape != SHAPE:
            return await self._answers(request)
        self._left -= 1
        troubled = self._left < 0 or self._about in prompted.user
        return self._reply if troubled else await self._answers(request)


def predictions(lab: Lab) -> Mapping[tuple[str, str], str]:
    """Return the stored answers by arm and sample; empty ones are invalid."""
    store = RunStore.open(lab.files.store, now=utc_now)
    try:
        return {(arm, sample): answer for arm, sample, answer in store.answers(TARGET)}
    finally:
        store.close()


def questions(lab: Lab) -> list[str]:
    """Return what the target was asked since `forget`."""
    asked = [Prompted(request) for request in lab.server.requests]
    return [one.user for one in asked if one.shape == SHAPE]


def assert_complete(lab: Lab) -> None:
    """Assert that all arms were answered and the run ended."""
    assert lab.manifest.status == "complete"
    found = predictions(lab)
    assert {sample for arm, sample in found if arm == "original"} == lab.results().keys()
    arms = lab.arms()
    for arm in ("semantic", "updated"):
        assert {sample for one, sample in found if one == arm} == {row["id"] for row in arms[arm]}


def test_an_outage_is_no_wrong_answer(tested: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    answered = SAMPLES + 3
    tested.server.answers = Troubled(tested, refused(400, "down"), after=answered)
    where = ["--limit", str(SAMPLES), "--run-dir", str(tested.files.root)]
    assert cli.main(["refresh", str(tested.config), *where]) == 1
    said = capsys.readouterr().err
    assert "questions without an answer" in said and TARGET in said and "down" in said
    assert "coreeval resume" in said
    assert len(questions(tested)) <= answered + GIVE_UP_AFTER + 2 * CONCURRENCY
    assert tested.manifest.status == "stopped"
    kept = predictions(tested)
    assert len(kept) == answered and all(kept.values())
    assert not tested.files.report_json.exists()

    before = set(questions(tested)[:SAMPLES])
    tested.forget()
    tested.resume()
    assert before.isdisjoint(questions(tested))
    assert_complete(tested)
    after = predictions(tested)
    assert len(questions(tested)) == len(after) - answered
    assert all(after.values())


def test_one_text_that_an_endpoint_chokes_on_leaves_the_others_answered(tested: Lab) -> None:
    tested.server.answers = Troubled(tested, refused(400, "what is this"), about=POISON)
    with pytest.raises(RunError, match=r"openai:target left [123] of \d+ questions") as caught:
        tested.refresh()
    assert "what is this" in caught.value.message
    missing = SAMPLES - len([1 for arm, _ in predictions(tested) if arm == "original"])
    assert missing == 1
    tested.forget()
    tested.resume()
    assert 1 <= len(questions(tested)) <= 3
    assert all(POISON in text for text in questions(tested))
    assert_complete(tested)


def test_a_bad_answer_is_the_targets_answer_now_and_later(tested: Lab) -> None:
    tested.server.answers = Troubled(tested, Reply(content="joy, I think"), about=POISON)
    tested.refresh()
    assert_complete(tested)
    bad = {key for key, answer in predictions(tested).items() if not answer}
    assert ("original", "emotion/test/2") in bad
    tested.forget()
    tested.refresh("again")
    assert tested.asked() == []


def test_a_text_that_is_declined_is_an_invalid_answer(tested: Lab) -> None:
    declined = Reply(status=400, error={"message": "not this", "code": "content_filter"})
    tested.server.answers = Troubled(tested, declined, about=POISON)
    tested.refresh()
    assert_complete(tested)
    assert predictions(tested)["original", "emotion/test/2"] == ""


def test_a_signal_lets_questions_in_flight_finish_and_sends_no_more(tested: Lab) -> None:
    tested.trap(SHAPE, 9, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = tested.child("refresh")
    assert ended(child) == 130
    assert tested.manifest.status == "interrupted"
    asked = questions(tested)
    assert 9 <= len(asked) <= 9 + CONCURRENCY
    assert len(predictions(tested)) == len(asked)
    assert not tested.files.report_json.exists()
    tested.forget()
    tested.resume()
    assert set(asked).isdisjoint(questions(tested))
    assert_complete(tested)
    assert len(asked) + len(questions(tested)) == len(predictions(tested))

"""Asking targets: an outage is no wrong answer, a bad answer is, and a signal loses neither."""

import json
import os
import shutil
import signal
from collections.abc import Mapping
from typing import Any

import pytest

from coreeval import cli
from coreeval.errors import RunError
from coreeval.evaluation.scores import ARMS
from coreeval.graph.campaign import GIVE_UP_AFTER
from coreeval.schema import AnswerKind
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import CONCURRENCY, OPEN, SAMPLES, Lab, Undisturbed, ended
from tests.support.llm_server import Reply, Request, refused
from tests.support.wire import Prompted

TARGET = "openai:target"
SHAPE = "LabelAnswer"
TEMPLATES = 3
POISON = "Got the new Pixel"
"""How the text of one sample begins in all its arms."""


@pytest.fixture
def tested(lab: Lab, undisturbed: Undisturbed) -> Lab:
    """Return a workspace whose config has a target on the same server; the roles have answered."""
    models = {
        "default": {"model": "openai:scripted", "base_url": lab.server.url},
        "targets": [{"model": TARGET, "base_url": lab.server.url}],
    }
    lab.write(models=models)
    shutil.copy(undisturbed.lab.workspace.calls, lab.workspace.calls)
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


Predictions = Mapping[tuple[str, int, str], tuple[str, AnswerKind]]


def predictions(lab: Lab, target: str = TARGET) -> Predictions:
    """Return the stored answers, with their kinds, by arm, template and sample."""
    store = RunStore.open(lab.files.store, now=utc_now)
    try:
        said = list(store.answers(target, ARMS))
    finally:
        store.close()
    return {(arm, template, key): (label, kind) for arm, template, key, label, kind, *_ in said}


def questions(lab: Lab) -> list[str]:
    """Return what the target was asked since `forget`."""
    asked = [Prompted(request) for request in lab.server.requests]
    return [one.user for one in asked if one.shape == SHAPE]


def assert_complete(lab: Lab) -> None:
    """Assert that all arms were answered and the run ended."""
    assert lab.manifest.status == "complete"
    found, arms = predictions(lab), lab.arms()
    rows = {arm: {str(row["id"]) for row in arms[arm]} for arm in ("semantic", "updated")}
    rows["original"] = set(lab.results())
    assert set(found) == {
        (arm, template, sample)
        for arm, samples in rows.items()
        for sample in samples
        for template in range(1, TEMPLATES + 1)
    }


def test_an_outage_is_no_wrong_answer(tested: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    answered = SAMPLES * TEMPLATES + 3
    tested.server.answers = Troubled(tested, refused(400, "down"), after=answered)
    where = ["--limit", str(SAMPLES), "--run-dir", str(tested.files.root)]
    assert cli.main(["refresh", str(tested.config), *where]) == 1
    said = capsys.readouterr().err
    assert "questions unanswered" in said and TARGET in said and "down" in said
    assert "coreeval resume" in said
    assert len(questions(tested)) <= answered + GIVE_UP_AFTER + 2 * CONCURRENCY
    assert tested.manifest.status == "stopped"
    kept = predictions(tested)
    assert len(kept) == answered and all(label for label, _ in kept.values())
    assert not tested.files.report_json.exists()

    before = set(questions(tested)[: SAMPLES * TEMPLATES])
    tested.forget()
    tested.resume()
    assert before.isdisjoint(questions(tested))
    assert_complete(tested)
    after = predictions(tested)
    assert len(questions(tested)) == len(after) - answered
    assert all(label for label, _ in after.values())


def test_one_text_that_an_endpoint_chokes_on_leaves_the_others_answered(tested: Lab) -> None:
    tested.server.answers = Troubled(tested, refused(400, "what is this"), about=POISON)
    with pytest.raises(RunError, match=r"openai:target left [369] of \d+ questions") as caught:
        tested.refresh()
    assert "what is this" in caught.value.message
    originals = {sample for arm, _, sample in predictions(tested) if arm == "original"}
    assert len(originals) == SAMPLES - 1
    tested.forget()
    tested.resume()
    assert len(questions(tested)) in (3, 6, 9)
    assert all(POISON in text for text in questions(tested))
    assert_complete(tested)


def test_a_bad_answer_is_the_targets_answer_now_and_later(tested: Lab) -> None:
    tested.server.answers = Troubled(tested, Reply(content="joy or anger"), about=POISON)
    tested.refresh()
    assert_complete(tested)
    kinds = {key: kind for key, (_, kind) in predictions(tested).items()}
    assert [kinds["original", n, "emotion/test/2"] for n in (1, 2, 3)] == ["unparsed"] * 3
    assert set(kinds.values()) == {"answered", "unparsed"}
    tested.forget()
    tested.refresh("again")
    assert tested.asked() == []


def test_a_text_that_is_declined_is_a_refusal_and_in_no_score(tested: Lab) -> None:
    declined = Reply(status=400, error={"message": "not this", "code": "content_filter"})
    tested.server.answers = Troubled(tested, declined, about=POISON)
    tested.refresh()
    assert_complete(tested)
    assert predictions(tested)["original", 2, "emotion/test/2"] == ("", "refused")
    original = report(tested)["arms"]["targets"][0]["all_samples"]["arms"][0]
    assert original["answers"]["refused"] == TEMPLATES
    assert original["macro_f1"]["n"] == SAMPLES - 1
    assert [one["macro_f1"]["n"] for one in original["templates"]] == [SAMPLES - 1] * TEMPLATES


def test_a_target_that_refuses_everything_leaves_a_report_that_says_so(tested: Lab) -> None:
    tested.server.answers = Troubled(tested, Reply(content="", refusal="I cannot."), after=0)
    tested.refresh()
    assert_complete(tested)
    assert {kind for _, kind in predictions(tested).values()} == {"refused"}
    for arm in report(tested)["arms"]["targets"][0]["all_samples"]["arms"]:
        assert arm["macro_f1"] == {"estimate": None, "ci_low": None, "ci_high": None, "n": 0}
    assert "This target refused every question" in tested.files.report_html.read_text()


def test_an_answer_that_is_cut_off_is_told_from_one_that_cannot_be_read(tested: Lab) -> None:
    cut = Reply(content='{"label": "jo', finish_reason="length")
    tested.server.answers = Troubled(tested, cut, about=POISON)
    tested.refresh()
    assert predictions(tested)["original", 1, "emotion/test/2"] == ("", "truncated")
    html = tested.files.report_html.read_text()
    assert "Scores by template" in html and "cut off" in html


def report(lab: Lab) -> dict[str, Any]:
    """Return report.json."""
    found: dict[str, Any] = json.loads(lab.files.report_json.read_text())
    return found


def test_a_signal_lets_questions_in_flight_finish_and_sends_no_more(tested: Lab) -> None:
    tested.trap(SHAPE, 9, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = tested.child("refresh")
    assert ended(child) == 130
    assert tested.manifest.status == "interrupted"
    asked = questions(tested)
    assert 9 <= len(asked) <= 9 + OPEN
    assert len(predictions(tested)) == len(asked)
    assert not tested.files.report_json.exists()
    tested.forget()
    tested.resume()
    assert set(asked).isdisjoint(questions(tested))
    assert_complete(tested)
    assert len(asked) + len(questions(tested)) == len(predictions(tested))

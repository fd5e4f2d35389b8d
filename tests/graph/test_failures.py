"""One bad sample harms no other; a refused key stops everything, and is written down nowhere."""

import time
from collections import Counter
from pathlib import Path

import pytest

from coreeval import cli
from coreeval.errors import CredentialError
from coreeval.graph.run import retry
from coreeval.models.client import MAX_DRAWS
from tests.graph.kit import CONCURRENCY, KEY, SAMPLES, Lab, Undisturbed, assert_whole
from tests.support.llm_server import Reply, Request, refused
from tests.support.wire import Prompted

HELD_S = 60.0
UNLUCKY = "emotion/test/2"
SAYS = "Got the new Pixel"
"""How the text of the unlucky sample begins; no other prompt has it."""


def is_unlucky(request: Request) -> bool:
    """Return whether a request is about the unlucky sample alone."""
    return Prompted(request).shape != "labels" and SAYS in Prompted(request).user


@pytest.mark.parametrize(
    ("reply", "tries"),
    [(refused(400, "too many texts"), 1), (Reply(content="I would rather not say."), MAX_DRAWS)],
)
def test_originals_whose_batch_fails_are_labelled_one_by_one(
    lab: Lab, undisturbed: Undisturbed, reply: Reply, tries: int
) -> None:
    async def unkind(request: Request) -> str | Reply:
        return reply if Prompted(request).shape == "labels" else await lab.answers(request)

    lab.server.answers = unkind
    lab.refresh()
    shapes, usual = Counter(lab.asked_shapes()), Counter(undisturbed.shapes)
    least = tries * usual["labels"]
    assert least <= shapes["labels"] <= least + CONCURRENCY, "who begins beside it may ask again"
    assert shapes["label"] > usual["label"]
    assert lab.results() == undisturbed.results
    assert lab.arms() == undisturbed.arms


def test_originals_in_calls_of_their_own_give_the_same_results(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    lab.write(run={"concurrency": CONCURRENCY, "label_batch": 1})
    lab.refresh()
    assert "labels" not in lab.asked_shapes()
    assert lab.results() == undisturbed.results


def test_a_run_without_the_semantic_arm_rewords_nothing(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.write(run={"concurrency": CONCURRENCY, "arms": ["updated"]})
    lab.refresh()
    assert "rewrite" not in lab.asked_shapes()
    assert lab.arms()["semantic"] == []
    assert {row["id"] for row in lab.arms()["updated"]} <= {
        row["id"] for row in undisturbed.arms["updated"]
    }
    assert {result.semantic_status for result in lab.results().values()} <= {"unchanged", "policy"}


def fail_one(lab: Lab, undisturbed: Undisturbed, reply: Reply) -> None:
    """Run with a server that has this reply for the unlucky sample."""

    async def unkind(request: Request) -> str | Reply:
        return reply if is_unlucky(request) else await lab.answers(request)

    lab.server.answers = unkind
    limits = ["--limit", str(SAMPLES), "--run-dir", str(lab.files.root)]
    assert cli.main(["refresh", str(lab.config), *limits]) == 1
    results = lab.results()
    assert lab.manifest.status == "complete"
    assert lab.manifest.counts["failed"] == 1
    assert results.pop(UNLUCKY).outcome == "failed"
    assert results == {k: v for k, v in undisturbed.results.items() if k != UNLUCKY}


def test_one_sample_fails_and_is_retried_alone(
    lab: Lab, undisturbed: Undisturbed, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_one(lab, undisturbed, refused(400, "this text is not to our taste"))
    assert "coreeval retry" in capsys.readouterr().out
    answered = lab.answered()
    lab.forget()
    assert retry(lab.files.root).manifest.counts["failed"] == 0
    assert is_unlucky(lab.server.requests[0])
    assert answered.isdisjoint(lab.asked())
    assert set(lab.asked()) <= undisturbed.asked
    assert_whole(lab, undisturbed)


def test_a_sample_that_got_garbage_is_asked_plainly_again(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    fail_one(lab, undisturbed, Reply(content="I would rather not say."))
    garbage = [request for request in lab.server.requests if is_unlucky(request)]
    assert len(garbage) == MAX_DRAWS
    answered = lab.answered()
    lab.forget()
    cost = retry(lab.files.root).manifest.cost
    assert lab.server.requests[0] == garbage[0]
    assert len(answered & set(lab.asked())) == 1, "more than the plain question was asked again"
    assert lab.results() == undisturbed.results
    assert lab.arms() == undisturbed.arms
    assert cost.billed_calls == undisturbed.lab.manifest.cost.billed_calls + MAX_DRAWS
    lab.forget()
    assert lab.refresh("again").manifest.counts["failed"] == 0
    assert lab.asked() == []


def test_a_sample_that_takes_too_long_fails_alone(lab: Lab, undisturbed: Undisturbed) -> None:
    async def slow(request: Request) -> str | Reply:
        if is_unlucky(request):
            return Reply(delay_s=HELD_S)
        return await lab.answers(request)

    lab.server.answers = slow
    lab.write(run={"concurrency": CONCURRENCY, "sample_timeout_s": 5.0})
    began = time.monotonic()
    summary = lab.refresh()
    assert time.monotonic() - began < HELD_S / 2
    results = lab.results()
    failed = results.pop(UNLUCKY)
    assert failed.outcome == "failed"
    assert "5 s (run.sample_timeout_s)" in failed.reason
    assert (summary.manifest.status, summary.manifest.counts["failed"]) == ("complete", 1)
    assert results == {k: v for k, v in undisturbed.results.items() if k != UNLUCKY}
    lab.forget()
    retry(lab.files.root)
    assert_whole(lab, undisturbed)


def holds_key(path: Path) -> bool:
    return KEY.encode() in path.read_bytes()


def test_a_key_that_is_refused_on_the_way(
    lab: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    left = 40

    async def expiring(request: Request) -> str | Reply:
        nonlocal left
        left -= 1
        said = f"Incorrect API key provided: {KEY}. It has expired."
        return await lab.answers(request) if left > 0 else refused(401, said)

    lab.server.answers = expiring
    with pytest.raises(CredentialError, match="key was refused") as caught:
        lab.refresh()
    assert lab.server.keys[-1] == f"Bearer {KEY}"
    assert KEY not in f"{caught.value} {caught.value.as_dict()} {caught.getrepr(style='long')}"
    assert "OPENAI_API_KEY" in caught.value.hint
    assert (lab.manifest.status, lab.manifest.counts["failed"]) == ("stopped", 0)
    assert 0 < lab.manifest.counts["pending"] <= SAMPLES
    assert [path for path in lab.folder.rglob("*") if path.is_file() and holds_key(path)] == []
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)

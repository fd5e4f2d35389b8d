from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from coreeval.schema import (
    BadRow,
    Evidence,
    Prediction,
    ReplacedFact,
    Result,
    Sample,
    Triple,
    Verdict,
)
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, Fetch, StepRecord, heartbeat

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    opened = RunStore.open(tmp_path / "run.db", now=lambda: NOW)
    yield opened
    opened.close()


def _sample(number: int) -> Sample:
    return Sample(
        id=f"emotion/test/{number}",
        split="test",
        fields={"text": f"text {number}"},
        label=number % 2,
        label_text="ab"[number % 2],
    )


def _evidence(key: str) -> Evidence:
    return Evidence(
        id=key,
        url=f"https://example.org/{key}",
        domain="example.org",
        title=f"title of {key}",
        published_at=NOW,
        published_precision="exact",
        origin="file.csv:1",
    )


def _fact(number: int) -> ReplacedFact:
    return ReplacedFact(
        sample_id=f"emotion/test/{number}",
        field="text",
        before=None,
        after=Triple(head="a", relation="b", tail="c"),
        evidence_id="e1",
        quote="b",
    )


def test_samples_come_back_as_they_were_in_order_and_bad_rows_beside_them(store: RunStore) -> None:
    bad = BadRow(file="f", line=2, reason="no label", text="x")
    store.add_samples([_sample(3), bad, _sample(1), _sample(2)])
    assert store.pending() == ["emotion/test/3", "emotion/test/1", "emotion/test/2"]
    assert store.sample("emotion/test/1") == _sample(1)
    assert store.bad_rows() == [bad]
    with pytest.raises(KeyError):
        store.sample("emotion/test/9")


def test_a_limit_counts_samples_and_not_bad_rows(store: RunStore) -> None:
    bad = BadRow(file="f", line=1, reason="no label", text="x")
    rows: list[Sample | BadRow] = [bad, _sample(1), bad, _sample(2), _sample(3)]
    store.add_samples(rows, limit=2)
    assert (store.total(), len(store.bad_rows())) == (2, 2)


def test_planning_is_whole_or_not_at_all(store: RunStore) -> None:
    def rows() -> Iterator[Sample]:
        yield from map(_sample, range(3000))
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        store.add_samples(rows())
    assert store.total() == 0


async def test_a_committed_result_is_there_after_reopening(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path / "run.db", now=lambda: NOW)
    store.add_samples([_sample(1), _sample(2)])
    result = Result(
        sample_id="emotion/test/1",
        outcome="accepted",
        attempts=2,
        rung="alias",
        semantic_status="reworded",
        semantic={"text": "other"},
        updated={"text": "new"},
        facts=(_fact(1), _fact(1)),
    )
    await store.commit(result)
    store.close()
    again = RunStore.open(tmp_path / "run.db", now=lambda: NOW)
    assert again.result("emotion/test/1") == result
    assert again.result("emotion/test/2") is None
    assert again.counts() == {"accepted": 1}
    assert again.pending() == ["emotion/test/2"]
    again.close()


@pytest.mark.parametrize("facts", [(), (_fact(1), _fact(1), _fact(1))])
async def test_of_two_workers_the_first_has_the_say(
    store: RunStore, tmp_path: Path, facts: tuple[ReplacedFact, ...]
) -> None:
    """As when a worker comes back whose samples another one took over; clocks are not asked."""
    store.add_samples([_sample(1)])
    first = Result(sample_id="emotion/test/1", outcome="accepted", facts=(_fact(1), _fact(1)))
    late = Result(sample_id="emotion/test/1", outcome="failed", reason="why", facts=facts)
    an_hour_behind = RunStore.open(tmp_path / "run.db", now=lambda: NOW - timedelta(hours=1))
    with an_hour_behind as other:
        assert await store.commit(first)
        assert not await other.commit(late)
    assert store.result("emotion/test/1") == first
    assert store.counts() == {"accepted": 1}


async def test_forgetting_failed_samples_makes_them_pending_and_keeps_the_rest(
    store: RunStore,
) -> None:
    store.add_samples([_sample(1), _sample(2)])
    await store.commit(Result(sample_id="emotion/test/1", outcome="failed", facts=(_fact(1),)))
    await store.commit(Result(sample_id="emotion/test/2", outcome="unsafe"))
    assert store.forget("failed") == 1
    assert store.pending() == ["emotion/test/1"]
    assert list(store.facts()) == []
    assert [ended.sample.id for ended in store.sample_results(["unsafe"])] == ["emotion/test/2"]


async def test_a_forgotten_sample_starts_its_story_anew_but_what_was_paid_stays(
    store: RunStore,
) -> None:
    call = CallRow(key="k", role="composer", model="m", draw=0, cached=False)
    verdict = Verdict(name="checks", attempt=1, passed=False)
    for number, outcome in ((1, "failed"), (2, "unsafe")):
        sample_id = f"emotion/test/{number}"
        step = StepRecord(
            sample_id=sample_id,
            attempt=1,
            node="check",
            started_at="t",
            seconds=0,
            calls=(call,),
            verdicts=(verdict,),
        )
        store.history.record(step)
        await store.commit(Result.model_validate({"sample_id": sample_id, "outcome": outcome}))
    store.forget("failed")
    assert store.history.steps("emotion/test/1") == []
    assert [step.verdicts for step in store.history.steps("emotion/test/2")] == [(verdict,)]
    assert store.history.call_totals()[0]["calls"] == 1
    store.history.record(
        StepRecord(sample_id="emotion/test/1", attempt=1, node="check", started_at="u", seconds=0)
    )
    await store.commit(Result(sample_id="emotion/test/1", outcome="accepted"))
    (again,) = store.history.steps("emotion/test/1")
    assert (again.started_at, again.verdicts, again.calls) == ("u", (), (call,))


async def test_steps_carry_their_own_calls_and_verdicts(store: RunStore) -> None:
    call = CallRow(key="k", role="composer", model="openai:m", draw=0, cached=False)
    verdict = Verdict(name="checks", attempt=1, passed=False, reason="length")
    for node, at in (("check", "2026-03-01T12:00:02"), ("compose", "2026-03-01T12:00:01")):
        store.history.record(
            StepRecord(
                sample_id="s",
                attempt=1,
                node=node,
                started_at=at,
                seconds=0.5,
                detail={"composed": {"text": "x"}},
                calls=(call,) if node == "compose" else (),
                verdicts=(verdict,) if node == "check" else (),
            )
        )
    await store.commit(Result(sample_id="s", outcome="rejected_form"))
    compose, check = store.history.steps("s")
    assert (compose.node, compose.calls, compose.verdicts) == ("compose", (call,), ())
    assert (check.node, check.calls, check.verdicts) == ("check", (), (verdict,))


async def test_a_call_paid_before_a_kill_stays_paid_when_the_step_is_redone(
    store: RunStore,
) -> None:
    for cached in (False, True):
        call = CallRow(key="k", role="r", model="m", draw=0, cached=cached, prompt_tokens=7)
        store.history.record(
            StepRecord(sample_id="s", attempt=1, node="n", started_at="t", seconds=0, calls=(call,))
        )
    await store.commit(Result(sample_id="s", outcome="failed"))
    (row,) = store.history.call_totals()
    assert (row["cached"], row["calls"], row["prompt_tokens"]) == (False, 1, 7)


async def test_totals_add_up_what_is_known_and_say_how_much_is(store: RunStore) -> None:
    def call(key: str, usd: float | None, *, cached: bool = False) -> CallRow:
        return CallRow(
            key=key,
            role="r",
            model="m",
            draw=0,
            cached=cached,
            usd=usd,
            prompt_tokens=10,
            cached_tokens=4,
            completion_tokens=3,
        )

    calls = [call("a", 0.25), call("b", 0.5), call("c", None), call("d", 0.125, cached=True)]
    for sample in ("s", "t"):  # both refer to the same calls
        store.history.record(
            StepRecord(
                sample_id=sample,
                attempt=1,
                node="n",
                started_at="t",
                seconds=0,
                calls=tuple(calls),
            )
        )
        await store.commit(Result(sample_id=sample, outcome="failed"))
    paid, found = sorted(store.history.call_totals(), key=lambda row: bool(row["cached"]))
    assert (paid["calls"], paid["priced"], paid["usd"]) == (3, 2, 0.75)
    tokens = ("prompt_tokens", "cached_tokens", "completion_tokens")
    assert [paid[name] for name in tokens] == [30, 12, 9]
    assert (found["cached"], found["calls"], found["usd"]) == (True, 1, 0.125)


async def test_a_call_comes_back_with_all_that_is_known_of_it(store: RunStore) -> None:
    call = CallRow(
        key="k",
        role="composer",
        model="m",
        draw=1,
        cached=False,
        cached_tokens=2,
        method="json_mode",
        tries="busy\nbusy",
        error="truncated",
        usd=0.25,
    )
    store.history.record(
        StepRecord(sample_id="s", attempt=1, node="n", started_at="t", seconds=0, calls=(call,))
    )
    await store.commit(Result(sample_id="s", outcome="failed"))
    assert [step.calls for step in store.history.steps("s")] == [(call,)]


async def test_evidence_is_kept_as_it_was_first_seen(store: RunStore) -> None:
    await store.history.add_evidence([_evidence("e1"), _evidence("e2")])
    await store.history.add_evidence(
        [_evidence("e1").model_copy(update={"title": "changed since"})]
    )
    assert store.history.evidence(["e1", "unknown"]) == {"e1": _evidence("e1")}


def _said(
    sample: str, template: int = 1, *, source: str = "updated", target: str = "t"
) -> Prediction:
    return Prediction(
        target=target,
        source=source,
        sample_id=sample,
        template=template,
        answer="a",
        version="v",
    )


def test_answers_come_back_by_target_and_source_and_once_each(store: RunStore) -> None:
    refused = Prediction(
        target="u", source="updated", sample_id="s", template=1, answer="", kind="refused"
    )
    store.add_predictions([_said("s"), _said("s", 2), _said("s", source="train"), refused])
    store.add_predictions([_said("s")])
    assert list(store.answers("t", ["updated"])) == [
        ("updated", 1, "s", "a", "answered", None, None),
        ("updated", 2, "s", "a", "answered", None, None),
    ]
    assert list(store.answers("t", ["train"])) == [("train", 1, "s", "a", "answered", None, None)]
    assert list(store.answers("u", ["updated"])) == [("updated", 1, "s", "", "refused", None, None)]
    assert list(store.answers("nobody", ["updated"])) == []
    assert store.targets() == {"t", "u"}


def test_grades_come_back_with_the_answers(store: RunStore) -> None:
    graded = _said("s").model_copy(update={"right": True, "score": 0.5})
    wrong = _said("r").model_copy(update={"right": False, "score": 0.0})
    store.add_predictions([graded, wrong])
    assert sorted(store.answers("t", ["updated"])) == [
        ("updated", 1, "r", "a", "answered", False, 0.0),
        ("updated", 1, "s", "a", "answered", True, 0.5),
    ]


def test_what_is_answered_is_known_by_words_source_and_template(store: RunStore) -> None:
    store.add_predictions([_said("1"), _said("2", 2), _said("3", source="original")])
    assert store.answer_keys("t", "updated", "v", ["1", "2", "3"]) == {("1", 1), ("2", 2)}
    assert store.answer_keys("t", "updated", "v", ["2"]) == {("2", 2)}
    assert store.answer_keys("t", "updated", "other words", ["1"]) == set()


async def test_answers_about_samples_that_are_taken_again_are_forgotten(store: RunStore) -> None:
    store.add_samples([_sample(1), _sample(2)])
    for number, outcome in ((1, "failed"), (2, "accepted")):
        await store.commit(
            Result.model_validate({"sample_id": _sample(number).id, "outcome": outcome})
        )
    store.add_predictions([_said(_sample(1).id), _said(_sample(2).id)])
    store.forget("failed")
    assert [key for _, _, key, *_ in store.answers("t", ["updated"])] == [_sample(2).id]


OLD_PREDICTIONS = """
    DROP TABLE predictions;
    CREATE TABLE predictions (
        target VARCHAR NOT NULL, arm VARCHAR NOT NULL, sample_id VARCHAR NOT NULL,
        answer VARCHAR NOT NULL, valid BOOLEAN NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (target, arm, sample_id)
    );
    INSERT INTO predictions VALUES
        ('openai:m', 'original', '1', 'joy', 1, ''),
        ('openai:m', 'original', '2', '', 0, 'target: openai:m gave no valid answer in 1 draws; the last one: refusal'),
        ('openai:m', 'original', '3', '', 0, 'openai:m declined: not this'),
        ('openai:m', 'original', '4', '', 0, 'target: openai:m gave no valid answer in 1 draws; the last one: truncated'),
        ('openai:m', 'original', '5', '', 0, 'target: openai:m gave no valid answer in 1 draws; the last one: label: bad'),
        ('offline:classifier', 'semantic', '1', 'joy', 1, '');
"""  # noqa: E501


async def test_labels_are_those_of_the_samples_that_ended(store: RunStore) -> None:
    store.add_samples([_sample(3), _sample(1), _sample(2)])
    await store.commit(Result(sample_id="emotion/test/2", outcome="accepted"))
    await store.commit(Result(sample_id="emotion/test/3", outcome="label_unrecoverable"))
    assert list(store.labels()) == [
        ("emotion/test/3", "b", "label_unrecoverable"),
        ("emotion/test/2", "a", "accepted"),
    ]


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "why?mode=memory#100%25.db"
    RunStore.open(path, now=lambda: NOW).close()
    assert path.exists()


def test_stages_and_the_heartbeat_come_back(store: RunStore) -> None:
    store.finish_stage("assemble", {"updated": 3})
    assert store.stage("assemble") == {"updated": 3}
    store.reopen_stages()
    assert store.stage("assemble") is None
    assert not list(store.rows(select(heartbeat)))
    store.beat({"s": {"node": "extract", "since": "t"}})
    store.finish_stage("report", {})
    (beat,) = store.rows(select(heartbeat))
    assert (beat["at"], beat["in_flight"]["s"]["node"]) == (
        "2026-03-01T12:00:00.000+00:00",
        "extract",
    )


async def test_verdicts_about_train_items_do_not_count_as_verdicts_about_samples(
    store: RunStore,
) -> None:
    store.add_samples([_sample(1)])
    for key, passed in (("emotion/test/1", True), ("train:emotion/train/1", False)):
        said = Verdict(name="original_label", attempt=1, passed=passed)
        step = StepRecord(sample_id=key, attempt=1, node="judge", started_at="2026", seconds=1)
        store.history.record(replace(step, verdicts=(said,)))
    assert await store.history.flush_steps()
    assert store.history.verdict_counts("original_label") == (1, 0)
    (said_of_all,) = store.listing.overview().verdicts
    assert (said_of_all.passed, said_of_all.failed) == (1, 0)


def test_requests_for_news_of_several_threads_are_all_kept(store: RunStore) -> None:
    requests = [Fetch(backend="doc", queries=number, found=0) for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(store.add_fetch, requests))
    assert sorted(store.fetches(), key=lambda fetch: fetch.queries) == requests

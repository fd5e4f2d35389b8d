"""The history of a sample: inputs of steps, calls and their costs, and what hiding leaves."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.runs.history import (
    CallHistory,
    SampleHistory,
    StepHistory,
    read_sample_history,
    redact_history,
    redact_row,
    redact_text,
)
from coreeval.schema import Evidence, ReplacedFact, Result, Sample, Triple, Verdict
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord
from tests.tools.stores.call_samples import record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "Zanzibar"
"""A word of every text: where texts are hidden, it is nowhere."""
ID = "emotion/test/1"
ASKED = record(f"what of {SECRET}?", f'{{"text": "{SECRET}"}}', role="composer", usd=0.25)
SAMPLE = Sample(
    id=ID, split="test", fields={"text": f"the mayor of {SECRET} sings"}, label=1, label_text="joy"
)
EVIDENCE = Evidence(
    id="e" * 16,
    url="https://example.org/1",
    domain="example.org",
    title=f"{SECRET} votes",
    snippet=f"{SECRET} has voted.",
    published_at=NOW,
    published_precision="exact",
    origin="file:1",
)
TRIPLE = Triple(head=SECRET, relation="elects", tail=f"a mayor of {SECRET}")
RESULT = Result(
    sample_id=ID,
    outcome="accepted",
    reason=f"fine for {SECRET}",
    attempts=2,
    semantic={"text": f"{SECRET}'s mayor sings"},
    updated={"text": f"the mayor of {SECRET} votes"},
    facts=(
        ReplacedFact(
            sample_id=ID,
            field="text",
            before=None,
            after=TRIPLE,
            evidence_id=EVIDENCE.id,
            quote=f"{SECRET} has voted",
        ),
    ),
)
DID: list[tuple[int, str, dict[str, object]]] = [
    (0, "extract", {"extraction": {"entities": [{"span": SECRET, "name": SECRET}]}}),
    (0, "reword", {"semantic": RESULT.semantic}),
    (1, "retrieve", {"evidence": {EVIDENCE.id: "named"}, "rung": "named"}),
    (1, "replace", {"plan": {"decision": "use", "persons": [{"name": SECRET}]}, "composed": {}}),
    (1, "compose", {"composed": {"text": f"{SECRET} sings"}}),
    (1, "check", {"feedback": [{"check": "length", "message": f"short: {SECRET}"}]}),
    (2, "compose", {"composed": RESULT.updated}),
    (2, "check", {}),
]


def _steps() -> Iterator[StepRecord]:
    for place, (attempt, node, did) in enumerate(DID):
        checked = node == "check"
        passed = attempt == 2
        verdict = Verdict(name="checks", attempt=attempt, passed=passed, reason=SECRET)
        yield StepRecord(
            sample_id=ID,
            attempt=attempt,
            node=node,
            started_at=f"2026-03-01T12:00:0{place}+00:00",
            seconds=0.5,
            error="",
            detail=did,
            verdicts=(verdict,) if checked else (),
            calls=tuple(_calls(attempt)) if node == "compose" else (),
        )


def _calls(attempt: int) -> Iterator[CallRow]:
    key, cached = (ASKED.key, False) if attempt == 1 else ("gone", True)
    yield CallRow(
        key=key, role="composer", model="openai:m", draw=0, cached=cached, usd=0.25,
        tries=f"busy {SECRET}\nbusy", error="" if cached else f"invalid: {SECRET}",
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore.open(tmp_path / "run.db", now=lambda: NOW)) as store:
        store.add_samples([SAMPLE, SAMPLE.model_copy(update={"id": "open"})])
        for step in _steps():
            store.history.record(step)
        asyncio.run(_commit(store))
        yield store


async def _commit(store: RunStore) -> None:
    await store.history.add_evidence([EVIDENCE])
    await store.commit(RESULT)


@pytest.fixture
def history(run: RunStore, tmp_path: Path) -> SampleHistory:
    with closing(open_calls(tmp_path / "calls.db")) as calls:
        asyncio.run(calls.put(ASKED))
        return read_sample_history(run, calls, ID, prompts={"composer": "abc"})


def test_steps_name_the_steps_that_made_what_they_were_given(history: SampleHistory) -> None:
    given = {
        (step.node, step.attempt): {one.source: one.step for one in step.given}
        for step in history.steps
    }
    assert given["extract", 0] == {"original": None}
    assert given["compose", 1] == {
        "original": None, "extraction": 0, "plan": 3, "evidence": 2, "semantic": 1,
    }  # fmt: skip
    assert given["compose", 2]["feedback"] == 5
    assert given["check", 2]["composed"] == 6
    (news,) = [one for one in history.steps[4].given if one.source == "evidence"]
    assert news.evidence == (EVIDENCE.id,)
    assert history.evidence == {EVIDENCE.id: EVIDENCE}
    assert (history.steps[1].ended_at - history.steps[1].started_at).total_seconds() == 0.5


def _call(history: SampleHistory, attempt: int) -> CallHistory:
    (call,) = [call for step in history.steps if step.attempt == attempt for call in step.calls]
    return call


def test_a_call_has_its_words_where_the_call_store_has_them(history: SampleHistory) -> None:
    call = _call(history, 1)
    assert (call.gone, call.prompt, call.prompt_version) == (False, "composer", "abc")
    assert call.messages[-1].content == f"what of {SECRET}?"
    assert (call.answer, call.parameters) == (ASKED.response, {"temperature": 0.0})
    assert call.tries == (f"busy {SECRET}", "busy")
    lost = _call(history, 2)
    assert (lost.gone, lost.messages, lost.answer, lost.usd) == (True, (), "", 0.25)
    assert history.billed_usd == 0.25


def test_without_a_call_store_all_words_are_gone(run: RunStore) -> None:
    history = read_sample_history(run, None, ID)
    assert all(call.gone for step in history.steps for call in step.calls)
    assert _call(history, 1).prompt == ""


def test_attempts_have_their_text_and_what_differs(history: SampleHistory) -> None:
    first, second = history.attempts
    assert (first.text, second.text) == ({"text": f"{SECRET} sings"}, RESULT.updated)
    assert [verdict.passed for verdict in (*first.verdicts, *second.verdicts)] == [False, True]
    assert (first.steps, first.seconds) == ((2, 3, 4, 5), 2.0)
    said = [(piece.op, piece.text) for piece in second.diff[0].pieces]
    assert said[-2:] == [("removed", "sings"), ("added", "votes")]
    arms = [(diff.before, diff.after) for diff in history.diffs]
    assert arms == [("original", "semantic"), ("semantic", "updated"), ("original", "updated")]


def test_a_sample_that_is_open_and_one_that_is_not_there(run: RunStore) -> None:
    history = read_sample_history(run, None, "open")
    assert (history.result, history.steps, history.diffs, history.billed_usd) == (None, (), (), 0.0)
    with pytest.raises(KeyError):
        read_sample_history(run, None, "nobody")


def test_hidden_the_judges_answer_to_a_question_is_a_text_and_a_label_is_none(
    history: SampleHistory,
) -> None:
    judged = StepHistory.model_validate(
        {**history.steps[0].model_dump(), "did": {"original_label": SECRET}}
    )
    result = RESULT.model_copy(update={"original_label": SECRET})
    told = history.model_copy(update={"result": result, "steps": (judged,)})
    assert f'"original_label":"{SECRET}"' in redact_history(told).model_dump_json()
    fields = {"question": "Where?", "answers": SECRET}
    asked = told.model_copy(
        update={"sample": SAMPLE.model_copy(update={"fields": fields, "label_text": "text"})}
    )
    hidden = redact_history(asked)
    assert SECRET not in hidden.model_dump_json()
    assert hidden.steps[0].did["original_label"] == redact_text(SECRET)


def test_hidden_there_is_no_word_of_any_text(history: SampleHistory, run: RunStore) -> None:
    redacted = redact_history(history)
    assert SECRET in history.model_dump_json()
    assert SECRET not in redacted.model_dump_json()
    assert redacted.hidden
    assert redacted.sample.fields["text"] == redact_text(SAMPLE.fields["text"])
    row = run.listing.page().rows[0]
    assert SECRET in row.excerpt
    assert SECRET not in redact_row(row).model_dump_json()


def test_hidden_there_is_all_that_is_no_text(history: SampleHistory) -> None:
    redacted = redact_history(history)
    assert [step.node for step in redacted.steps] == [step.node for step in history.steps]
    assert [step.given for step in redacted.steps] == [step.given for step in history.steps]
    assert redacted.result is not None
    assert (redacted.result.outcome, redacted.result.attempts) == ("accepted", 2)
    assert redacted.evidence[EVIDENCE.id].url == EVIDENCE.url
    assert _call(redacted, 1).model == "openai:m"
    assert redacted.billed_usd == 0.25
    assert redacted.steps[3].did["plan"]["decision"] == "use"
    assert type(redacted).model_validate(redacted.model_dump(mode="json")).sample.id == ID

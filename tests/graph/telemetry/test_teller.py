"""What is told of a step or an end, heard one at a time."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.graph.telemetry.teller import Teller, Told
from coreeval.models import CallRef
from coreeval.schema import Result, Sample, TrainEnd
from coreeval.tools.stores.run_records import StepRecord
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.telemetry import Span

AT, LATER = "2026-11-20T12:00:00.000000+00:00", "2026-11-20T13:00:00.000000+00:00"
CALL = CallRef(
    role="composer",
    key="k",
    model="openai:gpt-x",
    draw=0,
    cached=False,
    paid_by="run@now",
    prompt_tokens=100,
    cached_tokens=10,
    completion_tokens=20,
    seconds=2.0,
    method="json_schema",
    tries="429\n429",
    error="",
    usd=0.25,
)


@dataclass
class Kept:
    """Keeps spans."""

    spans: list[Span] = field(default_factory=list)

    def send(self, span: Span) -> None:
        self.spans.append(span)


@dataclass
class Scene:
    """A run store with one sample, and what is told of it."""

    store: RunStore
    told: Told
    kept: Kept

    def teller(self) -> Teller:
        """Return one of a process that has just started."""
        return Teller(replace(self.told, begun=self.store.open_start_times()))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    def now() -> datetime:
        return datetime(2026, 11, 20, 14, tzinfo=UTC)

    with closing(RunStore.open(tmp_path / "run.db", now=now)) as store:
        store.add_samples(
            [Sample(id="s", fields={"text": "a"}, label=0, label_text="joy", split="t")]
        )
        kept = Kept()
        told = Told(
            run="weekly/1",
            payer="weekly/1@now",
            prompts={"composer": "v1"},
            store=store,
            begun=store.open_start_times(),
            now=now,
            content=False,
            sender=kept,
        )
        yield Scene(store, told, kept)


def step(at: str = AT, node: str = "compose", error: str = "") -> StepRecord:
    return StepRecord(sample_id="s", attempt=1, node=node, started_at=at, seconds=3.0, error=error)


def ended(outcome: str = "failed") -> Result:
    return Result.model_validate(
        {"sample_id": "s", "outcome": outcome, "reason": "he said: secret"}
    )


def test_a_call_has_its_price_once(scene: Scene) -> None:
    teller = scene.teller()
    teller.stepped(step(), [CALL, CALL.model_copy(update={"cached": True})])
    teller.ended("s", ended("accepted"))
    compose, sent, found, root = scene.kept.spans
    assert (sent.attributes["llm.cost.total"], found.attributes["llm.cost.total"]) == (0.25, 0.0)
    assert (
        sent.attributes["llm.token_count.total"],
        found.attributes["llm.token_count.total"],
    ) == (120, 0)
    assert (sent.ended - sent.started).total_seconds() == 2
    assert found.started == found.ended
    assert sent.place != found.place
    assert sent.parent == found.parent == compose.place
    assert root.attributes["coreeval.sent_calls"] == root.attributes["coreeval.found_calls"] == 1
    assert (root.attributes["coreeval.usd"], root.error) == (0.25, None)
    assert (sent.attributes["coreeval.tries"], sent.remote) == (2, True)


def test_a_call_without_a_price_has_none(scene: Scene) -> None:
    teller = scene.teller()
    teller.stepped(step(), [CALL.model_copy(update={"usd": None})])
    teller.ended("s", ended())
    _, call, root = scene.kept.spans
    assert "llm.cost.total" not in call.attributes
    assert root.attributes["coreeval.unpriced_calls"] == 1


def test_errors_are_told_by_their_kind(scene: Scene) -> None:
    teller = scene.teller()
    teller.stepped(
        step(error="NoValidAnswer: he said: secret"),
        [CALL.model_copy(update={"error": "invalid: secret"})],
    )
    teller.ended("s", ended())
    assert [span.error for span in scene.kept.spans] == ["NoValidAnswer", "invalid", "failed"]
    assert scene.kept.spans[0].attributes["error.type"] == "NoValidAnswer"
    assert "secret" not in str(scene.kept.spans)


def test_a_retried_sample_has_a_second_root_in_its_trace(scene: Scene) -> None:
    first, again = scene.teller(), scene.teller()
    first.stepped(step(), [])
    first.ended("s", ended())
    again.stepped(step(LATER), [])  # what was stored of the first is forgotten by then
    again.ended("s", ended("accepted"))
    one, other = (span for span in scene.kept.spans if span.parent is None)
    assert one.place.trace_id == other.place.trace_id
    assert one.place.span_id != other.place.span_id


async def test_a_process_goes_on_under_the_root_of_the_one_before(scene: Scene) -> None:
    scene.teller().stepped(step(), [])
    scene.store.record(step())
    await scene.store.flush_steps()
    later = scene.teller()
    later.stepped(step(LATER, node="check"), [])
    later.ended("s", ended("accepted"))
    before, after, root = scene.kept.spans
    assert before.parent == after.parent == root.place
    assert root.started == before.started


def test_a_train_item_and_a_target_are_told_too(scene: Scene) -> None:
    teller = scene.teller()
    teller.stepped(step(node="reword"), [CALL])
    teller.ended("s", TrainEnd(status="reworded", semantic={"text": "b"}))
    asked = StepRecord(
        sample_id="target openai:x", attempt=0, node="updated", started_at=AT, seconds=9.0
    )
    teller.asked(asked, [CALL, CALL])
    _, _, item, target, *calls = scene.kept.spans
    assert (item.name, item.attributes["output.value"]) == ("reword train item", "reworded")
    assert (target.name, target.parent, target.attributes["coreeval.usd"]) == (
        "ask target",
        None,
        0.5,
    )
    assert {call.parent for call in calls} == {target.place}
    assert len({call.place for call in calls}) == 2


def test_trouble_of_its_own_is_counted_and_kept_from_the_run(scene: Scene) -> None:
    teller = scene.teller()
    teller.stepped(step(at="yesterday"), [])
    teller.ended("never begun", ended())
    assert (teller.untold, scene.kept.spans) == (1, [])
    assert teller.trouble.startswith("ValueError")

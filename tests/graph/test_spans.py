"""A collector receives the spans of a run: a trace for each sample, and nothing that is private."""

import json
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from openinference.semconv import trace as semconv

from coreeval.graph.execute import RunHooks, open_store
from coreeval.graph.monitor import Progress
from coreeval.graph.run import refresh
from coreeval.graph.spans import SpanRecorder, SpanSettings
from coreeval.models import CallRef
from coreeval.schema import Evidence, Result, Sample, TrainEnd
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.telemetry import Span
from tests.graph.conftest import MakeLab
from tests.graph.kit import KEY, SAMPLES, Lab
from tests.support.collector import Collector, Received, collecting

PRICE = {"input": 1, "output": 10}
NODES_WITH_A_KIND = {
    "retrieve": "RETRIEVER",
    "check": "GUARDRAIL",
    "reflect": "EVALUATOR",
    "judge_original": "EVALUATOR",
    "judge_semantic": "EVALUATOR",
}


@dataclass(frozen=True)
class Seen:
    """A run, and what a collector was sent of it."""

    lab: Lab
    collector: Collector
    samples: list[Sample]
    steps: dict[str, list[StepRecord]]
    evidence: list[Evidence]

    def traces(self) -> dict[bytes, list[Received]]:
        """Return the spans by trace."""
        found = defaultdict(list)
        for span in self.collector.spans:
            found[span.trace_id].append(span)
        return found


def priced(lab: Lab) -> dict[str, object]:
    """Return the usual models with a price and a key."""
    model = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICE}
    return {"default": model | {"api_key_env": "SCRIPTED_KEY"}}


def seen(lab: Lab, collector: Collector) -> Seen:
    with closing(open_store(lab.files, utc_now)) as store:
        samples = [one.sample for one in store.sample_results()]
        steps = {sample.id: store.history.steps(sample.id) for sample in samples}
        ids = {known for each in steps.values() for step in each for known in found_by(step)}
        evidence = list(store.history.evidence(sorted(ids)).values())
    return Seen(lab, collector, samples, steps, evidence)


def found_by(step: StepRecord) -> list[str]:
    return list(step.detail.get("evidence", {}))


@pytest.fixture(scope="module")
def plain(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Return a run that was stopped and taken up again, all of it told without content."""
    with pytest.MonkeyPatch.context() as patch, collecting() as collector:
        patch.setenv("SCRIPTED_KEY", KEY)
        lab = make_lab(tmp_path_factory.mktemp("told"))
        lab.write(models=priced(lab), telemetry={"otlp": collector.url})
        lab.forget()
        lab.trap("", 40, lambda: os.kill(os.getpid(), signal.SIGINT))
        assert lab.refresh().manifest.status == "interrupted"
        lab.forget()
        lab.write(telemetry={"otlp": f"{collector.url}/"})  # may change: it decides nothing
        assert lab.resume().manifest.status == "complete"
        yield seen(lab, collector)


def test_each_sample_is_one_trace_also_over_a_stop(plain: Seen) -> None:
    traces = plain.traces()
    assert len(traces) == SAMPLES
    for spans in traces.values():
        (root,) = (span for span in spans if not span.parent_id)
        assert (root.name, root.kind) == ("refresh sample", "AGENT")
        ids = {span.span_id for span in spans}
        assert len(ids) == len(spans)
        assert all(span.parent_id in ids for span in spans if span is not root)
        steps = [span for span in spans if span.parent_id == root.span_id]
        stored = plain.steps[str(root.attributes["coreeval.sample"])]
        told = {(step.name, step.attributes["coreeval.attempt"]) for step in steps}
        assert told == {(step.node, step.attempt) for step in stored}
        assert root.started == min(step.started for step in steps)
        assert root.ended >= max(step.ended for step in steps)
    assert {root.attributes["output.value"] for root in plain.collector.of("AGENT")} == {
        outcome
        for outcome, count in plain.lab.manifest.counts.items()
        if count and outcome != "total"
    }


def test_each_step_is_of_its_kind(plain: Seen) -> None:
    nodes = [span for span in plain.collector.spans if "graph.node.id" in span.attributes]
    assert {span.name: span.kind for span in nodes} == {
        span.name: NODES_WITH_A_KIND.get(span.name, "CHAIN") for span in nodes
    }
    assert set(NODES_WITH_A_KIND) < {span.name for span in nodes}
    found = next(
        span
        for span in nodes
        if span.name == "retrieve" and "retrieval.documents.0.document.id" in span.attributes
    )
    assert str(found.attributes["retrieval.documents.0.document.metadata"]).startswith('{"rung": ')
    judged = next(span for span in nodes if span.name == "reflect")
    names = [judged.attributes[f"evaluations.{place}.evaluation.name"] for place in range(4)]
    assert names == ["facts_supported", "label_preserved", "fluency", "difficulty"]
    assert [event["gen_ai.evaluation.name"] for _, event in judged.events] == names
    assert judged.attributes["evaluations.0.evaluation.annotator_kind"] == "LLM"


def test_calls_add_up_to_what_the_run_paid(plain: Seen) -> None:
    calls, cost = plain.collector.of("LLM"), plain.lab.manifest.cost
    sent = [call for call in calls if not call.attributes["coreeval.cached"]]
    assert len(sent) == cost.billed_calls

    def sum_of(name: str) -> float:
        return sum(float(str(call.attributes[name])) for call in calls)

    assert sum_of("llm.token_count.prompt") == cost.prompt_tokens
    assert sum_of("llm.token_count.completion") == cost.completion_tokens
    assert sum_of("llm.cost.total") == pytest.approx(cost.billed_usd)
    roots = plain.collector.of("AGENT")
    spent = sum(float(str(root.attributes["coreeval.usd"])) for root in roots)
    assert spent <= sum_of("llm.cost.total") + 1e-9
    bad = [call for call in calls if call.is_error]
    assert {call.said for call in bad} == {"invalid", "truncated"}


def test_a_call_says_what_was_asked_of_whom(plain: Seen) -> None:
    call = next(call for call in plain.collector.of("LLM") if call.name == "composer")
    told = call.attributes
    assert (told["llm.model_name"], told["llm.provider"]) == ("scripted", "openai")
    assert told["llm.prompt_template.version"] == plain.lab.manifest.prompts["composer"]
    assert json.loads(str(told["llm.invocation_parameters"])) == {"max_tokens": 2048}
    assert (told["llm.finish_reason"], told["gen_ai.operation.name"]) == ("stop", "chat")
    assert told["session.id"] == plain.lab.manifest.run
    parent = next(span for span in plain.collector.spans if span.span_id == call.parent_id)
    assert (parent.name, parent.started <= call.started + 1_000_000) == ("compose", True)


def test_names_are_those_of_the_conventions(plain: Seen) -> None:
    known = {
        value
        for holder in vars(semconv).values()
        if isinstance(holder, type)
        for value in vars(holder).values()
        if isinstance(value, str)
    }
    names = {name for span in plain.collector.spans for name in span.attributes}
    flat = {name for name in names if not name.startswith(("coreeval.", "gen_ai.", "error.type"))}
    unknown = {name for name in flat if name not in known and not is_listed(name, known)}
    assert unknown == set()


def is_listed(name: str, known: set[str]) -> bool:
    """Tell whether a name is of an item of a list, such as `retrieval.documents.0.document.id`."""
    start, number, rest = next(
        (name.partition(f".{part}.") for part in name.split(".") if part.isdigit()), ("", "", "")
    )
    return bool(number) and start in known and rest in known


def test_without_content_no_text_is_told(plain: Seen) -> None:
    told = b"\n".join(plain.collector.bodies)
    assert KEY.encode() not in told
    assert not [text for text in texts_of(plain) if text.encode() in told]


def texts_of(run: Seen) -> list[str]:
    """Return texts that are nobody's business: samples, news, answers, reasons."""
    given = [text for sample in run.samples for text in sample.fields.values()]
    news = [part for item in run.evidence for part in (item.title, item.url)]
    with closing(open_calls(run.lab.workspace.calls)) as calls:
        answers = [record.response for record in calls.records()]
    reasons = [v.reason for steps in run.steps.values() for s in steps for v in s.verdicts]
    found = [text for text in (*given, *news, *answers, *reasons) if len(text) > 8]
    assert min(map(len, (given, news, answers, reasons))) > 5
    return found


def test_with_content_texts_prompts_answers_and_news_are_told(
    make_lab: MakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    with collecting() as collector:
        lab = make_lab(tmp_path)
        lab.write(
            models=priced(lab), telemetry={"otlp": f"{collector.url}/v1/traces", "content": True}
        )
        lab.refresh(limit=2)
    assert KEY.encode() not in b"".join(collector.bodies)
    run = seen(lab, collector)
    by_id = {root.attributes["coreeval.sample"]: root for root in collector.of("AGENT")}
    for sample in run.samples:
        assert json.loads(str(by_id[sample.id].attributes["input.value"])) == sample.fields
    first = run.samples[0].fields["text"]
    call = next(
        call
        for call in collector.of("LLM")
        if call.name == "extractor"
        and first in str(call.attributes["llm.input_messages.1.message.content"])
    )
    assert call.attributes["llm.input_messages.0.message.role"] == "system"
    assert json.loads(str(call.attributes["output.value"]))["entities"] is not None
    found = next(
        s for s in collector.of("RETRIEVER") if "retrieval.documents.0.document.url" in s.attributes
    )
    titles = {item.title for item in run.evidence}
    assert (
        str(found.attributes["retrieval.documents.0.document.content"]).partition("\n")[0] in titles
    )
    assert collector.paths and set(collector.paths) == {"/v1/traces"}


def test_a_collector_that_is_down_costs_a_run_nothing_but_its_spans(
    make_lab: MakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    lab, told = make_lab(tmp_path), list[Progress]()
    around = RunHooks(watch=told.append)
    summary = refresh(lab.config, limit=1, run_dir=tmp_path / "run", around=around)
    assert summary.manifest.status == "complete"
    noted = (progress.note for progress in told if progress.stage == "telemetry")
    begun, lost = filter(None, noted)  # a heartbeat tells where the run is, without a note
    url = "http://127.0.0.1:9/v1/traces"
    assert begun == f"spans are sent to {url} (ids, names and numbers, but no texts)"
    said = rf"(\d+) of \1 spans did not arrive at {url} \(the endpoint is down, .*\)"
    assert re.fullmatch(said, lost)


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
    told: SpanSettings
    kept: Kept

    def recorder(self) -> SpanRecorder:
        """Return one of a process that has just started."""
        return SpanRecorder(replace(self.told, begun=self.store.history.open_start_times()))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    def now() -> datetime:
        return datetime(2026, 11, 20, 14, tzinfo=UTC)

    with closing(RunStore.open(tmp_path / "run.db", now=now)) as store:
        store.add_samples(
            [Sample(id="s", fields={"text": "a"}, label=0, label_text="joy", split="t")]
        )
        kept = Kept()
        told = SpanSettings(
            run="weekly/1",
            payer="weekly/1@now",
            prompts={"composer": "v1"},
            store=store,
            begun=store.history.open_start_times(),
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
    recorder = scene.recorder()
    recorder.on_step(step(), [CALL, CALL.model_copy(update={"cached": True})])
    recorder.on_end("s", ended("accepted"))
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
    recorder = scene.recorder()
    recorder.on_step(step(), [CALL.model_copy(update={"usd": None})])
    recorder.on_end("s", ended())
    _, call, root = scene.kept.spans
    assert "llm.cost.total" not in call.attributes
    assert root.attributes["coreeval.unpriced_calls"] == 1


def test_errors_are_told_by_their_kind(scene: Scene) -> None:
    recorder = scene.recorder()
    recorder.on_step(
        step(error="NoValidAnswer: he said: secret"),
        [CALL.model_copy(update={"error": "invalid: secret"})],
    )
    recorder.on_end("s", ended())
    assert [span.error for span in scene.kept.spans] == ["NoValidAnswer", "invalid", "failed"]
    assert scene.kept.spans[0].attributes["error.type"] == "NoValidAnswer"
    assert "secret" not in str(scene.kept.spans)


def test_a_retried_sample_has_a_second_root_in_its_trace(scene: Scene) -> None:
    first, again = scene.recorder(), scene.recorder()
    first.on_step(step(), [])
    first.on_end("s", ended())
    again.on_step(step(LATER), [])  # what was stored of the first is forgotten by then
    again.on_end("s", ended("accepted"))
    one, other = (span for span in scene.kept.spans if span.parent is None)
    assert one.place.trace_id == other.place.trace_id
    assert one.place.span_id != other.place.span_id


async def test_a_process_goes_on_under_the_root_of_the_one_before(scene: Scene) -> None:
    scene.recorder().on_step(step(), [])
    scene.store.history.record(step())
    await scene.store.history.flush_steps()
    later = scene.recorder()
    later.on_step(step(LATER, node="check"), [])
    later.on_end("s", ended("accepted"))
    before, after, root = scene.kept.spans
    assert before.parent == after.parent == root.place
    assert root.started == before.started


def test_a_train_item_and_a_target_are_told_too(scene: Scene) -> None:
    recorder = scene.recorder()
    recorder.on_step(step(node="reword"), [CALL])
    recorder.on_end("s", TrainEnd(status="reworded", semantic={"text": "b"}))
    asked = StepRecord(
        sample_id="target openai:x", attempt=0, node="updated", started_at=AT, seconds=9.0
    )
    recorder.on_target_questions(asked, [CALL, CALL])
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
    recorder = scene.recorder()
    recorder.on_step(step(at="yesterday"), [])
    recorder.on_end("never begun", ended())
    assert (recorder.failure_count, scene.kept.spans) == (1, [])
    assert recorder.trouble.startswith("ValueError")

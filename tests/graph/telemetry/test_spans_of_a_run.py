"""A collector receives the spans of a run: a trace for each sample, and nothing that is private."""

import json
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from openinference.semconv import trace as semconv

from coreeval.graph.progress import Progress
from coreeval.graph.run import refresh
from coreeval.graph.work import Surroundings, open_store
from coreeval.schema import Evidence, Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_records import StepRecord
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
        steps = {sample.id: store.steps(sample.id) for sample in samples}
        ids = {known for each in steps.values() for step in each for known in found_by(step)}
        evidence = list(store.evidence(sorted(ids)).values())
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
    names = [judged.attributes[f"evaluations.{place}.evaluation.name"] for place in range(3)]
    assert names == ["facts_supported", "label_preserved", "fluency"]
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
    around = Surroundings(watch=told.append)
    summary = refresh(lab.config, limit=1, run_dir=tmp_path / "run", around=around)
    assert summary.manifest.status == "complete"
    noted = (progress.note for progress in told if progress.stage == "telemetry")
    begun, lost = filter(None, noted)  # a heartbeat tells where the run is, without a note
    url = "http://127.0.0.1:9/v1/traces"
    assert begun == f"spans go to {url} (ids, names and numbers, no texts)"
    assert re.fullmatch(rf"(\d+) of \1 spans did not arrive at {url} \(it is down, .*\)", lost)

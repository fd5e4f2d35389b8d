"""Spans on the wire: all of them, sampled by the trace, and no trouble where nobody takes them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from coreeval.tools.telemetry.otlp import OtlpSender
from coreeval.tools.telemetry.spans import Event, Place, Span
from tests.support.collector import Collector, collecting

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ROOT = Place.of("run", "sample", root="first")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


def span(place: Place = ROOT, text: str = "x" * 100) -> Span:
    return Span(
        name="extract",
        place=place,
        parent=ROOT if place != ROOT else None,
        started=NOON,
        ended=NOON + timedelta(seconds=1.5),
        attributes={"openinference.span.kind": "CHAIN", "text": text, "tags": ["a", "b"], "n": 3},
        events=[Event(name="said", attributes={"ok": True})],
        error="" if place == ROOT else None,
    )


def test_a_span_arrives_as_it_was(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=evals,openinference.project.name=mine")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "10")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    sender = OtlpSender(f"{collector.url}/v1/traces", project="weekly")
    sender.send(span())
    sender.send(span(ROOT.below("extract")))
    assert (delivery := sender.close()).lost == 0
    assert delivery.sent == 2
    root, child = collector.spans
    assert child.trace_id == root.trace_id == ROOT.trace_id.to_bytes(16, "big")
    assert (child.parent_id, root.parent_id) == (root.span_id, b"")
    assert root.ended - root.started == 1_500_000_000
    assert root.started == int(NOON.timestamp()) * 1_000_000_000
    assert (root.is_error, child.is_error) == (True, False)
    assert root.attributes["text"] == "x" * 10
    assert (root.attributes["tags"], root.attributes["n"]) == (["a", "b"], 3)
    assert root.events == [("said", {"ok": True})]
    assert {"service.name": "coreeval", "team": "evals"}.items() <= root.resource.items()
    assert root.resource["openinference.project.name"] == "mine"
    assert collector.headers[0]["authorization"] == "Basic abc"


def test_a_trace_is_sampled_as_a_whole(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    sender = OtlpSender(f"{collector.url}/v1/traces", project="weekly")
    for number in range(40):
        root = Place.of("run", str(number), root="first")
        sender.send(span(root))
        sender.send(span(root.below("extract")))
    assert sender.close().lost == 0
    traces = [one.trace_id for one in collector.spans]
    assert 20 < len(traces) < 60
    assert all(traces.count(trace) == 2 for trace in traces)


@pytest.mark.parametrize(("status", "trouble"), [(401, "401 Unauthorized"), (0, "")])
def test_what_nobody_takes_is_counted_and_nothing_is_logged(
    collector: Collector,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    trouble: str,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    collector.status = status
    url = f"{collector.url}/v1/traces" if status else "http://127.0.0.1:9/v1/traces"
    sender = OtlpSender(url, project="weekly")
    for number in range(3):
        sender.send(span(ROOT.below(str(number))))
    delivery = sender.close()
    assert (delivery.sent, delivery.lost) == (0, 3)
    assert delivery.trouble == trouble
    assert not caplog.records


def test_a_full_queue_drops_and_does_not_wait(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    collector.hold.clear()
    sender = OtlpSender(f"{collector.url}/v1/traces", project="weekly")
    for number in range(100):
        sender.send(span(ROOT.below(str(number))))
    collector.hold.set()
    delivery = sender.close()
    assert delivery.sent == len(collector.spans) < 100
    assert delivery.lost == 100 - delivery.sent


def test_ids_stand_for_what_they_are_made_of() -> None:
    assert Place.of("run", "sample", root="first") == ROOT
    again, other = Place.of("run", "sample", root="second"), Place.of("run", "other", root="first")
    assert again.trace_id == ROOT.trace_id != other.trace_id
    assert again.span_id != ROOT.span_id
    assert ROOT.below("a", "b") != ROOT.below("a", "c")
    assert ROOT.below("a").trace_id == ROOT.trace_id

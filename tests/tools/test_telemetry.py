"""Spans on the wire: all of them, sampled by the trace, and no trouble where nobody takes them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from coreeval.config import TelemetryConfig
from coreeval.errors import ConfigError
from coreeval.tools import telemetry as module
from coreeval.tools.otlp import OtlpSender
from coreeval.tools.telemetry import Span, SpanEvent, SpanIdentity, find_destination, redact_url
from tests.support.collector import Collector, collecting
from tests.support.endless_server import endless

ENDPOINT, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
NOTHING = TelemetryConfig()
OWN = TelemetryConfig(otlp="http://127.0.0.1:6006")


@pytest.mark.parametrize(
    ("asked", "env", "url"),
    [
        (NOTHING, {}, None),
        (TelemetryConfig(content=True), {}, None),
        (OWN, {}, "http://127.0.0.1:6006/v1/traces"),
        (TelemetryConfig(otlp="http://c/otel/v1/traces/"), {}, "http://c/otel/v1/traces"),
        (NOTHING, {ENDPOINT: "http://c:4318/"}, "http://c:4318/v1/traces"),
        (NOTHING, {TRACES: "http://c/own", ENDPOINT: "http://d"}, "http://c/own"),
        (OWN, {ENDPOINT: "http://c:4318"}, "http://127.0.0.1:6006/v1/traces"),
        (NOTHING, {ENDPOINT: "http://c", "OTEL_TRACES_EXPORTER": "none"}, None),
        (NOTHING, {ENDPOINT: "http://c", "OTEL_TRACES_EXPORTER": "otlp"}, "http://c/v1/traces"),
        (OWN, {"OTEL_SDK_DISABLED": "True"}, None),
        (NOTHING, {ENDPOINT: " "}, None),
    ],
)
def test_where_spans_go(asked: TelemetryConfig, env: dict[str, str], url: str | None) -> None:
    assert find_destination(asked, env) == url


def test_another_protocol_is_refused_unless_the_config_names_an_address() -> None:
    env = {ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with pytest.raises(ConfigError, match="http/protobuf, not as grpc") as caught:
        find_destination(NOTHING, env)
    assert "4318" in caught.value.hint
    assert find_destination(OWN, env) is not None


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NEEDED", ("opentelemetry.nowhere", "nothing.at.all"))
    assert find_destination(NOTHING, {}) is None
    with pytest.raises(ConfigError, match="OpenTelemetry is not installed") as caught:
        find_destination(OWN, {})
    assert "coreeval[otel]" in caught.value.hint


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert redact_url("https://me:secret@c.example:4318/v1/traces?token=secret") == (
        "https://c.example:4318/v1/traces"
    )


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ROOT = SpanIdentity.of("run", "sample", root="first")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


def span(place: SpanIdentity = ROOT, text: str = "x" * 100) -> Span:
    return Span(
        name="extract",
        place=place,
        parent=ROOT if place != ROOT else None,
        started=NOON,
        ended=NOON + timedelta(seconds=1.5),
        attributes={"openinference.span.kind": "CHAIN", "text": text, "tags": ["a", "b"], "n": 3},
        events=[SpanEvent(name="said", attributes={"ok": True})],
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
        root = SpanIdentity.of("run", str(number), root="first")
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
    assert SpanIdentity.of("run", "sample", root="first") == ROOT
    again, other = (
        SpanIdentity.of("run", "sample", root="second"),
        SpanIdentity.of("run", "other", root="first"),
    )
    assert again.trace_id == ROOT.trace_id != other.trace_id
    assert again.span_id != ROOT.span_id
    assert ROOT.below("a", "b") != ROOT.below("a", "c")
    assert ROOT.below("a").trace_id == ROOT.trace_id


def test_a_collector_that_sends_without_end_is_not_read_on() -> None:
    with endless("gzip") as url:
        sender = OtlpSender(f"{url}/v1/traces", project="p")
        sender.send(span())
        delivery = sender.close(20)
    assert (delivery.sent, delivery.lost) == (0, 1)
    assert "ResponseRejected" in delivery.trouble

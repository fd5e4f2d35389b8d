"""Sends spans to a collector over HTTP with OpenTelemetry's SDK, in the background.

Importing this module imports the SDK, so import it only if spans are requested.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from coreeval.tools.bounded_session import BoundedAdapter, StraightSession
from coreeval.tools.telemetry import Attribute, Attributes, Span, SpanEvent, SpanIdentity

MOST_BODY_BYTES = 1 << 16
MOST_PARTS = 1 << 12
"""The most parts of a collector's answer, which contains the number of rejected spans (own
choice)."""
MOST_S = 30.0
"""The most seconds for sending a batch and receiving the answer; OpenTelemetry itself only limits
silence, to 10 s (own choice)."""
PATIENCE_S = 2.0
"""The most seconds that the end of a run waits for unsent spans. Only spans can be lost, and a
running collector accepts them in a fraction of that (our choice: including everything else at its
end, the process exits within 5 s, even on a busy machine)."""
_GIVING_UP_S = 0.5
"""The most seconds for giving up a batch after that."""
_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)
_NO_CAUSE = {"spans", "Span"}
"""Words in the log lines that only name what should be sent."""
_SCOPE = InstrumentationScope("coreeval", version("coreeval"))


@dataclass(frozen=True, kw_only=True)
class SpanDelivery:
    """The numbers of spans delivered and lost."""

    sent: int
    """The number of spans that the collector accepted."""
    lost: int
    """The number of spans that it did not accept: it was down or slow, or rejected them."""
    trouble: str
    """The last error message; "" if there was none."""


class OtlpSender:
    """A sender that passes spans to a thread, which sends them in batches.

    If the queue is full, spans are dropped and counted. Sampling, limits, batches, headers,
    certificates and resources follow the OTEL_* variables.

    Args:
        url: The URL that spans are posted to.
        project: The project of the spans, for viewers that group by project.
    """

    def __init__(self, url: str, *, project: str) -> None:
        named = {
            "service.name": "coreeval",
            "service.version": version("coreeval"),
            "openinference.project.name": project,
        }
        provider = TracerProvider(resource=_resource(named), shutdown_on_exit=False)
        self._resource, self._sampler = provider.resource, provider.sampler
        self._longest = SpanLimits().max_span_attribute_length
        self._exporter = _CountingExporter(OTLPSpanExporter(endpoint=url, session=_open_session()))
        self._hush = _LogSilencer()
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._hush)
        self._batches = BatchSpanProcessor(self._exporter)
        self._handed = 0

    def send(self, span: Span) -> None:
        """Queue a span for the next batch, unless its trace is not sampled."""
        sampling = self._sampler.should_sample(None, span.place.trace_id, span.name)
        if sampling.decision is Decision.RECORD_AND_SAMPLE:
            self._handed += 1
            self._batches.on_end(self._readable(span))

    def close(self, patience_s: float = PATIENCE_S) -> SpanDelivery:
        """Send the remaining spans if that is quick; return the numbers sent and lost."""
        closing = Thread(target=self._batches.shutdown, daemon=True)
        closing.start()
        closing.join(patience_s)
        if closing.is_alive():
            self._exporter.shutdown()
            closing.join(_GIVING_UP_S)
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._hush)
        sent = self._exporter.delivered
        return SpanDelivery(sent=sent, lost=self._handed - sent, trouble=self._hush.heard)

    def _readable(self, span: Span) -> ReadableSpan:
        ended = _nanoseconds(span.ended)
        return ReadableSpan(
            name=span.name,
            context=_context(span.place),
            parent=_context(span.parent) if span.parent else None,
            resource=self._resource,
            attributes=self._cut(span.attributes),
            events=[self._event(event, ended) for event in span.events],
            kind=SpanKind.CLIENT if span.remote else SpanKind.INTERNAL,
            instrumentation_scope=_SCOPE,
            status=_status(span),
            start_time=_nanoseconds(span.started),
            end_time=ended,
        )

    def _event(self, event: SpanEvent, at: int) -> SdkEvent:
        return SdkEvent(event.name, self._cut(event.attributes), at)

    def _cut(self, attributes: Attributes) -> dict[str, Attribute]:
        """Return attributes with texts no longer than OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT."""
        return {
            name: value[: self._longest] if isinstance(value, str) else value
            for name, value in attributes.items()
        }


def _open_session() -> StraightSession:
    """Return a session that follows no redirects and limits the size of answers."""
    session = StraightSession()
    bounds = BoundedAdapter(
        most_bytes=MOST_BODY_BYTES, most_parts=MOST_PARTS, silent_s=MOST_S, most_s=MOST_S
    )
    session.mount("https://", bounds)
    session.mount("http://", bounds)
    return session


class _CountingExporter(SpanExporter):
    """An exporter that counts the spans that the collector accepted."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_shut = False
        self.delivered = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        """Give up pending retries and close the exporter."""
        if not self._is_shut:
            self._is_shut = True
            self._exporter.shutdown()


class _LogSilencer(logging.Filter):
    """A filter that drops the SDK's messages about a failing collector: a run reports it once."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the record, but remember its cause."""
        self.heard = _find_cause(record) or self.heard
        return False


def _find_cause(record: logging.LogRecord) -> str:
    """Return the cause in a line of the exporter's log: a status or a kind of error."""
    told = record.args if isinstance(record.args, tuple) else ()
    named = (type(part).__name__ if isinstance(part, Exception) else part for part in told)
    return " ".join(str(p) for p in named if isinstance(p, str | int) and p not in _NO_CAUSE)


def _resource(named: Mapping[str, str]) -> Resource:
    """Return the attributes that all spans share; the OTEL_* variables take precedence."""
    found = Resource.create()
    said = {name for name, value in found.attributes.items() if _is_stated(value)}
    return found.merge(Resource({k: v for k, v in named.items() if k not in said}))


def _is_stated(value: object) -> bool:
    """Return whether a value is not OpenTelemetry's name for an unnamed service."""
    return not str(value).startswith("unknown_service")


def _context(place: SpanIdentity) -> SpanContext:
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(place.trace_id, place.span_id, is_remote=False, trace_flags=sampled)


def _status(span: Span) -> Status:
    if span.error is None:
        return Status(StatusCode.OK)  # as OpenInference's own instrumentation says it
    return Status(StatusCode.ERROR, span.error or None)


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000

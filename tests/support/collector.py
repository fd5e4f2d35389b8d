"""A collector on loopback that takes OTLP over HTTP and keeps the spans that it was sent."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

Value = str | bool | int | float | list[str]


@dataclass(frozen=True, kw_only=True)
class Received:
    """A span as it came over the wire."""

    name: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    started: int
    ended: int
    is_error: bool
    said: str
    """What its status says."""
    attributes: dict[str, Value]
    events: list[tuple[str, dict[str, Value]]]
    resource: dict[str, Value]

    @property
    def kind(self) -> Value:
        return self.attributes["openinference.span.kind"]


@dataclass
class Collector:
    """What a collector was sent, and how it answers."""

    url: str = ""
    status: int = 200
    spans: list[Received] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    """While it is cleared, nothing is answered."""

    def __post_init__(self) -> None:
        self.hold.set()

    def of(self, kind: str) -> list[Received]:
        """Return the spans of a kind."""
        return [span for span in self.spans if span.kind == kind]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Keep a request; a collector in trouble keeps nothing."""
        self.hold.wait(10)
        if self.status != 200:
            return self.status
        plain = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        self.paths.append(path)
        self.headers.append(headers)
        self.bodies.append(plain)
        self.spans += spans_of(ExportTraceServiceRequest.FromString(plain))
        return self.status


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector inside the block."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(collector.take(self.path, dict(self.headers), body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield collector
        server.shutdown()
        thread.join(10)


def spans_of(request: ExportTraceServiceRequest) -> Iterator[Received]:
    """Yield the spans of a request."""
    for group in request.resource_spans:
        resource = {one.key: value_of(one.value) for one in group.resource.attributes}
        for span in (span for scope in group.scope_spans for span in scope.spans):
            yield Received(
                name=span.name,
                trace_id=span.trace_id,
                span_id=span.span_id,
                parent_id=span.parent_span_id,
                started=span.start_time_unix_nano,
                ended=span.end_time_unix_nano,
                is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                said=span.status.message,
                attributes={one.key: value_of(one.value) for one in span.attributes},
                events=[
                    (event.name, {one.key: value_of(one.value) for one in event.attributes})
                    for event in span.events
                ],
                resource=resource,
            )


def value_of(value: AnyValue) -> Value:
    """Return the value of an attribute."""
    name = value.WhichOneof("value")
    if name == "array_value":
        return [one.string_value for one in value.array_value.values]
    found: Value = getattr(value, name or "string_value")
    return found

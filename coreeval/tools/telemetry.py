"""Spans in OpenTelemetry's sense as plain values, and the address that they are sent to.

They do not need the SDK, which otlp.py imports and the extra `otel` installs. The config or
OpenTelemetry's variables set the address.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from typing import Self
from urllib.parse import urlsplit

from coreeval.config import TelemetryConfig
from coreeval.errors import ConfigError

Attribute = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Attribute]
_TRACE_BYTES, _SPAN_BYTES = 16, 8


@dataclass(frozen=True, kw_only=True)
class SpanIdentity:
    """The position of a span: its trace, and its own id in the trace."""

    trace_id: int
    span_id: int

    @classmethod
    def of(cls, *trace: str, root: str) -> Self:
        """Return the position of a trace's root.

        Args:
            trace: The subject of the trace; the same parts give the same trace.
            root: The parts that distinguish the trace's roots if there are several.
        """
        return cls(
            trace_id=_derive_id(_TRACE_BYTES, *trace), span_id=_derive_id(_SPAN_BYTES, *trace, root)
        )

    def below(self, *parts: str) -> Self:
        """Return the position of a child, identified among its siblings by these words."""
        own = _derive_id(_SPAN_BYTES, f"{self.trace_id:x}", f"{self.span_id:x}", *parts)
        return type(self)(trace_id=self.trace_id, span_id=own)


def _derive_id(size: int, *parts: str) -> int:
    """Return a nonzero number derived from the parts, since 0 means no id."""
    digest = hashlib.sha256("\n".join(parts).encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:size], "big") or 1


@dataclass(frozen=True, kw_only=True)
class SpanEvent:
    """An event at the end of a span."""

    name: str
    attributes: Attributes


@dataclass(frozen=True, kw_only=True)
class Span:
    """An operation with its start and end."""

    name: str
    place: SpanIdentity
    parent: SpanIdentity | None
    started: datetime
    ended: datetime
    attributes: Attributes
    events: Sequence[SpanEvent] = field(default=())
    error: str | None = None
    """The reason for its failure, "" if it is not given; None if it did not fail."""
    remote: bool = False
    """Whether it waited for another service, such as a model."""


_PATH = "/v1/traces"
_EXTRA = "pip install 'coreeval[otel]', or set OTEL_SDK_DISABLED=true to disable telemetry"
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def find_destination(asked: TelemetryConfig, env: Mapping[str, str]) -> str | None:
    """Return the URL that spans are sent to; None if sending was not requested.

    Args:
        asked: The config's section; its address precedes those of the environment.
        env: The environment, with OpenTelemetry's standard variables.

    Raises:
        ConfigError: the requested protocol is not supported, or a package is not installed.
    """
    url = None if _is_off("OTEL_SDK_DISABLED", "true", env) else _find_url(asked, env)
    if url is not None and not all(map(_is_installed, _NEEDED)):
        raise ConfigError(
            f"spans should be sent to {redact_url(url)}, but OpenTelemetry is not installed",
            where="telemetry.otlp" if asked.otlp else "OTEL_EXPORTER_OTLP_ENDPOINT",
            hint=_EXTRA,
        )
    return url


def redact_url(url: str) -> str:
    """Return a URL without its possibly secret parts."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _find_url(asked: TelemetryConfig, env: Mapping[str, str]) -> str | None:
    if asked.otlp:
        return _with_path(asked.otlp)
    if env.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() not in {"", "otlp"}:
        return None
    traces = env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    base = env.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if not (traces or base):
        return None
    _refuse_other_protocol(env)
    return traces or f"{base.rstrip('/')}{_PATH}"


def _with_path(base: str) -> str:
    """Return the address of a collector's traces, whether `base` includes the path or not."""
    plain = base.rstrip("/")
    return plain if plain.endswith(_PATH) else plain + _PATH


def _refuse_other_protocol(env: Mapping[str, str]) -> None:
    """Reject an environment variable that requests gRPC or JSON.

    Raises:
        ConfigError: the variable requests one of them.
    """
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next((name for name in names if env.get(name)), "")
    if name and env[name].strip().lower() != "http/protobuf":
        raise ConfigError(
            f"spans are sent as http/protobuf, not as {env[name]}",
            where=name,
            hint="set telemetry.otlp to an OTLP/HTTP endpoint (often port 4318), or set "
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf or OTEL_SDK_DISABLED=true",
        )


def _is_off(name: str, value: str, env: Mapping[str, str]) -> bool:
    return env.get(name, "").strip().lower() == value


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False

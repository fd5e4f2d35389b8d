"""Whether a run tells a collector of OpenTelemetry's what it does, and how much."""

from coreeval.config.secrecy import PlainUrl
from coreeval.schema import Value


class TelemetryConfig(Value):
    """Where spans go; nowhere by default."""

    otlp: PlainUrl | None = None
    """Base URL of a collector that takes OTLP over HTTP; the OTEL_* variables where it is absent.
    Headers with keys come from OTEL_EXPORTER_OTLP_HEADERS."""
    content: bool = False
    """Whether spans hold texts, prompts, answers and news; ids, names and numbers only otherwise.
    """

import pytest

from coreeval.config import TelemetryConfig
from coreeval.errors import ConfigError
from coreeval.tools.telemetry import destination as module
from coreeval.tools.telemetry.destination import destination, plain

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
    assert destination(asked, env) == url


def test_another_protocol_is_refused_unless_the_config_names_an_address() -> None:
    env = {ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with pytest.raises(ConfigError, match="http/protobuf, not as grpc") as caught:
        destination(NOTHING, env)
    assert "4318" in caught.value.hint
    assert destination(OWN, env) is not None


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NEEDED", ("opentelemetry.nowhere", "nothing.at.all"))
    assert destination(NOTHING, {}) is None
    with pytest.raises(ConfigError, match="OpenTelemetry is not installed") as caught:
        destination(OWN, {})
    assert "coreeval[otel]" in caught.value.hint


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert plain("https://me:secret@c.example:4318/v1/traces?token=secret") == (
        "https://c.example:4318/v1/traces"
    )

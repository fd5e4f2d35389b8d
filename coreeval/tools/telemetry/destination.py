"""Where spans go: by the config, or by the variables that OpenTelemetry has for it."""

from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from coreeval.config import TelemetryConfig
from coreeval.errors import ConfigError

_PATH = "/v1/traces"
_EXTRA = "pip install 'coreeval[otel]', or OTEL_SDK_DISABLED=true to go without"
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def destination(asked: TelemetryConfig, env: Mapping[str, str]) -> str | None:
    """Return the URL that takes spans; None where nobody asked for them to be sent.

    Args:
        asked: The config's part; its address comes before those of the environment.
        env: The environment, with OpenTelemetry's standard variables.

    Raises:
        ConfigError: they can be sent in no such way, or not by what is installed.
    """
    url = None if _is_off("OTEL_SDK_DISABLED", "true", env) else _url(asked, env)
    if url is not None and not all(map(_is_installed, _NEEDED)):
        raise ConfigError(
            f"spans are to go to {plain(url)}, and OpenTelemetry is not installed",
            where="telemetry.otlp" if asked.otlp else "OTEL_EXPORTER_OTLP_ENDPOINT",
            hint=_EXTRA,
        )
    return url


def plain(url: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _url(asked: TelemetryConfig, env: Mapping[str, str]) -> str | None:
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
    """Return the address of a collector's traces, be it told with its path or without."""
    plain = base.rstrip("/")
    return plain if plain.endswith(_PATH) else plain + _PATH


def _refuse_other_protocol(env: Mapping[str, str]) -> None:
    """Refuse the variable that asks for gRPC or JSON.

    Raises:
        ConfigError: it does.
    """
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next((name for name in names if env.get(name)), "")
    if name and env[name].strip().lower() != "http/protobuf":
        raise ConfigError(
            f"spans are sent as http/protobuf, not as {env[name]}",
            where=name,
            hint="name an OTLP/HTTP endpoint (often port 4318) in telemetry.otlp, or "
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf, or OTEL_SDK_DISABLED=true",
        )


def _is_off(name: str, value: str, env: Mapping[str, str]) -> bool:
    return env.get(name, "").strip().lower() == value


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False

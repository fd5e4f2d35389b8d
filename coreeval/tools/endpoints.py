"""The variables and texts that would be sent, and their origins; the user consents once per pair.

A key for its own provider needs no consent, and neither does anything that stays on this machine.
Any other pair of a variable and an origin is from a config that somebody else may have written:
`api_key_env` and `base_url` together could send any variable anywhere, and `base_url` alone the
texts of any file that a config can name.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from coreeval.config import ROLES, AnyConfig, Config, ItemConfig, ModelConfig
from coreeval.config.models import split_address
from coreeval.errors import ConfigError, UntrustedEndpoint, UsageError

GOOGLE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
HUB_VARIABLE = "HF_ENDPOINT"
"""The variable that sets the hub for pushing and reading datasets; without it, the public hub is
used."""
TEXTS = "texts without a key"
"""The placeholder for the variable's name if texts are sent without a key."""
COLLECTOR_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_OWN_ORIGINS = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
}
_PORTS = {"http": 80, "https": 443}
_LOCAL_EMBEDDINGS = ("minilm", "huggingface")
"""The kinds of embeddings that are computed on this machine."""
_EMBEDDINGS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "openai": ("OPENAI_API_KEY", ("OPENAI_API_BASE", "OPENAI_BASE_URL"), "https://api.openai.com"),
    "azure_openai": ("AZURE_OPENAI_API_KEY", ("AZURE_OPENAI_ENDPOINT",), "langchain:azure_openai"),
    "ollama": ("OLLAMA_API_KEY", ("OLLAMA_HOST",), "http://127.0.0.1:11434"),
    "mistralai": ("MISTRAL_API_KEY", (), "langchain:mistralai"),
    "google_genai": ("GOOGLE_API_KEY", (), "langchain:google_genai"),
}
"""For each provider of embeddings: the variable of its key, those of its address, its usual
origin."""
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?|[0-9a-f:.]+", re.IGNORECASE)


class EndpointPair(NamedTuple):
    """An environment variable and the origin that a config would send it to."""

    variable: str
    """The variable's name; `TEXTS` if the endpoint gets no key."""
    origin: str
    """The scheme, host and port, as in `https://models.example`, or `langchain:NAME` for the
    endpoint known to a provider's package."""

    def __str__(self) -> str:
        return f"{self.variable} to {self.origin}"


Pairs = Collection[EndpointPair]


def origin_of(url: str) -> str:
    """Return a URL's scheme, host and port, without the scheme's default port.

    Raises:
        ConfigError: it is not an http or https address, or clients might parse its host
            differently.
    """
    try:
        parts = split_address(url)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port = "", "", None
    if scheme not in _PORTS or not _HOST.fullmatch(host):
        raise ConfigError(
            f"base_url is not an http address: {url!r}",
            hint="use an address such as http://127.0.0.1:8000/v1",
        )
    shown = f"[{host}]" if ":" in host else host.rstrip(".")
    return f"{scheme}://{shown}" + (f":{port}" if port not in (None, _PORTS[scheme]) else "")


@contextmanager
def import_for_hub(env: Mapping[str, str]) -> Iterator[None]:
    """Validate the hub's address before the block imports huggingface_hub, which reads it then.

    Raises:
        UsageError: it is not an http or https address, or another variable of the hub is invalid.
    """
    try:
        if HUB_VARIABLE in env:
            origin_of(env[HUB_VARIABLE])
    except ConfigError:
        raise UsageError(
            "the address of the hub is not an http address",  # it may contain a password
            where=f"{HUB_VARIABLE}, in the environment or in .env",
            hint="unset it to use https://huggingface.co, or set it to the address of another hub",
        ) from None
    try:
        yield
    except ValueError as error:
        raise UsageError(
            f"the packages for the hub cannot be imported: {error}",
            where="the environment",
            hint="check the environment variables that start with HF_",
        ) from None


def is_loopback(origin: str) -> bool:
    """Return whether an origin is this machine: localhost, 127.0.0.0/8 or ::1."""
    host = urlsplit(origin).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def model_pairs(
    models: Iterable[ModelConfig], env: Mapping[str, str] | None
) -> Iterator[EndpointPair]:
    """Yield the pairs needed to query models, except those that need no consent.

    Args:
        models: The models.
        env: Variables that are not set here are not sent; None counts all as set.

    Raises:
        ConfigError: a base_url is not an http address.
    """
    for model in models:
        if model.is_rule_based or model.is_plugin or model.is_on_this_machine:
            continue
        own_origin, own_key = _own_origin(model.provider), f"{model.provider.upper()}_API_KEY"
        origin = origin_of(model.base_url) if model.base_url else own_origin
        sends_key = _is_set(model.key_variable, env)
        at_home = origin == own_origin and (model.key_variable == own_key or not sends_key)
        if not (at_home or is_loopback(origin)):
            yield EndpointPair(model.key_variable if sends_key else TEXTS, origin)


def remote_embeddings(config: AnyConfig) -> str | None:
    """Return the embeddings that a config names, unless they are computed on this machine."""
    name: str | None = None
    if isinstance(config, Config):
        name = config.knowledge.embeddings
    elif isinstance(config, ItemConfig):
        name = config.detect.pcr.embeddings
    provider, _, model = (name or "").partition(":")
    return name if model and provider.strip().lower() not in _LOCAL_EMBEDDINGS else None


def embedding_pairs(config: AnyConfig, env: Mapping[str, str] | None) -> Iterator[EndpointPair]:
    """Yield the pair of the provider that a config names for embeddings: it gets texts.

    Args:
        config: The config.
        env: Variables that are not set here are not sent; None counts all as set, and providers at
            their usual addresses.

    Raises:
        ConfigError: a variable has no http address.
    """
    name = remote_embeddings(config)
    if name is None:
        return
    provider = name.partition(":")[0].strip().lower()
    usual = f"{provider.upper()}_API_KEY", (), f"langchain:{provider}"
    key, _, origin = _EMBEDDINGS.get(provider, usual)
    if stated := embedding_address(name, env or {}):
        origin = _origin_in(*stated)
    if not is_loopback(origin):
        yield EndpointPair(key if _is_set(key, env) else TEXTS, origin)


def embedding_address(name: str, env: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable that sets the address of embeddings, and the address.

    Args:
        name: `provider:name`.
        env: The variables.

    Returns:
        None if the provider is at its usual address.
    """
    provider = name.partition(":")[0].strip().lower()
    _, variables, _ = _EMBEDDINGS.get(provider, ("", (), ""))
    stated = next((variable for variable in variables if _is_set(variable, env)), None)
    return (stated, env[stated].strip()) if stated else None


def _origin_in(variable: str, address: str) -> str:
    """Return the origin of an address in a variable; Ollama's may be `host`, `host:port`, `:port`.

    Raises:
        ConfigError: it is not an http address.
    """
    at = f"127.0.0.1{address}" if address.startswith(":") else address
    try:
        return origin_of(at if "://" in at else f"http://{at}")
    except ConfigError:  # its message has the address, which may contain a password
        raise ConfigError(
            "the address of the embedding service is not an http address",
            where=f"{variable}, in the environment or in .env",
            hint="unset it, or set it to an address such as http://127.0.0.1:11434",
        ) from None


def service_pairs(config: AnyConfig, env: Mapping[str, str] | None) -> Iterator[EndpointPair]:
    """Yield the pairs needed for embeddings, a run's news and telemetry.

    Variables that are not set in `env` are not sent; None counts all as set.
    """
    yield from embedding_pairs(config, env)
    if not isinstance(config, Config):
        return
    yield from bigquery_pairs(config)
    collector = config.telemetry.otlp
    names = [name for name in COLLECTOR_VARIABLES if _is_set(name, env)]
    if not names and config.telemetry.content:
        names = [TEXTS]
    if collector and names and not is_loopback(origin := origin_of(collector)):
        stated = (env or {}).get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or (env or {}).get(
            "OTEL_EXPORTER_OTLP_ENDPOINT"
        )
        if not stated or origin_of(stated) != origin:
            yield from (EndpointPair(name, origin) for name in names)


def run_pairs(config: Config, env: Mapping[str, str] | None) -> list[EndpointPair]:
    """Return which variables a run would send to which origins, unless no consent is needed.

    Args:
        config: The run's config.
        env: Variables that are not set here are not sent; None counts all as set.
    """
    roles = [config.models.for_role(role) for role in ROLES]
    targets = config.models.targets if config.detect.asks_targets else ()
    judges = config.detect.judges if targets else ()
    models = [*roles, *targets, *judges]
    return sorted({*model_pairs(models, env), *service_pairs(config, env)})


def bigquery_pairs(config: Config) -> Iterator[EndpointPair]:
    """Yield the pair of Google's credentials and a gateway that replaces Google's own address."""
    endpoint = config.knowledge.bigquery.endpoint
    if endpoint and "bigquery" in config.knowledge.backends:
        origin = origin_of(endpoint)
        if not (is_loopback(origin) or origin.endswith(".googleapis.com")):
            yield EndpointPair(GOOGLE_VARIABLE, origin)


def is_agreed(pair: EndpointPair, trusted: Pairs) -> bool:
    """Return whether a pair is trusted; an origin trusted with a key may get texts without one."""
    if pair.variable == TEXTS:
        return any(known.origin == pair.origin for known in trusted)
    return pair in trusted


def refuse_untrusted(
    pairs: Iterable[EndpointPair], trusted: Pairs, *, record: Path | None = None
) -> None:
    """Raise an error if variables would be sent to an origin that is not trusted.

    Args:
        pairs: The variables and the origins that they would be sent to.
        trusted: The pairs that were accepted.
        record: The file that stores accepted pairs; None if the user cannot be asked.

    Raises:
        UntrustedEndpoint: a pair is not among the trusted ones.
    """
    new = tuple(dict.fromkeys(pair for pair in pairs if not is_agreed(pair, trusted)))
    if new:
        raise UntrustedEndpoint(
            f"CoreEval would send {', '.join(map(str, new))}, for the first time in this workspace",
            where=str(record or new[0].origin),
            hint="if this is intended, use --trust-endpoints, which remembers your consent; if "
            "not, set another base_url, another variable in api_key_env, or other embeddings",
            pairs=new,
            record=record,
        )


def is_at_provider(model: ModelConfig) -> bool:
    """Return whether a model is called at its provider's own address.

    Raises:
        ConfigError: its base_url is not an http address.
    """
    return model.base_url is None or origin_of(model.base_url) == _own_origin(model.provider)


def _own_origin(provider: str) -> str:
    return _OWN_ORIGINS.get(provider, f"langchain:{provider}")


def _is_set(name: str, env: Mapping[str, str] | None) -> bool:
    return env is None or bool(env.get(name, "").strip())

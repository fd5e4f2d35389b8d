"""Which pairs of a variable and an origin need consent."""

from pathlib import Path

import pytest

from coreeval.config import Config, ModelConfig, parse_config
from coreeval.errors import ConfigError, UntrustedEndpoint
from coreeval.tools.endpoints import (
    TEXTS,
    EndpointPair,
    is_loopback,
    model_pairs,
    origin_of,
    refuse_untrusted,
    service_pairs,
)
from tests.test_config import BASE

KEYS = {name: "k" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY", "OTHER")}


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Models.Example/v1", "https://models.example"),
        ("https://models.example:443/v1", "https://models.example"),
        ("http://models.example:443/v1", "http://models.example:443"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("https://models.example./v1", "https://models.example"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "ftp://models.example",
        "https://",
        "https://models.example:0/v1",
        "https://models.example:port/v1",
        "https://good.example\\.evil.example/v1",
        "https://good.example%2eevil.example/v1",
        "https://good example/v1",
    ],
)
def test_a_host_that_may_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no http address"):
        origin_of(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"])
def test_this_machine_is_free(host: str) -> None:
    assert is_loopback(f"http://{host}:8000")


@pytest.mark.parametrize(
    "host", ["127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.7", "0x7f.1", "127.1"]
)
def test_what_only_looks_like_this_machine_is_not(host: str) -> None:
    assert not is_loopback(f"http://{host}:8000")


@pytest.mark.parametrize(
    ("model", "pair"),
    [
        ({"model": "openai:m"}, None),
        ({"model": "openai:m", "base_url": "https://api.openai.com/v1"}, None),
        ({"model": "anthropic:m", "base_url": "https://api.anthropic.com"}, None),
        ({"model": "openai:m", "base_url": "http://127.0.0.1:1/v1", "api_key_env": "OTHER"}, None),
        ({"model": "groq:m"}, None),
        ({"model": "offline"}, None),
        ({"model": "replay:x.jsonl", "api_key_env": "OTHER"}, None),
        ({"model": "openai:m", "api_key_env": "UNSET"}, None),
        (
            {"model": "openai:m", "api_key_env": "UNSET", "base_url": "https://x.example"},
            (TEXTS, "https://x.example"),
        ),
        (
            {"model": "openai:m", "base_url": "http://api.openai.com/v1"},
            ("OPENAI_API_KEY", "http://api.openai.com"),
        ),
        (
            {"model": "openai:m", "base_url": "https://api.anthropic.com/v1"},
            ("OPENAI_API_KEY", "https://api.anthropic.com"),
        ),
        ({"model": "openai:m", "api_key_env": "OTHER"}, ("OTHER", "https://api.openai.com")),
        ({"model": "groq:m", "api_key_env": "OTHER"}, ("OTHER", "langchain:groq")),
        (
            {"model": "groq:m", "base_url": "https://x.example/v1"},
            ("GROQ_API_KEY", "https://x.example"),
        ),
    ],
)
def test_only_a_provider_and_its_own_variable_are_free(
    model: dict[str, str], pair: tuple[str, str] | None
) -> None:
    found = list(model_pairs([ModelConfig.model_validate(model)], KEYS))
    assert found == ([EndpointPair(*pair)] if pair else [])


def _config(**changes: object) -> Config:
    return parse_config(BASE | changes, where="c.yaml", base=Path("/base"))


def test_news_and_telemetry_count_too() -> None:
    news = {
        "backends": ["bigquery"],
        "bigquery": {"endpoint": "https://gateway.example"},
        "window": {"start": "2026-01-01"},
    }
    telemetry = {"otlp": "https://collector.example"}
    config = _config(knowledge=news, telemetry=telemetry)
    google = EndpointPair("GOOGLE_APPLICATION_CREDENTIALS", "https://gateway.example")
    assert list(service_pairs(config, {})) == [google]
    telling = _config(telemetry={**telemetry, "content": True})
    assert list(service_pairs(telling, {})) == [EndpointPair(TEXTS, "https://collector.example")]
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=x"}
    collector = EndpointPair("OTEL_EXPORTER_OTLP_HEADERS", "https://collector.example")
    assert list(service_pairs(config, env)) == [google, collector]
    same = env | {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example/v1"}
    assert list(service_pairs(config, same)) == [google]


def test_where_a_key_may_go_texts_without_one_may_go_too() -> None:
    texts, key = EndpointPair(TEXTS, "https://a.example"), EndpointPair("A", "https://a.example")
    refuse_untrusted([texts], [key])
    with pytest.raises(UntrustedEndpoint, match="texts without a key to"):
        refuse_untrusted([texts], [EndpointPair("A", "https://b.example")])
    with pytest.raises(UntrustedEndpoint):
        refuse_untrusted([key], [texts])


def test_a_refusal_names_all_pairs_and_no_value() -> None:
    pairs = [EndpointPair("A", "https://a.example"), EndpointPair("B", "https://b.example")]
    refuse_untrusted(pairs, pairs)
    with pytest.raises(UntrustedEndpoint) as caught:
        refuse_untrusted([*pairs, pairs[1]], pairs[:1])
    assert "B to https://b.example" in caught.value.message
    assert list(caught.value.pairs) == [pairs[1]]
    assert caught.value.exit_code == 2

"""What was agreed to in a workspace is remembered there, and counts only for who agreed."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from coreeval.config import Config, ModelConfig, parse_config
from coreeval.errors import ConfigError, RunCorrupt, UntrustedEndpoint
from coreeval.tools.endpoints import (
    TEXTS,
    EndpointPair,
    is_loopback,
    model_pairs,
    origin_of,
    refuse_untrusted,
    run_pairs,
    service_pairs,
)
from coreeval.tools.trust import TrustRecord, load_trusted_endpoints
from coreeval.tools.workspace import Workspace
from tests.config.test_load import BASE

PAIR = EndpointPair("OTHER_KEY", "https://models.example")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def workspace(tmp_path: Path, own_home: Path) -> Workspace:
    return Workspace(tmp_path / "w")


def test_nothing_is_trusted_at_first_and_looking_writes_nothing(
    workspace: Workspace, own_home: Path
) -> None:
    assert load_trusted_endpoints(workspace) == frozenset()
    assert not workspace.root.exists() and not own_home.exists()


def test_pairs_are_remembered_once(workspace: Workspace, own_home: Path) -> None:
    other = EndpointPair("OTHER_KEY", "https://second.example")
    TrustRecord(workspace).trust_endpoints([PAIR, PAIR])
    TrustRecord.at(workspace.trust_file).trust_endpoints([other])
    assert load_trusted_endpoints(workspace) == {PAIR, other}
    assert len(json.loads(workspace.trust_file.read_text())["trusted"]) == 2
    (key,) = own_home.rglob("trust.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text() not in workspace.trust_file.read_text()


def test_a_draft_of_the_key_that_a_killed_process_left_is_no_obstacle(
    workspace: Workspace, own_home: Path
) -> None:
    left = own_home / ".config" / "coreeval" / f".trust.key.{os.getpid()}"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    TrustRecord(workspace).trust_endpoints([PAIR])
    assert load_trusted_endpoints(workspace) == {PAIR}


def test_hooks_are_those_accepted_last(workspace: Workspace) -> None:
    record = TrustRecord(workspace)
    record.trust_endpoints([PAIR])
    here, there = Path("/here"), Path("/there")
    record.accept_hooks("n", here, "first")
    record.accept_hooks("other", here, "first")
    record.accept_hooks("n", here, "second")
    accepted = [record.accepts_hooks("n", here, digest) for digest in ("first", "second")]
    assert accepted == [False, True]
    assert record.accepts_hooks("other", here, "first")
    assert not record.accepts_hooks("n", there, "second")
    record.accept_hooks("n", there, "first")
    assert record.accepts_hooks("n", there, "first") and record.accepts_hooks("n", here, "second")
    assert record.endpoints() == {PAIR}


def test_a_record_that_came_with_a_folder_counts_for_nothing(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    TrustRecord(workspace).trust_endpoints([PAIR])
    moved = Workspace(tmp_path / "elsewhere")
    shutil.copytree(workspace.root, moved.root)
    assert load_trusted_endpoints(moved) == frozenset()
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    TrustRecord(moved).trust_endpoints([])
    assert load_trusted_endpoints(workspace) == frozenset()


def test_an_altered_entry_counts_for_nothing(workspace: Workspace) -> None:
    TrustRecord(workspace).trust_endpoints([PAIR])
    text = workspace.trust_file.read_text()
    workspace.trust_file.write_text(text.replace("models.example", "evil.example"))
    assert load_trusted_endpoints(workspace) == frozenset()
    workspace.trust_file.write_text(text.replace("OTHER_KEY", "OPENAI_API_KEY"))
    assert load_trusted_endpoints(workspace) == frozenset()


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 2}', "\udcff"])
def test_a_damaged_record_is_an_error_and_stays(workspace: Workspace, text: str) -> None:
    TrustRecord(workspace).trust_endpoints([PAIR])
    workspace.trust_file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RunCorrupt, match="cannot read"):
        load_trusted_endpoints(workspace)
    with pytest.raises(RunCorrupt):
        TrustRecord(workspace).trust_endpoints([PAIR])
    assert workspace.trust_file.read_bytes() == text.encode(errors="surrogateescape")


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
    with pytest.raises(ConfigError, match="is not an http address"):
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


@pytest.mark.parametrize(
    ("name", "env", "pair"),
    [
        ("minilm", {}, None),
        ("minilm:/weights", {}, None),
        ("huggingface:some/model", {}, None),
        ("openai:small", {"OPENAI_API_KEY": "k"}, ("OPENAI_API_KEY", "https://api.openai.com")),
        ("openai:small", {}, (TEXTS, "https://api.openai.com")),
        ("openai:small", None, ("OPENAI_API_KEY", "https://api.openai.com")),
        (
            "OpenAI:small",
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://x.example/v1"},
            ("OPENAI_API_KEY", "https://x.example"),
        ),
        ("ollama:nomic", {}, None),
        ("ollama:nomic", None, None),
        ("ollama:nomic", {"OLLAMA_HOST": "127.0.0.1:11435"}, None),
        ("ollama:nomic", {"OLLAMA_HOST": ":11435"}, None),
        ("ollama:nomic", {"OLLAMA_HOST": "x.example:11434"}, (TEXTS, "http://x.example:11434")),
        ("cohere:embed", {"COHERE_API_KEY": "k"}, ("COHERE_API_KEY", "langchain:cohere")),
    ],
)
def test_a_provider_of_embeddings_counts(
    name: str, env: dict[str, str] | None, pair: tuple[str, str] | None
) -> None:
    config = _config(knowledge={"embeddings": name, "window": {"start": "2026-01-01"}})
    expected = [EndpointPair(*pair)] if pair else []
    assert run_pairs(config, env) == list(service_pairs(config, env)) == expected


def test_embeddings_at_what_is_no_address_are_refused_without_showing_it() -> None:
    config = _config(knowledge={"embeddings": "ollama:m", "window": {"start": "2026-01-01"}})
    with pytest.raises(ConfigError, match="is not an http address") as caught:
        list(service_pairs(config, {"OLLAMA_HOST": "ftp://me:secret@x"}))
    assert "OLLAMA_HOST" in caught.value.where and "secret" not in str(caught.value)


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

"""Opening models by name, for all roles, and checking them before anything is paid."""

import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from coreeval.config import ModelConfig, ModelsConfig
from coreeval.errors import (
    ConfigError,
    CoreEvalError,
    CredentialError,
    ModelUnusable,
    UntrustedEndpoint,
)
from coreeval.models import listing as model_list
from coreeval.models import open_model, preflight
from coreeval.tools.endpoints import TEXTS, EndpointPair, model_pairs
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import KEY
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, empty_objects


@pytest.mark.parametrize("model", ["gpt-x", "openai:", "offline", ""])
def test_what_names_no_model_is_told_how_one_is_written(model: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(ModelConfig(model=model), {})
    assert "openai" in caught.value.hint and "replay:" in caught.value.hint
    assert repr(model) in caught.value.message


def test_each_role_has_its_own_model_and_offline_roles_have_none(store: CallStore) -> None:
    models = ModelsConfig.model_validate(
        {
            "default": {"model": "openai:a", "base_url": "http://127.0.0.1:9/v1"},
            "label_judge": {"model": "openai:b", "base_url": "http://127.0.0.1:9/v1"},
            "extractor": "offline",
        }
    )
    clients = exchange(store).role_clients(models)
    assert {role: client.model.name for role, client in clients.items()} == {
        "replacer": "openai:a",
        "rewriter": "openai:a",
        "composer": "openai:a",
        "fact_judge": "openai:a",
        "label_judge": "openai:b",
    }
    assert clients["composer"].role == "composer"


async def test_preflight_is_free(server: LLMServer) -> None:
    preflight(ModelConfig(model="openai:m", base_url=server.url), {})
    assert server.requests == []


def test_preflight_says_what_is_not_there() -> None:
    with pytest.raises(ModelUnusable, match=r"127\.0\.0\.1:9") as caught:
        preflight(ModelConfig(model="openai:m", base_url="http://127.0.0.1:9/v1"), {})
    assert caught.value.hint
    with pytest.raises(CredentialError):
        preflight(ModelConfig(model="openai:m"), {})


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "ftp://x"])
def test_preflight_refuses_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match="is not an http address"):
        preflight(ModelConfig(model="openai:m", base_url=url), {})


def test_opening_nothing_imports_no_sdk() -> None:
    code = "import sys, coreeval.models; print({'openai', 'langchain_core'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "module, other", [("openai_batches", "anthropic"), ("anthropic_batches", "openai")]
)
def test_batches_of_one_provider_import_no_sdk_of_the_other(module: str, other: str) -> None:
    code = f"import sys, coreeval.models.{module}; print({other!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


Answer = tuple[int, str]


class Listing:
    """A server that answers requests as it is told; everything else is missing."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.port = 0
        self.delay_s = 0.0

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lists(self, path: str, *names: str, **more: object) -> None:
        """Answer a path with a list of models."""
        data = [{"id": name, "object": "model"} for name in names]
        self.answers[path] = (200, json.dumps({"object": "list", "data": data, **more}))


@pytest.fixture
def listing() -> Iterator[Listing]:
    told = Listing()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.rfile.read(int(self.headers["Content-Length"])) == b"{}"
            self.do_GET()

        def do_GET(self) -> None:
            told.asked.append(self.path)
            told.headers.append({name.lower(): value for name, value in self.headers.items()})
            time.sleep(told.delay_s)
            status, body = told.answers.get(self.path, (404, '{"detail": "Not Found"}'))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield told
        server.shutdown()
        thread.join()


def check(model: str, url: str, **more: object) -> None:
    """Check a model with a key of ours in the environment."""
    config = ModelConfig.model_validate({"model": model, "base_url": url, **more})
    env = {config.key_variable: KEY}
    preflight(config, env, trusted=list(model_pairs([config], env)))


def refusal(model: str, url: str, **more: object) -> CoreEvalError:
    with pytest.raises(CoreEvalError) as caught:
        check(model, url, **more)
    assert KEY not in str(caught.value)
    return caught.value


# -- what is asked ------------------------------------------------------------------------------


def test_it_costs_nothing() -> None:
    with LLMServer(empty_objects).in_thread() as server:
        check("openai:m", server.url)
        check("anthropic:m", server.anthropic_url)
        assert server.requests == []


@pytest.mark.parametrize(
    ("model", "folder", "path"),
    [
        ("openai:m", "/v1", "/v1/models"),
        ("openai:m", "/v1/", "/v1/models"),
        ("anthropic:m", "", "/v1/models?limit=1000"),
        ("anthropic:m", "/v1", "/v1/models?limit=1000"),
    ],
)
def test_the_list_is_asked_for_with_the_key(
    listing: Listing, model: str, folder: str, path: str
) -> None:
    listing.lists(path, "m")
    check(model, f"{listing.root}{folder}")
    assert listing.asked == [path]
    sent = listing.headers[0]
    assert sent["authorization"] == f"Bearer {KEY}"
    assert ("x-api-key" in sent) == ("anthropic-version" in sent) == model.startswith("anthropic")


def test_another_provider_is_only_connected_to(listing: Listing) -> None:
    check("ollama:m", listing.root)
    assert listing.asked == ["/"]
    assert KEY not in str(listing.headers)


@pytest.mark.parametrize("model", ["openai:m", "anthropic:m"])
def test_public_endpoints_are_not_contacted(model: str) -> None:
    config = ModelConfig(model=model)
    preflight(config, {config.key_variable: KEY})
    with pytest.raises(CredentialError):
        preflight(config, {})


# -- the model ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("llama3", "llama3"),
        ("llama3", "llama3:latest"),
        ("Llama3", "llama3:latest"),
        ("gpt-x:online", "gpt-x"),
        ("gemini-x", "models/gemini-x"),
        ("openai/gpt-x", "openai/*"),
    ],
)
def test_a_name_that_a_server_takes_for_a_listed_one(
    listing: Listing, name: str, listed: str
) -> None:
    listing.lists("/v1/models", "another", listed)
    check(f"openai:{name}", f"{listing.root}/v1")


@pytest.mark.parametrize(
    ("name", "listed", "hint"),
    [
        ("qwen3-14b", ("qwen3-32b", "llama3"), "did you mean 'qwen3-32b'?"),
        ("llama3:70b", ("llama3:8b",), "did you mean 'llama3:8b'?"),
        ("x", tuple("abcdefg"), "it has a, b, c, d, e and 2 more"),
        ("x", (f"m-{KEY}", "b"), "it has m-***, b"),
        ("m-*", (f"m-{KEY}",), "did you mean 'm-***'?"),
    ],
)
def test_a_model_that_is_not_there(
    listing: Listing, name: str, listed: tuple[str, ...], hint: str
) -> None:
    listing.lists("/v1/models", *listed)
    error = refusal(f"openai:{name}", f"{listing.root}/v1")
    assert type(error) is ModelUnusable
    assert (error.where, error.hint) == (f"{listing.root}/v1", hint)
    assert f"no model {name!r}" in error.message


@pytest.mark.parametrize(
    "answer",
    [
        (200, '{"data": []}'),
        (200, '{"data": [{"id": "other"}], "has_more": true}'),
        (200, '{"data": null}'),
        (200, '["other"]'),
        (200, "<html>"),
        (201, '{"data": [{"id": "other"}]}'),
        (302, ""),
        (403, "{}"),
        (404, "{}"),
        (405, "{}"),
        (500, "no"),
    ],
)
def test_a_server_may_be_odd_about_its_list(listing: Listing, answer: Answer) -> None:
    listing.answers["/v1/models"] = answer
    check("openai:m", f"{listing.root}/v1")
    assert listing.asked[:1] == ["/v1/models"]


@pytest.mark.parametrize(
    ("model", "path", "question"),
    [
        ("openai:m", "/v1/models", "/v1/chat/completions"),
        ("anthropic:m", "/v1/models?limit=1000", "/v1/messages"),
    ],
)
@pytest.mark.parametrize("status", [200, 405, 501])
def test_a_web_page_in_the_place_of_a_model(
    listing: Listing, model: str, path: str, question: str, status: int
) -> None:
    page = "<!doctype html><title>Welcome</title>"
    listing.answers |= {path: (200, page), question: (status, page)}
    error = refusal(model, f"{listing.root}/v1")
    assert isinstance(error, ModelUnusable)
    assert "answers with a web page (HTML), 'Welcome'" in error.message
    assert "base_url" in error.hint
    listing.answers[question] = (400, '{"error": "no model is named"}')
    check(model, f"{listing.root}/v1")


def test_a_server_may_be_slow_about_its_list(
    listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_list, "_PATIENCE_S", 0.1)
    listing.delay_s = 0.3
    listing.lists("/v1/models", "other")
    check("openai:m", f"{listing.root}/v1")


def test_hosts_that_list_what_could_be_deployed_are_not_judged(
    listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_list, "_DEPLOYED", ".0.0.1")
    listing.lists("/v1/models", "other")
    check("openai:m", f"{listing.root}/v1")


# -- the place and the key ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "given", "right"),
    [
        ("openai:m", "", "/v1"),
        ("openai:m", "/proxy/", "/proxy/v1"),
        ("openai:m", "/v1/chat/completions", "/v1"),
        ("openai:m", "/chat/completions", "/v1"),
        ("openai:m", "/v2", "/v1"),
        ("openai:m", "/api/v1/", "/v1"),
        ("anthropic:m", "/v1/messages", "/v1"),
    ],
)
def test_a_base_url_that_lacks_a_folder_or_has_too_many(
    listing: Listing, model: str, given: str, right: str
) -> None:
    suffix = "?limit=1000" if model.startswith("anthropic") else ""
    listing.lists(f"{right}/models{suffix}", "m")
    error = refusal(model, f"{listing.root}{given}")
    assert type(error) is ConfigError
    assert error.hint == f"set base_url: {listing.root}{right}"


def test_a_server_without_any_list_passes(listing: Listing) -> None:
    check("openai:m", listing.root)
    assert listing.asked == ["/models", "/v1/models"]


@pytest.mark.parametrize(("model", "path"), [("openai:m", ""), ("anthropic:m", "?limit=1000")])
def test_a_key_that_is_refused(listing: Listing, model: str, path: str) -> None:
    listing.answers[f"/v1/models{path}"] = (401, f"bad key {KEY}")
    error = refusal(model, f"{listing.root}/v1", api_key_env="MY_KEY")
    assert type(error) is CredentialError
    assert "MY_KEY" in error.hint


@pytest.mark.parametrize("model", ["openai:m", "anthropic:m", "ollama:m"])
def test_nothing_answers(model: str) -> None:
    error = refusal(model, "http://127.0.0.1:9/v1")
    assert type(error) is ModelUnusable
    assert (error.where, bool(error.hint)) == ("http://127.0.0.1:9/v1", True)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "ftp://x:21"])
def test_what_is_no_address(url: str) -> None:
    error = refusal("openai:m", url)
    assert type(error) is ConfigError and "is not an http address" in error.message


def test_an_endpoint_that_nobody_agreed_to_is_not_contacted(
    listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", listing.root)
    config = ModelConfig(model="openai:m", base_url="http://192.0.2.1/v1")
    with pytest.raises(UntrustedEndpoint, match=r"OPENAI_API_KEY to http://192\.0\.2\.1"):
        preflight(config, {"OPENAI_API_KEY": KEY})
    with pytest.raises(UntrustedEndpoint, match=r"texts without a key to http://192\.0\.2\.1"):
        preflight(config, {})
    assert listing.asked == []
    preflight(config, {}, trusted=[EndpointPair(TEXTS, "http://192.0.2.1")])
    assert listing.asked != []


def test_proxies_are_used_and_may_refuse(listing: Listing, monkeypatch: pytest.MonkeyPatch) -> None:
    there = "http://192.0.2.1/v1"
    monkeypatch.setenv("HTTP_PROXY", listing.root)
    listing.lists(f"{there}/models", "m")
    check("openai:m", there)
    assert listing.asked == [f"{there}/models"]
    listing.answers[f"{there}/models"] = (407, "")
    error = refusal("openai:m", there)
    assert type(error) is ModelUnusable and "407" in error.message


def test_certificates_are_looked_at(tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with LLMServer(empty_objects).in_thread(tls) as server:
        url = f"https://127.0.0.1:{server.port}/v1"
        check("openai:m", url, ca_file=str(tmp_path / "ca.pem"))
        error = refusal("openai:m", url)
    assert type(error) is ModelUnusable and "not trusted" in error.message


def test_a_server_without_tls_is_told_as_such(listing: Listing) -> None:
    error = refusal("openai:m", f"https://127.0.0.1:{listing.port}/v1")
    assert type(error) is ModelUnusable and "http:// instead of https://" in error.message

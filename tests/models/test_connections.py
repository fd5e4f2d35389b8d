"""The way to an endpoint: proxies and certificates, for every kind of provider, over real TLS."""

import shutil
import ssl
import subprocess
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
import yaml

from coreeval.config import ModelConfig, load_config
from coreeval.errors import ConfigError, ModelCallError, ModelUnusable
from coreeval.models import ModelClient, OutputSchema, Retry, close_models, open_model
from coreeval.models.http import find_proxy
from coreeval.schema import Value
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import Naps
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, script
from tests.support.proxy import Proxy

PROVIDERS = ("openai", "anthropic", "deepseek")
LOGIN = "me:se%20cret"


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")
ASKED = [{"role": "user", "content": "a text"}]
JOY = Answer(label="joy")


@dataclass(frozen=True)
class Place:
    """A server, and how it is asked."""

    server: LLMServer
    scheme: str
    store: CallStore
    naps: Naps

    def config(self, provider: str, ca_file: Path | None = None) -> ModelConfig:
        url = f"{self.scheme}://127.0.0.1:{self.server.port}/v1"
        given = str(ca_file) if ca_file else None
        return ModelConfig(model=f"{provider}:stub", base_url=url, ca_file=given)

    def client(self, provider: str, ca_file: Path | None = None) -> ModelClient:
        connected = exchange(self.store, retry=Retry(sleep=self.naps.sleep))
        return connected.open_client(self.config(provider, ca_file), "extractor")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path / "ca.pem"


@pytest.fixture
async def secure(authority: trustme.CA, store: CallStore, naps: Naps) -> AsyncIterator[Place]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    async with LLMServer(script('{"label": "joy"}')).running(tls=tls) as server:
        yield Place(server, "https", store, naps)
        await close_models()


@pytest.fixture
async def plain(store: CallStore, naps: Naps) -> AsyncIterator[Place]:
    async with LLMServer(script('{"label": "joy"}')).running() as server:
        yield Place(server, "http", store, naps)
        await close_models()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with Proxy().running() as proxy:
        yield proxy
        await close_models()


@pytest.fixture
async def guarded_proxy() -> AsyncIterator[Proxy]:
    async with Proxy(LOGIN.replace("%20", " ")).running() as proxy:
        yield proxy
        await close_models()


# -- certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_certificate_of_an_unknown_authority_stops_the_run(
    secure: Place, provider: str
) -> None:
    with pytest.raises(ModelUnusable, match="certificate is not trusted") as caught:
        await secure.client(provider).ask(ASKED, SHAPE)
    assert "ca_file" in caught.value.hint
    assert secure.naps == []


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_models_own_authorities(secure: Place, provider: str, ca_file: Path) -> None:
    assert await secure.client(provider, ca_file).ask(ASKED, SHAPE) == JOY


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_environments_authorities(
    secure: Place, provider: str, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    assert await secure.client(provider).ask(ASKED, SHAPE) == JOY


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl names the file in the folder")
async def test_the_environments_folder_of_authorities(
    secure: Place, ca_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(ca_file)]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path / "certs"
    folder.mkdir()
    shutil.copy(ca_file, folder / f"{name}.0")
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert await secure.client("openai").ask(ASKED, SHAPE) == JOY


async def test_only_a_models_own_authorities_are_trusted_then(
    secure: Place, ca_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with pytest.raises(ModelUnusable, match="certificate is not trusted"):
        await secure.client("openai", other).ask(ASKED, SHAPE)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("text", "said"), [(None, "No such file"), ("", "no certificate"), ("words", "no certificate")]
)
def test_a_file_of_authorities_that_is_none_is_told_at_opening(
    provider: str, text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    named = ModelConfig(model=f"{provider}:x", base_url="https://127.0.0.1:9", ca_file=str(path))
    with pytest.raises(ConfigError, match=f"ca_file.*{said}") as caught:
        open_model(named, {})
    assert caught.value.where == str(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(ConfigError, match=f"SSL_CERT_FILE.*{said}"):
        open_model(named.model_copy(update={"ca_file": None}), {})


def test_the_file_lies_relative_to_the_config(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "x",
                "task": "emotion",
                "dataset": {"format": "tweeteval", "path": "data"},
                "knowledge": {"path": "news", "window": {"start": "2026-01-01T00:00:00Z"}},
                "models": {"default": {"model": "openai:x", "ca_file": "certs/ca.pem"}},
            }
        )
    )
    config = load_config(tmp_path / "config.yaml")
    assert config.models.default.ca_file == str((tmp_path / "certs/ca.pem").resolve())


# -- proxies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_tunnel_through_the_environments_proxy(
    secure: Place,
    proxy: Proxy,
    provider: str,
    ca_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    assert await secure.client(provider, ca_file).ask(ASKED, SHAPE) == JOY
    assert proxy.asked == [f"CONNECT 127.0.0.1:{secure.server.port}"]


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_plain_request_through_the_environments_proxy(
    plain: Place, proxy: Proxy, provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"127.0.0.1:{proxy.port}")
    assert await plain.client(provider).ask(ASKED, SHAPE) == JOY
    (asked,) = proxy.asked
    assert asked.startswith(f"POST http://127.0.0.1:{plain.server.port}/v1/")


@pytest.mark.parametrize("exception", ["127.0.0.1", "localhost, 127.0.0.0/8", "*"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_goes_past_the_proxy(
    plain: Place, proxy: Proxy, provider: str, exception: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", exception)
    assert await plain.client(provider).ask(ASKED, SHAPE) == JOY
    assert proxy.asked == []


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_proxy_with_a_password(
    secure: Place,
    guarded_proxy: Proxy,
    provider: str,
    ca_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}@127.0.0.1:{guarded_proxy.port}")
    assert await secure.client(provider, ca_file).ask(ASKED, SHAPE) == JOY


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_refuses_stops_the_run_without_its_password(
    secure: Place,
    plain: Place,
    guarded_proxy: Proxy,
    provider: str,
    scheme: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = secure if scheme == "https" else plain
    for variable in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, f"http://me:hunter2@127.0.0.1:{guarded_proxy.port}")
    with pytest.raises(ModelUnusable, match="407") as caught:
        await place.client(provider).ask(ASKED, SHAPE)
    assert "HTTPS_PROXY" in caught.value.hint
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert len(guarded_proxy.asked) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_proxy_that_is_not_there_is_named_by_its_variable(
    plain: Place, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:hunter2@127.0.0.1:9")
    with pytest.raises(ModelUnusable, match=r"no server answers at.*HTTP_PROXY") as caught:
        await plain.client(provider).ask(ASKED, SHAPE)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://me:hunter2@127.0.0.1:9",
        "http://",
        "ftp://x",
        "http://me:hunter2@a..b",
        "http://me:hunter2@127.0.0.1:99999",
        "me:hunter2@127.0.0.1:notaport",
    ],
)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_proxy_of_another_kind_is_told_at_opening(
    provider: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    config = ModelConfig(model=f"{provider}:x", base_url="https://127.0.0.1:9")
    with pytest.raises(ConfigError, match="the environment names an unsupported proxy") as caught:
        open_model(config, {})
    assert "ALL_PROXY" in caught.value.where and "hunter2" not in str(caught.value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    open_model(config, {})


@pytest.mark.parametrize(
    ("url", "exceptions", "direct"),
    [
        ("https://api.example.com/v1", "example.com", True),
        ("https://notexample.com/v1", "example.com", False),
        ("https://api.example.com:8443/v1", "api.example.com:8443", True),
        ("https://[fd00::1]:8443/v1", "fd00::/8", True),
        ("https://10.1.2.3/v1", "10.0.0.0/8", True),
        ("https://11.1.2.3/v1", "10.0.0.0/8, nonsense/8", False),
    ],
)
def test_which_hosts_an_exception_means(
    url: str, exceptions: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert (find_proxy(url) is None) == direct


# -- connections that break ---------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_endpoint_that_hangs_up_fails_the_sample_only(plain: Place, provider: str) -> None:
    plain.server.answers = script(Reply(drop=True))
    with pytest.raises(ModelCallError, match="connection failed"):
        await plain.client(provider).ask(ASKED, SHAPE)
    assert len(plain.naps) == 7


# -- clients ------------------------------------------------------------------------------------


async def test_one_gateway_may_speak_both_protocols(plain: Place) -> None:
    for provider in PROVIDERS:
        assert await plain.client(provider).ask(ASKED, SHAPE) == JOY
    assert len(plain.server.requests) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_can_be_asked_again_after_its_connections_were_closed(
    plain: Place, provider: str
) -> None:
    client = plain.client(provider)
    await client.ask(ASKED, SHAPE)
    await close_models()
    assert await client.ask([{"role": "user", "content": "another"}], SHAPE) == JOY

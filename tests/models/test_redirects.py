"""No client follows a redirect with a prompt, wherever it leads."""

import pytest
from aiohttp import web

from coreeval.config import ModelConfig
from coreeval.errors import ModelUnusable
from coreeval.models import AnswerShape, Retry
from coreeval.schema import Value
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import KEY, Naps
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, script

PROVIDERS = ["openai", "anthropic", "deepseek", "azure_openai"]
ASKED = [{"role": "user", "content": "a text of the benchmark"}]


class Answer(Value):
    label: str


async def _ask(config: ModelConfig, store: CallStore, naps: Naps) -> ModelUnusable:
    env = {config.key_env: KEY}
    asker = exchange(store, env=env, retry=Retry(sleep=naps.sleep)).asker(config, "extractor")
    with pytest.raises(ModelUnusable) as caught:
        await asker.ask(ASKED, AnswerShape(Answer, name="answer"))
    return caught.value


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_prompt_stays_where_it_was_sent(
    server: LLMServer, store: CallStore, naps: Naps, provider: str, status: int
) -> None:
    async with LLMServer(script('{"label": "joy"}')).running() as other:
        there = {"Location": f"{other.url}/chat/completions"}
        server.answers = script(Reply(status=status, headers=there, body=""))
        url = server.url if provider in ("openai", "deepseek") else server.anthropic_url
        extra = {"api_version": "2026-01-01"} if provider == "azure_openai" else {}
        config = ModelConfig(model=f"{provider}:m", base_url=url, extra=extra, structured="text")
        error = await _ask(config, store, naps)
        assert other.requests == [] and other.keys == []
    assert f"it redirects (status {status}) to 127.0.0.1" in error.message


async def test_so_it_does_where_a_package_has_its_own_client(store: CallStore, naps: Naps) -> None:
    async def redirect(_request: web.Request) -> web.Response:
        headers = {"Location": f"{other.url}/chat/completions", "Connection": "close"}
        return web.Response(status=307, headers=headers)

    app = web.Application()
    app.router.add_post("/api/chat", redirect)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    async with LLMServer(script('{"label": "joy"}')).running() as other:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await _ask(ModelConfig(model="ollama:m", base_url=url, structured="text"), store, naps)
        assert other.requests == []
        await runner.cleanup()

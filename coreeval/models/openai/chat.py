"""Any endpoint that speaks OpenAI's chat completions, as a langchain-core chat model.

The SDK is used directly, over aiohttp, with the body as bytes (it would walk the schema in a dict
at each call), the answer read by classes of our own, and no retries: a third of the CPU of the
ready-made wrapper (research: performance §7), and one retry layer instead of three.
"""

from collections.abc import Mapping

import httpx2
import openai
from langchain_core.messages import AIMessage
from pydantic import SecretStr

from coreeval.config import ModelConfig
from coreeval.models.chat import WireChat
from coreeval.models.connections import shared
from coreeval.models.failures import CallFailure
from coreeval.models.forms import Form
from coreeval.models.http_client import HttpClient, body_of
from coreeval.models.keys import key_of
from coreeval.models.model import Identity, Model, parameters_of, public_endpoint
from coreeval.models.network import check_route
from coreeval.models.openai.failures import TROUBLE, failure_of
from coreeval.models.openai.wire import read_answer, request_body

PUBLIC_URL = "https://api.openai.com/v1"
_CONNECT_S = 10.0


def open_openai(config: ModelConfig, env: Mapping[str, str]) -> Model:
    """Open a model behind an OpenAI-compatible endpoint.

    Raises:
        CredentialError: there is no key in the environment for the public endpoint, or what is
            there cannot be sent.
        ConfigError: the proxy or the certificates that are named cannot be used.
    """
    url = config.base_url or PUBLIC_URL
    check_route(url, config.ca_file)
    identity = Identity(
        provider="openai",
        endpoint=public_endpoint(url),
        model=config.name,
        parameters=parameters_of(config),
    )
    chat = OpenAIChat(settings=config, key=SecretStr(key_of(config, env)), cache=False)
    return Model(
        chat=chat,
        identity=identity,
        config=config,
        plain_limit=config.base_url is not None,
        tells_logprobs=True,
    )


def _client(base_url: str, key: str, ca_file: str | None) -> openai.AsyncOpenAI:
    http = HttpClient(base_url, ca_file)
    return openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, http_client=http)


class OpenAIChat(WireChat):
    """Asks one model behind a chat-completions endpoint."""

    @property
    def _url(self) -> str:
        return self.settings.base_url or PUBLIC_URL

    def _connected(self, secret: str) -> openai.AsyncOpenAI:
        url, ca_file = self._url, self.settings.ca_file
        return shared(
            (openai.AsyncOpenAI, url, secret, ca_file), lambda: _client(url, secret, ca_file)
        )

    async def _send(self, messages: list[dict[str, str]], form: Form) -> AIMessage | CallFailure:
        secret, seconds = self.key.get_secret_value(), self.settings.timeout_s
        body = request_body(self.settings, messages, form)
        try:
            response = await self._connected(secret).post(
                f"{self._url.rstrip('/')}/chat/completions",  # whole: the SDK would parse it twice
                cast_to=httpx2.Response,
                content=body_of(body),
                options={"timeout": openai.Timeout(seconds, connect=min(_CONNECT_S, seconds))},
            )
        except TROUBLE as error:
            return failure_of(error, secret)
        return read_answer(response.content, response.headers.raw, secret)

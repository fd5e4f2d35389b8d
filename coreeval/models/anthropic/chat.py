"""Any endpoint that speaks Anthropic's messages, as a langchain-core chat model.

The SDK is used like OpenAI's beside it: directly, over aiohttp, with the body as bytes and without
retries.
"""

from collections.abc import Mapping

import anthropic
import httpx2
from anthropic._models import FinalRequestOptions
from langchain_core.messages import AIMessage
from pydantic import SecretStr

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.anthropic.failures import failure_of
from coreeval.models.anthropic.wire import read_answer, request_body
from coreeval.models.chat import WireChat
from coreeval.models.connections import shared
from coreeval.models.failures import CallFailure
from coreeval.models.forms import Form
from coreeval.models.http_client import HttpClient, body_of, parsed
from coreeval.models.keys import key_of
from coreeval.models.model import Identity, Model, parameters_of, public_endpoint
from coreeval.models.network import check_route

PUBLIC_URL = "https://api.anthropic.com"
_CONNECT_S = 10.0


def open_anthropic(config: ModelConfig, env: Mapping[str, str]) -> Model:
    """Open a model behind Anthropic's endpoint, or one that speaks like it.

    Raises:
        CredentialError: there is no key in the environment for the public endpoint, or what is
            there cannot be sent.
        ConfigError: it is configured with what such a model does not have, or the proxy or the
            certificates that are named cannot be used.
    """
    if config.seed is not None:
        raise ConfigError(
            f"{config.model} has no seed: Anthropic's models cannot be given one",
            where=f"seed of {config.model}",
            hint="take `seed` out of this model's config",
        )
    url = endpoint_of(config)
    check_route(url, config.ca_file)
    identity = Identity(
        provider="anthropic",
        endpoint=public_endpoint(url),
        model=config.name,
        parameters=parameters_of(config),
    )
    chat = AnthropicChat(settings=config, key=SecretStr(key_of(config, env)), cache=False)
    return Model(chat=chat, identity=identity, config=config)


def endpoint_of(config: ModelConfig) -> str:
    """Return where a model is asked, without the /v1 that the SDK adds."""
    return (config.base_url or PUBLIC_URL).rstrip("/").removesuffix("/v1")


class _Client(anthropic.AsyncAnthropic):
    """The SDK's client; what it would work out anew for each request is worked out once.

    All its requests have the same headers, but for what tells their timeout.
    """

    def __init__(self, config: ModelConfig, key: str) -> None:
        url = endpoint_of(config)
        super().__init__(
            base_url=url,
            api_key=key,
            max_retries=0,
            http_client=HttpClient(url, config.ca_file),
            # The SDK sends the key as a bearer's token; gateways may look here for it.
            default_headers={"x-api-key": key} if config.base_url else None,
        )
        self._messages_url = f"{url}/v1/messages"  # whole: the SDK would parse it anew
        self._options: dict[float, FinalRequestOptions] = {}
        self._built: dict[str, httpx2.Headers] = {}

    async def asked(self, body: bytes, seconds: float) -> httpx2.Response:
        """Return the response to the body of a message, or raise what the SDK's `post` would.

        Raises:
            anthropic.AnthropicError: there is none, or its status is an error's.
        """
        if seconds not in self._options:
            self._options[seconds] = FinalRequestOptions.construct(
                method="post",
                url=self._messages_url,
                timeout=anthropic.Timeout(seconds, connect=min(_CONNECT_S, seconds)),
                follow_redirects=False,  # a key goes nowhere else
                idempotency_key="",  # which is sent as no header
            )
        options = self._options[seconds].model_copy(update={"content": body})
        return await self.request(httpx2.Response, options)

    def _build_headers(
        self, options: FinalRequestOptions, *, retries_taken: int = 0
    ) -> httpx2.Headers:
        timeout = repr(options.timeout)
        if timeout not in self._built:
            built = super()._build_headers(options, retries_taken=retries_taken)
            self._built[timeout] = built
        return self._built[timeout].copy()

    def _prepare_url(self, url: str) -> httpx2.URL:
        return parsed(url)


class AnthropicChat(WireChat):
    """Asks one model behind a messages endpoint."""

    def _connected(self, secret: str) -> _Client:
        kind = (_Client, self.settings.base_url, secret, self.settings.ca_file)
        return shared(kind, lambda: _Client(self.settings, secret))

    async def _send(self, messages: list[dict[str, str]], form: Form) -> AIMessage | CallFailure:
        secret = self.key.get_secret_value()
        body = body_of(request_body(self.settings, messages, form))
        try:
            response = await self._connected(secret).asked(body, self.settings.timeout_s)
        except anthropic.AnthropicError as error:
            return failure_of(error, secret)
        return read_answer(response.content, response.headers.raw, secret)

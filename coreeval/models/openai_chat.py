"""Any endpoint that speaks OpenAI's chat completions, as a langchain-core chat model.

The SDK is used directly, over aiohttp, with the body as a dict (its typed methods walk the whole
schema again at each call) and no retries of its own: less than half the CPU of the ready-made
wrapper (research: performance §7), and one retry layer instead of three.
"""

import asyncio
from collections.abc import Mapping
from typing import cast

import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from openai.types.chat import ChatCompletion
from pydantic import SecretStr

from coreeval.config import ModelConfig
from coreeval.errors import CredentialError
from coreeval.models.connections import shared
from coreeval.models.failures import CallFailure
from coreeval.models.model import Identity, Model, parameters_of, public_endpoint
from coreeval.models.openai_failures import failure_of
from coreeval.models.openai_wire import Body, as_dicts, chat_result, request_body

PUBLIC_URL = "https://api.openai.com/v1"
NO_KEY = "no-key-needed"
"""Sent to an endpoint of the user's own that needs no key: the SDK insists on one."""
_CONNECT_S = 10.0


def open_openai(config: ModelConfig, env: Mapping[str, str]) -> Model:
    """Open a model behind an OpenAI-compatible endpoint.

    Raises:
        CredentialError: there is no key in the environment for the public endpoint, or what is
            there cannot be sent.
    """
    key = _key(config, env)
    identity = Identity(
        provider="openai",
        endpoint=public_endpoint(config.base_url or PUBLIC_URL),
        model=config.name,
        parameters=parameters_of(config),
    )
    chat = OpenAIChat(settings=config, key=SecretStr(key), cache=False)
    return Model(chat=chat, identity=identity, key_env=config.api_key_env)


def _key(config: ModelConfig, env: Mapping[str, str]) -> str:
    name = config.api_key_env
    key = env.get(name, "").strip()
    if not key and config.base_url is None:
        raise CredentialError(
            f"{config.model} needs a key and {name} is not set",
            where=f"environment variable {name}",
            hint="export it or put it into .env; a local server needs base_url instead",
        )
    if not (key.isascii() and key.isprintable()):
        raise CredentialError(
            f"the key in {name} has characters that no key has",
            where=f"environment variable {name}",
            hint="copy it again: it is one line of plain letters, digits and signs",
        )
    return key or NO_KEY


def _client(base_url: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(),
    )


class OpenAIChat(BaseChatModel):
    """Asks one model; asynchronous only."""

    settings: ModelConfig
    key: SecretStr

    @property
    def _llm_type(self) -> str:
        return "coreeval-openai"

    @property
    def _identifying_params(self) -> dict[str, object]:
        return {"model": self.settings.name, **parameters_of(self.settings)}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        raise NotImplementedError("this model is asynchronous: use ainvoke")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        """Send one request; `schema` and `schema_name` among the arguments shape the answer."""
        schema = cast("Mapping[str, object] | None", kwargs.get("schema"))
        name = str(kwargs.get("schema_name", "answer"))
        body = request_body(self.settings, as_dicts(messages), schema, name)
        return chat_result(await self._send(body, stop))

    async def _send(self, body: Body, stop: list[str] | None) -> ChatCompletion:
        """Return the completion, or raise the failure.

        It is raised outside the handlers: raised inside, it would carry the SDK's error and, with
        it, the request and its key.
        """
        secret = self.key.get_secret_value()
        url = self.settings.base_url or PUBLIC_URL
        client = shared(url, secret, lambda: _client(url, secret))
        seconds = self.settings.timeout_s
        try:
            async with asyncio.timeout(seconds):
                answer: object = await client.post(
                    "/chat/completions",
                    cast_to=ChatCompletion,
                    body=body | ({"stop": stop} if stop else {}),
                    options={"timeout": openai.Timeout(seconds, connect=min(_CONNECT_S, seconds))},
                )
            if isinstance(answer, ChatCompletion) and answer.choices:
                return answer
            failure = CallFailure("transient", "the answer is no chat completion")
        except TimeoutError:
            failure = CallFailure("transient", f"no answer within {seconds:g} s")
        except openai.OpenAIError as error:
            failure = failure_of(error, secret)
        except ValueError:
            failure = CallFailure("transient", "the answer is no JSON")
        raise failure

"""Targets that are plugins: the protocol, and a plugin as a chat model."""

import asyncio
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, Protocol, cast

from langchain_core.messages import AIMessage
from pydantic import JsonValue, SecretStr

from coreeval.config import ModelConfig
from coreeval.config.plugins import PluginUse, parse_plugin
from coreeval.errors import ConfigError
from coreeval.models.chat import ChatModel, append_schema, check_usage, make_ai_message
from coreeval.models.failures import CallFailure
from coreeval.models.model import Identity, Model, RequestOptions, request_parameters
from coreeval.schema import Value
from coreeval.tools.plugins import Plugin, load_plugin

_UNUSED: Final = ("base_url", "ca_file", "reasoning_effort", "api_key_env")


class TargetRequest(Value):
    """A question to a target."""

    messages: tuple[dict[str, str], ...]
    """Messages with `role` and `content`, in order."""
    max_tokens: int
    temperature: float | None
    """None: not configured."""
    seed: int | None
    draw: int
    """The number of a repeated answer to the same question, from 0."""
    options: dict[str, JsonValue]
    """The target's `extra` in the config."""


class TargetAnswer(NamedTuple):
    """The answer of a target."""

    text: str
    finish: Literal["stop", "length", "refusal"] = "stop"
    """Whether the answer is complete, truncated, or a refusal."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class TargetPlugin(Protocol):
    """A target; a plugin of the group `targets`.

    An `OSError` or a `TimeoutError` counts as temporary and is retried; any other error stops the
    run.
    """

    plugin_api: int

    async def answer(self, request: TargetRequest) -> TargetAnswer:
        """Return the answer to one question; answers are stored in the call store."""
        ...


def open_plugin_target(config: ModelConfig, _env: Mapping[str, str]) -> Model:
    """Open the plugin of a target.

    Raises:
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
        ConfigError: a setting does not apply to plugins.
    """
    for name in _UNUSED:
        if getattr(config, name) is not None:
            raise ConfigError(
                f"a plugin does not support {name}",
                where=config.model,
                hint=f"remove {name}; `extra` contains the settings for the plugin",
            )
    use = PluginUse("targets", parse_plugin(config.model) or config.name, "models.targets")
    plugin = load_plugin(use, TargetPlugin)
    identity = Identity(
        provider=config.provider,
        endpoint=plugin.origin.identity,
        model=config.name,
        parameters=request_parameters(config),
    )
    chat = PluginChat(settings=config, key=SecretStr(""), plugin=plugin, cache=False)
    return Model(chat=chat, identity=identity, config=config)


class PluginChat(ChatModel):
    """The chat model of a plugin."""

    plugin: Plugin

    async def answer(self, messages: list[dict[str, str]], options: RequestOptions) -> AIMessage:
        """Return the answer to one request; a schema is sent as text.

        Raises:
            CallFailure: it took too long or failed temporarily.
            PluginFailed: the plugin failed otherwise or returned an invalid answer.
        """
        settings = self.settings
        request = TargetRequest(
            messages=tuple(append_schema(messages, options.schema)),
            max_tokens=options.max_tokens,
            temperature=settings.temperature,
            seed=settings.seed,
            draw=options.draw,
            options=settings.extra,
        )
        said = self._check(await self._ask(request))
        answer = make_ai_message(
            said.text,
            finish=said.finish,
            model=settings.name,
            usage=check_usage(prompt=said.prompt_tokens, completion=said.completion_tokens),
        )
        if options.schema:
            answer.response_metadata["method"] = "text"
        return answer

    async def _ask(self, request: TargetRequest) -> object:
        seconds, failure = self.settings.timeout_s, ""
        target = cast(TargetPlugin, self.plugin.loaded)
        try:
            async with asyncio.timeout(seconds):
                with self.plugin.guard("answer", but=(OSError,)):
                    return await target.answer(request)
        except TimeoutError:
            failure = f"no answer within {seconds:g} s"
        except OSError as error:
            failure = str(error) or type(error).__name__
        raise CallFailure("transient", failure, billed=True)

    def _check(self, said: object) -> TargetAnswer:
        ends = ("stop", "length", "refusal")
        if isinstance(said, TargetAnswer) and isinstance(said.text, str) and said.finish in ends:
            return said
        raise self.plugin.fail("must return TargetAnswer(text=...) from answer")

"""Opens and asks a model of any other provider, each through a package of LangChain's.

One request brings one answer as JSON text. A schema is bound once; what the model said is kept as
it stands and parsed by the client.
"""

import asyncio
import difflib
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import cast

import httpx2
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import Field, PrivateAttr, SecretStr, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.chat import ChatModel, append_schema
from coreeval.models.failures import CallFailure, clean_message
from coreeval.models.langchain_answers import find_truncated_answer, to_answer, to_failure
from coreeval.models.langchain_arguments import build_arguments
from coreeval.models.model import (
    Identity,
    Model,
    RequestOptions,
    find_api_key,
    public_endpoint,
    request_parameters,
)
from coreeval.models.providers import share_client

Asked = Runnable[list[dict[str, str]], dict[str, object]]
"""Takes messages, gives what the model said as `raw`."""


class LangChainClient:
    """The models of one chat, by their longest answer.

    Args:
        make: Makes the model for a longest answer.
    """

    def __init__(self, make: Callable[[int], BaseChatModel]) -> None:
        self._make = make
        self._models: dict[int, BaseChatModel] = {}
        self._bound: dict[tuple[int, str, int], tuple[Mapping[str, object], Asked]] = {}
        """By the schema's identity, the method and the limit; the schema is kept so it stays."""

    def bind(self, form: RequestOptions) -> Asked:
        """Return what asks the model in a form.

        Raises:
            ValueError, TypeError, NotImplementedError: its package does not know the way.
        """
        key = (id(form.schema), form.method, form.max_tokens)
        if key not in self._bound:
            self._bound[key] = (form.schema, _bind(self._model(form.max_tokens), form))
        return self._bound[key][1]

    def secret(self, key: SecretStr) -> str:
        """Return the key that is sent: ours, or the one that the package has found for itself."""
        values = (value for model in self._models.values() for value in vars(model).values())
        keys = (key, *(value for value in values if isinstance(value, SecretStr)))
        return next((said for one in keys if (said := one.get_secret_value())), "")

    async def close(self) -> None:
        """Let go of the connections that are ours; packages see to their own."""
        for model in self._models.values():
            http = getattr(model, "http_async_client", None)
            if isinstance(http, httpx2.AsyncClient):
                await http.aclose()
        self._models.clear()
        self._bound.clear()

    def _model(self, limit: int) -> BaseChatModel:
        if limit not in self._models:
            self._models[limit] = self._make(limit)
        return self._models[limit]


def _bind(model: BaseChatModel, form: RequestOptions) -> Asked:
    if form.method == "text":
        return cast("Asked", model | RunnableLambda(_as_raw))
    schema = {"title": form.name, "description": "The answer.", **form.schema}
    bound = model.with_structured_output(schema, method=form.method, include_raw=True)
    return cast("Asked", bound)


def _as_raw(message: AIMessage) -> dict[str, object]:
    return {"raw": message}


class LangChainChat(ChatModel):
    """Asks one model of a provider's package."""

    make: Callable[[int], BaseChatModel] = Field(exclude=True, repr=False)
    """Makes the package's model for a longest answer."""
    _me: object = PrivateAttr(default_factory=object)
    """What tells its connections from those of others."""

    async def answer(self, messages: list[dict[str, str]], form: RequestOptions) -> AIMessage:
        """Return the answer of one request.

        A failure is raised outside the handlers, so that it carries no error of the package and,
        with it, no request and no key.
        """
        told = form.method in ("json_mode", "text")
        outcome = await self._send(append_schema(messages, form.schema) if told else messages, form)
        if isinstance(outcome, CallFailure):
            raise outcome
        return outcome

    async def _send(
        self, messages: list[dict[str, str]], form: RequestOptions
    ) -> AIMessage | CallFailure:
        connected, seconds = (
            share_client(self._me, lambda: LangChainClient(self.make)),
            self.settings.timeout_s,
        )
        try:
            asked = connected.bind(form)
        except (ValueError, TypeError, NotImplementedError) as error:
            return CallFailure("unsupported", f"{form.method}: {error}", refused="method")
        try:
            async with asyncio.timeout(seconds):
                said = await asked.ainvoke(messages)
            return to_answer(cast("AIMessage", said["raw"]))
        except TimeoutError:
            return CallFailure("transient", f"no answer within {seconds:g} s", billed=True)
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            return find_truncated_answer(error) or to_failure(error, connected.secret(self.key))


_INSTALL = "pip install 'coreeval[providers]'"


def open_langchain(config: ModelConfig, env: Mapping[str, str], *, known: Collection[str]) -> Model:
    """Open a model through `init_chat_model`.

    Args:
        config: The model.
        env: Where a key that the config names comes from; a provider's package finds its own.
        known: Providers that need no package, for a name that is none but much like one.

    Raises:
        ConfigError: there is no such provider, its package is missing, or it does not take what is
            configured.
        CredentialError: the key that the config names is missing.
    """
    packages = _list_packages(config, known)
    provider = config.provider.replace("-", "_").lower()
    if provider not in packages:
        raise _unknown_provider(config, {*known, *packages})
    chosen = _find_chat_class(config, *packages[provider])
    key = _find_key(config, env)

    def make(limit: int) -> BaseChatModel:
        return _make_model(config, chosen, key, provider, limit)

    make(config.max_tokens)  # what is wrong with it is known before it is asked
    chat = LangChainChat(settings=config, key=SecretStr(key), make=make, cache=False)
    endpoint = public_endpoint(config.base_url) if config.base_url else f"langchain:{provider}"
    identity = Identity(
        provider=config.provider,
        endpoint=endpoint,
        model=config.name,
        parameters=request_parameters(config),
    )
    return Model(chat=chat, identity=identity, config=config)


def _list_packages(config: ModelConfig, known: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the module and the class of each provider."""
    try:
        from langchain.chat_models import base
    except ImportError:
        near, ours = _suggest_model(config, known), ", ".join(sorted(known))
        raise ConfigError(
            f"{config.model!r} needs LangChain; the providers without it are {ours}",
            where="models",
            hint=f"did you mean {near!r}? if not, {_INSTALL}" if near else _INSTALL,
        ) from None
    registered = getattr(base, "_BUILTIN_PROVIDERS", {})
    return {name: (module, chat) for name, (module, chat, _) in registered.items()}


def _suggest_model(config: ModelConfig, names: Collection[str]) -> str | None:
    """Return the model as it may have been meant."""
    near = difflib.get_close_matches(config.provider, sorted(names), n=1)
    return f"{near[0]}:{config.name}" if near else None


def _unknown_provider(config: ModelConfig, names: Collection[str]) -> ConfigError:
    near = _suggest_model(config, names)
    return ConfigError(
        f"there is no provider {config.provider!r}",
        where=f"model {config.model!r}",
        hint=f"did you mean {near!r}?" if near else f"known ones: {', '.join(sorted(names))}",
    )


def _find_chat_class(config: ModelConfig, module: str, name: str) -> type[BaseChatModel]:
    package = module.partition(".")[0].replace("_", "-")
    try:
        found: type[BaseChatModel] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{config.model} needs the package {package}: {error}",
            where=f"model {config.model!r}",
            hint=f"{_INSTALL} {package}",
        ) from None
    return found


def _find_key(config: ModelConfig, env: Mapping[str, str]) -> str:
    """Return the key to hand on; empty where the provider's package finds its own.

    An endpoint of the user's own gets the key that is named for it or none, never one that a
    package finds under some other name.
    """
    given = config.api_key_env or config.base_url or env.get(config.key_variable)
    return find_api_key(config, env) if given else ""


def _make_model(
    config: ModelConfig, chosen: type[BaseChatModel], key: str, provider: str, limit: int
) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        given = build_arguments(chosen, config, key=key, max_tokens=limit)
        made: BaseChatModel = init_chat_model(config.name, model_provider=provider, **given)
        return made
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - each package has errors of its own
        trouble = clean_message(_error_text(error), key)
    raise ConfigError(
        f"{config.model} cannot be opened: {trouble}",
        where=f"model {config.model!r}",
        hint="its package says so; most take their key from the environment",
    )


def _error_text(error: Exception) -> str:
    """Return an error's words without the values that it was about: a key may be among them."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        told = str(first["msg"]).removeprefix("Value error, ")
        return f"{'.'.join(map(str, first['loc']))} {told}".strip()
    return str(error)

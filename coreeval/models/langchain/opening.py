"""Opening a model of any provider that LangChain knows, each through a package of its own."""

import difflib
import importlib
from collections.abc import Collection, Mapping

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr, ValidationError

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.failures import clean
from coreeval.models.keys import key_of
from coreeval.models.langchain.arguments import arguments_of
from coreeval.models.langchain.chat import LangChainChat
from coreeval.models.model import Identity, Model, parameters_of, public_endpoint

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
    packages = _packages(config, known)
    provider = config.provider.replace("-", "_").lower()
    if provider not in packages:
        raise _unknown(config, {*known, *packages})
    chosen = _chat_class(config, *packages[provider])
    key = _key(config, env)

    def make(limit: int) -> BaseChatModel:
        return _made(config, chosen, key, provider, limit)

    make(config.max_tokens)  # what is wrong with it is known before it is asked
    chat = LangChainChat(settings=config, key=SecretStr(key), make=make, cache=False)
    endpoint = public_endpoint(config.base_url) if config.base_url else f"langchain:{provider}"
    identity = Identity(
        provider=config.provider,
        endpoint=endpoint,
        model=config.name,
        parameters=parameters_of(config),
    )
    return Model(chat=chat, identity=identity, config=config)


def _packages(config: ModelConfig, known: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the module and the class of each provider."""
    try:
        from langchain.chat_models import base
    except ImportError:
        near, ours = _nearest(config, known), ", ".join(sorted(known))
        raise ConfigError(
            f"{config.model!r} needs LangChain; the providers without it are {ours}",
            where="models",
            hint=f"did you mean {near!r}? if not, {_INSTALL}" if near else _INSTALL,
        ) from None
    registered = getattr(base, "_BUILTIN_PROVIDERS", {})
    return {name: (module, chat) for name, (module, chat, _) in registered.items()}


def _nearest(config: ModelConfig, names: Collection[str]) -> str | None:
    """Return the model as it may have been meant."""
    near = difflib.get_close_matches(config.provider, sorted(names), n=1)
    return f"{near[0]}:{config.name}" if near else None


def _unknown(config: ModelConfig, names: Collection[str]) -> ConfigError:
    near = _nearest(config, names)
    return ConfigError(
        f"there is no provider {config.provider!r}",
        where=f"model {config.model!r}",
        hint=f"did you mean {near!r}?" if near else f"known ones: {', '.join(sorted(names))}",
    )


def _chat_class(config: ModelConfig, module: str, name: str) -> type[BaseChatModel]:
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


def _key(config: ModelConfig, env: Mapping[str, str]) -> str:
    """Return the key to hand on; empty where the provider's package finds its own.

    An endpoint of the user's own gets the key that is named for it or none, never one that a
    package finds under some other name.
    """
    given = config.api_key_env or config.base_url or env.get(config.key_env)
    return key_of(config, env) if given else ""


def _made(
    config: ModelConfig, chosen: type[BaseChatModel], key: str, provider: str, limit: int
) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        given = arguments_of(chosen, config, key=key, max_tokens=limit)
        made: BaseChatModel = init_chat_model(config.name, model_provider=provider, **given)
        return made
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - each package has errors of its own
        trouble = clean(_said(error), key)
    raise ConfigError(
        f"{config.model} cannot be opened: {trouble}",
        where=f"model {config.model!r}",
        hint="its package says so; most take their key from the environment",
    )


def _said(error: Exception) -> str:
    """Return an error's words without the values that it was about: a key may be among them."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        told = str(first["msg"]).removeprefix("Value error, ")
        return f"{'.'.join(map(str, first['loc']))} {told}".strip()
    return str(error)

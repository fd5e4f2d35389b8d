"""The providers: opens the model of a `provider:name`.

`preflight` checks a model as far as possible without paid requests.
"""

import os
from collections.abc import Callable, Mapping

from coreeval.config import ModelConfig
from coreeval.config.plugins import PROVIDER
from coreeval.errors import ConfigError
from coreeval.models.model import Model, find_api_key
from coreeval.models.tracing import TRACING
from coreeval.tools.endpoints import Pairs, model_pairs, origin_of, refuse_untrusted

Opener = Callable[[ModelConfig, Mapping[str, str]], Model]


def _open_openai(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.openai import open_openai  # the SDK takes 0.7 s to import

    return open_openai(config, env)


def _open_anthropic(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.anthropic import open_anthropic  # slow to import, too

    return open_anthropic(config, env)


def _open_other(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.langchain import open_langchain  # needs a package for each

    return open_langchain(config, env, known=PROVIDERS)


def _open_hf(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.hf import open_hf  # langchain-core takes 0.3 s to import

    return open_hf(config, env)


def _open_replay(config: ModelConfig, _env: Mapping[str, str]) -> Model:
    from coreeval.models.replay import open_replay  # langchain-core takes 0.3 s to import

    return open_replay(config)


def _open_plugin(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.plugin_target import open_plugin_target  # langchain-core takes 0.3 s

    return open_plugin_target(config, env)


PROVIDERS: dict[str, Opener] = {
    "openai": _open_openai,
    "anthropic": _open_anthropic,
    "hf": _open_hf,
    PROVIDER: _open_plugin,
    "replay": _open_replay,
}
"""The providers with an implementation here; all others are opened through LangChain."""


def open_model(
    config: ModelConfig, env: Mapping[str, str] | None = None, *, trusted: Pairs = ()
) -> Model:
    """Open the model that a config names; keys come from the environment.

    Args:
        config: The model.
        env: Where its key comes from; by default, the environment.
        trusted: Variables and the origins that they may be sent to, besides the provider's own and
            this machine.

    Raises:
        UntrustedEndpoint: its key would be sent to another origin.
        ConfigError: there is no such provider, its package is missing, a configured option is not
            supported, or the name after the colon is missing.
        CredentialError: the key is missing from the environment.
    """
    if not config.name or config.is_rule_based:
        known = ", ".join(f"{name}:…" for name in sorted(PROVIDERS))
        raise ConfigError(
            f"there is no model {config.model!r}",
            where="models",
            hint=f"write provider:name; supported providers: {known}",
        )
    known_env = os.environ if env is None else env
    TRACING.open()
    refuse_untrusted(model_pairs([config], known_env), trusted)
    return PROVIDERS.get(config.provider, _open_other)(config, known_env)


def preflight(
    config: ModelConfig, env: Mapping[str, str] | None = None, *, trusted: Pairs = ()
) -> None:
    """Check that a model can be used, with free checks only: its key, its file, its endpoint.

    Only an endpoint of the user's own is contacted, for its list of models; one that shows a web
    page instead also gets an empty request.

    Args:
        config: The model.
        env: Where its key comes from; by default, the environment.
        trusted: Variables and the origins that they may be sent to; see `open_model`.

    Raises:
        UntrustedEndpoint: its key would be sent to another origin; nothing was sent.
        ConfigError: the provider is unknown, base_url is not a URL or lacks /v1, or a file cannot
            be read.
        CredentialError: the key is missing from the environment, or refused.
        ModelUnusable: nothing answers at base_url, or it does not have the model.
        UsageError: weights on this machine are missing, cut, or larger than the free memory, or
            torch is not installed.
    """
    if config.base_url is not None:
        origin_of(config.base_url)
    open_model(config, env, trusted=trusted)
    if config.provider == "hf":
        from coreeval.models.hf import check_memory

        check_memory(config)
    if config.base_url is not None:
        from coreeval.models.listing import check_listed  # httpx2 takes 0.1 s to import

        check_listed(
            config, config.base_url, find_api_key(config, os.environ if env is None else env)
        )

"""Which providers there are: `provider:name` becomes a model."""

import os
from collections.abc import Callable, Mapping

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.model import Model
from coreeval.models.tracing import TRACING
from coreeval.tools.endpoints import Pairs, model_pairs, refuse_untrusted

Opener = Callable[[ModelConfig, Mapping[str, str]], Model]


def _openai(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.openai.chat import open_openai  # the SDK takes 0.7 s to import

    return open_openai(config, env)


def _anthropic(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.anthropic.chat import open_anthropic  # as slow

    return open_anthropic(config, env)


def _others(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.langchain.opening import open_langchain  # brings a package for each

    return open_langchain(config, env, known=PROVIDERS)


def _replay(config: ModelConfig, _env: Mapping[str, str]) -> Model:
    from coreeval.models.replay import open_replay  # langchain-core takes 0.3 s to import

    return open_replay(config)


PROVIDERS: dict[str, Opener] = {"openai": _openai, "anthropic": _anthropic, "replay": _replay}
"""Those that are asked without a package of their own; all others come through LangChain."""


def open_model(
    config: ModelConfig, env: Mapping[str, str] | None = None, *, trusted: Pairs = ()
) -> Model:
    """Open the model that a config names; keys come from the environment.

    Args:
        config: The model.
        env: Where its key comes from; the environment where it is not given.
        trusted: Variables and the origins that they may be sent to, beside the provider's own and
            this machine.

    Raises:
        UntrustedEndpoint: its key would be sent to another origin.
        ConfigError: there is no such provider, its package is missing, it is configured with what
            it does not have, or what follows the colon is missing.
        CredentialError: the key is missing from the environment.
    """
    if not config.name or config.by_rules:
        known = ", ".join(f"{name}:…" for name in sorted(PROVIDERS))
        raise ConfigError(
            f"there is no model {config.model!r}",
            where="models",
            hint=f"a model is written provider:name; providers that can be asked: {known}",
        )
    known_env = os.environ if env is None else env
    TRACING.open()
    refuse_untrusted(model_pairs([config], known_env), trusted)
    return PROVIDERS.get(config.provider, _others)(config, known_env)

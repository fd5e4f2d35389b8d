"""Which providers there are: `provider:name` becomes a model."""

import os
from collections.abc import Callable, Mapping

from coreeval.config import ROLES, ModelConfig, ModelsConfig
from coreeval.errors import ConfigError
from coreeval.models.asker import Asker
from coreeval.models.model import Model
from coreeval.schema import RoleName
from coreeval.tools.stores.calls import CallStore

Opener = Callable[[ModelConfig, Mapping[str, str]], Model]


def _openai(config: ModelConfig, env: Mapping[str, str]) -> Model:
    from coreeval.models.openai_chat import open_openai  # the SDK takes 0.7 s to import

    return open_openai(config, env)


def _replay(config: ModelConfig, _env: Mapping[str, str]) -> Model:
    from coreeval.models.replay import open_replay  # langchain-core takes 0.3 s to import

    return open_replay(config)


PROVIDERS: dict[str, Opener] = {"openai": _openai, "replay": _replay}


def open_model(config: ModelConfig, env: Mapping[str, str] | None = None) -> Model:
    """Open the model that a config names; keys come from the environment.

    Raises:
        ConfigError: there is no such provider, or what follows the colon is missing.
        CredentialError: the key is missing from the environment.
    """
    if config.provider not in PROVIDERS or not config.name:
        known = ", ".join(f"{name}:…" for name in sorted(PROVIDERS))
        raise ConfigError(
            f"there is no model {config.model!r}",
            where="models",
            hint=f"a model is written provider:name; providers that can be asked: {known}",
        )
    return PROVIDERS[config.provider](config, os.environ if env is None else env)


def open_askers(
    models: ModelsConfig, store: CallStore, *, env: Mapping[str, str] | None = None
) -> dict[RoleName, Asker]:
    """Return an asker for each role that a model plays; roles played by rules have none."""
    return {
        role: Asker(open_model(models.of(role), env), store, role=role)
        for role in ROLES
        if not models.of(role).by_rules
    }

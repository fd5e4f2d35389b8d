"""What can be known about a model before anything is paid."""

import os
from collections.abc import Mapping

from coreeval.config import ModelConfig
from coreeval.models.keys import key_of
from coreeval.models.providers import open_model
from coreeval.tools.endpoints import Pairs, origin_of


def preflight(
    config: ModelConfig, env: Mapping[str, str] | None = None, *, trusted: Pairs = ()
) -> None:
    """Check that a model can be asked, as far as that is free: its key, its file, its endpoint.

    Only an endpoint of the user's own is contacted, and only for its list of models.

    Args:
        config: The model.
        env: Where its key comes from; the environment where it is not given.
        trusted: Variables and the origins that they may be sent to; see `open_model`.

    Raises:
        UntrustedEndpoint: its key would be sent to another origin; nothing was.
        ConfigError: the provider is unknown, base_url is no URL or lacks its /v1, or a file cannot
            be read.
        CredentialError: the key is missing from the environment, or refused.
        ModelUnusable: nothing answers at base_url, or it has no such model.
    """
    if config.base_url is not None:
        origin_of(config.base_url)
    open_model(config, env, trusted=trusted)
    if config.base_url is not None:
        from coreeval.models.listing import check_listed  # httpx2 takes 0.1 s to import

        check_listed(config, config.base_url, key_of(config, os.environ if env is None else env))

"""What can be known about a model before anything is paid."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.keys import key_of
from coreeval.models.providers import open_model


def preflight(config: ModelConfig, env: Mapping[str, str] | None = None) -> None:
    """Check that a model can be asked, as far as that is free: its key, its file, its endpoint.

    Only an endpoint of the user's own is contacted, and only for its list of models.

    Raises:
        ConfigError: the provider is unknown, base_url is no URL or lacks its /v1, or a file cannot
            be read.
        CredentialError: the key is missing from the environment, or refused.
        ModelUnusable: nothing answers at base_url, or it has no such model.
    """
    if config.base_url is not None:
        _check_address(config.base_url)
    open_model(config, env)
    if config.base_url is not None:
        from coreeval.models.listing import check_listed  # httpx2 takes 0.1 s to import

        check_listed(config, config.base_url, key_of(config, os.environ if env is None else env))


def _check_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise ConfigError(
            f"base_url is no http address: {base_url!r}",
            hint="for example http://127.0.0.1:8000/v1",
        )

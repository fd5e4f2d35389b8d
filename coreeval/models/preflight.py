"""What can be known about a model before anything is paid."""

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError, ModelUnusable
from coreeval.models.providers import open_model

_PORTS = {"http": 80, "https": 443}
_CONNECT_S = 5.0


def preflight(config: ModelConfig, env: Mapping[str, str] | None = None) -> None:
    """Check that a model can be asked, as far as that is free: its key, its file, its endpoint.

    Raises:
        ConfigError: the provider is unknown, base_url is no URL, or a file cannot be read.
        CredentialError: the key is missing from the environment.
        ModelUnusable: nothing accepts a connection at base_url.
    """
    open_model(config, env)
    if config.base_url is not None:
        _connect(config, config.base_url)


def _connect(config: ModelConfig, base_url: str) -> None:
    host, port = _address(base_url)
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError as error:
        raise ModelUnusable(
            f"{config.model}: nothing accepts a connection at {host}:{port} ({error})",
            where=base_url,
            hint="start the server, or correct base_url",
        ) from None


def _address(base_url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise ConfigError(
            f"base_url is no http address: {base_url!r}",
            hint="for example http://127.0.0.1:8000/v1",
        )
    return host, port

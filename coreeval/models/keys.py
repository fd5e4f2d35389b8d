"""Keys come from the environment, and only whole ones are sent."""

from collections.abc import Mapping

from coreeval.config import ModelConfig
from coreeval.errors import CredentialError

NO_KEY = "no-key-needed"
"""Sent to an endpoint of the user's own that needs no key: the SDKs insist on one."""
SHORTEST = 16
"""Characters from which a key is taken for a secret: a shorter one, such as `test`, stands in for
none and may be a word of an answer."""


def key_of(config: ModelConfig, env: Mapping[str, str]) -> str:
    """Return a model's key.

    Raises:
        CredentialError: there is none for a public endpoint, or what is there cannot be sent.
    """
    name = config.key_env
    key = env.get(name, "").strip()
    if not key and config.base_url is None:
        raise CredentialError(
            f"{config.model} needs a key and {name} is not set",
            where=f"environment variable {name}",
            hint="export it or put it into .env; a local server needs base_url instead",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise CredentialError(
            f"the key in {name} has characters that no key has, such as a line break or a space",
            where=f"environment variable {name}",
            hint="copy it again: it is one line of plain letters, digits and signs",
        )
    return key or NO_KEY


def hidden(value: object, key: str) -> object:
    """Return what a server said without the key, wherever it repeats it in texts or their lists."""
    if len(key) < SHORTEST:
        return value
    if isinstance(value, str):
        return value.replace(key, "***")
    if isinstance(value, Mapping):
        return {name: hidden(inner, key) for name, inner in value.items()}
    return [hidden(inner, key) for inner in value] if isinstance(value, list) else value

"""Values that stand where somebody might put a secret by mistake."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def _no_secret(url: str) -> str:
    """Refuse what may be secret in a URL; the message must not repeat it."""
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query:
        raise ValueError("a URL must not hold a password or a query; see api_key_env for keys")
    return url


def _variable(name: str) -> str:
    """Refuse what is no name of a variable, such as the key itself; do not repeat it."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise ValueError(
            "this takes the NAME of an environment variable, in capitals, not the key itself"
        )
    return name


PlainUrl = Annotated[str, AfterValidator(_no_secret)]
"""An address without user, password or query."""
VariableName = Annotated[str, AfterValidator(_variable)]
"""The name of an environment variable that holds a secret."""

"""What a user may choose about the DOC 2.0 backend."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from coreeval.schema import Value

SERVICE = "https://api.gdeltproject.org/api/v2/doc/doc"
"""GDELT's own address; it takes no key."""


def _http(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError("an address that starts with http:// or https://, without a #")
    return url


class DocConfig(Value):
    """How DOC 2.0 is reached and how patiently it is asked."""

    base_url: Annotated[str, AfterValidator(_http)] = SERVICE
    """Another address is a gateway or a server of a test."""
    spacing_s: Annotated[float, Field(ge=0)] = 8.0
    """Least time between two requests of all processes together. GDELT states 5 s, and was seen to
    refuse at 6.5 s (research: gdelt §1)."""
    timeout_s: Annotated[float, Field(gt=0)] = 75.0
    """Longest wait for one answer; 38 s were seen for good ones (research: gdelt §1)."""
    deadline_s: Annotated[float, Field(gt=0)] = 600.0
    """Longest time for all queries of one fetch together, whatever the service does."""
    pause_s: Annotated[float, Field(ge=0)] = 60.0
    """First pause after three requests in a row that came to nothing; the second is twice as long,
    all others four times."""

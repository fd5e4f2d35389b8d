"""The news services that are asked over a network: how, how patiently, and for how much."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from coreeval.schema import Value

SERVICE = "https://api.gdeltproject.org/api/v2/doc/doc"
"""GDELT's own address; it takes no key."""
Feed = Literal["gkg", "gal"]
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def _endpoint(url: str) -> str:
    """Refuse a gateway that a token must not be sent to; do not repeat what may be secret."""
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query:
        raise ValueError("a URL must not hold a password or a query")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ValueError("an endpoint is https://…, or http:// on this machine")
    return url.rstrip("/")


class BigQueryConfig(Value):
    """How GDELT's tables on BigQuery are asked, and what that may cost."""

    project: str | None = None
    """The Google Cloud project that pays; that of the credentials where it is not told."""
    location: str = "US"
    """Where GDELT's tables are."""
    feeds: Annotated[tuple[Feed, ...], Field(min_length=1)] = ("gkg", "gal")
    """`gkg`: names and titles; `gal`: titles and descriptions. Each costs a scan of the window."""
    max_gb: Annotated[float, Field(gt=0)] = 50.0
    """Most that a run may have billed, in GB (10^9 bytes)."""
    timeout_s: Annotated[float, Field(gt=0)] = 300.0
    """Wall clock for one request, from the first look at its price to its last row."""
    endpoint: Annotated[str, AfterValidator(_endpoint)] | None = None
    """A gateway in place of Google's; one on this machine is asked without credentials."""


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

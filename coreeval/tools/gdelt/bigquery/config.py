"""What the config says of BigQuery."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from coreeval.schema import Value

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

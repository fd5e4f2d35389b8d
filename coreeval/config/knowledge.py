"""Where news comes from: the part of the config that the knowledge backends read.

It says how the services on a network are asked, how patiently, and for how much.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from coreeval.config.dates import as_utc
from coreeval.config.models import split_address
from coreeval.schema import Precision, Value

DOC_SERVICE_URL = "https://api.gdeltproject.org/api/v2/doc/doc"
"""GDELT's own address; it takes no key."""
Feed = Literal["gkg", "gal"]
LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}


def _check_endpoint(url: str) -> str:
    """Return the URL of a gateway if a token may be sent there; the error repeats no secrets."""
    parts = split_address(url)
    if "@" in parts.netloc or parts.query:
        raise ValueError("a URL must not hold a password or a query")
    if parts.scheme != "https" and not (
        parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
    ):
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
    endpoint: Annotated[str, AfterValidator(_check_endpoint)] | None = None
    """A gateway in place of Google's; one on this machine is asked without credentials."""


def _check_http_url(url: str) -> str:
    parts = split_address(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError("an address that starts with http:// or https://, without a #")
    return url


class DocConfig(Value):
    """How DOC 2.0 is reached and how patiently it is asked."""

    base_url: Annotated[str, AfterValidator(_check_http_url)] = DOC_SERVICE_URL
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


BackendName = Literal["local", "bigquery", "doc"]
UtcMoment = Annotated[datetime, AfterValidator(as_utc)]


class WindowConfig(Value):
    """The span of publication times that evidence must come from."""

    start: UtcMoment | Literal["auto"] = "auto"
    """`auto`: the latest of cutoff and release over all targets."""
    end: UtcMoment | Literal["now"] = "now"


class ControlWindow(Value):
    """The span of publication times that evidence of the control arm must come from."""

    start: UtcMoment
    end: UtcMoment
    """Excluded; no later than the earliest cutoff of the targets."""


class KnowledgeConfig(Value):
    """Where news comes from."""

    backends: Annotated[tuple[BackendName, ...], Field(min_length=1)] = ("local",)
    """Asked in this order: a query that one finds nothing for goes to the next."""
    path: str | None = None
    """For the local backend: a store of `coreeval gdelt sync`, or a folder of GDELT files. The
    workspace's own store where it is not told."""
    bigquery: BigQueryConfig = BigQueryConfig()
    doc: DocConfig = DocConfig()
    window: WindowConfig = WindowConfig()
    min_precision: Precision = "cluster"
    """Least certain kind of publication time that is accepted."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 20
    """Items of evidence shown to the replacer (research: pilot §2)."""
    cutoffs: str | None = None
    """File of model cutoffs and releases that come before the built-in ones."""
    takedown: str | None = None
    """File of names and evidence ids that nothing may rest on, one a line."""

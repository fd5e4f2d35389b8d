"""Where news comes from: the part of the config that the knowledge backends read."""

from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from coreeval.config.dates import utc
from coreeval.schema import Precision, Value

Backend = Literal["local", "doc"]
SERVICE = "https://api.gdeltproject.org/api/v2/doc/doc"
"""GDELT's own address; it takes no key."""


Moment = Annotated[datetime, AfterValidator(utc)]


class WindowConfig(Value):
    """The span of publication times that evidence must come from."""

    start: Moment | Literal["auto"] = "auto"
    """`auto`: the latest of cutoff and release over all targets."""
    end: Moment | Literal["now"] = "now"


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


class KnowledgeConfig(Value):
    """Where news comes from."""

    backends: Annotated[tuple[Backend, ...], Field(min_length=1)] = ("local",)
    """Asked in this order: a query that one finds nothing for goes to the next."""
    path: str | None = None
    """For the local backend: a store of `coreeval gdelt sync`, or a folder of GDELT files. The
    workspace's own store where it is not told."""
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

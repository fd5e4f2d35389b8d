"""The sources of news: the config section of the knowledge backends.

It sets the endpoints, time limits and costs of network services.
"""

import re
from datetime import datetime
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from coreeval.config.base import Count, Section
from coreeval.config.dates import as_utc
from coreeval.config.models import split_address
from coreeval.config.plugins import check_choice
from coreeval.schema import Precision

DOC_SERVICE_URL = "https://api.gdeltproject.org/api/v2/doc/doc"
"""The address of GDELT's own service, which needs no key."""
Feed = Literal["gkg", "gal"]
LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}


def _check_endpoint(url: str) -> str:
    """Return a gateway's URL if a token may be sent there; the error contains no secrets."""
    parts = split_address(url)
    if "@" in parts.netloc or parts.query:
        raise ValueError("a URL must not contain a password or a query")
    if parts.scheme != "https" and not (
        parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
    ):
        raise ValueError(
            "an endpoint starts with https://, or with http:// if it is on this machine"
        )
    return url.rstrip("/")


class BigQueryConfig(Section):
    """How GDELT's tables on BigQuery are queried, and the most that this may cost."""

    project: str | None = None
    """The Google Cloud project that is billed. None: the project of the credentials."""
    location: str = "US"
    """The location of GDELT's tables."""
    feeds: Annotated[tuple[Feed, ...], Field(min_length=1)] = ("gkg", "gal")
    """`gkg`: names and titles; `gal`: titles and descriptions. Each feed adds the cost of one scan
    of the window."""
    max_gb: Annotated[float, Field(gt=0)] = 50.0
    """The maximum amount of data that a run may be billed for, in GB (10^9 bytes); no query may
    exceed it (exit code 3). It may be raised while a run is unfinished."""
    timeout_s: Annotated[float, Field(gt=0)] = 300.0
    """The time limit of one request in seconds, from the dry run to the last row."""
    endpoint: Annotated[str, AfterValidator(_check_endpoint)] | None = None
    """The address of a gateway to use instead of Google's service; a gateway on this machine
    receives no credentials."""


def _check_http_url(url: str) -> str:
    parts = split_address(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError("the address must start with http:// or https:// and must not contain a #")
    return url


class DocConfig(Section):
    """The address, pauses and time limits of DOC 2.0."""

    base_url: Annotated[str, AfterValidator(_check_http_url)] = DOC_SERVICE_URL
    """The address of the service; any other address is that of a gateway."""
    spacing_s: Annotated[float, Field(ge=0)] = 8.0
    """The minimum time between two requests, counted over all processes, in seconds. GDELT states 5
    s, but has been observed to refuse requests at 6.5 s (research: gdelt §1)."""
    timeout_s: Annotated[float, Field(gt=0)] = 75.0
    """The longest wait for one answer, in seconds; successful answers took up to 38 s (research:
    gdelt §1)."""
    deadline_s: Annotated[float, Field(gt=0)] = 600.0
    """The time limit for all queries of one fetch together, in seconds."""
    pause_s: Annotated[float, Field(ge=0)] = 60.0
    """The first pause after three failed requests in a row, in seconds; the second pause is twice
    as long, and all later ones are four times as long."""


def _check_contact(contact: str) -> str:
    """Return an address at which hosts can reach the person who fetches their pages."""
    plain = contact.isascii() and contact.isprintable() and len(contact) <= 200
    if not plain or not re.fullmatch(r"https?://[^\s()]+\.[^\s()]+|[^\s@()]+@[^\s@()]+", contact):
        raise ValueError(
            "write your contact address as https://example.org/about or name@example.org"
        )
    return contact


class ArticlesConfig(Section):
    """The sources of article texts, and the limits on fetching pages."""

    files: tuple[str, ...] = ()
    """JSON Lines files with `url` and `text`, or folders of them."""
    ccnews: tuple[str, ...] = ()
    """WARC files of CC-NEWS, or folders of them."""
    fetch: bool = False
    """Whether pages that no file contains are fetched from their hosts, if the hosts allow it."""
    contact: Annotated[str, AfterValidator(_check_contact)] | None = None
    """A web or email address sent to hosts with each request; needed to fetch pages."""
    delay_s: Annotated[float, Field(ge=1)] = 5.0
    """The minimum time between requests for two pages of a host, in seconds. If the host asks for a
    longer crawl delay, that delay applies."""
    pages_a_day: Count = 200
    """The maximum number of pages to fetch from a host on one day."""
    timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """The longest wait for one page, in seconds."""
    deadline_s: Annotated[float, Field(gt=0)] = 600.0
    """The time limit for all pages of one fetch together, in seconds."""
    expire_days: Annotated[float, Field(gt=0)] = 30.0
    """The number of days for which a text is kept in the workspace's private cache."""

    @property
    def has_source(self) -> bool:
        """Return whether there is any source of texts."""
        return bool(self.files or self.ccnews or self.fetch)

    @model_validator(mode="after")
    def _check_fetch(self) -> Self:
        if self.fetch and not self.contact:
            raise ValueError(
                "fetch: true needs contact, a web or email address that hosts will see"
            )
        return self


Backend = Literal["local", "bigquery", "doc"]
BackendName = Annotated[str, AfterValidator(check_choice(get_args(Backend)))]
"""The name of a built-in backend, or of a plugin."""
TextDepth = Literal["headline", "description", "article"]
UtcMoment = Annotated[datetime, AfterValidator(as_utc)]


class WindowConfig(Section):
    """The span of publication times that evidence must come from."""

    start: UtcMoment | Literal["auto"] = "auto"
    """The earliest publication time. `auto`: the latest training cutoff or release date of all
    targets. Embedded targets are ignored, and a target with neither date is an error
    (docs/cutoffs.md). A time without a zone is UTC."""
    end: UtcMoment | Literal["now"] = "now"
    """The moment before which publication times must be. `now`: the moment at which the run starts;
    a resumed run keeps this moment."""


class ControlWindow(Section):
    """The span of publication times that evidence of the control arm must come from."""

    start: UtcMoment
    """The earliest publication time."""
    end: UtcMoment
    """The moment before which publication times must be. It must be no later than the earliest
    cutoff of the targets and the start of `knowledge.window`. A target without a known cutoff is an
    error."""


_LATER_KEYS: Final[dict[str, object]] = {"documents": "excerpts", "options": {}}


class KnowledgeConfig(Section):
    """The sources of news."""

    backends: Annotated[tuple[BackendName, ...], Field(min_length=1)] = ("local",)
    """The backends in order: `local` (docs/knowledge.md), `bigquery` (docs/bigquery.md), `doc`
    (docs/doc_api.md), or one from a plugin, written `plugin:NAME` or `module:Class`
    (docs/plugins.md). A query without results is passed to the next backend."""
    path: str | None = None
    """For `local`: a store made by `coreeval gdelt sync`, or a folder of GDELT files; plugins
    receive this path too. None: the workspace's own store."""
    options: dict[str, JsonValue] = {}
    """Settings for the backends that are plugins; API keys and passwords are refused."""
    bigquery: BigQueryConfig = BigQueryConfig()
    """How GDELT's tables on BigQuery are queried."""
    doc: DocConfig = DocConfig()
    """How GDELT's DOC 2.0 API is queried."""
    text: TextDepth = "headline"
    """How much of an article is read: its title (`headline`), its title and one-sentence
    description (`description`), or also its text, if there is one (`article`; docs/knowledge.md).
    """
    articles: ArticlesConfig = ArticlesConfig()
    """The sources of article texts; needed for `text: article`."""
    documents: Literal["excerpts", "private"] = "excerpts"
    """How much of the publishers' texts is included in documents of `summary` tasks. `private`:
    everything that is read; such a run cannot be released (docs/tasks.md)."""
    window: WindowConfig = WindowConfig()
    """The range in which the publication times of evidence must be."""
    min_precision: Precision = "cluster"
    """The least certain kind of publication time that is accepted."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 8
    """The number of events offered to a sample, with up to three articles for each event (research:
    reading_trial_2)."""
    reuse: Count | None = 2
    """The maximum number of samples to which one event may be offered; `null`: no limit."""
    embeddings: str | None = None
    """The embeddings with which news is found and ranked by meaning as well as by words: `minilm`,
    `minilm:PATH` or `provider:name` (docs/knowledge.md). If you name a provider, the texts are sent
    to it, which needs your consent (docs/models.md) and is refused under a budget. None: news is
    ranked by words alone."""
    cutoffs: str | None = None
    """A file of model cutoffs and release dates that overrides the built-in ones (docs/cutoffs.md).
    """
    takedown: str | None = None
    """A file of names and evidence ids that must not be used, one per line (docs/safety.md)."""

    @model_serializer(mode="wrap")
    def _omit_usual_values(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out usual values of later keys, so that runs from before them keep their hash."""
        said: dict[str, object] = dump(self)
        for key, usual in _LATER_KEYS.items():
            if said.get(key) == usual:
                del said[key]
        return said

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        if self.text == "article" and not self.articles.has_source:
            raise ValueError(
                "text: article needs a source of texts: articles.files, articles.ccnews, or "
                "articles.fetch: true"
            )
        return self

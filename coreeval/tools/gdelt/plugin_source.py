"""The protocol for plugins as knowledge backends, and the source that uses a plugin.

A plugin finds articles. They are dated, screened, grouped by event and ranked here, by the local
store's code, so that evidence has the same meaning from every source.
"""

import asyncio
import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast, get_args

from pydantic import JsonValue, TypeAdapter

from coreeval.config import Config
from coreeval.config.credentials import hide_url_credentials
from coreeval.config.plugins import PluginUse
from coreeval.languages import ENGLISH
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    Language,
    NamedEntity,
    Precision,
    Retrieval,
    Value,
    Window,
)
from coreeval.tools.formatting import format_quantity
from coreeval.tools.gdelt.rows import Article, evidence_id, host_of
from coreeval.tools.gdelt.sources import OnRetrieval, SourceCache
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.licences import forbids_changes
from coreeval.tools.plugins import Plugin, load_plugin

_PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
_MOST_ARTICLES: Final = 200_000
"""The most articles of one answer; more are an error of the plugin, and could fill the memory."""


class NewsArticle(NamedTuple):
    """An article that a plugin found."""

    url: str
    title: str
    published_at: datetime
    """The publication time, with a time zone."""
    snippet: str = ""
    """A sentence or two that describe the article."""
    is_exact: bool = True
    """Whether the publisher states the time; otherwise it is the time at which the page was
    seen."""
    language: str = ENGLISH
    """The ISO 639-1 code of the language."""
    entities: Sequence[str] = ()
    """Names that the article mentions besides those in its title."""
    licence: str = ""
    """A short name of the text's licence, such as `CC BY 4.0`; empty for the publisher's own
    terms. An article is left out if it forbids derived works."""


class KnowledgeSettings(Value):
    """A backend's settings from a config."""

    path: Path | None
    """`knowledge.path`, as an absolute path."""
    options: dict[str, JsonValue]
    """`knowledge.options`."""
    language: Language
    """The language of the benchmark."""
    min_precision: Precision


class KnowledgePlugin(Protocol):
    """A source of news: a plugin of the group `knowledge`.

    Optional: `remote`, whether answers are cached on disk because queries take long or cost money
    (by default, they are not), and `close()`.
    """

    plugin_api: int

    async def find(
        self, queries: Sequence[EntityQuery], window: Window, settings: KnowledgeSettings
    ) -> Iterable[NewsArticle]:
        """Return articles that may answer some of the queries; CoreEval ranks them for each.

        Args:
            queries: Names and a few content words, those of many samples at a time.
            window: The span of publication times; articles outside of it are ignored.
            settings: The backend's settings from the config.
        """
        ...


_DATE: Final = TypeAdapter(datetime)


class PluginSource:
    """The news of a plugin."""

    remote = True
    """One request carries the queries of all samples."""

    def __init__(self, plugin: Plugin, settings: KnowledgeSettings) -> None:
        self.name = f"plugin:{plugin.origin.name}"
        self._plugin = plugin
        self._settings = settings
        self._named: dict[str, NamedEntity] = {}
        self._lock = threading.Lock()

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first.

        Raises:
            PluginFailed: the plugin failed, or returned an invalid article.
        """
        finder = cast(KnowledgePlugin, self._plugin.loaded)
        with self._plugin.guard("find"):
            found = await finder.find(queries, window, self._settings)
            listed = list(found)
        return await asyncio.to_thread(self._rank, listed, queries, window, k)

    def _rank(
        self, listed: Sequence[object], queries: Sequence[EntityQuery], window: Window, k: int
    ) -> Retrieval:
        from coreeval.tools.gdelt.temporary_store import open_temporary_store  # duckdb

        if len(listed) > _MOST_ARTICLES:
            raise self._plugin.fail(f"returned more than {_MOST_ARTICLES:,} articles from find")
        made = [self._make_article(each, number) for number, each in enumerate(listed, 1)]
        forbidden = [forbids_changes(str(each.licence)) for each in _known(listed)]
        articles = [each for each, left_out in zip(made, forbidden, strict=True) if not left_out]
        licences = {evidence_id(each.url): str(each.licence) for each in _known(listed)}
        worst = _PRECISIONS.index(self._settings.min_precision)
        with open_temporary_store(articles) as store:
            ranked: Mapping[str, Sequence[Evidence]] = (
                store.rank_evidence(queries, window, k, worst) if store else {}
            )
        by_query = {
            query.id: tuple(_attribute(each, licences) for each in ranked.get(query.id, ()))
            for query in queries
        }
        self._keep_names(by_query)
        return Retrieval(
            by_query=by_query,
            reasons={query: "no_news" for query, items in by_query.items() if not items},
            notes=self._describe_forbidden(sum(forbidden)),
        )

    def _describe_forbidden(self, number: int) -> tuple[str, ...]:
        if not number:
            return ()
        left_out = format_quantity(number, "article was", "articles were")
        return (f"{self.name}: {left_out} left out, because the licence forbids derived works",)

    def _make_article(self, given: object, number: int) -> Article:
        """Return an article in the form that the store accepts.

        Raises:
            PluginFailed: it is not an article, or lacks a time zone.
        """
        if not isinstance(given, NewsArticle):
            raise self._plugin.fail("must return NewsArticle(url=..., title=...) from find")
        with self._plugin.guard("find"):
            moment = _DATE.validate_python(given.published_at)
            if moment.tzinfo is None:
                shown = hide_url_credentials(given.url)[:100]
                told = f"returned a time without a time zone for {shown!r}"
                raise self._plugin.fail(told)
            moment = moment.astimezone(UTC)
            named = [NamedEntity(name=str(name), type="other") for name in given.entities]
            if not host_of(given.url):
                told = f"returned an article with the invalid address {given.url[:100]!r}"
                raise self._plugin.fail(told)
            return Article(
                url=hide_url_credentials(given.url),
                title=str(given.title),
                crawled_at=moment,
                stated_at=moment if given.is_exact else None,
                language=str(given.language),
                snippet=str(given.snippet),
                entities=tuple(named),
                origin=f"{self.name}:{number}",
            )

    def _keep_names(self, found: Mapping[str, Sequence[Evidence]]) -> None:
        with self._lock:
            for items in found.values():
                for entity in (entity for item in items for entity in item.entities):
                    self._named.setdefault(entity.name.casefold(), entity)

    def coverage(self, window: Window) -> Coverage:
        """Return coverage without a number of articles: a plugin is only queried for samples."""
        return Coverage(articles=None)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the distinct names in the evidence fetched so far."""
        with self._lock:
            return [self._named[name] for name in sorted(self._named)]

    def close(self) -> None:
        """Close the plugin if it can be closed."""
        close = getattr(self._plugin.loaded, "close", None)
        if callable(close):
            with self._plugin.guard("close"):
                close()


def _known(listed: Sequence[object]) -> Iterable[NewsArticle]:
    return (each for each in listed if isinstance(each, NewsArticle))


def _attribute(item: Evidence, licences: Mapping[str, str]) -> Evidence:
    """Return evidence with a plugin as its source, and the licence of its text."""
    update = {"source": "plugin", "licence": licences.get(item.id, "")}
    return item.model_copy(update=update)


def open_plugin_source(
    name: str, config: Config, language: Language, cache: Path, *, heard: OnRetrieval
) -> KnowledgeSource:
    """Open the news of a plugin.

    Args:
        name: The plugin's name, without `plugin:`.
        config: The run's config.
        language: The language of the benchmark.
        cache: A folder for the answers of a plugin that states `remote = True`.
        heard: Called with each answer of such a plugin that was not in the cache.

    Raises:
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    plugin = load_plugin(PluginUse("knowledge", name, "knowledge.backends"), KnowledgePlugin)
    chosen = config.knowledge
    settings = KnowledgeSettings(
        path=Path(chosen.path) if chosen.path else None,
        options=chosen.options,
        language=language,
        min_precision=chosen.min_precision,
    )
    source = PluginSource(plugin, settings)
    if getattr(plugin.loaded, "remote", False) is not True:
        return source
    told = f"{plugin.origin.identity}\n{settings.model_dump_json()}"
    place = f"plugin-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    return SourceCache(source, JsonCache(cache / place), heard)

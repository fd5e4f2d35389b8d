"""Gets texts of articles from all sources in turn: cache, files, CC-NEWS, and the page itself.

Other modules use `open_articles`. Bodies are stored in a private cache, which expires and which
`coreeval takedown` searches; they are not part of runs or releases.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Protocol
from urllib.request import getproxies

from aiohttp.abc import AbstractResolver
from pydantic import TypeAdapter, ValidationError

from coreeval.config.knowledge import ArticlesConfig, TextDepth
from coreeval.schema import Evidence
from coreeval.tools.articles.acceptance import FoundText, judge_text
from coreeval.tools.articles.addresses import CheckAddress, is_public_address, new_connector
from coreeval.tools.articles.article_text import (
    LASTING,
    ArticleText,
    NoText,
    TextRetrieval,
    TextSource,
    WantedText,
    to_wanted,
)
from coreeval.tools.articles.ccnews import ArchivedPage, choose_captures, read_pages, scan_records
from coreeval.tools.articles.extraction import NotExtracted, PageReaders
from coreeval.tools.articles.file_index import Entry, FileIndex, FileTally, unreadable
from coreeval.tools.articles.live_pages import AGENT, LivePages, NotFetched, open_session
from coreeval.tools.articles.pacing import HostPaces
from coreeval.tools.articles.page import PageReading
from coreeval.tools.articles.robots import RobotsFiles
from coreeval.tools.articles.text_files import read_rows, scan_rows
from coreeval.tools.extras import check_extra
from coreeval.tools.files import path_to_text
from coreeval.tools.gdelt.rows import find_files, host_of
from coreeval.tools.json_cache import JsonCache

CACHE_NAME: Final = "articles"
"""The name of the private cache in the caches of a workspace."""
MOST_HOSTS: Final = 16
"""The most hosts that are queried at the same time (own choice)."""
PAGES_AT_ONCE: Final = 8
"""The most pages of an archive that are in memory at the same time (own choice)."""
REASON_LIFE_S: Final = 24 * 3600.0
"""The seconds for which a page without a usable text is not fetched again (own choice)."""
PACKAGES: Final = ("trafilatura", "htmldate", "fastwarc", "protego", "py3langid")
_PROXY_NOTE: Final = (
    "Pages are fetched without the environment's proxy, because a host's address cannot be "
    "checked behind a proxy."
)
_PROXIES: Final = frozenset({"http", "https", "all"})
_OUTCOME: Final = TypeAdapter[ArticleText | NoText](ArticleText | NoText)
Refuses = Callable[[str], bool]
"""Returns whether a text must not be used, because it names somebody on the takedown list."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The parts that tests replace: allowed addresses, name resolution, and time."""

    check: CheckAddress = is_public_address
    resolver: AbstractResolver | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class ReadsPages(Protocol):
    """Reads the text and metadata of pages."""

    async def read(self, body: bytes, url: str) -> PageReading:
        """Read one page.

        Raises:
            NotExtracted: it cannot be read.
        """
        ...

    async def close(self) -> None:
        """Release processes."""
        ...


@dataclass
class _Search:
    """The state of one search."""

    pending: dict[str, WantedText]
    found: dict[str, ArticleText | NoText] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take(self, wanted: WantedText, outcome: ArticleText | NoText) -> None:
        """Record a result; a text ends the search, and replaces most earlier reasons."""
        self.found[wanted.id] = outcome
        if isinstance(outcome, ArticleText) or outcome.reason == "taken_down":
            self.pending.pop(wanted.id, None)

    def result(self, order: Iterable[WantedText]) -> TextRetrieval:
        """Return the result for all wanted articles."""
        by_id = {each.id: self.found.get(each.id) or each.without_text("not_found")
                 for each in order}  # fmt: skip
        return TextRetrieval(by_id=by_id, notes=tuple(self.notes))


@dataclass
class _Files:
    """The files of a config, which are indexed when the first article is searched."""

    rows: list[Path] = field(default_factory=list)
    archives: list[Path] = field(default_factory=list)
    _ready: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def prepare(self, config: ArticlesConfig, index: FileIndex) -> list[str]:
        """Index the files; return notes the first time.

        Raises:
            KnowledgeError: a file cannot be read.
        """
        async with self._lock:
            if self._ready:
                return []
            self.rows = await asyncio.to_thread(_expand, config.files, (".jsonl", ".jsonl.gz"))
            self.archives = await asyncio.to_thread(_expand, config.ccnews, (".warc", ".warc.gz"))
            notes = [_PROXY_NOTE] if config.fetch and getproxies().keys() & _PROXIES else []
            for files, scan, rows in (
                (self.rows, scan_rows, "lines"), (self.archives, scan_records, "records"),
            ):  # fmt: skip
                for file in files:
                    tally = await asyncio.to_thread(index.ensure, file, scan)
                    notes.extend(_describe_tally(file, tally, rows))
            self._ready = True
            return notes


@dataclass(frozen=True, kw_only=True)
class ArticleTexts:
    """The texts of articles, inside `open_articles`."""

    config: ArticlesConfig
    depth: TextDepth
    cache: JsonCache
    index: FileIndex
    readers: ReadsPages
    live: LivePages | None
    refuses: Refuses
    _files: _Files = field(default_factory=_Files)
    _busy: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """A lock for each page that is being fetched, so that it is fetched once."""

    async def fetch_texts(self, items: Sequence[Evidence]) -> TextRetrieval:
        """Return, for each piece of evidence, its article's text or the reason that there is none.

        Raises:
            KnowledgeError: a file cannot be read, or the pace of requests cannot be kept.
            RunError: no process can be started to read pages.
        """
        return await self.find_texts([to_wanted(item) for item in items])

    async def find_texts(self, wanted: Sequence[WantedText]) -> TextRetrieval:
        """Return the texts of wanted articles; see `fetch_texts`."""
        search = _Search(pending={each.id: each for each in wanted})
        if self.depth != "article":
            return _without_articles(wanted, self.depth)
        self._look_into_cache(search)
        if search.pending:
            search.notes += await self._files.prepare(self.config, self.index)
            for file, entries in (await self._places(search, self._files.rows)).items():
                await asyncio.to_thread(self._take_rows, search, file, entries)
        if search.pending:
            for file, entries in (await self._places(search, self._files.archives)).items():
                await self._take_pages(search, file, entries)
        if self.live and search.pending:
            await self._fetch_pages(search, self.live)
        return search.result(wanted)

    # -- the cache --------------------------------------------------------------------------------

    def _look_into_cache(self, search: _Search) -> None:
        for wanted in [*search.pending.values()]:
            kept = self._kept(f"text {wanted.id}")
            if isinstance(kept, ArticleText):
                search.take(wanted, self._screen(kept, wanted))

    def _kept(self, key: str) -> ArticleText | NoText | None:
        value = self.cache.get(key)
        try:
            return _OUTCOME.validate_python(value) if value is not None else None
        except ValidationError:
            return None

    def _keep(self, outcome: ArticleText | NoText) -> None:
        value = outcome.model_dump(mode="json")
        if isinstance(outcome, ArticleText):
            expire_s = self.config.expire_days * 24 * 3600
            self.cache.put(f"text {outcome.id}", value, expire_s=expire_s)
        elif outcome.reason in LASTING:
            self.cache.put(f"none {outcome.id}", value, expire_s=REASON_LIFE_S)

    def _screen(self, outcome: ArticleText | NoText, wanted: WantedText) -> ArticleText | NoText:
        """Withhold a text that names somebody on the takedown list."""
        if isinstance(outcome, ArticleText) and self.refuses(f"{outcome.title}\n{outcome.text}"):
            return wanted.without_text("taken_down")
        return outcome

    # -- files ------------------------------------------------------------------------------------

    async def _places(self, search: _Search, files: Sequence[Path]) -> dict[Path, list[Entry]]:
        """Return the positions of the articles that are still wanted."""
        return (
            await asyncio.to_thread(self.index.find, files, list(search.pending)) if files else {}
        )

    def _take_rows(self, search: _Search, file: Path, entries: Sequence[Entry]) -> None:
        for entry, text in read_rows(file, entries):
            wanted = search.pending.get(entry.key)
            if wanted:
                search.take(wanted, self._screen(judge_text(text, wanted), wanted))

    async def _take_pages(self, search: _Search, file: Path, entries: Sequence[Entry]) -> None:
        published = {id: wanted.published_at for id, wanted in search.pending.items()}
        left = [entry for entry in entries if entry.key in published]
        pages = read_pages(file, choose_captures(left, published))
        while batch := await asyncio.to_thread(lambda: list(islice(pages, PAGES_AT_ONCE))):
            await asyncio.gather(*(self._take_archived(search, page) for page in batch))

    async def _take_archived(self, search: _Search, page: ArchivedPage) -> None:
        wanted = search.pending[page.key]
        if page.reason:
            search.take(wanted, wanted.without_text(page.reason, page.detail))
            return
        outcome = await self._read_page(page.body, page.url, wanted, "ccnews")
        if isinstance(outcome, ArticleText):
            self._keep(outcome)
        search.take(wanted, outcome)

    # -- pages ------------------------------------------------------------------------------------

    async def _fetch_pages(self, search: _Search, live: LivePages) -> None:
        """Fetch pages, one at a time from each host, and from several hosts at the same time."""
        until = asyncio.get_running_loop().time() + self.config.deadline_s
        by_host, places = defaultdict[str, list[WantedText]](list), asyncio.Semaphore(MOST_HOSTS)
        for wanted in search.pending.values():
            by_host[host_of(wanted.url)].append(wanted)

        async def ask_host(pages: Sequence[WantedText]) -> None:
            async with places:
                for wanted in pages:
                    search.take(wanted, await self._fetch_page(live, wanted, until))

        tasks = [asyncio.ensure_future(ask_host(pages)) for pages in by_host.values()]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _fetch_page(
        self, live: LivePages, wanted: WantedText, until: float
    ) -> ArticleText | NoText:
        async with self._busy[wanted.id]:
            kept = self._kept(f"text {wanted.id}") or self._kept(f"none {wanted.id}")
            if kept:
                return self._screen(kept, wanted)
            try:
                page = await live.fetch(wanted.url, until)
            except NotFetched as error:
                outcome: ArticleText | NoText = wanted.without_text(error.reason, error.detail)
            else:
                outcome = await self._read_page(page.body, page.url, wanted, "web")
            self._keep(outcome)
            return outcome

    async def _read_page(
        self, body: bytes, url: str, wanted: WantedText, source: TextSource
    ) -> ArticleText | NoText:
        try:
            reading = await self.readers.read(body, url)
        except NotExtracted as error:
            return wanted.without_text("unreadable", str(error))
        found = _to_found(reading, url, source)
        return self._screen(await asyncio.to_thread(judge_text, found, wanted), wanted)


def _without_articles(wanted: Sequence[WantedText], depth: TextDepth) -> TextRetrieval:
    found = {each.id: each.without_text("not_wanted") for each in wanted}
    if depth == "headline":
        found = {id: each.model_copy(update={"depth": "headline"}) for id, each in found.items()}
    return TextRetrieval(by_id=dict(found))


def _to_found(reading: PageReading, url: str, source: TextSource) -> FoundText:
    return FoundText(
        source=source,
        url=url,
        text=reading.text,
        was_cut=reading.was_cut,
        title=reading.title,
        publisher=reading.publisher,
        language=reading.language,
        licence=reading.licence,
        dated_at=reading.stated_at or reading.estimated_at,
        date_source="stated" if reading.stated_at else "estimated",
        opted_out=reading.opted_out,
        paywalled=reading.paywalled,
    )


def _expand(paths: Sequence[str], endings: tuple[str, ...]) -> list[Path]:
    """Return the named files, and those in named folders with an accepted ending.

    Raises:
        KnowledgeError: a path does not exist.
    """
    found = list[Path]()
    for path in map(Path, paths):
        if not path.exists():
            raise unreadable(path, FileNotFoundError(2, "there is no such file or folder"))
        files = find_files(path)
        found += (
            files if path.is_file() else [each for each in files if str(each).endswith(endings)]
        )
    return found


def _describe_tally(file: Path, tally: FileTally, rows: str) -> Iterator[str]:
    name = path_to_text(file)
    if tally.bad:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in tally.bad.most_common())
        bad = tally.bad.total()
        yield f"{name}: CoreEval skipped {bad:,} of {bad + tally.rows:,} {rows}: {reasons}."
    if tally.damage:
        yield f"{name}: reading stopped after {tally.rows:,} {rows}: {tally.damage}."


def check_packages() -> None:
    """Check early that the packages for reading articles are installed.

    Raises:
        UsageError: a package of the extra `articles` is missing.
    """
    for package in PACKAGES:
        check_extra("articles", package, "reading articles", where="knowledge.text: article")


@asynccontextmanager
async def open_articles(
    config: ArticlesConfig,
    depth: TextDepth,
    caches: Path,
    *,
    refuses: Refuses = lambda _: False,
    network: Network | None = None,
    readers: ReadsPages | None = None,
) -> AsyncIterator[ArticleTexts]:
    """Yield the texts of articles; usable in the event loop that opened them.

    Args:
        config: The sources of texts.
        depth: How much of an article is wanted; nothing is read unless it is `article`.
        caches: The folder of a workspace's caches.
        refuses: Returns whether a text must not be used.
        network: The addresses that are allowed, name resolution, and time.
        readers: The reader of pages; by default, processes with limits.

    Raises:
        UsageError: a package of the extra `articles` is missing.
    """
    if depth == "article":
        check_packages()
    network, folder = network or Network(), caches / CACHE_NAME
    readers = readers or PageReaders()
    connector = new_connector(network.check, network.resolver)
    with JsonCache(folder) as cache:
        async with open_session(config.contact or "", connector) as session:
            live = LivePages(
                config=config,
                session=session,
                robots=RobotsFiles(cache, AGENT, network.clock),
                paces=HostPaces(
                    folder=folder / "hosts",
                    most_a_day=config.pages_a_day,
                    busy_s=config.timeout_s,
                    clock=network.clock,
                    sleep=network.sleep,
                ),
            )
            try:
                yield ArticleTexts(
                    config=config,
                    depth=depth,
                    cache=cache,
                    index=FileIndex(folder / "index.db"),
                    readers=readers,
                    live=live if config.fetch else None,
                    refuses=refuses,
                )
            finally:
                await readers.close()

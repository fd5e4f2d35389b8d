"""News: syncing a store, searching it, and its coverage.

Commands import this module on every call, so slow imports are inside functions.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from coreeval.api.arguments import Day, parse_day, parse_language, parse_moment
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.schema import EvidenceSource, Precision, Window
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import format_quantity
from coreeval.tools.loops import run_coroutine
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from coreeval.graph.monitor import Watch
    from coreeval.tools.gdelt.sync.batches import FeedCoverage, Gap, StoreCoverage
    from coreeval.tools.gdelt.sync.sync import Around, SyncProgress, SyncResult

LAST: Final = "last"
FEEDS: Final = "gkg,gal,events,mentions"
MIRROR: Final = "https://storage.googleapis.com/data.gdeltproject.org"
WIKI: Final = "https://en.wikipedia.org/w/api.php"
MOST_UNASKED_MB: Final = 2_000
"""The most megabytes downloaded without asking (own choice: some minutes on a fast line)."""
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
SOURCES: Final[tuple[EvidenceSource, ...]] = ("gdelt", "current_events", "file")
Choice = TypeVar("Choice", bound=str)


def find_store(store: Path | str | None) -> Path:
    """Return a news store; by default that of the current folder's workspace."""
    return workspace_for(Path.cwd()).news if store is None else Path(store)


# -- sync -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NewsRequest:
    """The news to sync; the fields are the arguments of `sync_news`."""

    days: int | None = None
    since: Day | None = None
    until: Day | None = None
    source: Path | str | None = None
    feeds: str = FEEDS
    mirror: str = MIRROR
    contact: str | None = None
    wiki: str = WIKI
    languages: str | None = None
    store: Path | str | None = None

    def check(self) -> None:
        """Check the arguments.

        Raises:
            UsageError: not exactly one source of news is given, or a value is not valid.
        """
        if sum(given is not None for given in (self.days, self.since, self.source)) != 1:
            raise UsageError(
                "no news source was chosen",
                where="coreeval gdelt sync",
                hint="use one of --days N, --since last, --since YYYY-MM-DD, --from PATH",
            )
        if self.until and self.since in (None, LAST):
            raise UsageError("--until needs --since YYYY-MM-DD", where="coreeval gdelt sync")
        self._codes()

    def describe_download(self) -> tuple[str, str] | None:
        """Return the size of a large download, and a smaller option; `last` is never large.

        Raises:
            UsageError: there is no such feed, or no such day.
        """
        from coreeval.tools.gdelt.sync.feeds import MIRRORED, estimate_download_mb, parse_feeds

        start = None if self.source else self._start()
        end = parse_day(self.until, "--until")
        if start is None:
            return None
        chosen, until = parse_feeds(self.feeds), min(end or utc_now(), utc_now())
        size_mb = estimate_download_mb(chosen, start, until)
        if size_mb <= MOST_UNASKED_MB:
            return None
        parts = ", ".join(f"{feed} {MIRRORED[feed].day_mb:g}" for feed in chosen)
        gal_mb, facts_mb = (
            estimate_download_mb((feed,), start, until) for feed in ("gal", "current_events")
        )
        what = f"this downloads about {size_mb / 1000:,.1f} GB; the size of a day in MB: {parts}"
        return what, (
            f"fewer days; --feeds gal (titles and descriptions, about {gal_mb / 1000:,.1f} GB); "
            "--feeds current_events --contact ADDRESS (facts from Wikipedia, about "
            f"{facts_mb:,.0f} MB)"
        )

    def fetch(self, watch: "Watch") -> CommandResult:
        """Sync the news to the store, and index it for search."""
        from coreeval.tools.gdelt.sync.feeds import parse_feeds
        from coreeval.tools.gdelt.sync.portal_sync import PortalAccess
        from coreeval.tools.gdelt.sync.sync import sync_folder, sync_mirror

        around, place = _make_around(watch, self._codes()), find_store(self.store)
        if self.source:
            return describe_sync(sync_folder(place, Path(self.source), around=around))
        done = sync_mirror(
            place,
            start=self._start(),
            end=parse_day(self.until, "--until"),
            feeds=parse_feeds(self.feeds),
            mirror=self.mirror,
            portal=PortalAccess(contact=self.contact or "", url=self.wiki),
            around=around,
        )
        return describe_sync(done)

    def _start(self) -> datetime | None:
        """Return the start of the window; None means the end of the store."""
        if self.days is not None:
            return utc_now() - timedelta(days=self.days)
        return None if self.since == LAST else parse_day(self.since, "--since")

    def _codes(self) -> tuple[str, ...]:
        codes = self.languages.split(",") if self.languages is not None else ()
        return tuple(parse_language(code.strip(), "--languages") for code in codes)


def sync_news(
    *,
    days: int | None = None,
    since: Day | None = None,
    until: Day | None = None,
    source: Path | str | None = None,
    feeds: str = FEEDS,
    mirror: str = MIRROR,
    contact: str | None = None,
    wiki: str = WIKI,
    languages: str | None = None,
    store: Path | str | None = None,
    yes: bool = False,
    progress: bool = True,
) -> CommandResult:
    """Download news and facts into a store, or read them from files.

    Args:
        days: The number of days to fetch, counted back from now.
        since: The first day; `last` continues from the newest batch.
        until: With `since`, the end day, which is excluded.
        source: Local files or a folder to read instead of downloading.
        feeds: The feeds to fetch, separated by commas.
        mirror: The base URL of the mirror, without `gdeltv2/`.
        contact: Your email or web address, sent to Wikimedia for `current_events`.
        wiki: The URL of the API that provides `current_events`.
        languages: The languages of the store's news, separated by commas; unchanged by default.
        store: The news store; by default that of the current folder's workspace.
        yes: Whether to download more than 2 GB without asking.
        progress: Show a progress bar on a terminal and in a notebook.

    Returns:
        A result whose table has the number of bad rows by reason.

    Raises:
        UsageError: not exactly one of `days`, `since` and `source` is given, or the download is
            large and `yes` is not set.
        KnowledgeError: the mirror or the files cannot be read.
        RunLocked: another process is syncing the store.
    """
    from coreeval.api.progress import show_progress_to_viewer

    request = NewsRequest(
        days=days, since=since, until=until, source=source, feeds=feeds, mirror=mirror,
        contact=contact, wiki=wiki, languages=languages, store=store,
    )  # fmt: skip
    request.check()
    if not yes and (much := request.describe_download()):
        hint = f"confirm with yes=True, or download less: {much[1]}"
        raise UsageError(much[0], where="coreeval.sync_news", hint=hint)
    with show_progress_to_viewer(progress) as watch:
        return request.fetch(watch)


def _make_around(watch: "Watch", languages: Sequence[str]) -> "Around":
    from coreeval.graph.monitor import Progress
    from coreeval.tools.gdelt.index.build import compact
    from coreeval.tools.gdelt.sync.sync import Around

    def finish(store: Path) -> None:
        watch(Progress(stage="compact"))
        compact(store, languages)

    def tell(at: "SyncProgress") -> None:
        counts = {"articles": at.articles}
        watch(Progress(stage="sync", done=at.done, total=at.total, counts=counts))

    return Around(watch=tell, finish=finish)


def describe_sync(done: "SyncResult") -> CommandResult:
    """Return the result of a sync."""
    counts, bad = done.counts, dict(sorted(done.counts.bad.items()))
    document = {
        "store": str(done.store),
        "files": counts.files,
        "rows": counts.rows,
        "articles": counts.articles,
        "bad_rows": counts.bad.total(),
        "gaps": done.gaps,
        "known_gaps": done.known_gaps,
        "bad": bad,
        "known_files": counts.known,
        "ignored": counts.ignored,
        "failed": done.troubles.failed,
        "late": done.troubles.late,
        "not_searchable": {} if done.stopped else _count_left_out(done.store),
        "growing": done.troubles.growing,
        "ahead": done.ahead,
        "bytes": counts.size,
        "seconds": round(done.seconds, 1),
        "stopped": done.stopped,
    }
    said = f"{done.store}: {format_quantity(counts.articles, 'article')}"
    table = Table("bad rows", parse_columns("reason rows:integer"), bad.items())
    return CommandResult(document, said + (", stopped" if done.stopped else ""), table)


def _count_left_out(store: Path) -> Mapping[str, int]:
    from coreeval.tools.gdelt.index.store_catalog import count_left_out, open_catalog

    with open_catalog(store) as catalog:
        return count_left_out(catalog)


# -- query ----------------------------------------------------------------------------------------


def query_news(
    name: str,
    *,
    start: Day | None = None,
    end: Day | None = None,
    aliases: Sequence[str] = (),
    context: Sequence[str] = (),
    topic: bool = False,
    limit: int = 8,
    min_precision: Precision | str = "crawl",
    source: EvidenceSource | str | None = None,
    language: str = "en",
    store: Path | str | None = None,
) -> CommandResult:
    """Return dated news about a name, best matches first, or the reason why there is none.

    Args:
        name: A name, or a topic with `topic`.
        start: The first day, in UTC; by default the store's first day.
        end: The end day, which is excluded; by default the day after the store's last day.
        aliases: Other spellings of the name.
        context: Words that disambiguate the name.
        topic: Whether `name` is a topic: any of its words may match, the rarest first.
        limit: The maximum number of articles.
        min_precision: The lowest accepted certainty of the publication time: exact, url, cluster or
            crawl.
        source: Return only news from this source: gdelt, current_events or file (your own).
        language: The language of the news.
        store: The news store; by default that of the current folder's workspace.

    Returns:
        A result whose table has a row for each article.

    Raises:
        UsageError: an argument is not valid, or the window ends before it begins.
        KnowledgeError: there is no store, or nothing in it is searchable.
    """
    from coreeval.schema import EntityQuery
    from coreeval.tools.gdelt.index.store_catalog import StoreLayout
    from coreeval.tools.gdelt.local import LocalKnowledge

    first, last = parse_moment(start, "--start"), parse_moment(end, "--end")
    place = find_store(store)
    StoreLayout(place).require()
    asked = EntityQuery(
        id="q",
        text=name,
        rung="concept" if topic else "named",
        aliases=tuple(aliases),
        context=tuple(context),
    )
    how = _require_one(min_precision, PRECISIONS, "precision", "--min-precision")
    only = None if source is None else _require_one(source, SOURCES, "source", "--source")
    code = parse_language(language, "--language")
    with LocalKnowledge(place, news=place, min_precision=how, source=only, language=code) as news:
        window = _choose_window(first, last, news.span())
        answer = run_coroutine(news.fetch([asked], window, limit))
        coverage = news.coverage(window)
        notes = [news.unsearchable] if news.unsearchable else []
    evidence = [item.model_dump(mode="json") for item in answer.by_query["q"]]
    document = {
        "name": name,
        "window": window.model_dump(mode="json"),
        "source": only,
        "evidence": evidence,
        "reason": answer.reasons.get("q"),
        "coverage": coverage.model_dump(mode="json"),
        "store": str(place),
        "notes": notes,
    }
    said = f"{name}: {format_quantity(len(evidence), 'article')} in {place}"
    return CommandResult(document, said, Table.from_dicts("news", _NEWS_COLUMNS, evidence))


_NEWS_COLUMNS: Final = parse_columns(
    "published_at published_precision title domain url source snippet licence "
    "instruction_like:boolean"
)


def _choose_window(start: datetime | None, end: datetime | None, held: Window) -> Window:
    """Return the requested window; a missing side is that of the store.

    Raises:
        UsageError: the window ends before it begins, or is outside the store's coverage.
    """
    first, last = start or held.start, end or held.end
    if first >= last:
        raise UsageError(
            f"the window ends ({last:%Y-%m-%d}) before it begins ({first:%Y-%m-%d})",
            where="--end" if end else "--start",
            hint=f"the end day is excluded; the store has news from {held.start:%Y-%m-%d} to "
            f"{held.end:%Y-%m-%d}",
        )
    return Window(start=first, end=last)


# -- coverage -------------------------------------------------------------------------------------


def measure_news_coverage(store: Path | str | None = None) -> CommandResult:
    """Return the days that a news store covers, and its gaps.

    Args:
        store: The news store; by default that of the current folder's workspace.

    Returns:
        A result whose table has the number of articles of each crawl day.

    Raises:
        KnowledgeError: there is no store.
    """
    from coreeval.tools.gdelt.index.store_catalog import (
        StoreLayout,
        count_left_out,
        describe_unsearchable,
        list_parts,
        open_catalog,
    )
    from coreeval.tools.gdelt.sync.batches import measure_store_coverage
    from coreeval.tools.gdelt.sync.store_ledger import open_ledger

    place = find_store(store)
    layout = StoreLayout(place)
    layout.require()
    with open_ledger(layout.ledger) as ledger:
        found = measure_store_coverage(ledger, utc_now())
    with open_catalog(place) as catalog:
        unsearchable, searchable = describe_unsearchable(catalog), bool(list_parts(catalog))
        left_out = count_left_out(catalog)
    document = {
        **_coverage_document(place, found),
        **_count_published(place, searchable),
        "not_searchable": left_out,
        "notes": [unsearchable] if unsearchable else [],
    }
    articles = format_quantity(sum(found.days.values()), "article")
    said = f"{place}: {articles} from {format_quantity(len(found.days), 'crawl day')}"
    table = Table("crawl days", parse_columns("day articles:integer"), found.days.items())
    return CommandResult(document, said, table)


def _count_published(store: Path, searchable: bool) -> Mapping[str, object]:
    """Return the number of searchable articles by publication day and certainty of the time."""
    from coreeval.tools.gdelt.index.news_index import NewsIndex
    from coreeval.tools.gdelt.local import count_publication_days

    if not searchable:
        return {"published": [], "precision": {}}
    with closing(NewsIndex(store)) as index:
        days, precision = count_publication_days(index.articles), index.stats().precision
    return {
        "published": [{"day": day, "articles": count} for day, count in days.items()],
        "precision": dict(precision),
    }


def _coverage_document(store: Path, found: "StoreCoverage") -> Mapping[str, object]:
    from coreeval.tools.gdelt.sync.feeds import HOLES

    size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return {
        "store": str(store),
        "articles": sum(found.days.values()),
        "days": [{"day": day, "articles": count} for day, count in found.days.items()],
        "feeds": [_feed_document(feed) for feed in found.feeds],
        "holes": [
            {"start": _minute(hole.start), "end": _minute(hole.end), "batches": hole.batches,
             "reason": hole.reason}
            for hole in HOLES
        ],
        "segments": found.segments,
        "bytes": size,
        "ignored": dict(found.ignored),
    }  # fmt: skip


def _feed_document(feed: "FeedCoverage") -> Mapping[str, object]:
    return {
        "feed": feed.feed,
        "source": find_feed_source(feed.feed),
        "files": feed.files,
        "rows": feed.rows,
        "articles": feed.articles,
        "bad": dict(feed.bad),
        "expected": feed.batch_count,
        "present": feed.present,
        "days": [asdict(day) for day in feed.days],
        "gaps": [_gap_document(gap) for gap in feed.gaps],
    }


def find_feed_source(feed: str) -> str:
    """Return the source of a feed's evidence."""
    return feed if feed in SOURCES else "gdelt"


def _gap_document(gap: "Gap") -> Mapping[str, object]:
    return {
        "start": _minute(gap.start),
        "end": _minute(gap.end),
        "batches": gap.batches,
        "why": gap.why,
        "known_hole": gap.hole.reason if gap.hole else None,
    }


def _minute(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def _require_one(given: str, known: Sequence[Choice], what: str, option: str) -> Choice:
    found = next((each for each in known if each == given), None)
    if found is None:
        raise UsageError(f"{given!r} is not a {what}", where=option, hint=", ".join(known))
    return found

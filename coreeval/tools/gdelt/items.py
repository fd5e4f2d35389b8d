"""From articles to what is offered as evidence: dated, clustered, screened."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from coreeval.schema import Precision
from coreeval.tools.gdelt.clusters import cluster
from coreeval.tools.gdelt.dates import believable, date_in_url
from coreeval.tools.gdelt.language import UNKNOWN, checked_language
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.screen import screened
from coreeval.tools.gdelt.urls import host_of, is_front_page

OFFERED = "en"
"""The language of the benchmarks; news in others would have to be translated first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An article and what is known of it beside its row."""

    id: str
    article: Article
    domain: str
    published_at: datetime
    precision: Precision
    story: str = ""
    """Id of the earliest item that tells the same event; its own id when it stands alone."""
    domains: int = 1
    """Sites that tell the story, counting articles that are not offered."""


def offered_items(articles: Mapping[str, Article]) -> tuple[list[Item], dict[str, int]]:
    """Return what is offered in order of publication, and what is not, counted by reason."""
    dated = sorted(
        (_dated(key, article) for key, article in articles.items()),
        key=lambda item: (item.published_at, item.id),
    )
    stories: defaultdict[int, list[Item]] = defaultdict(list)
    heads = cluster([(item.published_at, item.article.title) for item in dated])
    for item, head in zip(dated, heads, strict=True):
        stories[head].append(item)
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    for story in stories.values():
        items += _kept(story, dropped)
    return sorted(items, key=lambda item: (item.published_at, item.id)), dict(
        sorted(dropped.items())
    )


def _dated(key: str, article: Article) -> Item:
    """Give an article the best publication time that its own row gives."""
    precision: Precision = "exact"
    published_at = believable(article.stated_at, article.crawled_at)
    if published_at is None:
        precision = "url"
        published_at = date_in_url(article.url, article.crawled_at)
    if published_at is None:
        precision = "crawl"
        published_at = article.crawled_at
    return Item(
        id=key,
        article=article,
        domain=host_of(article.url),
        published_at=published_at,
        precision=precision,
    )


def _kept(story: Sequence[Item], dropped: Counter[str]) -> Iterator[Item]:
    """Yield the members of one story that are offered, dated by their twins where they are not."""
    domains = len({item.domain for item in story})
    kept: list[Item] = []
    for item in _dated_by_twins(story):
        reason = _not_offered(item.article)
        if reason:
            dropped[reason] += 1
        else:
            kept.append(item)
    head = min(kept, key=lambda item: (item.published_at, item.id), default=None)
    for item in kept:
        yield replace(item, story=head.id if head else "", domains=domains)


def _dated_by_twins(story: Sequence[Item]) -> Iterator[Item]:
    """Give undated members the time of the earliest dated one, unless they were seen before it."""
    dated = [item.published_at for item in story if item.precision != "crawl"]
    earliest = min(dated, default=None)
    for item in story:
        if item.precision == "crawl" and earliest and earliest <= item.published_at:
            yield replace(item, published_at=earliest, precision="cluster")
        else:
            yield item


def _not_offered(article: Article) -> str | None:
    """Return why an article is no evidence here, or None."""
    language = checked_language(article.language, article.title)
    if language != OFFERED:
        return "unknown_language" if language == UNKNOWN else "other_language"
    if is_front_page(article.url):
        return "front_page"
    return screened(article.title, article.snippet, article.entities)

"""Generated English news in the store's segment form: Zipf words and names, wire copies, odd text.

The same seed gives the same rows. A day has `articles` pages as GKG tells them; a third of them GAL
tells again with a description, and a tenth is found again two days later.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
START = datetime(2026, 5, 24, tzinfo=UTC)
"""The first crawl day; here an aligned stretch of ten days begins (parts/spans.py)."""
DAY = 86_400
WORDS, NAMES, SITES, THEMES = 60_000, 400_000, 20_000, 300
MENTIONS = 4.7
"""Names of one article, on average: 14 million for 3 million articles (research: gdelt §5)."""
COPIES, NEAR, SNIPPETS = 0.25, 0.08, 0.33
"""Shares of wire copies, of copies with another word, and of pages that GAL tells too."""
COMMON = """
    the to of in and for on with as at from by is after over says new will be has are more how
    up first two it its year plans deal market price oil gas bank court state city school work
    health team game win report group power water home trade talks vote chief minister president
    council police company workers users climate energy growth rise fall cut rate back open close
"""
ODD = ("Caf\u00e9 \u2018Zo\u00eb\u2019 ", "U.S. ", "AT&T ", "S & P 500: ", "\u201cQuoted\u201d ",
       "na\u00efve ", "\ufffd ", "\u6771\u4eac ", "arrested: ", "Top 10 ")  # fmt: skip
_ONSETS = "b br c ch d dr f g gr h j k l m n p pr r s st t tr v w z"
_VOWELS = "a e i o u ai ea ou"
_ENDS = "n r l s t nd rk m ck"
_TYPES = pa.array(["person", "organisation", "place", "other"])


@dataclass(frozen=True)
class World:
    """What the news is about: words, names and sites, commonest first."""

    words: pa.Array
    names: pa.Array
    sites: pa.Array
    seed: int

    @classmethod
    def made(cls, seed: int) -> "World":
        """Return the world of a seed."""
        source = np.random.default_rng(seed)
        words = _words(source, WORDS)
        parts = [word.capitalize() for word in _words(source, 30_000)]
        first = ranks(source, 0.8, 6_000, NAMES)
        last = source.integers(0, len(parts), NAMES)
        names = [f"{parts[one]} {parts[two]}" for one, two in zip(first, last, strict=True)]
        sites = [f"{word}{number}.example" for number, word in enumerate(words[:SITES])]
        return cls(pa.array([*COMMON.split(), *words]), pa.array(names), pa.array(sites), seed)


def _words(source: np.random.Generator, count: int) -> list[str]:
    """Return distinct words that can be spoken."""
    ends = ["", *_ENDS.split()]
    syllables = [
        one + two + end for one in _ONSETS.split() for two in _VOWELS.split() for end in ends
    ]
    numbers = source.integers(0, len(syllables), (3 * count, 3)).tolist()
    sizes = source.integers(1, 4, 3 * count).tolist()
    spoken = (
        "".join(syllables[one] for one in row[:size])
        for row, size in zip(numbers, sizes, strict=True)
    )
    return list(islice(dict.fromkeys(spoken), count))


def segment(world: World, day: int, articles: int) -> pa.Table:
    """Return the rows of one crawl day, numbered from 0."""
    source = np.random.default_rng((world.seed, day))
    table = _pages(world, source, day, articles)
    told = source.random(articles) < SNIPPETS
    again = _told_again(world, source, table.filter(pa.array(told)))
    return pa.concat_tables([table, again])


def _pages(world: World, source: np.random.Generator, day: int, articles: int) -> pa.Table:
    start = int(START.timestamp()) + day * DAY
    crawled = np.sort(source.integers(start, start + DAY, articles))
    lag = source.exponential(4 * 3600, articles).astype(np.int64)
    stated = pa.array(crawled - lag, mask=source.random(articles) < 0.4)
    counts = source.poisson(MENTIONS, articles)
    names = ranks(source, 1.02, NAMES, int(counts.sum()))
    titles = _titles(world, source, articles, names, counts)
    return pa.table(
        {
            "url": _urls(world, source, crawled, day),
            "title": titles,
            "snippet": pa.repeat("", articles),
            "crawled_at": crawled,
            "stated_at": stated,
            "language": pa.array(source.choice(["en", "de"], articles, p=[0.97, 0.03])),
            "feed": pa.repeat("gkg", articles),
            "file": pa.array(crawled // 900 % 96, pa.int32()),
            "line": pa.array(np.arange(articles), pa.int32()),
            "entities": _entities(world, source, names, counts),
            "themes": _lists(pa.array([f"THEME_{at}" for at in range(THEMES)]),
                             ranks(source, 1.1, THEMES, articles * 6), np.full(articles, 6)),
            "words": pa.array(source.integers(100, 2000, articles), pa.int32()),
        }
    )  # fmt: skip


def _told_again(world: World, source: np.random.Generator, pages: pa.Table) -> pa.Table:
    """Return the rows that GAL has of the same pages: with a description, without entities."""
    rows = len(pages)
    snippets = _texts(world, source, source.integers(14, 34, rows))
    empty = pa.ListArray.from_arrays(
        pa.array(np.zeros(rows + 1), pa.int32()), pages["entities"].chunk(0).values.slice(0, 0)
    )
    nothing = pa.ListArray.from_arrays(
        pa.array(np.zeros(rows + 1), pa.int32()), pa.array([], pa.string())
    )
    changed = {
        "snippet": snippets,
        "stated_at": pages["crawled_at"],
        "feed": pa.repeat("gal", rows),
        "file": pa.array(np.full(rows, 96), pa.int32()),
        "entities": empty,
        "themes": nothing,
        "words": pa.nulls(rows, pa.int32()),
    }
    columns = [changed.get(name, pages[name]) for name in pages.column_names]
    return pa.table(columns, schema=pages.schema)


def ranks(source: np.random.Generator, power: float, top: int, count: int) -> Numbers:
    """Return ranks from 0, rank n with a share of about 1 / (n + 3) ** power."""
    shares = np.cumsum(1.0 / np.arange(3, top + 3) ** power)
    return np.asarray(np.searchsorted(shares, source.random(count) * shares[-1]), np.int64)


def _lists(values: pa.Array, numbers: Numbers, counts: Numbers) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(numbers)))


def _texts(world: World, source: np.random.Generator, sizes: Numbers) -> pa.Array:
    """Return sentences of common and rare words."""
    numbers = ranks(source, 1.05, len(world.words), int(sizes.sum()))
    return pc.utf8_capitalize(pc.binary_join(_lists(world.words, numbers, sizes), " "))


def _titles(
    world: World, source: np.random.Generator, articles: int, names: Numbers, counts: Numbers
) -> pa.Array:
    """Return headlines: a name of the article, then words; wire copies and odd ones among them."""
    texts = _texts(world, source, source.integers(5, 11, articles))
    first = np.minimum(np.concatenate([[0], np.cumsum(counts)[:-1]]), max(len(names) - 1, 0))
    named = pc.if_else(
        pa.array((counts > 0) & (source.random(articles) < 0.6)),
        pc.binary_join_element_wise(
            world.names.take(pa.array(names[first])), pc.utf8_lower(texts), " "
        ),
        texts,
    )
    odd = pa.array(ODD).take(pa.array(source.integers(0, len(ODD), articles)))
    titles = pc.if_else(
        pa.array(source.random(articles) < 0.05), pc.binary_join_element_wise(odd, named, ""), named
    )
    copied = source.random(articles) < COPIES
    back = np.maximum(np.arange(articles) - source.geometric(0.001, articles), 0)
    titles = titles.take(pa.array(np.where(copied, back, np.arange(articles))))
    near = pa.array(copied & (source.random(articles) < NEAR / COPIES))
    return pc.if_else(near, pc.binary_join_element_wise(titles, "today", " "), titles)


def _urls(world: World, source: np.random.Generator, crawled: Numbers, day: int) -> pa.Array:
    articles = len(crawled)
    sites = world.sites.take(pa.array(ranks(source, 1.0, SITES, articles)))
    kinds = source.choice(4, articles, p=[0.55, 0.3, 0.1, 0.05])
    dates = pc.strftime(pa.array(crawled, pa.timestamp("s")), "/%Y/%m/%d/")
    folder = pc.if_else(pa.array(kinds == 1), dates, "/news/")
    slug = pc.binary_join_element_wise(*(_slugs(world, source, articles) for _ in range(5)), "-")
    number = pa.array(np.arange(articles) + day * 10_000_000).cast(pa.string())
    tail = pa.array(["", "", f"?utm_source=rss&id={day}", "/amp/"]).take(pa.array(kinds))
    return pc.binary_join_element_wise("https://www.", sites, folder, slug, "-", number, tail, "")


def _slugs(world: World, source: np.random.Generator, articles: int) -> pa.Array:
    return world.words.take(pa.array(ranks(source, 1.05, len(world.words), articles)))


def _entities(
    world: World, source: np.random.Generator, names: Numbers, counts: Numbers
) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    mentions = pa.StructArray.from_arrays(
        [
            world.names.take(pa.array(names)),
            _TYPES.take(pa.array(names % 4)),
            pa.array(source.integers(0, 1500, len(names)), pa.int32()),
            pa.array(source.integers(1, 6, len(names)), pa.int16()),
        ],
        names=["name", "type", "at", "n"],
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), mentions)


def segments(seed: int, days: int, articles: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield (days after START, rows) of each crawl day."""
    world = World.made(seed)
    for day in range(days):
        yield day, segment(world, day, articles)

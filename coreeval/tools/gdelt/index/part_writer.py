"""Writes a part of the index: stories, the names in each, its inverted index and its texts.

Pages whose headlines are near-duplicates are one story.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from coreeval.tools.gdelt.index.news_index import INDEX, KINDS, TEXTS
from coreeval.tools.gdelt.index.pages import BY_CLUSTER, BY_CRAWL
from coreeval.tools.gdelt.index.storage import (
    KEY,
    Arrays,
    Flags,
    to_posting_arrays,
    to_string_arrays,
    write_arrays,
    write_records,
)
from coreeval.tools.gdelt.words import THEMES, find_title_names

MIN_JACCARD = 0.6
SPAN = timedelta(hours=48)
"""Both as research: gdelt §5 has them; untuned."""
MIN_WORDS = 3
"""Headlines with fewer content words are twins only if they are equal."""
_SECONDS = int(SPAN.total_seconds())

_HEADS = f"""
CREATE TABLE heads AS
WITH worded AS (
    SELECT n, list(rarity ORDER BY rarity) AS words FROM keys WHERE place = 0 GROUP BY n
)
SELECT n, page, words, published, published // {_SECONDS} AS stretch
FROM worded JOIN pages USING (n)
"""
# The same words within one stretch of 48 hours; pairs are at most one stretch apart.
_NODES = """
CREATE TABLE nodes AS
SELECT (row_number() OVER ())::INTEGER AS node, words, stretch, items
FROM (SELECT words, stretch, count(*) AS items FROM heads GROUP BY ALL)
"""
# A mask has a bit for each word: what it shows of the words that only one of two nodes has tells
# most pairs apart before their words are compared.
_SIGNS = f"""
CREATE TABLE signs AS
WITH masked AS (
    SELECT node, stretch, len(words)::INTEGER AS size,
           list_aggregate([1::BIGINT << (word % 62)::BIGINT FOR word IN words], 'bit_or') AS mask,
           words[:len(words) - ceil({MIN_JACCARD} * len(words))::INTEGER + 2] AS rare
    FROM nodes WHERE len(words) >= {MIN_WORDS}
),
words AS (
    SELECT node, stretch, size, mask, unnest(rare) AS word FROM masked
)
SELECT one.node, one.stretch, one.size, one.mask, (one.word::BIGINT << 32) + other.word AS sign
FROM words one JOIN words other ON one.node = other.node AND one.word < other.word
"""
_SHARED = f"{MIN_JACCARD / (1 + MIN_JACCARD) - 1e-6}::FLOAT * (one.size + other.size)"
"""So many words two nodes above the threshold have in common, at least."""
_PAIRS = f"""
CREATE TABLE pairs AS
WITH near AS (
    SELECT node, stretch, size, mask, sign FROM signs
    UNION ALL
    SELECT node, stretch - 1, size, mask, sign FROM signs
),
found AS MATERIALIZED (
    SELECT DISTINCT one.node AS one, other.node AS other
    FROM signs one JOIN near other USING (sign, stretch)
    WHERE one.node <> other.node
      AND one.size - bit_count(one.mask & ~other.mask) >= {_SHARED}
      AND other.size - bit_count(other.mask & ~one.mask) >= {_SHARED}
),
compared AS (
    SELECT one, other, len(a.words) + len(b.words) AS sizes,
           len(list_intersect(a.words, b.words)) AS shared
    FROM found JOIN nodes a ON a.node = one JOIN nodes b ON b.node = other
)
SELECT one, other FROM compared WHERE shared >= {MIN_JACCARD} * (sizes - shared)
UNION
SELECT a.node, b.node FROM nodes a JOIN nodes b ON b.words = a.words AND b.stretch = a.stretch + 1
"""
_MEMBERS = """
WITH told AS (
    SELECT node, words, stretch FROM nodes
    WHERE items > 1 OR node IN (SELECT one FROM pairs UNION ALL SELECT other FROM pairs)
)
SELECT n, node, published FROM heads JOIN told USING (words, stretch) ORDER BY published, page
"""


def make_stories(database: duckdb.DuckDBPyConnection) -> None:
    """Make the table `stories` (page n, leader's n) of the pages that another page tells too."""
    for statement in (_HEADS, _NODES, _SIGNS, _PAIRS):
        database.execute(statement)
    pairs = database.execute("FROM pairs").fetchall()
    found = find_leaders(database.execute(_MEMBERS).fetchall(), pairs)
    told = pa.table({"n": list(found), "leader": list(found.values())},
                    schema=pa.schema([("n", pa.int32()), ("leader", pa.int32())]))  # fmt: skip
    database.register("told", told)
    database.execute("CREATE TABLE stories AS FROM told")
    database.unregister("told")
    database.execute("DROP TABLE heads; DROP TABLE nodes; DROP TABLE signs; DROP TABLE pairs")


def find_leaders(
    members: Iterable[tuple[int, int, int]], pairs: Iterable[tuple[int, int]]
) -> dict[int, int]:
    """Return each member's leader, members given as (member, node, time) in order of time."""
    alike: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in pairs:
        alike[one].append(other)
        alike[other].append(one)
    leading: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    leader_of: dict[int, int] = {}
    for order, (member, node, at) in enumerate(members):
        known = (
            leader
            for near in (node, *alike.get(node, ()))
            for leader in leading.get(near, ())
            if at - leader[0] <= _SECONDS
        )
        found = min(known, default=None)
        if found is None:
            leading[node].append((at, order, member))
        leader_of[member] = found[2] if found else member
    return leader_of


TITLED_UP_TO = 20_000
"""Articles of a part up to which headlines are searched for names: enough for article lists; where
there is more, there is GKG, which has named everybody who matters."""

# A story gives its undated members the time of its earliest dated one, unless seen before it.
_DATED = f"""
CREATE TABLE dated AS
WITH members AS (
    SELECT leader, n, page, site, published, precision, dropped FROM stories JOIN pages USING (n)
),
told AS (
    SELECT leader, count(DISTINCT site) AS sites,
           min(published) FILTER (precision < {BY_CRAWL}) AS earliest
    FROM members GROUP BY leader
),
twins AS (
    SELECT *, precision = {BY_CRAWL} AND coalesce(earliest <= published, false) AS by_twin
    FROM members JOIN told USING (leader)
),
moved AS (
    SELECT leader, n, page, dropped, sites, if(by_twin, earliest, published) AS published,
           if(by_twin, {BY_CLUSTER}, precision)::UTINYINT AS precision
    FROM twins
),
headed AS (
    SELECT leader, arg_min(page, (published, page)) AS story, count(*) AS told
    FROM moved WHERE dropped IS NULL GROUP BY leader
)
SELECT n, published, precision, sites, CASE WHEN told > 1 THEN story END AS story
FROM moved JOIN headed USING (leader) WHERE dropped IS NULL
"""
# The weights are research: gdelt §8; where no copies tell how much an event is noticed, the number
# of sources that GDELT's Mentions count does.
_ITEMS = """
CREATE TABLE items AS
WITH kept AS (
    SELECT n, page, site, snippet <> '' AS described, asks(title) AS asks, told.story,
           coalesce(told.published, pages.published) AS published,
           coalesce(told.precision, pages.precision) AS precision,
           coalesce(told.sites, 1) AS sites, salience.sources
    FROM pages LEFT JOIN dated told USING (n) LEFT JOIN salience USING (page)
    WHERE own AND dropped IS NULL
),
weighed AS (
    SELECT *, least(1, CASE WHEN sites > 1 OR sources IS NULL THEN ln(1 + sites) / ln(51)
                            ELSE ln(1 + sources) / ln(21) END) AS noticed,
           (described::INTEGER + [1, 0.75, 0.5, 0][precision + 1] + (NOT asks)::INTEGER) / 3
           AS quality
    FROM kept
)
SELECT n, page, published, precision, story,
       CASE WHEN story IS NULL THEN 1
            ELSE row_number() OVER (PARTITION BY story ORDER BY precision, quality DESC, page)
       END AS telling,
       (row_number() OVER (ORDER BY published, page) - 1)::INTEGER AS article,
       (0.25 * noticed + 0.15 * quality)::FLOAT AS prior,
       CASE WHEN story IS NOT NULL THEN ('0x' || left(sha256(site), 8))::UINTEGER END AS teller
FROM weighed
"""
_UNNAMED = f"""
SELECT n, title, len(entities) > 0 FROM pages SEMI JOIN items USING (n) LIMIT {TITLED_UP_TO + 1}
"""
_MENTIONED = """
CREATE TABLE mentioned AS
WITH listed AS (
    SELECT article, unnest(entities) AS entity FROM pages JOIN items USING (n)
)
SELECT article, entity.name AS shown, (list_position($kinds, entity.type) - 1)::UTINYINT AS kind,
       true AS named
FROM listed
UNION ALL
SELECT article, name, (len($kinds) - 1)::UTINYINT, false FROM titled JOIN items USING (n)
"""
_FORMS = """
CREATE TABLE forms AS
SELECT shown, lower(shown) AS name,
       (dense_rank() OVER (ORDER BY lower(shown)) - 1)::INTEGER AS number
FROM (SELECT DISTINCT shown FROM mentioned)
"""


def make_items(database: duckdb.DuckDBPyConnection) -> None:
    """Make `items`, `mentioned` and `forms` from `pages`, `stories` and `salience`.

    `items` are the articles that are offered, `mentioned` the names of each (`named`: by GKG, not
    only by its headline), `forms` the ways in which a name is written; its number is in order of
    the alphabet.
    """
    database.execute(_DATED)
    database.execute(_ITEMS)
    _find_names(database)
    database.execute(_MENTIONED, {"kinds": list(KINDS)})
    database.execute(_FORMS)


def _find_names(database: duckdb.DuckDBPyConnection) -> None:
    """Make the table `titled` (n, name) of names in headlines whose article has none of GKG's."""
    rows = database.execute(_UNNAMED).fetchall()
    if len(rows) > TITLED_UP_TO:
        rows = []
    runs = find_title_names([title for _, title, _ in rows])
    found = [(n, run) for (n, _, named), names in zip(rows, runs, strict=True)
             if not named for run in names]  # fmt: skip
    numbers, names = [n for n, _ in found], [name for _, name in found]
    database.execute(
        "CREATE TABLE titled AS SELECT unnest(?::INTEGER[]) AS n, unnest(?::VARCHAR[]) AS name",
        [numbers, names],
    )


CROWD = 64
"""Articles of one day that name somebody, from which on they are ranked beforehand."""
TELLINGS = 4
"""Articles of a story that count among the best of their day; a search takes two of them."""
DEEPEST = 255
DAY_S = 86_400


def compute_depths(
    packed: NDArray[np.uint64],
    published: NDArray[np.int64],
    prior: NDArray[np.float32],
    told_often: Flags,
) -> NDArray[np.uint8]:
    """Return how many mentions of its name are before each on its day, 0 where there is no crowd.

    Args:
        packed: Mentions as `name << 32 | article << 1 | flag`, sorted.
        published: Epoch seconds of each article.
        prior: What each article's score has whatever is asked.
        told_often: Whether `TELLINGS` articles tell the same story better.
    """
    name = (packed >> KEY).astype(np.uint32)
    article = packed.astype(np.uint32) >> np.uint32(1)
    day = (published // DAY_S)[article]
    first = np.flatnonzero(
        (np.diff(name, prepend=name[:1]) != 0) | (np.diff(day, prepend=day[:1]) != 0)
    )
    firsts = np.concatenate([[0], first])
    sizes = np.diff(firsts, append=len(packed))
    crowded = sizes > CROWD
    rows = np.flatnonzero(np.repeat(crowded, sizes))
    group = np.repeat(np.arange(np.count_nonzero(crowded)), sizes[crowded])
    among = article[rows]
    order = np.lexsort((among, -prior[among], told_often[among], group))
    before = np.arange(len(rows)) - np.repeat(
        np.cumsum(sizes[crowded]) - sizes[crowded], sizes[crowded]
    )
    found = np.zeros(len(packed), np.uint8)
    found[rows[order]] = np.minimum(before, DEEPEST)
    return found


Packed = NDArray[np.uint64]
KIND_BITS = 4
"""A mention is sorted as name, article, whether GKG names it, and type in one number."""
_ARTICLES = """
SELECT published::BIGINT AS published, precision, prior, page, telling > $tellings AS told_often,
       CASE WHEN story IS NULL THEN 0 ELSE greatest(story >> 32, 1) END::UINTEGER AS story,
       coalesce(teller, 0)::UINTEGER AS teller
FROM items ORDER BY article
"""
_NAME_WORDS = """
CREATE TABLE name_words AS
WITH tokens AS (
    SELECT number, unnest(split_words(shown)) AS token
    FROM (SELECT number, min(shown) AS shown FROM forms GROUP BY number)
),
normal AS (
    SELECT token, key_of(token) AS word FROM (SELECT DISTINCT token FROM tokens)
)
SELECT DISTINCT number, word FROM tokens JOIN normal USING (token) WHERE word <> ''
"""
_TERMS = """
CREATE TABLE terms AS
WITH told AS (
    SELECT DISTINCT rarity FROM keys SEMI JOIN items USING (n)
),
either AS (
    SELECT word, rarity FROM vocabulary SEMI JOIN told USING (rarity)
    UNION ALL
    SELECT DISTINCT word, NULL FROM name_words
)
SELECT word, any_value(rarity) AS rarity, (row_number() OVER (ORDER BY word) - 1)::INTEGER AS term
FROM either GROUP BY word
"""
_WORDS = """
SELECT (term::UBIGINT << 32) + (article::UBIGINT << 1) + (place = 0)::UBIGINT AS packed
FROM keys JOIN terms USING (rarity) JOIN items USING (n)
"""
_NAMES = """
SELECT (term::UBIGINT << 32) + (number::UBIGINT << 1) AS packed
FROM name_words JOIN terms USING (word)
"""
_THEMES = """
SELECT DISTINCT ((list_position($themes, theme) - 1)::UBIGINT << 32) + (article::UBIGINT << 1)
       AS packed
FROM (SELECT n, unnest(themes) AS theme FROM pages) JOIN items USING (n)
"""
_MENTIONS = f"""
SELECT (((number::UBIGINT << 32) + (article::UBIGINT << 1) + named::UBIGINT) << {KIND_BITS}) + kind
       AS packed
FROM mentioned JOIN forms USING (shown)
"""
_WORDED = "SELECT word FROM terms ORDER BY term"
_SHOWN = """
SELECT min(shown) AS shown, ('0x' || left(sha256(any_value(name)), 16))::UBIGINT AS hash
FROM forms GROUP BY number ORDER BY number
"""
_RECORDS = """
WITH cited AS (
    SELECT n, unnest(origins) AS origin, generate_subscripts(origins, 1) AS place FROM pages
    SEMI JOIN items USING (n)
),
named AS (
    SELECT n, string_agg(files.name || ':' || origin.line, '; ' ORDER BY place) AS origin
    FROM cited JOIN files ON files.file = origin.file GROUP BY n
)
SELECT json_array(lower(printf('%016x', items.page)), url, site, title, snippet, items.published,
                  items.precision,
                  CASE WHEN story IS NULL THEN '' ELSE lower(printf('%016x', story)) END,
                  [[one.name, one.type] FOR one IN entities], coalesce(origin, ''))::VARCHAR
FROM items JOIN pages USING (n) LEFT JOIN named USING (n) ORDER BY article
"""


def write_part(database: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write a part's files from the tables of parts/items.py, `keys`, `pages` and `files`."""
    database.execute(_NAME_WORDS)
    database.execute(_TERMS)
    write_arrays(folder / INDEX, _index_arrays(database))
    write_records(folder / TEXTS, _iter_records(database, _RECORDS))


def _index_arrays(database: duckdb.DuckDBPyConnection) -> Arrays:
    """Return the arrays that `Index` is read from."""
    articles = _fetch_arrays(database, _ARTICLES, tellings=TELLINGS)
    told_often = articles.pop("told_often")
    terms, names = _fetch_table(database, _WORDED), _fetch_table(database, _SHOWN)
    themes = list(THEMES.values())
    return {
        **articles,
        **to_string_arrays("terms", terms["word"].combine_chunks()),
        **to_string_arrays("shown", names["shown"].combine_chunks()),
        "hashes": names["hash"].to_numpy(),
        **to_posting_arrays("words", _sort_packed(database, _WORDS), len(terms)),
        **to_posting_arrays("names", _sort_packed(database, _NAMES), len(terms)),
        **to_posting_arrays("themes", _sort_packed(database, _THEMES, themes=themes), len(themes)),
        **_mention_arrays(_sort_packed(database, _MENTIONS), len(names), articles, told_often),
    }


def _mention_arrays(packed: Packed, names: int, articles: Arrays, told_often: Flags) -> Arrays:
    kinds = (packed & np.uint64(2**KIND_BITS - 1)).astype("u1")
    packed >>= np.uint64(KIND_BITS)
    return {
        **to_posting_arrays("mentions", packed, names),
        "kinds": kinds,
        "depths": compute_depths(packed, articles["published"], articles["prior"], told_often),
    }


def _sort_packed(database: duckdb.DuckDBPyConnection, query: str, **parameters: object) -> Packed:
    """Return packed numbers in order; to sort them here takes a tenth of what an ORDER BY does."""
    packed: Packed = _fetch_arrays(database, query, **parameters)["packed"]
    packed.sort()
    return packed


def _fetch_arrays(database: duckdb.DuckDBPyConnection, query: str, **parameters: object) -> Arrays:
    found: Any = database.execute(query, parameters).fetchnumpy()
    arrays: Arrays = found
    return arrays


def _fetch_table(database: duckdb.DuckDBPyConnection, query: str) -> Any:  # noqa: ANN401 - Arrow's
    return database.sql(query).to_arrow_table()


def _iter_records(database: duckdb.DuckDBPyConnection, query: str) -> Iterator[str]:
    found = database.execute(query)
    while rows := found.fetchmany(10_000):
        yield from (text for (text,) in rows)

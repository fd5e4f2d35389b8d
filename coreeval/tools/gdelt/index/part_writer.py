"""Writes a part: its inverted index and its texts.

If very many articles of one day mention a name, each stores its rank among them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from coreeval.tools.gdelt.index.news_index import INDEX, TEXTS
from coreeval.tools.gdelt.index.storage import (
    KEY,
    Arrays,
    Flags,
    to_posting_arrays,
    to_string_arrays,
    write_arrays,
    write_records,
)
from coreeval.tools.gdelt.words import THEMES

CROWD = 64
"""The least number of articles of one day with the same name that are ranked in advance."""
TELLINGS = 4
"""The most articles of a story that count among the best of their day; a search uses two."""
DEEPEST = 255
DAY_S = 86_400


def compute_depths(
    packed: NDArray[np.uint64],
    published: NDArray[np.int64],
    prior: NDArray[np.float32],
    told_often: Flags,
) -> NDArray[np.uint8]:
    """Return the number of mentions of a name that precede each on its day, 0 if not crowded.

    Args:
        packed: Mentions as `name << 32 | article << 1 | flag`, sorted.
        published: Epoch seconds of each article.
        prior: The part of each article's score that does not depend on the query.
        told_often: Whether `TELLINGS` articles report the same story better.
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
"""The bits of the type: a mention is sorted as name, article, whether GKG names it, and type in one
number."""
_ARTICLES = """
SELECT published::BIGINT AS published, precision, prior, page, source::UTINYINT AS source,
       (ascii(language) * 256 + ascii(language[2:]))::USMALLINT AS language,
       telling > $tellings AS told_often,
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
                  [[one.name, one.type] FOR one IN entities], coalesce(origin, ''),
                  pages.source::UTINYINT, cites, pages.language, licence)::VARCHAR
FROM items JOIN pages USING (n) LEFT JOIN named USING (n) ORDER BY article
"""


def write_part(database: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write a part's files from the tables of stories.py, `keys`, `pages` and `files`."""
    database.execute(_NAME_WORDS)
    database.execute(_TERMS)
    write_arrays(folder / INDEX, _index_arrays(database))
    write_records(folder / TEXTS, _iter_records(database, _RECORDS))


def _index_arrays(database: duckdb.DuckDBPyConnection) -> Arrays:
    """Return the arrays of a `PartIndex`."""
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
    """Return packed numbers in order; sorting them here takes a tenth of the time of ORDER BY."""
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

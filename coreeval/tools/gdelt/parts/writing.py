"""Writing a part: its inverted index and its texts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from coreeval.tools.gdelt.parts.arrays import Arrays, write_arrays
from coreeval.tools.gdelt.parts.crowds import TELLINGS, depths
from coreeval.tools.gdelt.parts.index import INDEX, TEXTS
from coreeval.tools.gdelt.parts.postings import Flags, posting_arrays, string_arrays
from coreeval.tools.gdelt.parts.texts import write_texts
from coreeval.tools.gdelt.themes import THEMES

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
    write_arrays(folder / INDEX, _index(database))
    write_texts(folder / TEXTS, _rows(database, _RECORDS))


def _index(database: duckdb.DuckDBPyConnection) -> Arrays:
    """Return the arrays that `Index` is read from."""
    articles = _fetched(database, _ARTICLES, tellings=TELLINGS)
    told_often = articles.pop("told_often")
    terms, names = _table(database, _WORDED), _table(database, _SHOWN)
    themes = list(THEMES.values())
    return {
        **articles,
        **string_arrays("terms", terms["word"].combine_chunks()),
        **string_arrays("shown", names["shown"].combine_chunks()),
        "hashes": names["hash"].to_numpy(),
        **posting_arrays("words", _sorted(database, _WORDS), len(terms)),
        **posting_arrays("names", _sorted(database, _NAMES), len(terms)),
        **posting_arrays("themes", _sorted(database, _THEMES, themes=themes), len(themes)),
        **_mentions(_sorted(database, _MENTIONS), len(names), articles, told_often),
    }


def _mentions(packed: Packed, names: int, articles: Arrays, told_often: Flags) -> Arrays:
    kinds = (packed & np.uint64(2**KIND_BITS - 1)).astype("u1")
    packed >>= np.uint64(KIND_BITS)
    return {
        **posting_arrays("mentions", packed, names),
        "kinds": kinds,
        "depths": depths(packed, articles["published"], articles["prior"], told_often),
    }


def _sorted(database: duckdb.DuckDBPyConnection, query: str, **parameters: object) -> Packed:
    """Return packed numbers in order; to sort them here takes a tenth of what an ORDER BY does."""
    packed: Packed = _fetched(database, query, **parameters)["packed"]
    packed.sort()
    return packed


def _fetched(database: duckdb.DuckDBPyConnection, query: str, **parameters: object) -> Arrays:
    found: Any = database.execute(query, parameters).fetchnumpy()
    arrays: Arrays = found
    return arrays


def _table(database: duckdb.DuckDBPyConnection, query: str) -> Any:  # noqa: ANN401 - Arrow's
    return database.sql(query).to_arrow_table()


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> Iterator[str]:
    found = database.execute(query)
    while rows := found.fetchmany(10_000):
        yield from (text for (text,) in rows)

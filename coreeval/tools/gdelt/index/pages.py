"""Turns segment rows into pages: joins, dates, checks and screens them, and adds their words.

SQL macros process plain texts, and this package's Python functions all others. So the common case
takes a tenth of the time. `PLAIN` decides which is used, and a test compares both.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
from duckdb.func import SPECIAL

from coreeval.languages import ENGLISH
from coreeval.tools.gdelt.index.news_index import SOURCES
from coreeval.tools.gdelt.page_text import SCREEN_MACROS as SCREEN
from coreeval.tools.gdelt.page_text import without_outlet
from coreeval.tools.gdelt.rows import (
    CLOCK_SKEW,
    OLDEST,
    canonical,
    date_in_url,
    host_of,
    is_front_page,
)
from coreeval.tools.gdelt.words import (
    FOREIGN_WORDS,
    THEMES,
    UNKNOWN_LANGUAGE,
    key_of,
    looks_english,
    plain_words,
)

PLAIN = (
    "[ -%''-^`-~\u00c0-\u024f\u1e00-\u1eff\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u20ac£¥°«»]*"
)
"""SQL splits texts of these characters, which are ASCII apart from accents: no `&`, which may join
letters, and no `_`."""
_MARKS = "[ -~\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u20ac£¥°«»]*"
_MACROS = f"""
CREATE MACRO host_part(url) AS lower(split_part(url, '/', 3));
CREATE MACRO is_plain_url(url) AS
    regexp_full_match(url, 'https?://[A-Za-z0-9.-]+(?:/[!$-.0-;=@-Z_a-z~/]*)?')
    AND NOT contains(url, '/amp');
CREATE MACRO site_of(url) AS
    CASE WHEN is_plain_url(url) THEN regexp_replace(host_part(url), '^www\\.', '')
         ELSE host_of(url) END;
CREATE MACRO plain_page(url) AS
    regexp_replace(regexp_replace(host_part(url), '^www\\.', ''),
                   '^(?:www[0-9]?|amp|m|mobile)\\.', '')
    || rtrim(substr(url, length(split_part(url, '/', 1)) + length(host_part(url)) + 3), '/');
CREATE MACRO page_of(url) AS
    ('0x' || left(sha256(CASE WHEN is_plain_url(url) THEN plain_page(url)
                              ELSE canonical(url) END), 16))::UBIGINT;
CREATE MACRO day_named(url, crawled) AS
    CASE WHEN regexp_matches(url, '/[0-9]{{4}}/[0-9A-Za-z]{{1,3}}/[0-9]|[0-9]{{4}}-[0-9]{{2}}-'
                                  '|/(?i:Portal:Current_events)/[0-9]')
         THEN date_in_url(url, crawled) END;
CREATE MACRO names_a_site(url) AS
    CASE WHEN regexp_matches(url, '^[^/]*//[^/?#]*/*(?:index[.](?:html|php))?/*(?:[?#]|$)')
         THEN is_front_page(url) ELSE false END;
CREATE MACRO headline(title) AS
    CASE WHEN regexp_matches(title, ' [|\u2013\u2014-] ') THEN without_outlet(title) ELSE title END;
CREATE MACRO may_be_english(title) AS
    CASE WHEN regexp_full_match(title, '{_MARKS}')
              AND regexp_matches(title, '(?:^|[^\\w-])[A-Za-z]+(?:$|[^\\w-])')
              AND NOT regexp_matches(title, '\\b(?:{"|".join(FOREIGN_WORDS)})\\b')
         THEN true ELSE looks_english(title) END;
CREATE MACRO is_plain(text) AS
    regexp_full_match(text, '{PLAIN}') AND regexp_full_match(strip_accents(text), '{_MARKS}')
    AND NOT regexp_matches(text, '[''\u2019][sS]?[\u00c0-\u024f\u1e00-\u1eff]')
    AND NOT regexp_matches(strip_accents(text), '[A-Za-z]\\.[A-Za-z]\\.');
CREATE MACRO is_plainest(text) AS
    regexp_full_match(text, '[ -%(-^`-~]*') AND NOT regexp_matches(text, '[A-Za-z]\\.[A-Za-z]\\.');
CREATE MACRO split_words(text) AS
    CASE WHEN is_plainest(text) THEN regexp_extract_all(text, '[A-Za-z0-9]+')
         WHEN is_plain(text) THEN regexp_extract_all(
        regexp_replace(strip_accents(text), '[''\u2019][sS]\\b', ' ', 'g'), '[A-Za-z0-9]+')
    ELSE plain_words(text) END;
"""


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Add this module's macros to a connection, which the caller closes."""
    for name, (function, arguments, result) in _PYTHON.items():
        connection.create_function(name, function, arguments, result, null_handling=SPECIAL)
    connection.execute(_MACROS + SCREEN)


def _date_in_url(url: str, crawled_at: int) -> int | None:
    """Return `date_in_url` in epoch seconds."""
    day = date_in_url(url, datetime.fromtimestamp(crawled_at, tz=UTC))
    return int(day.timestamp()) if day else None


_PYTHON: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    "canonical": (canonical, ["VARCHAR"], "VARCHAR"),
    "host_of": (host_of, ["VARCHAR"], "VARCHAR"),
    "without_outlet": (without_outlet, ["VARCHAR"], "VARCHAR"),
    "looks_english": (looks_english, ["VARCHAR"], "BOOLEAN"),
    "is_front_page": (is_front_page, ["VARCHAR"], "BOOLEAN"),
    "plain_words": (plain_words, ["VARCHAR"], "VARCHAR[]"),
    "key_of": (key_of, ["VARCHAR"], "VARCHAR"),
    "date_in_url": (_date_in_url, ["VARCHAR", "BIGINT"], "BIGINT"),
}
"""The Python functions by their names in SQL."""


EXACT, BY_URL, BY_CLUSTER, BY_CRAWL = range(4)
"""Positions in `PRECISIONS`, best first."""

# Neighbouring days are only compared: long columns that this does not need are omitted.
_ROWS = """
CREATE TABLE rows AS
WITH read AS (
    SELECT *, split_part(filename, '/', -2) AS day
    FROM (
        FROM read_parquet($segments, filename = true, union_by_name = true)
        UNION ALL BY NAME SELECT NULL::VARCHAR[] AS cites, NULL::VARCHAR AS licence WHERE false
    )
)
SELECT page_of(url) AS page, day, url, title, snippet, crawled_at, stated_at, language, file, line,
       greatest(coalesce(list_position($sources, feed), 1), 1) - 1 AS source,
       coalesce(cites, []) AS cites, coalesce(licence, '') AS licence,
       if(day BETWEEN $first AND $last, coalesce(entities, []), []) AS entities,
       if(day BETWEEN $first AND $last, [one FOR one IN themes IF one IN $themes], []) AS themes
FROM read
"""
# The best row of a page, completed by values that only other rows have. `worth` orders a page's
# rows.
_JOINED = f"""
WITH shared AS (
    SELECT page FROM rows GROUP BY page HAVING count(*) > 1
),
ordered AS (
    SELECT page, day, crawled_at, rowid AS row, snippet <> '' AS described,
           len(entities) > 0 AS named, file, line,
           (((stated_at IS NULL)::HUGEINT * 2 + (NOT described)::HUGEINT) * 2
            + (NOT named)::HUGEINT << 100) + (crawled_at::HUGEINT << 60)
           + ((language = '{UNKNOWN_LANGUAGE}')::HUGEINT << 59)
           + (file::HUGEINT << 32) + line AS worth
    FROM rows SEMI JOIN shared USING (page)
),
told AS (
    SELECT page, min(day) AS day, min(crawled_at) AS crawled_at, arg_min(row, worth) AS best,
           arg_min(row, worth) FILTER (described) AS describing,
           arg_min(row, worth) FILTER (named) AS naming,
           arg_min(row, (crawled_at, worth)) AS earliest
    FROM ordered GROUP BY page
),
completed AS (
    SELECT told.page, told.day, best.url, best.title, coalesce(describing.snippet, '') AS snippet,
           told.crawled_at, best.stated_at, best.language,
           coalesce(naming.entities, []) AS entities, coalesce(naming.themes, []) AS themes,
           best.source, best.cites, best.licence,
           {{'file': best.file, 'line': best.line}} AS origin,
           [{{'file': describing.file, 'line': describing.line}},
            {{'file': naming.file, 'line': naming.line}},
            {{'file': earliest.file, 'line': earliest.line}}] AS others
    FROM told JOIN rows best ON best.rowid = told.best
    LEFT JOIN rows describing
           ON describing.rowid = told.describing AND describing.source = best.source
    LEFT JOIN rows naming ON naming.rowid = told.naming
    JOIN rows earliest ON earliest.rowid = told.earliest
),
joined AS (
    SELECT * EXCLUDE (origin, others), [origin] || [
               one FOR one IN list_sort(list_distinct(others))
               IF one.file IS NOT NULL AND one <> origin
           ] AS origins
    FROM completed
    UNION ALL BY NAME
    SELECT * EXCLUDE (file, line), [{{'file': file, 'line': line}}] AS origins
    FROM rows ANTI JOIN shared USING (page)
),
"""
_PAGES = f"""
CREATE TABLE unnumbered AS
{_JOINED}
stated AS (
    SELECT *, site_of(url) AS site, if(source > 0, title, headline(title)) AS headline,
           CASE WHEN stated_at BETWEEN {int(OLDEST.timestamp())}
                                   AND crawled_at + {int(CLOCK_SKEW.total_seconds())}
                THEN least(stated_at, crawled_at) END AS exact
    FROM joined
),
dated AS (
    SELECT *, CASE WHEN exact IS NULL THEN day_named(url, crawled_at) END AS by_url FROM stated
),
spoken AS (
    SELECT *, CASE WHEN language = '{ENGLISH}' AND NOT may_be_english(title)
                   THEN '{UNKNOWN_LANGUAGE}' ELSE language END AS checked
    FROM dated
)
SELECT page, site, url, title, headline, snippet, entities,
       themes, origins, source, cites, licence, checked AS language,
       day BETWEEN $first AND $last AND page NOT IN (FROM known) AS own,
       coalesce(exact, by_url, crawled_at) AS published,
       CASE WHEN exact IS NOT NULL THEN {EXACT} WHEN by_url IS NOT NULL THEN {BY_URL}
            ELSE {BY_CRAWL} END::UTINYINT AS precision,
       CASE WHEN spoken.language = '{UNKNOWN_LANGUAGE}' THEN 'no_language'
            WHEN checked = '{UNKNOWN_LANGUAGE}' THEN 'unknown_language'
            WHEN NOT list_contains($languages, checked) THEN 'other_language'
            WHEN names_a_site(url) THEN 'front_page'
            ELSE screened(checked, title, snippet,
                          len([1 FOR one IN entities IF one.type = 'person']) > 0)
       END AS dropped
FROM spoken
"""


_NUMBERED = "CREATE VIEW pages AS SELECT rowid::INTEGER AS n, * FROM unnumbered"


def make_pages(
    database: duckdb.DuckDBPyConnection,
    segments: Sequence[str],
    first: str,
    last: str,
    outdated: Sequence[int] = (),
    languages: Sequence[str] = (ENGLISH,),
) -> int:
    """Create the view `pages` from segment files; return the number of the span's own rows.

    The table `known`, with the pages of earlier parts, must exist. Pages first seen on days from
    `first` to `last` (`YYYY-MM-DD`) and not known are the span's `own`; the others are only for
    comparison. Rows of `outdated` files are counted and not used. Pages in other languages than
    `languages` are not offered.
    """
    span = {"first": first, "last": last}
    themes = list(THEMES.values())
    database.execute(
        _ROWS,
        {"segments": list(segments), "themes": themes, "sources": list(SOURCES), **span},
    )
    counted = database.execute("SELECT count(*) FROM rows WHERE day BETWEEN $first AND $last", span)
    ((rows,),) = counted.fetchall()
    database.execute("DELETE FROM rows WHERE file IN (SELECT unnest(?::INTEGER[]))", [outdated])
    database.execute(_PAGES, {"languages": list(languages), **span})
    database.execute(_NUMBERED)
    database.execute("DROP TABLE rows")
    return int(rows)


# Each distinct token is normalised once, by the Python code that normalises queries.
_TOKENS = """
CREATE TABLE tokens AS
SELECT n, 0::UTINYINT AS place, unnest(split_words(headline)) AS token FROM pages
UNION ALL
SELECT n, 1::UTINYINT, unnest(split_words(snippet))
FROM pages WHERE own AND dropped IS NULL AND snippet <> ''
"""
_SPELT = """
CREATE TABLE normal AS
WITH spelt AS (
    SELECT token, count(*) FILTER (place = 0) AS titles FROM tokens GROUP BY token
)
SELECT token, titles, key_of(token) AS word FROM spelt
"""
_VOCABULARY = """
CREATE TABLE vocabulary AS
SELECT word, row_number() OVER (ORDER BY sum(titles), word)::INTEGER AS rarity
FROM normal WHERE word <> '' GROUP BY word
"""
_KEYS = """
CREATE TABLE keys AS
SELECT n, rarity, min(place) AS place
FROM tokens JOIN normal USING (token) JOIN vocabulary USING (word) GROUP BY n, rarity
"""


def make_keys(database: duckdb.DuckDBPyConnection) -> None:
    """Create `vocabulary` (word, rarity) and `keys` (page n, rarity, place) from `pages`.

    `rarity` numbers the words, those in the fewest headlines first; `place` is 0 for a word of the
    headline, 1 for one that occurs only in the description.
    """
    for statement in (_TOKENS, _SPELT, _VOCABULARY, _KEYS, "DROP TABLE tokens; DROP TABLE normal"):
        database.execute(statement)

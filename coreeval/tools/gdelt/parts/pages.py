"""From segment rows to pages: joined by address, dated, checked for language, screened."""

from collections.abc import Sequence

import duckdb

from coreeval.tools.gdelt.dates import CLOCK_SKEW, OLDEST
from coreeval.tools.gdelt.language import UNKNOWN

OFFERED = "en"
"""The language of the benchmarks; news in others would have to be translated first."""
EXACT, BY_URL, BY_CLUSTER, BY_CRAWL = range(4)
"""Positions in `PRECISIONS`, best first."""

# Neighbouring days are only compared: what is long and plays no part in it is left out.
_ROWS = """
CREATE TABLE rows AS
WITH read AS (
    SELECT *, split_part(filename, '/', -2) AS day
    FROM read_parquet($segments, filename = true)
)
SELECT page_of(url) AS page, day, url, title, snippet, crawled_at, stated_at, language, file, line,
       if(day BETWEEN $first AND $last, coalesce(entities, []), []) AS entities,
       if(day BETWEEN $first AND $last, coalesce(themes, []), []) AS themes
FROM read
"""
# The better row of a page, completed by what only the others have.
_JOINED = """
WITH shared AS (
    SELECT page FROM rows GROUP BY page HAVING count(*) > 1
),
placed AS (
    SELECT *, row_number() OVER (
        PARTITION BY page
        ORDER BY stated_at IS NULL, snippet = '', len(entities) = 0, crawled_at, file, line
    ) AS place
    FROM rows SEMI JOIN shared USING (page)
),
completed AS (
    SELECT page, min(day) AS day, arg_min(url, place) AS url, arg_min(title, place) AS title,
           coalesce(arg_min(snippet, place) FILTER (snippet <> ''), '') AS snippet,
           min(crawled_at) AS crawled_at, arg_min(stated_at, place) AS stated_at,
           arg_min(language, place) AS language,
           arg_min(entities, place + 1000 * (len(entities) = 0)::INTEGER) AS entities,
           arg_min(themes, place + 1000 * (len(themes) = 0)::INTEGER) AS themes,
           list({'file': file, 'line': line, 'place': place, 'snippet': snippet <> '',
                 'entities': len(entities) > 0, 'crawled_at': crawled_at} ORDER BY place) AS told
    FROM placed GROUP BY page
),
joined AS (
    SELECT * EXCLUDE (told),
           [{'file': one.file, 'line': one.line} FOR one IN told
            IF one.place = 1 OR one.snippet AND NOT told[1].snippet
               OR one.entities AND NOT told[1].entities OR one.crawled_at < told[1].crawled_at
           ] AS origins
    FROM completed
    UNION ALL BY NAME
    SELECT * EXCLUDE (file, line), [{'file': file, 'line': line}] AS origins
    FROM rows ANTI JOIN shared USING (page)
),
"""
_PAGES = f"""
CREATE TABLE pages AS
{_JOINED}
stated AS (
    SELECT *, site_of(url) AS site, headline(title) AS headline,
           CASE WHEN stated_at BETWEEN {int(OLDEST.timestamp())}
                                   AND crawled_at + {int(CLOCK_SKEW.total_seconds())}
                THEN least(stated_at, crawled_at) END AS exact
    FROM joined
),
dated AS (
    SELECT *, CASE WHEN exact IS NULL THEN day_named(url, crawled_at) END AS by_url FROM stated
),
spoken AS (
    SELECT *, CASE WHEN language = '{OFFERED}' AND NOT may_be_english(title)
                   THEN '{UNKNOWN}' ELSE language END AS checked
    FROM dated
)
SELECT (row_number() OVER ())::INTEGER AS n, page, site, url, title, headline, snippet, entities,
       themes, origins,
       day BETWEEN $first AND $last AND page NOT IN (FROM known) AS own,
       coalesce(exact, by_url, crawled_at) AS published,
       CASE WHEN exact IS NOT NULL THEN {EXACT} WHEN by_url IS NOT NULL THEN {BY_URL}
            ELSE {BY_CRAWL} END::UTINYINT AS precision,
       CASE WHEN checked = '{UNKNOWN}' THEN 'unknown_language'
            WHEN checked <> '{OFFERED}' THEN 'other_language'
            WHEN names_a_site(url) THEN 'front_page'
            ELSE screened(title, snippet, len([1 FOR one IN entities IF one.type = 'person']) > 0)
       END AS dropped
FROM spoken
"""


def make_pages(
    database: duckdb.DuckDBPyConnection, segments: Sequence[str], first: str, last: str
) -> int:
    """Make the table `pages` from segment files; return how many rows the span itself has.

    `known`, a table of the pages that earlier parts have, must be there. Pages first seen on days
    from `first` to `last` (`YYYY-MM-DD`) and not known are the span's `own`; the others are there
    to be compared with.
    """
    span = {"first": first, "last": last}
    database.execute(_ROWS, {"segments": list(segments), **span})
    database.execute(_PAGES, span)
    counted = database.execute("SELECT count(*) FROM rows WHERE day BETWEEN $first AND $last", span)
    ((rows,),) = counted.fetchall()
    database.execute("DROP TABLE rows")
    return int(rows)

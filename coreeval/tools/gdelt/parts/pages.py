"""From segment rows to pages: joined by address, dated, checked for language, screened."""

from collections.abc import Sequence

import duckdb

from coreeval.tools.gdelt.dates import CLOCK_SKEW, OLDEST
from coreeval.tools.gdelt.language import UNKNOWN
from coreeval.tools.gdelt.themes import THEMES

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
       if(day BETWEEN $first AND $last, [one FOR one IN themes IF one IN $themes], []) AS themes
FROM read
"""
# The better row of a page, completed by what only the others have. `worth` orders a page's rows.
_JOINED = """
WITH shared AS (
    SELECT page FROM rows GROUP BY page HAVING count(*) > 1
),
ordered AS (
    SELECT page, day, crawled_at, rowid AS row, snippet <> '' AS described,
           len(entities) > 0 AS named, file, line,
           (((stated_at IS NULL)::HUGEINT * 2 + (NOT described)::HUGEINT) * 2
            + (NOT named)::HUGEINT << 100) + (crawled_at::HUGEINT << 60)
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
           {'file': best.file, 'line': best.line} AS origin,
           [{'file': describing.file, 'line': describing.line},
            {'file': naming.file, 'line': naming.line},
            {'file': earliest.file, 'line': earliest.line}] AS others
    FROM told JOIN rows best ON best.rowid = told.best
    LEFT JOIN rows describing ON describing.rowid = told.describing
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
    SELECT * EXCLUDE (file, line), [{'file': file, 'line': line}] AS origins
    FROM rows ANTI JOIN shared USING (page)
),
"""
_PAGES = f"""
CREATE TABLE unnumbered AS
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
SELECT page, site, url, title, headline, snippet, entities,
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


_NUMBERED = "CREATE VIEW pages AS SELECT rowid::INTEGER AS n, * FROM unnumbered"


def make_pages(
    database: duckdb.DuckDBPyConnection, segments: Sequence[str], first: str, last: str
) -> int:
    """Make the view `pages` from segment files; return how many rows the span itself has.

    `known`, a table of the pages that earlier parts have, must be there. Pages first seen on days
    from `first` to `last` (`YYYY-MM-DD`) and not known are the span's `own`; the others are there
    to be compared with.
    """
    span = {"first": first, "last": last}
    database.execute(_ROWS, {"segments": list(segments), "themes": list(THEMES.values()), **span})
    database.execute(_PAGES, span)
    database.execute(_NUMBERED)
    counted = database.execute("SELECT count(*) FROM rows WHERE day BETWEEN $first AND $last", span)
    ((rows,),) = counted.fetchall()
    database.execute("DROP TABLE rows")
    return int(rows)

"""What a part offers: its articles, numbered in order of time, and the names that each mentions."""

import duckdb

from coreeval.tools.gdelt.names import title_names
from coreeval.tools.gdelt.parts.index import KINDS
from coreeval.tools.gdelt.parts.pages import BY_CLUSTER, BY_CRAWL

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
    runs = title_names([title for _, title, _ in rows])
    found = [(n, run) for (n, _, named), names in zip(rows, runs, strict=True)
             if not named for run in names]  # fmt: skip
    numbers, names = [n for n, _ in found], [name for _, name in found]
    database.execute(
        "CREATE TABLE titled AS SELECT unnest(?::INTEGER[]) AS n, unnest(?::VARCHAR[]) AS name",
        [numbers, names],
    )

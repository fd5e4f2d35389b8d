"""What is written into a part: articles, their words, names and themes, each sorted for look-up.

Every posting carries what ranking needs (time, precision, prior, story, site), so that a search
joins nothing; texts are read for the winners alone.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb

from coreeval.tools.gdelt.names import title_names
from coreeval.tools.gdelt.parts.pages import BY_CLUSTER, BY_CRAWL
from coreeval.tools.gdelt.parts.texts import write_texts

TITLED_UP_TO = 20_000
"""Articles of a part up to which headlines are searched for names: enough for article lists; where
there is more, there is GKG, which has named everybody who matters."""
TELLINGS = 4
"""Articles of a story that count among the best of their day; a search takes two of them."""
CROWD = 64
"""Articles of one day that name somebody, from which on they are ranked beforehand (`depth`)."""
TEXTS = "texts.bin"
TABLES = ("articles", "words", "lexicon", "mentions", "names", "spellings", "themes")
_PARQUET = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 30720"
"""Small groups of rows: what is looked up is a few hundred rows, and a group is unpacked whole."""

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
_POSTED = "published, article, precision, prior, (story >> 32)::UINTEGER AS story, teller"
_UNNAMED = f"""
SELECT n, title, len(entities) > 0 FROM pages SEMI JOIN items USING (n) LIMIT {TITLED_UP_TO + 1}
"""
_MENTIONED = """
CREATE TABLE mentioned AS
WITH listed AS (
    SELECT n, unnest(entities) AS entity FROM pages SEMI JOIN items USING (n)
)
SELECT n, lower(entity.name) AS name, entity.name AS shown, entity.type, entity."at" AS first,
       entity.n AS times
FROM listed
UNION ALL
SELECT n, lower(name), name, 'other', 0, 0 FROM titled
"""
_SPELT = """
CREATE TABLE spelt AS
SELECT name, min(shown) AS shown, count(*) AS articles FROM mentioned GROUP BY name
"""
_FILES: dict[str, str] = {
    "articles": """
        SELECT article, page, published, precision, story FROM items ORDER BY article""",
    "words": f"""
        SELECT word, {_POSTED}, place = 0 AS titled
        FROM keys JOIN vocabulary USING (rarity) JOIN items USING (n)
        ORDER BY spelling, published, article""",
    "lexicon": """
        SELECT word, count(*) AS articles
        FROM keys JOIN vocabulary USING (rarity) SEMI JOIN items USING (n)
        GROUP BY word ORDER BY word""",
    "mentions": f"""
        WITH posted AS (
            SELECT name, {_POSTED}, type, first, times, telling, published // 86400 AS day
            FROM mentioned JOIN items USING (n)
        ),
        crowded AS (
            SELECT name, day FROM posted GROUP BY ALL HAVING count(*) > {CROWD}
        ),
        ranked AS (
            SELECT *, least(255, row_number() OVER (
                PARTITION BY name, day ORDER BY telling > {TELLINGS}, prior DESC, article
            ) - 1)::UTINYINT AS depth
            FROM posted SEMI JOIN crowded USING (name, day)
            UNION ALL
            SELECT *, 0::UTINYINT FROM posted ANTI JOIN crowded USING (name, day)
        )
        SELECT * EXCLUDE (telling, day) FROM ranked ORDER BY name, published, article""",
    "names": """
        WITH tokens AS (
            SELECT name, articles, unnest(split_words(shown)) AS token FROM spelt
        ),
        normal AS (
            SELECT token, key_of(token) AS word FROM (SELECT DISTINCT token FROM tokens)
        )
        SELECT DISTINCT word, name, articles FROM tokens JOIN normal USING (token)
        WHERE word <> '' ORDER BY word, name""",
    "spellings": "SELECT name, shown FROM spelt ORDER BY name",
    "themes": f"""
        SELECT theme, {_POSTED}
        FROM (SELECT n, unnest(themes) AS theme FROM pages) JOIN items USING (n)
        ORDER BY theme, published, article""",
}
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


def write_tables(database: duckdb.DuckDBPyConnection, folder: Path, part: int) -> None:
    """Write a part's files from `pages`, `keys`, `stories`, `salience` and `files`.

    `part` is its number, in every row of every table.
    """
    database.execute(_DATED)
    database.execute(_ITEMS)
    _find_names(database)
    database.execute(_MENTIONED)
    database.execute(_SPELT)
    for table, query in _FILES.items():
        target = str(folder / f"{table}.parquet").replace("'", "''")
        database.execute(
            f"COPY (SELECT *, {part}::INTEGER AS part FROM ({query})) TO '{target}' ({_PARQUET})"
        )
    write_texts(folder / TEXTS, _rows(database, _RECORDS))


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> Iterator[str]:
    found = database.execute(query)
    while rows := found.fetchmany(10_000):
        yield from (text for (text,) in rows)


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

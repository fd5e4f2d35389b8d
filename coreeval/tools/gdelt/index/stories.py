"""Groups pages with near-duplicate headlines into stories, and finds the names in each.

A story is the same event reported by several sites (research: gdelt §5). Articles are numbered in
order of time.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.tools.gdelt.index.news_index import KINDS
from coreeval.tools.gdelt.index.pages import BY_CLUSTER, BY_CRAWL
from coreeval.tools.gdelt.words import find_title_names

MIN_JACCARD = 0.6
SPAN = timedelta(hours=48)
"""The time span and similarity within which headlines report the same story (research: gdelt §5;
untuned)."""
MIN_WORDS = 3
"""The fewest content words of a headline that need not equal its near-duplicate."""
_SECONDS = int(SPAN.total_seconds())

_HEADS = f"""
CREATE TABLE heads AS
WITH worded AS (
    SELECT n, list(rarity ORDER BY rarity) AS words FROM keys WHERE place = 0 GROUP BY n
)
SELECT n, page, words, published, published // {_SECONDS} AS stretch
FROM worded JOIN pages USING (n)
"""
# The same words within one period of 48 hours; pairs are at most one period apart.
_NODES = """
CREATE TABLE nodes AS
SELECT (row_number() OVER ())::INTEGER AS node, words, stretch, items
FROM (SELECT words, stretch, count(*) AS items FROM heads GROUP BY ALL)
"""
# A mask has a bit for each word: the masks of the words that only one of two nodes has exclude most
# pairs before their words are compared.
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
"""The fewest words that two nodes above the threshold have in common."""
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
    """Create the table `stories` (page n, leader's n) of pages that share a story."""
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
    """Return each member's leader; members are (member, node, time) in order of time."""
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
"""The most articles of a part whose headlines are searched for names: enough for article lists;
larger parts have GKG, which names everybody relevant."""

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
# The weights are from research: gdelt §8; without copies that show how much an event is noticed,
# the number of sources in GDELT's Mentions is used.
_ITEMS = """
CREATE TABLE items AS
WITH kept AS (
    SELECT n, page, site, source, language, source > 0 OR snippet <> '' AS described,
           asks(title) AS asks,
           told.story,
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
SELECT n, page, published, precision, story, source, language,
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
    """Create `items`, `mentioned` and `forms` from `pages`, `stories` and `salience`.

    `items` are the articles on offer; `mentioned` has the names in each (`named`: by GKG, not only
    by its headline); `forms` has the spellings of each name. Names are numbered in alphabetical
    order.
    """
    database.execute(_DATED)
    database.execute(_ITEMS)
    _find_names(database)
    database.execute(_MENTIONED, {"kinds": list(KINDS)})
    database.execute(_FORMS)


def _find_names(database: duckdb.DuckDBPyConnection) -> None:
    """Create the table `titled` (n, name) of headline names of articles without names from GKG."""
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

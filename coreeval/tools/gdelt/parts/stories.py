"""Near-duplicate headlines: the same event told by several sites (research: gdelt §5).

A headline joins the earliest leader within the span whose words overlap enough, so a story never
grows beyond the span. Copies word for word are one node; between nodes, a pair above the threshold
shares two of its rarest words (prefix filtering), so only such pairs are compared and none is
missed.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

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
    found = leaders(database.execute(_MEMBERS).fetchall(), pairs)
    told = pa.table({"n": list(found), "leader": list(found.values())},
                    schema=pa.schema([("n", pa.int32()), ("leader", pa.int32())]))  # fmt: skip
    database.register("told", told)
    database.execute("CREATE TABLE stories AS FROM told")
    database.unregister("told")
    database.execute("DROP TABLE heads; DROP TABLE nodes; DROP TABLE signs; DROP TABLE pairs")


def leaders(
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

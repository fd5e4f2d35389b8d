"""Finding and ranking evidence: one SQL statement for a batch of queries.

It works in stages, so that little is read: postings of the rarest words inside the window, then
those of the other words for the articles found, then a cap for each query. Every posting carries
what ranking needs; texts are read by whoever calls, for the winners.
"""

from collections.abc import Sequence
from datetime import datetime

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.questions import contexts, spellings, weighed

CAP = 400
"""Candidates of a query that are ranked with regard to stories; enough for 20 stories that 20 sites
tell. Beyond it are articles with fewer of the words asked for, or a lower score."""
NAMES_AT_MOST = 200
"""Names that a spelling may stand for, the most mentioned first: 'John' is part of thousands."""

# The weights and the decay are research: gdelt §8, a starting point that nobody has tuned. A match
# is either in the text (title and snippet together) or in one entity's name: the words of a name
# that stand in two different names are not a mention of it. An article with more of a query's words
# always comes before one with fewer, by their weight.
_IN_WINDOW = "published >= $start AND published < $end AND precision <= $worst"
_POSTED = "part, article, published, prior, story, teller"
_FOUND = f"""
WITH seeds AS (
    SELECT query, spelling, weight, titled, {_POSTED}
    FROM words JOIN asked USING (word) WHERE seed AND {_IN_WINDOW}
),
others AS (
    SELECT query, spelling, word, weight FROM asked WHERE NOT seed
),
missing AS (
    SELECT DISTINCT query, spelling, part, article, word, others.weight
    FROM seeds JOIN others USING (query, spelling)
),
present AS (
    SELECT part, article, word, titled FROM words
    WHERE word IN (SELECT word FROM others) AND {_IN_WINDOW}
),
completed AS (
    SELECT query, spelling, part, article, weight, titled
    FROM present JOIN missing USING (part, article, word)
),
gathered AS (
    SELECT query, spelling, part, article, sum(weight) AS found, bool_and(titled) AS titled,
           any_value(published) AS published, any_value(prior) AS prior,
           any_value(story) AS story, any_value(teller) AS teller
    FROM (FROM seeds UNION ALL BY NAME FROM completed) GROUP BY ALL
),
in_text AS (
    SELECT query, {_POSTED}, round(found, 6) AS whole, if(titled, 1.0, 0.8) AS relevance, alone
    FROM gathered JOIN needed USING (query, spelling) WHERE round(found, 6) >= share
),
meant AS (
    SELECT query, spelling, part, name, round(sum(weight), 6) AS whole,
           any_value(articles) AS articles
    FROM names JOIN asked USING (word) GROUP BY query, spelling, part, name
),
named AS (
    SELECT query, part, name, whole, alone FROM meant JOIN needed USING (query, spelling)
    WHERE whole >= share
    QUALIFY row_number() OVER (
        PARTITION BY query, spelling, part ORDER BY whole DESC, articles DESC, name
    ) <= {NAMES_AT_MOST}
),
in_names AS (
    SELECT query, {_POSTED}, whole, 0.5 AS relevance, alone
    FROM mentions JOIN named USING (part, name) WHERE times > 0 AND {_IN_WINDOW}
),
candidates AS (
    SELECT query, part, article, max(whole) AS whole, max(relevance) AS relevance,
           bool_and(alone) AS alone, any_value(published) AS published,
           any_value(prior) AS prior, any_value(story) AS story, any_value(teller) AS teller
    FROM (FROM in_text UNION ALL FROM in_names) GROUP BY ALL
),
"""
# A name of one word means many: where a query has a context, a word or a name of it must be there.
_SETTLED = f"""
context_names AS (
    SELECT query, part, name FROM names JOIN contexts USING (word)
    GROUP BY query, context, part, name HAVING count(*) = any_value(size)
),
settled AS (
    SELECT query, part, article FROM words JOIN contexts USING (word) WHERE {_IN_WINDOW}
    UNION
    SELECT query, part, article FROM mentions JOIN context_names USING (part, name)
    WHERE {_IN_WINDOW}
),
matches AS (
    FROM candidates WHERE NOT alone
    UNION ALL
    FROM candidates SEMI JOIN settled USING (query, part, article) WHERE alone
),
"""
_RANKED = f"""
scored AS (
    SELECT query, {_POSTED}, whole,
           coalesce(story, -1 - (part::BIGINT << 32) - article) AS event,
           0.40 * relevance + 0.20 * exp((published - $end) / $decay) + prior AS score
    FROM matches
    QUALIFY row_number() OVER (
        PARTITION BY query ORDER BY whole DESC, score DESC, published DESC, part, article
    ) <= $cap
),
placed AS (
    SELECT *, row_number() OVER best AS place, first_value(teller) OVER best AS lead_teller,
           first_value(score) OVER best AS lead_score, first_value(whole) OVER best AS lead_whole,
           first_value(published) OVER best AS lead_published,
           first_value((part, article)) OVER best AS lead
    FROM scored
    WINDOW best AS (
        PARTITION BY query, event ORDER BY whole DESC, score DESC, published DESC, part, article
    )
),
pairs AS (
    SELECT * FROM placed QUALIFY row_number() OVER (
        PARTITION BY query, event, teller = lead_teller ORDER BY place
    ) = 1
)
SELECT query, part, article, row_number() OVER (
    PARTITION BY query
    ORDER BY lead_whole DESC, lead_score DESC, lead_published DESC, lead, place
) AS rank
FROM pairs QUALIFY rank <= $k ORDER BY query, rank
"""
SEARCH = _FOUND + _SETTLED + _RANKED
_HELD = """
SELECT word, sum(articles)::BIGINT FROM lexicon
WHERE word IN (SELECT unnest($words)) GROUP BY word
"""
_ASKED = pa.schema(
    [("query", pa.int32()), ("spelling", pa.int32()), ("word", pa.string()),
     ("weight", pa.float64()), ("share", pa.float64()), ("seed", pa.bool_()),
     ("alone", pa.bool_())]
)  # fmt: skip
_CONTEXTS = pa.schema(
    [("query", pa.int32()), ("context", pa.int32()), ("word", pa.string()), ("size", pa.int32())]
)

Place = tuple[int, int]
"""Where an article is: its part, and its number there."""


def search(
    cursor: duckdb.DuckDBPyConnection,
    queries: Sequence[EntityQuery],
    window: Window,
    k: int,
    worst: int,
    articles: int,
) -> list[list[Place]]:
    """Return for each query where up to `k` pieces of evidence are, best first.

    Stories come in the order of their best article; a second site that tells the same story follows
    it at once, because two tellings of one event are the best material (pilot §2). `articles` is
    how many there are in all.
    """
    found: list[list[Place]] = [[] for _ in queries]
    if _ask(cursor, queries, articles):
        start, end = seconds(window.start), seconds(window.end)
        parameters = {
            "start": start, "end": end, "worst": worst, "k": k, "cap": max(CAP, 20 * k),
            "decay": max((end - start) / 3, 1.0),
        }  # fmt: skip
        for query, part, article, _ in cursor.execute(SEARCH, parameters).fetchall():
            found[query].append((part, article))
    return found


def _ask(cursor: duckdb.DuckDBPyConnection, queries: Sequence[EntityQuery], articles: int) -> bool:
    """Put what is asked for into this cursor's tables; tell whether it is anything."""
    wanted = spellings(queries)
    words = sorted({word for spelling in wanted for word in spelling.words})
    held = dict(cursor.execute(_HELD, {"words": words}).fetchall()) if words else {}
    asked = [one for spelling in wanted for one in weighed(spelling, held, articles)]
    columns = [[getattr(one, name) for one in asked] for name in _ASKED.names]
    alone = {one.query for one in asked if one.alone}
    around = [row for row in contexts(queries) if row[0] in alone]
    _fill(cursor, "asked", pa.table(columns, schema=_ASKED))
    _fill(cursor, "contexts", pa.table([[row[at] for row in around] for at in range(4)],
                                       schema=_CONTEXTS))  # fmt: skip
    cursor.execute(
        "CREATE OR REPLACE TEMP TABLE needed AS "
        "SELECT DISTINCT query, spelling, share, alone FROM asked"
    )
    return bool(asked)


def _fill(cursor: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    cursor.register("given", rows)
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM given")
    cursor.unregister("given")


def seconds(time: datetime) -> int:
    """Return the epoch seconds that the tables hold."""
    return int(time.timestamp())

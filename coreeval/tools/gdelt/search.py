"""Finding and ranking evidence: one SQL statement for a batch of queries.

It works in stages, so that little is read: postings of the rarest words inside the window, then
those of the other words for the articles found, then a cap for each query. Every posting carries
what ranking needs; texts are read by whoever calls, for the winners.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import duckdb

from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.questions import Spelling, contexts, spellings, weighed

CAP = 800
"""Finds of a query that are ranked with regard to stories, the best first: enough for 20 stories
that 20 sites tell, found in the text and by name."""
DEPTH = 16
"""Articles of one day, the best, that are looked at for a name that very many have; twice as many
as are wanted if that is more."""
NAMES_AT_MOST = 200
"""Names that a spelling may stand for, the most mentioned first: 'John' is part of thousands."""

# The weights and the decay are research: gdelt §8, a starting point that nobody has tuned. A match
# is either in the text (title and snippet together) or in one entity's name: the words of a name
# that stand in two different names are not a mention of it. An article with more of a query's words
# always comes before one with fewer, by their weight.
_IN_WINDOW = "published >= $start AND published < $end AND precision <= $worst"
_POSTED = "part, article, published, prior, story, teller"
_ASKED = """
WITH asked AS (
    SELECT unnest($query) AS query, unnest($spelling) AS spelling, unnest($word) AS word,
           unnest($weight) AS weight, unnest($seed) AS seed
),
needed AS (
    SELECT unnest($of_query) AS query, unnest($of_spelling) AS spelling, unnest($share) AS share,
           unnest($alone) AS alone
),
seeds AS (
    FROM asked WHERE seed
),
others AS (
    FROM asked WHERE NOT seed
),
"""
_SEED_TEXTS = f"""
seed_texts AS (
    SELECT query, spelling, weight, titled, {_POSTED}
    FROM words JOIN seeds USING (word) WHERE {_IN_WINDOW}
),
"""
_SEED_TOPICS = f"""
seed_texts AS (
    SELECT query, spelling, part, article, sum(weight) AS weight, bool_and(titled) AS titled,
           any_value(published) AS published, any_value(prior) AS prior,
           any_value(story) AS story, any_value(teller) AS teller
    FROM words JOIN seeds USING (word) WHERE {_IN_WINDOW}
    GROUP BY ALL
),
"""
_IN_TEXT = f"""
completed_texts AS (
    SELECT query, spelling, part, article, sum(weight) AS more, bool_and(titled) AS all_titled
    FROM (FROM words WHERE word IN (SELECT word FROM others) AND {_IN_WINDOW})
    JOIN (SELECT query, spelling, part, article, others.word, others.weight
          FROM seed_texts JOIN others USING (query, spelling)) USING (part, article, word)
    GROUP BY ALL
),
texts AS (
    SELECT query, spelling, {_POSTED}, round(weight + coalesce(more, 0), 6) AS whole,
           if(titled AND coalesce(all_titled, true), 1.0, 0.8) AS relevance
    FROM seed_texts LEFT JOIN completed_texts USING (query, spelling, part, article)
),
in_text AS (
    SELECT query, {_POSTED}, whole, relevance, alone
    FROM texts JOIN needed USING (query, spelling) WHERE whole >= share
),
"""
_IN_NAMES = f"""
seed_names AS (
    SELECT query, spelling, part, name, sum(weight) AS weight, any_value(articles) AS articles
    FROM names JOIN seeds USING (word) GROUP BY ALL
),
completed_names AS (
    SELECT query, spelling, part, name, sum(weight) AS more
    FROM (FROM names WHERE word IN (SELECT word FROM others))
    JOIN (SELECT query, spelling, part, name, others.word, others.weight
          FROM seed_names JOIN others USING (query, spelling)) USING (part, name, word)
    GROUP BY ALL
),
meant AS (
    SELECT query, spelling, part, name, articles, round(weight + coalesce(more, 0), 6) AS whole
    FROM seed_names LEFT JOIN completed_names USING (query, spelling, part, name)
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
    FROM mentions JOIN named USING (part, name)
    WHERE times > 0 AND {_IN_WINDOW} AND (depth < $deep OR alone)
),
"""
_FOUND = """
found AS (
    SELECT *, 0.40 * relevance + 0.20 * exp((published - $end) / $decay) + prior AS score
    FROM (FROM in_text UNION ALL FROM in_names)
),
"""
# A name of one word means many: where a query has a context, a word or a name of it must be there.
_SETTLED = f"""
contexts AS (
    SELECT unnest($in_query) AS query, unnest($context) AS context, unnest($beside) AS word,
           unnest($size) AS size
),
context_names AS (
    SELECT query, part, name FROM names JOIN contexts USING (word)
    GROUP BY query, context, part, name HAVING count(*) = any_value(size)
),
settled AS (
    SELECT query, part, article FROM words JOIN contexts USING (word) WHERE {_IN_WINDOW}
    UNION
    SELECT query, part, article FROM mentions JOIN context_names USING (part, name)
    WHERE times > 0 AND {_IN_WINDOW}
),
matches AS (
    FROM found WHERE NOT alone
    UNION ALL
    FROM found SEMI JOIN settled USING (query, part, article) WHERE alone
),
"""
_ALL_MATCH = """
matches AS (
    FROM found
),
"""
# `height` orders first by how much of the words was found, then by score.
_RANKED = f"""
high AS (
    SELECT *, whole * 2097152 + score AS height FROM matches
),
least_high AS (
    SELECT query, list_min(max(height, {CAP})) AS least FROM high GROUP BY query
),
scored AS (
    SELECT query, part, article, max(whole) AS whole, max(score) AS score,
           any_value(published) AS published, any_value(teller) AS teller,
           any_value(coalesce(story, -1 - (part::BIGINT << 32) - article)) AS event
    FROM high JOIN least_high USING (query) WHERE height >= least
    GROUP BY query, part, article
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
_HELD = """
SELECT word, sum(articles)::BIGINT FROM lexicon
WHERE word IN (SELECT unnest($words)) GROUP BY word
"""

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
    wanted = spellings(queries)
    if wanted:
        start, end = seconds(window.start), seconds(window.end)
        asked, around = _asked(wanted, _held(cursor, wanted), articles), _around(queries, wanted)
        parameters = {
            **asked, **around,
            "start": start, "end": end, "worst": worst, "k": k, "deep": max(2 * k, DEPTH),
            "decay": max((end - start) / 3, 1.0),
        }  # fmt: skip
        several = asked["seed"].count(True) > len(wanted)
        sql = statement(topics=several, contexts=bool(around))
        for query, part, article, _ in cursor.execute(sql, parameters).fetchall():
            found[query].append((part, article))
    return found


def statement(*, topics: bool, contexts: bool) -> str:
    """Return the search in SQL, with only those steps that the queries need."""
    seeds = _SEED_TOPICS if topics else _SEED_TEXTS
    settled = _SETTLED if contexts else _ALL_MATCH
    return _ASKED + seeds + _IN_TEXT + _IN_NAMES + _FOUND + settled + _RANKED


def _held(cursor: duckdb.DuckDBPyConnection, wanted: Sequence[Spelling]) -> dict[str, int]:
    """Return how many articles have each word that is asked for."""
    words = sorted({word for spelling in wanted for word in spelling.words})
    return dict(cursor.execute(_HELD, {"words": words}).fetchall())


def _asked(
    wanted: Sequence[Spelling], held: Mapping[str, int], articles: int
) -> dict[str, list[object]]:
    words = [one for spelling in wanted for one in weighed(spelling, held, articles)]
    return {
        "query": [one.query for one in words],
        "spelling": [one.spelling for one in words],
        "word": [one.word for one in words],
        "weight": [one.weight for one in words],
        "seed": [one.seed for one in words],
        "of_query": [spelling.query for spelling in wanted],
        "of_spelling": [spelling.number for spelling in wanted],
        "share": [spelling.share for spelling in wanted],
        "alone": [spelling.alone for spelling in wanted],
    }


def _around(queries: Sequence[EntityQuery], wanted: Sequence[Spelling]) -> dict[str, list[object]]:
    """Return the contexts of the queries that a name of a single word stands for; often none."""
    alone = {spelling.query for spelling in wanted if spelling.alone}
    rows = [row for row in contexts(queries) if row[0] in alone]
    names = ("in_query", "context", "beside", "size")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)} if alone else {}


def seconds(time: datetime) -> int:
    """Return the epoch seconds that the tables hold."""
    return int(time.timestamp())

"""Finding and ranking evidence: one SQL statement for a batch of queries."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import duckdb

from coreeval.schema import EntityQuery, Evidence, NamedEntity, Window
from coreeval.tools.gdelt.tables import PRECISIONS
from coreeval.tools.gdelt.words import query_keys

TOPIC_SHARE = 0.3
"""What an article must share with a topic: this part of the weight of its words, where a rare word
weighs more (ln(1 + articles / articles with the word)). A topic is a description, and a headline
puts it its own way. With most of the words asked for, 39 of 60 samples had fewer than six
candidates and found no knowledge (docs/quality.md, round 1)."""
COLUMNS = "id, url, domain, title, snippet, published, precision, story, told, entities, origin"

# The weights and the decay are research: gdelt §8, a starting point that nobody has tuned. A match
# is either in the text (title and snippet together) or in one entity's name: the words of a name
# that stand in two different names are not a mention of it. An article with more of a query's words
# always comes before one with fewer, by their weight.
SEARCH = f"""
WITH unweighted AS (
    SELECT unnest($query) AS query, unnest($variant) AS variant, unnest($word) AS word,
           unnest($least) AS least
),
held AS (
    SELECT words.word, count(DISTINCT article) AS articles
    FROM words SEMI JOIN unweighted USING (word) GROUP BY ALL
),
asked AS (
    SELECT unweighted.*, ln(1 + (SELECT count(*) FROM articles) / coalesce(held.articles, 1))
           AS weight
    FROM unweighted LEFT JOIN held USING (word)
),
needed AS (
    SELECT query, variant, sum(weight) AS need, any_value(least) AS least FROM asked GROUP BY ALL
),
hits AS (
    SELECT query, variant, article, unit, sum(weight) AS found, bool_and(titled) AS titled
    FROM (
        SELECT asked.query, asked.variant, words.article, greatest(words.place, 1) AS unit, word,
               any_value(weight) AS weight, bool_or(words.place = 0) AS titled
        FROM asked JOIN words USING (word) JOIN articles USING (article)
        WHERE published >= $start AND published < $end AND precision <= $worst
        GROUP BY ALL
    ) GROUP BY ALL
),
matches AS (
    SELECT query, article, max(round(found / need, 6)) AS whole,
           max(CASE WHEN titled THEN 1.0 WHEN unit = 1 THEN 0.8 ELSE 0.5 END) AS relevance
    FROM hits JOIN needed USING (query, variant) WHERE round(found / need, 6) >= least GROUP BY ALL
),
scored AS (
    SELECT query, article, id, story, domain, published, whole,
           0.40 * relevance + 0.20 * exp((published - $end) / $decay)
           + 0.25 * least(1, ln(1 + domains) / ln(51)) + 0.15 * quality AS score
    FROM matches JOIN articles USING (article)
),
placed AS (
    SELECT *, row_number() OVER best AS place, first_value(domain) OVER best AS lead_domain,
           first_value(score) OVER best AS lead_score, first_value(whole) OVER best AS lead_whole,
           first_value(published) OVER best AS lead_published, first_value(id) OVER best AS lead_id
    FROM scored
    WINDOW best AS (PARTITION BY query, story ORDER BY whole DESC, score DESC, published DESC, id)
),
pairs AS (
    SELECT * FROM placed
    QUALIFY row_number() OVER (PARTITION BY query, story, domain = lead_domain ORDER BY place) = 1
),
ranked AS (
    SELECT query, article, row_number() OVER (
        PARTITION BY query
        ORDER BY lead_whole DESC, lead_score DESC, lead_published DESC, lead_id, place
    ) AS rank
    FROM pairs QUALIFY rank <= $k
)
SELECT query, {COLUMNS} FROM ranked JOIN articles USING (article) ORDER BY query, rank
"""


def search(
    connection: duckdb.DuckDBPyConnection,
    queries: Sequence[EntityQuery],
    window: Window,
    k: int,
    worst: int,
) -> dict[str, tuple[Evidence, ...]]:
    """Return up to `k` pieces of evidence for each query, best first.

    Stories come in the order of their best article; a second site that tells the same story follows
    it at once, because two tellings of one event are the best material (pilot §2).
    """
    found: dict[str, list[Evidence]] = {query.id: [] for query in queries}
    asked = [row for query in queries for row in _asked(query)]
    if asked:
        ids, variants, words, least = (list(column) for column in zip(*asked, strict=True))
        start, end = seconds(window.start), seconds(window.end)
        parameters = {
            "query": ids, "variant": variants, "word": words, "least": least, "start": start,
            "end": end, "worst": worst, "k": k, "decay": max((end - start) / 3, 1.0),
        }  # fmt: skip
        for query, *row in connection.execute(SEARCH, parameters).fetchall():
            found[query].append(to_evidence(row))
    return {query: tuple(evidence) for query, evidence in found.items()}


def _asked(query: EntityQuery) -> Iterator[tuple[str, int, str, float]]:
    """Yield (query, variant, word, share needed) for the query's text and its other names.

    An article must have all words of a name, and some of a topic.
    """
    spellings = [query.text, *query.aliases]
    spellings += [cut for spelling in spellings if (cut := _cut(spelling))]
    variants = dict.fromkeys(words for spelling in spellings if (words := query_keys(spelling)))
    least = 1.0 if query.rung in ("named", "alias") else TOPIC_SHARE
    for number, words in enumerate(variants):
        for word in sorted(words):
            yield query.id, number, word, least


def _cut(name: str) -> str:
    """Return a name as GKG spells it: cut at its first non-ASCII letter (research: gdelt §5)."""
    cut = next((at for at, letter in enumerate(name) if not letter.isascii()), None)
    if cut is None or len(name[:cut].split()) < 2:
        return ""
    return name[:cut]


def seconds(time: datetime) -> int:
    """Return the epoch seconds that the tables hold."""
    return int(time.timestamp())


def to_evidence(row: Sequence[object]) -> Evidence:
    """Build evidence from a row with `COLUMNS`."""
    values = dict(zip(COLUMNS.split(", "), row, strict=True))
    return Evidence(
        id=str(values["id"]),
        url=str(values["url"]),
        domain=str(values["domain"]),
        title=str(values["title"]),
        snippet=str(values["snippet"]),
        published_at=datetime.fromtimestamp(int(str(values["published"])), tz=UTC),
        published_precision=PRECISIONS[int(str(values["precision"]))],
        entities=tuple(
            NamedEntity(name=name, type=kind) for name, kind in json.loads(str(values["entities"]))
        ),
        cluster=str(values["story"]) if int(str(values["told"])) > 1 else "",
        origin=str(values["origin"]),
    )

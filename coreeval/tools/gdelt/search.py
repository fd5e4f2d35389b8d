"""Finding evidence: one SQL statement for a batch of queries."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import duckdb

from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.questions import Spelling, contexts, spellings, themes, weighed
from coreeval.tools.gdelt.ranking import DEPTH, statement

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
    if wanted and articles:
        start, end = seconds(window.start), seconds(window.end)
        asked = _asked(wanted, _held(cursor, wanted), articles)
        themed, around = _themed(queries), _around(queries, wanted)
        parameters = {
            **asked, **themed, **around,
            "start": start, "end": end, "worst": worst, "k": k, "deep": max(2 * k, DEPTH),
            "decay": max((end - start) / 3, 1.0),
        }  # fmt: skip
        sql = statement(
            topics=asked["seed"].count(True) > len(wanted),
            themes=bool(themed),
            contexts=bool(around),
        )
        for query, part, article, _ in cursor.execute(sql, parameters).fetchall():
            found[query].append((part, article))
    return found


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


def _themed(queries: Sequence[EntityQuery]) -> dict[str, list[object]]:
    """Return the themes of the queries; often none."""
    rows = list(themes(queries))
    return {"themed": [row[0] for row in rows], "theme": [row[1] for row in rows]} if rows else {}


def _around(queries: Sequence[EntityQuery], wanted: Sequence[Spelling]) -> dict[str, list[object]]:
    """Return the contexts of the queries that a name of a single word stands for; often none."""
    alone = {spelling.query for spelling in wanted if spelling.alone}
    rows = [row for row in contexts(queries) if row[0] in alone]
    names = ("in_query", "context", "beside", "size")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)} if alone else {}


def seconds(time: datetime) -> int:
    """Return the epoch seconds that the tables hold."""
    return int(time.timestamp())

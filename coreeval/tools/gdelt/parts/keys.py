"""The words of pages, in the normal form that queries have too (words.py)."""

import duckdb

# Each different token is normalised once, by the Python that normalises queries.
_TOKENS = """
CREATE TABLE tokens AS
SELECT n, 0::UTINYINT AS place, unnest(split_words(headline)) AS token FROM pages
UNION ALL
SELECT n, 1::UTINYINT, unnest(split_words(snippet))
FROM pages WHERE own AND dropped IS NULL AND snippet <> ''
"""
_SPELT = """
CREATE TABLE normal AS
WITH spelt AS (
    SELECT token, count(*) FILTER (place = 0) AS titles FROM tokens GROUP BY token
)
SELECT token, titles, key_of(token) AS word FROM spelt
"""
_VOCABULARY = """
CREATE TABLE vocabulary AS
SELECT word, row_number() OVER (ORDER BY sum(titles), word)::INTEGER AS rarity
FROM normal WHERE word <> '' GROUP BY word
"""
_KEYS = """
CREATE TABLE keys AS
SELECT n, rarity, min(place) AS place
FROM tokens JOIN normal USING (token) JOIN vocabulary USING (word) GROUP BY n, rarity
"""


def make_keys(database: duckdb.DuckDBPyConnection) -> None:
    """Make `vocabulary` (word, rarity) and `keys` (page n, rarity, place) from `pages`.

    `rarity` numbers the words, those in fewest headlines first; `place` is 0 for a word of the
    headline, 1 for one that only the description has.
    """
    for statement in (_TOKENS, _SPELT, _VOCABULARY, _KEYS, "DROP TABLE tokens; DROP TABLE normal"):
        database.execute(statement)

"""The statements to send, their search keys, and the check of their bounds.

The tables contain plain text, without the search keys of `coreeval.tools.gdelt.words`. Instead,
each search key is sent with all the words that have this key, and one equality join finds them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from coreeval.config.knowledge import Feed
from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.index.query import TOPIC_SHARE
from coreeval.tools.gdelt.rows import PROMINENT_MENTIONS, PROMINENT_OFFSET
from coreeval.tools.gdelt.words import query_keys, stem

_TITLE = r"REGEXP_EXTRACT(Extras, r'<PAGE_TITLE>(.*?)</PAGE_TITLE>')"
# GKG writes letters with accents as numbers: Beyonc&#xE9;. Other signs only separate words.
_DECODED = rf"""ARRAY_TO_STRING(ARRAY(
        SELECT IF(STARTS_WITH(part, '&#x'),
                  CODE_POINTS_TO_STRING([CAST(CONCAT('0x', REGEXP_EXTRACT(part, r'[0-9A-Fa-f]+'))
                                              AS INT64)]),
                  part)
        FROM UNNEST(REGEXP_EXTRACT_ALL(REPLACE({_TITLE}, '&amp;', '&'),
                                       r'&#x[0-9A-Fa-f]{{2,3}};|[^&]+|&')) AS part
          WITH OFFSET AS place
        ORDER BY place
      ), '')"""
# The four lists of names become one list of `kind,name,offset`.
_MENTIONS = r"""SPLIT(CONCAT(
          REGEXP_REPLACE(IFNULL(V2Persons, ''), r'([^;]+);?', r'1,\1;'),
          REGEXP_REPLACE(IFNULL(V2Organizations, ''), r'([^;]+);?', r'2,\1;'),
          REGEXP_REPLACE(IFNULL(V2Locations, ''),
                         r'[^#;]*#([^,#;]*)[^#;]*#[^;]*?(\d+)(?:;|$)', r'3,\1,\2;'),
          REGEXP_REPLACE(IFNULL(AllNames, ''), r'([^;]+);?', r'4,\1;')
        ), ';')"""
GKG_PAGES = rf"""
  SELECT GKGRECORDID AS record, DocumentIdentifier AS url, DATE AS crawled,
    {_TITLE} AS title, '' AS description,
    REGEXP_EXTRACT(Extras, r'<PAGE_PRECISEPUBTIMESTAMP>(\d{{14}})<') AS stated,
    {_DECODED} AS words_of_title,
    ARRAY(
      SELECT CONCAT(CAST(kind AS STRING), ',', name)
      FROM (
        SELECT CAST(REGEXP_EXTRACT(mention, r'^(\d),') AS INT64) AS kind,
          TRIM(REGEXP_EXTRACT(mention, r'^\d,(.*),\d+$')) AS name,
          CAST(REGEXP_EXTRACT(mention, r',(\d+)$') AS INT64) AS place, position
        FROM UNNEST({_MENTIONS}) AS mention WITH OFFSET AS position
        WHERE REGEXP_CONTAINS(mention, r'^\d,.+,\d{{1,9}}$')
      )
      WHERE name != ''
      GROUP BY kind, name
      HAVING MIN(place) < {PROMINENT_OFFSET} OR COUNT(*) >= {PROMINENT_MENTIONS}
      ORDER BY kind, MIN(position)
    ) AS names
  FROM (
    SELECT GKGRECORDID, DATE, SourceCollectionIdentifier, DocumentIdentifier, V2Locations,
      V2Persons, V2Organizations, AllNames, TranslationInfo, Extras
    FROM `gdelt-bq.gdeltv2.gkg_partitioned`
    WHERE _PARTITIONTIME >= @first_day AND _PARTITIONTIME < @end_day
  )
  WHERE DATE >= @first_batch AND DATE < @end_batch AND SourceCollectionIdentifier = 1
    AND IFNULL(TranslationInfo, '') = '' AND {_TITLE} != ''
"""
GAL_PAGES = """
  SELECT '' AS record, url, CAST(FORMAT_TIMESTAMP('%Y%m%d%H%M%S', date) AS INT64) AS crawled,
    title, IFNULL(`desc`, '') AS description,
    FORMAT_TIMESTAMP('%Y%m%d%H%M%S', date) AS stated, title AS words_of_title,
    ARRAY<STRING>[] AS names
  FROM (
    SELECT date, url, title, `desc`, lang
    FROM `gdelt-bq.gdeltv2.gal`
    WHERE date >= @first_day AND date < @end_day
  )
  WHERE STARTS_WITH(LOWER(lang), 'en') AND title != ''
"""
# As in plain_words(): no accents, no possessives; U.S. and S&P are one word each.
_WORDS = r"""REGEXP_EXTRACT_ALL(
      REGEXP_REPLACE(REGEXP_REPLACE(REGEXP_REPLACE(NORMALIZE(text, NFKD), r'\pM', ''),
        r'\b(\pL)\.(\pL)\.(?:(\pL)\.)?(?:(\pL)\.)?', r'\1\2\3\4 '),
        r'\b(\pL{1,2}) ?& ?(\pL{1,2})\b', r'\1\2'),
      r'[\pL\pN]+')"""
SEARCH = rf"""
WITH pages AS (
$pages
),
words AS (
  SELECT DISTINCT page.url, GREATEST(place, 1) AS unit, place = 0 AS titled, form.word
  FROM pages AS page
  CROSS JOIN UNNEST(ARRAY_CONCAT(
    [page.words_of_title, page.description],
    ARRAY(SELECT SUBSTR(name, 3) FROM UNNEST(page.names) AS name)
  )) AS text WITH OFFSET AS place
  CROSS JOIN UNNEST({_WORDS}) AS written
  JOIN (
    SELECT SPLIT(form, ' ')[OFFSET(0)] AS form, SPLIT(form, ' ')[OFFSET(1)] AS word
    FROM UNNEST(@forms) AS form
  ) AS form ON form.form = LOWER(written)
  WHERE form.word = LOWER(form.word) OR written = UPPER(written)
),
held AS (
  SELECT word, COUNT(DISTINCT url) AS articles FROM words GROUP BY word
),
asked AS (
  SELECT number, CAST(SPLIT(ask, ' ')[OFFSET(0)] AS FLOAT64) AS least, part AS word,
    LN(1 + (SELECT COUNT(DISTINCT url) FROM pages) / IFNULL(held.articles, 1)) AS weight
  FROM UNNEST(@asks) AS ask WITH OFFSET AS number
  CROSS JOIN UNNEST(SPLIT(ask, ' ')) AS part WITH OFFSET AS place
  LEFT JOIN held ON held.word = part
  WHERE place > 0
),
needed AS (
  SELECT number, SUM(weight) AS need, MAX(least) AS least FROM asked GROUP BY number
),
hits AS (
  SELECT number, url, unit, SUM(weight) AS found, LOGICAL_AND(titled) AS titled
  FROM (
    SELECT asked.number, words.url, words.unit, word,
      MAX(asked.weight) AS weight, LOGICAL_OR(words.titled) AS titled
    FROM asked JOIN words USING (word)
    GROUP BY asked.number, words.url, words.unit, word
  )
  GROUP BY number, url, unit
),
matches AS (
  SELECT hits.number, hits.url, MAX(ROUND(found / need, 6)) AS whole,
    MAX(CASE WHEN titled THEN 1.0 WHEN unit = 1 THEN 0.8 ELSE 0.5 END) AS relevance
  FROM hits JOIN needed USING (number)
  WHERE ROUND(found / need, 6) >= least
  GROUP BY hits.number, hits.url
),
told AS (
  SELECT number, url, whole, relevance, LOWER(title) AS title, crawled, stated,
    IFNULL(stated < @window_start, FALSE) AS old,
    stated IS NULL
      AND NOT REGEXP_CONTAINS(url, r'\b\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}\b') AS undated,
    COUNT(DISTINCT NET.HOST(url)) OVER (PARTITION BY number, LOWER(title)) AS sites
  FROM matches JOIN pages USING (url)
),
copies AS (
  SELECT *,
    0.40 * relevance + 0.25 * LEAST(1, LN(1 + sites) / LN(51)) + 0.20 * EXP(
      -TIMESTAMP_DIFF(@window_end, PARSE_TIMESTAMP('%Y%m%d%H%M%S', CAST(crawled AS STRING)), SECOND)
      / @decay) AS score
  FROM told
  WHERE TRUE
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY number, title, old ORDER BY stated IS NULL, stated, crawled, url) <= @copies
),
kept AS (
  SELECT url, sites FROM copies
  WHERE TRUE
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY number ORDER BY old, whole DESC, undated, score DESC, url) <= @most
)
SELECT record, url, crawled, title, description, stated, names, IFNULL(sites, 1) AS sites
FROM pages
LEFT JOIN (SELECT url, MAX(sites) AS sites FROM kept GROUP BY url) USING (url)
WHERE sites IS NOT NULL OR url IN UNNEST(@urls)
"""


class WordSet(NamedTuple):
    """Words that must occur together in an article: all of a name's, or a share of a topic's."""

    words: str
    """The search keys in alphabetical order, separated by spaces."""
    least: float
    """The share of their weight that is needed; 1 for a name."""


class WordForm(NamedTuple):
    """A lower-case word of a text, and its search key."""

    form: str
    word: str
    """The search key; if it is in capitals, only the word in capitals counts: US, WHO, IT."""


def list_word_sets(queries: Sequence[EntityQuery]) -> list[WordSet]:
    """Return the distinct word sets of the queries, in the order of the queries."""
    found = (
        WordSet(" ".join(sorted(words)), 1.0 if query.rung in ("named", "alias") else TOPIC_SHARE)
        for query in queries
        for spelling in _spellings(query)
        if (words := query_keys(spelling))
    )
    return list(dict.fromkeys(found))


def _spellings(query: EntityQuery) -> Iterator[str]:
    """Yield all names of a query, also in GKG's spelling: cut at the first non-ASCII letter."""
    for name in (query.text, *query.aliases):
        yield name
        kept = name[: next((at for at, letter in enumerate(name) if not letter.isascii()), 0)]
        if len(kept.split()) > 1:
            yield kept


def list_word_forms(asked: Sequence[WordSet]) -> list[WordForm]:
    """Return every form of every word in the word sets."""
    words = dict.fromkeys(word for ask in asked for word in ask.words.split(" "))
    return [form for word in words for form in _forms_of_word(word)]


def _forms_of_word(word: str) -> Iterator[WordForm]:
    folded = word.casefold()
    if word != folded:
        yield WordForm(folded, word)
        return
    for form in sorted({word, *_inflect(word)}):
        if stem(form) == word:
            yield WordForm(form, word)


def _inflect(word: str) -> Iterator[str]:
    """Yield all words from which `stem` may have removed a plural or an -ing, and more."""
    bases = [word, f"{word}ing", f"{word}{word[-1]}ing"]
    bases += [f"{word[:-1]}ing"] if word.endswith("e") else []
    for base in bases:
        yield from (base, f"{base}s", f"{base}es")
        if base.endswith("y"):
            yield f"{base[:-1]}ies"


TABLES: dict[Feed, str] = {
    "gkg": "gdelt-bq.gdeltv2.gkg_partitioned",
    "gal": "gdelt-bq.gdeltv2.gal",
}
PARTITIONED_BY = {TABLES["gkg"]: "_PARTITIONTIME", TABLES["gal"]: "date"}
"""The tables that may be read, each with the column whose bounds limit what is scanned."""
LATE = timedelta(days=1)
"""How long after the window a page published inside it may be crawled; a batch of late evening may
also be in the next day's partition."""
ROWS = 60
"""The most pages returned for each name or topic: after dropping duplicates and screened pages,
about the 20 that a replacer is shown remain (research: pilot §2)."""
MOST_ROWS = 30_000
"""The most pages returned for all names and topics together."""
FEWEST_ROWS = 10
COPIES = 3
"""The most pages returned with the same title: two sites are offered, and a third may be screened
out."""
_TABLE = re.compile(r"`([^`]*\.[^`]*)`")


class ScanTooLarge(ValueError):
    """The statement would read a whole table; it is never sent."""


@dataclass(frozen=True, kw_only=True)
class BigQueryStatement:
    """One statement and the values of its parameters."""

    feed: Feed
    sql: str
    start: datetime
    """The lower bound of the partitions, at midnight UTC."""
    end: datetime
    """The upper bound of the partitions, excluded."""
    window: Window
    asks: tuple[WordSet, ...]
    forms: tuple[WordForm, ...]
    urls: tuple[str, ...] = ()
    """Pages to return besides those found."""

    @property
    def tables(self) -> frozenset[str]:
        """The tables named in the statement."""
        return frozenset(_TABLE.findall(self.sql))

    @property
    def rows(self) -> int:
        """The most pages returned for each name or topic."""
        return max(FEWEST_ROWS, min(ROWS, MOST_ROWS // max(len(self.asks), 1)))


def build_statement(
    feed: Feed,
    window: Window,
    asked: Sequence[WordSet],
    forms: Sequence[WordForm],
    urls: Sequence[str] = (),
) -> BigQueryStatement:
    """Return the statement that queries one table for everything.

    Raises:
        ScanTooLarge: it would read a whole table.
    """
    start, end = _partitions(feed, window)
    made = BigQueryStatement(
        feed=feed,
        sql=SEARCH.replace("$pages", {"gkg": GKG_PAGES, "gal": GAL_PAGES}[feed].strip()),
        start=start,
        end=end,
        window=window,
        asks=tuple(asked),
        forms=tuple(forms),
        urls=tuple(urls),
    )
    check_bounds(made)
    return made


def _partitions(feed: Feed, window: Window) -> tuple[datetime, datetime]:
    """Return the days to read; an article list is filed by the day of publication."""
    first, last = (_midnight(at) for at in (window.start, window.end - timedelta(microseconds=1)))
    after = last + timedelta(days=1)
    return (first, after) if feed == "gal" else (first, after + LATE)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def check_bounds(statement: BigQueryStatement) -> None:
    """Reject a statement that reads more than some days of the known tables.

    Raises:
        ScanTooLarge: it names another table, or one without exactly two bounds.
    """
    for table in _TABLE.findall(statement.sql):
        if table not in PARTITIONED_BY:
            raise ScanTooLarge(f"{table} is not an allowed table")
    bounded = sum(
        len(re.findall(_bounds(table, column), statement.sql))
        for table, column in PARTITIONED_BY.items()
    )
    outside = _TABLE.sub("", statement.sql)
    if bounded != len(_TABLE.findall(statement.sql)) or not bounded or "gdelt" in outside:
        raise ScanTooLarge("a table is read without bounds on its partitions")
    if not statement.start < statement.end:
        raise ScanTooLarge(f"the bounds {statement.start} and {statement.end} contain no day")


def _bounds(table: str, column: str) -> str:
    return (
        rf"FROM `{re.escape(table)}`\s+"
        rf"WHERE {column} >= @first_day AND {column} < @end_day\s+\)"
    )

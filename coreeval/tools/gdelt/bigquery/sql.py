r"""The SQL of both statements, in GoogleSQL.

A page is read as a list of texts: its title, its description, then its prominent names, one each.
All words of a name must stand in one of them, title and description counting as one, just as the
local store has it. `held` counts the pages of each word, so that a rare one weighs more.

What is plain SQL text here has no value in it: every value is a parameter. `@asks` are
`share word word …`, `@forms` are `form word`; structs would take thrice the room.
"""

from coreeval.tools.gdelt.gkg import PROMINENT_MENTIONS, PROMINENT_OFFSET

_TITLE = r"REGEXP_EXTRACT(Extras, r'<PAGE_TITLE>(.*?)</PAGE_TITLE>')"
# GKG writes letters with accents as numbers: Beyonc&#xE9;. Other signs only part words.
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

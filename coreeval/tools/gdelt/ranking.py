"""The search in SQL: what is found in texts, by names and by themes, and how it is ranked.

It works in stages, so that little is read: postings of the rarest words inside the window, then
those of the other words for the articles found, then a cap for each query. Every posting carries
what ranking needs; texts are read by whoever calls, for the winners.
"""

from coreeval.tools.gdelt.questions import TOPIC_SHARE

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
# An article of a topic's theme that has too few of its words: after all that have enough.
_IN_THEMES = f"""
in_themes AS (
    SELECT query, {_POSTED}, {TOPIC_SHARE} AS whole, 0.5 AS relevance, false AS alone
    FROM themes JOIN (SELECT unnest($themed) AS query, unnest($theme) AS theme) USING (theme)
    WHERE {_IN_WINDOW}
),
"""
_SCORED = """
found AS (
    SELECT *, 0.40 * relevance + 0.20 * exp((published - $end) / $decay) + prior AS score
    FROM ($sources)
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


def statement(*, topics: bool, themes: bool, contexts: bool) -> str:
    """Return the search in SQL, with only those steps that the queries need."""
    steps = [_ASKED, _SEED_TOPICS if topics else _SEED_TEXTS, _IN_TEXT, _IN_NAMES]
    sources = ["FROM in_text", "FROM in_names"]
    if themes:
        steps.append(_IN_THEMES)
        sources.append("FROM in_themes")
    steps.append(_SCORED.replace("$sources", " UNION ALL ".join(sources)))
    return "".join([*steps, _SETTLED if contexts else _ALL_MATCH, _RANKED])

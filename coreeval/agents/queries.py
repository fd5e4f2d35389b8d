"""The searches for a sample, and the ranked list of their results."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from types import MappingProxyType
from typing import Any, Final

from coreeval.agents.text.lexicon import FUNCTION_WORDS, MONTH_SHORT, MONTHS, WEEKDAYS
from coreeval.agents.text.words import (
    find_content_stems,
    find_content_words,
    split_words,
    stem,
)
from coreeval.schema import (
    Entity,
    EntityQuery,
    Evidence,
    Extraction,
    Retrieval,
    Rung,
    Task,
)

MOST_QUERIES = 10
"""The most queries for one sample: with 20 candidates, each query gets two (pilot §2: top 20)."""
RUNG_PLACES: Mapping[Rung, int] = MappingProxyType({"concept": 3, "sibling": 2, "structure": 2})
"""The queries reserved for each rung, even if there are many names. In 60 samples, concepts found
knowledge for 27, siblings for 9, structures for 8, names for 6 (pilot §2)."""
MOST_CONTEXT = 16
"""The most words of the sample that are added to a name (own choice)."""
NEAR_SHARE = 0.6
"""The share of a topic's words in an item about it: two of three, three of four or five (own
choice)."""
NEAR_MEANING = 0.45
"""The least cosine between a sample and news about its topic (own choice, from the lists of 60
samples with MiniLM: above it most headlines share the topic, below 0.4 hardly any)."""
MOST_TELLINGS = 3
"""The most similar headlines offered (ALIKE_SHARE): a few reports of one event are the best
material (pilot §2); more would displace other events."""
ALIKE_SHARE = 0.4
"""The share of words that two headlines about one event have in common (own choice: paraphrased
reports share 0.4 to 0.6)."""
LADDER: tuple[Rung, ...] = ("named", "alias", "concept", "sibling", "structure")
"""The rungs, best first (pilot §8)."""
_UNSEARCHABLE = frozenset({"date", "quantity"})
_CALENDAR = WEEKDAYS | MONTHS | MONTH_SHORT.keys() | {"today", "tomorrow", "yesterday", "tonight"}

_QueryDraft = tuple[str, Rung, tuple[str, ...]]


def plan_queries(extraction: Extraction, task: Task) -> list[EntityQuery]:
    """Return the queries for a sample by rung: names first, the general shape of news last.

    Each spelling is a separate query, so that the rung shows which one found the news.
    """
    surnames = _find_surnames(extraction)
    drafts = [
        draft
        for draft in (
            *_name_drafts(extraction, task),
            *_alias_drafts(extraction, task),
            *_concept_drafts(extraction, task),
            *((_clean(text), "sibling", ()) for text in extraction.siblings),
            *((_clean(text), "structure", ()) for text in extraction.structures),
        )
        if _is_usable(draft[0]) and not _is_surname(draft[0], surnames)
    ]
    kept = list(
        {_make_key(text): (text, rung, more) for text, rung, more in reversed(drafts)}.values()
    )
    return [
        EntityQuery(
            id=f"q{number}",
            text=text,
            rung=rung,
            aliases=more,
            context=_find_context(text, extraction, task.language)
            if rung in ("named", "alias")
            else (),
        )
        for number, (text, rung, more) in enumerate(_limit_drafts(kept[::-1]), start=1)
    ]


def _find_context(name: str, extraction: Extraction, language: str) -> tuple[str, ...]:
    """Return the sample's other topics, which resolve ambiguous names."""
    own = {stem(word) for word in split_words(name)}
    told = [entity.query_name for entity in _select_searchable(extraction)] + list(
        extraction.queries
    )
    found = (
        word
        for text in told
        for word in find_content_words(text, language)
        if stem(word) not in own
    )
    return tuple(islice(dict.fromkeys(found), MOST_CONTEXT))


def _name_drafts(extraction: Extraction, task: Task) -> Iterator[_QueryDraft]:
    for entity in _select_searchable(extraction):
        if entity.kind == "named" and not _is_target(entity, task):
            yield _clean(entity.query_name or entity.span), "named", ()


def _alias_drafts(extraction: Extraction, task: Task) -> Iterator[_QueryDraft]:
    for entity in _select_searchable(extraction):
        if entity.kind != "named" or _is_target(entity, task):
            continue
        spellings = [_clean(name) for name in (entity.span, *entity.aliases)]
        others = [
            name
            for name in dict.fromkeys(spellings)
            if _make_key(name) != _make_key(entity.query_name)
            and _is_usable(name)
            and not _is_single_name(name, entity)
        ]
        if others:
            yield others[0], "alias", tuple(others[1:])


def _concept_drafts(extraction: Extraction, task: Task) -> Iterator[_QueryDraft]:
    for text in extraction.queries:
        yield _clean(text), "concept", ()
    for entity in _select_searchable(extraction):
        if entity.kind == "concept" or _is_target(entity, task):
            yield _clean(entity.query_name or entity.span), "concept", ()


def _select_searchable(extraction: Extraction) -> list[Entity]:
    """Return the entities to search news for, without handles, dates, amounts and surnames."""
    return [
        entity
        for entity in extraction.entities
        if entity.type not in _UNSEARCHABLE
        and not entity.query_name.startswith("@")
        and not _is_single_name(entity.query_name or entity.span, entity)
    ]


def _is_single_name(name: str, entity: Entity) -> bool:
    """Return whether a person is named by one word, which may be ambiguous (pilot §2)."""
    return entity.type == "person" and entity.kind == "named" and len(split_words(name)) == 1


def _find_surnames(extraction: Extraction) -> frozenset[str]:
    people = (entity for entity in extraction.entities if entity.type == "person")
    names = (split_words(name) for person in people for name in (person.span, person.query_name))
    return frozenset(parts[-1] for parts in names if parts)


def _is_surname(text: str, surnames: Collection[str]) -> bool:
    parts = split_words(text)
    return len(parts) == 1 and parts[0] in surnames


def _is_target(entity: Entity, task: Task) -> bool:
    names = (*task.target_terms, *([task.target] if task.target else []))
    own = {_make_key(entity.span), _make_key(entity.query_name)}
    return bool(own & {_make_key(name) for name in names})


def _is_usable(text: str) -> bool:
    """Return whether a text is specific enough to search for."""
    content = find_content_words(text)
    if not content or all(word in _CALENDAR or word[0].isdigit() for word in content):
        return bool(re.fullmatch(r"[A-Z]{2,3}", text)) and text.casefold() not in FUNCTION_WORDS
    return len(content) > 1 or len(content[0]) > 2 or text.isupper()


def _clean(text: str) -> str:
    return " ".join(text.replace("#", " ").split()).strip(" .,;:!?\"'")


def _make_key(text: str) -> str:
    return " ".join(split_words(text.replace("#", " ")))


def _limit_drafts(drafts: Sequence[_QueryDraft]) -> list[_QueryDraft]:
    """Return the drafts cut to the limit, with places reserved for each rung below the names."""
    by_rung = {rung: [draft for draft in drafts if draft[1] == rung] for rung in LADDER}
    kept = [draft for rung, most in RUNG_PLACES.items() for draft in by_rung[rung][:most]]
    others = (draft for draft in drafts if draft not in kept)
    chosen = {*kept, *islice(others, MOST_QUERIES - len(kept))}
    return [draft for draft in drafts if draft in chosen]


def merge_results(
    retrieval: Retrieval,
    queries: Sequence[EntityQuery],
    *,
    limit: int,
    exclude: Collection[str],
    forbids: Callable[[Evidence], bool] = lambda item: False,
    nearest: Sequence[tuple[Evidence, float]] = (),
) -> dict[Evidence, Rung]:
    """Return the evidence to offer, each item with the best rung that found it.

    Queries take turns in the order of their rungs, so that every query offers its best items. Items
    that share most of a query's words precede those that share few of them, which count only as
    matching the query's shape, for any query. Items tried before, duplicates of a headline and more
    than a few reports of one event are omitted.

    Args:
        retrieval: The results of the queries.
        queries: The queries.
        limit: The most items.
        exclude: The ids of items to omit.
        forbids: Returns whether an item must be omitted.
        nearest: Items found by meaning, with their cosines; they count as the results of one more
            query about the topic.
    """

    def is_free(item: Evidence) -> bool:
        return item.id not in exclude and not forbids(item)

    asked = [query for query in queries if query.rung in LADDER]
    ordered = sorted(asked, key=lambda query: LADDER.index(query.rung))
    close, loose = list[list[Evidence]](), list[list[Evidence]]()
    best: dict[Evidence, Rung] = {}
    for query in ordered:
        found = retrieval.by_query.get(query.id, ())
        fresh = [item for item in found if is_free(item)]
        near = [item for item in fresh if has_most_words(query, item)]
        known = {item.id for item in near}
        close.append(near)
        loose.append([item for item in fresh if item.id not in known])
        best |= {item: query.rung for item in near if item not in best}
    close.append([item for item, cosine in nearest if cosine >= NEAR_MEANING and is_free(item)])
    loose.append([item for item, cosine in nearest if cosine < NEAR_MEANING and is_free(item)])
    best |= {item: find_best_rung(("concept", best.get(item, "concept"))) for item in close[-1]}
    turns = (*_interleave(close), *_interleave(loose))
    return {item: best.get(item, "structure") for item in islice(_drop_repeats(turns), limit)}


def has_most_words(query: EntityQuery, item: Evidence) -> bool:
    """Return whether an item has a query's name, or most words of its topic."""
    asked = find_content_stems(query.text, item.language)
    if query.rung in ("named", "alias") or not asked:
        return True
    told = " ".join((item.title, item.snippet, *(entity.name for entity in item.entities)))
    return len(asked & find_content_stems(told, item.language)) >= NEAR_SHARE * len(asked)


def _interleave(answers: Iterable[Sequence[Evidence]]) -> Iterator[Evidence]:
    return (item for turn in zip_longest(*answers) for item in turn if item is not None)


def find_best_rung(rungs: Iterable[Rung]) -> Rung:
    """Return the rung closest to the text's own names; none if there is no rung."""
    return min(rungs, key=LADDER.index, default="none")


def _drop_repeats(items: Iterable[Evidence]) -> Iterator[Evidence]:
    seen: set[str] = set()
    told: list[frozenset[str]] = []
    for item in items:
        headline = _make_key(item.title)
        own = find_content_stems(item.title, item.language)
        alike = sum(len(own & other) >= ALIKE_SHARE * len(own | other) for other in told if own)
        if item.id not in seen and headline not in seen and alike < MOST_TELLINGS:
            told.append(own)
            yield item
        seen |= {item.id, headline}


BY_MEANING: Final = "(the text, by meaning)"
"""The row of `describe_queries` for the results found by meaning; it is not a query."""


def describe_queries(
    asked: Sequence[EntityQuery], found: Retrieval, nearest: int = 0
) -> list[dict[str, Any]]:
    """Return, for each query, the number of results, and the reason if there were none.

    Args:
        asked: The queries.
        found: Their results.
        nearest: The number of results found by meaning, which have their own row.
    """
    by_meaning: dict[str, Any] = {
        "text": BY_MEANING, "rung": "concept", "found": nearest, "why_none": "",
    }  # fmt: skip
    return [by_meaning] * bool(nearest) + [
        {
            "text": query.text,
            "rung": query.rung,
            "found": len(found.by_query.get(query.id, ())),
            "why_none": found.reasons.get(query.id, ""),
        }
        for query in asked
    ]

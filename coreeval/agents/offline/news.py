"""Reads statements for plans from news: verbatim text, its quotation, and its certainty.

Conservative word lists first exclude what must not be written (pilot §4): news that names someone
together with conduct, crime, illness or grief, and news that the rules cannot distinguish from it.
The same lists flag the sensitive spans of a sample.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from coreeval.agents.offline.headline import clean_sentence, clean_title, parse_clause, split_clause
from coreeval.agents.offline.tokens import (
    has_word,
    list_content_stems,
    measure_overlap,
    split_tokens,
)
from coreeval.agents.offline.word_lists import (
    load_care_pattern,
    load_care_words,
    load_flag_patterns,
)
from coreeval.agents.offline.wording import phrase_statement, to_sentence_case
from coreeval.schema import Evidence, Extraction, Person, Sensitive, Statement, Triple

Modality = Literal["asserted", "attributed", "question", "hedged"]
_NAME_PAIR = re.compile(
    r"(?<!\w)([A-Z][a-z]+)\s+(?:[A-Z]\.\s+)?([A-Z][a-z]+(?:-[A-Z][a-z]+)?)(?!\w)"
)
_ROLE_PAIR = re.compile(r"(?<!\w)([A-Z][a-z]+|[A-Z]{2,3})\s+([A-Z][a-z]{2,})(?!\w)")
MOST_CAPITALS = 0.4
"""The share of a headline's words that may keep a capital; with more, the text looks like a
headline."""
_SPEAKER = re.compile(
    r"(?:,\s|^)((?:an?|the)\s(?:new\s)?[\w ]{2,40}?)\s(?:says|said|shows|finds|found|has found)\b|"
    r"\baccording to ((?:the |an? )?[\w ]+)",
    re.IGNORECASE,
)


def find_sensitive_spans(text: str) -> list[Sensitive]:
    """Return the spans that restrict writing about a text, each with its flag."""
    return [
        Sensitive(flag=flag, span=found.group())
        for flag, pattern in load_flag_patterns().items()
        for found in pattern.finditer(text)
    ]


def is_publishable(item: Evidence) -> bool:
    """Return whether a news item may be used at all."""
    text = _read_text(item)
    if load_care_pattern("skip").search(text):
        return False
    return not (find_person_names(item) and load_care_pattern("conduct").search(text))


def find_person_names(item: Evidence) -> list[str]:
    """Return the persons named in an item: its entities, first names, last names and roles."""
    text = _read_text(item)
    lowered = text.casefold()
    found = [
        *(e.name for e in item.entities if e.type == "person" and _last_name(e.name) in lowered),
        *(pair.group() for pair in _NAME_PAIR.finditer(text) if _is_listed(pair[1], "first_names")),
        *(word for word in split_tokens(text) if _is_last_name(word)),
        *(pair[2] for pair in _ROLE_PAIR.finditer(text) if _is_listed(pair[1], "roles")),
    ]
    return list(dict.fromkeys(found))


def _read_text(item: Evidence) -> str:
    return f"{item.title} {item.snippet}"


def _is_last_name(word: str) -> bool:
    bare = word.removesuffix("'s").removesuffix("\u2019s")
    return word[0].isupper() and (_is_listed(bare, "last_names") or _is_listed(bare, "only_names"))


def _is_listed(word: str, name: str) -> bool:
    return word.casefold() in load_care_words(name)


def _last_name(name: str) -> str:
    words = split_tokens(name)
    return words[-1].casefold() if words else name.casefold()


def find_persons(item: Evidence, statement: str) -> tuple[Person, ...]:
    """Return the persons named in a statement; unpublishable items are filtered out earlier."""
    named = (name for name in find_person_names(item) if _last_name(name) in statement.casefold())
    return tuple(Person(name=name, role="subject", polarity="neutral") for name in named)


def measure_tone(text: str) -> int:
    """Return 1 for good news, -1 for bad news and 0 for neither, by word lists."""
    good, bad = (len(load_care_pattern(name).findall(text)) for name in ("positive", "negative"))
    return (good > bad) - (good < bad)


@dataclass(frozen=True, kw_only=True)
class NewsStatement:
    """One statement of one item of evidence."""

    item: Evidence
    text: str
    """Verbatim words of the item, without the end mark."""
    modality: Modality
    speaker: str
    tone: int
    """1 for good news, -1 for bad news, 0 for neither."""
    persons: tuple[Person, ...]

    @cached_property
    def stems(self) -> list[str]:
        """Return the stems of the statement's content words."""
        return list_content_stems(self.text)

    @cached_property
    def all_stems(self) -> frozenset[str]:
        """Return the stems of the whole item."""
        return frozenset(list_content_stems(_read_text(self.item)))

    def rank_search(self, asked: Sequence[str]) -> int:
        """Return the index of the first query that the item matches, or the number of queries."""
        found = (
            i
            for i, query in enumerate(asked)
            if measure_overlap(list_content_stems(query), self.all_stems) == 1
        )
        return next(found, len(asked))

    def list_wordings(self) -> list[str]:
        """Return the wordings of the statement that the composer will find."""
        return phrase_statement(self.statement(), (self.item,), frozenset())

    def statement(self) -> Statement:
        """Return the statement in the form of a plan."""
        return Statement(
            text=self.text,
            evidence_ids=(self.item.id,),
            quote=self.text,
            modality=self.modality,
            speaker=self.speaker,
        )

    def triple(self) -> Triple:
        """Return the statement as a triple in its own words."""
        head, relation, tail = split_clause(self.text)
        return Triple(head=head, relation=relation, tail=tail)


def read_statements(items: Sequence[Evidence]) -> list[NewsStatement]:
    """Return the usable statements of all items, in the order of the items."""
    return [news for item in items for news in _read_item(item)]


def list_searches(extraction: Extraction) -> list[str]:
    """Return the news queries for a sample, names first."""
    names = [entity.query_name for entity in extraction.entities if entity.kind == "named"]
    others = [entity.query_name for entity in extraction.entities if entity.kind != "named"]
    return [*names, *extraction.queries, *others]


@lru_cache(maxsize=4096)
def _read_item(item: Evidence) -> list[NewsStatement]:
    """Return the statements of an item: its title and the first sentence of its snippet."""
    if not is_publishable(item):
        return []
    title, sentence = clean_title(item.title), clean_sentence(item.snippet)
    readable = title and (parse_clause(title) or title.endswith("?")) and not _is_all_names(title)
    return [_make_statement(item, text) for text in (title if readable else None, sentence) if text]


def _is_all_names(title: str) -> bool:
    """Return whether a Title Case headline has too many words that may or may not be names."""
    rest = to_sentence_case(title, frozenset()).split()[1:]
    capitals = sum(word[0].isupper() and not word.isupper() for word in rest)
    return capitals > MOST_CAPITALS * len(rest)


def _make_statement(item: Evidence, text: str) -> NewsStatement:
    modality, speaker = _read_modality(text)
    return NewsStatement(
        item=item,
        text=text,
        modality=modality,
        speaker=speaker,
        tone=measure_tone(text),
        persons=find_persons(item, text),
    )


def _read_modality(text: str) -> tuple[Modality, str]:
    """Return the modality of a statement, and the speaker if it is attributed to one."""
    if text.endswith("?"):
        return "question", ""
    found = _SPEAKER.search(text)
    if found:
        return "attributed", (found[1] or found[2]).strip()
    if has_word(text, "attribution"):
        return "attributed", ""
    return ("hedged" if has_word(text, "hedges") else "asserted"), ""

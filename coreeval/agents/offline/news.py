"""News as statements that a plan may use: verbatim text, its quotation, and how certain it is.

Conservative word lists decide first what may not be written (pilot §4): news that names someone
beside conduct, crime, illness or grief is left out, and so is what the rules cannot tell apart
from it. The same lists flag the sensitive spans of a sample.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.headline import clean_sentence, clean_title, parse_clause, split_clause
from coreeval.agents.offline.tokens import (
    has_word,
    list_content_stems,
    measure_overlap,
    split_tokens,
)
from coreeval.agents.offline.wording import phrase_statement, to_sentence_case
from coreeval.schema import Evidence, Extraction, Person, Sensitive, Statement, Triple

_NAME_PAIR = re.compile(
    r"(?<!\w)([A-Z][a-z]+)\s+(?:[A-Z]\.\s+)?([A-Z][a-z]+(?:-[A-Z][a-z]+)?)(?!\w)"
)

_ROLE_PAIR = re.compile(r"(?<!\w)([A-Z][a-z]+|[A-Z]{2,3})\s+([A-Z][a-z]{2,})(?!\w)")


def find_sensitive_spans(text: str) -> list[Sensitive]:
    """Return the spans that restrict writing about a text, each with its flag."""
    return [
        Sensitive(flag=flag, span=found.group())
        for flag, pattern in _flag_patterns().items()
        for found in pattern.finditer(text)
    ]


def is_publishable(item: Evidence) -> bool:
    """Return whether a news item may be used at all."""
    text = f"{item.title} {item.snippet}"
    if _skip_pattern("skip").search(text):
        return False
    return not (find_person_names(item) and _skip_pattern("conduct").search(text))


def find_person_names(item: Evidence) -> list[str]:
    """Return the persons named in an item, found by its entities and by common first names."""
    text = f"{item.title} {item.snippet}"
    tagged = [
        entity.name
        for entity in item.entities
        if entity.type == "person" and _last_name(entity.name) in text.casefold()
    ]
    first = word_lists.load_care_words("first_names")
    paired = [
        found.group() for found in _NAME_PAIR.finditer(text) if found.group(1).casefold() in first
    ]
    alone = [word for word in split_tokens(text) if _is_last_name(word)]
    led = [found.group(2) for found in _ROLE_PAIR.finditer(text) if _is_role(found.group(1))]
    return list(dict.fromkeys([*tagged, *paired, *alone, *led]))


def _is_last_name(word: str) -> bool:
    bare = word.removesuffix("'s").removesuffix("\u2019s")
    alone = word_lists.load_care_words("last_names") | word_lists.load_care_words("only_names")
    return word[0].isupper() and bare.casefold() in alone


def _is_role(word: str) -> bool:
    return word.casefold() in word_lists.load_care_words("roles")


def find_persons(item: Evidence, statement: str) -> tuple[Person, ...]:
    """Return the persons named in a statement; unpublishable items are filtered out earlier."""
    named = (name for name in find_person_names(item) if _last_name(name) in statement.casefold())
    return tuple(Person(name=name, role="subject", polarity="neutral") for name in named)


def measure_tone(text: str) -> int:
    """Return 1 for good news, -1 for bad news and 0 for neither, by word lists."""
    lists: Mapping[str, int] = {"positive": 1, "negative": -1}
    score = sum(sign * len(_tone_pattern(name).findall(text)) for name, sign in lists.items())
    return (score > 0) - (score < 0)


def _last_name(name: str) -> str:
    words = split_tokens(name)
    return words[-1].casefold() if words else name.casefold()


@cache
def _flag_patterns() -> dict[str, re.Pattern[str]]:
    return {
        flag: re.compile(word_lists.build_phrase_pattern(words), re.IGNORECASE)
        for flag, words in word_lists.load_flag_words().items()
    }


@cache
def _skip_pattern(name: str) -> re.Pattern[str]:
    return re.compile(
        word_lists.build_phrase_pattern(word_lists.load_exclusions(name)), re.IGNORECASE
    )


@cache
def _tone_pattern(name: str) -> re.Pattern[str]:
    return re.compile(
        word_lists.build_phrase_pattern(word_lists.load_care_words(name)), re.IGNORECASE
    )


MOST_CAPITALS = 0.4
"""Share of a headline's words that may keep a capital; with more the text reads as a headline."""
_SPEAKER = re.compile(
    r"(?:,\s|^)((?:an?|the)\s(?:new\s)?[\w ]{2,40}?)\s(?:says|said|shows|finds|found|has found)\b|"
    r"\baccording to ((?:the |an? )?[\w ]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class NewsStatement:
    """One statement of one item of evidence."""

    item: Evidence
    text: str
    """Verbatim words of the item, end mark left off."""
    from_title: bool
    modality: str
    speaker: str
    tone: int
    """1 good news, -1 bad news, 0 neither."""
    persons: tuple[Person, ...]

    @cached_property
    def stems(self) -> list[str]:
        """Return the stems of the statement's content words."""
        return list_content_stems(self.text)

    @cached_property
    def all_stems(self) -> frozenset[str]:
        """Return the stems of the whole item."""
        return frozenset(list_content_stems(f"{self.item.title} {self.item.snippet}"))

    def rank_search(self, asked: Sequence[str]) -> int:
        """Return the index of the first query that the item matches, or the number of queries."""
        found = (
            i
            for i, query in enumerate(asked)
            if measure_overlap(list_content_stems(query), self.all_stems) == 1
        )
        return next(found, len(asked))

    def list_wordings(self) -> list[str]:
        """Return ways to word the statement, as the composer will find them."""
        return phrase_statement(self.statement(), (self.item,), frozenset())

    def statement(self) -> Statement:
        """Return the statement in the form of a plan."""
        return Statement.model_validate(
            {
                "text": self.text,
                "evidence_ids": (self.item.id,),
                "quote": self.text,
                "modality": self.modality,
                "speaker": self.speaker,
            }
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
    if not is_publishable(item):
        return []
    title, sentence = clean_title(item.title), clean_sentence(item.snippet)
    found = []
    if title and not _is_all_names(title) and (parse_clause(title) or title.endswith("?")):
        found.append(_make_statement(item, title, from_title=True))
    if sentence:
        found.append(_make_statement(item, sentence, from_title=False))
    return found


def _is_all_names(title: str) -> bool:
    """Return whether a Title Case headline has too many words that may or may not be names."""
    rest = to_sentence_case(title, frozenset()).split()[1:]
    return sum(word[0].isupper() and not word.isupper() for word in rest) > MOST_CAPITALS * len(
        rest
    )


def _make_statement(item: Evidence, text: str, *, from_title: bool) -> NewsStatement:
    modality, speaker = _read_modality(text)
    return NewsStatement(
        item=item,
        text=text,
        from_title=from_title,
        modality=modality,
        speaker=speaker,
        tone=measure_tone(text),
        persons=find_persons(item, text),
    )


def _read_modality(text: str) -> tuple[str, str]:
    """Return the modality: a question, reported speech, a guess or a plain assertion."""
    if text.endswith("?"):
        return "question", ""
    found = _SPEAKER.search(text)
    if found or has_word(text, word_lists.load_words("attribution")):
        speaker = next((group for group in found.groups() if group), "") if found else ""
        return "attributed", speaker.strip()
    return ("hedged" if has_word(text, word_lists.load_words("hedges")) else "asserted"), ""

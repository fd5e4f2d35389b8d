"""News as statements that a plan may use: verbatim text, its quotation and how sure it is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from coreeval.agents.offline import care, lexicon
from coreeval.agents.offline.headline import clean_sentence, clean_title, parse, sentence_parts
from coreeval.agents.offline.text import content, has_any, overlap
from coreeval.agents.offline.wording import lower_key, ways_to_tell
from coreeval.schema import Evidence, Extraction, Person, Statement, Triple

MOST_CAPITALS = 0.4
"""Share of a headline's words that may keep a capital; with more the text reads as a headline."""
_SPEAKER = re.compile(
    r"(?:,\s|^)((?:an?|the)\s(?:new\s)?[\w ]{2,40}?)\s(?:says|said|shows|finds|found|has found)\b|"
    r"\baccording to ((?:the |an? )?[\w ]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class News:
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
        """The stems of the statement's content words."""
        return content(self.text)

    @cached_property
    def all_stems(self) -> frozenset[str]:
        """The stems of all that the item says."""
        return frozenset(content(f"{self.item.title} {self.item.snippet}"))

    def about(self, asked: Sequence[str]) -> int:
        """Return the place of the first of some searches that the item answers, or their number."""
        found = (i for i, query in enumerate(asked) if overlap(content(query), self.all_stems) == 1)
        return next(found, len(asked))

    def wordings(self) -> list[str]:
        """Return ways to put the statement, as the composer will find them."""
        return ways_to_tell(self.statement(), (self.item,), frozenset())

    def statement(self) -> Statement:
        """Return the statement as a plan holds it."""
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
        """Return what is said of whom, in the statement's own words."""
        head, relation, tail = sentence_parts(self.text)
        return Triple(head=head, relation=relation, tail=tail)


def statements_of(items: Sequence[Evidence]) -> list[News]:
    """Return the usable statements of all items, the order of the items kept."""
    return [news for item in items for news in _of_item(item)]


def asked_of(extraction: Extraction) -> list[str]:
    """Return what a sample is about, as the news is asked for it, names first."""
    names = [entity.query_name for entity in extraction.entities if entity.kind == "named"]
    others = [entity.query_name for entity in extraction.entities if entity.kind != "named"]
    return [*names, *extraction.queries, *others]


@lru_cache(maxsize=4096)
def _of_item(item: Evidence) -> list[News]:
    if not care.publishable(item):
        return []
    title, sentence = clean_title(item.title), clean_sentence(item.snippet)
    found = []
    if title and not _all_names(title) and (parse(title) or title.endswith("?")):
        found.append(_news(item, title, from_title=True))
    if sentence:
        found.append(_news(item, sentence, from_title=False))
    return found


def _all_names(title: str) -> bool:
    """Tell whether a headline in Title Case has too many words that may be names or may not."""
    rest = lower_key(title, frozenset()).split()[1:]
    return sum(word[0].isupper() and not word.isupper() for word in rest) > MOST_CAPITALS * len(
        rest
    )


def _news(item: Evidence, text: str, *, from_title: bool) -> News:
    modality, speaker = _modality(text)
    return News(
        item=item,
        text=text,
        from_title=from_title,
        modality=modality,
        speaker=speaker,
        tone=care.polarity(text),
        persons=care.persons(item, text),
    )


def _modality(text: str) -> tuple[str, str]:
    """Tell a question, someone's words, a guess and a plain assertion apart."""
    if text.endswith("?"):
        return "question", ""
    found = _SPEAKER.search(text)
    if found or has_any(text, lexicon.words("attribution")):
        speaker = next((group for group in found.groups() if group), "") if found else ""
        return "attributed", speaker.strip()
    return ("hedged" if has_any(text, lexicon.words("hedges")) else "asserted"), ""

"""What may not be written: a first screen of news and samples by conservative word lists.

Real people first (pilot §4): whatever names someone beside conduct, crime, illness or grief is left
out, and so is what the rules cannot tell apart from it.
"""

import re
from collections.abc import Mapping
from functools import cache

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.text import words_of
from coreeval.schema import Evidence, Person, Sensitive

_NAME_PAIR = re.compile(
    r"(?<!\w)([A-Z][a-z]+)\s+(?:[A-Z]\.\s+)?([A-Z][a-z]+(?:-[A-Z][a-z]+)?)(?!\w)"
)

_ROLE_PAIR = re.compile(r"(?<!\w)([A-Z][a-z]+|[A-Z]{2,3})\s+([A-Z][a-z]{2,})(?!\w)")


def sensitive_spans(text: str) -> list[Sensitive]:
    """Return what limits the writing about a text, with the flag of each span."""
    return [
        Sensitive(flag=flag, span=found.group())
        for flag, pattern in _flag_patterns().items()
        for found in pattern.finditer(text)
    ]


def publishable(item: Evidence) -> bool:
    """Tell whether an item of news may be used at all."""
    text = f"{item.title} {item.snippet}"
    if _skip_pattern("skip").search(text):
        return False
    return not (person_names(item) and _skip_pattern("conduct").search(text))


def person_names(item: Evidence) -> list[str]:
    """Return the persons whom an item names, by its entities and by common first names."""
    text = f"{item.title} {item.snippet}"
    tagged = [
        entity.name
        for entity in item.entities
        if entity.type == "person" and _last_name(entity.name) in text.casefold()
    ]
    first = lexicon.care("first_names")
    paired = [
        found.group() for found in _NAME_PAIR.finditer(text) if found.group(1).casefold() in first
    ]
    alone = [word for word in words_of(text) if _is_last_name(word)]
    led = [found.group(2) for found in _ROLE_PAIR.finditer(text) if _is_role(found.group(1))]
    return list(dict.fromkeys([*tagged, *paired, *alone, *led]))


def _is_last_name(word: str) -> bool:
    bare = word.removesuffix("'s").removesuffix("\u2019s")
    alone = lexicon.care("last_names") | lexicon.care("only_names")
    return word[0].isupper() and bare.casefold() in alone


def _is_role(word: str) -> bool:
    return word.casefold() in lexicon.care("roles")


def persons(item: Evidence, statement: str) -> tuple[Person, ...]:
    """Return the persons named in a statement; unpublishable items never come this far."""
    named = (name for name in person_names(item) if _last_name(name) in statement.casefold())
    return tuple(Person(name=name, role="subject", polarity="neutral") for name in named)


def polarity(text: str) -> int:
    """Return 1 for good news, -1 for bad news and 0 for neither, by word lists."""
    lists: Mapping[str, int] = {"positive": 1, "negative": -1}
    score = sum(sign * len(_tone_pattern(name).findall(text)) for name, sign in lists.items())
    return (score > 0) - (score < 0)


def _last_name(name: str) -> str:
    words = words_of(name)
    return words[-1].casefold() if words else name.casefold()


@cache
def _flag_patterns() -> dict[str, re.Pattern[str]]:
    return {
        flag: re.compile(lexicon.phrase_pattern(words), re.IGNORECASE)
        for flag, words in lexicon.sensitive().items()
    }


@cache
def _skip_pattern(name: str) -> re.Pattern[str]:
    return re.compile(lexicon.phrase_pattern(lexicon.unpublishable(name)), re.IGNORECASE)


@cache
def _tone_pattern(name: str) -> re.Pattern[str]:
    return re.compile(lexicon.phrase_pattern(lexicon.care(name)), re.IGNORECASE)

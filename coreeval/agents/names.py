"""Names and calendar words in a text, told from ordinary words by code."""

import re
from collections.abc import Collection
from itertools import pairwise

from coreeval.agents.lexicon import (
    FUNCTION_WORDS,
    MONTH_SHORT,
    MONTHS,
    NOT_NAMES,
    PERSONAL_WORDS,
    WEEKDAYS,
)
from coreeval.agents.marks import without_marks
from coreeval.agents.words import normalise, undotted, words

_TOKEN = re.compile(r"(?<!\w)[^\W\d_][^\W_]*(?:['.-][^\W_]+)*")
_TITLE = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|st|gov|sen|rep|gen|sgt|lt|col|capt|prof|rev|jr|sr|inc|corp|co|ltd|no|vs)"
    r"|\b[A-Z])\.$",
    re.IGNORECASE,
)
_NUMBER_NEAR = re.compile(r"^ ?\.? ?\d")
_BEFORE_MONTH = re.compile(
    r"\b(?:in|on|of|since|until|by|last|next|this|early|late|mid)[ -]$", re.I
)
_PLAIN = FUNCTION_WORDS - {"us", "it", "am"}
_ORDINARY = FUNCTION_WORDS | PERSONAL_WORDS | NOT_NAMES | MONTHS | WEEKDAYS
_DEMONYM = ("s", "n", "an", "ian", "ese", "ish", "i", "ns", "ans", "ians")


def names(text: str) -> list[str]:
    """Return the capitalised words inside sentences: names, by the look of them.

    The first word of a sentence is left out, since any word has a capital there, and so are months
    and weekdays, which `calendar` finds.
    """
    plain = undotted(without_marks(normalise(text)))
    return [
        found.group()
        for found in _TOKEN.finditer(plain)
        if found.group()[0].isupper() and _inside(plain[: found.start()]) and _nameable(found)
    ]


def _inside(before: str) -> bool:
    """Tell whether a sentence is under way after this text."""
    before = before.rstrip()
    if not before:
        return False
    return before[-1].isalnum() or before[-1] in ",&/'%$" or bool(_TITLE.search(before[-8:]))


def _nameable(found: re.Match[str]) -> bool:
    word = _bare(found.group())
    return len(word) > 1 and word not in _ORDINARY


def _bare(name: str) -> str:
    return name.casefold().removesuffix("'s").replace(".", "")


def shouted(text: str) -> bool:
    """Tell whether a text has ordinary words in capitals, so that capitals mark no name.

    An acronym alone is no shouting: that takes two such words in a row, a function word, or a long
    one.
    """
    tokens = _TOKEN.findall(without_marks(normalise(text)))
    loud = [len(token) > 1 and token.isupper() for token in tokens]
    in_a_row = any(one and other for one, other in pairwise(loud))
    return in_a_row or any(
        is_loud and (len(token) > 6 or token.casefold() in _PLAIN)
        for is_loud, token in zip(loud, tokens, strict=True)
    )


def titled(text: str) -> bool:
    """Tell whether most words of a text have a capital, as in a headline."""
    tokens = _TOKEN.findall(without_marks(normalise(text)))
    return len(tokens) >= 4 and sum(token[0].isupper() for token in tokens) > len(tokens) / 2


def unknown_names(text: str, *, like: str, known: Collection[str]) -> list[str]:
    """Return the names of a text that are not among the known words.

    `like` is the original: where it shouts, words all in capitals are no names; where it is written
    like a headline, nothing can be told.
    """
    if titled(like):
        return []
    skip_capitals = shouted(like)
    return [
        name
        for name in names(text)
        if not (skip_capitals and name.isupper()) and not _known(name, known)
    ]


def _known(name: str, known: Collection[str]) -> bool:
    """Look up the parts of a name that have a capital: `Depression-era` names the Depression."""
    parts = [word for part in name.split("-") if part[:1].isupper() for word in words(part)]
    return all(
        part == "s" or part in known or any(same_name(part, other) for other in known)
        for part in parts
    )


def same_name(one: str, other: str) -> bool:
    """Tell whether two words are one name, or a place and its people."""
    short, long = sorted((one, other), key=len)
    if short == long:
        return True
    return len(short) >= 4 and long.startswith(short) and long[len(short) :] in _DEMONYM


def calendar(text: str) -> set[str]:
    """Return the weekdays and months that a text names, written out in lower case."""
    plain = normalise(text)
    return {
        day for found in _TOKEN.finditer(plain) for day in [_day(found, plain)] if day is not None
    }


def _day(found: re.Match[str], text: str) -> str | None:
    word, after = _bare(found.group()), text[found.end() :]
    plural = word.removesuffix("s")
    if plural in WEEKDAYS:
        return plural
    if word in MONTH_SHORT:
        return (
            MONTH_SHORT[word] if found.group()[0].isupper() and _NUMBER_NEAR.match(after) else None
        )
    if word not in MONTHS:
        return None
    if word not in {"may", "march", "august"}:
        return word
    is_month = _NUMBER_NEAR.match(after) or _BEFORE_MONTH.search(text[: found.start()])
    return word if found.group()[0].isupper() and is_month else None

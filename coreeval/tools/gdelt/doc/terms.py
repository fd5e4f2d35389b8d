"""Spelling what is asked for so that DOC 2.0 accepts it (its rules: research gdelt §1)."""

import re
import unicodedata
from collections.abc import Callable, Sequence

from coreeval.schema import EntityQuery
from coreeval.tools.gdelt.words import TITLES_AND_SUFFIXES, keys, plain_words

SHORTEST_WORD = 3
SHORTEST_PHRASE = 5
"""Characters between the quotation marks; four are refused, whatever they are."""
LONGEST = 120
"""Bytes of a term, so that one always fits into a request; a longer name is cut at a word."""
NEAR = 20
"""Words within which those of a topic must stand (own choice; GDELT's examples have 10 and 20)."""
TOPIC_WORDS = 3
"""Words of a topic that are asked for, the longest ones, because they are rare (own choice). More
of them stand together in hardly any article."""
OPERATORS = frozenset({"and", "or", "not"})

_REFUSED = re.compile(r"[^\w&#+\-.,'/%$ ]|_")
"""What even a quoted phrase is not trusted to hold."""
_SIGN = re.compile(r"(?:(?<! ) +)?([^\w ]) *")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'"))


def terms_of(query: EntityQuery) -> tuple[str, ...]:
    """Return a query's spellings as DOC 2.0 takes them; none where all of them are too short."""
    spell = name_term if query.rung in ("named", "alias") else topic_term
    spelled = (spell(text) for text in (query.text, *query.aliases))
    return tuple(dict.fromkeys(term for term in spelled if term))


def name_term(name: str) -> str:
    """Return a name as a word or a quoted phrase, without forms of address and suffixes."""
    words = _trimmed(_cleaned(name).split())
    if len(words) == 1 and words[0].isalnum():
        return _word(words[0])
    return _fitting(words, _phrase)


def topic_term(text: str) -> str:
    """Return a topic as words that stand near each other; a short one as a phrase or a word."""
    words = list(dict.fromkeys(word for word in plain_words(_cleaned(text)) if keys(word)))
    if len(words) == 1 and words[0].isalnum():
        return _word(words[0])
    long = [word for word in words if len(word) >= SHORTEST_WORD and word.isalnum()]
    if len(long) < 2:
        return _fitting(words, _phrase)
    rarest = sorted(long, key=len, reverse=True)[:TOPIC_WORDS]
    return _fitting([word for word in long if word in rarest], _near)


def _cleaned(text: str) -> str:
    """Leave letters, digits and the signs of names: AT&T, C#, F-16, O'Neill, U.S., and/or."""
    return _REFUSED.sub(" ", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES))


def _trimmed(words: list[str]) -> list[str]:
    """Drop from both ends what finds nothing in particular: The Pentagon, Ferry Board Ltd."""
    telling = [at for at, word in enumerate(words) if _tells(word)]
    return words[telling[0] : telling[-1] + 1] if telling else []


def _tells(word: str) -> bool:
    return any(key not in TITLES_AND_SUFFIXES for key in keys(word))


def _fitting(words: Sequence[str], spell: Callable[[Sequence[str]], str]) -> str:
    """Spell as many of the words as a term has room for."""
    spelled = (spell(words[:count]) for count in range(len(words), 0, -1))
    return next((term for term in spelled if len(term.encode()) <= LONGEST), "")


def _word(word: str) -> str:
    short, long = len(word) < SHORTEST_WORD, len(word.encode()) > LONGEST
    return "" if short or long or word.casefold() in OPERATORS else word


def _phrase(words: Sequence[str]) -> str:
    """Quote words. Short ones get the spaces that DOC's own titles have: `AT & T`, `F - 16`."""
    text = " ".join(words).lstrip("-.,'/&+#% ").rstrip("-.,'/& ")
    if len(text) < SHORTEST_PHRASE:
        text = _SIGN.sub(r" \1 ", text).strip()
    return f'"{text}"' if len(text) >= SHORTEST_PHRASE else ""


def _near(words: Sequence[str]) -> str:
    return f'near{NEAR}:"{" ".join(words)}"' if len(words) > 1 else _word(words[0])

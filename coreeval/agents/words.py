"""Texts as words: one way to normalise, tokenise, stem, find and overlap, used by every check."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from coreeval.agents.lexicon import FUNCTION_WORDS, IRREGULAR
from coreeval.tools.html_references import unescape

Trigram = tuple[str, str, str]
GAP = "\x00"
"""Stands where a span was masked; no trigram reaches across it."""

_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|[a-z][a-z0-9]*);", re.IGNORECASE)
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad\ufe0f\u200e\u200f"), None)
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
    }
)
_SPLIT_DECIMAL = re.compile(r"(?<![\d.,])(\d{1,3})\. (\d{1,2})(?!\d|[.,]\d)")
_SPLIT_THOUSANDS = re.compile(r"(?<![\d.])(\d{1,3}), (\d{3})(?!\d)")
_ACRONYM = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_STATES = re.compile(r"\bU\.?S\.?(?:A\.?)?(?!\w)")
_SPLIT_CONTRACTION = re.compile(r"(\w) ?' ?(t|re|ve|ll|d|m)\b")
_POSSESSIVE = re.compile(r"(\w) ?'s\b")
_WORD = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:'[^\W_]+)*")
_CHUNK = re.compile(r"\w+|\.\.\.|[^\w\s]")
_SIGN = re.compile(r"[^\w\s]")
_WORDY = re.compile(r"\w+")
_LONGEST_SPELLING = 8
"""Characters that a span may have for each of a text's, `&quot;` among them."""
_DOUBLED = re.compile(r"([bdfglmnprt])\1$")


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Return text with entities resolved and quotes, dashes and whitespace written one way."""
    plain = unicodedata.normalize("NFC", text)
    plain = _ENTITY.sub(lambda found: unescape(found.group()), plain)
    plain = plain.replace("\\n", " ").translate(_INVISIBLE).replace("``", '"').replace("''", '"')
    return " ".join(plain.translate(_SAME).split())


def join_numbers(text: str) -> str:
    """Repair numbers that a news source has split, as in `1. 5` and `4, 500` (pilot §2)."""
    previous = ""
    while text != previous:
        previous, text = text, _SPLIT_THOUSANDS.sub(r"\1,\2", text)
    return _SPLIT_DECIMAL.sub(r"\1.\2", text)


def undotted(text: str) -> str:
    """Return a text with acronyms written without dots, and the country told from the pronoun.

    `U.S.`, `US` and `USA` all become `USA`; `us` stays.
    """
    return _ACRONYM.sub(lambda found: found.group().replace(".", ""), _STATES.sub("USA", text))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; tokenised and plain spelling give the same."""
    plain = _SPLIT_CONTRACTION.sub(r"\1'\2", undotted(normalise(text)))
    return _WORD.findall(_POSSESSIVE.sub(r"\1 s", plain).casefold())


def word_count(text: str) -> int:
    """Return how many words a text has, as a reader counts them: what spaces set apart."""
    return sum(any(map(str.isalnum, part)) for part in text.replace("\\n", " ").split())


def content_words(text: str) -> list[str]:
    """Return the words that state something: no function words, no lone letters."""
    return [word for word in words(text) if len(word) > 1 and word not in FUNCTION_WORDS]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return a crude stem under which `rises`, `rising` and `rose` meet `rise`."""
    base = IRREGULAR.get(word, word)
    for ending in ("ing", "ed", "es", "s", "ly"):
        if base.endswith(ending) and len(base) - len(ending) >= 3 and not base.endswith("ss"):
            base = base.removesuffix(ending)
            break
    base = _DOUBLED.sub(r"\1", base)
    if len(base) > 3:
        base = base.removesuffix("e")
    return base[:-1] + "i" if base.endswith("y") else base


def trigrams(text: str) -> set[Trigram]:
    """Return the word trigrams of a text; none reaches across a masked span."""
    parts = (words(part) for part in text.split(GAP))
    return {trigram for part in parts for trigram in zip(part, part[1:], part[2:], strict=False)}


def containment(text: str, reference: str, *, fewest: int = 1) -> float:
    """Return the share of a text's word trigrams that the reference holds too.

    With fewer than `fewest` trigrams there is nothing to take a share of: 0.
    """
    own = trigrams(text)
    if len(own) < max(fewest, 1):
        return 0.0
    return len(own & trigrams(reference)) / len(own)


def same_text(one: str, other: str) -> bool:
    """Tell whether two texts are equal but for case, spaces and punctuation."""
    return "".join(words(one)) == "".join(words(other))


@lru_cache(maxsize=4096)
def span_pattern(span: str) -> re.Pattern[str] | None:
    """Return what finds a span in raw or normalised text, whole words only; None for an empty one.

    It looks past entities, kinds of quotes and dashes, and spaces around punctuation.
    """
    chunks = _CHUNK.findall(normalise(span))
    if not chunks:
        return None
    body = _spelling(chunks[0])
    for last, chunk in pairwise(chunks):
        gap = "+" if _is_word(last) and _is_word(chunk) else "*"
        body += rf"(?:\s|\\n){gap}" + _spelling(chunk)
    before = r"(?:(?<!\w)|(?<=\\n))" if _is_word(chunks[0]) else ""
    after = r"(?!\w)" if _is_word(chunks[-1]) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def _spelling(chunk: str) -> str:
    exact = _SPELLINGS.get(chunk, re.escape(chunk))
    return exact if chunk.isascii() else f"{exact}\ufe0f?"


_SPELLINGS = {
    "&": r"(?:&amp;|&)",
    "<": r"(?:&lt;|<)",
    ">": r"(?:&gt;|>)",
    "'": "['\u2018\u2019\u201b\u00b4`]",
    '"': "(?:[\"\u201c\u201d\u201e\u201f\u00ab\u00bb]|&quot;|``|'')",
    "-": "[-\u2010-\u2015\u2212]",
    "...": r"(?:\.\.\.|\u2026)",
}


def _is_word(chunk: str) -> bool:
    return chunk[0].isalnum() or chunk[0] == "_"


def _may_hold(text: str, span: str) -> bool:
    """Tell whether a text has the words of a span, and signs enough.

    Making a pattern takes time for each word and sign, and models may answer with spans of any
    length: no pattern is made that is larger than the text.
    """
    if len(span) > _LONGEST_SPELLING * len(text):
        return False
    chunks = _CHUNK.findall(normalise(span))
    wanted = [chunk for chunk in chunks if _is_word(chunk)]
    signs = len(_SIGN.findall(text))
    if len(chunks) - len(wanted) > signs or len(wanted) > len(_WORDY.findall(text)):
        return False
    own = _caseless(text)
    return all(_caseless(word) in own for word in wanted)


def _caseless(text: str) -> str:
    """Return a text in which all letters that a pattern takes for the same are the same."""
    return text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def locate(text: str, span: str) -> str | None:
    """Return the span as the text spells it, preferring its own case; None if it is not there."""
    pattern = span_pattern(span) if _may_hold(text, span) else None
    if pattern is None:
        return None
    found = [match.group() for match in pattern.finditer(text)]
    return next((spelling for spelling in found if spelling == span), found[0] if found else None)


def holds(text: str, span: str, *, any_case: bool = True) -> bool:
    """Tell whether a span occurs in a text, whole words only."""
    text = unicodedata.normalize("NFC", text)
    pattern = span_pattern(span) if _may_hold(text, span) else None
    if pattern is None:
        return False
    if any_case:
        return pattern.search(text) is not None
    wanted = _spelled(span)
    return any(_spelled(found.group()) == wanted for found in pattern.finditer(text))


def _spelled(text: str) -> str:
    return "".join(normalise(text).split())


def mask(text: str, spans: Iterable[str], *, by: str = f" {GAP} ") -> str:
    """Return a text with every occurrence of the spans taken out, longest span first."""
    for span in sorted(spans, key=len, reverse=True):
        pattern = span_pattern(span)
        if pattern is not None:
            text = pattern.sub(by, text)
    return text

"""Texts as words and marks, in the same way for all checks.

Words are normalised, tokenised, stemmed, found and compared here. Marks are mentions, hashtags,
addresses, emoji and quotations.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import pairwise
from typing import Concatenate, ParamSpec, TypeVar

from coreeval.agents.text.lexicon import IRREGULAR
from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.languages import ENGLISH
from coreeval.tools.text import unescape

Trigram = tuple[str, str, str]
GAP = "\x00"
"""The placeholder for a masked span, which no trigram crosses."""

_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|[a-z][a-z0-9]*);", re.IGNORECASE)
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad\ufe0f\u200e\u200f"), None)
_SAME_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
    }
)
_SPLIT_DECIMAL = re.compile(
    r"(?<![\d.,])(\d{1,3})\. (\d{1,2}(?!\d|[.,]\d)|\d{3}(?= (?:[mb]|tr)illion\b))"
)
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
"""The most characters in a span for one character of a text, as in `&quot;`."""
_DOUBLED = re.compile(r"([bdfglmnprt])\1$")


_P = ParamSpec("_P")
_T = TypeVar("_T")
_LONGEST_KEPT = 4000
"""The most characters of a text whose results are cached (own choice: documents would fill
memory)."""


def keep_results(
    function: Callable[Concatenate[str, _P], _T],
) -> Callable[Concatenate[str, _P], _T]:
    """Return a function of a text that caches its last 4,096 results, except for long texts."""
    kept = lru_cache(maxsize=4096)(function)

    @wraps(function)
    def look_up(text: str, /, *args: _P.args, **options: _P.kwargs) -> _T:
        return (kept if len(text) <= _LONGEST_KEPT else function)(text, *args, **options)  # type: ignore[arg-type]

    return look_up


@keep_results
def normalise(text: str) -> str:
    """Return text with entities resolved, and with quotes, dashes and whitespace unified."""
    plain = unicodedata.normalize("NFC", text)
    plain = _ENTITY.sub(lambda found: unescape(found.group()), plain)
    plain = plain.replace("\\n", " ").translate(_INVISIBLE).replace("``", '"').replace("''", '"')
    return " ".join(plain.translate(_SAME_SIGNS).split())


def join_numbers(text: str) -> str:
    """Repair numbers that a news source has split, such as `1. 5` and `4, 500` (pilot §2)."""
    previous = ""
    while text != previous:
        previous, text = text, _SPLIT_THOUSANDS.sub(r"\1,\2", text)
    return _SPLIT_DECIMAL.sub(r"\1.\2", text)


def remove_acronym_dots(text: str) -> str:
    """Return a text with acronyms without dots, which distinguishes the country from the pronoun.

    `U.S.`, `US` and `USA` all become `USA`; `us` stays.
    """
    return _ACRONYM.sub(lambda found: found.group().replace(".", ""), _STATES.sub("USA", text))


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, the same for tokenised and plain spelling."""
    return list(_split_words(text))


@keep_results
def _split_words(text: str) -> tuple[str, ...]:
    plain = _SPLIT_CONTRACTION.sub(r"\1'\2", remove_acronym_dots(normalise(text)))
    return tuple(_WORD.findall(_POSSESSIVE.sub(r"\1 s", plain).casefold()))


def count_words(text: str) -> int:
    """Return the number of words in a text, separated by spaces."""
    return sum(any(map(str.isalnum, part)) for part in text.replace("\\n", " ").split())


def find_content_words(text: str, language: str = ENGLISH) -> list[str]:
    """Return the content words of a text, without function words and single letters."""
    without_content = vocabulary_of(language).function_words
    return [word for word in _split_words(text) if len(word) > 1 and word not in without_content]


@keep_results
def find_content_stems(text: str, language: str = ENGLISH) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(stem(word, language) for word in find_content_words(text, language))


@lru_cache(maxsize=16384)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return a crude stem, the same for `rises`, `rising`, `rose` and `rise`."""
    if language != ENGLISH:
        return _stem_by_endings(word, vocabulary_of(language).endings)
    base = IRREGULAR.get(word, word)
    for ending in ("ing", "ed", "es", "s", "ly"):
        if base.endswith(ending) and len(base) - len(ending) >= 3 and not base.endswith("ss"):
            base = base.removesuffix(ending)
            break
    base = _DOUBLED.sub(r"\1", base)
    while len(base) > 3 and base.endswith("e"):  # agree, agreed
        base = base.removesuffix("e")
    return base[:-1] + "i" if base.endswith("y") else base


def _stem_by_endings(word: str, endings: Sequence[str]) -> str:
    """Return a word without accents and without the first ending that leaves a stem.

    A stem has at least three letters, or four if the ending is one consonant: `Bahn` is not `Bah`.
    """
    letters = unicodedata.normalize("NFD", word)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    for ending in endings:
        fewest = 4 if ending in _CONSONANTS else 3
        if bare.endswith(ending) and len(bare) - len(ending) >= fewest:
            return bare.removesuffix(ending)
    return bare


_CONSONANTS = frozenset("nst")


def list_trigrams(text: str) -> set[Trigram]:
    """Return the word trigrams of a text; none spans a masked part."""
    parts = (split_words(part) for part in text.split(GAP))
    return {trigram for part in parts for trigram in zip(part, part[1:], part[2:], strict=False)}


def measure_containment(text: str, reference: str, *, fewest: int = 1) -> float:
    """Return the share of a text's word trigrams that also occur in the reference.

    Return 0 for fewer than `fewest` trigrams, which are too few for a share.
    """
    own = list_trigrams(text)
    if len(own) < max(fewest, 1):
        return 0.0
    return len(own & list_trigrams(reference)) / len(own)


def is_same_text(one: str, other: str) -> bool:
    """Return whether two texts are equal except for case, spaces and punctuation."""
    return "".join(split_words(one)) == "".join(split_words(other))


@lru_cache(maxsize=4096)
def build_span_pattern(span: str) -> re.Pattern[str] | None:
    """Return a whole-word pattern for a span in raw or normalised text; None for an empty span.

    It ignores entities, kinds of quotes and dashes, and spaces around punctuation.
    """
    chunks = _CHUNK.findall(normalise(span))
    if not chunks:
        return None
    body = _chunk_pattern(chunks[0])
    for last, chunk in pairwise(chunks):
        gap = "+" if _is_word(last) and _is_word(chunk) else "*"
        body += rf"(?:\s|\\n){gap}" + _chunk_pattern(chunk)
    before = r"(?:(?<!\w)|(?<=\\n))" if _is_word(chunks[0]) else ""
    after = r"(?!\w)" if _is_word(chunks[-1]) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def _chunk_pattern(chunk: str) -> str:
    exact = _SPELLINGS.get(chunk, re.escape(chunk))
    return exact if chunk.isascii() else f"{exact}\ufe0f?"


_SPELLINGS = {
    "&": r"(?:&amp;|&)",
    "<": r"(?:&lt;|<)",
    ">": r"(?:&gt;|>)",
    "'": "['\u2018\u2019\u201a\u201b\u2039\u203a\u00b4`]",
    '"': "(?:[\"\u201c\u201d\u201e\u201f\u00ab\u00bb]|&quot;|``|'')",
    "-": "[-\u2010-\u2015\u2212]",
    "...": r"(?:\.\.\.|\u2026)",
}


def _is_word(chunk: str) -> bool:
    return chunk[0].isalnum() or chunk[0] == "_"


def _may_have_span(text: str, span: str) -> bool:
    """Return whether a text has the words of a span and enough signs.

    Building a pattern takes time for each word and sign, and models may answer with spans of any
    length: no pattern larger than the text is built.
    """
    if len(span) > _LONGEST_SPELLING * len(text):
        return False
    chunks = _CHUNK.findall(normalise(span))
    wanted = [chunk for chunk in chunks if _is_word(chunk)]
    signs = len(_SIGN.findall(text))
    if len(chunks) - len(wanted) > signs or len(wanted) > len(_WORDY.findall(text)):
        return False
    own = _fold_case(text)
    return all(_fold_case(word) in own for word in wanted)


def filter_spans(text: str, spans: Iterable[str]) -> Iterator[str]:
    """Yield the spans that `has_span` finds in a text; the text is read once for all."""
    own = _list_chunks(text)
    for span in spans:
        is_word = _WORDY.fullmatch(span) is not None
        if _list_chunks(span) <= own and (is_word or has_span(text, span)):
            yield span


def _list_chunks(text: str) -> set[str]:
    return set(_WORDY.findall(_fold_case(normalise(text))))


def _fold_case(text: str) -> str:
    """Return a text with letters unified that a pattern treats as the same."""
    return text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def _has_exact_span(text: str, span: str) -> bool:
    """Return whether a text has a span of plain characters in the same spelling as whole words.

    Most spans are quoted exactly, so that no pattern must be compiled.
    """
    if not span.isascii() or "&" in span or "\\" in span or span != span.strip():
        return False
    at = text.find(span) if span else -1
    while at >= 0:
        end = at + len(span)
        begins = not (_is_word(span[0]) and at and _is_word(text[at - 1]))
        ends = not (_is_word(span[-1]) and end < len(text) and _is_word(text[end]))
        if ends and (begins or text.endswith("\\n", 0, at)):
            return True
        at = text.find(span, at + 1)
    return False


def find_span(text: str, span: str) -> str | None:
    """Return the span as the text spells it, preferring its own case; None if it does not occur."""
    if _has_exact_span(text, span):
        return span
    pattern = build_span_pattern(span) if _may_have_span(text, span) else None
    if pattern is None:
        return None
    found = [match.group() for match in pattern.finditer(text)]
    return next((spelling for spelling in found if spelling == span), found[0] if found else None)


def has_span(text: str, span: str, *, any_case: bool = True) -> bool:
    """Return whether a span occurs in a text as whole words."""
    text = unicodedata.normalize("NFC", text)
    if _has_exact_span(text, span):
        return True
    pattern = build_span_pattern(span) if _may_have_span(text, span) else None
    if pattern is None:
        return False
    if any_case:
        return pattern.search(text) is not None
    wanted = _remove_spaces(span)
    return any(_remove_spaces(found.group()) == wanted for found in pattern.finditer(text))


def _remove_spaces(text: str) -> str:
    return "".join(normalise(text).split())


def mask_spans(text: str, spans: Iterable[str], *, by: str = f" {GAP} ") -> str:
    """Return a text with every occurrence of the spans replaced by `by`, longest span first."""
    for span in sorted(spans, key=len, reverse=True):
        pattern = build_span_pattern(span)
        if pattern is not None:
            text = pattern.sub(by, text)
    return text


_MENTION = re.compile(r"(?<![\w.])@\w+")
_HASHTAG = re.compile(r"(?<![\w&])#\w*[^\W\d]\w*")
_URL = re.compile(r"https?://\S+|\bwww\.\S+|\bpic\.twitter\.com/\S+", re.IGNORECASE)
_PICTURE = (
    "[\U0001f000-\U0001f0ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf\u2b00-\u2bff"
    "\u2300-\u23ff]"
)
_ONE_PICTURE = f"{_PICTURE}\ufe0f?[\U0001f3fb-\U0001f3ff]?"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|{_ONE_PICTURE}(?:\u200d(?:{_ONE_PICTURE}|[\u2640\u2642]\ufe0f?))*"
    "|[0-9#*]\ufe0f?\u20e3|[\U0001f3fb-\U0001f3ff]"
)
_SINGLE_QUOTED = re.compile(r"(?<!\w)'(?=\S)([^']{2,}?(?:(?<=\w)'\w+[^']*?)*)(?<=\S)'(?!\w)")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")


def find_mentions(text: str) -> list[str]:
    """Return the @names of a text, in order."""
    return _MENTION.findall(text)


def find_hashtags(text: str) -> list[str]:
    """Return the #tags of a text, in order."""
    return _HASHTAG.findall(_URL.sub(" ", text))


def find_urls(text: str) -> list[str]:
    """Return the URLs in a text, in order."""
    return _URL.findall(text)


def find_emoji(text: str) -> list[str]:
    """Return the emoji of a text; each joined sequence or flag is one item."""
    return _EMOJI.findall(text)


def remove_marks(text: str) -> str:
    """Return a text without addresses, @names, #tags and emoji; `.` replaces an emoji."""
    plain = _MENTION.sub(" ", _HASHTAG.sub(" ", _URL.sub(" ", text)))
    return _EMOJI.sub(" . ", plain)


MOST_SPANS = 200
"""The most quotations, tags or other spans of one kind in a text that are searched in others (own
choice: an article of 2,000 words has about 40 quotations)."""


def find_quotations(text: str) -> list[str]:
    """Return the text inside quotation marks, without the marks.

    An unmatched mark opens a quotation up to the end: sentences of pairs are often from the middle
    of a quotation.
    """
    plain = normalise(text)
    double = plain.split('"')[1::2]
    single = filter(_is_long_quotation, _SINGLE_QUOTED.findall(plain))
    return [part.strip() for part in (*double, *single) if re.search(r"\w", part)]


def remove_quotations(text: str) -> str:
    """Return a normalised text without the quotations of `find_quotations`."""
    outside = " ".join(normalise(text).split('"')[::2])
    return " ".join(_SINGLE_QUOTED.sub(_drop_quotation, outside).split())


def _drop_quotation(found: re.Match[str]) -> str:
    return " " if _is_long_quotation(found[1]) else found.group()


def _is_long_quotation(inner: str) -> bool:
    """Return whether words in single marks are a quotation; one or two words may not be."""
    return len(inner.split()) >= 3


_CLOSED_QUOTATION = re.compile(
    r"\"[^\"]+\"|[\u201c\u201e][^\u201c\u201d\u201e]+[\u201c\u201d]"
    r"|\u00ab[^\u00ab\u00bb]+\u00bb|\u00bb[^\u00ab\u00bb]+\u00ab"
    r"|``(?:[^`\n]|`(?!`))+?''|&quot;.+?&quot;"
)


def find_closed_quotations(text: str) -> list[str]:
    """Return the quotations that both open and close in a text, with marks and spelling kept."""
    return _CLOSED_QUOTATION.findall(text)


def find_marker(text: str, marker: str) -> list[str]:
    """Return each whole-token occurrence of a marker, as the text spells it."""
    return re.findall(rf"(?<!\w){re.escape(marker)}(?!\w)", text, re.IGNORECASE)


def count_marker(text: str, marker: str) -> int:
    """Return the number of times that a marker occurs in a text."""
    return len(find_marker(text, marker))


def find_target(text: str, terms: tuple[str, ...]) -> list[str]:
    """Return the words of a text that name a stance's target, including hashtags with it."""
    tags = [
        tag
        for tag in find_hashtags(text)
        if any(_join_term(term) in tag.casefold() for term in terms)
    ]
    plain = _HASHTAG.sub(" ", text)
    found = [match for term in terms for match in _term_pattern(term).findall(plain)]
    return list(dict.fromkeys([*tags, *found]))


def _join_term(term: str) -> str:
    return re.sub(r"\W", "", term.casefold())


def _term_pattern(term: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)@?{re.escape(term)}(?!\w)", re.IGNORECASE)


def measure_latin_share(text: str) -> float:
    """Return the share of a text's letters that are Latin; 1 for a text without letters."""
    letters = _LETTER.findall(text)
    return len(_LATIN.findall(text)) / len(letters) if letters else 1.0

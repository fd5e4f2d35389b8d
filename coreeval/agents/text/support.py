"""Checks whether evidence supports a text's words, names, dates, numbers and quotations.

Code distinguishes names and calendar words from ordinary words.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile

from coreeval.agents.text.language_checks import NAMES, WORDS
from coreeval.agents.text.lexicon import (
    ABBREVIATIONS,
    CALENDAR,
    CONDUCT_ALIKE,
    DEMONYMS,
    FUNCTION_WORDS,
    LIGHT_VERBS,
    MONTH_SHORT,
    MONTHS,
    WEEKDAYS,
    WORDS_ALIKE,
)
from coreeval.agents.text.numbers import NUMBER_WORDS, find_missing_numbers, find_source_numbers
from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.agents.text.words import (
    find_content_words,
    has_span,
    join_numbers,
    keep_results,
    normalise,
    remove_acronym_dots,
    remove_marks,
    split_words,
    stem,
)
from coreeval.languages import ENGLISH
from coreeval.schema import Evidence

_TOKEN = re.compile(r"(?<!\w)[^\W\d_][^\W_]*(?:['.-][^\W_]+)*")
_PASSED_ON = re.compile(r"(?<!\w)RT(?: @\w+)+")
_TITLE = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|st|gov|sen|rep|gen|sgt|lt|col|capt|prof|rev|jr|sr|inc|corp|co|ltd|no|vs)"
    r"|\b[A-Z])\.$",
    re.IGNORECASE,
)
_NUMBER_NEAR = re.compile(r" ?\.? ?\d")
_BEFORE_MONTH = re.compile(
    r"\b(?:in|on|of|since|until|by|last|next|this|early|late|mid)[ -]$", re.I
)
_SHOUTED_WORDS = FUNCTION_WORDS - {"us", "it", "am"}
_DEMONYM_ENDINGS = ("s", "n", "an", "ian", "ese", "ish", "i", "ns", "ans", "ians")


_DELAY_DAYS = 2
"""The number of days after an event in which its reports may still appear (own choice)."""
_ACRONYMS = re.compile(r"[A-Z]{2,}s")
_CONTRACTED = frozenset(["t", "re", "ve", "ll", "d", "m", "s"])


@cache
def _ordinary_words(language: str) -> frozenset[str]:
    """Return the words that are not names, even with a capital."""
    words = vocabulary_of(language)
    return frozenset().union(
        words.function_words, words.personal_words, words.not_names, words.months, words.weekdays
    )


def find_names(text: str, language: str = ENGLISH) -> list[str]:
    """Return the capitalised words inside sentences, which look like names.

    The first word of a sentence is excluded, because any word has a capital there; so is the first
    word after the `RT @name` of a retweet. Months and weekdays, which `find_calendar_words`
    returns, are also excluded.
    """
    plain = remove_acronym_dots(remove_marks(_PASSED_ON.sub(" . ", normalise(text))))
    return [
        found.group()
        for found in _TOKEN.finditer(plain)
        if found.group()[0].isupper()
        and _is_inside_sentence(plain, found.start())
        and _is_name(found, _ordinary_words(language))
    ]


def _is_inside_sentence(text: str, at: int) -> bool:
    """Return whether the text before a position ends inside a sentence."""
    while at and text[at - 1].isspace():
        at -= 1
    if not at:
        return False
    last = text[at - 1]
    return last.isalnum() or last in ",&/'%$" or bool(_TITLE.search(text[max(0, at - _NEAR) : at]))


def _is_name(found: re.Match[str], ordinary: Collection[str]) -> bool:
    word = _strip_name(found.group())
    return len(word) > 1 and word not in ordinary


def _strip_name(name: str) -> str:
    return name.casefold().removesuffix("'s").replace(".", "")


def is_shouted(text: str) -> bool:
    """Return whether a text has ordinary words in capitals, so that capitals do not show names.

    A single acronym does not count: two such words in a row, a function word, or a long word is
    required.
    """
    tokens = _TOKEN.findall(remove_marks(normalise(text)))
    loud = [len(token) > 1 and token.isupper() for token in tokens]
    in_a_row = any(one and other for one, other in pairwise(loud))
    return in_a_row or any(
        is_loud and (len(token) > 6 or token.casefold() in _SHOUTED_WORDS)
        for is_loud, token in zip(loud, tokens, strict=True)
    )


def is_title_case(text: str) -> bool:
    """Return whether most words of a text have a capital, as in a headline."""
    tokens = _TOKEN.findall(remove_marks(normalise(text)))
    return len(tokens) >= 4 and sum(token[0].isupper() for token in tokens) > len(tokens) / 2


def find_unknown_names(
    text: str, *, like: str, known: Collection[str], language: str = ENGLISH
) -> list[str]:
    """Return the names of a text that are not known words; none if capitals do not show names.

    `like` is the original: if it is shouted, words in all capitals are not names; if it is written
    like a headline, capitals show nothing.
    """
    if is_title_case(like) or not NAMES.knows(language):
        return []
    skip_capitals, known = is_shouted(like), frozenset(known)
    return [
        name
        for name in find_names(text, language)
        if not (skip_capitals and name.isupper()) and not _is_known(name, known)
    ]


def _is_known(name: str, known: frozenset[str]) -> bool:
    """Look up the capitalised parts of a name: `Depression-era` names the Depression.

    The plural of an acronym also matches the acronym, and vice versa.
    """
    capitals = (part for part in name.split("-") if part[:1].isupper())
    return all(
        word == "s"
        or any(form in known for form in (word, *_other_number(part)))
        or all(half in known for half in _split_elision(word))
        or not known.isdisjoint(_list_same_names(word))
        for part in capitals
        for word in split_words(part)
    )


def _other_number(name: str) -> list[str]:
    """Return the plural of an acronym, or the acronym of a plural; empty for other words."""
    if _ACRONYMS.fullmatch(name):
        return [name.removesuffix("s").casefold()]
    return [f"{name}s".casefold()] if len(name) > 2 and name.isupper() else []


def _split_elision(word: str) -> list[str]:
    """Return the parts of a word around an apostrophe, as tokenised texts write it: `d 'Apollon`.

    A word without an apostrophe, or a contraction of two words, is not split.
    """
    start, mark, rest = word.partition("'")
    return [start, rest] if mark and rest not in _CONTRACTED else [word]


def _list_same_names(word: str) -> Iterator[str]:
    """Yield all words that `is_same_name` considers the same as a word."""
    yield word
    if len(word) >= _SHORTEST_NAME:
        yield from (word + ending for ending in _DEMONYM_ENDINGS)
    for ending in _DEMONYM_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_NAME:
            yield word.removesuffix(ending)


_SHORTEST_NAME = 4
"""The fewest letters of a name that may have an ending."""


def is_same_name(one: str, other: str) -> bool:
    """Return whether two words are the same name, or a place and its people."""
    short, long = sorted((one, other), key=len)
    if short == long:
        return True
    return (
        len(short) >= _SHORTEST_NAME
        and long.startswith(short)
        and long[len(short) :] in _DEMONYM_ENDINGS
    )


def find_calendar_words(text: str, language: str = ENGLISH) -> set[str]:
    """Return the weekdays and months that a text names, unabbreviated and in lower case."""
    if language != ENGLISH:
        words = vocabulary_of(language)
        said = {form for word in split_words(text) for form in (word, word.removesuffix("s"))}
        return said & (words.weekdays | words.months)
    plain = normalise(text)
    return {
        day
        for found in _TOKEN.finditer(plain)
        for day in [_calendar_word(found, plain)]
        if day is not None
    }


def _calendar_word(found: re.Match[str], text: str) -> str | None:
    word, start = _strip_name(found.group()), found.start()
    plural = word.removesuffix("s")
    if plural in WEEKDAYS:
        return plural
    if word not in MONTH_SHORT and word not in MONTHS:
        return None
    has_capital, has_number = text[start].isupper(), _NUMBER_NEAR.match(text, found.end())
    if word in MONTH_SHORT:
        return MONTH_SHORT[word] if has_capital and has_number else None
    if word not in {"may", "march", "august"}:
        return word
    is_month = has_number or _BEFORE_MONTH.search(text[max(0, start - _NEAR) : start])
    return word if has_capital and is_month else None


_NEAR = 8
"""The number of characters before a word that determine its kind."""


def evidence_text(item: Evidence) -> str:
    """Return the full text of a piece of evidence."""
    return normalise(f"{item.title} . {item.snippet}")


def name_month(item: Evidence) -> str:
    """Return the month and the year in which a piece of evidence appeared, in English.

    Early in a month, only the year is certain: the reported event may be from the previous month. A
    day's page of current events has the day of the event itself.
    """
    when, surely = item.published_at, item.source == "current_events"
    is_early = when.day <= _DELAY_DAYS and not surely
    if is_early and when.month == 1:
        return ""
    return f"{when.year}" if is_early else f"{CALENDAR[when.month - 1].title()} {when.year}"


def is_quoted_in(quote: str, text: str) -> bool:
    """Return whether a meaningful quotation is a substring of a news text.

    Case, kinds of quotation marks, and splits of numbers by the source are ignored.
    """
    if not find_content_words(quote):
        return False
    repaired = join_numbers(normalise(quote))
    return has_span(text, quote) or has_span(join_numbers(normalise(text)), repaired)


# fmt: off
_DERIVING_ENDINGS = frozenset([
    "", "al", "an", "ance", "ant", "ation", "e", "ed", "ence", "ent", "er", "es", "i", "ing",
    "ion", "ity", "ive", "ly", "ment", "ness", "or", "s", "t", "tion",
])
# fmt: on
_LONGEST_ENDING = max(map(len, _DERIVING_ENDINGS))
_FEWEST_SHARED = 5
"""The fewest letters that two forms of one word share, such as `committed` and `commitment` (own
choice)."""


def _is_derived(one: str, other: str) -> bool:
    """Return whether two stems differ only in an ending that forms another word form."""
    shared = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    )
    if shared < _FEWEST_SHARED or max(len(one), len(other)) - shared > _LONGEST_ENDING:
        return False
    return {one[shared:], other[shared:]} <= _DERIVING_ENDINGS


def _list_stems(alike: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {stem(one): frozenset(map(stem, others)) for one, others in alike.items()}


_ALIKE_STEMS, _ALIKE_CONDUCT = _list_stems(WORDS_ALIKE), _list_stems(CONDUCT_ALIKE)


class Support:
    """The words and numbers that some news texts support."""

    def __init__(self, texts: Sequence[str], language: str = ENGLISH) -> None:
        self._texts = texts
        self._language = language
        self._numbers = find_source_numbers(texts, language)
        self._stems = frozenset(
            stem(word, language) for text in texts for word in expand_words(text, language)
        )
        self._joined = frozenset(joined for text in texts for joined in join_neighbours(text))

    @classmethod
    def from_evidence(
        cls, items: Sequence[Evidence], *, and_also: str = "", language: str = ENGLISH
    ) -> "Support":
        """Return the support of pieces of evidence and a translation of one of them."""
        return cls([*(evidence_text(item) for item in items), and_also], language)

    def missing_words(self, text: str, *, allowed: frozenset[str] = frozenset()) -> list[str]:
        """Return the content words of a text that are in no evidence, numbers excluded.

        English light verbs need no evidence. Return none in a language without known function
        words.
        """
        if not WORDS.knows(self._language):
            return []
        free = allowed | LIGHT_VERBS if self._language == ENGLISH else allowed
        return [
            word
            for word in dict.fromkeys(find_content_words(text, self._language))
            if word not in free
            and word not in self._joined
            and not _is_number(word, self._language)
            and not self._has_stem(stem(word, self._language))
        ]

    def _has_stem(self, wanted: str) -> bool:
        """Return whether the texts have a word, a similar or derived one, or a compound."""
        if wanted in self._stems:
            return True
        if self._language == ENGLISH:
            if not self._stems.isdisjoint(_ALIKE_STEMS.get(wanted, ())):
                return True
            return any(_is_derived(wanted, known) for known in self._stems)
        if not vocabulary_of(self._language).joins_words or len(wanted) < SHORTEST_PART:
            return False
        return any(_is_part(wanted, known) or _is_part(known, wanted) for known in self._stems)

    def missing_conduct(self, said: Iterable[str]) -> list[str]:
        """Return the words of conduct that are in no evidence, even in other words."""
        return [
            word
            for word in self.missing_words(" ".join(said))
            if self._stems.isdisjoint(_ALIKE_CONDUCT.get(stem(word), ()))
        ]

    def missing_numbers(self, text: str) -> list[str]:
        """Return the numbers of a text that no evidence states in any unit."""
        found = find_missing_numbers(text, self._numbers, self._language)
        return [number.text for number in found]


SHORTEST_PART = 4
"""The fewest letters of a word that may be a part of a compound (own choice)."""


def _is_part(short: str, long: str) -> bool:
    return len(short) >= SHORTEST_PART and (long.startswith(short) or long.endswith(short))


@keep_results
def expand_words(text: str, language: str = ENGLISH) -> frozenset[str]:
    """Return the words of a text and the words for its signs and short forms.

    A long form also supports its short form, and a people its place; both are only known for
    English.
    """
    lowered = text.casefold()
    signs = [name for sign, name in vocabulary_of(language).signs.items() if sign in lowered]
    own = frozenset(split_words(" ".join([_CAMEL.sub(" ", text.replace("#", " ")), text, *signs])))
    own = own.union(*map(_split_elision, own))
    if language != ENGLISH:
        return own
    written_out = (long for short, long in _SHORT_FORMS.items() if short in own)
    places = (place for people, place in DEMONYMS.items() if f"{people}s" in own)
    shortened = (short for short, long in _LONG_FORMS if own.issuperset(long))
    return own.union(*(long.split() for long in written_out), places, shortened)


MOST_JOINED = 3
"""The most words that a hashtag joins (own choice)."""


def join_neighbours(text: str) -> Iterator[str]:
    """Yield each two or three words of a text as one: "GTA VI" supports "#GTAVI"."""
    words = split_words(text)
    for number in range(2, MOST_JOINED + 1):
        for start in range(len(words) - number + 1):
            yield "".join(words[start : start + number])


_SHORT_FORMS = ABBREVIATIONS | DEMONYMS | MONTH_SHORT
_LONG_FORMS = [(short, frozenset(long.split())) for short, long in _SHORT_FORMS.items()]
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _is_number(word: str, language: str) -> bool:
    if language == ENGLISH:
        return word[0].isdigit() or word in NUMBER_WORDS
    words = vocabulary_of(language)
    return word[0].isdigit() or word in words.numbers or word in words.scales

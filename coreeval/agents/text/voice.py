"""Detects an author's writing habits in a text, and differences from news style."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

from coreeval.agents.text.lexicon import FUNCTION_WORDS, INFORMAL, WEEKDAYS
from coreeval.agents.text.numbers import find_numbers
from coreeval.agents.text.vocabulary import vocabulary_of
from coreeval.agents.text.words import (
    count_words,
    find_emoji,
    keep_results,
    list_trigrams,
    normalise,
    remove_marks,
    remove_quotations,
    split_words,
)
from coreeval.languages import ENGLISH

MOST_HINTS = 6
"""The most habits shown to a writer; more would become a checklist (own choice)."""
_SENTENCE = re.compile("[^.!?\u3002\uff01\uff1f]+[.!?\u3002\uff01\uff1f]*")
_STRETCHED = re.compile(r"\b\w*?([a-z])\1{2,}\w*", re.IGNORECASE)
_DOUBLED = re.compile(r"!{2,}|\?{2,}|[!?]*(?:!\?|\?!)[!?]*|\.{2,}|,{2,}")
_LOUD = re.compile(
    r"\b(?!(?:I|A|OK|TV|US|UK|EU|UN|AI|NFL|NBA|NHL|BBC|CNN|FBI|CIA|GOP)\b)[A-Z]{2,}\b"
)
_MINE = re.compile(r"\b(?:and|are|as|be|is|like|of|than|to|was|were|with) mine\b", re.IGNORECASE)
_MACHINE = re.compile("\u2014|(?<!\\d)\u2013|\u2013(?!\\d)|(?<!&amp)(?<!&lt)(?<!&gt);")
_FIRST_WORD = re.compile(r"(?!https?://|www\.|pic\.)[^\w@#]*(?P<word>[^\W\d_]\w*)")
_CAPITAL_DUE = re.compile(
    r"[^\W\d_]{2}\s*(?:[!?]+|\.)\s+[^\W\d_]|\bi(?:'(?:m|d|ve|ll))?(?!\w)|\b(?:im|ive)\b"
    rf"|\b(?:{'|'.join(sorted(WEEKDAYS))})\b",
)
"""Where English needs a capital after the start of a text: the next sentence, `I`, weekdays."""
LONG_SENTENCE = 22
"""The most words of a sentence that needs no comma (own choice; 1 in 40 tweets has a longer
one)."""
_PAUSE = re.compile(r"[,:;()]|\s-+\s|\.\.")
_FINAL = re.compile(r"[.!?\u2026][\"')\] ]*$")


def plain_text(text: str) -> str:
    """Return a text without addresses, @names, #tags, emoji and written-out line breaks."""
    return " ".join(remove_marks(text.replace("\\n", " ")).split())


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text that contain a word."""
    return [part.strip() for part in _SENTENCE.findall(plain_text(text)) if split_words(part)]


def measure_function_words(text: str) -> float:
    """Return the share of function words, which headlines omit; 1 for a text without words."""
    own = split_words(plain_text(text))
    return sum(word in FUNCTION_WORDS for word in own) / len(own) if own else 1.0


def find_figures(text: str, language: str = ENGLISH) -> list[str]:
    """Return the numbers that a text writes in digits."""
    return [
        number.text
        for number in find_numbers(plain_text(text), language)
        if any(map(str.isdigit, number.text))
    ]


def find_machine_marks(text: str) -> list[str]:
    """Return the long dashes and semicolons, which people rarely type."""
    return _MACHINE.findall(text)


def find_informal_words(text: str, language: str = ENGLISH) -> list[str]:
    """Return the spellings of everyday writing: `u`, `gonna`, `dont`, `sooo`.

    For languages other than English, only stretched words are detected.
    """
    known = INFORMAL if language == ENGLISH else ()
    found = [word for word in split_words(text) if word in known]
    return list(
        dict.fromkeys([*found, *(hit.group() for hit in _STRETCHED.finditer(plain_text(text)))])
    )


def starts_lower(text: str) -> bool:
    """Return whether an author starts a text in lower case.

    If a text starts with a figure, a tag or an @name, which may be its subject, only its other
    sentences count.
    """
    first = _FIRST_WORD.match(normalise(text))
    return (first is not None and first["word"].islower()) or _writes_lower(text)


def starts_capital(text: str) -> bool:
    """Return whether the first word of a text, except tags and @names, starts with a capital."""
    first = re.search(r"[^\W\d_]", plain_text(text))
    return first is not None and first.group().isupper()


def _writes_lower(text: str) -> bool:
    """Return whether a text has no capitals, although one is required after its start."""
    bare = normalise(plain_text(text.replace("\\n", " . ")))
    return bare == bare.lower() and _CAPITAL_DUE.search(bare) is not None


def ends_open(text: str) -> bool:
    """Return whether a text has no mark after its last word; tags and emoji do not count."""
    bare = _plain_ending(text)
    return bool(split_words(bare)) and not _FINAL.search(bare)


def ends_in_stop(text: str) -> bool:
    """Return whether a text ends in one full stop; tags and emoji do not count."""
    return re.search(r"(?<!\.)\.$", _plain_ending(text)) is not None


def _plain_ending(text: str) -> str:
    """Return a text without tags and emoji, so that its last mark is the author's own."""
    for sign in find_emoji(text):
        text = text.replace(sign, " ")
    return plain_text(text)


def count_line_breaks(text: str) -> int:
    """Return the number of line breaks written as a backslash and an n, as in TweetEval."""
    return text.count("\\n")


def find_shared_run(text: str, title: str) -> list[str]:
    """Return the longest run of words that occurs in both texts."""
    own, other = split_words(text), split_words(title)
    known, best, most = list_trigrams(title), list[str](), len(other)
    for start in range(len(own) - 2):
        if tuple(own[start : start + 3]) not in known:
            continue
        rest = own[start : start + most]
        run = max((_common_start(rest, other[at:]) for at in range(most)), key=len)
        best = max(best, run, key=len)
    return best


def _common_start(one: list[str], other: list[str]) -> list[str]:
    length = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return one[:length]


def speaks_as_i(text: str, language: str = ENGLISH) -> bool:
    """Return whether a text is written in the first person outside quotations.

    `mine` only counts where it is a pronoun, as in `better than mine`.
    """
    own = remove_quotations(text)
    if language == ENGLISH and _MINE.search(own):
        return True
    return not vocabulary_of(language).first_person.isdisjoint(split_words(own))


@keep_results
def voice_hints(text: str, language: str = ENGLISH) -> Sequence[str]:
    """Return the author's habits in words, most telling first; none for plain news style."""
    found = (hint for habit in _HABITS for hint in habit(text, language))
    return tuple(islice(found, MOST_HINTS))


def _letter_habits(text: str, _language: str) -> Iterator[str]:
    bare = plain_text(text)
    loud = list(dict.fromkeys(_LOUD.findall(bare)))
    if bare and bare == bare.upper() and split_words(bare):
        yield "writes everything in capitals"
    elif _writes_lower(text):
        but = "" if text == text.lower() else ", tags apart"
        yield f"writes everything in lower case{but}"
    elif starts_lower(text):
        yield "starts in lower case"
    elif any(one and two for one, two in pairwise(word in loud for word in bare.split())):
        yield f"puts words in capitals for stress: {', '.join(loud[:3])}"


def _spelling_habits(text: str, language: str) -> Iterator[str]:
    if found := find_informal_words(text, language):
        yield f"spells as people type: {', '.join(found[:4])}"


def _mark_habits(text: str, _language: str) -> Iterator[str]:
    if found := list(dict.fromkeys(_DOUBLED.findall(plain_text(text)))):
        yield f"repeats marks: {' '.join(found[:3])}"
    if count_line_breaks(text):
        yield f"breaks lines with a written \\n ({count_line_breaks(text)} times)"
    if "&amp;" in text:
        yield 'writes &amp; for "and"'


def _sentence_habits(text: str, _language: str) -> Iterator[str]:
    parts = split_sentences(text)
    if parts and ends_open(text):
        yield "leaves out the full stop at the end"
    if (
        len(parts) == 1
        and count_words(parts[0]) > LONG_SENTENCE
        and not _PAUSE.search(normalise(text))
    ):
        yield "runs on without a comma"
    if len(parts) >= 3 and all(len(split_words(part)) <= 6 for part in parts):
        yield "writes in very short sentences"


def _person_habits(text: str, language: str) -> Iterator[str]:
    if speaks_as_i(text, language):
        yield "speaks as I or we"


_HABITS: tuple[Callable[[str, str], Iterator[str]], ...] = (
    _letter_habits,
    _spelling_habits,
    _mark_habits,
    _sentence_habits,
    _person_habits,
)

"""Splits plain text: tokens, content words, segments and statements."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from coreeval.agents.offline.word_lists import (
    load_canonical_words,
    load_verb_forms,
    load_words,
)

WORD = re.compile(r"[#@]?\w+(?:[.,]\d+)*(?:['\u2019\-]\w+)*")
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d]+")
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"”']?(?=\s|$)|\\n|\n| - | \u2013 | — |\s\|\s")
_TAGS = re.compile(
    rf"(?:(?<!\s)\s+)?(?:#\w+|@\w+|{EMOJI.pattern})(?:\s*+(?:#\w++|@\w++|{EMOJI.pattern}+))*+\s*"
)
_NUMBER_WORDS = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "percent": "%",
}  # fmt: skip
_LINK = re.compile(r"(?:(?<!\s)\s+)?(?:;|, while|, and|, but|, as|:)\s+", re.IGNORECASE)
_COMPOUND = re.compile(r"\b(?:heat wave|wild fire|data cent(?:er|re)|bush fire|snow storm)", re.I)
"""Compounds that some outlets write as one word and others as two."""


@dataclass(frozen=True)
class TextSegment:
    """A part of a text with its position."""

    text: str
    start: int
    end: int


def split_tokens(text: str) -> list[str]:
    """Return the words of a text, including hashtags and mentions."""
    return WORD.findall(text)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a stem shared by the spellings, tenses and listed synonyms of a word."""
    plain = fold_word(word).removesuffix("'s").strip("#@-'").replace(",", "")
    plain = load_canonical_words().get(plain, plain)
    verb = load_verb_forms().get(plain)
    if verb:
        return load_canonical_words().get(verb.third, verb.base)[:7]
    plain = _NUMBER_WORDS.get(plain, plain)
    for ending, least in (("ies", 5), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
        if plain.endswith(ending) and len(plain) >= least and not plain.endswith("ss"):
            plain = plain.removesuffix(ending)
            break
    return plain.rstrip("ey")[:7] or plain


def list_content_stems(text: str) -> list[str]:
    """Return the stems of the content words of a text, in order."""
    return [stem(word) for word in list_content_words(text)]


def list_content_words(text: str) -> list[str]:
    """Return the content words of a text, as written."""
    function = load_words("function")
    text = _COMPOUND.sub(lambda found: found.group().replace(" ", ""), text)
    kept = (word for word in split_tokens(text) if fold_word(word) not in function)
    return [word for word in kept if not word.startswith("@")]


def fold_word(word: str) -> str:
    """Return a word in lower case, with a straight apostrophe."""
    return word.casefold().replace("\u2019", "'")


def collect_numbers(text: str) -> set[str]:
    """Return the numbers in a text, including number words, without commas."""
    figures = {found.replace(",", "").rstrip(".") for found in NUMBER.findall(text)}
    spelled = {_NUMBER_WORDS.get(word, "") for word in text.casefold().split()}
    return figures | (spelled - {"", "%", "1"})


def split_segments(text: str) -> list[TextSegment]:
    """Split a text at sentence ends, line breaks and spaced dashes."""
    cuts = [0, *(found.end() for found in _END.finditer(text)), len(text)]
    found = []
    for start, end in pairwise(cuts):
        piece = text[start:end]
        if stripped := piece.strip():
            begin = start + piece.index(stripped)
            found.append(TextSegment(stripped, begin, begin + len(stripped)))
    return found


def split_statements(text: str) -> list[str]:
    """Split a text into clauses that can be judged separately."""
    parts = (part for segment in split_segments(text) for part in _LINK.split(segment.text))
    return [bare for part in parts if (bare := part.strip(" ,.\n"))]


def has_word(text: str, *lists: str) -> bool:
    """Return whether a text contains a word of one of the named lists of `words.yaml`."""
    return any(fold_word(word) in load_words(name) for name in lists for word in split_tokens(text))


def split_hashtag(tag: str) -> str:
    """Return the words inside a hashtag: `#HeatWave` is `Heat Wave`."""
    body = tag.lstrip("#").replace("_", " ")
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[A-Z][a-z])", " ", body)


def capitalise(text: str) -> str:
    """Return a text with its first letter capitalised."""
    return text[:1].upper() + text[1:]


def measure_overlap(part: Sequence[str], whole: Iterable[str]) -> float:
    """Return the share of `part` that occurs in `whole`; 0 if `part` is empty."""
    known = set(whole)
    return sum(word in known for word in part) / len(part) if part else 0.0


def find_tags_start(text: str) -> int:
    """Return the start of a text's trailing tags, mentions and emoji; its end if there are none."""
    runs = (run for run in _TAGS.finditer(text) if run.end() == len(text))
    return next((run.start() for run in runs), len(text))


def strip_edges(text: str) -> str:
    """Return a segment without leading mentions and without trailing tags, emoji and marks."""
    front = re.sub(r"^(?:@\w+\s+)+", "", text)
    return front[: find_tags_start(front)].removesuffix("\\n").strip(" ,.!?…:;")

"""The words of a text, and its script.

In scripts without spaces between words (Chinese, Japanese, Thai, …) each character is a word:
otherwise a sentence would be one word, and empty for the usual tokenizer of ROUGE.

The vowel signs of Hindi and other scripts, which Python does not count as letters, are parts of
words. Points of Hebrew and Arabic, which most texts leave out, and accents that have no letter of
their own do not count.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana, Han
)
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_LIGHT_MARKS = ((0x300, 0x36F), (0x483, 0x489), (0x591, 0x6ED), (0x8CA, 0x8FF), (0x1AB0, 0x1AFF),
                (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE00, 0xFE2F))  # fmt: skip
"""Accents, points of Hebrew and Arabic, marks of symbols and selectors of glyphs."""
_PIECE = re.compile(rf"[{_UNSPACED}]|[^{_UNSPACED}]+")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA")


def find_ascii_words(text: str) -> list[str]:
    """Return runs of a-z and 0-9 in lower case, the tokens of rouge-score without its stemmer."""
    return _ASCII_WORD.findall(text.lower())


def find_words(text: str) -> list[str]:
    """Return runs of letters, vowel signs and digits of any script in lower case."""
    plain = unicodedata.normalize("NFC", text).lower()
    if plain.isascii():
        return _WORD.findall(plain)
    return _word_with_signs().findall(drop_light_marks(plain))


def is_vowel_sign(char: str) -> bool:
    """Return whether a character is a mark without which a word is another word."""
    light = any(first <= ord(char) <= last for first, last in _LIGHT_MARKS)
    return unicodedata.category(char) in ("Mn", "Mc") and not light


@cache
def list_vowel_signs() -> str:
    """Return all vowel signs, for a class of a regular expression."""
    return "".join(filter(is_vowel_sign, map(chr, range(0x300, 0x1F000))))


def drop_light_marks(text: str) -> str:
    """Return a text without the marks that do not count."""
    return _light_mark().sub("", text)


@cache
def _light_mark() -> re.Pattern[str]:
    every = (chr(code) for first, last in _LIGHT_MARKS for code in range(first, last + 1))
    return re.compile(f"[{''.join(one for one in every if unicodedata.combining(one))}]")


@cache
def _word_with_signs() -> re.Pattern[str]:
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"[{_UNSPACED}]|{letter}(?:{letter}|[{list_vowel_signs()}])*")


def has_only_ascii_letters(text: str) -> bool:
    """Return whether a text has no letters other than A to Z; other characters are ignored."""
    return text.isascii() or not any(char.isalpha() and not char.isascii() for char in text)


def split_spaces(text: str) -> Iterator[str]:
    """Yield the parts between single spaces, keeping case and punctuation, for Jaccard.

    CAP's published code splits this way: two consecutive spaces or an empty text give an empty
    word.
    """
    for chunk in text.strip().split(" "):
        yield from _PIECE.findall(chunk) or [chunk]


def normalise_squad(text: str) -> str:
    """Normalise a text as SQuAD does: lower case, without ASCII punctuation and a, an, the.

    The gold letter `A` becomes the empty text, as does an answer without a letter or digit.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def find_script(text: str) -> str:
    """Return the script of most letters, by Unicode name (LATIN, CJK, …), or "" without letters."""
    found = Counter(_script_of(char) for char in text if char.isalpha())
    return found.most_common(1)[0][0] if found else ""


@cache
def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]
    return "CJK" if name in _EAST_ASIAN else name


def list_script_notes(references: Sequence[str], outputs: Sequence[str]) -> tuple[str, ...]:
    """Return a note on answers in a different script than their reference, if there are any.

    Such answers share hardly any words with their reference and score 0 even if they are right.
    """
    scripts = {text: find_script(text) for text in {*references, *outputs}}
    pairs = Counter(
        (there, here)
        for reference, output in zip(references, outputs, strict=True)
        if (there := scripts[reference]) and (here := scripts[output]) and there != here
    )
    return tuple(
        f"{count} of {len(outputs)} answers are written in {here} letters, their references in "
        f"{there}, so they rarely match, whether right or wrong"
        for (there, here), count in pairs.most_common()
    )

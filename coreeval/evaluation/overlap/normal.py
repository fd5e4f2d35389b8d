"""Texts without what does not tell two items apart: form of letters, case, punctuation, blanks."""

import re
import unicodedata

from coreeval.tools.text import UNSPACED

_SIGN = re.compile(r"_|(?<!\d)[^\w\s]|[^\w\s](?!\d)")
"""A sign, but not one between two digits: 1.5 is not 15, 2-1 not 2+1."""
_BLANK_BESIDE = re.compile(f"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")


def plain_words(text: str) -> str:
    """Return the words of a text, one blank between them and none beside Han, kana or Hangul.

    NFKC (Unicode Standard Annex 15) makes full-width and other compatible forms equal.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = " ".join(_SIGN.sub(" ", folded).split())
    return _BLANK_BESIDE.sub("", words)


def key_of(text: str) -> str:
    """Return what two texts have in common that are the same but for form, case, signs, blanks.

    A text of signs alone, such as one of emoji, is its own key.
    """
    return plain_words(text).replace(" ", "") or unicodedata.normalize("NFKC", text).strip()

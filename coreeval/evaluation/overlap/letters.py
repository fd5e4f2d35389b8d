"""Texts as letters and digits only, each with its place in the text."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coreeval.evaluation.overlap.boilerplate import Boilerplate
from coreeval.evaluation.overlap.runs import Codes, Owners, encode, is_unspaced

UNSPACED_WEIGHT = 3
"""Letters that a character of Han, kana or Hangul counts as: about as much as it says."""
_DROPPED = "\x01"


@dataclass(frozen=True)
class Letters:
    """The letters of many texts, a zero after each text."""

    codes: Codes
    owners: Owners
    """The text of each letter."""
    places: Owners
    """Where each letter stands in its text, in characters."""
    starts: Owners
    """Where each text begins in `codes`, and the end of the last."""

    @property
    def sizes(self) -> Owners:
        """How many letters each text has."""
        return np.diff(self.starts) - 1

    @property
    def weights(self) -> Owners:
        """How many letters other than zero each text has, one of Han, kana or Hangul as three."""
        weight = (self.codes != 0) + (UNSPACED_WEIGHT - 1) * is_unspaced(self.codes)
        return np.add.reduceat(weight, self.starts[:-1], dtype=np.int64)

    def without(self, boilerplate: Boilerplate) -> "Letters":
        """Return the texts with a zero in place of each letter of boilerplate."""
        return replace(self, codes=boilerplate.blank(self.codes))

    def of(self, text: int) -> Codes:
        """Return the letters of one text."""
        return self.codes[self.starts[text] : self.starts[text + 1] - 1]


def letters_of(texts: Sequence[str]) -> Letters:
    """Return the letters and digits of texts, without case and compatible forms."""
    codes, owners = encode([text.translate(_FOLDED) for text in texts])
    begins = np.searchsorted(owners, np.arange(len(texts)))
    places = np.arange(len(codes)) - begins[owners]
    kept = codes != ord(_DROPPED)
    starts = np.searchsorted(owners[kept], np.arange(len(texts) + 1))
    return Letters(codes[kept], owners[kept], places[kept], starts)


def boilerplate_of(sides: Sequence[Sequence[str]]) -> Boilerplate:
    """Return the runs of letters that many texts have."""
    return Boilerplate(sides, _encoded)


def _encoded(texts: Sequence[str]) -> tuple[Codes, Owners]:
    letters = letters_of(texts)
    return letters.codes, letters.owners


class _Folding(dict[int, str]):
    """What stands for each character: always one, so that places stay."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = unicodedata.normalize("NFKC", character).casefold()
        found = folded if len(folded) == 1 else character
        self[code] = found if found.isalnum() else _DROPPED
        return self[code]


_FOLDED = _Folding()

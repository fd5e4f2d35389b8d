"""Numbers and names: what a template leaves open, and what tells two of its items apart.

Which capitalised words are names is told from all texts at once, as in truecasing (Lita et al.
2003): those that no text writes in lower case, and that few texts have.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

NUMBER_WORDS = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "hundred": "100",
    "thousand": "1000",
}
"""Words that are numbers; "one" is a pronoun as well and not among them."""
COMMON_SHARE, COMMON_FLOOR = 0.05, 3
"""A capitalised word or a number that more than one text in 20 has, and more than 3 of them, does
not tell items apart: "Which" at the beginning, or whom a whole benchmark is about."""
NUMBERS, NAMES = 3, 2
"""Two texts are of different items if one in three of their numbers is replaced by another, or one
in two of their names: docs/overlap.md has how that was chosen."""
ENOUGH = 2
"""Numbers and names that must agree for two texts of a template to be one item; fewer if the texts
have no others."""
SPELLING = 0.75
"""Likeness (difflib's ratio) from which two names are spellings of one: "Jimenez", "Jimenes"."""
_KEPT = 100_000
"""Texts whose numbers and names are remembered at once: bounds memory."""
_SLOT = re.compile(
    r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+(?:['\u2019][^\W\d_]+)*"
)


Agreement = Literal["differ", "agree", "silent"]
"""Of the numbers and names of two texts: too many are replaced; enough agree; neither."""


@dataclass(frozen=True)
class _Filled:
    numbers: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]
    """All words and numbers, case-folded."""
    telling: frozenset[str]
    """Those of the numbers and names that few texts have."""


class Slots:
    """What is a number and what a name in some texts.

    Args:
        texts: All of them; names are told from how all of them are written.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        lower: set[str] = set()
        counts: Counter[str] = Counter()
        for text in texts:
            words = set(_SLOT.findall(text))
            lower.update(word for word in words if word.islower())
            counts.update({_value(word) for word in words if not word.islower()})
        most = max(COMMON_FLOOR, COMMON_SHARE * len(texts))
        self._common = {word for word, count in counts.items() if count > most}
        self._names = {word for word in counts if word[0].isalpha()} - self._common - lower
        self._known: dict[str, _Filled] = {}

    def mask(self, text: str) -> str:
        """Return a text with a zero for each number and an X for each name."""
        folded = unicodedata.normalize("NFKC", text)
        return _SLOT.sub(lambda found: self._masked(found[0]), folded)

    def _masked(self, word: str) -> str:
        if _is_number(word):
            return "0"
        return "X" if self._is_name(word) else word

    def compare(self, one: str, other: str) -> Agreement:
        """Return whether the numbers and names of two texts are those of one item.

        A number is replaced if each text has one that the other does not: what one text merely
        leaves out replaces nothing. A name is any word of the other text, in whatever case.
        """
        a, b = self._filled(one), self._filled(other)
        for mine, others, share in ((a.numbers, b.numbers, NUMBERS), (a.names, b.names, NAMES)):
            kept = len((mine & b.words) | (others & a.words))
            changed = _replaced(mine - b.words, others - a.words)
            if changed and share * changed >= changed + kept:
                return "differ"
        both = len(a.telling & b.telling)
        whole = a.numbers | a.names == b.numbers | b.names
        return "agree" if both >= ENOUGH or (both and whole) else "silent"

    def _filled(self, text: str) -> _Filled:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[text] = self._read(text)
        return found

    def _read(self, text: str) -> _Filled:
        words = _SLOT.findall(unicodedata.normalize("NFKC", text))
        numbers = frozenset(_value(word) for word in words if _is_number(word))
        names = frozenset(word.casefold() for word in words if self._is_name(word))
        folded = numbers | {word.casefold() for word in words}
        return _Filled(numbers, names, folded, (numbers | names) - self._common)

    def _is_name(self, word: str) -> bool:
        return len(word) > 1 and word[0].isupper() and word.casefold() in self._names


def _replaced(mine: frozenset[str], others: frozenset[str]) -> int:
    """Return how many of one text's are replaced by the other's; another spelling is the same."""
    if not mine or not others:
        return 0
    new = [
        word
        for word in mine
        if word[0].isdigit() or not get_close_matches(word, others, 1, SPELLING)
    ]
    return min(len(new), len(others))


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word.casefold() in NUMBER_WORDS


def _value(word: str) -> str:
    """Return a number without the commas of thousands, and a word case-folded."""
    folded = word.casefold()
    return NUMBER_WORDS.get(folded, folded.replace(",", ""))

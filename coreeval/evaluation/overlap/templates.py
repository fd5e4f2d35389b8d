"""Texts that differ only in numbers, names and short insertions: items of one template.

Numbers and names fill the gaps of a template, and distinguish its items. Names are recognised from
all texts at once, as in truecasing (Lita et al. 2003): they are the capitalised words that no text
writes in lower case, and that few texts have.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from coreeval.evaluation.overlap.minhash import COARSE, NearPairs, find_similar_sets
from coreeval.evaluation.overlap.shingles import cut_shingles, normalise_words

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
"""Words for numbers, except "one", which is also a pronoun."""
COMMON_SHARE, COMMON_FLOOR = 0.05, 3
"""A capitalised word or number does not distinguish items if more than one text in 20, and more
than 3 texts, have it: "Which" at the beginning, or the subject of a whole benchmark."""
NUMBERS, NAMES = 3, 2
"""Two texts belong to different items if one in three of their numbers is replaced by another, or
one in two of their names; docs/overlap.md explains the choice."""
ENOUGH = 2
"""The number of numbers and names that must agree for two texts of a template to be one item; fewer
if the texts have no others."""
SPELLING = 0.75
"""The least similarity (difflib's ratio) of two spellings of a name: "Jimenez", "Jimenes"."""
_CACHE_SIZE = 100_000
"""The most texts whose numbers and names are cached, to limit memory."""
_SLOT = re.compile(
    r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+(?:['\u2019][^\W\d_]+)*"
)


SlotAgreement = Literal["differ", "agree", "silent"]
"""The comparison of the numbers and names of two texts: too many are replaced; enough agree;
neither."""


@dataclass(frozen=True)
class _SlotValues:
    numbers: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]
    """All words and numbers, case-folded."""
    telling: frozenset[str]
    """The numbers and names that few texts have."""


class TextSlots:
    """The numbers and names in some texts.

    Args:
        texts: All texts; names are recognised by their spelling in all of them.
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
        self._known: dict[str, _SlotValues] = {}

    def mask(self, text: str) -> str:
        """Return a text with each number replaced by a zero and each name by an X."""
        folded = unicodedata.normalize("NFKC", text)
        return _SLOT.sub(lambda found: self._mask_word(found[0]), folded)

    def _mask_word(self, word: str) -> str:
        if _is_number(word):
            return "0"
        return "X" if self._is_name(word) else word

    def compare(self, one: str, other: str) -> SlotAgreement:
        """Compare the numbers and names of two texts to decide whether they are one item.

        A number is replaced if each text has one that the other lacks: a number that one text only
        omits is not a replacement. Any word of the other text, in any case, can match a name.
        """
        a, b = self._read_cached(one), self._read_cached(other)
        for mine, others, share in ((a.numbers, b.numbers, NUMBERS), (a.names, b.names, NAMES)):
            kept = len((mine & b.words) | (others & a.words))
            changed = _count_replacements(mine - b.words, others - a.words)
            if changed and share * changed >= changed + kept:
                return "differ"
        both = len(a.telling & b.telling)
        whole = a.numbers | a.names == b.numbers | b.names
        return "agree" if both >= ENOUGH or (both and whole) else "silent"

    def _read_cached(self, text: str) -> _SlotValues:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            found = self._known[text] = self._read(text)
        return found

    def _read(self, text: str) -> _SlotValues:
        words = _SLOT.findall(unicodedata.normalize("NFKC", text))
        numbers = frozenset(_value(word) for word in words if _is_number(word))
        names = frozenset(word.casefold() for word in words if self._is_name(word))
        folded = numbers | {word.casefold() for word in words}
        return _SlotValues(numbers, names, folded, (numbers | names) - self._common)

    def _is_name(self, word: str) -> bool:
        return len(word) > 1 and word[0].isupper() and word.casefold() in self._names


def _count_replacements(mine: frozenset[str], others: frozenset[str]) -> int:
    """Count the words that the other text replaces, ignoring mere differences in spelling."""
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
    """Return a number without thousands separators, or a word case-folded."""
    folded = word.casefold()
    return NUMBER_WORDS.get(folded, folded.replace(",", ""))


TEMPLATE = 0.6
"""The least similarity of two texts with masked numbers and names: docs/overlap.md."""
Node = tuple[int, int]
"""A side, and the index of a text on it."""


def find_template_pairs(
    left: Sequence[str], right: Sequence[str] | None, slots: TextSlots
) -> NearPairs:
    """Return the pairs of texts between two lists, or within one, that share a template.

    Args:
        left: Texts.
        right: Other texts; None for pairs within the first list.
        slots: The numbers and names in the texts.
    """
    sides = [each for each in (left, right) if each is not None]
    cut = [cut_shingles([normalise_words(slots.mask(text)) for text in each]) for each in sides]
    return find_similar_sets(cut, TEMPLATE, COARSE)


def group_connected(pairs: Iterable[tuple[Node, Node]]) -> Iterator[list[Node]]:
    """Yield groups of connected nodes, each in order of first appearance."""
    leader: dict[Node, Node] = {}
    for one, other in pairs:
        first, second = _find_leader(leader, one), _find_leader(leader, other)
        leader[second] = first
    groups: dict[Node, list[Node]] = defaultdict(list)
    for each in leader:
        groups[_find_leader(leader, each)].append(each)
    yield from groups.values()


def _find_leader(leader: dict[Node, Node], each: Node) -> Node:
    above = leader.setdefault(each, each)
    while above != leader[above]:
        leader[each] = above = leader[above]
    return above

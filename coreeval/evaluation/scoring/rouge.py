"""ROUGE-1, -2 and -L of one answer, as F-measure.

The numbers are those of Google's rouge-score without stemmer; that package is the oracle of the
tests only. It loads nltk for seconds, and its table of the longest common subsequence takes 0.45 s
for two texts of 1,000 words where the bits of an integer take a millisecond.

Its tokens are runs of a-z and 0-9; any other letter is nothing to it, so that a Chinese answer to a
Chinese reference scores 0. Where a reference has letters beyond A to Z, both texts are taken apart
into words of any script, those of a script without spaces into characters.
"""

from collections import Counter
from collections.abc import Sequence

from coreeval.evaluation.scoring.text import ascii_words, only_ascii_letters, words


def rouge_n(reference: str, output: str, n: int) -> float:
    """Return the F-measure of n-grams (Lin 2004); 0 where either text has none."""
    due, said = (_grams(tokens, n) for tokens in _tokens(reference, output))
    return _f_measure((due & said).total(), due.total(), said.total())


def rouge_l(reference: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004)."""
    due, said = _tokens(reference, output)
    return _f_measure(_longest_common(due, said), len(due), len(said))


def _tokens(reference: str, output: str) -> tuple[list[str], list[str]]:
    split = ascii_words if only_ascii_letters(reference) else words
    return split(reference), split(output)


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _f_measure(shared: int, due: int, said: int) -> float:
    return 2 * shared / (due + said) if shared else 0.0


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence (bit-parallel, Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place
    full = row = (1 << len(first)) - 1
    for token in second:
        match = row & places.get(token, 0)
        row = ((row + match) | (row - match)) & full
    return len(first) - row.bit_count()

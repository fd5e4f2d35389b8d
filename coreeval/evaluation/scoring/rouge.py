"""ROUGE-1, -2 and -L of one answer, as F-measure.

The numbers are those of Google's rouge-score without stemmer; that package is the oracle of the
tests only. It loads nltk for seconds, and its table of the longest common subsequence takes 0.45 s
for two texts of 1,000 words where the bits of an integer take a thousandth.
"""

from collections import Counter
from collections.abc import Sequence

from coreeval.evaluation.scoring.text import words


def rouge_n(reference: str, output: str, n: int) -> float:
    """Return the F-measure of n-grams (Lin 2004); 0 where either text has none."""
    due, said = _grams(words(reference), n), _grams(words(output), n)
    return _f_measure((due & said).total(), due.total(), said.total())


def rouge_l(reference: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004)."""
    due, said = words(reference), words(output)
    return _f_measure(_longest_common(due, said), len(due), len(said))


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

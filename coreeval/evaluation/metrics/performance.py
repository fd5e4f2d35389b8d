"""The quality of answers compared with references: one function per metric, texts to `PerItem`.

A `PerItem` is a score stored item by item, so resampling the items takes one product of matrices.
Items with an empty reference are not counted, because no answer to them can be right.

BLEU is computed from the counts of each item. ROUGE-1, -2 and -L are those of Google's rouge-score
without stemmer, as F-measure; only the tests use that package, as the oracle. It takes seconds to
load nltk, and its table of the longest common subsequence takes 0.45 s for two texts of 1,000
words; the bits of an integer take a millisecond. Its tokens are runs of a-z and 0-9; it ignores all
other letters, so a Chinese answer to a Chinese reference scores 0. If a reference has letters
beyond A to Z, both texts are split into words of any script, or into characters if the script has
no spaces.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import UsageError
from coreeval.evaluation.metrics.text import (
    find_ascii_words,
    find_script,
    find_words,
    has_only_ascii_letters,
    list_script_notes,
    normalise_squad,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PerItem:
    """The contribution of each item to a score, and the function from sums to the score."""

    sums: Floats
    """The sufficient statistics, of shape (n, s): a row for each item, all zero for an item that is
    not counted."""
    value: Callable[[Floats], Floats]
    """A function from sums over items, of shape (..., s), to the score, of shape (...); nan without
    items."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the score, one sentence each."""

    @property
    def score(self) -> float:
        """Return the score over all items, each counted once."""
        return float(self.value(self.sums.sum(axis=0)))

    def resample(self, weights: Floats) -> Floats:
        """Return the score for each row of weights, which give the count of each item.

        Weights are of shape (draws, n).
        """
        return self.value(weights @ self.sums)


def mean_score(
    values: Sequence[float] | NDArray[np.bool_ | np.float64],
    counted: Sequence[bool] | None = None,
    notes: tuple[str, ...] = (),
) -> PerItem:
    """Return the mean of one value per item, over the counted items (all by default)."""
    each = np.asarray(values, dtype=np.float64)
    weight = np.ones_like(each) if counted is None else np.asarray(counted, dtype=np.float64)
    return PerItem(np.column_stack([each * weight, weight]), divide_sums, notes)


def average_scores(parts: Sequence[PerItem]) -> PerItem:
    """Return the mean of several scores of the same items, each computed from all its answers."""
    ends = np.cumsum([part.sums.shape[-1] for part in parts])[:-1]

    def value(sums: Floats) -> Floats:
        cut = np.split(sums, ends, axis=-1)
        each = [part.value(own) for part, own in zip(parts, cut, strict=True)]
        return np.asarray(np.mean(each, axis=0))

    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return PerItem(np.hstack([part.sums for part in parts]), value, notes)


def divide_sums(sums: Floats) -> Floats:
    """Return the first sum divided by the second, or nan if the second is 0."""
    top, bottom = sums[..., 0], sums[..., 1]
    found = np.full(np.shape(top), np.nan)
    return np.asarray(np.divide(top, bottom, out=found, where=bottom != 0))


BLEU_ORDER = 4


def bleu(references: Sequence[str], outputs: Sequence[str]) -> PerItem:
    """Return sacrebleu's BLEU over all items, from 0 to 1, with its default smoothing.

    The tokenizer is sacrebleu's `13a`, or `zh` if most references are in Han characters. Items with
    an empty reference are not counted.
    """
    from sacrebleu.metrics.bleu import BLEU  # slow to import

    east = sum(find_script(text) == "CJK" for text in references) * 2 > len(references)
    counter = BLEU(tokenize="zh" if east else "13a", effective_order=True)
    sums = np.zeros((len(references), 2 + 2 * BLEU_ORDER))
    for place, (reference, output) in enumerate(zip(references, outputs, strict=True)):
        if reference.strip():
            found = counter.sentence_score(output, [reference])
            sums[place] = (found.sys_len, found.ref_len, *found.counts, *found.totals)
    return PerItem(sums, _bleu_of_counts, list_script_notes(references, outputs))


def _bleu_of_counts(sums: Floats) -> Floats:
    """Return BLEU from summed lengths, matches and totals (Papineni 2002, `exp` smoothing)."""
    said, due = sums[..., 0], sums[..., 1]
    hits, total = sums[..., 2 : 2 + BLEU_ORDER], sums[..., 2 + BLEU_ORDER :]
    halvings = np.cumsum(hits == 0, axis=-1)
    top = np.where(hits == 0, 0.5**halvings, hits)
    precision = np.divide(top, total, out=np.zeros_like(top), where=total > 0)
    some = np.asarray(hits.any(axis=-1) & (total > 0).all(axis=-1))
    logs = np.log(np.where(some[..., None], precision, 1))
    short = np.minimum(0, 1 - np.divide(due, said, out=np.ones_like(due), where=said > 0))
    score = np.where(some, np.exp(logs.mean(axis=-1) + short), 0.0)
    return np.asarray(np.where(due > 0, score, np.nan))


def rouge_n(reference: str, output: str, n: int) -> float:
    """Return the F-measure of n-grams (Lin 2004), or 0 if either text has none."""
    due, said = (_grams(tokens, n) for tokens in _tokens(reference, output))
    return _f_measure((due & said).total(), due.total(), said.total())


def rouge_l(reference: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004)."""
    due, said = _tokens(reference, output)
    return _f_measure(count_common_words(due, said), len(due), len(said))


def _tokens(reference: str, output: str) -> tuple[list[str], list[str]]:
    split = find_ascii_words if has_only_ascii_letters(reference) else find_words
    return split(reference), split(output)


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _f_measure(shared: int, due: int, said: int) -> float:
    return 2 * shared / (due + said) if shared else 0.0


def count_common_words(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of words (bit-parallel, Hyyrö 2004)."""
    first, second = sorted((first, second), key=len)  # each word of the first costs its length
    places: dict[str, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place
    full = row = (1 << len(first)) - 1
    for token in second:
        match = row & places.get(token, 0)
        row = ((row + match) | (row - match)) & full
    return len(first) - row.bit_count()


def squad_exact(reference: str, output: str) -> bool:
    """Return the exact match of SQuAD 1.1's official evaluation (Rajpurkar et al. 2016)."""
    return normalise_squad(reference) == normalise_squad(output)


def squad_f1(reference: str, output: str) -> float:
    """Return the token F1 of SQuAD 1.1's official evaluation; 0 if a text has no token."""
    return compare_squad([reference], output)[1]


def compare_squad(references: Sequence[str], output: str) -> tuple[bool, float]:
    """Return the maximum of SQuAD 1.1's exact match and of its token F1 over the references.

    The output is normalised once: it may be long, and the references may be many.
    """
    said, golds = normalise_squad(output), [normalise_squad(each) for each in references]
    words = said.split()
    counts, size = Counter(words), len(words)
    scores = (
        _f_measure((Counter(gold) & counts).total(), len(gold), size)
        for gold in map(str.split, golds)
    )
    return said in golds, max(scores)


Performance = Callable[[Sequence[str], Sequence[str]], PerItem]
"""A function of (references, outputs), item by item."""
MOST_CLASSES = 200
"""With more distinct references, they count as texts, not classes (large intent sets have 150)."""


def _average_items(each: Callable[[str, str], float]) -> Performance:
    """Return a score that averages a value of (reference, output) over the items."""

    def score(references: Sequence[str], outputs: Sequence[str]) -> PerItem:
        values = [each(*pair) for pair in zip(references, outputs, strict=True)]
        counted = [bool(reference.strip()) for reference in references]
        return mean_score(values, counted, list_script_notes(references, outputs))

    return score


def macro_f1(references: Sequence[str], outputs: Sequence[str]) -> PerItem:
    """Return the mean F1 of the classes among the references, ignoring case and outer blanks.

    An answer outside these classes is wrong and not a class of its own. A class missing from a
    resample scores 0 there (scikit-learn's `zero_division=0`).

    Raises:
        UsageError: the references are not classes.
    """
    due, said = [*map(_label_key, references)], [*map(_label_key, outputs)]
    classes = sorted(set(due) - {""})
    if len(classes) > MOST_CLASSES:
        raise UsageError(
            f"macro_f1 compares classes, but there are {len(classes)} different references",
            hint="for free text, use rouge_1, rouge_2, rouge_l, bleu or exact_match",
        )
    gold, answer = _one_hot(due, classes), _one_hot(said, classes)
    answer *= np.array([[bool(label)] for label in due]).reshape(-1, 1)
    notes = list_script_notes(references, outputs)
    return PerItem(np.hstack([gold * answer, gold + answer]), _mean_f1, notes)


def _one_hot(labels: Sequence[str], classes: Sequence[str]) -> Floats:
    found = [[label == name for name in classes] for label in labels]
    return np.array(found, dtype=np.float64).reshape(len(labels), len(classes))


def _mean_f1(sums: Floats) -> Floats:
    hits, size = np.split(sums, 2, axis=-1)
    if not hits.shape[-1]:
        return np.full(hits.shape[:-1], np.nan)
    return np.asarray(np.mean(2 * hits / np.maximum(size, 1), axis=-1))


def _label_key(text: str) -> str:
    return text.strip().casefold()


PERFORMANCE: dict[str, Performance] = {
    "exact_match": _average_items(lambda due, said: due.strip() == said.strip()),
    "exact_match_squad": _average_items(squad_exact),
    "token_f1": _average_items(squad_f1),
    "accuracy": _average_items(lambda due, said: _label_key(due) == _label_key(said)),
    "rouge_1": _average_items(lambda due, said: rouge_n(due, said, 1)),
    "rouge_2": _average_items(lambda due, said: rouge_n(due, said, 2)),
    "rouge_l": _average_items(rouge_l),
    "bleu": bleu,
    "macro_f1": macro_f1,
}
"""The metrics by name. Unlike accuracy, exact_match is case-sensitive; exact_match_squad is that of
the CAP paper, see docs/scoring.md for its effect on the answer A."""

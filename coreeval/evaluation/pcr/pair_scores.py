"""Pairs as rows of sufficient statistics: whatever items are chosen, their sums give the scores.

Also which items were not answered, and what the scores are if they had all been right, or wrong.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.metrics import Consistency, Performance, PerItem
from coreeval.evaluation.metrics.performance import average_scores, mean_score
from coreeval.evaluation.numleak.parsing.phrases import declines
from coreeval.evaluation.pcr.pairs import STATUSES, Pair, Status
from coreeval.evaluation.statistics import SIGNIFICANCE, Array

_WHOSE = ("performance on the originals", "performance on the modified", "consistency")


class PairScores(NamedTuple):
    """The three scores of a set of items, or of many sets in arrays of one shape."""

    performance: Array
    """M of the original answers."""
    modified: Array
    """M of the modified answers."""
    consistency: Array
    """C."""
    right: Array
    """Mean of the items' own performance, from 0 to 1; M itself if the metric is such a mean."""
    right_consistent: Array
    """Mean of performance times consistency: what right items add to C."""


@dataclass(frozen=True, kw_only=True)
class PairMeasures:
    """What each pair adds to the scores."""

    rows: Array
    """Shape (pairs, statistics)."""
    parts: tuple[PerItem, ...]
    """One for each of `Scores`."""

    def scores(self, sums: Array) -> PairScores:
        """Return the scores of sums over rows, shape (..., statistics)."""
        ends = np.cumsum([part.sums.shape[-1] for part in self.parts])
        cut = np.split(sums, ends[:-1], axis=-1)
        return PairScores(*(part.value(own) for part, own in zip(self.parts, cut, strict=True)))


def measure_pairs(
    pairs: Sequence[Pair], performance: Performance, consistency: Consistency
) -> PairMeasures:
    """Score all pairs at once, so that a score over classes has the same ones in every split."""
    due, again = [pair.reference for pair in pairs], [pair.modified_reference for pair in pairs]
    return combine_parts(
        performance(due, [pair.original_output for pair in pairs]),
        performance(again, [pair.modified_output for pair in pairs]),
        consistency(pairs),
    )


def combine_parts(performance: PerItem, modified: PerItem, consistency: PerItem) -> PairMeasures:
    """Put the scores of the same pairs together with what they say jointly, item by item."""
    right, same = _own_share(performance), _own_share(consistency)
    parts = (performance, modified, consistency, mean_score(right), mean_score(right * same))
    return PairMeasures(rows=np.hstack([part.sums for part in parts]), parts=parts)


def average_measures(each: Sequence[PairMeasures]) -> PairMeasures:
    """Average the scores of the same pairs asked in several ways; each keeps all of its answers."""
    parts = tuple(average_scores(parts) for parts in zip(*(one.parts for one in each), strict=True))
    return PairMeasures(rows=np.hstack([part.sums for part in parts]), parts=parts)


def _own_share(part: PerItem) -> Array:
    """Return the score of each item by itself as a share of the best one; 0 if it has none."""
    found = np.nan_to_num(part.value(part.sums))
    return np.asarray(found / max(float(found.max(initial=0.0)), np.finfo(float).tiny))


def list_score_notes(pairs: Sequence[Pair], items: PairMeasures) -> tuple[str, ...]:
    """Return what a reader must know of the scores, a sentence each."""
    empty = sum(not pair.reference.strip() for pair in pairs)
    lost = sum(bool(pair.reference and not pair.modified_reference) for pair in pairs)
    found = [
        f"{empty} of {len(pairs)} items have no reference: they count for consistency only"
        if empty
        else "",
        f"{lost} of {len(pairs)} items do not have the right option's text among their modified "
        "options: they do not count for the decline"
        if lost
        else "",
        *(
            f"{whose}: {note}"
            for whose, part in zip(_WHOSE, items.parts, strict=False)
            for note in part.notes
        ),
    ]
    return tuple(dict.fromkeys(filter(None, found)))


Flags = NDArray[np.bool_]
Counts = Mapping[Status, int]

REFUSAL_LENGTH: Final = 300
"""Ours, in characters: words of refusal are plain in a short text; a long one may quote them."""
_DECLINES_CHINESE: Final = ("无法回答", "不能回答", "无法提供", "抱歉", "对不起")
_NO_ANSWER: Final = "\N{SYMBOL FOR NULL}"
"""A text that is no reference of any item."""


def read_statuses(pair: Pair) -> tuple[Status, Status]:
    """Return what became of an item's two questions, as recorded or as the answers tell."""
    return (
        pair.original_status or _status_of_output(pair.original_output, pair.reference),
        pair.modified_status or _status_of_output(pair.modified_output, pair.modified_reference),
    )


def _status_of_output(output: str, reference: str) -> Status:
    """Return `empty` for no text, `refused` for a short refusal in words, else `answered`."""
    said = output.strip()
    if not said:
        return "empty"
    if said == reference.strip() or len(said) > REFUSAL_LENGTH:
        return "answered"
    chinese = any(words in said for words in _DECLINES_CHINESE)
    return "refused" if chinese or (" " in said and declines(said)) else "answered"


def count_statuses(pairs: Sequence[Pair]) -> tuple[Counts, Counts]:
    """Return how often each status occurs, of the original and of the modified questions."""
    both = [read_statuses(pair) for pair in pairs]
    first, second = (Counter(each[side] for each in both) for side in (0, 1))
    return _order_counts(first), _order_counts(second)


def _order_counts(counts: Counter[Status]) -> Counts:
    return {status: counts[status] for status in STATUSES if counts[status]}


def mark_unanswered(pairs: Sequence[Pair]) -> Flags:
    """Mark the items of which at least one question was not answered."""
    return np.array([read_statuses(pair) != ("answered", "answered") for pair in pairs], np.bool_)


def rates_differ(first: Flags, second: Flags) -> bool:
    """Tell whether unanswered items are unlike in number in two splits.

    Fisher's exact test at 5 %, two-sided (Fisher 1922).
    """
    from scipy.stats import fisher_exact  # type: ignore[import-untyped]  # slow to import

    if not len(first) or not len(second):
        return False
    table = [[int(each.sum()), int((~each).sum())] for each in (first, second)]
    return bool(fisher_exact(table).pvalue <= SIGNIFICANCE)


def assume_outcomes(
    items: PairMeasures, pairs: Sequence[Pair], performance: Performance, right: Flags, wrong: Flags
) -> PairMeasures:
    """Score the same pairs as if some had been right and consistent, and others neither."""
    due = [pair.reference for pair in pairs]
    said = [
        pair.reference if good else _NO_ANSWER if bad else pair.original_output
        for pair, good, bad in zip(pairs, right, wrong, strict=True)
    ]
    _, modified, consistency = items.parts[:3]
    sums = consistency.sums.copy()
    sums[right, 0], sums[wrong, 0] = sums[right, 1], 0.0
    steady: PerItem = replace(consistency, sums=sums)
    return combine_parts(performance(due, said), modified, steady)

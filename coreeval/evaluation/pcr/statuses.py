"""Which items were not answered, and what the scores are if they had all been right, or wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.numleak.parsing.wording import declines
from coreeval.evaluation.pcr.measured import Measured, measured_parts
from coreeval.evaluation.pcr.pairs import STATUSES, Pair, Status
from coreeval.evaluation.scoring import Performance, PerItem
from coreeval.evaluation.statistics import SIGNIFICANCE

Flags = NDArray[np.bool_]
Counts = Mapping[Status, int]

REFUSAL_LENGTH: Final = 300
"""Ours, in characters: words of refusal are plain in a short text; a long one may quote them."""
_DECLINES_CHINESE: Final = ("无法回答", "不能回答", "无法提供", "抱歉", "对不起")
_NO_ANSWER: Final = "\N{SYMBOL FOR NULL}"
"""A text that is no reference of any item."""


def statuses_of(pair: Pair) -> tuple[Status, Status]:
    """Return what became of an item's two questions, as recorded or as the answers tell."""
    return (
        pair.original_status or _told(pair.original_output, pair.reference),
        pair.modified_status or _told(pair.modified_output, pair.modified_reference),
    )


def _told(output: str, reference: str) -> Status:
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
    both = [statuses_of(pair) for pair in pairs]
    first, second = (Counter(each[side] for each in both) for side in (0, 1))
    return _ordered(first), _ordered(second)


def _ordered(counts: Counter[Status]) -> Counts:
    return {status: counts[status] for status in STATUSES if counts[status]}


def unanswered(pairs: Sequence[Pair]) -> Flags:
    """Mark the items of which at least one question was not answered."""
    return np.array([statuses_of(pair) != ("answered", "answered") for pair in pairs], np.bool_)


def rates_differ(first: Flags, second: Flags) -> bool:
    """Tell whether unanswered items are unlike in number in two splits.

    Fisher's exact test at 5 %, two-sided (Fisher 1922).
    """
    from scipy.stats import fisher_exact  # type: ignore[import-untyped]  # slow to import

    if not len(first) or not len(second):
        return False
    table = [[int(each.sum()), int((~each).sum())] for each in (first, second)]
    return bool(fisher_exact(table).pvalue <= SIGNIFICANCE)


def assume(
    items: Measured, pairs: Sequence[Pair], performance: Performance, right: Flags, wrong: Flags
) -> Measured:
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
    return measured_parts(performance(due, said), modified, steady)

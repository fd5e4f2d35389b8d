"""Differences between the scores of a sample's texts, with intervals over samples.

All differences of a study have the same bootstrap draws, so that they stay paired.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from coreeval.evaluation.label_scores import expand_interval
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.evaluation.statistics import Array, cluster_sums, number_clusters
from coreeval.schema import Arm

TermName = Literal[
    "wording", "facts", "news_shift", "rewriting", "beyond_news_shift", "beyond_rewriting"
]
ItemScores = Mapping[Arm, float]
"""The scores of a sample's texts by arm; an arm without a score is left out."""
TERMS: Final[Mapping[TermName, Mapping[Arm, int]]] = {
    "wording": {"original": 1, "semantic": -1},
    "facts": {"original": 1, "updated": -1},
    "news_shift": {"control": 1, "updated": -1},
    "rewriting": {"semantic": 1, "control": -1},
    "beyond_news_shift": {"original": 1, "semantic": -1, "control": -1, "updated": 1},
    "beyond_rewriting": {"original": 1, "semantic": -2, "control": 1},
}
"""The terms: the weight of a text's score in each arm."""
TERM_DEFINITIONS: Final[Mapping[TermName, str]] = {
    "wording": "original - reworded (effect of the published wording)",
    "facts": "original - updated",
    "news_shift": "control - updated (effect of other, unread news)",
    "rewriting": "reworded - control (effect of one rewriting)",
    "beyond_news_shift": "wording - news_shift",
    "beyond_rewriting": "wording - rewriting",
}


def score_term(
    table: Sequence[ItemScores], names: Sequence[str], weights: Mapping[Arm, int], draws: int
) -> Score:
    """Return the mean of a difference over the samples that have all its arms."""
    both = [at for at, row in enumerate(table) if set(weights) <= set(row)]
    if not both:
        return NO_SCORE
    values = np.array(
        [sum(times * table[at][arm] for arm, times in weights.items()) for at in both]
    )
    rows = np.column_stack([values, np.ones(len(values))])
    sums = cluster_sums(rows, [names[at] for at in both])
    drawn = draw_weights(len(sums), draws) @ sums
    return make_score(float(values.mean()), drawn[:, 0] / drawn[:, 1], len(both), len(sums))


def score_auc(
    table: Sequence[ItemScores], names: Sequence[str], first: Arm, second: Arm, draws: int
) -> Score:
    """Return the area under the curve (Mann and Whitney 1947: ties count half)."""
    both = [at for at, row in enumerate(table) if first in row and second in row]
    if not both:
        return NO_SCORE
    some, other = (np.array([table[at][arm] for at in both]) for arm in (first, second))
    higher = (some[:, None] > other) + 0.5 * (some[:, None] == other)
    unit = number_clusters([names[at] for at in both])
    known = int(unit.max()) + 1
    weights = draw_weights(known, draws)[:, unit]
    drawn = np.einsum("di,ij,dj->d", weights, higher, weights, optimize=True)
    return make_score(float(higher.mean()), drawn / weights.sum(axis=1) ** 2, len(both), known)


@lru_cache(maxsize=4)
def draw_weights(units: int, draws: int) -> Array:
    """Return how often each unit is drawn: the same for all terms, so that they stay paired."""
    chance = np.random.default_rng(0)
    return chance.multinomial(units, np.full(units, 1 / units), size=draws).astype(np.float64)


def make_score(value: float, drawn: Array, n: int, units: int) -> Score:
    """Return a score with its expanded interval; one without width if all draws are equal."""
    if np.ptp(drawn) == 0 and units > 1:
        return Score(estimate=value, ci_low=value, ci_high=value, n=n)
    return expand_interval(np.concatenate([[value], drawn]), n, units=units)

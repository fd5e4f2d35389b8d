"""Compares a model's scores with those of a model that cannot have read the originals.

Other reasons why originals score above their twins (they are shorter, plainer, by another author)
apply to both models. The attack that subtracts a reference's score from the model's is Carlini et
al. 2021 (arXiv 2012.07805, section 5.1), Mireshghallah et al. 2022 (arXiv 2203.03929) and, as a
difference, Watson et al. 2022 (arXiv 2111.08440). Here it is subtracted from a difference of texts,
sample by sample.

The scores of two models have different scales, Min-K%++ included: its tokens are standardised by
the vocabulary, its texts are not. So each model's differences are divided by the standard deviation
of its own scores of the reworded texts (own choice; LiRA, arXiv 2112.03570, standardises by models
that it trains). The reworded texts are used because memory of the originals would widen the spread
of the originals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.evaluation.statistics import Array, cluster_sums
from coreeval.evaluation.whitebox.membership_terms import (
    TERMS,
    ItemScores,
    TermName,
    draw_weights,
    make_score,
)
from coreeval.schema import Arm, Value
from coreeval.tools.text_scores import TextScores

DECISIVE: Final[tuple[TermName, ...]] = ("wording", "beyond_rewriting")
"""The terms in which the model must exceed the reference: the originals' advantage, and the same
minus the effect of one rewriting, so that a model that is more sensitive to rewriting does not look
like one that has read. The effect of other news depends on the ages of both models and is not
used."""


@dataclass(frozen=True, kw_only=True)
class ReferenceScores:
    """A model that cannot have read the originals, with its scores of the texts by key."""

    name: str
    scores: Mapping[str, TextScores]
    revision: str = ""
    """The digest of its weights; empty for an endpoint."""


class ReferenceTerm(Value):
    """A difference between arms in two models, on the samples scored by both."""

    model: Score
    """The model's, in standard deviations of its scores of the reworded texts."""
    reference: Score
    """The reference's, in standard deviations of its scores of the reworded texts."""
    difference: Score
    """The model's minus the reference's."""


class ReferenceFinding(Value):
    """The comparison of a model's scores with those of a reference."""

    name: str
    revision: str = ""
    """The digest of the reference's weights; empty for an endpoint."""
    terms: dict[TermName, ReferenceTerm]
    left_out: int
    """The number of texts without scores under the reference."""

    def find_difference(self, term: TermName) -> Score:
        """Return by how much the model exceeds the reference; a score of nothing if it has none."""
        return self.terms[term].difference if term in self.terms else NO_SCORE


def compare_terms(
    table: Sequence[ItemScores], other: Sequence[ItemScores], names: Sequence[str], draws: int
) -> dict[TermName, ReferenceTerm]:
    """Return each term in both models; terms without a common sample are left out.

    Args:
        table: The model's scores, sample by sample.
        other: The reference's scores.
        names: The resampling unit of each sample.
        draws: The number of bootstrap draws.
    """
    found = {
        term: _compare_term(table, other, names, weights, draws) for term, weights in TERMS.items()
    }
    return {term: each for term, each in found.items() if each}


def _compare_term(
    table: Sequence[ItemScores],
    other: Sequence[ItemScores],
    names: Sequence[str],
    weights: Mapping[Arm, int],
    draws: int,
) -> ReferenceTerm | None:
    needed = {"semantic", *weights}
    both = [
        at
        for at, rows in enumerate(zip(table, other, strict=True))
        if all(needed <= row.keys() for row in rows)
    ]
    columns = [_list_columns([rows[at] for at in both], weights) for rows in (table, other)]
    if not both or any(np.ptp(each[:, 1]) == 0 for each in columns):
        return None
    values = np.column_stack([*columns, np.ones(len(both))])
    sums = cluster_sums(values, [names[at] for at in both])
    drawn = draw_weights(len(sums), draws) @ sums
    estimates, draws_of = (_standardise(each) for each in (values.sum(axis=0)[None], drawn))

    def score(which: Array) -> Score:
        return make_score(float(estimates[0] @ which), draws_of @ which, len(both), len(sums))

    return ReferenceTerm(
        model=score(np.array([1.0, 0.0])),
        reference=score(np.array([0.0, 1.0])),
        difference=score(np.array([1.0, -1.0])),
    )


def _list_columns(rows: Sequence[ItemScores], weights: Mapping[Arm, int]) -> Array:
    """Return the difference, the centred score of the reworded text, and its square by sample."""
    values = np.array([sum(times * row[arm] for arm, times in weights.items()) for row in rows])
    spread = np.array([row["semantic"] for row in rows])
    spread = spread - (spread.mean() if rows else 0.0)
    return np.column_stack([values, spread, spread**2])


def _standardise(sums: Array) -> Array:
    """Return the means of both models' differences over their standard deviations, by draw.

    A draw of texts without spread is nan.
    """
    means = sums[:, :-1] / sums[:, -1:]
    found = list[Array]()
    for value, first, second in (means[:, :3].T, means[:, 3:].T):
        deviation = np.sqrt(np.maximum(second - first**2, 0.0))
        found.append(np.divide(value, deviation, out=np.full_like(value, np.nan),
                               where=deviation > 0))  # fmt: skip
    return np.column_stack(found)

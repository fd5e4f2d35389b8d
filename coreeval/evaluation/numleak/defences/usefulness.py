"""The cost of a defence: scores of ordinary questions, and the agreement of two judges."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coreeval.evaluation.numleak.defences.utility import (
    CATEGORIES,
    TOP_SCORE,
    Category,
    UtilityReply,
)
from coreeval.evaluation.numleak.statistics import Metric
from coreeval.evaluation.numleak.statistics.date_intervals import (
    FISHER,
    UNDEFINED,
    group_by,
    jackknife,
    jackknife_mean,
    number_keys,
    share_interval,
)
from coreeval.evaluation.numleak.statistics.metrics import correlation_of_sums
from coreeval.evaluation.statistics import Array, wilson_interval


@dataclass(frozen=True, kw_only=True)
class Usefulness:
    """The quality of answers to ordinary questions under a defence, on a scale from 0 to 4."""

    n: int
    """The number of questions."""
    scored: int
    unscored: int
    """The number of answers that the judge could not or would not score."""
    truncated: int
    """The number of answers cut off at the token limit and therefore not scored."""
    mean: Metric
    change: Metric
    """Mean difference from the same questions without a defence; undefined for `none` itself."""
    categories: Mapping[Category, Metric]


@dataclass(frozen=True, kw_only=True)
class UtilityAgreement:
    """The agreement of two judges on the answers that both scored."""

    first: str
    second: str
    n: int
    pearson_r: Metric
    exact: Metric
    within_one: Metric
    weighted_kappa: float
    """Kappa with quadratic weights (Cohen 1968); nan if neither judge's scores vary."""
    first_mean: float
    second_mean: float


Scores = Mapping[str, int]
"""Scores by the key of the answer."""


def list_judges(replies: Sequence[UtilityReply]) -> list[str]:
    """Return the names of the judges, the one with the most scores first."""
    counts = Counter(each.judge for one in replies for each in one.scores)
    return [judge for judge, _ in counts.most_common()]


def measure_usefulness(
    replies: Sequence[UtilityReply], control: Sequence[UtilityReply], *, judge: str
) -> Usefulness:
    """Measure the usefulness of the answers under a defence by the scores of one judge.

    Args:
        replies: The answers under the defence.
        control: Answers by the same models about the same series without a defence.
        judge: The judge whose scores count.
    """
    scores = {
        _question_key(one): score for one in replies if (score := _score_of(one, judge)) is not None
    }
    before = {
        _question_key(one): score for one in control if (score := _score_of(one, judge)) is not None
    }
    truncated = sum(one.kind == "truncated" for one in replies)
    by_category = group_by(
        (one for one in replies if _question_key(one) in scores), lambda one: one.category
    )
    return Usefulness(
        n=len(replies),
        scored=len(scores),
        unscored=len(replies) - len(scores) - truncated,
        truncated=truncated,
        mean=mean_score([*scores.values()]),
        change=_score_change(scores, before),
        categories={
            name: mean_score([scores[_question_key(one)] for one in by_category[name]])
            for name in CATEGORIES
            if name in by_category
        },
    )


def mean_score(scores: Sequence[int]) -> Metric:
    """Return a mean score with its Wilson interval, computed as a share of the best score.

    Among all variables from 0 to 1 with a given mean, those that are only 0 or 1 vary most (Bhatia
    and Davis 2000). So the interval is conservative, and has a width even if all scores are equal.
    """
    if not scores:
        return UNDEFINED
    mean = float(np.mean(scores))
    low, high = wilson_interval(mean / TOP_SCORE, len(scores))
    return Metric(mean, TOP_SCORE * low, TOP_SCORE * high, len(scores), len(scores))


def _score_change(
    scores: Mapping[tuple[str, ...], int], before: Mapping[tuple[str, ...], int]
) -> Metric:
    both = [key for key in scores if key in before]
    if not both:
        return UNDEFINED
    lost: Array = np.array([scores[key] - before[key] for key in both], np.float64)
    if np.ptp(lost) == 0:  # no spread for an interval
        return Metric(float(lost[0]), np.nan, np.nan, len(both), len(both))
    return jackknife_mean(lost)


def _question_key(one: UtilityReply) -> tuple[str, ...]:
    """Return the key shared by the answers to one question under different defences."""
    return (one.model, one.series, one.question)


def _score_of(one: UtilityReply, judge: str) -> int | None:
    if one.kind == "truncated":
        return None
    return next((each.score for each in one.scores if each.judge == judge), None)


# -- two judges -----------------------------------------------------------------------------------


def measure_agreement(replies: Sequence[UtilityReply]) -> UtilityAgreement | None:
    """Return the agreement of the two judges with the most scores; None with fewer than two."""
    judges = list_judges(replies)
    if len(judges) < 2:
        return None
    pairs = [
        (first, second)
        for one in replies
        if (first := _score_of(one, judges[0])) is not None
        and (second := _score_of(one, judges[1])) is not None
    ]
    return compare_scores(pairs, first=judges[0], second=judges[1])


def compare_scores(
    pairs: Sequence[tuple[int, int]], *, first: str, second: str
) -> UtilityAgreement:
    """Return the agreement of two judges, from their scores of the same answers."""
    one, other = np.array(pairs, np.float64).reshape(-1, 2).T
    _, apart = number_keys(range(len(pairs)))
    gaps = np.abs(one - other)
    return UtilityAgreement(
        first=first,
        second=second,
        n=len(pairs),
        pearson_r=_pearson(one, other),
        exact=share_interval(gaps == 0, apart),
        within_one=share_interval(gaps <= 1, apart),
        weighted_kappa=_kappa(one, other),
        first_mean=float(one.mean()) if pairs else float("nan"),
        second_mean=float(other.mean()) if pairs else float("nan"),
    )


def _pearson(one: Array, other: Array) -> Metric:
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return UNDEFINED._replace(n=len(one), dates=len(one))
    rows = np.stack([np.ones_like(one), one, other, one * one, one * other, other * other], axis=1)
    return jackknife(rows, len(one), correlation_of_sums, FISHER)


def _kappa(one: Array, other: Array) -> float:
    """Return 1 - observed / expected squared difference (Cohen 1968, Psychological Bulletin 70)."""
    if not len(one):
        return float("nan")
    expected = float(np.mean((one[:, None] - other[None, :]) ** 2))
    return 1 - float(np.mean((one - other) ** 2)) / expected if expected else float("nan")

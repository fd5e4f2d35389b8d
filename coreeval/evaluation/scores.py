"""Numbers with their n and interval, and a report's tables of the arms.

This module does not compute intervals from draws and does not import numpy: releases, gates and
pages read these values without it.
"""

from collections.abc import Mapping
from math import sqrt
from statistics import NormalDist
from typing import get_args

from pydantic import SerializerFunctionWrapHandler, model_serializer

from coreeval.schema import AnswerKind, Arm, TaskKind, Value

LabelPair = tuple[str, str]
"""(label of the benchmark, answer); the answer is the empty string if it is invalid."""

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
DRAWS = 2000
"""The number of bootstrap draws; another seed moves an end of an interval by about a fiftieth of
its width (measured)."""


class Score(Value):
    """A number with its interval and sample size; only `n` is set if there is nothing to score."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n: int

    @property
    def is_positive(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.ci_low is not None and self.ci_low > 0


NO_SCORE = Score(estimate=None, ci_low=None, ci_high=None, n=0)


def score_accuracy(pairs: Mapping[LabelPair, int]) -> Score:
    """Return the share of right answers with its interval, given the count of each pair."""
    hits = sum(times for (gold, answer), times in pairs.items() if gold == answer)
    return score_proportion(hits, sum(pairs.values()))


def score_proportion(hits: int, n: int) -> Score:
    """Return a share with its interval.

    Wilson (1927), without continuity correction: the interval has a width even if all or none are
    hits.
    """
    if not n:
        return NO_SCORE
    share = hits / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2) / (1 + _Z**2 / n)
    return Score(
        estimate=share,
        ci_low=centre - half if hits else 0.0,
        ci_high=centre + half if hits < n else 1.0,
        n=n,
    )


ARMS: tuple[Arm, ...] = get_args(Arm)
ARM_COMPARISONS: tuple[tuple[Arm, Arm], ...] = (
    ("original", "semantic"),
    ("semantic", "updated"),
    ("original", "updated"),
)
"""The losses from rewording (surface memory), from new facts (knowledge), and from both."""
RANKED_ARMS: tuple[Arm, Arm] = ("original", "updated")
"""The arms on which the rankings of targets are compared."""
ARM_DEFINITIONS = {
    "macro_f1": "mean of the F1 of each label of the task (0 for a label that no answer gives and "
    "that is correct for no sample), averaged over the task's templates (CoreEval paper, section "
    "4.2)",
    "accuracy": "share of right answers, averaged over the task's templates",
    "intervals": "percentile bootstrap over samples (or over clusters of samples, if the benchmark "
    "has any), each drawn with its answers to all templates and in all arms; for accuracy with one "
    "template, the Wilson score interval; for a difference, the expanded percentile interval "
    "(Hesterberg 2015)",
    "difference": "second arm minus first (negative values are drops), on the samples that both "
    "arms have, except samples that the target refused in either arm",
    "unparsed": "answers that are not a label of the task; they are wrong, but do not form a class "
    "of the F1",
    "truncated": "answers cut off at the length limit; they are wrong, but do not form a class of "
    "the F1",
    "refused": "questions that the target or its endpoint declined; no score includes them",
    "n": "samples with at least one answer that is not a refusal",
    "ranking": "rank correlation between the targets' macro-F1 on the original and on the updated "
    "arm, each on the samples that the target answered in both arms; n is the number of targets",
}


class TemplateScore(Value):
    """The scores of a target with one template on some samples of an arm."""

    template: int
    """The template's number in the task, from 1; 0 for a target without templates."""
    macro_f1: Score
    accuracy: Score
    answers: dict[AnswerKind, int]
    """The number of answers by kind: answered, refused, truncated, unparsed."""


class ArmScore(Value):
    """The scores of a target on some samples of one arm, over all templates."""

    arm: Arm
    macro_f1: Score
    accuracy: Score
    answers: dict[AnswerKind, int]
    """The number of answers over all templates, by kind: answered, refused, truncated, unparsed."""
    templates: tuple[TemplateScore, ...]


class LabelCoverage(Value):
    """The number of a label's samples in the benchmark that both arms have."""

    label: str
    shared: int
    total: int


class ArmComparison(Value):
    """The comparison of two arms on the samples that both have."""

    first: ArmScore
    second: ArmScore
    macro_f1_difference: Score
    accuracy_difference: Score
    coverage: tuple[LabelCoverage, ...]


class ArmScores(Value):
    """The scores of each arm on all its samples, then of pairs of arms on shared samples."""

    arms: tuple[ArmScore, ...]
    comparisons: tuple[ArmComparison, ...]


class TargetScores(Value):
    """The scores of a target, with and without samples whose own label no judge could recover."""

    target: str
    all_samples: ArmScores
    recoverable: ArmScores


class TargetRanking(Value):
    """The agreement of the targets' order on the original and the updated arm."""

    targets: tuple[str, ...]
    kendall: Score
    """Kendall's tau-b of their macro-F1, from -1 to 1; `n` is the number of targets."""
    spearman: Score
    """Spearman's rho of the same scores."""


class ArmTable(Value):
    """The scores of all targets on all arms, and how they were computed."""

    targets: tuple[TargetScores, ...]
    ranking: TargetRanking | None = None
    """The agreement of ranks; None if fewer than three targets answered both arms."""
    unrecoverable: int
    """The number of samples that ended as label_unrecoverable."""
    level: float = LEVEL
    draws: int
    seed: int
    kind: TaskKind = "labels"
    """The kind of the task, which defines `accuracy` and `macro_f1`."""
    definitions: dict[str, str] = ARM_DEFINITIONS

    @model_serializer(mode="wrap")
    def _omit_kind_of_labels(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        said: dict[str, object] = dump(self)
        if self.kind == "labels":
            said.pop("kind", None)
        return said

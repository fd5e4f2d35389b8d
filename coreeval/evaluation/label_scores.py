"""Scores of labels given to the same samples in several ways, with intervals from one bootstrap.

A way is one arm asked with one template. Samples are resampled together with all their answers, so
templates stay together and arms stay paired. The resampled values are sums over samples: if there
are many samples, sums over groups of them, so that time and memory do not grow with the draws.

The bootstrap is too narrow for few samples: its variance is n - 1 over n of the true one, and it
ignores the tails of Student's t. The expanded percentile interval corrects both (Hesterberg 2015,
The American Statistician 69, 371-386); from a few hundred samples on, it equals the plain one. If a
loss depends on a handful of answers, or on none, its draws hardly differ: they do not reflect
answers that happen to be missing from so few samples. In comparisons of arms, the variance of one
such answer is added, 1 over n squared (docs/calibration.md has its effect).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.scores import LEVEL, NO_SCORE, Score
from coreeval.evaluation.statistics import ensure_width
from coreeval.schema import AnswerKind

Codes = NDArray[np.int16]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Weights = NDArray[np.float32]
"""The count of each group, one row per draw; float32 holds whole numbers up to 2^24."""

MISSING = -1
"""The code of an answer that was not requested; label codes start at 0."""
FAULTS: tuple[AnswerKind, ...] = ("unparsed", "truncated", "refused")
"""Kinds of answers without a label, in the order of their codes, which follow the label codes. The
first two are predictions, which are wrong and belong to no class of the F1; a refusal is not a
prediction."""
GROUPS = 5000
"""The most groups to resample. More samples are assigned at random to this many groups; the error
of the variance is a fiftieth (its standard error, sqrt(2 / GROUPS)), less than that of the
draws."""


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """The answers to each sample."""

    due: Codes
    """The label codes of the benchmark, of shape (samples,)."""
    said: Codes
    """The answer codes of each way of asking, of shape (samples, ways)."""
    labels: int
    """The number of labels of the task."""
    clusters: Numbers | None = None
    """The number of each sample's cluster, from 0, of shape (samples,); None if each sample is its
    own cluster."""
    grades: Floats | None = None
    """The score of each graded answer, of shape (samples, ways), 0 without an answer; None for
    answers that are labels. The code of a right answer is then that of its sample's label."""

    @property
    def is_asked(self) -> Mask:
        """Return a mask of the answers of any kind, of shape (samples, ways)."""
        return np.asarray(self.said != MISSING)

    @property
    def is_counted(self) -> Mask:
        """Return a mask of the predictions: the answers other than refusals."""
        return np.asarray(self.is_asked & (self.said != self.labels + FAULTS.index("refused")))

    def kinds(self, ways: Sequence[int], some: Mask) -> dict[AnswerKind, int]:
        """Count the answers of each kind that the given samples have in the given ways."""
        said = self.said[some][:, list(ways)]
        found: dict[AnswerKind, int] = {
            "answered": int(((said != MISSING) & (said < self.labels)).sum())
        }
        for place, kind in enumerate(FAULTS):
            found[kind] = int((said == self.labels + place).sum())
        return found


@dataclass(frozen=True, eq=False)
class AnswerView:
    """An arm with some of its templates, and a mask of the answers that count."""

    templates: tuple[int, ...]
    ways: tuple[int, ...]
    counted: Mask
    """The mask of the answers that count, of shape (samples, templates)."""


@dataclass(frozen=True, eq=False)
class ViewScores:
    """The scores of a view, for the observed samples and for each draw."""

    macro_f1: Floats
    """Values of shape (1 + draws, templates); nan if a draw has no sample of a template. The mean
    score if answers are graded."""
    accuracy: Floats
    """Values of the same shape."""
    each: Numbers
    """The number of samples that count for each template, of shape (templates,)."""
    n: int
    """The number of samples that count for at least one template."""
    units: int
    """The number of clusters of these samples; equal to n if each sample is its own cluster."""
    each_units: Numbers
    """The number of clusters of the samples that count for each template, of shape (templates,)."""

    @property
    def is_used(self) -> Mask:
        """Return a mask of the templates that have a sample and therefore count in averages."""
        return np.asarray(self.each > 0)


def resample(
    table: AnswerTable, views: Sequence[AnswerView], *, seed: int, draws: int
) -> list[ViewScores]:
    """Score views on the same draws of clusters (Davison and Hinkley 1997, section 3.8)."""
    chance = np.random.default_rng(seed)
    units = np.arange(len(table.due)) if table.clusters is None else table.clusters
    number = int(units.max(initial=-1)) + 1
    groups = units if number <= GROUPS else (chance.permutation(number) % GROUPS)[units]
    weights = _weights(chance, min(number, GROUPS), draws)
    known = dict[tuple[int, bytes], tuple[Floats, Floats]]()

    def scores(way: int, counted: Mask) -> tuple[Floats, Floats]:
        key = way, counted.tobytes()  # views of the samples that all arms share are equal
        if key not in known:
            sums = _sums(table, groups, table.said[:, way], counted)
            known[key] = _scores(weights @ sums, _sum_grades(table, groups, weights, way, counted))
        return known[key]

    return [_score_view(view, units, scores) for view in views]


def average_templates(values: Floats, found: ViewScores) -> Score:
    """Return the mean over templates of one of a view's scores, with its percentile interval."""
    return score_share_draws(mean_of_templates(values, found), found.n, units=found.units)


def mean_of_templates(values: Floats, found: ViewScores) -> Floats:
    """Return the mean over the templates that have a sample, of shape (1 + draws,)."""
    if not found.is_used.any():
        return np.full(len(values), np.nan)
    return np.asarray(values[:, found.is_used].mean(axis=1))


def score_draws(values: Floats, n: int) -> Score:
    """Return a score with its interval from the draws; a single sample has no interval."""
    if n == 0:
        return NO_SCORE
    if n == 1:
        return Score(estimate=float(values[0]), ci_low=None, ci_high=None, n=1)
    value, tail = float(values[0]), (1 - LEVEL) / 2
    low, high = map(float, np.nanquantile(values[1:], [tail, 1 - tail]))
    return Score(estimate=value, ci_low=low, ci_high=high, n=n)


def score_share_draws(values: Floats, n: int, *, units: int | None = None) -> Score:
    """Return a score from 0 to 1 with its interval; Wilson's if all draws are equal.

    `units` is the number of clusters of the samples, None if each sample is its own; a single
    cluster has no interval.
    """
    found = score_draws(values, n)
    if found.estimate is None or found.ci_low is None or found.ci_high is None:
        return found
    if units == 1:
        return Score(estimate=found.estimate, ci_low=None, ci_high=None, n=n)
    low, high = ensure_width(found.estimate, found.ci_low, found.ci_high, units or n)
    return Score(estimate=found.estimate, ci_low=low, ci_high=high, n=n)


def _weights(chance: np.random.Generator, groups: int, draws: int) -> Weights:
    """Draw as many groups as there are, `draws` times; the first row has each group once."""
    found = np.ones((1 + draws, groups), np.float32)
    for line in found[1:]:
        line[:] = np.bincount(chance.integers(groups, size=groups), minlength=groups)
    return found


def _score_view(
    view: AnswerView, units: Numbers, scores: Callable[[int, Mask], tuple[Floats, Floats]]
) -> ViewScores:
    some = view.counted.any(axis=1)
    found = [scores(way, view.counted[:, place]) for place, way in enumerate(view.ways)]
    return ViewScores(
        macro_f1=np.stack([f1 for f1, _ in found], axis=1),
        accuracy=np.stack([right for _, right in found], axis=1),
        each=view.counted.sum(axis=0),
        n=int(some.sum()),
        units=len(np.unique(units[some])),
        each_units=np.array([len(np.unique(units[own])) for own in view.counted.T], np.int64),
    )


def _sums(table: AnswerTable, groups: Numbers, said: Codes, counted: Mask) -> Weights:
    """Return, for each group, the counts that the scores of one way need.

    Shape (groups, 1 + 2 labels): the number of answers that count, then the hits of each label,
    then how often each label is due or given.
    """
    number, labels = int(groups.max(initial=-1)) + 1, table.labels

    def by_label(codes: Codes, some: Mask) -> Numbers:
        cells = groups[some] * labels + codes[some]
        return np.bincount(cells, minlength=number * labels).reshape(number, labels)

    given = counted & (said < labels)
    size = by_label(table.due, counted) + by_label(said, given)
    hits = by_label(said, given & (said == table.due))
    every = np.bincount(groups[counted], minlength=number)
    return np.column_stack([every, hits, size]).astype(np.float32)


def _sum_grades(
    table: AnswerTable, groups: Numbers, weights: Weights, way: int, counted: Mask
) -> Floats | None:
    """Return the sum of the counted scores for each draw; None if answers are labels."""
    if table.grades is None:
        return None
    each = np.where(counted, table.grades[:, way], 0.0)
    sums = np.bincount(groups, each, minlength=weights.shape[1]).astype(np.float32)
    return np.asarray((weights @ sums).astype(np.float64))


def _scores(sums: Weights, graded: Floats | None) -> tuple[Floats, Floats]:
    """Return macro-F1 and accuracy for each row of sums; for graded answers, the mean score.

    The F1 is scikit-learn's `f1_score(labels=…, average="macro", zero_division=0)`.
    """
    number, by_label = sums[:, 0].astype(np.float64), sums[:, 1:].astype(np.float64)
    hits, size = np.split(by_label, 2, axis=1)
    if graded is None:
        f1 = np.mean(2 * hits / np.maximum(size, 1), axis=1)
    else:
        f1 = graded / np.maximum(number, 1)
    right = hits.sum(axis=1) / np.maximum(number, 1)
    return np.where(number == 0, np.nan, f1), np.where(number == 0, np.nan, right)


def expand_interval(values: Floats, n: int, *, units: int | None = None, answers: int = 0) -> Score:
    """Return a score with its expanded interval; a single cluster has no interval.

    Args:
        values: The value, then the values of the draws.
        n: Number of samples.
        units: Number of clusters of these samples; None if each sample is its own.
        answers: How many answers of a sample are in a difference; 0 for the score of one arm.
    """
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]  # slow to import

    if n == 0:
        return NO_SCORE
    free = (n if units is None else units) - 1
    if free < 1:
        return Score(estimate=float(values[0]), ci_low=None, ci_high=None, n=n)
    tail = float(ndtr(stdtrit(free, (1 - LEVEL) / 2) * np.sqrt((free + 1) / free)))
    low, high = map(float, np.nanquantile(values[1:], [tail, 1 - tail]))
    value, least = float(values[0]), answers / n
    if not answers:
        low, high = ensure_width(value, low, high, free + 1)
    else:
        low = value - hypot(max(value - low, 0.0), least)
        high = value + hypot(max(high - value, 0.0), least)
    return Score(estimate=value, ci_low=low, ci_high=high, n=n)


def score_difference(first: Floats, second: Floats, shared: ViewScores) -> Score:
    """Return second minus first, averaged over templates, on the same samples."""
    gained = mean_of_templates(second, shared) - mean_of_templates(first, shared)
    return expand_interval(gained, shared.n, units=shared.units, answers=1)


def two_sided_p(
    values: Floats, n: int, *, units: int | None = None, answers: int = 0
) -> float | None:
    """Return the p-value of 0: one minus the level of the narrowest interval that includes 0.

    A difference no larger than the effect of one answer has p-value 1.

    One is added to the draws on each side (Phipson and Smyth 2010), so no p-value is 0.
    """
    from scipy.special import ndtri, stdtr

    value, least = float(values[0]), answers / n if n else 0.0
    free = (n if units is None else units) - 1
    if free < 1 or not np.isfinite(value):
        return None
    if abs(value) <= least:
        return 1.0
    reached = float(np.sign(value)) * sqrt(value**2 - least**2)
    known = values[1:][np.isfinite(values[1:])] - (value - reached)
    beyond = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
    share = (1 + beyond) / (1 + len(known))
    return float(min(1.0, 2 * stdtr(free, ndtri(share) / np.sqrt((free + 1) / free))))

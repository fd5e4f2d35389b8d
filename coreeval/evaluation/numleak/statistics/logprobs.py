"""Statistics of log-probabilities: entropies of answers, and ranked candidates for a value.

Entropies are compared with those of invented names (NumLeak, appendix R). Candidates are ranked by
a model's own log-probabilities: top-1 accuracy, mean rank and mean gap over dates (appendix T and
table 18).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import numpy as np
from pydantic import AliasChoices, Field

from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    Object,
    Records,
    read_records,
    validate_record,
)
from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.statistics.date_intervals import (
    MIN_DATES,
    UNDEFINED,
    difference_interval,
    group_by,
    jackknife_mean,
    mean_interval,
    share_interval,
)
from coreeval.evaluation.numleak.statistics.measurements import (
    AuditSettings,
    Condition,
    Entropies,
    Metric,
)
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name, title_figure
from coreeval.evaluation.statistics import Array, middle_range, permute_sums
from coreeval.schema import Value
from coreeval.tasks.kinds import is_encodable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def compare_entropies(
    value: Sequence[Point], invented: Sequence[Point], settings: AuditSettings
) -> Entropies | None:
    """Compare both conditions; None if no answer came with log-probabilities.

    The p-value treats answers as independent: their dates are, and the names are fixed.
    """
    if not any(point.read_out for point in (*value, *invented)):
        return None
    first, second = _measure_condition(value, settings), _measure_condition(invented, settings)
    return Entropies(
        series=first,
        fictitious=second,
        difference=difference_interval(second.mean, first.mean)
        if first.bits and second.bits
        else UNDEFINED,
        p_value=_permutation_p(first.bits, second.bits, settings),
    )


def list_entropy_notes(found: Entropies | None) -> Iterator[str]:
    """Yield notes on the answers without entropy, and on a missing comparison."""
    if found is None:
        return
    for name, one in (("the series", found.series), ("fictitious names", found.fictitious)):
        if one.left_out:
            listed = ", ".join(f"{why} ({n})" for why, n in one.left_out.items())
            left = one.asked - len(one.bits)
            yield f"{left} of {one.asked} answers about {name} have no entropy: {listed}"
    kinds = [(one.signed, len(one.bits)) for one in (found.series, found.fictitious)]
    if all(n for _, n in kinds) and any(0 < signed < n for signed, n in kinds):
        real, invented = (f"{signed} of {n}" for signed, n in kinds)
        yield (
            "a sign in a separate token makes the entropy of an answer larger: this applies to "
            f"{real} answers about the series and {invented} answers about invented names"
        )
    if not found.fictitious.asked:
        yield (
            "the entropies cannot be compared, because the model was not asked about any "
            "fictitious series"
        )


def _measure_condition(points: Sequence[Point], settings: AuditSettings) -> Condition:
    told = [(point, point.read_out.bits) for point in points
            if point.read_out and point.read_out.bits is not None]  # fmt: skip
    dates = [
        np.array([bits for _, bits in each])
        for each in group_by(told, lambda one: one[0].period).values()
    ]
    signed = sum(point.read_out.signed for point, _ in told if point.read_out)
    why = Counter(_missing_reason(point) for point in points)
    why.pop("", None)
    return Condition(
        asked=len(points),
        mean=_mean_entropy(dates, settings),
        median=_median_entropy(dates, settings),
        bits=tuple(sorted(bits for _, bits in told)),
        signed=signed,
        left_out=dict(why.most_common()),
    )


def _missing_reason(point: Point) -> str:
    return point.read_out.why if point.read_out else "no log-probabilities were returned"


def _mean_entropy(dates: Sequence[Array], settings: AuditSettings) -> Metric:
    totals = np.array([each.sum() for each in dates], np.float64)
    return mean_interval(totals, np.array([len(each) for each in dates], np.float64), settings)


def _median_entropy(dates: Sequence[Array], settings: AuditSettings) -> Metric:
    """Return the median with its percentile interval over dates."""
    if not dates:
        return UNDEFINED
    every = np.concatenate(dates)
    value, n = float(np.median(every)), len(every)
    if len(dates) < MIN_DATES:
        return Metric(value, np.nan, np.nan, n, len(dates))
    rows = np.full((len(dates), max(map(len, dates))), np.nan)
    for row, each in zip(rows, dates, strict=True):
        row[: len(each)] = each
    rng = np.random.default_rng(settings.seed)
    drawn = rows[rng.integers(len(rows), size=(settings.draws, len(rows)))]
    medians = np.nanmedian(drawn.reshape(settings.draws, -1), axis=1)
    return Metric(value, *middle_range(medians), n, len(dates))


def _permutation_p(
    first: Sequence[float], second: Sequence[float], settings: AuditSettings
) -> float:
    """Return the p-value (b + 1) / (m + 1) of m permutations (Phipson and Smyth 2010)."""
    if min(len(first), len(second)) < MIN_DATES:
        return float("nan")
    columns = [np.array(each, np.float64)[:, None] for each in (first, second)]
    rng = np.random.default_rng(settings.seed)
    sums = permute_sums(columns[0], columns[1], settings.draws, rng)
    apart = np.abs(sums[0] / len(first) - sums[1] / len(second))[:, 0]
    seen = abs(float(np.mean(first)) - float(np.mean(second)))
    as_far = np.count_nonzero(apart >= seen - 1e-12)
    return float((as_far + 1) / (settings.draws + 1))


TRUE_CANDIDATE: Final = "true"
"""The name of the candidate with the published value."""
_RECORD: Final = "record"
"""The `type` of a line that holds a candidate; lines may have no `type`."""
_KEYS: Final = frozenset(
    {"model", "model_tag", "series", "date", "candidate", "text", "candidate_text", "mean_logprob"}
)
_PROSE: Final = (
    'each line must be {model, date, candidate, mean_logprob}; one candidate must be called "true"'
)


class RankingCandidate(Value):
    """One possible answer, and the probability that a model assigns to it."""

    model: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("model", "model_tag"))]
    series: str = ""
    date: Annotated[str, Field(min_length=1)]
    candidate: Annotated[str, Field(min_length=1)]
    """The kind of candidate: `true`, or the name of another kind."""
    text: Annotated[str | None, Field(validation_alias=AliasChoices("text", "candidate_text"))] = (
        None
    )
    mean_logprob: Annotated[float, Field(le=0)]
    """Natural logarithm of the probability, divided by the number of tokens."""

    @property
    def key(self) -> tuple[str, ...]:
        """The key that identifies the candidate: each date has only one candidate of a kind."""
        return (self.model, self.series, self.date, self.candidate)


def read_candidates(path: Path) -> Records[RankingCandidate]:
    """Read JSON Lines, plain or .gz; of lines with the same candidate and date, the first counts.

    Lines whose `type` marks them as something other than a candidate, such as summaries, are
    skipped.

    Raises:
        DatasetError: the file cannot be read, is empty, or no line of it is a candidate.
    """
    found = read_records(path, _read_candidate, key=lambda one: one.key, twice=_describe_duplicate)
    return found.require_records(path, what="a candidate", whats="candidates", prose=_PROSE)


def _describe_duplicate(_: RankingCandidate, first: int) -> str:
    return f"duplicate candidate for this date, first in line {first}"


def _read_candidate(values: Object) -> RankingCandidate | BadRecord | None:
    if values.get("type", _RECORD) != _RECORD:
        return None
    known = {key: value for key, value in values.items() if key in _KEYS}
    if isinstance(known.get("date"), int):
        known["date"] = str(known["date"])
    made = validate_record(RankingCandidate, known)
    if isinstance(made, BadRecord):
        return made
    if not isfinite(made.mean_logprob):
        return BadRecord(f"mean_logprob must be a number, not {made.mean_logprob}")
    if not all(is_encodable(text) for text in known.values() if isinstance(text, str)):
        return BadRecord("it contains an incomplete character (a lone surrogate)")
    return made


class DateRank(NamedTuple):
    """The ranking of the candidates of one date."""

    date: str
    rank: int
    """Rank of the true value; 1 is the most probable, and ties share a rank."""
    candidates: int
    gap: float
    """Mean log-probability of the true value minus that of the best other, in nats per token."""
    rival: str
    """The name of the best other candidate."""


class RankingExclusion(NamedTuple):
    """A date that cannot be ranked or an invalid candidate, and the reason."""

    date: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class CandidateRanking:
    """The ranking results of one model on one series, over dates."""

    model: str
    series: str
    n: int
    candidates: float
    """Mean number of candidates per date, including the true value."""
    top1: Metric
    """Share of dates on which the true value is more probable than all others."""
    chance: float
    """Expected `top1` if all candidates were equally probable."""
    p_value: float
    """One-sided p-value: the probability of as many hits by chance (exact, Poisson-binomial)."""
    mean_rank: Metric
    chance_rank: float
    mean_gap: Metric
    """Mean of the gaps; above 0, the true value wins."""
    lost_to: Mapping[str, Metric]
    """Share that each winner has of the dates on which the true value is not first.

    The most common winner comes first. A win of a neighbouring date's value means that dates are
    distinguished less well than series.
    """
    left_out: tuple[RankingExclusion, ...]


def rank_candidates(
    candidates: Iterable[RankingCandidate], settings: AuditSettings
) -> tuple[CandidateRanking, ...]:
    """Score each model on each series, in the order of the candidates."""
    cells = group_by(candidates, lambda one: (one.model, one.series))
    return tuple(_make_ranking(*key, each, settings) for key, each in cells.items())


def rank_date(
    date: str, candidates: Sequence[RankingCandidate]
) -> tuple[DateRank | None, list[RankingExclusion]]:
    """Rank the candidates of a date, and list the excluded ones.

    A candidate with the same text as the true value is the true value, so it is not a rival.
    """
    true = next((one for one in candidates if one.candidate == TRUE_CANDIDATE), None)
    if true is None:
        return None, [RankingExclusion(date, f"no candidate is called {TRUE_CANDIDATE!r}")]
    others = [one for one in candidates if one is not true]
    same = [one for one in others if one.text is not None and one.text == true.text]
    bad = [
        RankingExclusion(date, f"{one.candidate} has the same text as the true value")
        for one in same
    ]
    rivals = [one for one in others if one not in same]
    if not rivals:
        return None, [
            *bad,
            RankingExclusion(date, "there is no other candidate to rank against the true value"),
        ]
    best = max(rivals, key=lambda one: one.mean_logprob)
    ahead = sum(one.mean_logprob > true.mean_logprob for one in rivals)
    gap = true.mean_logprob - best.mean_logprob
    return DateRank(date, 1 + ahead, 1 + len(rivals), gap, best.candidate), bad


def _make_ranking(
    model: str, series: str, candidates: Sequence[RankingCandidate], settings: AuditSettings
) -> CandidateRanking:
    each = [rank_date(*one) for one in group_by(candidates, lambda one: one.date).items()]
    found = [one for one, _ in each if one]
    ranks = np.array([one.rank for one in found], np.float64)
    sizes = np.array([one.candidates for one in found], np.float64)
    gaps = np.array([one.gap for one in found], np.float64)
    first, ones = gaps > 0, np.ones(len(found))
    return CandidateRanking(
        model=model,
        series=series,
        n=len(found),
        candidates=_mean_or_nan(sizes),
        top1=share_interval(first, np.arange(len(found))),
        chance=_mean_or_nan(1 / sizes),
        p_value=_hits_p_value(int(np.count_nonzero(first)), 1 / sizes),
        mean_rank=mean_interval(ranks, ones, settings),
        chance_rank=_mean_or_nan((sizes + 1) / 2),
        mean_gap=jackknife_mean(gaps),
        lost_to=dict(_lost_to(found)),
        left_out=tuple(bad for _, those in each for bad in those),
    )


def _lost_to(found: Sequence[DateRank]) -> Iterator[tuple[str, Metric]]:
    winners = Counter(one.rival for one in found if one.gap <= 0)
    total = winners.total()
    for name, count in winners.most_common():
        yield name, share_interval(np.arange(total) < count, np.arange(total))


def _hits_p_value(hits: int, chances: Array) -> float:
    """Return the probability of at least this many hits, each with its own chance."""
    if not len(chances):
        return float("nan")
    counts = np.ones(1)
    for chance in chances:
        counts = np.convolve(counts, [1 - chance, chance])
    return float(min(1.0, counts[hits:].sum()))


def _mean_or_nan(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


_MOST: Final = 40
"""The largest number of rows in a plot."""


def draw_rankings(path: Path, found: Sequence[CandidateRanking]) -> list[Path]:
    """Draw each model's top-1 accuracy and mean gap with intervals; nothing if there are none."""
    if not found:
        return []
    shown, left = found[:_MOST], max(0, len(found) - _MOST)
    with open_figure(path, 7, 1.5 + 0.32 * len(shown)) as figure:
        first, second = figure.subplots(1, 2, sharey=True)
        _dots(first, [one.top1 for one in shown])
        for y, one in enumerate(shown):
            first.plot([one.chance] * 2, [y - 0.4, y + 0.4], color="black", linestyle=":")
        first.set(xlim=(-0.03, 1.03), xlabel="true value ranked first (dotted: chance)")
        _dots(second, [one.mean_gap for one in shown])
        second.axvline(0, color="black", linestyle=":")
        second.set_xlabel("log-probability, true value minus best other")
        first.set_yticks(range(len(shown)), [_ranking_name(one) for one in shown])
        first.set_ylim(len(shown) - 0.5, -0.5)
        title_figure(figure, "Probabilities of the true value and of other values", left)
    return [path]


def _dots(panel: "Axes", found: Sequence[Metric]) -> None:
    rows = range(len(found))
    lows, highs = [one.ci_low for one in found], [one.ci_high for one in found]
    panel.hlines(rows, lows, highs, color=COLOURS[0], linewidth=1.2)
    panel.plot([one.estimate for one in found], rows, "o", color=COLOURS[0], markersize=4)


def _ranking_name(one: CandidateRanking) -> str:
    return shorten_name(f"{one.model}, {one.series}" if one.series else one.model)

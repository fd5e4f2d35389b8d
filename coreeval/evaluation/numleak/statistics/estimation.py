"""Computes all measurements of one model and one series from the parsed answers.

Comparisons: a model that answers for both dates with its usual errors puts some pairs in the wrong
order. Its own value answers show how often: among all pairs of answered dates, those whose true
difference is closest to the one asked about. The errors may have any distribution; pairs are
compared with equally hard pairs.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, sqrt
from typing import Final, NamedTuple, TypeVar, get_args

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import DateComparison, Point, Stratum
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.statistics.baselines import (
    knows_most_periods,
    measure_exactness,
    score_baselines,
)
from coreeval.evaluation.numleak.statistics.date_intervals import (
    MIN_DATES,
    UNDEFINED,
    Answers,
    Indices,
    collect_answers,
    group_by,
    number_keys,
    share_interval,
)
from coreeval.evaluation.numleak.statistics.logprobs import compare_entropies, list_entropy_notes
from coreeval.evaluation.numleak.statistics.measurements import (
    AuditSettings,
    Metric,
    Null,
    NullName,
    Ranks,
    SeriesMeasurements,
)
from coreeval.evaluation.numleak.statistics.metrics import (
    compare_signatures,
    gradient,
    hits_of_asked,
    measure_repeats,
    modal_share,
    parse_rate,
    r_without_one,
    sign_base_rate,
    signature,
    slope,
    within_tolerance,
)
from coreeval.evaluation.numleak.statistics.nulls import (
    compare_siblings,
    drift_null,
    shuffle_nulls,
    sibling_null,
)
from coreeval.evaluation.statistics import (
    Array,
    adjust_benjamini_hochberg,
    bootstrap_sums,
    middle_range,
)
from coreeval.tools.formatting import format_quantity

OTHER_UNIT: Final = 30.0
"""Ratio of answers to truths from which, like its inverse, another unit is suspected.

Percent and fractions are 100 apart. Our choice, between 10, which bad answers may reach, and 100.
"""
_NOUGHT: Final = 1e-9
"""Values below this size, in the unit, count as 0; published nonzero values are not so small."""
_LARGE: Final = 0.5
"""A correlation that counts as large (Cohen 1988, section 3.2)."""
_MUCH: Final = 0.1
"""Drop of such an r without one date from which the date is named.

A small effect, by the same source.
"""
_PERSISTENT: Final = 0.7
"""The correlation from which the means of the years contain half of the variance."""


def list_notes(
    found: SeriesMeasurements, points: Sequence[Point], definition: SeriesDefinition
) -> tuple[str, ...]:
    """Return notes on the limits of the numbers of the direct questions."""
    answers = collect_answers(points)
    if not answers.periods:
        none = f"none of the {len(points)} questions has an answer that can be compared"
        return (none, *_on_unparsed(points))
    return (
        *_on_unparsed(points),
        *_on_counts(found, answers),
        *_on_answers(found, answers),
        *_on_unit(answers, definition),
        *_on_series(found),
    )


def _on_unparsed(points: Sequence[Point]) -> Iterator[str]:
    reasons = Counter(point.why for point in points if point.status == "unparsed" and point.why)
    if reasons:
        listed = ", ".join(f"{why} ({count})" for why, count in reasons.most_common())
        yield f"reasons for unparsed answers: {listed}"


def _on_counts(found: SeriesMeasurements, answers: Answers) -> Iterator[str]:
    n, dates, parsed = len(answers.date), len(answers.periods), found.overall.parsed
    if n < parsed:
        yield (
            f"{parsed - n} of {parsed} answers have no true value, so they are used only for the "
            "parse rate"
        )
    if dates < MIN_DATES:
        yield f"only {dates} dates have an answer, but intervals need {MIN_DATES}"
    if n > dates:
        about = format_quantity(dates, "different date")
        yield f"{n} answers are about {about}: intervals are over dates, not answers"


def _on_answers(found: SeriesMeasurements, answers: Answers) -> Iterator[str]:
    values, counts = np.unique(answers.estimate, return_counts=True)
    commonest = values[counts.argmax()]
    if len(values) == 1 < len(answers.date):
        yield f"every answer is {commonest:g}: r is not defined"
    elif counts.max() > len(answers.date) / 2:
        yield f"{found.modal.estimate:.0%} of the answers are {commonest:g}"
    r, without = found.overall.pearson_r.estimate, found.r_without_one
    if r >= _LARGE and r - without > _MUCH:
        yield f"r depends on a single date: it is {r:.2f} with that date and {without:.2f} without"


def _on_unit(answers: Answers, definition: SeriesDefinition) -> Iterator[str]:
    due = np.abs(answers.truth) > _NOUGHT
    if np.count_nonzero(due) < MIN_DATES:
        return
    times = float(np.median(np.abs(answers.estimate[due] / answers.truth[due])))
    if times >= OTHER_UNIT or 0 < times <= 1 / OTHER_UNIT:
        yield (
            f"the median answer is {times:.3g} times the true value, so the answers may not "
            f"be in {definition.unit.name}"
        )


def _on_series(found: SeriesMeasurements) -> Iterator[str]:
    if found.sign_base_rate.estimate == 1:
        yield "all true values have the same sign, so sign accuracy is uninformative"
    if not found.baselines:
        yield "the full series is unknown, so there is no memory-free baseline"
    equal = [name for name, each in found.baselines.items() if each.gain.ci_low <= 0]
    if equal:
        known = ", ".join(equal).replace("_", " ")
        yield (
            f"there is no evidence that the answers are more accurate than these baselines: {known}"
        )
    year = found.baselines.get("year")
    if year is not None and year.pearson_r >= _PERSISTENT:
        r = f"{year.pearson_r:.2f}"
        yield f"the values persist: on these dates, each year's mean alone reaches an r of {r}"


def _on_gaps(values: Mapping[Period, float]) -> Iterator[str]:
    if values and not knows_most_periods(values):
        yield (
            "values are known for fewer than half of the periods between the first and the last "
            "date, so there is no baseline of the previous value and at best a rough one of each "
            "year's mean, and shifted answers are not searched for: only answers that are exact to "
            "the last digit can show memory; for these comparisons, pass the whole published series"
        )


def measure_ranks(
    comparisons: Sequence[DateComparison],
    points: Sequence[Point],
    values: Mapping[Period, float],
    *,
    settings: AuditSettings,
) -> Ranks:
    """Measure how well pairs are ordered, compared with the order of the value answers."""
    read = [each for each in comparisons if each.chosen is not None]
    parsed = [each.chosen is not None for each in comparisons]
    expected, gap = _decoupling(read, collect_answers(points), values, settings)
    return Ranks(
        asked=len(comparisons),
        parse_rate=share_interval(parsed, number_keys(_pairs(comparisons))[1]),
        accuracy=_rate([each.chosen == each.higher for each in read], read),
        expected=expected,
        gap=gap,
        coherence=_coherence(read, collect_answers(points)),
    )


def _pairs(comparisons: Sequence[DateComparison]) -> list[frozenset[Period]]:
    return [frozenset((each.first, each.second)) for each in comparisons]


def _rate(hits: Sequence[bool], comparisons: Sequence[DateComparison]) -> Metric:
    return share_interval(hits, number_keys(_pairs(comparisons))[1])


def _coherence(read: Sequence[DateComparison], answers: Answers) -> Metric:
    """Compare choices with the order of the model's own answers for the two dates."""
    said = dict(zip(answers.periods, answers.means(answers.estimate), strict=True))
    both = [
        each
        for each in read
        if each.first in said and each.second in said and said[each.first] != said[each.second]
    ]
    agree = [(each.chosen == "first") == (said[each.first] > said[each.second]) for each in both]
    return _rate(agree, both)


class _DateOrders(NamedTuple):
    """Pairs of answered dates: the distance of their truths, and whether answers order them."""

    first: Indices
    second: Indices
    apart: Array
    """Absolute differences of the truths, in ascending order."""
    right: Array
    """1 if the answers order the pair correctly, 0 if not, 0.5 if they tie."""


def _orders(answers: Answers) -> _DateOrders:
    truth, said = answers.means(answers.truth), answers.means(answers.estimate)
    first, second = np.triu_indices(len(truth), k=1)
    true, claimed = truth[first] - truth[second], said[first] - said[second]
    kept = true != 0
    order = np.flatnonzero(kept)[np.argsort(np.abs(true[kept]), kind="stable")]
    right = (1 + np.sign(true) * np.sign(claimed)) / 2
    return _DateOrders(first[order], second[order], np.abs(true[order]), right[order])


def _decoupling(
    read: Sequence[DateComparison],
    answers: Answers,
    values: Mapping[Period, float],
    settings: AuditSettings,
) -> tuple[Metric, Metric]:
    """Return the accuracy expected from the value answers, and the shortfall of the comparisons."""
    due = dict(values) | dict(zip(answers.periods, answers.means(answers.truth), strict=True))
    known = [each for each in read if each.first in due and each.second in due]
    orders = _orders(answers)
    pairs, question = number_keys(_pairs(known))
    if not len(orders.apart) or not known:
        return UNDEFINED, UNDEFINED
    distances = np.array([abs(due[each.first] - due[each.second]) for each in known])
    likely, right, all_pairs = _neighbours(orders, distances, len(answers.periods))
    hits = np.array([each.chosen == each.higher for each in known], np.float64)
    n, dates = len(known), len(pairs)
    expected, gap = float(likely.mean()), float((likely - hits).mean())
    if min(len(answers.periods), dates) < MIN_DATES:
        return Metric(expected, np.nan, np.nan, n, dates), Metric(gap, np.nan, np.nan, n, dates)
    rng = np.random.default_rng(settings.seed)
    values_drawn = _redraw_expected(right, all_pairs, settings, rng) - expected
    rows = np.stack([np.ones(n), likely, likely - hits])
    sums = np.stack([np.bincount(question, weights=row) for row in rows], axis=1).astype(np.float64)
    drawn = bootstrap_sums(sums, settings.draws, rng)
    return (
        _percentile(expected, drawn[:, 1] / drawn[:, 0] + values_drawn, n, dates, within=(0, 1)),
        _percentile(gap, drawn[:, 2] / drawn[:, 0] + values_drawn, n, dates, within=(-1, 1)),
    )


def _neighbours(orders: _DateOrders, distances: Array, dates: int) -> tuple[Array, Array, Array]:
    """Return the probability that the answers order each asked difference, and its weights.

    The estimate uses the nearest differences; their number is the square root of the total (a rule
    of thumb for neighbours: Duda, Hart and Stork 2001, section 4.4). Weights are summed by pair of
    dates, with shape (dates, dates): for right orders, and for all.
    """
    count = len(orders.apart)
    taken = min(count, ceil(sqrt(count)))
    right, everything = np.zeros((dates, dates)), np.zeros((dates, dates))
    likely = np.empty(len(distances))
    for row, distance in enumerate(distances):
        place = int(np.searchsorted(orders.apart, distance))
        window = slice(max(0, place - taken), place + taken)
        closest = np.argsort(np.abs(orders.apart[window] - distance), kind="stable")[:taken]
        chosen = closest + window.start
        likely[row] = orders.right[chosen].mean()
        where = orders.first[chosen], orders.second[chosen]
        np.add.at(right, where, orders.right[chosen])
        np.add.at(everything, where, 1.0)
    return likely, right, everything


def _redraw_expected(
    right: Array, everything: Array, settings: AuditSettings, rng: np.random.Generator
) -> Array:
    """Return the expected accuracy with the answered dates resampled.

    The error of the answers and that of the pairs are added, which is accurate for small errors.
    """
    weights = bootstrap_sums(np.eye(len(right)), settings.draws, rng)
    found, of = (((weights @ each) * weights).sum(axis=1) for each in (right, everything))
    return np.asarray(found / np.maximum(of, 1e-300))


def _percentile(
    value: float, drawn: Array, n: int, dates: int, *, within: tuple[float, float]
) -> Metric:
    low, high = np.clip(middle_range(drawn), *within)
    return Metric(value, float(low), float(high), n, dates)


Cell = TypeVar("Cell", bound=Hashable)
DEFAULTS: Final = AuditSettings()
FOLLOWS: Final[tuple[NullName, ...]] = ("any_date", "drift")
"""Nulls that any knowledge of the dates refutes."""


def measure(
    points: Sequence[Point],
    comparisons: Sequence[DateComparison] = (),
    *,
    definition: SeriesDefinition,
    others: Mapping[str, Sequence[Point]] | None = None,
    values: Mapping[Period, float] | None = None,
    settings: AuditSettings = DEFAULTS,
) -> SeriesMeasurements:
    """Measure one model's answers about one series.

    `others` are its answers about the siblings, by id. `values` is the whole series, from which the
    scores without memory are computed; if it is not given, they are left out without a note.
    """
    tolerance = definition.tolerance
    describe = partial(signature, tolerance=tolerance, settings=settings)
    probes = group_by(points, lambda point: point.variant)
    value, invented = probes.get("value", []), probes.get("fictitious", [])
    strata = group_by(value, lambda point: point.stratum)
    eras = group_by(value, lambda point: f"{point.period.start.year // 10 * 10}s")
    seeds = group_by(value, lambda point: point.seed)
    notable = group_by(value, lambda point: point.notable)
    siblings = {
        name: [point for point in each if point.variant == "value"]
        for name, each in (others or {}).items()
    }
    known = values or {}
    asked = group_by(comparisons, lambda each: each.variant)
    nulls = shuffle_nulls(value, known, tolerance=tolerance, settings=settings)
    if drift := drift_null(value, known, tolerance=tolerance, settings=settings):
        nulls["drift"] = drift
    dealt = sibling_null(value, siblings, tolerance=tolerance, settings=settings)
    found = SeriesMeasurements(
        overall=describe(value),
        tolerance=tolerance,
        ladder={each: within_tolerance(value, each) for each in sorted(definition.tolerances)},
        hits_of_asked=hits_of_asked(value, tolerance),
        slope=slope(value),
        r_without_one=r_without_one(value),
        modal=modal_share(value),
        sign_base_rate=sign_base_rate(value),
        nulls=nulls | ({"within_date": dealt} if dealt else {}),
        cross_series=compare_siblings(value, siblings, tolerance=tolerance),
        baselines=score_baselines(value, known, tolerance=tolerance),
        strata={name: describe(strata[name]) for name in get_args(Stratum) if name in strata},
        eras={name: describe(eras[name]) for name in sorted(eras)},
        seeds={seed: describe(seeds[seed]) for seed in sorted(seeds)} if len(seeds) > 1 else {},
        gradient=gradient(value),
        notable=compare_signatures(
            describe(notable.get(True, ())), describe(notable.get(False, ()))
        ),
        recent=compare_signatures(
            describe(strata.get("post", ())), describe(strata.get("pre", ()))
        ),
        ranks=measure_ranks(asked.get("pair", []), value, known, settings=settings),
        forced_ranks=measure_ranks(asked.get("forced_choice", []), value, known, settings=settings),
        blind=describe(probes.get("blind", ())),
        fictitious=parse_rate(invented),
        fictitious_names={
            name or "unnamed": parse_rate(each)
            for name, each in group_by(invented, lambda point: point.name).items()
        },
        entropy=compare_entropies(value, invented, settings),
        repeats=measure_repeats(probes.get("repeated", []), tolerance=tolerance),
        exactness=measure_exactness(value, known, definition.decimals),
        p_value=_largest(nulls.values()),
        p_adjusted=float("nan"),
        follows_p=_largest(nulls[name] for name in FOLLOWS if name in nulls),
        follows_p_adjusted=float("nan"),
        notes=(),
    )
    notes = (
        *list_notes(found, value, definition),
        *_on_gaps(known),
        *list_entropy_notes(found.entropy),
    )
    return replace(found, notes=notes)


def adjust_together(cells: Mapping[Cell, SeriesMeasurements]) -> dict[Cell, SeriesMeasurements]:
    """Adjust the p-values of all cells (models times series) for each other."""
    overall = adjust_benjamini_hochberg([each.p_value for each in cells.values()])
    follows = adjust_benjamini_hochberg([each.follows_p for each in cells.values()])
    exact = adjust_benjamini_hochberg([each.exactness.p_value for each in cells.values()])
    return {
        key: replace(
            each,
            p_adjusted=p,
            follows_p_adjusted=follows_p,
            exactness=each.exactness._replace(p_adjusted=exact_p),
        )
        for (key, each), p, follows_p, exact_p in zip(
            cells.items(), overall, follows, exact, strict=True
        )
    }


def _largest(nulls: Iterable[Null]) -> float:
    """Return the largest p-value of r over some nulls; nan if any is not defined."""
    found = [null.pearson_r.p_value for null in nulls]
    return float(np.max(found)) if found else float("nan")

"""The question for a value in other words: does what is said hang on how it is asked?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import grouped
from coreeval.evaluation.numleak.statistics.beside import Beside, beside
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings
from coreeval.evaluation.numleak.statistics.repeats import repeats


@dataclass(frozen=True, kw_only=True)
class Phrasings:
    """How far wordings differ, the plain one among them."""

    wordings: Mapping[str, Beside]
    """By the words that were used, each beside the plain ones."""
    r_range: float
    """Largest minus smallest r over all wordings, each over its own answers."""
    within_range: float
    """The same of the share within tolerance."""
    agreement: Metric
    """Share of dates on which all wordings' answers lie within the tolerance of each other."""
    spread: Metric
    """Standard deviation over wordings within a date, pooled over dates, in the unit."""
    relative_spread: float
    """Spread over the standard deviation of the truths."""


def phrasings(
    plain: Sequence[Point], points: Sequence[Point], *, tolerance: float, settings: Settings
) -> Phrasings:
    """Compare all wordings; agreement and spread are over dates that two of them answered."""
    found = {
        name: beside(plain, each, tolerance=tolerance, settings=settings)
        for name, each in grouped(points, lambda point: point.phrasing or "unnamed").items()
    }
    asked = {point.period for point in points}
    same = [point for point in plain if point.period in asked]
    usual = beside(same, same, tolerance=tolerance, settings=settings).asked
    every = [usual, *(each.asked for each in found.values())]
    scatter = repeats([*same, *points], tolerance=tolerance)
    return Phrasings(
        wordings=found,
        r_range=_range([each.pearson_r.estimate for each in every]),
        within_range=_range([each.within_tolerance.estimate for each in every]),
        agreement=scatter.agreement,
        spread=scatter.spread,
        relative_spread=scatter.relative_spread,
    )


def _range(values: Sequence[float]) -> float:
    """Return the largest minus the smallest value; nan where fewer than two are defined."""
    known = [value for value in values if value == value]
    return max(known) - min(known) if len(known) > 1 else float("nan")

"""Where in time the answers are right: eras, the cutoff, well-known dates, drawings of dates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.points import Point, Stratum
from coreeval.evaluation.numleak.statistics.answers import Key, answers_of, grouped
from coreeval.evaluation.numleak.statistics.intervals import difference
from coreeval.evaluation.numleak.statistics.measured import Lift, Metric, Settings, Signature
from coreeval.evaluation.numleak.statistics.metrics import line_slope, signature

DAYS_IN_TEN_YEARS: Final = 3652.5
_STRATA: Final[tuple[Stratum, ...]] = ("pre", "near", "post", "unknown")


def strata(
    points: Sequence[Point], *, tolerance: float, settings: Settings
) -> dict[Stratum, Signature]:
    """Return the signature before, near and after the cutoff."""
    groups = grouped(points, lambda point: point.stratum)
    ordered = {name: groups[name] for name in _STRATA if name in groups}
    return _signatures(ordered, tolerance, settings)


def eras(points: Sequence[Point], *, tolerance: float, settings: Settings) -> dict[str, Signature]:
    """Return the signature of each decade, in order of time."""
    groups = grouped(points, lambda point: f"{point.period.start.year // 10 * 10}s")
    return _signatures(dict(sorted(groups.items())), tolerance, settings)


def drawings(
    points: Sequence[Point], *, tolerance: float, settings: Settings
) -> dict[int, Signature]:
    """Return the signature of each drawing of dates; nothing where there is only one."""
    groups = grouped(points, lambda point: point.seed)
    return _signatures(dict(sorted(groups.items())), tolerance, settings) if len(groups) > 1 else {}


def _signatures(
    groups: Mapping[Key, Sequence[Point]], tolerance: float, settings: Settings
) -> dict[Key, Signature]:
    return {
        key: signature(each, tolerance=tolerance, settings=settings) for key, each in groups.items()
    }


def notable_lift(points: Sequence[Point], *, tolerance: float, settings: Settings) -> Lift:
    """Compare well-known dates with the others."""
    groups = grouped(points, lambda point: point.notable)
    return lift(groups.get(True, []), groups.get(False, []), tolerance, settings)


def recent_contrast(points: Sequence[Point], *, tolerance: float, settings: Settings) -> Lift:
    """Compare dates after the cutoff with those before it; dates near it count for neither.

    Memory ends there: fewer answers, or worse ones, while those given before stay as good.
    """
    groups = grouped(points, lambda point: point.stratum)
    return lift(groups.get("post", []), groups.get("pre", []), tolerance, settings)


def lift(
    first: Sequence[Point], second: Sequence[Point], tolerance: float, settings: Settings
) -> Lift:
    """Return both groups' signatures, and the first minus the second."""
    one, other = (
        signature(group, tolerance=tolerance, settings=settings) for group in (first, second)
    )
    return Lift(
        first=one,
        second=other,
        parse_rate=difference(one.parse_rate, other.parse_rate),
        mae=difference(one.mae, other.mae),
        within_tolerance=difference(one.within_tolerance, other.within_tolerance),
    )


def gradient(points: Iterable[Point]) -> Metric:
    """Return the slope of the absolute error on time, per ten years, up to the cutoff."""
    answers = answers_of(point for point in points if point.stratum != "post")
    tens = np.array([period.start.toordinal() for period in answers.periods]) / DAYS_IN_TEN_YEARS
    return line_slope(answers, tens[answers.date], answers.error)

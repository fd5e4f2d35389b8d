"""What pictures of an audit show: answers beside the truth, and how they fare over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics import Metric
from coreeval.evaluation.numleak.statistics.metrics import hits_of_asked

SPANS: Final = 8
"""Most stretches of time that a gradient is drawn in."""
LEAST: Final = 5
"""Least questions of a stretch, so that its share says something."""
_MARGIN: Final = 0.25
"""How far beyond the published values an axis goes, in parts of their range."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of time, and how its questions were answered."""

    first: Period
    last: Period
    n: int
    parsed: int
    within: Metric
    """The share with an estimate within the tolerance."""

    @property
    def middle(self) -> date:
        """The day halfway between its ends."""
        ends = self.first.start.toordinal(), self.last.last_day.toordinal()
        return date.fromordinal(sum(ends) // 2)


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One estimate beside the truth; `estimate` is moved onto the edge where it lies beyond."""

    truth: float
    estimate: float
    beyond: bool
    point: Point


def estimated(points: Iterable[Point]) -> list[Point]:
    """Return the answered questions for a value by name, which all headline figures rest on."""
    return [
        point
        for point in points
        if point.variant == "value" and None not in (point.estimate, point.truth)
    ]


def frame_of(points: Iterable[Point]) -> tuple[float, float]:
    """Return the ends of both axes: the published values, and a quarter of their range beyond."""
    truths = [point.truth for point in points if point.truth is not None] or [0.0]
    low, high = min(truths), max(truths)
    margin = _MARGIN * (high - low) or abs(high) * _MARGIN or 1.0
    return low - margin, high + margin


def dots_of(points: Sequence[Point], frame: tuple[float, float]) -> list[Dot]:
    """Return the estimates; what no axis can show without hiding the others lies on its edge."""
    low, high = frame
    return [
        Dot(
            truth=float(point.truth or 0.0),
            estimate=min(max(said, low), high),
            beyond=not low <= said <= high,
            point=point,
        )
        for point in estimated(points)
        if (said := point.estimate) is not None
    ]


def spans_of(points: Iterable[Point], tolerance: float) -> list[Span]:
    """Return the questions for a value in stretches of about as many each, in order of time."""
    asked = sorted((p for p in points if p.variant == "value"), key=lambda p: p.period.start)
    count = max(1, min(SPANS, len(asked) // LEAST))
    ends = np.linspace(0, len(asked), count + 1).round().astype(int)
    return [_span(asked[a:b], tolerance) for a, b in pairwise(ends) if b > a]


def _span(points: Sequence[Point], tolerance: float) -> Span:
    return Span(
        first=points[0].period,
        last=points[-1].period,
        n=len(points),
        parsed=sum(point.status == "parsed" for point in points),
        within=hits_of_asked(points, tolerance),
    )

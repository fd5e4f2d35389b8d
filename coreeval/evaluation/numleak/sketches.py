"""The pictures of the page: the position of each mark of an SVG, 300 units wide."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any, Final

import numpy as np

from coreeval.evaluation.numleak.audit import Audit
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point, Stratum
from coreeval.evaluation.numleak.statistics import Metric
from coreeval.evaluation.numleak.statistics.metrics import hits_of_asked
from coreeval.evaluation.numleak.statistics.variant_comparison import AnswerPairs, pair_answers

MOST_SPANS: Final = 8
"""The largest number of time spans in a gradient plot."""
LEAST_QUESTIONS: Final = 5
"""The fewest questions in a span for its share to be meaningful."""
_MARGIN: Final = 0.25
"""Margin of an axis beyond the published values, as a share of their range."""


@dataclass(frozen=True, kw_only=True)
class DateSpan:
    """A time span, and the answers to its questions."""

    first: Period
    last: Period
    n: int
    parsed: int
    within: Metric
    """Share of the questions with an estimate within tolerance."""

    @property
    def middle(self) -> date:
        """The day halfway between its ends."""
        ends = self.first.start.toordinal(), self.last.last_day.toordinal()
        return date.fromordinal(sum(ends) // 2)


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One estimate and its truth; an `estimate` beyond the frame is moved to its edge."""

    truth: float
    estimate: float
    beyond: bool
    point: Point


def select_estimates(points: Iterable[Point]) -> list[Point]:
    """Return the answered questions for a value by name, the basis of all headline figures."""
    return [
        point
        for point in points
        if point.variant == "value" and None not in (point.estimate, point.truth)
    ]


def find_frame(points: Iterable[Point]) -> tuple[float, float]:
    """Return the ends of both axes: the published values' range plus a quarter on each side."""
    truths = [point.truth for point in points if point.truth is not None] or [0.0]
    low, high = min(truths), max(truths)
    margin = _MARGIN * (high - low) or abs(high) * _MARGIN or 1.0
    return low - margin, high + margin


def place_dots(points: Sequence[Point], frame: tuple[float, float]) -> list[Dot]:
    """Return the dots of the estimates; extreme ones are moved to the edge of the frame."""
    low, high = frame
    return [
        Dot(
            truth=float(point.truth or 0.0),
            estimate=min(max(said, low), high),
            beyond=not low <= said <= high,
            point=point,
        )
        for point in select_estimates(points)
        if (said := point.estimate) is not None
    ]


def split_spans(points: Iterable[Point], tolerance: float) -> list[DateSpan]:
    """Split the questions for a value into consecutive spans of about equal size."""
    asked = sorted((p for p in points if p.variant == "value"), key=lambda p: p.period.start)
    count = max(1, min(MOST_SPANS, len(asked) // LEAST_QUESTIONS))
    ends = np.linspace(0, len(asked), count + 1).round().astype(int)
    return [_make_span(asked[a:b], tolerance) for a, b in pairwise(ends) if b > a]


def _make_span(points: Sequence[Point], tolerance: float) -> DateSpan:
    return DateSpan(
        first=points[0].period,
        last=points[-1].period,
        n=len(points),
        parsed=sum(point.status == "parsed" for point in points),
        within=hits_of_asked(points, tolerance),
    )


Sketch = dict[str, Any]
LEFT, RIGHT, TOP, BOTTOM = 44.0, 292.0, 8.0, 214.0
STRATUM_WORDS: Final[dict[Stratum, str]] = {
    "pre": "before the cutoff",
    "near": "within six months of the cutoff",
    "post": "after the cutoff",
}
_TICKS: Final = 5


def calibration_sketch(audit: Audit, *, clip: str) -> Sketch:
    """Return the marks of answers against true values; `clip` is a unique element id."""
    frame, unit = find_frame(audit.points), audit.definition.unit
    dots = place_dots(audit.points, frame)
    near = audit.definition.tolerance
    low, high = frame
    band = [(low, low - near), (high, high - near), (high, high + near), (low, low + near)]
    there = {dot.point.stratum for dot in dots}
    return {
        "clip": clip,
        "band": _format_path((x_at(x, frame), y_at(y, frame)) for x, y in band),
        "ticks": [
            {"x": x_at(at, frame), "y": y_at(at, frame), "label": f"{at:g}"} for at in ticks(frame)
        ],
        "dots": [_dot_mark(dot, frame, unit.symbol) for dot in dots],
        "unit": f", {unit.symbol or unit.name}",
        "strata": [{"name": name, "words": words}
                   for name, words in STRATUM_WORDS.items() if name in there],
        "beyond": sum(dot.beyond for dot in dots),
    }  # fmt: skip


def gradient_sketch(audit: Audit) -> Sketch:
    """Return the marks of the shares answered and within tolerance over time."""
    spans = split_spans(audit.points, audit.definition.tolerance)
    days = (spans[0].first.start.toordinal(), spans[-1].last.last_day.toordinal())
    frame, middles = (float(days[0]), float(days[1])), [span.middle.toordinal() for span in spans]
    marks = [
        _share_mark(span, x_at(at, frame))
        for span, at in zip(spans, middles, strict=True)
        if isfinite(span.within.estimate)
    ]
    answered = ((x_at(at, frame), y_at(each.parsed / each.n, (0, 1)))
                for each, at in zip(spans, middles, strict=True))  # fmt: skip
    cutoff = float(audit.cutoff.toordinal()) if audit.cutoff else None
    inside = cutoff is not None and frame[0] <= cutoff <= frame[1]
    return {
        "within": marks,
        "line": _format_path((mark["x"], mark["y"]) for mark in marks),
        "answered": _format_path(answered),
        "cutoff": x_at(cutoff, frame) if cutoff is not None and inside else None,
        "outside": _describe_cutoff(audit.cutoff, cutoff is not None and cutoff > frame[1], inside),
        "ticks": _year_ticks(frame),
    }


def ticks(frame: tuple[float, float]) -> list[float]:
    """Return round numbers within the frame, in steps of 1, 2 or 5 times a power of ten."""
    low, high = frame
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    return [round(n * step, 10) for n in range(ceil(low / step), floor(high / step) + 1)]


def _dot_mark(dot: Dot, frame: tuple[float, float], symbol: str) -> Sketch:
    said, period = dot.point.estimate, dot.point.period
    return {
        "x": x_at(dot.truth, frame),
        "y": y_at(dot.estimate, frame),
        "stratum": dot.point.stratum,
        "beyond": dot.beyond,
        "title": f"{period}: said {said:g}{symbol}, published {dot.truth:g}{symbol}",
    }


def _share_mark(span: DateSpan, x: float) -> Sketch:
    found = span.within
    return {
        "x": x,
        "y": y_at(found.estimate, (0, 1)),
        "low": y_at(found.ci_low, (0, 1)),
        "high": y_at(found.ci_high, (0, 1)),
        "title": f"{span.first} to {span.last}: {found.estimate:.0%} of {span.n} questions "
        f"answered within tolerance, {span.parsed} answered with a number",
    }


def _describe_cutoff(cutoff: date | None, later: bool, inside: bool) -> str:
    """Say that the cutoff is beyond the axis or is not known; empty if it is on the axis."""
    if cutoff is None:
        return "The model's cutoff is not known."
    if inside:
        return ""
    return (
        f"The model's cutoff, {cutoff}, is {'later' if later else 'earlier'} than all dates shown."
    )


def _year_ticks(frame: tuple[float, float]) -> list[Sketch]:
    """Return up to five evenly spaced years as axis labels."""
    first, last = (date.fromordinal(int(end)) for end in frame)
    years = range(first.year + (first.timetuple().tm_yday > 1), last.year + 1)
    step = next(n for n in (1, 2, 5, 10, 20, 25, 50, 100) if len(years) / n <= _TICKS + 1)
    named = [year for year in years if year % step == 0]
    if len(named) < 2:
        ends = zip((LEFT + 14, RIGHT - 14), (first, last), strict=True)
        return [{"x": x, "label": f"{day:%Y-%m}"} for x, day in ends]
    return [{"x": x_at(date(year, 1, 1).toordinal(), frame), "label": str(year)} for year in named]


def x_at(value: float, frame: tuple[float, float]) -> float:
    """Return the horizontal position of a value."""
    low, high = frame
    return round(LEFT + (RIGHT - LEFT) * (value - low) / (high - low or 1), 1)


def y_at(value: float, frame: tuple[float, float]) -> float:
    """Return the vertical position of a value, from the top."""
    low, high = frame
    return round(BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low or 1), 1)


def _format_path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


Json = Mapping[str, Any]
CONDITION_WORDS: Final[Mapping[str, str]] = {"series": "the series", "fictitious": "invented names"}
"""The label of each condition, in the order of the plot."""
_LEFT, _RIGHT, _WIDE, _HIGH = 92.0, 296.0, 300, 116
_ROWS: Final[Mapping[str, float]] = {"series": 26.0, "fictitious": 70.0}
_BIN, _STEP, _MOST = 5.0, 4.0, 4
"""Layout of dots: those within `_BIN` units are stacked `_STEP` apart, `_MOST` on either side."""
LEAST_BITS: Final = 0.5
"""The fewest bits that an axis covers."""


def strip_svg(entropy: Json) -> str:
    """Return an SVG of every answer's bits, one row per condition, with lines at the medians.

    Args:
        entropy: The `entropy` section of an audit's document.
    """
    end = find_axis_end(bits for name in _ROWS for bits in entropy[name]["bits"])
    drawn = "".join(_condition_row(name, entropy[name], end) for name in _ROWS)
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="Entropy of each answer in '
        f'bits, about the series and about invented names" fill="currentColor" font-size="10">'
        f"{drawn}{_axis_svg(end)}</svg>"
    )


def find_axis_end(bits: Iterator[float]) -> float:
    """Return the end of an axis that covers all values, a multiple of half a bit."""
    return max(LEAST_BITS, ceil(2 * max(bits, default=0.0)) / 2)


def _condition_row(name: str, one: Json, end: float) -> str:
    y, mark = _ROWS[name], 'fill="none" stroke="currentColor"' if name == "fictitious" else ""
    words = f'<text x="0" y="{y + 3:g}">{CONDITION_WORDS[name]}</text>'
    if not one["bits"]:
        return words + f'<text x="{_LEFT:g}" y="{y + 3:g}" opacity=".7">none measured</text>'
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y + off:g}" r="2.6" {mark} opacity=".75"/>'
        for x, off in _dot_places([_bits_x(bits, end) for bits in one["bits"]])
    )
    at = _bits_x(one["median"]["estimate"], end)
    line = f'<path d="M{at:.1f} {y - 19:g}v38" stroke="currentColor" stroke-width="2"/>'
    return words + dots + line


def _dot_places(xs: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield the position of each dot along the axis, and its offset from the row."""
    seen = defaultdict[int, int](int)
    for x in xs:
        turn = seen[round(x / _BIN)] % (2 * _MOST + 1)
        seen[round(x / _BIN)] += 1
        yield x, _STEP * ((turn + 1) // 2) * (1 if turn % 2 else -1)


def _axis_svg(end: float) -> str:
    marks = (0.0, end / 2, end)
    return f'<path d="M{_LEFT:g} 94H{_RIGHT:g}" stroke="currentColor" opacity=".4"/>' + "".join(
        f'<text x="{_bits_x(at, end):.1f}" y="108" text-anchor="{anchor}" opacity=".8">{at:g}{unit}'
        "</text>"
        for at, anchor, unit in zip(
            marks, ("start", "middle", "end"), ("", "", " bits"), strict=True
        )
    )


def _bits_x(bits: float, end: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * bits / end


PairSketch = dict[str, Any]


def pair_step_answers(audit: Audit) -> AnswerPairs | None:
    """Return the dates answered both plainly and step by step; None if there are none."""
    plain = [point for point in audit.points if point.variant == "value"]
    own = [point for point in audit.points if point.variant == "step_by_step"]
    pairs = pair_answers(plain, own)
    return pairs if pairs.periods else None


def find_value_frame(audit: Audit) -> tuple[float, float]:
    """Return the ends of the axes for values."""
    return find_frame(point for point in audit.points if point.variant == "value")


def find_error_frame(pairs: AnswerPairs) -> tuple[float, float]:
    """Return the ends of the axes for errors."""
    most = max(float(each.max()) for each in pairs.errors)
    return 0.0, 1.05 * most or 1.0


def step_sketch(audit: Audit) -> PairSketch | None:
    """Return the marks of both panels; those beyond the axes are moved to their ends."""
    pairs = pair_step_answers(audit)
    if pairs is None:
        return None
    frame, errors = find_value_frame(audit), find_error_frame(pairs)
    low, high = frame
    symbol = audit.definition.unit.symbol
    before, after = pairs.errors
    rows = zip(pairs.periods, pairs.truth, pairs.plain, pairs.own, before, after, strict=True)
    dots = []
    for period, truth, plain, own, first, second in rows:
        words = (
            f"{period}: published {truth:g}, plain answer {plain:g}, step by step {own:g} {symbol}"
        )
        dots.append({
            "title": words.rstrip(),
            "x": x_at(truth, frame),
            "plain": y_at(min(max(plain, low), high), frame),
            "own": y_at(min(max(own, low), high), frame),
            "before": x_at(first, errors),
            "after": y_at(second, errors),
        })  # fmt: skip
    return {
        "dots": dots,
        "values": [{"x": x_at(at, frame), "y": y_at(at, frame), "label": f"{at:g}"}
                   for at in ticks(frame)],
        "errors": [{"x": x_at(at, errors), "y": y_at(at, errors), "label": f"{at:g}"}
                   for at in ticks(errors)],
        "unit": f", {symbol or audit.definition.unit.name}",
    }  # fmt: skip

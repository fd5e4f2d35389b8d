"""The pictures of the page: where each mark of an SVG lies, 300 units wide."""

from collections.abc import Iterable
from datetime import date
from math import ceil, floor, isfinite, log10
from typing import Any, Final

from coreeval.evaluation.numleak.curves import Dot, Span, dots_of, frame_of, spans_of
from coreeval.evaluation.numleak.points import Stratum
from coreeval.evaluation.numleak.study import Audit

Sketch = dict[str, Any]
LEFT, RIGHT, TOP, BOTTOM = 44.0, 292.0, 8.0, 214.0
STRATUM_WORDS: Final[dict[Stratum, str]] = {
    "pre": "before the cutoff",
    "near": "within six months of it",
    "post": "after it",
}
_TICKS: Final = 5


def calibration_sketch(audit: Audit, *, clip: str) -> Sketch:
    """Return the marks of what was said over what is true; `clip` is an id of its own."""
    frame, unit = frame_of(audit.points), audit.definition.unit
    dots = dots_of(audit.points, frame)
    near = audit.definition.tolerance
    low, high = frame
    band = [(low, low - near), (high, high - near), (high, high + near), (low, low + near)]
    there = {dot.point.stratum for dot in dots}
    return {
        "clip": clip,
        "band": _path((x_at(x, frame), y_at(y, frame)) for x, y in band),
        "ticks": [
            {"x": x_at(at, frame), "y": y_at(at, frame), "label": f"{at:g}"} for at in ticks(frame)
        ],
        "dots": [_dot(dot, frame, unit.symbol) for dot in dots],
        "unit": f", {unit.symbol or unit.name}",
        "strata": [{"name": name, "words": words}
                   for name, words in STRATUM_WORDS.items() if name in there],
        "beyond": sum(dot.beyond for dot in dots),
    }  # fmt: skip


def gradient_sketch(audit: Audit) -> Sketch:
    """Return the marks of how many questions are answered, and within tolerance, over time."""
    spans = spans_of(audit.points, audit.definition.tolerance)
    days = (spans[0].first.start.toordinal(), spans[-1].last.last_day.toordinal())
    frame, middles = (float(days[0]), float(days[1])), [span.middle.toordinal() for span in spans]
    marks = [
        _share(span, x_at(at, frame))
        for span, at in zip(spans, middles, strict=True)
        if isfinite(span.within.estimate)
    ]
    answered = ((x_at(at, frame), y_at(each.parsed / each.n, (0, 1)))
                for each, at in zip(spans, middles, strict=True))  # fmt: skip
    cutoff = float(audit.cutoff.toordinal()) if audit.cutoff else None
    inside = cutoff is not None and frame[0] <= cutoff <= frame[1]
    return {
        "within": marks,
        "line": _path((mark["x"], mark["y"]) for mark in marks),
        "answered": _path(answered),
        "cutoff": x_at(cutoff, frame) if cutoff is not None and inside else None,
        "outside": _outside(audit.cutoff, cutoff is not None and cutoff > frame[1], inside),
        "ticks": _years(frame),
    }


def ticks(frame: tuple[float, float]) -> list[float]:
    """Return round numbers between both ends: steps of 1, 2 or 5 times a power of ten."""
    low, high = frame
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    return [round(n * step, 10) for n in range(ceil(low / step), floor(high / step) + 1)]


def _dot(dot: Dot, frame: tuple[float, float], symbol: str) -> Sketch:
    said, period = dot.point.estimate, dot.point.period
    return {
        "x": x_at(dot.truth, frame),
        "y": y_at(dot.estimate, frame),
        "stratum": dot.point.stratum,
        "beyond": dot.beyond,
        "title": f"{period}: said {said:g}{symbol}, published {dot.truth:g}{symbol}",
    }


def _share(span: Span, x: float) -> Sketch:
    found = span.within
    return {
        "x": x,
        "y": y_at(found.estimate, (0, 1)),
        "low": y_at(found.ci_low, (0, 1)),
        "high": y_at(found.ci_high, (0, 1)),
        "title": f"{span.first} to {span.last}: {found.estimate:.0%} of {span.n} within tolerance, "
        f"{span.parsed} answered",
    }


def _outside(cutoff: date | None, later: bool, inside: bool) -> str:
    """Return where a cutoff is that lies beyond the axis, or that it is not known."""
    if cutoff is None:
        return "The model's cutoff is not known."
    if inside:
        return ""
    return f"The model's cutoff, {cutoff}, is {'later' if later else 'earlier'} than all of it."


def _years(frame: tuple[float, float]) -> list[Sketch]:
    """Return up to five years to name at the axis, evenly apart."""
    first, last = (date.fromordinal(int(end)) for end in frame)
    years = range(first.year + (first.timetuple().tm_yday > 1), last.year + 1)
    step = next(n for n in (1, 2, 5, 10, 20, 25, 50, 100) if len(years) / n <= _TICKS + 1)
    named = [year for year in years if year % step == 0]
    if len(named) < 2:
        ends = zip((LEFT + 14, RIGHT - 14), (first, last), strict=True)
        return [{"x": x, "label": f"{day:%Y-%m}"} for x, day in ends]
    return [{"x": x_at(date(year, 1, 1).toordinal(), frame), "label": str(year)} for year in named]


def x_at(value: float, frame: tuple[float, float]) -> float:
    """Return where a value lies from left to right."""
    low, high = frame
    return round(LEFT + (RIGHT - LEFT) * (value - low) / (high - low or 1), 1)


def y_at(value: float, frame: tuple[float, float]) -> float:
    """Return where a value lies from the top down."""
    low, high = frame
    return round(BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low or 1), 1)


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)

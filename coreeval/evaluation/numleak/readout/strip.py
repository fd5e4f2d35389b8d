"""A small picture of entropies for pages, in the colour of the text around it; numbers alone."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

Json = Mapping[str, Any]
WORDS: Final[Mapping[str, str]] = {"series": "the series", "fictitious": "invented names"}
"""What each condition is called, in the order of the picture."""
_LEFT, _RIGHT, _WIDE, _HIGH = 92.0, 296.0, 300, 116
_ROWS: Final[Mapping[str, float]] = {"series": 26.0, "fictitious": 70.0}
_BIN, _STEP, _MOST = 5.0, 4.0, 4
"""Dots within `_BIN` units stand over each other, `_STEP` apart, `_MOST` on either side."""
LEAST: Final = 0.5
"""Bits that an axis has at least."""


def strip_svg(entropy: Json) -> str:
    """Return an SVG of every answer's bits, one row for each condition, medians as lines.

    Args:
        entropy: What an audit's document has under `entropy`.
    """
    end = axis_end(bits for name in _ROWS for bits in entropy[name]["bits"])
    drawn = "".join(_row(name, entropy[name], end) for name in _ROWS)
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="Entropy of each answer in '
        f'bits, about the series and about invented names" fill="currentColor" font-size="10">'
        f"{drawn}{_axis(end)}</svg>"
    )


def axis_end(bits: Iterator[float]) -> float:
    """Return where an axis ends that has all of these on it, a multiple of half a bit."""
    return max(LEAST, ceil(2 * max(bits, default=0.0)) / 2)


def _row(name: str, one: Json, end: float) -> str:
    y, mark = _ROWS[name], 'fill="none" stroke="currentColor"' if name == "fictitious" else ""
    words = f'<text x="0" y="{y + 3:g}">{WORDS[name]}</text>'
    if not one["bits"]:
        return words + f'<text x="{_LEFT:g}" y="{y + 3:g}" opacity=".7">none measured</text>'
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y + off:g}" r="2.6" {mark} opacity=".75"/>'
        for x, off in _places([_x(bits, end) for bits in one["bits"]])
    )
    at = _x(one["median"]["estimate"], end)
    line = f'<path d="M{at:.1f} {y - 19:g}v38" stroke="currentColor" stroke-width="2"/>'
    return words + dots + line


def _places(xs: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield each place along the axis, and how far beside its row a dot stands."""
    seen = defaultdict[int, int](int)
    for x in xs:
        turn = seen[round(x / _BIN)] % (2 * _MOST + 1)
        seen[round(x / _BIN)] += 1
        yield x, _STEP * ((turn + 1) // 2) * (1 if turn % 2 else -1)


def _axis(end: float) -> str:
    marks = (0.0, end / 2, end)
    return f'<path d="M{_LEFT:g} 94H{_RIGHT:g}" stroke="currentColor" opacity=".4"/>' + "".join(
        f'<text x="{_x(at, end):.1f}" y="108" text-anchor="{anchor}" opacity=".8">{at:g}{unit}'
        "</text>"
        for at, anchor, unit in zip(
            marks, ("start", "middle", "end"), ("", "", " bits"), strict=True
        )
    )


def _x(bits: float, end: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * bits / end

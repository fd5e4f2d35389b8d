"""The trade-off of defences as marks of an SVG, 300 units wide: blocked attacks against scores."""

from collections.abc import Iterator, Mapping, Sequence
from math import floor
from typing import Any, Final

from coreeval.evaluation.numleak.defences.answers import MOST
from coreeval.evaluation.numleak.defences.table import CATEGORY_WORDS, agreement_line, groups_of

Json = Mapping[str, Any]
Sketch = dict[str, Any]
LEFT, RIGHT, TOP, BOTTOM = 44.0, 288.0, 10.0, 190.0
SHAPES: Final = (
    "M{x} {y}m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "M{x} {y}m-5 4h10l-5 -9z",
    "M{x} {y}m-4 -4h8v8h-8z",
    "M{x} {y}m0 -6l5.5 6l-5.5 6l-5.5 -6z",
    "M{x} {y}m-5 -4h10l-5 9z",
)
"""Round, triangle, square, diamond, triangle on its head; then again."""
_APART: Final = 7.0
"""Units by which defences at the same place are set apart."""
_EDGE: Final = 22.0
"""Units that are left free beside 0 % and 100 %."""


def part_of_page(defences: Json | None) -> Sketch | None:
    """Return all that a page shows of defences; None where none was tried."""
    if defences is None:
        return None
    return {
        "pictures": tradeoffs(defences),
        "groups": [*groups_of(defences)],
        "categories": [*CATEGORY_WORDS.values()],
        "agreement": agreement_line(defences["agreement"]),
        "notes": defences["notes"],
    }


def tradeoffs(defences: Json) -> list[Sketch]:
    """Return a picture for each model and series whose answers to ordinary questions are scored."""
    cells = [cell for cell in defences["cells"] if scored(cell)]
    pairs = dict.fromkeys((cell["model"], cell["series"]) for cell in cells)
    low = lowest(cells)
    return [
        _sketch([c for c in cells if (c["model"], c["series"]) == pair], *pair, low)
        for pair in pairs
    ]


def scored(cell: Json) -> bool:
    """Whether a defence has both numbers."""
    useful = cell["useful"]
    return bool(cell["attacks"]["n"] and useful and useful["mean"]["estimate"] is not None)


def lowest(cells: Sequence[Json]) -> int:
    """Return the whole score at which the axis of scores begins."""
    lows: list[float] = [cell["useful"]["mean"]["ci_low"] for cell in cells]
    return min([MOST - 1, *(floor(low) for low in lows)])


def asides(cells: Sequence[Json]) -> list[float]:
    """Return how many places each mark is moved to the side, so that none hides another."""
    places = [
        (round(cell["attacks"]["blocked_rate"]["estimate"], 1),
         round(cell["useful"]["mean"]["estimate"] * 2) if scored(cell) else index)
        for index, cell in enumerate(cells)
    ]  # fmt: skip
    return [
        places[:index].count(place) - (places.count(place) - 1) / 2
        for index, place in enumerate(places)
    ]


def _sketch(cells: Sequence[Json], model: str, series: str, low: int) -> Sketch:
    return {
        "model": model,
        "series": series,
        "marks": [*_marks(cells, low)],
        "across": [{"at": _x(share), "label": f"{share:.0%}"} for share in (0, 0.5, 1)],
        "up": [{"at": _y(score, low), "label": str(score)} for score in range(low, MOST + 1)],
    }


def _marks(cells: Sequence[Json], low: int) -> Iterator[Sketch]:
    for number, (cell, places) in enumerate(zip(cells, asides(cells), strict=True)):
        blocked, mean = cell["attacks"]["blocked_rate"], cell["useful"]["mean"]
        aside = places * _APART
        x, y = _x(blocked["estimate"]) + aside, _y(mean["estimate"], low)
        yield {
            "defence": cell["defence"],
            "shape": SHAPES[number % len(SHAPES)].format(x=round(x, 1), y=y),
            "key": SHAPES[number % len(SHAPES)].format(x=0, y=0),
            "kind": number % len(SHAPES),
            "x": round(x, 1),
            "y": y,
            "left": _x(blocked["ci_low"]) + aside,
            "right": _x(blocked["ci_high"]) + aside,
            "top": _y(mean["ci_high"], low),
            "bottom": _y(mean["ci_low"], low),
            "title": f"{cell['defence']}: {blocked['estimate']:.1%} of {cell['attacks']['n']} "
            f"attacks blocked, mean score {mean['estimate']:.2f} of {MOST}",
        }


def _x(share: float) -> float:
    return round(LEFT + _EDGE + (RIGHT - LEFT - 2 * _EDGE) * share, 1)


def _y(score: float, low: int) -> float:
    return round(BOTTOM - 6 - (BOTTOM - TOP - 12) * (score - low) / (MOST - low), 1)

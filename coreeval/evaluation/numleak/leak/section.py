"""An attribution as part of a page: tables, what follows, and the signal over truth and recall."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from coreeval.evaluation.numleak.leak.rows import (
    ROUTE_WORDS,
    attribution_rows,
    control_rows,
    control_says,
)
from coreeval.evaluation.numleak.sketches import BOTTOM, LEFT, RIGHT, TOP, ticks
from coreeval.evaluation.numleak.table import Json
from coreeval.tools.text import visible_value

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_ROOM: Final = 0.06
"""Beside the outermost points, in parts of their range."""
_SIDES: Final = (
    ("truth", "published", "slope_on_truth", "signal_r"),
    ("recall", "recalled", "slope_on_recall", "signal_recall_r"),
)


def leak_section(one: Json) -> "Markup":
    """Return what an audited series says of signals, escaped; nothing where it has none.

    `one` is an audit in `series` of the document; documents of older runs have no `leak`.
    """
    from markupsafe import Markup

    leak = one.get("leak")
    if leak is None:
        return Markup("")
    shown = _template().render(
        one=one,
        leak=leak,
        views=[_view(each) for each in leak["signals"]],
        controls=list(control_rows(leak)),
        says=list(control_says(leak)),
    )
    return Markup(shown)


def _view(one: Json) -> dict[str, Any]:
    return {
        "document": one,
        "route": ROUTE_WORDS[one["route"]],
        "rows": list(attribution_rows(one)),
        "sketches": [_sketch(one, *side) for side in _SIDES] if one["points"] else [],
    }


def _sketch(one: Json, column: str, words: str, slope: str, r: str) -> dict[str, Any]:
    """Return where each mark lies, in the frame of the page's other pictures."""
    points = one["points"]
    line = _line(points, column, one[slope]["estimate"])
    across = _frame([each[column] for each in points])
    up = _frame([*(each["signal"] for each in points), *(y for _, y in line)])
    return {
        "words": words,
        "dots": [
            {
                "x": _x(each[column], across),
                "y": _y(each["signal"], up),
                "title": f"{each['period']}: {words} {each[column]:g}, signal {each['signal']:g}",
            }
            for each in points
        ],
        "x_ticks": [{"at": _x(at, across), "label": f"{at:g}"} for at in ticks(across)],
        "y_ticks": [{"at": _y(at, up), "label": f"{at:g}"} for at in ticks(up)],
        "line": [(_x(x, across), _y(y, up)) for x, y in line],
        "slope": one[slope]["estimate"],
        "r": one[r]["estimate"],
    }


def _line(points: Sequence[Json], column: str, slope: float | None) -> list[tuple[float, float]]:
    """Return the ends of the least-squares line over the points; nothing where there is none."""
    if slope is None:
        return []
    x = [each[column] for each in points]
    middle = sum(x) / len(x), sum(each["signal"] for each in points) / len(points)
    return [(at, middle[1] + slope * (at - middle[0])) for at in (min(x), max(x))]


def _frame(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = _ROOM * (high - low) or abs(high) or 1.0
    return low - room, high + room


def _x(value: float, frame: tuple[float, float]) -> float:
    return round(LEFT + (RIGHT - LEFT) * (value - frame[0]) / (frame[1] - frame[0]), 1)


def _y(value: float, frame: tuple[float, float]) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * (value - frame[0]) / (frame[1] - frame[0]), 1)


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    file = resources.files("coreeval.evaluation.numleak.leak").joinpath("section.html.jinja")
    made = Environment(
        autoescape=True, finalize=visible_value, undefined=StrictUndefined, trim_blocks=True
    )
    return made.from_string(file.read_text(encoding="utf-8"))

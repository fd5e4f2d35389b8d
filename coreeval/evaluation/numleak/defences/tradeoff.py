"""Blocked attacks against usefulness: the defences as tables, marks of the page, and a figure.

The source is their JSON document (NumLeak, appendix S).
"""

from collections.abc import Iterator, Mapping, Sequence
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coreeval.evaluation.numleak.defences.attacks import NO_DEFENCE
from coreeval.evaluation.numleak.defences.utility import TOP_SCORE, Category
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name
from coreeval.tools.formatting import format_interval, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Json = Mapping[str, Any]
CATEGORY_WORDS: Final[Mapping[Category, str]] = {
    "conceptual": "concepts",
    "history": "history",
    "adjacent_numeric": "figures",
}
NO_NUMBER_MARK: Final = "-"


class DefenceRow(NamedTuple):
    """The results of one defence, formatted for display."""

    defence: str
    plain: str
    """Share of plain questions answered with a number."""
    any_ending: str
    """Share of dates on which at least one ending got a number."""
    blocked: str
    """Share of attacks that got no number."""
    span: str
    """The 95 % interval of `blocked`."""
    near: str
    """Share of attacks that got a number near the truth."""
    r: str
    """Correlation of the numbers that attacks got with the truth."""
    useful: str
    """Mean score of the answers to ordinary questions."""
    categories: tuple[str, ...]
    """Mean scores by category, in the order of `CATEGORY_WORDS`."""


class DefenceTable(NamedTuple):
    """The defences of one model on one series, or of all models and series."""

    title: str
    rows: list[DefenceRow]
    sentences: list[str]
    """Sentences that say what was blocked."""
    endings: list[tuple[str, list[str]]]
    """Each ending with the attacks that got a number, for each defence."""


def defence_tables(defences: Json) -> Iterator[DefenceTable]:
    """Yield a table for each model and series, then one for all together if there are several."""
    cells = defences["cells"]
    pairs = list(dict.fromkeys((cell["model"], cell["series"]) for cell in cells))
    for model, series in pairs:
        own = [cell for cell in cells if (cell["model"], cell["series"]) == (model, series)]
        yield _group(f"{model}, {series}", own)
    if len(pairs) > 1:
        yield _group("all models and series", defences["totals"])


def describe_agreement(found: Json | None) -> str:
    """Describe how far two judges agree; empty if there is no second judge."""
    if found is None:
        return ""
    n, means = found["n"], [_format_number(found[f"{which}_mean"]) for which in ("first", "second")]
    r, kappa = (
        _format_number(found["pearson_r"]["estimate"], 3),
        _format_number(found["weighted_kappa"], 3),
    )
    exact, near = (_of(found[key]["estimate"], n) for key in ("exact", "within_one"))
    return (
        f"Two judges scored {n} of the answers: {found['first']} (mean {means[0]}) and "
        f"{found['second']} (mean {means[1]}). The correlation r of their scores is {r}, and "
        f"their weighted kappa is {kappa}. {exact} scores are identical, and {near} differ by at "
        "most one point."
    )


def _group(title: str, parts: Sequence[Json]) -> DefenceTable:
    endings = dict.fromkeys(name for part in parts for name in part["suffixes"])
    return DefenceTable(
        title=title,
        rows=[_row(part) for part in parts],
        sentences=[part["sentence"] for part in parts],
        endings=[
            (name, [_format_outcome(part["suffixes"].get(name)) for part in parts])
            for name in endings
        ],
    )


def _row(part: Json) -> DefenceRow:
    attacks, worst, useful = part["attacks"], part["worst_case"], part["useful"]
    rate = attacks["blocked_rate"]
    return DefenceRow(
        defence=f"{part['defence']} (control)"
        if part["defence"] == NO_DEFENCE
        else part["defence"],
        plain=_format_outcome(part["plain"]),
        any_ending=_format_count(worst["answered"], worst["dates"]),
        blocked=_format_count(attacks["blocked"], attacks["n"]),
        span=format_interval(rate["ci_low"], rate["ci_high"], ".1%", undefined=NO_NUMBER_MARK),
        near=str(attacks["near"]) if attacks["n"] else NO_NUMBER_MARK,
        r=_format_number(attacks["pearson_r"]["estimate"]),
        useful=_format_number(useful["mean"]["estimate"]) if useful else NO_NUMBER_MARK,
        categories=tuple(
            _format_number(useful["categories"][name]["estimate"])
            if useful and name in useful["categories"]
            else NO_NUMBER_MARK
            for name in CATEGORY_WORDS
        ),
    )


def _format_outcome(outcome: Json | None) -> str:
    return _format_count(outcome["answered"], outcome["n"]) if outcome else NO_NUMBER_MARK


def _format_count(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else NO_NUMBER_MARK


def _format_number(value: float | None, digits: int = 2) -> str:
    return format_number(value, f".{digits}f", NO_NUMBER_MARK)


def _of(part: float | None, n: int) -> str:
    return NO_NUMBER_MARK if part is None else f"{round(part * n)}/{n}"


TradeoffJson = Mapping[str, Any]
Sketch = dict[str, Any]
LEFT, RIGHT, TOP, BOTTOM = 44.0, 288.0, 10.0, 190.0
MARK_PATHS: Final = (
    "M{x} {y}m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "M{x} {y}m-5 4h10l-5 -9z",
    "M{x} {y}m-4 -4h8v8h-8z",
    "M{x} {y}m0 -6l5.5 6l-5.5 6l-5.5 -6z",
    "M{x} {y}m-5 -4h10l-5 9z",
)
"""SVG paths of the marks: circle, triangle, square, diamond, inverted triangle; repeated."""
_MARK_DISTANCE: Final = 7.0
"""Distance between the marks of defences at the same place, in SVG units."""
_EDGE: Final = 22.0
"""The free space next to 0 % and 100 %, in SVG units."""


def defences_view(defences: TradeoffJson | None) -> Sketch | None:
    """Return all data on defences for a page; None if no defence was tried."""
    if defences is None:
        return None
    return {
        "pictures": tradeoff_sketches(defences),
        "groups": [*defence_tables(defences)],
        "categories": [*CATEGORY_WORDS.values()],
        "agreement": describe_agreement(defences["agreement"]),
        "notes": defences["notes"],
    }


def tradeoff_sketches(defences: TradeoffJson) -> list[Sketch]:
    """Return a sketch for each model and series that has scored answers to ordinary questions."""
    cells = [cell for cell in defences["cells"] if has_both_scores(cell)]
    pairs = dict.fromkeys((cell["model"], cell["series"]) for cell in cells)
    low = find_lowest_score(cells)
    return [
        _sketch([c for c in cells if (c["model"], c["series"]) == pair], *pair, low)
        for pair in pairs
    ]


def has_both_scores(cell: TradeoffJson) -> bool:
    """Return whether a defence has both a blocked share and a usefulness score."""
    useful = cell["useful"]
    return bool(cell["attacks"]["n"] and useful and useful["mean"]["estimate"] is not None)


def find_lowest_score(cells: Sequence[TradeoffJson]) -> int:
    """Return the whole-number score at which the score axis begins."""
    lows: list[float] = [cell["useful"]["mean"]["ci_low"] for cell in cells]
    return min([TOP_SCORE - 1, *(floor(low) for low in lows)])


def spread_marks(cells: Sequence[TradeoffJson]) -> list[float]:
    """Return the number of positions to move each mark sideways so that no mark hides another."""
    places = [
        (round(cell["attacks"]["blocked_rate"]["estimate"], 1),
         round(cell["useful"]["mean"]["estimate"] * 2) if has_both_scores(cell) else index)
        for index, cell in enumerate(cells)
    ]  # fmt: skip
    return [
        places[:index].count(place) - (places.count(place) - 1) / 2
        for index, place in enumerate(places)
    ]


def _sketch(cells: Sequence[TradeoffJson], model: str, series: str, low: int) -> Sketch:
    return {
        "model": model,
        "series": series,
        "marks": [*_marks(cells, low)],
        "across": [{"at": _x(share), "label": f"{share:.0%}"} for share in (0, 0.5, 1)],
        "up": [{"at": _y(score, low), "label": str(score)} for score in range(low, TOP_SCORE + 1)],
    }


def _marks(cells: Sequence[TradeoffJson], low: int) -> Iterator[Sketch]:
    for number, (cell, places) in enumerate(zip(cells, spread_marks(cells), strict=True)):
        blocked, mean = cell["attacks"]["blocked_rate"], cell["useful"]["mean"]
        aside = places * _MARK_DISTANCE
        x, y = _x(blocked["estimate"]) + aside, _y(mean["estimate"], low)
        yield {
            "defence": cell["defence"],
            "shape": MARK_PATHS[number % len(MARK_PATHS)].format(x=round(x, 1), y=y),
            "key": MARK_PATHS[number % len(MARK_PATHS)].format(x=0, y=0),
            "kind": number % len(MARK_PATHS),
            "x": round(x, 1),
            "y": y,
            "left": _x(blocked["ci_low"]) + aside,
            "right": _x(blocked["ci_high"]) + aside,
            "top": _y(mean["ci_high"], low),
            "bottom": _y(mean["ci_low"], low),
            "title": f"{cell['defence']}: {blocked['estimate']:.1%} of {cell['attacks']['n']} "
            f"attacks blocked, mean score {mean['estimate']:.2f} of {TOP_SCORE}",
        }


def _x(share: float) -> float:
    return round(LEFT + _EDGE + (RIGHT - LEFT - 2 * _EDGE) * share, 1)


def _y(score: float, low: int) -> float:
    return round(BOTTOM - 6 - (BOTTOM - TOP - 12) * (score - low) / (TOP_SCORE - low), 1)


DefencesJson = Mapping[str, Any]
MARKERS: Final = ("o", "^", "s", "D", "v")
_ACROSS: Final = 3
"""The number of panels in a row."""
_MARKER_DISTANCE: Final = 0.035
"""Distance between the marks of defences at the same place, as a share of the axis."""


def draw_defences(folder: Path, defences: DefencesJson | None) -> list[Path]:
    """Draw a panel for each model and series; return no paths if no defence was tried.

    If no answer was scored, the defences are listed below each other instead of by score.
    """
    cells = [cell for cell in defences["cells"] if cell["attacks"]["n"]] if defences else []
    if not cells:
        return []
    pairs = list(dict.fromkeys((cell["model"], cell["series"]) for cell in cells))
    names = list(dict.fromkeys(cell["defence"] for cell in cells))
    both = [cell for cell in cells if has_both_scores(cell)]
    across = min(_ACROSS, len(pairs))
    rows = -(-len(pairs) // across)
    path = folder / "defences.svg"
    with open_figure(path, 0.8 + 3.1 * across, 1.2 + 2.6 * rows) as figure:
        panels = figure.subplots(rows, across, squeeze=False).ravel()
        for spare in panels[len(pairs) :]:
            spare.set_axis_off()
        for panel, pair in zip(panels, pairs, strict=False):
            own = [cell for cell in cells if (cell["model"], cell["series"]) == pair]
            panel.set_title(f"{shorten_name(pair[0])}\n{shorten_name(pair[1], 20)}", fontsize=8)
            _draw_panel(panel, own, names, find_lowest_score(both) if both else None)
        _draw_legend(figure, names)
        title = "Attacks blocked" + (" and scores of answers to ordinary questions" if both else "")
        figure.suptitle(title, fontsize=10)
    return [path]


def _draw_panel(
    panel: "Axes", cells: Sequence[DefencesJson], names: Sequence[str], low: int | None
) -> None:
    shown = cells if low is None else [cell for cell in cells if has_both_scores(cell)]
    for cell, places in zip(shown, spread_marks(shown), strict=True):
        mean = cell["useful"]["mean"] if low is not None else None
        number, aside = names.index(cell["defence"]), places * _MARKER_DISTANCE if mean else 0.0
        _draw_mark(panel, number, cell["attacks"]["blocked_rate"], mean, aside)
    panel.set_xlim(-0.1, 1.1)
    panel.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    panel.set_xlabel("attacks blocked", fontsize=8)
    if low is None:
        panel.set(ylim=(len(names) - 0.5, -0.5), yticks=[])
    else:
        panel.set_ylim(low - 0.1, TOP_SCORE + 0.1)
        panel.set_ylabel("mean score, ordinary questions", fontsize=8)
        panel.locator_params(axis="y", nbins=5)
    panel.tick_params(labelsize=7)


def _draw_mark(
    panel: "Axes", number: int, blocked: DefencesJson, mean: DefencesJson | None, aside: float
) -> None:
    colour, x = COLOURS[number % len(COLOURS)], blocked["estimate"] + aside
    y = mean["estimate"] if mean else number
    panel.hlines(y, blocked["ci_low"] + aside, blocked["ci_high"] + aside, color=colour, lw=1)
    if mean:
        panel.vlines(x, mean["ci_low"], mean["ci_high"], color=colour, lw=1)
    marker = MARKERS[number % len(MARKERS)]
    panel.plot([x], [y], marker, color=colour, markersize=6, markeredgecolor="white")


def _draw_legend(figure: "Figure", names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], linestyle="", marker=MARKERS[number % len(MARKERS)],
               color=COLOURS[number % len(COLOURS)], markersize=6)
        for number in range(len(names))
    ]  # fmt: skip
    words = [shorten_name(name) for name in names]
    figure.legend(marks, words, loc="outside lower center", ncols=min(5, len(names)), fontsize=8)

"""The picture of an attribution: the signal over the truth, and over what the model recalls."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from coreeval.evaluation.numleak.leak.found import Attribution, Leak
from coreeval.evaluation.numleak.leak.rows import ROUTE_WORDS
from coreeval.evaluation.numleak.statistics.measured import Metric
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS: Final = ("o", "s", "^", "D", "v")
_MOST: Final = 12
"""Rows of one picture; the rest is told in its title."""
_SIDES: Final = (("truth", "published"), ("recall", "recalled"))

Drawn = tuple[str, str, str, Leak]
"""Model, series, what values are counted in, and what was attributed."""


def draw_transmission(path: Path, found: Sequence[Drawn]) -> list[Path]:
    """Draw a row for each model, series and signal: over the truth, and over recall (figure 12)."""
    rows = [(model, series, unit, one) for model, series, unit, leak in found
            for one in leak.signals if one.points]  # fmt: skip
    if not rows:
        return []
    shown, left = rows[:_MOST], len(rows) - _MOST
    with open_figure(path, 7.2, 0.8 + 2.7 * len(shown)) as figure:
        panels = figure.subplots(len(shown), 2, squeeze=False, sharey="row")
        for (model, series, unit, one), pair in zip(shown, panels, strict=True):
            for panel, (side, words) in zip(pair, _SIDES, strict=True):
                _scatter(panel, one, side)
                panel.set_xlabel(
                    f"{words}, {shorten_name(series, 20)} ({shorten_name(unit, 16)})", fontsize=8
                )
            title = (
                f"{shorten_name(model)}, {shorten_name(one.signal, 20)}: {ROUTE_WORDS[one.route]}"
            )
            pair[0].set_title(title, fontsize=8, loc="left")
            pair[0].set_ylabel("signal", fontsize=8)
        more = f" (and {left} more)" if left > 0 else ""
        figure.suptitle(f"The signal over truth and recall{more}", fontsize=10)
    return [path]


def _scatter(panel: "Axes", one: Attribution, side: str) -> None:
    over_truth = side == "truth"
    x = np.array([each.truth if over_truth else each.recall for each in one.points])
    y = np.array([each.signal for each in one.points])
    at = 0 if over_truth else 1
    panel.plot(x, y, _MARKS[at], color=COLOURS[at], markersize=3.5, alpha=0.75)
    slope = one.slope_on_truth if over_truth else one.slope_on_recall
    r = one.signal_r if over_truth else one.signal_recall_r
    if np.isfinite(slope.estimate):
        ends = np.array([x.min(), x.max()])
        panel.plot(ends, y.mean() + slope.estimate * (ends - x.mean()), color="black", linewidth=1)
    words = f"slope {_told(slope)}\nr {_told(r)}, n {one.dates}"
    panel.text(0.03, 0.97, words, transform=panel.transAxes, va="top", fontsize=7)
    panel.margins(y=0.25)
    panel.tick_params(labelsize=7)


def _told(found: Metric) -> str:
    if not np.isfinite(found.estimate):
        return "undefined"
    ends = f" ({found.ci_low:.2g} to {found.ci_high:.2g})" if np.isfinite(found.ci_low) else ""
    return f"{found.estimate:.2g}{ends}"

"""A picture of rankings: how often the true value is first, and by how much."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.evaluation.numleak.rankings.scoring import Ranking
from coreeval.evaluation.numleak.statistics.measured import Metric
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST: Final = 40
"""Rows of one picture; the rest is told in its title."""


def draw_rankings(path: Path, found: Sequence[Ranking]) -> list[Path]:
    """Draw top-1 accuracy and the mean gap of each model, with intervals; nothing for none."""
    if not found:
        return []
    shown, left = found[:_MOST], max(0, len(found) - _MOST)
    with open_figure(path, 7, 1.5 + 0.32 * len(shown)) as figure:
        first, second = figure.subplots(1, 2, sharey=True)
        _dots(first, [one.top1 for one in shown])
        for y, one in enumerate(shown):
            first.plot([one.chance] * 2, [y - 0.4, y + 0.4], color="black", linestyle=":")
        first.set(xlim=(-0.03, 1.03), xlabel="true value first (dotted: by chance)")
        _dots(second, [one.mean_gap for one in shown])
        second.axvline(0, color="black", linestyle=":")
        second.set_xlabel("log-probability, true minus best other")
        first.set_yticks(range(len(shown)), [_name(one) for one in shown])
        first.set_ylim(len(shown) - 0.5, -0.5)
        more = f" (and {left} more)" if left else ""
        figure.suptitle(f"How probable the true value is beside others{more}", fontsize=10)
    return [path]


def _dots(panel: "Axes", found: Sequence[Metric]) -> None:
    rows = range(len(found))
    lows, highs = [one.ci_low for one in found], [one.ci_high for one in found]
    panel.hlines(rows, lows, highs, color=COLOURS[0], linewidth=1.2)
    panel.plot([one.estimate for one in found], rows, "o", color=COLOURS[0], markersize=4)


def _name(one: Ranking) -> str:
    return shorten_name(f"{one.model}, {one.series}" if one.series else one.model)

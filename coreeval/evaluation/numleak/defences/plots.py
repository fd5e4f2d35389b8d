"""`defences.svg`: what each defence blocks against how useful it leaves a model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coreeval.evaluation.numleak.defences.answers import MOST
from coreeval.evaluation.numleak.defences.sketches import asides, lowest, scored
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Json = Mapping[str, Any]
MARKERS: Final = ("o", "^", "s", "D", "v")
_ACROSS: Final = 3
"""Panels beside each other."""
_APART: Final = 0.035
"""Share by which defences at the same place are set apart."""


def draw_defences(folder: Path, defences: Json | None) -> list[Path]:
    """Draw a panel for each model and series; nothing where no defence was tried.

    Where no answer was scored, defences stand beneath each other in the place of scores.
    """
    cells = [cell for cell in defences["cells"] if cell["attacks"]["n"]] if defences else []
    if not cells:
        return []
    pairs = list(dict.fromkeys((cell["model"], cell["series"]) for cell in cells))
    names = list(dict.fromkeys(cell["defence"] for cell in cells))
    both = [cell for cell in cells if scored(cell)]
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
            _panel(panel, own, names, lowest(both) if both else None)
        _legend(figure, names)
        title = "What defences block, and what is left" if both else "What defences block"
        figure.suptitle(title, fontsize=10)
    return [path]


def _panel(panel: "Axes", cells: Sequence[Json], names: Sequence[str], low: int | None) -> None:
    shown = cells if low is None else [cell for cell in cells if scored(cell)]
    for cell, places in zip(shown, asides(shown), strict=True):
        mean = cell["useful"]["mean"] if low is not None else None
        number, aside = names.index(cell["defence"]), places * _APART if mean else 0.0
        _mark(panel, number, cell["attacks"]["blocked_rate"], mean, aside)
    panel.set_xlim(-0.1, 1.1)
    panel.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    panel.set_xlabel("attacks blocked", fontsize=8)
    if low is None:
        panel.set(ylim=(len(names) - 0.5, -0.5), yticks=[])
    else:
        panel.set_ylim(low - 0.1, MOST + 0.1)
        panel.set_ylabel("mean score of ordinary answers", fontsize=8)
        panel.locator_params(axis="y", nbins=5)
    panel.tick_params(labelsize=7)


def _mark(panel: "Axes", number: int, blocked: Json, mean: Json | None, aside: float) -> None:
    colour, x = COLOURS[number % len(COLOURS)], blocked["estimate"] + aside
    y = mean["estimate"] if mean else number
    panel.hlines(y, blocked["ci_low"] + aside, blocked["ci_high"] + aside, color=colour, lw=1)
    if mean:
        panel.vlines(x, mean["ci_low"], mean["ci_high"], color=colour, lw=1)
    marker = MARKERS[number % len(MARKERS)]
    panel.plot([x], [y], marker, color=colour, markersize=6, markeredgecolor="white")


def _legend(figure: "Figure", names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], linestyle="", marker=MARKERS[number % len(MARKERS)],
               color=COLOURS[number % len(COLOURS)], markersize=6)
        for number in range(len(names))
    ]  # fmt: skip
    words = [shorten_name(name) for name in names]
    figure.legend(marks, words, loc="outside lower center", ncols=min(5, len(names)), fontsize=8)

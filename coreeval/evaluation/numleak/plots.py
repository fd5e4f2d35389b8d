"""Pictures of audits: answers beside the truth, recall by model and series, recall over time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from coreeval.evaluation.numleak.curves import dots_of, frame_of, spans_of
from coreeval.evaluation.numleak.leak.drawing import draw_transmission
from coreeval.evaluation.numleak.points import Stratum
from coreeval.evaluation.numleak.readout.plot import draw_entropies
from coreeval.evaluation.numleak.sketches import STRATUM_WORDS
from coreeval.evaluation.numleak.study import Audit
from coreeval.evaluation.numleak.variants.plots import draw_variants
from coreeval.evaluation.numleak.verdicts import Verdict, in_words
from coreeval.evaluation.pictures import open_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

VERDICT_COLOURS: Final[Mapping[Verdict, str]] = {
    "memorized": "#D55E00",
    "partly_memorized": "#8C510A",
    "fluent": "#E69F00",
    "fabricating": "#CC79A7",
    "refusing": "#0072B2",
    "no_recall": "#009E73",
    "inconclusive": "#707070",
}
"""Okabe and Ito's palette, told apart by colour-blind readers, and a dark brown."""
STRATUM_COLOURS: Final[Mapping[Stratum, str]] = {
    "pre": "#0072B2",
    "near": "#E69F00",
    "post": "#D55E00",
    "unknown": "#0072B2",
}
_WITHIN: Final = "#0072B2"
_ANSWERED: Final = "#707070"
_ACROSS: Final = 4
"""Panels beside each other."""
_MOST: Final = 36
"""Panels of one picture; the rest is told in its title."""
_DARK: Final = 0.55
"""Share from which a cell is dark enough for white letters."""


def draw_audits(folder: Path, audits: Sequence[Audit]) -> list[Path]:
    """Draw the pictures into a folder; none where nothing was audited."""
    if not audits:
        return []
    files = {"calibration": draw_calibration, "recall": draw_recall, "gradient": draw_gradient}
    leaks = [(one.model, one.series, one.definition.unit.name, one.leak)
             for one in audits if one.leak]  # fmt: skip
    return [
        *(draw(folder / f"{name}.svg", audits) for name, draw in files.items()),
        *draw_entropies(folder / "entropy.svg", audits),
        *draw_variants(folder, audits),
        *draw_transmission(folder / "transmission.svg", leaks),
    ]


def draw_calibration(path: Path, audits: Sequence[Audit]) -> Path:
    """Draw every estimate over the published value; the band is what counts as right."""
    with _panels(path, audits, "What was said over what is true", 2.7) as (figure, panels):
        for panel, audit in panels:
            _calibration(panel, audit)
        there = {point.stratum for audit in audits for point in audit.points}
        names = [name for name in STRATUM_WORDS if name in there]
        marks = [_mark("o", STRATUM_COLOURS[name]) for name in names]
        words = [STRATUM_WORDS[name] for name in names]
        beyond = _mark("^", "#707070")
        _legend(figure, [*marks, beyond], [*words, "beyond the axis"])
    return path


def draw_recall(path: Path, audits: Sequence[Audit]) -> Path:
    """Draw a map of models and series: the share within tolerance, r, and the verdict."""
    models = list(dict.fromkeys(audit.model for audit in audits))
    series = list(dict.fromkeys(audit.series for audit in audits))
    cells = {(audit.model, audit.series): audit for audit in audits}
    with open_figure(path, 3 + 1.35 * len(series), 1.3 + 0.62 * len(models)) as figure:
        panel = figure.subplots()
        panel.set_facecolor("#e8e8e8")
        shares = [[_share(cells.get((model, name))) for name in series] for model in models]
        image = panel.imshow(shares, cmap="Oranges", vmin=0, vmax=1, aspect="auto")
        for row, model in enumerate(models):
            for column, name in enumerate(series):
                if audit := cells.get((model, name)):
                    _cell(panel, column, row, audit)
        panel.set_xticks(range(len(series)), [shorten_name(name, 16) for name in series])
        panel.set_yticks(range(len(models)), [shorten_name(name) for name in models])
        panel.tick_params(length=0)
        figure.colorbar(image, label="within tolerance, of asked", aspect=12)
        figure.suptitle("Recall by model and series", fontsize=10)
    return path


def draw_gradient(path: Path, audits: Sequence[Audit]) -> Path:
    """Draw, over time, how many questions are answered and how many within tolerance."""
    with _panels(path, audits, "Recall over time", 2.2) as (figure, panels):
        for panel, audit in panels:
            _gradient(panel, audit)
        marks = [_mark("o", _WITHIN, "-"), _mark("s", _ANSWERED, ":"), _mark("", "black", "--")]
        _legend(figure, marks, ["within tolerance, of all asked", "answered", "model's cutoff"])
    return path


# -- parts of pictures ----------------------------------------------------------------------------


@contextmanager
def _panels(
    path: Path, audits: Sequence[Audit], title: str, height: float
) -> "Iterator[tuple[Figure, Iterator[tuple[Axes, Audit]]]]":
    """Give the figure, and a panel for each audit, named by it."""
    shown = audits[:_MOST]
    across = min(_ACROSS, len(shown))
    rows = -(-len(shown) // across)
    with open_figure(path, 0.6 + 2.8 * across, 0.9 + height * rows) as figure:
        grid = figure.subplots(rows, across, squeeze=False).ravel()
        left = len(audits) - len(shown)
        figure.suptitle(f"{title} (and {left} more)" if left else title, fontsize=10)
        for spare in grid[len(shown) :]:
            spare.set_axis_off()
        for panel, audit in zip(grid, shown, strict=False):
            words = in_words(audit.verdict)
            panel.set_title(
                f"{shorten_name(audit.model)}\n{shorten_name(audit.series, 20)}: {words}",
                fontsize=8,
                color=VERDICT_COLOURS[audit.verdict],
            )
        yield figure, zip(islice(grid, len(shown)), shown, strict=True)


def _mark(marker: str, colour: str, line: Literal["", "-", "--", ":"] = "") -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], marker=marker, linestyle=line, color=colour, markersize=4)


def _legend(figure: "Figure", marks: "Sequence[Line2D]", words: Sequence[str]) -> None:
    """Name the marks once, beneath all panels."""
    figure.legend(marks, words, loc="outside lower center", ncols=len(marks), fontsize=8)


def _calibration(panel: "Axes", audit: Audit) -> None:
    frame, near = frame_of(audit.points), audit.definition.tolerance
    low, high = frame
    panel.fill_between([low, high], [low - near, high - near], [low + near, high + near],
                       color="#009E73", alpha=0.3, linewidth=0)  # fmt: skip
    panel.plot([low, high], [low, high], color="black", linewidth=0.6)
    dots = dots_of(audit.points, frame)
    for stratum, colour in STRATUM_COLOURS.items():
        for beyond, mark in ((False, "o"), (True, "^")):
            some = [d for d in dots if (d.point.stratum, d.beyond) == (stratum, beyond)]
            x, y = [d.truth for d in some], [d.estimate for d in some]
            panel.plot(x, y, mark, color=colour, markersize=3, alpha=0.75)
    room = 0.03 * (high - low)
    panel.set(xlim=(low - room, high + room), ylim=(low - room, high + room))
    unit = audit.definition.unit
    r = audit.measured.overall.pearson_r.estimate
    words = f"n {len(dots)}" + (f", r {r:.2f}" if r == r else "")
    panel.text(0.97, 0.03, words, transform=panel.transAxes, ha="right", fontsize=8)
    panel.set_xlabel(f"published, {unit.symbol or shorten_name(unit.name, 16)}", fontsize=8)
    panel.set_ylabel("said", fontsize=8)
    panel.tick_params(labelsize=7)


def _cell(panel: "Axes", x: int, y: int, audit: Audit) -> None:
    share, r = audit.measured.hits_of_asked.estimate, audit.measured.overall.pearson_r.estimate
    words = in_words(audit.verdict)
    known = (f"{share:.0%}" if share == share else "", f"r {r:.2f}" if r == r else "")
    figures = ", ".join(each for each in known if each)
    colour = "white" if share > _DARK else "black"
    panel.text(x, y, f"{words}\n{figures}", ha="center", va="center", fontsize=7, color=colour)


def _share(audit: Audit | None) -> float:
    return audit.measured.hits_of_asked.estimate if audit else float("nan")


def _gradient(panel: "Axes", audit: Audit) -> None:
    spans = spans_of(audit.points, audit.definition.tolerance)
    middles = [_year(each.middle) for each in spans]
    panel.plot(middles, [each.parsed / each.n for each in spans], "s:", color=_ANSWERED,
               markersize=3, linewidth=1)  # fmt: skip
    found = [each.within for each in spans]
    panel.plot(middles, [each.estimate for each in found], "o-", color=_WITHIN, markersize=3,
               linewidth=1.2)  # fmt: skip
    panel.vlines(middles, [each.ci_low for each in found], [each.ci_high for each in found],
                 color=_WITHIN, linewidth=0.8)  # fmt: skip
    if audit.cutoff:
        panel.axvline(_year(audit.cutoff), color="black", linewidth=0.8, dashes=(4, 3))
    panel.set_ylim(-0.04, 1.04)
    panel.ticklabel_format(axis="x", useOffset=False)
    panel.locator_params(axis="x", nbins=5, integer=True)
    panel.tick_params(labelsize=7)


def _year(day: date) -> float:
    """Return a day as a year and a part of it."""
    return day.year + (day.timetuple().tm_yday - 1) / 365.25

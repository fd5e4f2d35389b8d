"""Figures of audits, drawn with matplotlib.

Answers against the truth, recall by model and series, recall over time; the signal against the
truth and against recall; entropies by condition; answers after thinking against plain ones
(NumLeak, figures 11 and 12).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from coreeval.evaluation.numleak.audit import Audit
from coreeval.evaluation.numleak.audit_tables import ROUTE_WORDS
from coreeval.evaluation.numleak.leak.mediation import Attribution, Leak
from coreeval.evaluation.numleak.memory_verdicts import Verdict, verdict_words
from coreeval.evaluation.numleak.replies import Stratum
from coreeval.evaluation.numleak.sketches import (
    STRATUM_WORDS,
    find_error_frame,
    find_frame,
    find_value_frame,
    pair_step_answers,
    place_dots,
    split_spans,
)
from coreeval.evaluation.numleak.statistics.measurements import Condition, Entropies
from coreeval.evaluation.numleak.statistics.variant_comparison import AnswerPairs
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name, title_figure
from coreeval.tools.formatting import format_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


_MARKS: Final = ("o", "s", "^", "D", "v")
_MOST_SIGNALS: Final = 12
"""The largest number of rows in a plot; the title reports the rest."""
_SIDES: Final = (("truth", "published"), ("recall", "recalled"))

SignalPanel = tuple[str, str, str, Leak]
"""Model, series, the unit of the values, and the leak results."""


def draw_transmission(path: Path, found: Sequence[SignalPanel]) -> list[Path]:
    """Draw a row per model, series and signal: over the truth, and over recall (figure 12)."""
    rows = [(model, series, unit, one) for model, series, unit, leak in found
            for one in leak.signals if one.points]  # fmt: skip
    if not rows:
        return []
    shown, left = rows[:_MOST_SIGNALS], len(rows) - _MOST_SIGNALS
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
        title_figure(figure, "The signal against true and recalled values", left)
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
    told = [format_estimate(each, ".2g", undefined="undefined") for each in (slope, r)]
    words = f"slope {told[0]}\nr {told[1]}, n {one.dates}"
    panel.text(0.03, 0.97, words, transform=panel.transAxes, va="top", fontsize=7)
    panel.margins(y=0.25)
    panel.tick_params(labelsize=7)


_MOST_ENTROPIES: Final = 24
"""The largest number of audits in a plot; the title reports the rest."""
_APART: Final = 0.19
"""Half the distance between the two rows of an audit, and the spread of the dots around each."""


def select_entropies(audits: Sequence[Audit]) -> list[tuple[Audit, Entropies]]:
    """Return the audits that have entropies, each with its entropies."""
    found = [(audit, audit.measured.entropy) for audit in audits]
    return [(audit, entropy) for audit, entropy in found if entropy is not None]


def draw_entropies(path: Path, audits: Sequence[Audit]) -> list[Path]:
    """Draw every answer's entropy, two rows per audit with bars at the medians; nothing if none."""
    every = select_entropies(audits)
    if not every:
        return []
    shown, left = every[:_MOST_ENTROPIES], len(every) - _MOST_ENTROPIES
    with open_figure(path, 7, 1.5 + 0.62 * len(shown)) as figure:
        panel = figure.subplots()
        for number, (_, entropy) in enumerate(shown):
            _entropy_row(panel, number - _APART, entropy.series, "o", COLOURS[0], "the series")
            _entropy_row(
                panel, number + _APART, entropy.fictitious, "s", COLOURS[1], "invented names"
            )
        names = [
            f"{shorten_name(audit.model)}\n{shorten_name(audit.series, 20)}" for audit, _ in shown
        ]
        panel.set_yticks(range(len(shown)), names)
        panel.set_ylim(len(shown) - 0.5, -0.5)
        panel.set_xlim(left=-0.03)
        panel.set_xlabel("bits per decision, over sign and first digits")
        handles, words = panel.get_legend_handles_labels()
        named = dict(zip(words, handles, strict=True))
        figure.legend(named.values(), named, loc="outside lower center", ncols=2, fontsize=8)
        title_figure(figure, "Certainty of the answers", left)
    return [path]


def _entropy_row(
    panel: "Axes", y: float, one: Condition, marker: str, colour: str, words: str
) -> None:
    beside = _APART * np.random.default_rng(len(one.bits)).uniform(-0.7, 0.7, len(one.bits))
    panel.plot(one.bits, y + beside, marker, color=colour, markersize=3.5, alpha=0.65, label=words)
    if one.bits:
        middle = one.median.estimate
        panel.plot([middle, middle], [y - _APART, y + _APART], color="black", linewidth=2)


PLAIN_COLOUR: Final = "#0072B2"
OWN_COLOUR: Final = "#D55E00"
_MOST_PAIRS: Final = 12
"""The largest number of rows in a plot; the title reports the rest."""


def draw_variants(folder: Path, audits: Sequence[Audit]) -> list[Path]:
    """Draw `paired.svg`; nothing if no audit has both kinds of answers on any date."""
    found = [(audit, pairs) for audit in audits if (pairs := pair_step_answers(audit)) is not None]
    return [draw_paired(folder / "paired.svg", found)] if found else []


def draw_paired(path: Path, found: Sequence[tuple[Audit, AnswerPairs]]) -> Path:
    """Draw a row for each audit: answers against published values, and error against error."""
    shown, left = found[:_MOST_PAIRS], len(found) - _MOST_PAIRS
    with open_figure(path, 6.6, 0.9 + 2.9 * len(shown)) as figure:
        title_figure(figure, "Plain and step-by-step answers on the same dates", left)
        grid = figure.subplots(len(shown), 2, squeeze=False)
        for (values, errors), (audit, pairs) in zip(grid, shown, strict=True):
            _value_panel(values, audit, pairs)
            _error_panel(errors, audit, pairs)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    return path


def _value_panel(panel: "Axes", audit: Audit, pairs: AnswerPairs) -> None:
    low, high = frame = find_value_frame(audit)
    panel.plot(frame, frame, color="black", linewidth=0.6)
    for said, mark, colour, words in (
        (pairs.plain, "o", PLAIN_COLOUR, "asked plainly"),
        (pairs.own, "^", OWN_COLOUR, "step by step"),
    ):
        panel.plot(pairs.truth, np.clip(said, low, high), mark, color=colour, markersize=3.5,
                   alpha=0.75, label=words)  # fmt: skip
    panel.set_title(f"{shorten_name(audit.model)}, {shorten_name(audit.series, 20)}", fontsize=8)
    unit = audit.definition.unit
    panel.set_xlabel(f"published, {unit.symbol or shorten_name(unit.name, 16)}", fontsize=8)
    panel.set_ylabel("answer", fontsize=8)
    panel.tick_params(labelsize=7)


def _error_panel(panel: "Axes", audit: Audit, pairs: AnswerPairs) -> None:
    frame = find_error_frame(pairs)
    before, after = pairs.errors
    panel.plot(frame, frame, color="black", linewidth=0.8, dashes=(4, 3))
    panel.plot(before, after, "o", color=OWN_COLOUR, markersize=3.5, alpha=0.75)
    way = audit.variants.step_by_step
    if way is not None:
        worse = round(way.worse.estimate * way.dates)
        panel.set_title(
            f"larger error when reasoning step by step: {worse} of {way.dates} dates", fontsize=8
        )
    low = -0.03 * frame[1]
    panel.set(xlim=(low, frame[1]), ylim=(low, frame[1]))
    panel.set_xlabel(
        f"error of the plain answer, {shorten_name(audit.definition.unit.points_name, 20)}",
        fontsize=8,
    )
    panel.set_ylabel("error of the step-by-step answer", fontsize=8)
    panel.tick_params(labelsize=7)


VERDICT_COLOURS: Final[Mapping[Verdict, str]] = {
    "memorized": "#D55E00",
    "partly_memorized": "#8C510A",
    "fluent": "#E69F00",
    "fabricating": "#CC79A7",
    "refusing": "#0072B2",
    "no_recall": "#009E73",
    "inconclusive": "#707070",
}
"""Okabe and Ito's palette, which colour-blind readers can distinguish, and a dark brown."""
STRATUM_COLOURS: Final[Mapping[Stratum, str]] = {
    "pre": "#0072B2",
    "near": "#E69F00",
    "post": "#D55E00",
    "unknown": "#0072B2",
}
_WITHIN: Final = "#0072B2"
_ANSWERED: Final = "#707070"
_ACROSS: Final = 4
"""The number of panels in a row."""
_MOST_PANELS: Final = 36
"""The largest number of panels in a plot; the title reports the rest."""
_DARK: Final = 0.55
"""Share above which a cell is dark enough for white letters."""


def draw_audits(folder: Path, audits: Sequence[Audit]) -> list[Path]:
    """Draw the plots into a folder; none if there are no audits."""
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
    """Plot every estimate against the published value; the band marks the tolerance."""
    with _panels(path, audits, "Answers against published values", 2.7) as (figure, panels):
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
        shares = [[_recall_share(cells.get((model, name))) for name in series] for model in models]
        image = panel.imshow(shares, cmap="Oranges", vmin=0, vmax=1, aspect="auto")
        for row, model in enumerate(models):
            for column, name in enumerate(series):
                if audit := cells.get((model, name)):
                    _recall_cell(panel, column, row, audit)
        panel.set_xticks(range(len(series)), [shorten_name(name, 16) for name in series])
        panel.set_yticks(range(len(models)), [shorten_name(name) for name in models])
        panel.tick_params(length=0)
        figure.colorbar(image, label="share of questions within tolerance", aspect=12)
        figure.suptitle("Recall by model and series", fontsize=10)
    return path


def draw_gradient(path: Path, audits: Sequence[Audit]) -> Path:
    """Plot, over time, the share of questions answered and the share within tolerance."""
    with _panels(path, audits, "Recall over time", 2.2) as (figure, panels):
        for panel, audit in panels:
            _gradient(panel, audit)
        marks = [_mark("o", _WITHIN, "-"), _mark("s", _ANSWERED, ":"), _mark("", "black", "--")]
        _legend(figure, marks, ["within tolerance", "answered with a number", "model's cutoff"])
    return path


# -- parts of pictures ----------------------------------------------------------------------------


@contextmanager
def _panels(
    path: Path, audits: Sequence[Audit], title: str, height: float
) -> "Iterator[tuple[Figure, Iterator[tuple[Axes, Audit]]]]":
    """Yield the figure and a titled panel for each audit."""
    shown = audits[:_MOST_PANELS]
    across = min(_ACROSS, len(shown))
    rows = -(-len(shown) // across)
    with open_figure(path, 0.6 + 2.8 * across, 0.9 + height * rows) as figure:
        grid = figure.subplots(rows, across, squeeze=False).ravel()
        title_figure(figure, title, len(audits) - len(shown))
        for spare in grid[len(shown) :]:
            spare.set_axis_off()
        for panel, audit in zip(grid, shown, strict=False):
            words = verdict_words(audit.verdict)
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
    """Add one legend for the marks, below all panels."""
    figure.legend(marks, words, loc="outside lower center", ncols=len(marks), fontsize=8)


def _calibration(panel: "Axes", audit: Audit) -> None:
    frame, near = find_frame(audit.points), audit.definition.tolerance
    low, high = frame
    panel.fill_between([low, high], [low - near, high - near], [low + near, high + near],
                       color="#009E73", alpha=0.3, linewidth=0)  # fmt: skip
    panel.plot([low, high], [low, high], color="black", linewidth=0.6)
    dots = place_dots(audit.points, frame)
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
    panel.set_ylabel("answer", fontsize=8)
    panel.tick_params(labelsize=7)


def _recall_cell(panel: "Axes", x: int, y: int, audit: Audit) -> None:
    share, r = audit.measured.hits_of_asked.estimate, audit.measured.overall.pearson_r.estimate
    words = verdict_words(audit.verdict)
    known = (f"{share:.0%}" if share == share else "", f"r {r:.2f}" if r == r else "")
    figures = ", ".join(each for each in known if each)
    colour = "white" if share > _DARK else "black"
    panel.text(x, y, f"{words}\n{figures}", ha="center", va="center", fontsize=7, color=colour)


def _recall_share(audit: Audit | None) -> float:
    return audit.measured.hits_of_asked.estimate if audit else float("nan")


def _gradient(panel: "Axes", audit: Audit) -> None:
    spans = split_spans(audit.points, audit.definition.tolerance)
    middles = [_year_fraction(each.middle) for each in spans]
    panel.plot(middles, [each.parsed / each.n for each in spans], "s:", color=_ANSWERED,
               markersize=3, linewidth=1)  # fmt: skip
    found = [each.within for each in spans]
    panel.plot(middles, [each.estimate for each in found], "o-", color=_WITHIN, markersize=3,
               linewidth=1.2)  # fmt: skip
    panel.vlines(middles, [each.ci_low for each in found], [each.ci_high for each in found],
                 color=_WITHIN, linewidth=0.8)  # fmt: skip
    if audit.cutoff:
        panel.axvline(_year_fraction(audit.cutoff), color="black", linewidth=0.8, dashes=(4, 3))
    panel.set_ylim(-0.04, 1.04)
    panel.ticklabel_format(axis="x", useOffset=False)
    panel.locator_params(axis="x", nbins=5, integer=True)
    panel.tick_params(labelsize=7)


def _year_fraction(day: date) -> float:
    """Return a day as a decimal year."""
    return day.year + (day.timetuple().tm_yday - 1) / 365.25

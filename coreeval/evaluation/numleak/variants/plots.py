"""Answers after thinking beside plain ones, on the same dates, drawn (NumLeak, figure 11)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from coreeval.evaluation.numleak.statistics.beside import Pairs
from coreeval.evaluation.numleak.study import Audit
from coreeval.evaluation.numleak.variants.sketch import error_frame, stepped, value_frame
from coreeval.evaluation.pictures import open_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLAIN: Final = "#0072B2"
OWN: Final = "#D55E00"
_MOST: Final = 12
"""Rows of one picture; the rest is told in its title."""


def draw_variants(folder: Path, audits: Sequence[Audit]) -> list[Path]:
    """Draw `paired.svg`; nothing where no audit has both kinds of answers on any date."""
    found = [(audit, pairs) for audit in audits if (pairs := stepped(audit)) is not None]
    return [draw_paired(folder / "paired.svg", found)] if found else []


def draw_paired(path: Path, found: Sequence[tuple[Audit, Pairs]]) -> Path:
    """Draw a row for each audit: values over the published ones, and error over error."""
    shown, left = found[:_MOST], max(0, len(found) - _MOST)
    with open_figure(path, 6.6, 0.9 + 2.9 * len(shown)) as figure:
        more = f" (and {left} more)" if left else ""
        figure.suptitle(f"Plain answers and step by step, same dates{more}", fontsize=10)
        grid = figure.subplots(len(shown), 2, squeeze=False)
        for (values, errors), (audit, pairs) in zip(grid, shown, strict=True):
            _values(values, audit, pairs)
            _errors(errors, audit, pairs)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    return path


def _values(panel: "Axes", audit: Audit, pairs: Pairs) -> None:
    low, high = frame = value_frame(audit)
    panel.plot(frame, frame, color="black", linewidth=0.6)
    for said, mark, colour, words in (
        (pairs.plain, "o", PLAIN, "asked plainly"),
        (pairs.own, "^", OWN, "step by step"),
    ):
        panel.plot(pairs.truth, np.clip(said, low, high), mark, color=colour, markersize=3.5,
                   alpha=0.75, label=words)  # fmt: skip
    panel.set_title(f"{shorten_name(audit.model)}, {shorten_name(audit.series, 20)}", fontsize=8)
    unit = audit.definition.unit
    panel.set_xlabel(f"published, {unit.symbol or shorten_name(unit.name, 16)}", fontsize=8)
    panel.set_ylabel("said", fontsize=8)
    panel.tick_params(labelsize=7)


def _errors(panel: "Axes", audit: Audit, pairs: Pairs) -> None:
    frame = error_frame(pairs)
    before, after = pairs.errors
    panel.plot(frame, frame, color="black", linewidth=0.8, dashes=(4, 3))
    panel.plot(before, after, "o", color=OWN, markersize=3.5, alpha=0.75)
    way = audit.variants.step_by_step
    if way is not None:
        worse = round(way.worse.estimate * way.dates)
        panel.set_title(f"thinking errs by more on {worse} of {way.dates} dates", fontsize=8)
    low = -0.03 * frame[1]
    panel.set(xlim=(low, frame[1]), ylim=(low, frame[1]))
    panel.set_xlabel(
        f"error asked plainly, {shorten_name(audit.definition.unit.points_name, 20)}", fontsize=8
    )
    panel.set_ylabel("error step by step", fontsize=8)
    panel.tick_params(labelsize=7)

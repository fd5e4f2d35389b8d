"""A picture of entropies by condition: memory is peaked, invention is not."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from coreeval.evaluation.numleak.statistics.measured import Condition, Entropies
from coreeval.evaluation.numleak.study import Audit
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST: Final = 24
"""Audits of one picture; the rest is told in its title."""
_APART: Final = 0.19
"""Half the distance between the two rows of an audit, and how far dots stand beside theirs."""


def measured_of(audits: Sequence[Audit]) -> list[tuple[Audit, Entropies]]:
    """Return the audits that have entropies, with them."""
    found = [(audit, audit.measured.entropy) for audit in audits]
    return [(audit, entropy) for audit, entropy in found if entropy is not None]


def draw_entropies(path: Path, audits: Sequence[Audit]) -> list[Path]:
    """Draw every answer's entropy, two rows for each audit, medians as bars; nothing for none."""
    every = measured_of(audits)
    if not every:
        return []
    shown, left = every[:_MOST], max(0, len(every) - _MOST)
    with open_figure(path, 7, 1.5 + 0.62 * len(shown)) as figure:
        panel = figure.subplots()
        for number, (_, entropy) in enumerate(shown):
            _row(panel, number - _APART, entropy.series, "o", COLOURS[0], "the series")
            _row(panel, number + _APART, entropy.fictitious, "s", COLOURS[1], "invented names")
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
        more = f" (and {left} more)" if left else ""
        figure.suptitle(f"How peaked the read-out of values is{more}", fontsize=10)
    return [path]


def _row(panel: "Axes", y: float, one: Condition, marker: str, colour: str, words: str) -> None:
    beside = _APART * np.random.default_rng(len(one.bits)).uniform(-0.7, 0.7, len(one.bits))
    panel.plot(one.bits, y + beside, marker, color=colour, markersize=3.5, alpha=0.65, label=words)
    if one.bits:
        middle = one.median.estimate
        panel.plot([middle, middle], [y - _APART, y + _APART], color="black", linewidth=2)

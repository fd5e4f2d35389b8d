"""Every number of the CAP paper that follows from its M and C comes out.

M and C are printed with four digits, so what follows from them is known to lie in a band: between
its values for the least and the greatest numbers that round to those.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

from coreeval.evaluation.pcr import MARGINS, SCALES, performance_consistency_ratio
from coreeval.evaluation.statistics import Array
from tests.evaluation.pcr.published import (
    ALPHA,
    ALPHAS,
    BY_SCALE,
    CELLS,
    DECLINES,
    DISCREPANCIES,
    DROPS,
    SPLITS,
    Cell,
)

HALF = 0.00005 + 1e-9
"""Half of the last digit that is printed."""
NAMES = [(benchmark, model) for benchmark, rows in CELLS.items() for model in rows]


class Band(NamedTuple):
    """The least and greatest value that fits what is printed."""

    low: float
    high: float

    def __sub__(self, other: "Band") -> "Band":
        return Band(self.low - other.high, self.high - other.low)

    def holds(self, printed: float) -> bool:
        """Whether some number of the band is printed so."""
        return self.low - HALF <= printed <= self.high + HALF


def band(formula: Callable[..., Array], *printed: float) -> Band:
    """Return the band of a formula that is monotone in each of its numbers."""
    ends = [(max(0.0, value - HALF), value + HALF) for value in printed]
    corners = np.stack(np.meshgrid(*ends)).reshape(len(printed), -1)
    found = formula(*corners)
    return Band(float(found.min()), float(found.max()))


def ratio(benchmark: str, cell: Cell) -> Band:
    def formula(m: Array, c: Array) -> Array:
        return performance_consistency_ratio(m, c, alpha=ALPHA[benchmark])

    return band(formula, cell.original, cell.consistency)


def relative(cell: Cell) -> Band:
    return band(lambda m, other: (m - other) / m, cell.original, cell.modified)


def test_all_rows_of_the_tables_are_here() -> None:
    assert len(NAMES) == 28
    cells = [cell for rows in CELLS.values() for row in rows.values() for cell in row]
    assert len(cells) == 7 * (2 + 3 + 2 + 3)
    for table in (DROPS, DECLINES):
        assert [(name, model) for name in table for model in sorted(table[name])] == [
            (name, model) for name in table for model in sorted(CELLS[name])
        ]


@pytest.mark.parametrize(("benchmark", "model"), NAMES)
def test_pcr_and_its_differences(benchmark: str, model: str) -> None:
    """Tables 5, 7, 9 and 11, and CAP's columns of Table 2."""
    cells = CELLS[benchmark][model]
    bands = [ratio(benchmark, cell) for cell in cells]
    for split, one, cell in zip(SPLITS[benchmark], bands, cells, strict=True):
        assert one.holds(cell.pcr), split
        assert one.high - one.low < 0.02 or benchmark == "ectsum"
    drops = [bands[0] - other for other in bands[1:]]
    for split, one, drop in zip(SPLITS[benchmark][1:], drops, DROPS[benchmark][model], strict=True):
        assert one.holds(drop), split


@pytest.mark.parametrize(("benchmark", "model"), NAMES)
def test_the_baselines(benchmark: str, model: str) -> None:
    """The baselines' columns of Table 2."""
    cells = CELLS[benchmark][model]
    for cell, printed in zip(cells, DECLINES[benchmark][model], strict=True):
        assert band(np.subtract, cell.original, cell.modified).holds(printed)
    bands = [relative(cell) for cell in cells if cell.original > 0]
    known = DISCREPANCIES[benchmark].get(model, ())
    assert len(bands) == len(known) + 1 if known else not bands
    for other, printed in zip(bands[1:], known, strict=True):
        assert (bands[0] - other).holds(printed)


def fineval() -> Iterator[tuple[str, str, float, float]]:
    for scale, rows in BY_SCALE.items():
        for model, drops in rows.items():
            yield from ((scale, model, *pair) for pair in zip(ALPHAS, drops, strict=True))


def test_every_scale_and_alpha_to_four_digits() -> None:
    """Table 3; the paper computed it from M and C as they are printed."""
    assert set(BY_SCALE) == set(SCALES) and len(list(fineval())) == 84
    for scale, model, alpha, printed in fineval():
        first, second = (
            performance_consistency_ratio(
                cell.original,
                cell.consistency,
                alpha=alpha,
                scale=next(name for name in SCALES if name == scale),
            )
            for cell in CELLS["fineval"][model]
        )
        assert first - second == pytest.approx(printed, abs=HALF), (scale, model, alpha)


def test_fineval_to_four_digits() -> None:
    """Table 5."""
    for model, cells in CELLS["fineval"].items():
        found = [performance_consistency_ratio(cell.original, cell.consistency) for cell in cells]
        assert found == pytest.approx([cell.pcr for cell in cells], abs=HALF)
        assert found[0] - found[1] == pytest.approx(DROPS["fineval"][model][0], abs=HALF)


def test_the_margins_lie_halfway_between_what_the_paper_reads_as_leakage_and_as_none() -> None:
    trained, passed_over = CELLS["finqa"]["finma_nlp"], CELLS["alphafin"]["baichuan"]
    for scale, margin in MARGINS.items():
        none, leakage = (
            performance_consistency_ratio(
                [cells[0].original, cells[-1].original],
                [cells[0].consistency, cells[-1].consistency],
                scale=scale,
            )
            @ [1, -1]
            for cells in (passed_over, trained)
        )
        assert none < margin < leakage
        assert margin == pytest.approx((none + leakage) / 2, rel=0.03)

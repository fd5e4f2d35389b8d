"""Kappa and alpha are those of statsmodels and krippendorff; intervals hold what they should."""

from itertools import product

import krippendorff as reference
import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa  # type: ignore[import-untyped]

from coreeval.evaluation.annotation.guideline import Level
from coreeval.evaluation.annotation.reliability import (
    agreed,
    counts_of,
    fleiss,
    krippendorff,
)
from tests.evaluation.annotation.tables import AWKWARD, Table, ratings_of, simulated

SCALES: dict[Level, tuple[int, ...]] = {"nominal": (0, 1), "ordinal": (1, 2, 3)}
RANDOM = {
    f"{items} items, {raters} raters, {knows}, {holes}, {len(values)} values": simulated(
        items, raters, values, knows=knows, holes=holes, seed=n
    )
    for n, (items, raters, knows, holes, values) in enumerate(
        product((3, 50, 200), (2, 5), (0.3, 0.9), (0.0, 0.3), SCALES.values())
    )
}
TABLES = AWKWARD | RANDOM


def values_of(table: Table) -> tuple[int, ...]:
    return SCALES["nominal" if any(0 in row for row in table) else "ordinal"]


def varies(rows: Table) -> bool:
    """Tell whether there is more than one value, without which nothing is defined."""
    return len({one for row in rows for one in row if one is not None}) > 1


@pytest.mark.parametrize("level", SCALES)
def test_alpha_is_that_of_krippendorff(level: Level) -> None:
    for name, table in TABLES.items():
        values = values_of(table)
        found = krippendorff(ratings_of(table), values, level, seed=1, draws=2)
        paired = [row for row in table if sum(one is not None for one in row) >= 2]
        assert found.n == len(paired), name
        if not varies(paired):
            assert found.estimate is None, name
            continue
        numbers = np.array([[np.nan if one is None else one for one in row] for row in table]).T
        domain = np.array(values, float)
        expected = reference.alpha(numbers, value_domain=domain, level_of_measurement=level)
        assert found.estimate == pytest.approx(expected, abs=1e-9), name


def test_kappa_is_that_of_statsmodels_on_complete_items() -> None:
    for name, table in TABLES.items():
        values, raters = values_of(table), len(table[0])
        whole = [row for row in table if None not in row]
        found = fleiss(ratings_of(table), values, raters=raters, seed=1, draws=2)
        assert found.n == len(whole), name
        if not varies(whole):
            assert found.estimate is None, name
            continue
        expected = fleiss_kappa(counts_of(ratings_of(whole), values))
        assert found.estimate == pytest.approx(expected, abs=1e-9), name


def test_the_example_of_krippendorff() -> None:
    """Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section E."""
    rows = (
        "1 1 . 1", "2 2 3 2", "3 3 3 3", "3 3 3 3", "2 2 2 2", "1 2 3 4", "4 4 4 4", "1 1 2 1",
        "2 2 2 2", ". 5 5 5", ". . 1 1", ". . 3 .",
    )  # fmt: skip
    said = ratings_of([[None if one == "." else int(one) for one in row.split()] for row in rows])
    nominal, ordinal = (
        krippendorff(said, range(1, 6), level, seed=1, draws=10) for level in SCALES
    )
    assert (round(nominal.estimate or 0, 3), round(ordinal.estimate or 0, 3)) == (0.743, 0.815)
    assert nominal.n == 11


def test_raters_of_known_reliability() -> None:
    """Two raters see the truth with a chance of 0.9: they agree beyond chance in 0.81 of pairs."""
    said = ratings_of(simulated(20_000, 3, (1, 2, 3), knows=0.9, holes=0, seed=5))
    kappa = fleiss(said, (1, 2, 3), raters=3, seed=1, draws=50)
    alpha = krippendorff(said, (1, 2, 3), "ordinal", seed=1, draws=50)
    assert kappa.estimate == pytest.approx(0.81, abs=0.01)
    assert alpha.estimate == pytest.approx(0.81, abs=0.015)
    assert kappa.ci_low and kappa.ci_high and kappa.ci_low < 0.81 < kappa.ci_high


def test_where_nothing_can_be_said_there_is_no_number() -> None:
    same = ratings_of([[3, 3, 3]] * 10)
    for found in (
        fleiss(same, (1, 2, 3), raters=3, seed=1),
        krippendorff(same, (1, 2, 3), "ordinal", seed=1),
    ):
        assert (found.estimate, found.n) == (None, 10)
    alone = ratings_of([[3], [1]])
    assert krippendorff(alone, (1, 2, 3), "ordinal", seed=1).n == 0
    assert agreed(alone, (1, 2, 3)).estimate is None
    assert fleiss(alone, (1, 2, 3), raters=1, seed=1).estimate is None


def test_a_handful_of_uncommon_ratings_gives_no_interval() -> None:
    few, more = ([[1, 1, 0]] * n + [[1, 1, 1]] * 40 for n in (4, 5))
    found = [krippendorff(ratings_of(table), (0, 1), "nominal", seed=1) for table in (few, more)]
    assert [one.ci_low is None for one in found] == [True, False]
    assert all(one.estimate is not None for one in found)


def test_agreement_that_is_perfect_keeps_a_width_where_it_is_a_share() -> None:
    table = ratings_of([[1, 1], [0, 0], [1, 1]])
    share = agreed(table, (0, 1))
    assert (share.estimate, share.ci_high) == (1.0, 1.0) and (share.ci_low or 1) < 0.5
    perfect = krippendorff(table, (0, 1), "nominal", seed=1)
    assert (perfect.estimate, perfect.ci_low) == (1.0, None)

"""One cell from its points: what goes where, what is said about it, and many cells together."""

import math
from dataclasses import replace

import numpy as np
import pytest

from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.statistics import SeriesMeasurements, adjust_together, measure
from coreeval.evaluation.numleak.statistics.metrics import gradient
from tests.evaluation.numleak.statistics.kit import (
    DEFINITION,
    FEW,
    asked,
    compared,
    month,
    returns,
)

TRUTH = returns(360)
NOISE = np.random.default_rng(1).normal(0, 0.2, 360)
VALUES = {month(index): float(value) for index, value in enumerate(TRUTH)}


def recalled(months: range, **fields: object) -> list[Point]:
    """Return answers near the truth."""
    truth = TRUTH[months.start : months.stop : months.step]
    noise = NOISE[months.start : months.stop : months.step]
    points = asked(truth, truth + noise, months=months)
    return [replace(each, **fields) for each in points]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole() -> SeriesMeasurements:
    """Every kind of question: dates before the cutoff are known, later ones mostly refused."""
    before = recalled(range(0, 240, 3), stratum="pre")
    known = [replace(each, notable=index % 8 == 0) for index, each in enumerate(before)]
    after = recalled(range(300, 360, 4), stratum="post")
    refused = [
        replace(each, estimate=None, status="refused") if index % 3 else each
        for index, each in enumerate(after)
    ]
    points = [
        *known,
        *refused,
        *recalled(range(0, 30), variant="blind"),
        *asked([0.0] * 6, [1.0, None] * 3, variant="fictitious", name="Zeta"),
        *asked([0.0] * 6, [None] * 6, variant="fictitious", name="Eta"),
        *(each for draw in range(2) for each in recalled(range(9), variant="repeated", draw=draw)),
    ]
    pairs = [compared(a, a + 7, higher="first", chosen="second") for a in range(0, 60, 3)]
    forced = replace(pairs[0], variant="forced_choice")
    return measure(
        points, [*pairs, forced], definition=DEFINITION, values=VALUES, settings=FEW,
        others={"smb": asked(returns(360, 5), returns(360, 6))},
    )  # fmt: skip


def test_every_probe_counts_where_it_belongs(whole: SeriesMeasurements) -> None:
    assert (whole.overall.n, whole.overall.parsed) == (95, 85)
    assert whole.blind.n == 30
    assert (whole.fictitious.n, whole.fictitious.estimate) == (12, 0.25)
    assert {name: each.estimate for name, each in whole.fictitious_names.items()} == {
        "Zeta": 0.5,
        "Eta": 0.0,
    }
    assert whole.repeats.dates == 9 and whole.repeats.spread.estimate == 0
    assert (whole.ranks.asked, whole.forced_ranks.asked) == (20, 1)
    assert set(whole.nulls) == {
        "any_date", "same_era", "same_season", "same_year", "drift", "within_date",
    }  # fmt: skip
    assert list(whole.cross_series) == ["smb"] and whole.seeds == {}


def test_the_ladder_climbs_from_the_smallest_tolerance(whole: SeriesMeasurements) -> None:
    assert list(whole.ladder) == [0.1, 0.25, 0.5, 1.0] and whole.tolerance == 0.25
    shares = [each.estimate for each in whole.ladder.values()]
    assert shares == sorted(shares) and shares[1] == whole.overall.within_tolerance.estimate


def test_recent_dates_are_refused_not_invented(whole: SeriesMeasurements) -> None:
    recent = whole.recent
    assert (recent.first.n, recent.first.parsed, recent.second.n) == (15, 5, 80)
    assert recent.parse_rate.estimate == pytest.approx(5 / 15 - 1)
    assert recent.parse_rate.ci_high < -0.3
    assert recent.first.pearson_r.estimate > 0.95
    assert list(whole.strata) == ["pre", "post"]
    assert list(whole.eras) == ["1990s", "2000s", "2010s"]
    assert sum(each.n for each in whole.eras.values()) == whole.overall.n


def test_well_known_dates_are_no_better_known_here(whole: SeriesMeasurements) -> None:
    assert (whole.notable.first.n, whole.notable.second.n) == (10, 85)
    assert whole.notable.within_tolerance.ci_low < 0 < whole.notable.within_tolerance.ci_high


def test_p_is_that_of_the_least_refuted_shuffle(whole: SeriesMeasurements) -> None:
    shuffles = [null for name, null in whole.nulls.items() if name != "within_date"]
    assert len(shuffles) == 5
    assert whole.p_value == max(null.pearson_r.p_value for null in shuffles)
    assert math.isnan(whole.p_adjusted) and whole.notes == ()


def test_errors_that_shrink_towards_today_have_a_negative_gradient() -> None:
    shrinking = np.linspace(3, 1, 240)
    found = gradient(asked(TRUTH[:240], TRUTH[:240] + shrinking))
    assert found.estimate == pytest.approx(-1, rel=0.01)  # 2 less over 20 years
    late = asked([0.0], [90.0], months=[300], stratum="post")
    assert gradient([*asked(TRUTH[:240], TRUTH[:240] + shrinking), *late]) == found


def test_the_same_seed_measures_the_same() -> None:
    points = recalled(range(0, 90, 3))
    once, again = (
        measure(points, definition=DEFINITION, values=VALUES, settings=FEW) for _ in range(2)
    )
    assert repr(once) == repr(again)


@pytest.mark.parametrize(
    ("points", "note"),
    [
        (asked([1, 2], [None, None]), "none of the 2 questions"),
        (asked(TRUTH[:9], np.full(9, 0.5)), "every answer is 0.5: r is not defined"),
        (asked(TRUTH[:4], [0.5, 0.5, 0.5, 2]), "75% of the answers are 0.5"),
        (asked(TRUTH[:3], TRUTH[:3]), "only 3 dates have an answer"),
        (
            asked(TRUTH[:9], TRUTH[:9] / 100),
            "0.01 times the true value, so the answers may not be in",
        ),
        (asked(np.abs(TRUTH[:9]) + 1, TRUTH[:9]), "all true values have the same sign"),
        (asked([0.1, 0, 0.2, -0.1, -23], [0, 0.1, -0.2, 0.2, -20]), "r depends on a single date"),
        (recalled(range(9)) + recalled(range(9), seed=1), "18 answers are about 9"),
        (
            [*recalled(range(9)), *recalled(range(1), truth=None)],
            "1 of 10 answers have no true value",
        ),
        (recalled(range(9)), "the full series is unknown"),
    ],
)
def test_what_limits_the_numbers_is_said(points: list[Point], note: str) -> None:
    found = measure(points, definition=DEFINITION, settings=FEW)
    assert any(note in each for each in found.notes), found.notes


def test_a_level_that_persists_is_named() -> None:
    walk = np.cumsum(TRUTH)
    values = {month(index): float(value) for index, value in enumerate(walk)}
    found = measure(asked(walk[:90], walk[:90]), definition=DEFINITION, values=values, settings=FEW)
    assert any("each year's mean alone reaches an r of 0.9" in note for note in found.notes)


def test_what_needs_no_memory_is_named() -> None:
    said = asked(TRUTH[:90], np.full(90, TRUTH.mean()))
    found = measure(said, definition=DEFINITION, values=VALUES, settings=FEW)
    assert "the answers are more accurate than these baselines: constant, year" in str(found.notes)


def test_drawings_of_dates_are_shown_apart() -> None:
    points = [*recalled(range(0, 40, 2)), *recalled(range(0, 60, 3), seed=2)]
    found = measure(points, definition=DEFINITION, settings=FEW)
    assert {seed: each.n for seed, each in found.seeds.items()} == {0: 20, 2: 20}
    assert (found.overall.n, found.overall.dates) == (40, 33)


def test_cells_are_adjusted_for_each_other(whole: SeriesMeasurements) -> None:
    ps = {"a": 0.01, "b": 0.04, "c": math.nan, "d": 0.03}
    found = adjust_together({name: replace(whole, p_value=p) for name, p in ps.items()})
    adjusted = [found[name].p_adjusted for name in "abd"]
    assert adjusted == pytest.approx([0.03, 0.04, 0.04])
    assert math.isnan(found["c"].p_adjusted)

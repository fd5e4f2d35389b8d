"""Which dates are asked about."""

from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.probes.date_samples import Drawing, draw_dates, draw_pairs, era_of
from coreeval.evaluation.numleak.replies import find_stratum

FIRST = Period.parse("1970-01", "monthly")
MONTHS = [FIRST.shift(count) for count in range(56 * 12)]
CUTOFF = date(2020, 6, 30)
NOTABLE = frozenset(MONTHS[100:140])


def drawn(
    dates: list[Period] = MONTHS,
    count: int = 40,
    cutoff: date | None = CUTOFF,
    seed: int = 7,
) -> Drawing:
    (found,) = draw_dates(dates, count=count, seeds=[seed], cutoff=cutoff, notable=NOTABLE)
    return found


def strata(drawing: Drawing) -> Counter[str]:
    return Counter(find_stratum(period, CUTOFF) for period in drawing.dates)


def test_half_lies_before_the_cutoff_and_a_quarter_after_it() -> None:
    drawing = drawn()
    assert strata(drawing) == {"pre": 20, "near": 10, "post": 10}
    assert not drawing.notes
    assert list(drawing.dates) == sorted(set(drawing.dates))


def test_what_a_stratum_lacks_comes_from_the_others_and_is_said() -> None:
    drawing = drawn([period for period in MONTHS if period.start < date(2020, 9, 1)])
    assert strata(drawing) == {"pre": 31, "near": 9}
    assert drawing.notes == (
        "seed 7: only 9 of the 10 requested dates within six months of the cutoff are available",
        "seed 7: only 0 of the 10 requested dates after the cutoff are available",
    )


def test_fewer_dates_than_asked_for_are_all_taken_and_that_is_said() -> None:
    drawing = drawn(MONTHS[:5], cutoff=None)
    assert drawing.dates == tuple(MONTHS[:5])
    assert drawing.notes == (
        "seed 7: only 5 dates are left to ask about instead of 40, so all of them are used",
    )


def test_eras_are_equal_and_notable_dates_a_quarter() -> None:
    drawing = drawn(count=80, cutoff=None)
    known = [period for period in drawing.dates if period in NOTABLE]
    others = Counter(era_of(period) for period in drawing.dates if period not in NOTABLE)
    assert len(known) == 20
    assert set(others.values()) == {10}


def test_drawings_of_several_seeds_share_no_date() -> None:
    drawings = draw_dates(MONTHS, count=100, seeds=[1, 2, 3], cutoff=CUTOFF)
    dates = [period for drawing in drawings for period in drawing.dates]
    assert len(set(dates)) == len(dates) == 300


def test_a_series_that_grows_is_asked_what_it_was_asked_before() -> None:
    before, after = (set(drawn(MONTHS[:length], cutoff=None).dates) for length in (600, 601))
    assert len(before & after) >= 39
    assert set(drawn(seed=8).dates) != set(drawn(seed=7).dates)


@pytest.mark.parametrize(
    ("month", "where"),
    [("2019-12", "near"), ("2019-11", "pre"), ("2020-11", "near"), ("2020-12", "post")],
)
def test_near_is_within_six_months(month: str, where: str) -> None:
    assert find_stratum(Period.parse(month, "monthly"), CUTOFF) == where
    assert find_stratum(Period.parse(month, "monthly"), None) == "unknown"


def test_neither_place_nor_time_tells_which_date_is_higher() -> None:
    values = {period: float(hash((period.start.year * 7919, period.start.month)) % 1000)
              for period in MONTHS[:60]}  # fmt: skip
    pairs = draw_pairs(values, count=60, seed=3)
    assert len(set(map(frozenset, pairs))) == 60
    first_is = Counter((values[first] > values[second], first < second) for first, second in pairs)
    assert abs(sum(first_is[True, each] for each in (True, False)) - 30) <= 1
    for rising in (True, False):
        first, turned = first_is[not rising, True], first_is[rising, False]
        assert abs(first - turned) <= 1
    assert pairs == draw_pairs(values, count=60, seed=3) != draw_pairs(values, count=60, seed=4)


def test_equal_values_are_no_pair() -> None:
    values = dict.fromkeys(MONTHS[:5], 1.0) | {MONTHS[9]: 2.0}
    pairs = draw_pairs(values, count=60, seed=3)
    assert len(pairs) == 5 and all(MONTHS[9] in pair for pair in pairs)


@given(
    st.sets(st.sampled_from(MONTHS), min_size=1),
    st.integers(2, 120),
    st.none() | st.dates(date(1960, 1, 1), date(2040, 1, 1)),
)
def test_there_are_as_many_as_asked_for_where_there_are_so_many(
    dates: set[Period], count: int, cutoff: date | None
) -> None:
    drawing = drawn(list(dates), count, cutoff)
    assert len(set(drawing.dates)) == len(drawing.dates) == min(count, len(dates))
    assert set(drawing.dates) <= dates

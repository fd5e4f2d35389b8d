from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.evaluation.numleak.periods import FREQUENCIES, Frequency, Period

DAYS = st.dates(date(1800, 1, 1), date(2200, 1, 1))


@pytest.mark.parametrize(
    ("text", "frequency", "written", "words"),
    [
        ("2020-03-05", "daily", "2020-03-05", "5 March 2020"),
        ("19580329", "weekly", "1958-03-29", "the week of 29 March 1958"),
        ("202003", "monthly", "2020-03", "March 2020"),
        ("2020-03-01", "monthly", "2020-03", "March 2020"),
        ("2020Q3", "quarterly", "2020-Q3", "the third quarter of 2020"),
        (" 2020-08 ", "quarterly", "2020-Q3", "the third quarter of 2020"),
        ("1927", "annual", "1927", "1927"),
    ],
)
def test_dates_are_read_as_files_write_them(
    text: str, frequency: Frequency, written: str, words: str
) -> None:
    period = Period.parse(text, frequency)

    assert (str(period), period.words) == (written, words)


@pytest.mark.parametrize(
    ("text", "frequency"),
    [("2020", "monthly"), ("2020-13", "monthly"), ("2020-Q1", "monthly"), ("", "annual"),
     ("2020-02-30", "daily"), ("May 2020", "monthly"), ("2020-03", "weekly")],
)  # fmt: skip
def test_what_is_no_date_of_the_frequency_is_refused(text: str, frequency: Frequency) -> None:
    with pytest.raises(ValueError, match=r"."):
        Period.parse(text, frequency)


@given(DAYS, st.sampled_from(FREQUENCIES), st.integers(-500, 500))
def test_shifting_there_and_back_returns_and_keeps_the_order(
    day: date, frequency: Frequency, count: int
) -> None:
    period = Period.of(day, frequency)
    moved = period.shift(count)

    assert moved.shift(-count) == period
    assert (moved > period) == (count > 0)
    assert Period.parse(str(moved), frequency) == moved


@given(DAYS, st.sampled_from(FREQUENCIES))
def test_periods_leave_no_day_out(day: date, frequency: Frequency) -> None:
    period = Period.of(day, frequency)

    assert period.start <= day <= period.last_day < period.shift(1).start


def test_distance_is_counted_from_the_last_day() -> None:
    march = Period.parse("2020-03", "monthly")

    assert march.months_after(date(2020, 3, 31)) == 0
    assert march.months_after(date(2019, 3, 31)) == pytest.approx(12, abs=0.05)
    assert march.months_after(date(2020, 9, 30)) == pytest.approx(-6, abs=0.05)

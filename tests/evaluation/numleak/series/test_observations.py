"""What a file's rows become: dates and numbers, combined, changed, checked."""

import math
from contextlib import suppress
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import FREQUENCIES, Period
from coreeval.evaluation.numleak.series.layouts import READERS
from tests.evaluation.numleak.series.kit import read, written

HEAD = "date,value\n"


def months(*values: object, start: str = "2020-01") -> str:
    """Return a file with one value for each month."""
    first = Period.parse(start, "monthly")
    return HEAD + "".join(f"{first.shift(n)},{value}\n" for n, value in enumerate(values))


def notes_of(text: str, **changes: object) -> str:
    return "\n".join(read(text, **changes).notes)


# -- cells ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("-1.5", -1.5),
        ("\u22121.5", -1.5),
        ("+.5", 0.5),
        ("2e-1", 0.2),
        ('"12,345.5"', 12345.5),
        ("3.5%", 3.5),
        ("3.5 %", 3.5),
    ],
)
def test_numbers_are_read_as_files_write_them(cell: str, value: float) -> None:
    assert written(read(HEAD + f"2020-01,{cell}\n")) == {"2020-01": value}


@pytest.mark.parametrize(
    "text",
    [
        "2020-03",
        "202003",
        "2020-03-31",
        "2020/3",
        "2020/03/31",
        "2020M03",
        "202003.0",
        "2020-03-31T00:00:00Z",
    ],
)
def test_dates_are_read_as_files_write_them(text: str) -> None:
    assert written(read(HEAD + f"{text},1\n")) == {"2020-03": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        "date;value\n2020-01;0,990\n2020-02;1,204\n",
        "date;value\n2020-01;1,104\n2020-02;1,204\n",
        'date,value\n2020-01,"0,990"\n2020-02,"1,204"\n',
        "date\tvalue\n2020-01\t1,20\n2020-02\t1,204\n",
        "date\tvalue\n2020-01\t1,084\n2020-02\t1,204\n",
    ],
)
def test_a_decimal_comma_is_not_read_as_thousands(text: str) -> None:
    with pytest.raises(DatasetError, match="may have a decimal comma; write decimals with a point"):
        read(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('date,value\n2020-01,"1,104"\n2020-02,980\n', [1104.0, 980.0]),
        ("date;value\n2020-01;1,104.5\n2020-02;1,204\n", [1104.5, 1204.0]),
        ("date\tvalue\n2020-01\t1,104.5\n2020-02\t1,204\n", [1104.5, 1204.0]),
        ('date,value\n2020-01,"1,104,500"\n2020-02,"1,204"\n', [1104500.0, 1204.0]),
    ],
)
def test_a_comma_that_groups_thousands_is_read(text: str, values: list[float]) -> None:
    assert [*written(read(text)).values()] == values


def test_a_row_that_cannot_be_read_is_named_and_left_out() -> None:
    text = months(*range(1, 11)) + "2020-13,1\n2020-11,about 3\n2021-01,1e99\n03/04/2021,2\n"

    series = read(text)

    assert len(series.values) == 10
    assert series.notes[0] == (
        "4 rows cannot be read and are skipped: line 12: '2020-13' is not a date of a "
        "monthly series; line 13: 'about 3' is not a number; line 14: '1e99' is too large; and 1 "
        "more"
    )


def test_a_file_most_of_which_cannot_be_read_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"2 of 3 rows cannot be read: line 2: 'a' is not a num"):
        read(HEAD + "2020-01,a\n2020-02,b\n2020-03,1\n")


def test_marks_of_ones_own_are_no_values() -> None:
    source = {"path": "f", "missing": ["-1", "n.v."]}

    assert written(read(months(3, -1, "n.v.", "-1.0", 4), source=source)) == {
        "2020-01": 3.0,
        "2020-05": 4.0,
    }


def test_a_file_of_nothing_but_marks_is_refused() -> None:
    with pytest.raises(DatasetError, match="every cell is empty or marked as missing"):
        read(months("", ".", "NA"))


def test_a_date_that_is_there_twice_counts_once_if_the_values_agree() -> None:
    text = months(1, 2, 3) + "2020-01,1.0\n2020-02,2.5\n"

    series = read(text)

    assert written(series) == {"2020-01": 1.0, "2020-03": 3.0}
    assert "1 date is in the file more than once, always with the same value: 2020-01" in (
        series.notes
    )
    assert (
        "1 date is in the file more than once with different values and skipped: 2020-02"
        in series.notes
    )


def test_a_file_finer_than_the_series_is_refused_without_a_way_to_combine() -> None:
    days = "".join(f"2020-0{month}-{day:02d},{day}\n" for month in (1, 2) for day in range(1, 29))

    with pytest.raises(DatasetError, match="2020-01 has 28 different ones") as caught:
        read(HEAD + days)

    assert "transform: {combine: mean}" in caught.value.hint


@given(
    text=st.text('0123456789,;.-\n"QJan/ \0\t%', max_size=300),
    layout=st.sampled_from(list(READERS)),
    transform=st.sampled_from([{}, {"combine": "mean"}, {"change": "log_change", "over": 99999}]),
    frequency=st.sampled_from(FREQUENCIES),
)
@settings(deadline=None, max_examples=150)
def test_whatever_a_file_holds_is_read_or_refused(
    text: str, layout: str, transform: dict[str, object], frequency: str
) -> None:
    source = {"format": layout, "path": "f"}
    for head in ("", "date,value\n", ",Mkt-RF\n"):
        with suppress(DatasetError):
            series = read(head + text, source=source, transform=transform, frequency=frequency)
            assert all(map(math.isfinite, series.values.values()))
            assert series.available_on(date.max) == series.values


# -- finer values ---------------------------------------------------------------------------------


def daily(first: date, last: date) -> str:
    """Return a file with the day of the year as each day's value, weekends left out."""
    period, rows = Period(first, "daily"), []
    while period.start <= last:
        if period.start.weekday() < 5:
            rows.append(f"{period},{period.start.timetuple().tm_yday}\n")
        period = period.shift(1)
    return HEAD + "".join(rows)


def test_the_close_of_a_month_is_its_last_days() -> None:
    text = daily(date(2020, 1, 20), date(2020, 5, 29))

    series = read(text, transform={"combine": "last"})

    assert written(series) == {"2020-01": 31, "2020-02": 59, "2020-03": 91, "2020-04": 121,
                               "2020-05": 150}  # fmt: skip


def test_a_month_that_the_file_does_not_reach_the_end_of_is_left_out() -> None:
    text = daily(date(2020, 1, 20), date(2020, 5, 20))

    last, mean = (read(text, transform={"combine": combine}) for combine in ("last", "mean"))

    assert (str(last.first), str(last.last)) == ("2020-01", "2020-04")
    assert (str(mean.first), str(mean.last)) == ("2020-02", "2020-04")
    assert "2020-05 is skipped: the file has only part of this period" in mean.notes


def test_a_mean_needs_half_of_the_usual_values() -> None:
    full = daily(date(2020, 1, 1), date(2020, 4, 30)).splitlines(keepends=True)
    thin = "".join(line for line in full if not line.startswith("2020-02") or line[8:10] < "08")

    series = read(thin, transform={"combine": "mean"})

    assert [str(at) for at in series.values] == ["2020-01", "2020-03", "2020-04"]
    assert "1 date is skipped because of too few values: 2020-02" in series.notes


def test_weeks_and_months_are_combined_too() -> None:
    weeks = HEAD + "".join(
        f"{Period(date(2020, 1, 4), 'weekly').shift(n)},{n}\n" for n in range(13)
    )
    quarters = read(months(1, 2, 6, 4, 5), transform={"combine": "mean"}, frequency="quarterly")

    assert written(quarters) == {"2020-Q1": 3.0}
    assert written(read(weeks, transform={"combine": "mean"})) == {
        "2020-01": 1.5,
        "2020-02": 6.0,
        "2020-03": 10.5,
    }


def test_one_value_for_each_month_is_said_to_be_no_known_close() -> None:
    said = notes_of(months(1, 2, 3), transform={"combine": "last"})

    assert "the file has only one value for each date, which is used as the last" in said


# -- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "values"),
    [
        ({"change": "difference"}, [10.0, -33.0]),
        ({"change": "percent_change"}, [10.0, -30.0]),
        ({"change": "log_change", "scale": 12}, [114.372216, -428.009933]),
        ({"change": "percent_change", "over": 2}, [-23.0]),
        ({"scale": 100}, [10000.0, 11000.0, 7700.0]),
    ],
)
def test_changes_are_against_the_value_so_many_periods_before(
    transform: dict[str, object], values: list[float]
) -> None:
    series = read(months(100, 110, 77), transform=transform)

    assert list(written(series).values()) == values


def test_a_change_never_spans_a_gap() -> None:
    text = months(100, "", 120, 126, 0, 5)

    series = read(text, transform={"change": "percent_change"})

    assert written(series) == {"2020-04": 5.0}
    assert "2 dates are skipped because a value is not above zero: 2020-05; 2020-06" in series.notes


def test_days_without_trading_do_not_count_for_a_daily_change() -> None:
    text = HEAD + "2020-01-02,100\n2020-01-03,110\n2020-01-06,121\n"

    series = read(text, frequency="daily", transform={"change": "percent_change"})

    assert written(series) == {"2020-01-03": 10.0, "2020-01-06": 10.0}


def test_a_change_that_reaches_beyond_the_file_is_refused() -> None:
    with pytest.raises(DatasetError, match="no value is left after the transformation"):
        read(months(1, 2), transform={"change": "difference", "over": 12})


# -- checks ---------------------------------------------------------------------------------------

MONTHLY_RETURNS = {"low": -60, "high": 60, "typical": [0.5, 10]}


def test_fractions_in_place_of_percent_are_refused() -> None:
    text = months(*([0.012, -0.031, 0.045] * 12))

    with pytest.raises(DatasetError, match="not in the unit of the definition") as caught:
        read(text, plausible=MONTHLY_RETURNS)

    assert "the median size of the values is 0.031, but 0.5 to 10 percent" in str(caught.value)
    assert "transform: {scale: 100}" in caught.value.hint
    assert len(read(text, plausible=MONTHLY_RETURNS, transform={"scale": 100}).values) == 36


def test_a_level_in_place_of_returns_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"36 of 36 values are outside the range -60 to 60"):
        read(months(*range(1000, 1036)), plausible=MONTHLY_RETURNS)


def test_a_few_implausible_values_are_named() -> None:
    said = notes_of(months(*([1.5, -2.5] * 18), 940), plausible=MONTHLY_RETURNS)

    assert "are implausible for percent (-60 to 60 percent expected): 2023-01 (940)" in said


def test_without_bounds_of_its_own_a_series_of_fractions_is_asked_about() -> None:
    assert "so the values may be fractions" in notes_of(months(*([0.01, -0.02] * 20)))
    assert "so the values may be fractions" not in notes_of(months(*([0.01, -1.02] * 20)))


def test_values_below_zero_contradict_a_positive_series() -> None:
    with pytest.raises(DatasetError, match=r"1 of 3 values are below zero: 2020-02"):
        read(months(3, -99, 4), sign="positive")


def test_gaps_and_notable_dates_in_them_are_named() -> None:
    said = notes_of(months(1, "", "", 4, "", 6, ""), notable={"2020-02": "x", "2030-01": "y"})

    assert "3 dates have no value between 2020-01 and 2020-06: 2020-02; 2020-03; 2020-05" in said
    assert "notable dates without a value: 2020-02" in said


@pytest.mark.parametrize(
    ("frequency", "days", "hole"),
    [
        ("daily", ["2020-01-02", "2020-01-08", "2020-01-20"], "2020-01-08 to 2020-01-20"),
        ("weekly", ["2020-01-03", "2020-01-11", "2020-01-25"], "2020-01-11 to 2020-01-25"),
    ],
)
def test_weekends_are_no_holes(frequency: str, days: list[str], hole: str) -> None:
    said = notes_of(HEAD + "".join(f"{day},5\n" for day in days), frequency=frequency)

    assert f"1 gap of more than {7 if frequency == 'daily' else 10} days: {hole}" in said


def test_few_values_are_said_with_their_number() -> None:
    assert "only 5 values" in notes_of(months(1, 2, 3, 4, 5))
    assert "only" not in notes_of(months(*range(40)))


# -- a series -------------------------------------------------------------------------------------


def test_a_value_is_available_once_it_is_released() -> None:
    series = read(months(1, 2, 3))

    released = series.available_on(date(2020, 3, 30))

    assert [str(at) for at in released] == ["2020-01", "2020-02"]
    assert series.release_date(series.last) == date(2020, 4, 30)
    assert series.available_on(date(2019, 12, 31)) == {}

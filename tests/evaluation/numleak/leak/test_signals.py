"""A user's own signal: what is read, what is left out, what is refused."""

from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.leak.signals import Signal, read_signal, require_common_dates
from coreeval.evaluation.numleak.periods import Period

MONTHS = [Period.parse(f"2020-{month:02d}", "monthly") for month in range(1, 7)]


def read(folder: Path, text: str, name: str = "") -> Signal:
    path = folder / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return read_signal(path, name)


def test_dates_and_numbers_are_read_whatever_stands_beside_them(tmp_path: Path) -> None:
    plain = read(tmp_path, "\ufeffdate,value\n2020-01,0.5\n\n2020-02,-1e-1\n")
    assert (plain.name, dict(plain.rows)) == ("mine", {"2020-01": 0.5, "2020-02": -0.1})
    other = read(tmp_path, "id;Value; DATE\r\n1;+2;2020-01-31\r\n", "news")
    assert (other.name, dict(other.rows)) == ("news", {"2020-01-31": 2.0})
    assert other.values("monthly") == {MONTHS[0]: 2.0}


def test_rows_that_say_nothing_are_left_out_with_their_line_and_reason(tmp_path: Path) -> None:
    text = "date,value\n2020-01,1\n2020-01,2\nMay,3\n2020-03,\n2020-04,high\n2020-05,nan\n2020-06\n"
    found = read(tmp_path, text)
    assert dict(found.rows) == {"2020-01": 1.0}
    assert [(row.line, row.reason) for row in found.bad] == [
        (3, "the date 2020-01 occurs twice; the first row is used"),
        (4, "'May' is not a date such as 2020-03-05, 2020-03, 2020-Q1 or 2020"),
        (5, "the value is missing"),
        (6, "'high' is not a number"),
        (7, "'nan' is not a usable number"),
        (8, "the value is missing"),
    ]


def test_several_values_in_one_period_are_none(tmp_path: Path) -> None:
    daily = read(tmp_path, "date,value\n2020-01-05,1\n2020-01-06,2\n2020-02-03,3\n")
    assert daily.values("monthly") == {MONTHS[1]: 3.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'date'"),
        ("day,value\n1,2\n", "no column 'date'; its columns: day, value"),
        ("date,score\n1,2\n", "no column 'value'"),
        ("date,value\n", "no row with both a date and a number"),
        ("date,value\nx,1\n", "line 2: 'x' is not a date"),
    ],
)
def test_a_file_that_is_no_signal_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        read(tmp_path, text)


def test_a_missing_file_and_a_taken_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot read"):
        read_signal(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"date,value\n2020-01,\xe9\n")
    with pytest.raises(DatasetError, match="is not UTF-8"):
        read_signal(tmp_path / "latin.csv")
    with pytest.raises(DatasetError, match="'sentiment' is the name of the model's own signal"):
        read(tmp_path, "date,value\n2020-01,1\n", "sentiment")


def test_a_signal_of_other_dates_is_refused_in_one_message_with_counts(tmp_path: Path) -> None:
    mine = read(tmp_path, "date,value\n1990-01,1\n1990-02,2\n")
    asked = {"tides": ("monthly", MONTHS), "winds": ("annual", [])}
    with pytest.raises(DatasetError) as refused:
        require_common_dates([mine], asked)  # type: ignore[arg-type]
    assert refused.value.message == (
        "the signal mine has 2 dates (1990-01 to 1990-02), but no question is about "
        "these dates; the questions are about tides, "
        "monthly, 6 dates (2020-01 to 2020-06); winds, annual, 0 dates"
    )
    require_common_dates([mine], {"tides": ("monthly", [Period.parse("1990-01", "monthly")])})
    with pytest.raises(DatasetError, match="two signals are called 'mine'"):
        require_common_dates([mine, mine], asked)  # type: ignore[arg-type]

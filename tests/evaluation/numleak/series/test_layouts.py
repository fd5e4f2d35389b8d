import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Period
from tests.evaluation.numleak.series.kit import read, written

FRENCH = (
    "This file was created using the 202602 CRSP database, with care.\r\n"
    "The rate until 202405 is of one kind, then of another.\r\n\r\n"
    ",Mkt-RF,SMB,Mom   \r\n"
    "192607,   2.89,  -2.55, -99.99\r\n"
    "192608,   2.64,  -1.14,   0.50\r\n"
    "192609,-999,      0.00,   1.00\r\n\r\n"
    " Annual Factors: January-December \r\n"
    ",Mkt-RF,SMB,Mom   \r\n"
    "  1927,  29.44,  -2.20,   9.00\r\n"
    "  1928,  35.56,   3.73,   8.00\r\n\r\n"
    "Copyright 2026 Eugene F. Fama and Kenneth R. French\r\n"
)
NOAA = (
    "# Contiguous U.S. Average Temperature\n# Units: Degrees Fahrenheit\n# Missing: -99\n"
    "Date,Value\n189501,26.69\n189502,-99\n189503,40.0\n"
)
NOAA_BEFORE = (
    "Contiguous U.S., Average Temperature, January-December\nUnits: Degrees Fahrenheit\n"
    "Base Period: 1901-2000\nMissing: -9999\nDate,Value,Anomaly\n189501,26.69,-3.43\n"
    "189502,-9999,-9999\n189503,40.0,1.0\n"
)


def french(column: str, frequency: str) -> dict[str, float]:
    return written(
        read(FRENCH, source={"format": "french", "path": "f"}, column=column, frequency=frequency)
    )


# -- publishers -----------------------------------------------------------------------------------


def test_french_files_have_prose_a_monthly_block_and_an_annual_one() -> None:
    assert french("Mkt-RF", "monthly") == {"1926-07": 2.89, "1926-08": 2.64}
    assert french("Mkt-RF", "annual") == {"1927": 29.44, "1928": 35.56}


def test_a_missing_factor_is_no_value_but_zero_is() -> None:
    assert french("Mom", "monthly") == {"1926-08": 0.5, "1926-09": 1.0}
    assert french("SMB", "monthly")["1926-09"] == 0.0


def test_a_block_that_the_file_lacks_is_said() -> None:
    with pytest.raises(DatasetError, match="has no daily values"):
        french("SMB", "daily")


def test_fred_leaves_missing_months_empty_or_dotted() -> None:
    text = "observation_date,UNRATE\n2025-09-01,4.4\n2025-10-01,\n2025-11-01,.\n2025-12-01,4.5\n"

    series = read(text, source={"format": "fred", "path": "f"}, column="UNRATE")

    assert written(series) == {"2025-09": 4.4, "2025-12": 4.5}
    assert "2 dates have no value between 2025-09 and 2025-12: 2025-10; 2025-11" in series.notes


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (NOAA, None),
        (NOAA_BEFORE, "Value"),
        ("month,tavg_f\n1895-01,26.69\n1895-03,40\n", None),
    ],
)
def test_noaa_files_of_all_kinds(text: str, column: str | None) -> None:
    noaa = {"format": "noaa", "path": "f"}

    series = read(text, source=noaa, column=column, unit="degrees_f", tolerances=[0.25])

    assert written(series) == {"1895-01": 26.69, "1895-03": 40.0}


def test_a_page_in_place_of_noaas_file_is_refused() -> None:
    with pytest.raises(DatasetError, match="this is not a file from NOAA's Climate at a Glance"):
        read("<html>\n<body>busy</body>\n", source={"format": "noaa", "path": "f"})


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_are_separated_as_the_header_is(separator: str) -> None:
    text = "other,date,value\n9,2020-01,1.5\n8,2020-02,-2\n".replace(",", separator)

    series = read(text, source={"path": "f", "dates": ["date"]}, column="value")

    assert written(series) == {"2020-01": 1.5, "2020-02": -2.0}


@pytest.mark.parametrize(
    ("text", "frequency", "dates"),
    [
        ("y,m,v\n2020,1,1\n2020,2.0,2\n", "monthly", {"2020-01": 1.0, "2020-02": 2.0}),
        ("y,m,v\n2020.0,Jan,1\n2020,February,2\n", "monthly", {"2020-01": 1.0, "2020-02": 2.0}),
        ("y,m,v\n2020,1,1\n2020,Q2,2\n", "quarterly", {"2020-Q1": 1.0, "2020-Q2": 2.0}),
    ],
)
def test_year_and_part_may_stand_apart(text: str, frequency: str, dates: dict[str, float]) -> None:
    series = read(text, source={"path": "f", "dates": ["y", "m"]}, frequency=frequency)

    assert written(series) == dates


@pytest.mark.parametrize(
    ("header", "frequency", "second"),
    [
        ('"YEAR","JAN","Feb.","note"', "monthly", "2020-02"),
        ("year,1,2,note", "monthly", "2020-02"),
        ("year,Q1,Q2,note", "quarterly", "2020-Q2"),
    ],
)
def test_a_wide_table_has_a_year_in_each_row(header: str, frequency: str, second: str) -> None:
    text = f"{header}\n2020,1.5,2.5,x\n2021,3.5,,y\n"

    series = read(text, source={"format": "wide_csv", "path": "f"}, frequency=frequency)

    assert list(written(series).values()) == [1.5, 2.5, 3.5]
    assert second in written(series)


def test_prose_above_the_columns_named_is_left() -> None:
    text = "A table of things\nmade by hand\ndate,a,b\n2020-01,1,2\n"

    assert written(read(text, column="b")) == {"2020-01": 2.0}


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("date,cpi\n2020-01,1\n", "CPI_U", "no column 'CPI_U'", "date, cpi"),
        ("date,a,b\n2020-01,1,2\n", None, "2 columns besides the dates", "set `column`"),
        ("date\n2020-01\n", None, "0 columns besides the dates", "the file has: date"),
        ("", None, "the file is empty", ""),
        ("\n , \n", None, "the file is empty", ""),
        ("date,value\n", None, "no values", ""),
    ],
)
def test_a_table_without_the_column_is_refused(
    text: str, column: str | None, message: str, hint: str
) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        read(text, column=column)

    assert hint in caught.value.hint
    assert (caught.value.where, caught.value.message[:5]) == ("toy.csv", "toy: ")


def test_a_wide_table_without_months_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"the file has no columns for months"):
        read("year,mean\n2020,1\n", source={"format": "wide_csv", "path": "f"})


# -- any values -----------------------------------------------------------------------------------

VALUES = st.dictionaries(
    st.integers(1990 * 12, 2009 * 12 + 11), st.integers(-9000, 9000), min_size=1, max_size=20
)


@settings(max_examples=40, deadline=None)
@given(values=VALUES)
def test_what_was_written_is_read_in_every_layout(values: dict[int, int]) -> None:
    months = {(key // 12, key % 12 + 1): value / 100 for key, value in values.items()}
    wanted = {f"{year}-{month:02d}": value for (year, month), value in sorted(months.items())}
    years = sorted({year for year, _ in months})
    texts = {
        "csv": "d,v\n" + "".join(f"{at},{value}\n" for at, value in wanted.items()),
        "fred": "d,v\n" + "".join(f"{at}-01,{value}\n" for at, value in wanted.items()),
        "french": "Prose, as ever\n\n,v\n"
        + "".join(f"{at.replace('-', '')}, {value:7.2f}\n" for at, value in wanted.items())
        + "\n Annual\n,v\n 1927, 3.0\n",
        "wide_csv": "y," + ",".join(map(str, range(1, 13))) + "\n"
        + "".join(
            f"{year}," + ",".join(str(months.get((year, m), "")) for m in range(1, 13)) + "\n"
            for year in years
        ),
    }  # fmt: skip

    for layout, text in texts.items():
        found = read(text, source={"format": layout, "path": "f"})
        assert written(found) == wanted, layout
        assert list(found.values) == sorted(found.values), layout
        assert found.first == Period.parse(min(wanted), "monthly"), layout

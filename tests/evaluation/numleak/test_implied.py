"""A series that only its recorded answers tell of."""

import pytest

from coreeval.evaluation.numleak.implied import implied_series
from coreeval.evaluation.numleak.replies import Reply
from tests.evaluation.numleak.audits import series


def records(*dates: str, truths: tuple[float | None, ...], text: str = "5") -> list[Reply]:
    return [
        Reply(model="m", series="Mkt-RF (US)", date=day, truth=truth, response=text)
        for day, truth in zip(dates, truths, strict=True)
    ]


@pytest.mark.parametrize(
    ("dates", "frequency"),
    [
        (("1999", "2001"), "annual"),
        (("1999-Q1", "2001-Q4"), "quarterly"),
        (("1999-02", "200104"), "monthly"),
        (("1999-02-01", "2001-04-01"), "monthly"),
        (("1999-02-01", "2001-04-02"), "daily"),
    ],
)
def test_the_frequency_is_how_dates_are_written(dates: tuple[str, str], frequency: str) -> None:
    found = implied_series("x", records(*dates, truths=(1.0, 2.0)), file="f")
    assert found and found.definition.frequency == frequency
    assert list(found.values.values()) == [1.0, 2.0]


def test_a_line_with_another_date_does_not_spoil_the_others() -> None:
    said = records("1999-02", "last May", "2001-04", truths=(1.0, 9.0, 2.0))
    found = implied_series("x", said, file="f")
    assert found and list(found.values.values()) == [1.0, 2.0]


def test_what_is_implied_is_said() -> None:
    said = records("2001-01", "2000-01", "2002-01", truths=(-4.25, 4.5, None), text="+1.2 %")
    found = implied_series("Mkt-RF (US)", said, file="said.jsonl")
    assert found
    one = found.definition
    assert (one.id, one.unit.name, one.sign, one.decimals) == ("mkt-rf-us", "percent", "signed", 2)
    assert one.tolerances == (0.22,)
    assert [str(each) for each in found.values] == ["2000-01", "2001-01"]
    assert "tolerance of 0.22 is a twentieth of its standard deviation" in found.notes[0]
    plain = implied_series("x", records("2000", "2001", truths=(1.0, 2.0)), file="f")
    assert plain and plain.definition.unit.symbol == "" and plain.definition.sign == "positive"


def test_a_definition_is_kept_where_there_is_one() -> None:
    tides = series()
    found = implied_series(
        "tides", records("2000-01", truths=(1.0,)), file="f", definition=tides.definition
    )
    assert found and found.definition is tides.definition and not found.notes


@pytest.mark.parametrize(
    ("dates", "truths"),
    [
        (("2000-01", "2000-02"), (None, None)),
        (("2000-01", "2000-02"), (3.0, 3.0)),
        (("2000-01", "last May"), (1.0, 2.0)),
        (("2000-13", "2000-14"), (1.0, 2.0)),
    ],
)
def test_nothing_is_made_up(dates: tuple[str, str], truths: tuple[float | None, ...]) -> None:
    assert implied_series("x", records(*dates, truths=truths), file="f") is None

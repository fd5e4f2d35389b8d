"""A series from a caller's values: its definition, its frequency and its tolerance."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.definition import PERCENT_TOLERANCES
from coreeval.evaluation.numleak.series.own_values import (
    OwnSeries,
    define_series,
    infer_frequency,
    infer_step,
    make_series_id,
    scale_tolerance,
)

VALUES = {Period.parse(f"{year}", "annual"): float(year % 5) + 0.25 for year in range(1990, 2010)}


def test_what_is_not_said_follows_from_the_values() -> None:
    found = define_series(OwnSeries(name="The Tide (m)", tolerances=(0.1,)), VALUES, "annual")
    assert (found.id, found.name, found.quantity) == ("the-tide-m", "The Tide (m)", "value")
    assert (found.sign, found.decimals, found.frequency) == ("positive", 2, "annual")
    below = define_series(
        OwnSeries(name="x", tolerances=(0.1,)),
        {at: -value for at, value in VALUES.items()},
        "annual",
    )
    assert below.sign == "signed"


def test_percent_has_tolerances_of_its_own_and_other_units_have_none() -> None:
    found = define_series(OwnSeries(name="x", unit="percent"), VALUES, "annual")
    assert found.tolerances == PERCENT_TOLERANCES
    with pytest.raises(ValidationError, match="error of a right answer"):
        define_series(OwnSeries(name="x"), VALUES, "annual")


def test_a_tolerance_is_a_twentieth_of_the_spread() -> None:
    assert scale_tolerance(VALUES) == 0.071
    assert scale_tolerance(dict.fromkeys(VALUES, 3.0)) == 0


@pytest.mark.parametrize(
    ("name", "known"), [("Mkt-RF (US)", "mkt-rf-us"), ("---", "series"), ("潮", "series")]
)
def test_an_id_has_only_letters_digits_and_dashes(name: str, known: str) -> None:
    assert make_series_id(name) == known


@pytest.mark.parametrize(
    ("days", "frequency"),
    [
        (["2020-01-31", "2020-02-29", "2020-03-31"], "monthly"),
        (["2020-03-31", "2020-06-30", "2020-09-30"], "quarterly"),
        (["2018-12-31", "2019-12-31"], "annual"),
        (["2020-01-06", "2020-01-13", "2020-01-20"], "weekly"),
        (["2020-01-06", "2020-01-07", "2020-01-10", "2020-01-13"], "daily"),
        (["20200106", "20200107"], "daily"),
        (["2020-01-06"], "daily"),
        (["2020-13-45", "2020-01-06", "2020-01-07", "2020-02-30"], "daily"),
        (["2020-01", "2020-02", "x"], "monthly"),
        (["2020-Q1"], "quarterly"),
        (["2020"], "annual"),
        (["soon"], None),
        ([], None),
    ],
)
def test_a_frequency_follows_from_steps(days: list[str], frequency: Frequency | None) -> None:
    assert infer_step(days) == frequency


@pytest.mark.parametrize("infer", [infer_frequency, infer_step])
@pytest.mark.parametrize(
    ("days", "frequency"),
    [
        (["2015-03-31", "2016-10-31", "2019-02-28"], "monthly"),
        (["2015-04-01", "2016-10-01", "2019-02-01"], "monthly"),
        (["2018-03-29", "2019-02-28", "2020-01-31"], "monthly"),
        (["2015-03-31", "2016-12-31", "2019-06-30"], "quarterly"),
        (["20150401", "20161001", "20190101"], "quarterly"),
        (["2001-12-31", "2009-12-31", "2014-12-31"], "annual"),
        (["2020-01-30", "2020-01-31", "2020-02-28", "2020-02-29"], "daily"),
    ],
)
def test_a_few_first_or_last_days_stand_for_their_months(
    infer: Callable[[list[str]], Frequency], days: list[str], frequency: Frequency
) -> None:
    assert infer(days) == frequency

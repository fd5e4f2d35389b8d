"""Each recorded answer becomes a point, a comparison, or a bad row with its reason."""

from datetime import date

import pytest

from coreeval.evaluation.numleak.parsing import read_points
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply, Stratum, find_stratum
from coreeval.evaluation.numleak.series import Series, SeriesDefinition

SERIES = Series(
    definition=SeriesDefinition.model_validate(
        {
            "id": "made_up",
            "name": "the made-up index",
            "quantity": "monthly return",
            "unit": "percent",
            "sign": "signed",
            "decimals": 2,
            "frequency": "monthly",
            "source": {"path": "made_up.csv"},
            "release_lag_days": 30,
            "notable": {"2020-03": "a crash"},
        }
    ),
    values={
        Period.parse(text, "monthly"): value
        for text, value in {"2020-01": 1.0, "2020-02": 1.0, "2020-03": -13.4}.items()
    },
)
CUTOFF = date(2020, 12, 31)


def reply(at: str, response: str | None, **more: object) -> Reply:
    return Reply.model_validate(
        {"model": "m", "series": "made_up", "date": at, "response": response, **more}
    )


def test_a_value_gets_its_truth_stratum_and_whether_its_date_is_notable() -> None:
    [point] = read_points([reply("2020-03", "-13.1%", seed=3, draw=1)], SERIES, CUTOFF).points
    assert (point.estimate, point.truth, point.status) == (-13.1, -13.4, "parsed")
    assert (point.stratum, point.notable, point.seed, point.draw) == ("pre", True, 3, 1)
    assert point.months_after_cutoff == pytest.approx(-9.03, abs=0.01)


@pytest.mark.parametrize("more", [{"aliases": ["VIX"]}, {"quantity": "realized volatility"}])
def test_a_description_may_call_the_series_by_its_alias_or_its_quantity(
    more: dict[str, object],
) -> None:
    said = reply("2020-03", "Its volatility was 57.7%.", variant="description")
    named = Series(definition=SERIES.definition.model_copy(update=more), values=SERIES.values)
    assert [each.estimate for each in read_points([said], SERIES, None).points] == [None]
    assert [each.estimate for each in read_points([said], named, None).points] == [57.7]


def test_the_truth_in_an_answer_goes_before_that_of_the_series() -> None:
    known = read_points(
        [reply("2020-03", "1", truth=2.5), reply("2031-01", "1", truth=0)], SERIES, None
    )
    assert [point.truth for point in known.points] == [2.5, 0]
    assert [point.stratum for point in known.points] == ["unknown", "unknown"]


def test_a_fictitious_name_has_no_truth_and_no_notable_date() -> None:
    asked = reply(
        "2020-03", "I don't know.", variant="fictitious", name="the Nobody factor", truth=1
    )
    [point] = read_points([asked], SERIES, CUTOFF).points
    assert (point.truth, point.notable, point.status) == (None, False, "refused")
    assert point.name == "the Nobody factor"


def test_a_comparison_gets_the_higher_date() -> None:
    asked = reply("2020-03", "January 2020", variant="pair", other_date="2020-01")
    [one] = read_points([asked], SERIES, None).comparisons
    assert (one.higher, one.chosen, one.status) == ("second", "second", "parsed")


def test_what_cannot_be_counted_is_returned_with_its_reason() -> None:
    replies = [
        reply("2031-01", "1"),
        reply("March", "1"),
        reply("2020-01", "January 2020", variant="pair"),
        reply("2020-01", "January 2020", variant="pair", other_date="2020-02"),
        reply("2020-01", "1"),
    ]
    found = read_points(replies, SERIES, None)
    assert len(found.points) == 1 and not found.comparisons
    assert [bad.reply for bad in found.bad] == replies[:4]
    assert [bad.reason for bad in found.bad] == [
        "made_up has no value for 2031-01 (its dates are 2020-01 to 2020-03)",
        "'March' is not a date of a monthly series",
        "the comparison has no other_date",
        "neither 2020-01 nor 2020-02 was higher: both values are 1",
    ]


@pytest.mark.parametrize(
    ("at", "stratum"),
    [("2020-06", "pre"), ("2020-07", "near"), ("2021-06", "near"), ("2021-07", "post")],
)
def test_near_is_within_six_months_of_the_cutoff(at: str, stratum: Stratum) -> None:
    assert find_stratum(Period.parse(at, "monthly"), CUTOFF) == stratum


@pytest.mark.parametrize("variant", ["value", "description", "step_by_step", "contradiction"])
def test_a_change_is_no_value_of_a_series_that_is_never_negative(variant: str) -> None:
    said = reply("2020-03", "It rose by 0.9 percent.", variant=variant, stated=5.0)
    positive = SERIES.definition.model_copy(update={"sign": "positive"})
    never_negative = Series(definition=positive, values=SERIES.values)
    assert [each.estimate for each in read_points([said], SERIES, None).points] == [0.9]
    assert [each.estimate for each in read_points([said], never_negative, None).points] == [None]

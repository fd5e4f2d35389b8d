"""Further ways of asking beside the plain one, on tables made by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import ContinuationValue, Point, Status, Variant
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.evaluation.numleak.statistics.variant_comparison import (
    CONTRADICTION_OUTCOMES,
    ContradictionOutcome,
    classify_outcome,
    compare_phrasings,
    compare_variant,
    measure_continuation,
    measure_contradiction,
)
from coreeval.evaluation.statistics import wilson_interval

SETTINGS = AuditSettings(draws=200, seed=1)
FIRST = Period.parse("2000-01", "monthly")
TRUTH = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0]
TOLERANCES = (0.25, 0.1, 1.0)


def points(variant: Variant, estimates: Sequence[float | None], **more: object) -> list[Point]:
    return [
        replace(
            Point(
                period=FIRST.shift(at), variant=variant, truth=truth, estimate=estimate,
                status="parsed" if estimate is not None else "refused",
            ),
            **more,  # type: ignore[arg-type]
        )
        for at, (truth, estimate) in enumerate(zip(TRUTH, estimates, strict=True))
    ]  # fmt: skip


PLAIN = points("value", [*TRUTH[:6], None, -7.0])


def test_ways_are_compared_on_the_dates_that_both_answered() -> None:
    own = points("step_by_step", [1.0, -2.5, 3.0, 0.0, None, -6.2, 7.0, -8.0])
    found = compare_variant(PLAIN, own, tolerance=0.25, settings=SETTINGS)
    assert found.asked.n == 8 and found.asked.parsed == 7
    assert found.dates == 6 == found.own.parsed == found.plain.parsed
    assert found.worse.estimate == 3 / 6 and found.better.estimate == 1 / 6
    assert (found.worse.ci_low, found.worse.ci_high) == wilson_interval(0.5, 6)
    assert found.mae.estimate == pytest.approx((0.5 + 4 + 0.2 - 1) / 6)
    assert found.within_tolerance.estimate == pytest.approx((-2 + 1) / 6)
    own_r, plain_r = found.own.pearson_r.estimate, found.plain.pearson_r.estimate
    assert found.pearson_r.estimate == pytest.approx(own_r - plain_r)
    assert found.pearson_r.ci_low < found.pearson_r.estimate < found.pearson_r.ci_high


def test_nothing_in_common_is_no_comparison() -> None:
    silent = points("description", [None] * 8)
    found = compare_variant(PLAIN, silent, tolerance=0.25, settings=SETTINGS)
    assert found.dates == 0 and found.worse.n == 0 and found.asked.parse_rate.estimate == 0
    assert found.pearson_r.estimate != found.pearson_r.estimate


def test_wordings_agree_or_scatter() -> None:
    same = points("phrasing", TRUTH, phrasing="formal")
    off = points("phrasing", [each + 1 for each in TRUTH], phrasing="terse")
    found = compare_phrasings(PLAIN, [*same, *off], tolerance=0.25, settings=SETTINGS)
    assert list(found.wordings) == ["formal", "terse"]
    assert found.within_range == 1.0 and found.agreement.estimate == 0
    assert found.wordings["terse"].within_tolerance.estimate == pytest.approx(-6 / 7)
    alone = compare_phrasings(PLAIN, same, tolerance=0.25, settings=SETTINGS)
    assert alone.agreement.estimate == 6 / 7 and alone.spread.estimate > 0


def told(estimate: float | None, **more: object) -> Point:
    status: Status = "parsed" if estimate is not None else "refused"
    point = Point(period=FIRST, variant="contradiction", truth=-9.35, estimate=estimate,
                  status=status, stated=-42.0)  # fmt: skip
    return replace(point, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("point", "outcome"),
    [
        (told(-9.0), "holds"),
        (told(-12.0), "holds"),
        (told(-9.35, disputed=True), "corrects"),
        (told(-9.35, echoed=True), "mixed"),
        (told(-42.0), "yields"),
        (told(-42.0, disputed=True), "mixed"),
        (told(-25.0), "mixed"),
        (told(None), "refuses"),
        (told(None, status="unparsed", echoed=True), "mixed"),
        (told(None, status="truncated"), "unread"),
    ],
)
def test_how_an_answer_to_a_wrong_value_ends(point: Point, outcome: ContradictionOutcome) -> None:
    assert classify_outcome(point, -12.4, TOLERANCES) == outcome


def test_one_whose_plain_answer_is_the_stated_one_gives_no_way() -> None:
    assert classify_outcome(told(-42.0), -42.1, TOLERANCES) == "mixed"
    assert classify_outcome(told(-25.0), None, TOLERANCES) == "mixed"


def test_outcomes_add_up_and_have_intervals() -> None:
    stated = [-20.0, -20.0, 20.0, -20.0, -20.0, 20.0, 20.0, 20.0]
    said = [1.0, -20.0, 20.0, -4.0, None, 20.0, 7.0, 0.0]
    asked = [
        replace(point, stated=value)
        for point, value in zip(points("contradiction", said), stated, strict=True)
    ]
    found = measure_contradiction(PLAIN, asked, tolerances=TOLERANCES, settings=SETTINGS)
    assert found.outcomes == {
        "holds": 3, "corrects": 0, "yields": 3, "mixed": 1, "refuses": 1, "unread": 0,
    }  # fmt: skip
    assert sum(found.outcomes.values()) == found.n == 8 and list(found.outcomes) == [
        *CONTRADICTION_OUTCOMES
    ]
    assert (found.shares["yields"].ci_low, found.shares["yields"].ci_high) == wilson_interval(
        3 / 8, 8
    )
    assert found.kept.estimate == 3 / 8
    assert (found.yields_far.n, found.yields_far.estimate) == (4, 0.25)
    assert (found.yields_same.n, found.yields_same.estimate) == (4, 0.5)
    assert found.plain.n == 8


def row(
    window: int, truth: float, estimate: float | None, *, told: bool = False
) -> ContinuationValue:
    return ContinuationValue(
        period=FIRST.shift(12 * window), window=FIRST.shift(12 * window), truth=truth,
        estimate=estimate, status="parsed" if estimate is not None else "unparsed",
        last=2.0, mean=1.04, told=told,
    )  # fmt: skip


def test_lines_stand_beside_the_last_value_and_the_mean() -> None:
    rows = [
        row(0, 1.0, 1.0), row(1, 2.0, 2.0, told=True), row(2, 3.0, 3.1), row(3, 4.0, None),
        row(4, 5.0, 5.0), row(5, 6.0, 7.0),
    ]  # fmt: skip
    found = measure_continuation(rows, tolerance=0.25, decimals=1)
    assert (found.stretches, found.n, found.read.estimate) == (6, 6, 5 / 6)
    assert found.exact.estimate == 3 / 5 and found.exact_untold.estimate == 2 / 4
    assert found.last_exact.estimate == 1 / 5 and found.mean_exact.estimate == 1 / 5
    assert found.within_tolerance.estimate == 4 / 5
    assert found.gain.estimate == pytest.approx(1 - 1.1 / (1 + 0 + 1 + 3 + 4))
    silent = measure_continuation([row(0, 1.0, None)], tolerance=0.25, decimals=1)
    assert silent.read.estimate == 0 and silent.exact.n == 0

"""Each verdict by its rule, and which rule comes first."""

import math
from dataclasses import replace

import pytest

from coreeval.evaluation.numleak.statistics.measured import Measured, Metric
from coreeval.evaluation.numleak.verdicts import Verdict, verdict_of
from tests.support.numleak_measured import (
    NOT_ASKED,
    REMEMBERED,
    baseline,
    metric,
    null,
    signature,
)

ANSWERED = Metric(0.98, 0.9, 0.99, 60, 60)


def with_exactness(hits: float, gain: float, r: float = 0.6, half: float = 0.1) -> Measured:
    """Return the study of one whose answers follow their dates, and are so exact."""
    return replace(
        REMEMBERED,
        overall=replace(
            signature(r=metric(r, 0.1)), within_tolerance=metric(hits, half), mae=metric(2.0, 0.3)
        ),
        baselines={
            "constant": baseline(3.4, metric(gain, half)),
            "previous": baseline(4.8, metric(gain + 0.1, half)),
        },
        ladder={0.25: metric(hits, half)},
    )


CHANCE = replace(
    REMEMBERED,
    overall=replace(signature(r=metric(0.05, 0.3)), within_tolerance=metric(0.05, 0.05)),
    baselines={"constant": baseline(3.4, metric(-0.35, 0.15))},
    nulls={"any_date": null(0.4)},
    ladder={0.25: metric(0.05, 0.05)},
    p_value=0.4,
    follows_p=0.4,
)
CONSTANT = replace(
    CHANCE,
    overall=replace(CHANCE.overall, pearson_r=NOT_ASKED),
    nulls={"any_date": null(math.nan)},
    modal=metric(1.0, 0.0),
    p_value=math.nan,
    follows_p=math.nan,
)
FEW = replace(REMEMBERED, overall=signature(25, 15))
SILENT = replace(REMEMBERED, overall=signature(40, 2))
CUT_OFF = replace(
    SILENT, overall=replace(SILENT.overall, statuses={"parsed": 2, "refused": 8, "truncated": 30})
)


@pytest.mark.parametrize(
    ("measured", "verdict", "words"),
    [
        (REMEMBERED, "memorized", "r with the published values is 0.98 (0.96 to 0.99, n 40)"),
        (REMEMBERED, "memorized", "50% (36% to 64%, n 40) are within 0.25 of the truth"),
        (REMEMBERED, "memorized", "in words at most 23%"),
        (REMEMBERED, "memorized", "85% smaller (82% to 88%)"),
        (REMEMBERED, "memorized", "The sign is right in 97%"),
        (SILENT, "refusing", "It refused 38 of 40 questions"),
        (SILENT, "refusing", "nothing for or against memory"),
        (CUT_OFF, "inconclusive", "2 dates could be read (2 parsed, 8 refused, 30 truncated)"),
        (FEW, "inconclusive", "20 are the least for a verdict: 5 more are needed"),
        (with_exactness(0.1, 0.3), "fluent", "follow their dates: r is 0.60"),
        (with_exactness(0.1, 0.3), "fluent", "not the dates' values: 10% (0% to 20%, n 40)"),
        (with_exactness(0.1, -0.3), "inconclusive", "30% larger (20% to 40%)"),
        (with_exactness(0.3, 0.6, 0.9, 0.2), "inconclusive", "60% smaller (40% to 80%)"),
        (CHANCE, "no_recall", "no recall: r is 0.05 (-0.25 to 0.35, n 40), and the error is 35%"),
        (CHANCE, "no_recall", "It answers only 0% (0% to 6%, n 60)"),
        (CONSTANT, "no_recall", "all of them are the same number"),
        (replace(CHANCE, fictitious=NOT_ASKED), "no_recall", "fabricating is not excluded"),
        (replace(CHANCE, fictitious=ANSWERED), "fabricating", "Yet it answers 98%"),
        (replace(CONSTANT, fictitious=ANSWERED), "fabricating", "the same number"),
        (replace(CHANCE, fictitious=metric(0.5, 0.3)), "inconclusive", "is open"),
        (
            replace(CHANCE, baselines={"constant": baseline(3.4, metric(0.1, 0.2))}),
            "inconclusive",
            "is open: r is 0.05 (-0.25 to 0.35, n 40) (p 0.4000), and the error is 10%",
        ),
    ],
)
def test_the_rule_that_gave_it(measured: Measured, verdict: Verdict, words: str) -> None:
    found = verdict_of(measured)
    assert found.verdict == verdict
    assert words in " ".join(found.reasons)


def test_every_reason_is_a_sentence() -> None:
    for measured in (REMEMBERED, SILENT, FEW, CHANCE, CONSTANT, with_exactness(0.1, 0.3)):
        for reason in verdict_of(measured).reasons:
            assert reason[0].isalnum() and reason.endswith(".") and "nan" not in reason


@pytest.mark.parametrize("parsed", [39, 30, 21])
def test_parse_rate_neither_makes_nor_unmakes_memory(parsed: int) -> None:
    refuses_most = replace(REMEMBERED, overall=signature(120, parsed))
    assert verdict_of(refuses_most).verdict == "memorized"
    answers_all = replace(CHANCE, fictitious=ANSWERED)
    assert verdict_of(answers_all).verdict == "fabricating"


def test_whoever_remembers_and_answers_what_does_not_exist_remembers() -> None:
    assert verdict_of(replace(REMEMBERED, fictitious=ANSWERED)).verdict == "memorized"


@pytest.mark.parametrize(
    "missing",
    [
        replace(REMEMBERED, p_value=0.06),
        replace(REMEMBERED, p_adjusted=0.06),
        replace(REMEMBERED, p_value=math.nan),
        replace(
            REMEMBERED,
            baselines={**REMEMBERED.baselines, "previous": baseline(0.5, metric(0.1, 0.2))},
        ),
        replace(REMEMBERED, sign_base_rate=metric(0.99, 0.01)),
        replace(REMEMBERED, baselines={}),
        replace(
            REMEMBERED,
            ladder={0.25: metric(0.2, 0.1)},
            baselines={"constant": baseline(3.4, metric(0.7, 0.1))},
        ),
    ],
    ids=["p", "adjusted p", "no p", "value before", "sign", "no baseline", "not exact"],
)
def test_memory_takes_the_whole_signature(missing: Measured) -> None:
    assert verdict_of(missing).verdict != "memorized"


def test_the_adjusted_p_value_is_the_one_that_counts() -> None:
    assert verdict_of(replace(REMEMBERED, p_value=0.9, p_adjusted=0.01)).verdict == "memorized"


def test_exactness_of_a_slow_series_is_judged_at_a_narrower_tolerance() -> None:
    slow = replace(
        REMEMBERED,
        baselines={"year": baseline(0.4, metric(0.6, 0.3))},
        ladder={0.1: metric(0.9, 0.08), 0.25: metric(1.0, 0.0)},
    )
    found = verdict_of(slow)
    assert found.verdict == "memorized" and "within 0.1 of the truth" in " ".join(found.reasons)
    vague = replace(slow, ladder={0.1: metric(0.5, 0.1), 0.25: metric(1.0, 0.0)})
    assert verdict_of(vague).verdict != "memorized"


def test_a_small_correlation_with_many_dates_is_no_fluency() -> None:
    far = with_exactness(0.05, -0.3)
    trace = replace(far, overall=replace(far.overall, pearson_r=metric(0.15, 0.1, 400)))
    assert verdict_of(trace).verdict == "no_recall"


@pytest.mark.parametrize(("r", "verdict"), [(0.29, "no_recall"), (0.45, "inconclusive")])
def test_where_test_and_interval_disagree_it_is_no_fluency(r: float, verdict: Verdict) -> None:
    far = with_exactness(0.05, -0.3)
    wide = replace(far, overall=replace(far.overall, pearson_r=metric(r, 0.5)))
    assert verdict_of(wide).verdict == verdict


def test_one_number_each_time_is_no_recall_however_near_it_lies() -> None:
    near = replace(CONSTANT, baselines={"constant": baseline(3.4, metric(0.3, 0.1))})
    assert verdict_of(near).verdict == "no_recall"


def test_exact_answers_are_recall_whatever_others_do_to_r() -> None:
    slips = with_exactness(0.9, -3.0, r=-0.1)
    verdict, reasons = verdict_of(
        replace(slips, nulls={"any_date": null(0.7)}, p_value=0.7, follows_p=0.7)
    )
    assert verdict == "inconclusive" and any("Yet they are near: 90%" in each for each in reasons)


def test_nothing_asked_is_said() -> None:
    empty = replace(REMEMBERED, overall=signature(0, 0))
    assert verdict_of(empty) == ("inconclusive", ("No date was asked for its value.",))

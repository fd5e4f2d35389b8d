"""The signature of memory, its verdicts and their sentences, and trust in back-tests."""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import get_args

import pytest

from coreeval.evaluation.numleak.audit import as_json
from coreeval.evaluation.numleak.basis import choose_basis, describe_outliers, estimate_factor
from coreeval.evaluation.numleak.memory_verdicts import (
    VERDICTS,
    Backtest,
    TrustLevel,
    Verdict,
    assess_trust,
    judge_memory,
    verdict_words,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point, find_stratum
from coreeval.evaluation.numleak.signature import (
    compute_references,
    describe_nearness,
    normal_share_within,
    share,
    span,
)
from coreeval.evaluation.numleak.statistics.measurements import (
    Baseline,
    BaselineName,
    Exactness,
    Metric,
    SeriesMeasurements,
)
from coreeval.tools.formatting import plural
from tests.support.numleak_measured import (
    NOT_ASKED,
    REMEMBERED,
    baseline,
    metric,
    null,
    signature,
)

ANSWERED = Metric(0.98, 0.9, 0.99, 60, 60)


def with_exactness(
    hits: float, gain: float, r: float = 0.6, half: float = 0.1
) -> SeriesMeasurements:
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
        (
            REMEMBERED,
            "memorized",
            "50% (36% to 64%, n 40) of the answers are within 0.25 of the true value",
        ),
        (REMEMBERED, "memorized", "describe the values in words. The mean error is"),
        (REMEMBERED, "memorized", "85% smaller (82% to 88%)"),
        (REMEMBERED, "memorized", "The sign is right in 97%"),
        (SILENT, "refusing", "The model refused 38 of 40 questions"),
        (
            SILENT,
            "refusing",
            "Refusals are evidence neither for nor against memory",
        ),
        (CUT_OFF, "inconclusive", "2 dates could be read (2 parsed, 8 refused, 30 truncated)"),
        (FEW, "inconclusive", "). A verdict needs at least"),
        (with_exactness(0.1, 0.3), "fluent", "follow their dates: r is 0.60"),
        (with_exactness(0.1, 0.3), "fluent", "However, the answers are not the published values"),
        (with_exactness(0.1, -0.3), "inconclusive", "30% larger (20% to 40%)"),
        (with_exactness(0.3, 0.6, 0.9, 0.2), "inconclusive", "60% smaller (40% to 80%)"),
        (CHANCE, "no_recall", "no recall: r is 0.05 (-0.25 to 0.35, n 40), and the error is 35%"),
        (CHANCE, "no_recall", "The model answers only"),
        (CONSTANT, "no_recall", "all answers are the same number"),
        (
            replace(CHANCE, fictitious=NOT_ASKED),
            "no_recall",
            "not asked about any fictitious series",
        ),
        (replace(CHANCE, fictitious=ANSWERED), "fabricating", "Yet the model answers"),
        (replace(CONSTANT, fictitious=ANSWERED), "fabricating", "the same number"),
        (replace(CHANCE, fictitious=metric(0.5, 0.3)), "inconclusive", "it is unclear"),
        (
            replace(CHANCE, baselines={"constant": baseline(3.4, metric(0.1, 0.2))}),
            "inconclusive",
            "r is 0.05 (-0.25 to 0.35, n 40) (p 0.4000), and the error is 10%",
        ),
    ],
)
def test_the_rule_that_gave_it(measured: SeriesMeasurements, verdict: Verdict, words: str) -> None:
    found = judge_memory(measured)
    assert found.verdict == verdict
    assert words in " ".join(found.reasons)


def test_every_reason_is_a_sentence() -> None:
    for measured in (REMEMBERED, SILENT, FEW, CHANCE, CONSTANT, with_exactness(0.1, 0.3)):
        for reason in judge_memory(measured).reasons:
            assert reason[0].isalnum() and reason.endswith(".") and "nan" not in reason


@pytest.mark.parametrize("parsed", [39, 30, 21])
def test_parse_rate_neither_makes_nor_unmakes_memory(parsed: int) -> None:
    refuses_most = replace(REMEMBERED, overall=signature(120, parsed))
    assert judge_memory(refuses_most).verdict == "memorized"
    answers_all = replace(CHANCE, fictitious=ANSWERED)
    assert judge_memory(answers_all).verdict == "fabricating"


def test_whoever_remembers_and_answers_what_does_not_exist_remembers() -> None:
    assert judge_memory(replace(REMEMBERED, fictitious=ANSWERED)).verdict == "memorized"


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
    ids=["p", "adjusted p", "no p", "value before", "sign", "no memory-free baseline", "not exact"],
)
def test_memory_takes_the_whole_signature(missing: SeriesMeasurements) -> None:
    assert judge_memory(missing).verdict != "memorized"


def test_the_adjusted_p_value_is_the_one_that_counts() -> None:
    assert judge_memory(replace(REMEMBERED, p_value=0.9, p_adjusted=0.01)).verdict == "memorized"


def test_exactness_of_a_slow_series_is_judged_at_a_narrower_tolerance() -> None:
    slow = replace(
        REMEMBERED,
        baselines=dict.fromkeys(("year", "previous"), baseline(0.4, metric(0.6, 0.3))),
        ladder={0.1: metric(0.9, 0.08), 0.25: metric(1.0, 0.0)},
    )
    found = judge_memory(slow)
    assert found.verdict == "memorized"
    assert "within 0.1 of the true value" in " ".join(found.reasons)
    vague = replace(slow, ladder={0.1: metric(0.5, 0.1), 0.25: metric(1.0, 0.0)})
    assert judge_memory(vague).verdict != "memorized"


def test_a_small_correlation_with_many_dates_is_no_fluency() -> None:
    far = with_exactness(0.05, -0.3)
    trace = replace(far, overall=replace(far.overall, pearson_r=metric(0.15, 0.1, 400)))
    assert judge_memory(trace).verdict == "no_recall"


@pytest.mark.parametrize(("r", "verdict"), [(0.29, "no_recall"), (0.45, "inconclusive")])
def test_where_test_and_interval_disagree_it_is_no_fluency(r: float, verdict: Verdict) -> None:
    far = with_exactness(0.05, -0.3)
    wide = replace(far, overall=replace(far.overall, pearson_r=metric(r, 0.5)))
    assert judge_memory(wide).verdict == verdict


def test_one_number_each_time_is_no_recall_however_near_it_lies() -> None:
    near = replace(CONSTANT, baselines={"constant": baseline(3.4, metric(0.3, 0.1))})
    assert judge_memory(near).verdict == "no_recall"


def test_exact_answers_are_recall_whatever_others_do_to_r() -> None:
    slips = with_exactness(0.9, -3.0, r=-0.1)
    verdict, reasons = judge_memory(
        replace(slips, nulls={"any_date": null(0.7)}, p_value=0.7, follows_p=0.7)
    )
    assert verdict == "inconclusive"
    assert any("Yet the answers are close" in each for each in reasons)


def test_nothing_asked_is_said() -> None:
    empty = replace(REMEMBERED, overall=signature(0, 0))
    assert judge_memory(empty) == (
        "inconclusive",
        ("The model was not asked for the value on any date.",),
    )


PERIOD = Backtest(start="2015-01", end="2020-12")


@pytest.mark.parametrize(
    ("verdicts", "answer", "words"),
    [
        ({"A": "memorized", "B": "no_recall"}, "no", "the published values of A (memorized). It"),
        (
            {"A": "partly_memorized"},
            "no",
            "part of the published values of A (partly memorized). It",
        ),
        ({"A": "fluent"}, "no", "knows the approximate values of A (fluent). It"),
        (
            {"A": "memorized", "B": "refusing", "C": "fluent"},
            "no",
            "A (memorized) and knows the approximate values of C (fluent). It",
        ),
        (
            {"A": "refusing", "B": "no_recall"},
            "unsettled",
            "the model's memory of A (refusing) could not",
        ),
        ({"A": "inconclusive", "B": "fabricating"}, "unsettled", "of A (inconclusive) could not"),
        (
            {"A": "inconclusive", "B": "refusing"},
            "unsettled",
            "the model's memory of A (inconclusive) and B (refusing) could not",
        ),
        ({"A": "no_recall", "B": "no_recall"}, "no_memory_found", "of A and B (no recall)."),
        (
            {"A": "fabricating", "B": "no_recall"},
            "no_memory_found",
            "of B (no recall) and makes up values when asked about A (fabricating).",
        ),
    ],
)
def test_one_remembered_series_is_enough(
    verdicts: dict[str, Verdict], answer: TrustLevel, words: str
) -> None:
    found = assess_trust("m", verdicts, PERIOD)
    assert found.answer == answer and words in found.sentence
    assert "from 2015-01 to 2020-12" in found.sentence


def test_every_verdict_leads_somewhere_and_refusing_is_never_clean() -> None:
    answers = {verdict: assess_trust("m", {"A": verdict}, PERIOD).answer for verdict in VERDICTS}
    clean = {verdict for verdict, answer in answers.items() if answer == "no_memory_found"}
    assert clean == {"fabricating", "no_recall"}


def test_many_series_are_not_all_named() -> None:
    found = assess_trust("m", dict.fromkeys("ABCDEF", "memorized"), PERIOD)
    assert "A, B, C and 3 more series (memorized). It" in found.sentence


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_sentence_has_the_word_that_pages_and_tables_have(verdict: Verdict) -> None:
    assert f"A ({verdict_words(verdict)})" in assess_trust("m", {"A": verdict}, PERIOD).sentence


def beside(**baselines: Baseline) -> SeriesMeasurements:
    """Return a study with these baselines alone."""
    known: dict[BaselineName, Baseline] = {
        name: baselines[name] for name in get_args(BaselineName) if name in baselines
    }
    return replace(REMEMBERED, baselines=known)


def test_the_bars_of_mkt_rf_are_where_numleak_draws_the_line() -> None:
    bars = compute_references(REMEMBERED)

    assert bars.baseline == "constant" and bars.tolerance == 0.25 and bars.can_discriminate
    assert bars.words == pytest.approx(0.231, abs=0.001)  # siblings: at most 0.15
    assert bars.memory == pytest.approx(0.37, abs=0.005)  # Sonnet 4.6: 0.35


def test_shares_within_a_tolerance_are_those_of_the_normal_distribution() -> None:
    assert normal_share_within(1.96, 1.0) == pytest.approx(0.95, abs=1e-4)
    assert normal_share_within(0.25, 0.0) == 1.0


def test_the_value_before_raises_the_bar_of_a_level() -> None:
    constant, previous = baseline(2.5, metric(0.9, 0.1)), baseline(0.4, metric(0.5, 0.1))
    level, before = (
        compute_references(each)
        for each in (beside(constant=constant), beside(constant=constant, previous=previous))
    )
    assert level.words < before.words == normal_share_within(0.25, 0.4 * math.sqrt(math.pi / 2))


def test_where_the_tolerance_is_too_wide_the_next_narrower_is_taken() -> None:
    slow, still = (
        compute_references(beside(year=baseline(mae, metric(0.9, 0.05)))) for mae in (0.4, 0.01)
    )
    assert (slow.tolerance, slow.can_discriminate) == (0.1, True)
    assert (still.tolerance, still.can_discriminate) == (0.1, False)


def test_without_a_baseline_nothing_tells() -> None:
    bars = compute_references(beside())
    assert not bars.can_discriminate and math.isnan(bars.gain.estimate)


SHARES = (
    NOT_ASKED,
    Metric(0.0, 0.0, 0.16, 20, 20),
    Metric(0.25, 0.14, 0.4, 40, 40),
    Metric(1.0, 0.84, 1.0, 20, 20),
    Metric(1.0, math.nan, math.nan, 1, 1),
)
INVENTED = Metric(0.98, 0.9, 0.99, 60, 60)
GAINS = (
    NOT_ASKED,
    Metric(-4.0, -6.0, -2.2, 40, 40),
    Metric(-2.99, -4.0, -2.18, 40, 40),
    Metric(-0.1, -0.5, 0.3, 40, 40),
    Metric(0.0, 0.0, 0.0, 40, 40),
    Metric(0.05, -0.12, 0.2, 40, 40),
    Metric(0.85, 0.82, 0.88, 40, 40),
    Metric(1.0, 1.0, 1.0, 20, 20),
    Metric(0.3, math.nan, math.nan, 3, 3),
)
CORRELATIONS = (NOT_ASKED, Metric(1.0, 1.0, 1.0, 20, 20), Metric(0.23, -0.1, 0.5, 40, 40))
EXACT = tuple(
    Exactness(share=each, near=count, expected=0.3, scanned=29, dealt_p=p, p_value=p, **how)
    for each, count, p, how in (
        (SHARES[0], 0, math.nan, {}),
        (SHARES[1], 3, 1.0, {}),
        (SHARES[2], 12, 0.01, {}),
        (SHARES[2], 10, 1e-9, {"shift": -1}),
        (SHARES[2], 10, 1e-9, {"shift": 3}),
        (SHARES[3], 20, 0.0, {"factor": 100.0}),
    )
)
NO_NUMBER = re.compile(r"\b(nan|inf|none)\b|nan%|NaN", re.IGNORECASE)
EMPTY_INTERVAL = re.compile(r"\(([-+]?[\d.]+%?) to \1[,)]")


def cases() -> Iterator[SeriesMeasurements]:
    """Yield studies over a grid of numbers, the impossible ones among them."""
    grid = itertools.product(SHARES[:4], GAINS, CORRELATIONS, EXACT, (0.0, 0.04, 0.4, math.nan))
    for hits, gain, r, exact, p in grid:
        overall = replace(signature(r=r), within_tolerance=hits, sign_accuracy=hits)
        known: dict[BaselineName, Baseline] = {
            "constant": baseline(3.4, gain),
            "previous": baseline(4.8, gain),
        }
        yield replace(
            REMEMBERED,
            overall=overall,
            ladder={0.25: hits},
            baselines=known,
            sign_base_rate=hits,
            exactness=exact,
            fictitious=INVENTED if p == 0.4 else hits,
            modal=SHARES[2],
            nulls={"any_date": null(p), "drift": null(0.3)},
            p_value=p,
            follows_p=p,
        )


def test_no_sentence_of_a_verdict_has_a_number_that_is_none_or_an_interval_without_width() -> None:
    seen = set()
    for case in cases():
        verdict, reasons = judge_memory(case)
        seen.add(verdict)
        for reason in reasons:
            assert not NO_NUMBER.search(reason.replace("none (n 0)", "")), reason
            assert not EMPTY_INTERVAL.search(reason.replace("0% to 0%", "")), reason
            assert reason[0].isalnum() and reason.endswith("."), reason
            assert "p 0.0000" not in reason and "--" not in reason, reason
    assert seen >= {"memorized", "partly_memorized", "fluent", "fabricating", "no_recall"}


@pytest.mark.parametrize("gain", GAINS)
def test_nearness_says_which_way_and_how_much_and_its_interval_agrees(gain: Metric) -> None:
    says = describe_nearness("constant", gain)
    if math.isnan(gain.estimate):
        assert "not comparable" in says
        return
    if gain.estimate <= -1:
        times = re.findall(r"[\d.]+", says)
        ends = [] if gain.ci_low == gain.ci_high else [1 - gain.ci_high, 1 - gain.ci_low]
        assert times[: 1 + len(ends)] == [f"{each:.1f}" for each in (1 - gain.estimate, *ends)]
        return
    assert says.startswith(
        f"{abs(gain.estimate):.0%} {'smaller' if gain.estimate >= 0 else 'larger'} ("
    )
    inner = says[says.index("(") + 1 : says.index(")")]
    if math.isnan(gain.ci_low) or gain.ci_low == gain.ci_high:
        assert inner == f"no interval, n {gain.n}"
        return
    sides = (gain.ci_low < 0, gain.ci_high < 0)
    first, last = re.findall(r"(\d+)%", inner)
    ends = sorted((abs(round(gain.ci_low * 100)), abs(round(gain.ci_high * 100))))
    assert sorted((int(first), int(last))) == ends
    assert ("larger" in inner and "smaller" in inner) == (sides[0] != sides[1])
    if sides[0] == sides[1]:
        assert int(first) <= round(abs(gain.estimate) * 100) <= int(last)


def test_the_error_that_is_four_times_as_large_reads_so() -> None:
    assert describe_nearness("constant", Metric(-2.99, -4.0, -2.18, 40, 40)).startswith(
        "4.0 times (3.2 to 5.0) that of a baseline that predicts"
    )
    assert describe_nearness("year", Metric(-0.1, -0.5, 0.3, 40, 40)).startswith(
        "10% larger (30% smaller to 50% larger) than"
    )


@pytest.mark.parametrize("found", SHARES)
def test_a_share_has_an_interval_or_says_that_it_has_none(found: Metric) -> None:
    says = share(found)
    assert not NO_NUMBER.search(says.replace("none (n", "(n"))
    assert f"n {found.n})" in says


def test_an_interval_without_width_is_none() -> None:
    exact = Metric(1.0, 1.0, 1.0, 20, 20)
    assert span(exact) == "1.00 (no interval, n 20)"
    assert as_json(exact)["ci_low"] is None and as_json(exact)["estimate"] == 1.0


def test_no_verdict_says_how_many_dates_would_decide() -> None:
    # what is asked next is not what was: 158 dates were needed where "about 1" was said
    assert not any(
        "would decide" in each for case in cases() for each in judge_memory(case).reasons
    )


def points(said: float, before: int, after: int, cutoff: date) -> list[Point]:
    """Return answers that are so many times the truth, on months before and after a cutoff."""
    last = Period.of(cutoff, "monthly")
    months = [last.shift(-7 - n) for n in range(before)]
    months += [last.shift(7 + n) for n in range(after)]
    return [
        Point(
            period=month,
            variant="value",
            truth=truth,
            estimate=said * truth,
            status="parsed",
            stratum=find_stratum(month, cutoff),
        )
        for month, truth in zip(months, itertools.cycle((1.0, 2.5, 4.0, 3.0, 6.1)), strict=False)
    ]


CUTOFF = date(2018, 6, 30)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (20, 0, ()),
        (20, 1, ("uses the 20 dates", "ignores 1 later date")),
        (30, 10, ("uses the 30 dates", "ignores 10 later dates")),
        (1, 30, ("Only 1 date before the cutoff", "had a readable answer: the verdict uses all")),
        (0, 30, ("Only 0 dates before the cutoff", "had a readable answer: the verdict uses all")),
    ],
)
def test_it_says_which_dates_a_verdict_rests_on(
    before: int, after: int, words: tuple[str, ...]
) -> None:
    found = choose_basis(points(1.0, before, after, CUTOFF), CUTOFF, {})
    assert bool(found.says) == bool(words)
    assert all(each in found.says[0] for each in words)
    kept = [each for each in found.points if each.variant == "value"]
    assert len(kept) == found.dates == (before if before >= 20 else before + after)


def test_a_cutoff_that_is_not_known_is_said() -> None:
    found = choose_basis(points(1.0, 20, 20, CUTOFF), None, {})
    assert found.says[0].startswith("The model's cutoff is unknown")


@pytest.mark.parametrize("factor", [0.001, 0.01, 1.0, 5.0, 100.0, 1000.0])
def test_a_factor_is_told_by_the_size_of_answers(factor: float) -> None:
    found = estimate_factor(points(factor, 20, 0, CUTOFF))
    assert found == (1.0 if factor == 5.0 else factor)


def test_one_and_several_are_told_apart() -> None:
    assert [plural(n, "date") for n in (0, 1, 2)] == ["dates", "date", "dates"]
    (one,), (two,) = (describe_outliers(points(1.0, n, 0, CUTOFF), 40) for n in (1, 2))
    assert one.startswith("1 of 40 answers lies far") and two.startswith("2 of 40 answers lie far")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_back_test_of_one_series_is_one_sentence(verdict: str) -> None:
    found = assess_trust("m", {"A": verdict}, Backtest(start="2015", end="2020"))  # type: ignore[dict-item]
    assert found.sentence.endswith(".") and found.sentence.count("(") == 1

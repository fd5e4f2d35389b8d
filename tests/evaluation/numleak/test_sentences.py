"""Each sentence of a verdict is a claim: it is held against the numbers behind it."""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from coreeval.evaluation.numleak.basis import basis_of, factor_of
from coreeval.evaluation.numleak.document import as_json
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point, stratum_of
from coreeval.evaluation.numleak.signature import nearness, plural, share, span
from coreeval.evaluation.numleak.statistics.measured import (
    Baseline,
    BaselineName,
    Exactness,
    Measured,
    Metric,
)
from coreeval.evaluation.numleak.strays import told
from coreeval.evaluation.numleak.trust import Backtest, trust_in
from coreeval.evaluation.numleak.verdicts import VERDICTS, verdict_of
from tests.support.numleak_measured import NOT_ASKED, REMEMBERED, baseline, null, signature

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


def cases() -> Iterator[Measured]:
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
        verdict, reasons = verdict_of(case)
        seen.add(verdict)
        for reason in reasons:
            assert not NO_NUMBER.search(reason.replace("none (n 0)", "")), reason
            assert not EMPTY_INTERVAL.search(reason.replace("0% to 0%", "")), reason
            assert reason[0].isalnum() and reason.endswith("."), reason
            assert "p 0.0000" not in reason and "--" not in reason, reason
    assert seen >= {"memorized", "partly_memorized", "fluent", "fabricating", "no_recall"}


@pytest.mark.parametrize("gain", GAINS)
def test_nearness_says_which_way_and_how_much_and_its_interval_agrees(gain: Metric) -> None:
    says = nearness("constant", gain)
    if math.isnan(gain.estimate):
        assert "not comparable" in says
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
    assert nearness("constant", Metric(-2.99, -4.0, -2.18, 40, 40)).startswith(
        "299% larger (218% to 400%) than"
    )
    assert nearness("year", Metric(-0.1, -0.5, 0.3, 40, 40)).startswith(
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
    assert not any("would decide" in each for case in cases() for each in verdict_of(case).reasons)


def points(said: float, before: int, after: int, cutoff: date) -> list[Point]:
    """Return answers that are so many times the truth, on months before and after a cutoff."""
    last = Period.of(cutoff, "monthly")
    months = [last.shifted(-7 - n) for n in range(before)]
    months += [last.shifted(7 + n) for n in range(after)]
    return [
        Point(
            period=month,
            variant="value",
            truth=truth,
            estimate=said * truth,
            status="parsed",
            stratum=stratum_of(month, cutoff),
        )
        for month, truth in zip(months, itertools.cycle((1.0, 2.5, 4.0, 3.0, 6.1)), strict=False)
    ]


CUTOFF = date(2018, 6, 30)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (20, 0, ()),
        (20, 1, ("rests on the 20 dates", "1 later date does not count")),
        (30, 10, ("rests on the 30 dates", "10 later dates do not count")),
        (1, 30, ("Only 1 date before the cutoff", "rests on all 31 dates")),
        (0, 30, ("Only 0 dates before the cutoff", "rests on all 30 dates")),
    ],
)
def test_it_says_which_dates_a_verdict_rests_on(
    before: int, after: int, words: tuple[str, ...]
) -> None:
    found = basis_of(points(1.0, before, after, CUTOFF), CUTOFF, {})
    assert bool(found.says) == bool(words)
    assert all(each in found.says[0] for each in words)
    kept = [each for each in found.points if each.variant == "value"]
    assert len(kept) == found.dates == (before if before >= 20 else before + after)


def test_a_cutoff_that_is_not_known_is_said() -> None:
    found = basis_of(points(1.0, 20, 20, CUTOFF), None, {})
    assert found.says[0].startswith("The model's cutoff is not known")


@pytest.mark.parametrize("factor", [0.001, 0.01, 1.0, 5.0, 100.0, 1000.0])
def test_a_factor_is_told_by_the_size_of_answers(factor: float) -> None:
    found = factor_of(points(factor, 20, 0, CUTOFF))
    assert found == (1.0 if factor == 5.0 else factor)


def test_one_and_several_are_told_apart() -> None:
    assert [plural(n, "date") for n in (0, 1, 2)] == ["dates", "date", "dates"]
    (one,), (two,) = (told(points(1.0, n, 0, CUTOFF), 40) for n in (1, 2))
    assert one.startswith("1 of 40 answers lies far") and two.startswith("2 of 40 answers lie far")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_back_test_of_one_series_is_one_sentence(verdict: str) -> None:
    found = trust_in("m", {"A": verdict}, Backtest(start="2015", end="2020"))  # type: ignore[dict-item]
    assert found.sentence.endswith(".") and found.sentence.count("(") == 1

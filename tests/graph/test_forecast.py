"""The arithmetic of an estimate: ranges, what calls teach, money, time, a bootstrap, its error."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from coreeval.config import PriceConfig
from coreeval.graph.forecast.bootstrap import extrapolate
from coreeval.graph.forecast.estimates import (
    Estimate,
    Line,
    error_of,
    fit_of,
    keep,
    path_of,
    read_estimate,
    summed,
)
from coreeval.graph.forecast.learning import (
    STATED,
    Player,
    Seen,
    answer,
    cached_share,
    density,
    duration,
    spread,
)
from coreeval.graph.forecast.ranges import Basis, Known, Range, between, exactly, interval, total
from coreeval.graph.forecast.reckoning import Asked, Lane, Priced, line_of, seconds_of_run
from coreeval.graph.forecast.stated import CHARACTERS_PER_TOKEN, answer_of, calls_of, seconds_of
from coreeval.releases.manifest import Cost
from coreeval.tools.workspace import Workspace

ME = Player(role="composer", model="openai:me", max_tokens=2048)
PRICE = PriceConfig(input=2.0, output=10.0, cached_input=0.2)


def seen(n: int = 5, **changes: object) -> list[Seen]:
    """Return equal calls of the composer, 4 characters a token."""
    usual: dict[str, object] = {
        "role": ME.role, "model": ME.model, "size": 4000, "prompt_tokens": 1000,
        "cached_tokens": 0, "completion_tokens": 100, "seconds": 2.0,
    }  # fmt: skip
    return [Seen(**(usual | changes)) for _ in range(n)]  # type: ignore[arg-type]


def known(low: float, likely: float | None = None, high: float | None = None) -> Known:
    likely = low if likely is None else likely
    return Known(
        range=between(low, likely, likely if high is None else high), basis=Basis(origin="test")
    )


def asked(**changes: object) -> Asked:
    usual: dict[str, object] = {
        "role": "composer", "model": "openai:me", "samples": 100, "calls": known(1, 2, 3),
        "fixed": 8000, "varied": known(2000), "density": known(4), "answer": known(100, 200, 300),
        "duration": known(1, 2, 4), "priced": Priced(price=PRICE, origin="test"),
    }  # fmt: skip
    return Asked(**(usual | changes))  # type: ignore[arg-type]


# -- ranges ---------------------------------------------------------------------------------------


def test_ranges_add_and_multiply_end_by_end() -> None:
    one, other = between(1, 2, 3), between(10, 20, 40)
    assert one + other == between(11, 22, 43)
    assert one * other == between(10, 40, 120)
    assert one.times(2) == between(2, 4, 6)
    assert one.widened(2) == between(0.5, 2, 6)
    assert one.at_most(2.5) == between(1, 2, 2.5)
    assert total([]) == exactly(0)


@pytest.mark.parametrize("ends", [(2, 1, 3), (1, 3, 2), (-1, 0, 1), (1, math.nan, 2)])
def test_what_is_no_range_is_refused(ends: Sequence[float]) -> None:
    with pytest.raises(ValidationError):
        between(*ends)


def test_more_values_make_a_narrower_interval() -> None:
    few, many = interval([1, 3]), interval([1, 3] * 500)
    assert few.likely == many.likely == 2
    assert few.low < many.low < 2 < many.high < few.high
    assert many.high - many.low >= 2 * 0.1 * 2
    assert interval([4]) == between(2, 4, 8)


def test_what_comes_to_a_sample_is_between_the_least_and_the_most() -> None:
    assert spread([1, 1, 1]) == exactly(1)
    found = spread([0, 3])
    assert (found.low, found.likely, found.high) == (0, 1.5, 3)


# -- what is assumed, and what calls teach --------------------------------------------------------


def test_more_attempts_mean_more_calls() -> None:
    assert calls_of("composer", 1).high < calls_of("composer", 3).high
    assert calls_of("extractor", 1) == calls_of("extractor", 3)
    roles = ("extractor", "replacer", "rewriter", "composer", "fact_judge", "label_judge")
    every = total(calls_of(role, 3) for role in roles)  # type: ignore[arg-type]
    assert every.low < 5.35 < 7.7 < every.high  # docs/quality.md


def test_nothing_recorded_leaves_what_is_stated() -> None:
    assert density([], ME) == Known(range=CHARACTERS_PER_TOKEN, basis=STATED)
    said = answer([], ME)
    assert said.basis == STATED
    assert duration([], ME, said.range) == Known(range=seconds_of(said.range), basis=STATED)


def test_a_model_that_is_told_to_think_may_think_up_to_the_limit() -> None:
    plain = answer_of("label_judge", max_tokens=2048, effort=None)
    deep = answer_of("label_judge", max_tokens=2048, effort="high")
    assert plain.high < 200 < deep.high == 2048
    assert answer_of("label_judge", max_tokens=2048, effort="none") == plain
    assert answer_of("extractor", max_tokens=10, effort="high") == exactly(10)


def test_the_nearest_calls_teach_the_density() -> None:
    own, beside = seen(), seen(role="replacer", size=3000)
    others = seen(model="openai:other", size=2000)
    assert density(own + beside + others, ME).range.likely == 4
    assert density(beside + others, ME).range.likely == 3
    assert density(others, ME).range.likely == 2
    bases = [density(calls, ME).basis for calls in (own, beside, others)]
    assert len({basis.origin for basis in bases}) == 3
    assert {basis.n for basis in bases} == {5}
    widths = [density(calls, ME).range.widened(1) for calls in (own, beside, others)]
    ratios = [width.high / width.likely for width in widths]
    assert ratios == sorted(ratios) and ratios[0] < ratios[2]


def test_a_server_that_counts_no_tokens_teaches_nothing() -> None:
    assert density(seen(prompt_tokens=0), ME).basis == STATED
    assert answer(seen(completion_tokens=0), ME).basis == STATED
    assert duration(seen(seconds=0.0), ME, exactly(60)).basis == STATED


def test_answers_are_learnt_by_role_and_end_at_the_limit() -> None:
    assert answer(seen(), ME).range.likely == 100
    assert answer(seen(role="extractor"), ME).basis == STATED
    other = answer(seen(model="openai:other"), ME)
    assert other.range.likely == 100 and other.range.high > 200
    short = Player(role=ME.role, model=ME.model, max_tokens=80)
    assert answer(seen(), short).range.high == 80


def test_another_model_s_speed_tells_nothing() -> None:
    assert duration(seen(), ME, exactly(60)).range.likely == 2
    assert duration(seen(model="openai:other"), ME, exactly(60)).basis == STATED


def test_the_cached_share_needs_a_few_calls() -> None:
    assert cached_share(seen(cached_tokens=600), ME) == pytest.approx(0.6)
    assert cached_share(seen(n=4, cached_tokens=600), ME) == 0
    assert cached_share(seen(model="openai:other", cached_tokens=600), ME) == 0


# -- money ----------------------------------------------------------------------------------------


def test_a_line_multiplies_what_is_known() -> None:
    line = line_of(asked())
    assert line.calls == between(100, 200, 300)
    assert line.prompt_tokens == between(250_000, 500_000, 750_000)
    assert line.completion_tokens == between(10_000, 40_000, 90_000)
    assert line.call_seconds == between(100, 400, 1200)
    assert line.usd is not None
    assert line.usd.likely == pytest.approx(500_000 * 2e-6 + 40_000 * 10e-6)
    assert line.usd.high == pytest.approx(750_000 * 2e-6 + 90_000 * 10e-6)


def test_at_the_low_end_the_instructions_are_cached_after_the_first_call() -> None:
    line = line_of(asked())
    cached = 99 * 2000
    assert line.usd is not None
    expected = (250_000 - cached) * 2e-6 + cached * 0.2e-6 + 10_000 * 10e-6
    assert line.usd.low == pytest.approx(expected)
    short = line_of(asked(fixed=4000, varied=known(6000)))
    assert short.usd is not None and short.usd.low > line.usd.low


def test_the_recorded_share_of_cached_tokens_makes_the_likely_cost_lower() -> None:
    plain, cached = line_of(asked()).usd, line_of(asked(cached_share=0.5)).usd
    assert plain is not None and cached is not None
    assert cached.likely == pytest.approx(plain.likely - 250_000 * 1.8e-6)
    assert cached.high == plain.high


def test_at_the_high_end_every_prompt_is_written_to_the_cache_where_that_costs_more() -> None:
    dear = PRICE.model_copy(update={"cache_write": 2.5})
    line = line_of(asked(priced=Priced(price=dear, origin="test")))
    assert line.usd is not None
    assert line.usd.high == pytest.approx(750_000 * 2.5e-6 + 90_000 * 10e-6)


def test_an_unpriced_model_makes_the_sum_unknown_and_never_nothing() -> None:
    lines = (line_of(asked()), line_of(asked(role="target", priced=Priced(price=None))))
    totals = summed(lines)
    assert lines[1].usd is None
    assert totals.usd is None
    assert totals.priced_usd == lines[0].usd
    assert totals.calls == between(200, 400, 600)
    fit = fit_of(100.0, totals)
    assert fit is not None and (fit.likely, fit.high) == (None, None)


@pytest.mark.parametrize(
    ("budget", "likely", "high"), [(1.0, False, False), (2.0, True, False), (3.0, True, True)]
)
def test_a_budget_is_held_against_both_ends(budget: float, likely: bool, high: bool) -> None:
    fit = fit_of(budget, summed((line_of(asked()),)))
    assert fit is not None and (fit.likely, fit.high) == (likely, high)
    assert fit_of(None, summed(())) is None


# -- time -----------------------------------------------------------------------------------------


def seconds(lane: Lane, *, concurrency: int = 10, samples: int = 100, role: str = "composer") -> (
    Range
):  # fmt: skip
    lines = [line_of(asked(role=role))]
    return seconds_of_run(lines, [lane], concurrency=concurrency, samples=samples)


def test_calls_share_the_time_among_the_samples_that_are_open_together() -> None:
    lane = Lane(model="openai:me", in_flight=10)
    assert seconds(lane) == between(10, 40, 120)
    assert seconds(lane, concurrency=4) == between(20, 80, 240)
    assert seconds(lane, samples=1) == between(100, 400, 1200)


def test_a_slow_model_holds_up_the_run() -> None:
    assert seconds(Lane(model="openai:me", in_flight=1)) == between(100, 400, 1200)
    paced = Lane(model="openai:me", in_flight=10, requests_per_minute=10)
    assert seconds(paced).likely == 1200
    counted = Lane(model="openai:me", in_flight=10, tokens_per_minute=60_000)
    assert seconds(counted).likely == 540


def test_targets_are_asked_after_the_refresh() -> None:
    lanes = [Lane(model="openai:me", in_flight=10), Lane(model="openai:you", in_flight=10)]
    lines = [line_of(asked()), line_of(asked(role="target", model="openai:you"))]
    found = seconds_of_run(lines, lanes, concurrency=10, samples=100)
    assert found.likely == 80


def test_judges_of_defences_score_after_the_targets_and_few_samples_do_not_hold_them_up() -> None:
    lanes = [Lane(model="openai:me", in_flight=10), Lane(model="openai:you", in_flight=10)]
    lines = [
        line_of(asked(role=role, model=model, stage="numleak"))
        for role, model in (("target_utility", "openai:you"), ("utility_judge", "openai:me"))
    ]
    assert seconds_of_run(lines, lanes, concurrency=10, samples=1).likely == 80


# -- the bootstrap of a preview -------------------------------------------------------------------


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    chance = np.random.default_rng(7)
    hits = 0
    for seed in range(100):
        preview, rest = chance.gamma(2.0, 1.0, (20, 1)), chance.gamma(2.0, 1.0, 500)
        (found,) = extrapolate(preview, 500, seed=seed, draws=400)
        hits += found.low <= rest.sum() <= found.high
    assert 85 <= hits <= 100


def test_it_is_the_same_every_time_and_narrower_with_more_samples() -> None:
    rows = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]])
    one, other = extrapolate(rows, 100, seed=1), extrapolate(rows, 100, seed=1)
    assert one == other
    assert one[0].likely == pytest.approx(200)
    assert one[1] == exactly(500)
    wide, narrow = one[0], extrapolate(np.tile(rows, (30, 1)), 100, seed=1)[0]
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2


def test_one_sample_may_be_off_by_two_and_nothing_more_costs_nothing() -> None:
    assert extrapolate(np.array([[4.0]]), 10, seed=1) == [between(20, 40, 80)]
    assert extrapolate(np.array([[4.0], [6.0]]), 0, seed=1) == [exactly(0)]


# -- kept, and held against what a run cost -------------------------------------------------------


def made(*lines: Line) -> Estimate:
    return Estimate(
        name="trial", task="emotion", config="trial.yaml", made_at="2026-01-01T00:00:00+00:00",
        samples=100, to_pay=100, lines=lines, totals=summed(lines), seconds=exactly(1),
        concurrency=32,
    )  # fmt: skip


def test_an_estimate_is_read_as_it_was_kept(tmp_path: Path) -> None:
    workspace, estimate = Workspace(tmp_path), made(line_of(asked()))
    assert read_estimate(workspace, "trial") is None
    assert keep(workspace, estimate) == path_of(workspace, "trial")
    assert read_estimate(workspace, "trial") == estimate


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2}'])
def test_a_file_that_is_no_estimate_counts_as_none(tmp_path: Path, text: str) -> None:
    path = path_of(Workspace(tmp_path), "trial")
    path.parent.mkdir()
    path.write_text(text)
    assert read_estimate(Workspace(tmp_path), "trial") is None


def test_the_error_is_told_for_each_figure() -> None:
    cost = Cost(
        billed_usd=3.0, billed_calls=400, cached_calls=9, prompt_tokens=500_000,
        completion_tokens=40_000,
    )  # fmt: skip
    found = error_of(made(line_of(asked())), cost)
    by_measure = {miss.measure: miss for miss in found.misses}
    assert set(by_measure) == {"calls", "prompt_tokens", "completion_tokens", "usd"}
    assert (by_measure["calls"].ratio, by_measure["calls"].inside) == (2.0, False)
    assert (by_measure["prompt_tokens"].ratio, by_measure["prompt_tokens"].inside) == (1.0, True)
    assert not by_measure["usd"].inside
    assert found.known_calls == 9


def test_money_that_is_not_known_has_no_error() -> None:
    cost = Cost(billed_usd=None, billed_calls=200)
    assert {miss.measure for miss in error_of(made(line_of(asked())), cost).misses} == {
        "calls",
        "prompt_tokens",
        "completion_tokens",
    }
    unpriced = made(line_of(asked(priced=Priced(price=None))))
    known_now = Cost(billed_usd=1.0)
    assert "usd" not in {miss.measure for miss in error_of(unpriced, known_now).misses}


def test_a_run_that_was_to_cost_nothing_has_no_ratio() -> None:
    (calls, *_) = error_of(made(), Cost(billed_calls=3)).misses
    assert (calls.ratio, calls.inside) == (None, False)

"""The arithmetic of an estimate: ranges, what calls teach, money, time, a bootstrap, its error."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from coreeval.config import PriceConfig, RunConfig
from coreeval.graph.estimate.assignments import ModelPrice, ModelThroughput
from coreeval.graph.estimate.batches import (
    BATCH_SECONDS,
    LIVE_TAIL,
    ROUNDS,
    TARGET_ROUNDS,
    estimate_batches,
)
from coreeval.graph.estimate.call_figures import (
    ARM_SHARES,
    CHARACTERS_PER_TOKEN,
    STATED_BASIS,
    CallUsage,
    RoleModel,
    assume_answer,
    assume_calls,
    assume_seconds,
    estimate_answer,
    estimate_cached_share,
    estimate_density,
    estimate_duration,
    estimate_spread,
)
from coreeval.graph.estimate.costing import RoleFigures, cost_line, estimate_run_seconds
from coreeval.graph.estimate.history import PastRuns
from coreeval.graph.estimate.model import (
    BatchEstimate,
    CostEstimate,
    EstimateLine,
    FigureBasis,
    KnownRange,
    Range,
    between,
    estimate_mean,
    exactly,
    find_estimate_path,
    fit_budget,
    measure_error,
    read_estimate,
    save_estimate,
    sum_lines,
    sum_ranges,
)
from coreeval.graph.estimate.past_figures import PastFigures
from coreeval.graph.estimate.preview import extrapolate
from coreeval.runs.manifest import Cost
from coreeval.schema import TaskKind
from coreeval.tools.catalogs import FREE, find_batch_price
from coreeval.tools.workspace import Workspace

ME = RoleModel(role="composer", model="openai:me", max_tokens=2048)
PRICE = PriceConfig(input=2.0, output=10.0, cached_input=0.2)


def seen(n: int = 5, **changes: object) -> list[CallUsage]:
    """Return equal calls of the composer, 4 characters a token."""
    usual: dict[str, object] = {
        "role": ME.role, "model": ME.model, "size": 4000, "prompt_tokens": 1000,
        "cached_tokens": 0, "completion_tokens": 100, "seconds": 2.0,
    }  # fmt: skip
    return [CallUsage(**(usual | changes)) for _ in range(n)]  # type: ignore[arg-type]


def known(low: float, likely: float | None = None, high: float | None = None) -> KnownRange:
    likely = low if likely is None else likely
    return KnownRange(
        range=between(low, likely, likely if high is None else high),
        basis=FigureBasis(origin="test"),
    )


def asked(**changes: object) -> RoleFigures:
    usual: dict[str, object] = {
        "role": "composer", "model": "openai:me", "samples": 100, "calls": known(1, 2, 3),
        "fixed": 8000, "varied": known(2000), "density": known(4), "answer": known(100, 200, 300),
        "duration": known(1, 2, 4), "priced": ModelPrice(price=PRICE, origin="test"),
    }  # fmt: skip
    return RoleFigures(**(usual | changes))  # type: ignore[arg-type]


# -- ranges ---------------------------------------------------------------------------------------


def test_ranges_add_and_multiply_end_by_end() -> None:
    one, other = between(1, 2, 3), between(10, 20, 40)
    assert one + other == between(11, 22, 43)
    assert one * other == between(10, 40, 120)
    assert one.times(2) == between(2, 4, 6)
    assert one.widen(2) == between(0.5, 2, 6)
    assert one.at_most(2.5) == between(1, 2, 2.5)
    assert sum_ranges([]) == exactly(0)


@pytest.mark.parametrize("ends", [(2, 1, 3), (1, 3, 2), (-1, 0, 1), (1, math.nan, 2)])
def test_what_is_no_range_is_refused(ends: Sequence[float]) -> None:
    with pytest.raises(ValidationError):
        between(*ends)


def test_more_values_make_a_narrower_interval() -> None:
    few, many = estimate_mean([1, 3]), estimate_mean([1, 3] * 500)
    assert few.likely == many.likely == 2
    assert few.low < many.low < 2 < many.high < few.high
    assert many.high - many.low >= 2 * 0.1 * 2
    assert estimate_mean([4]) == between(2, 4, 8)


def test_what_comes_to_a_sample_is_between_the_least_and_the_most() -> None:
    assert estimate_spread([1, 1, 1]) == exactly(1)
    assert estimate_spread([0.1] * 10) == exactly(0.1)
    found = estimate_spread([0, 3])
    assert (found.low, found.likely, found.high) == (0, 1.5, 3)


# -- what is assumed, and what calls teach --------------------------------------------------------


def test_more_attempts_mean_more_calls() -> None:
    once, thrice = RunConfig(max_attempts=1), RunConfig(max_attempts=3)
    assert assume_calls("composer", once).high < assume_calls("composer", thrice).high
    assert assume_calls("extractor", once) == assume_calls("extractor", thrice)
    roles = ("extractor", "replacer", "rewriter", "composer", "fact_judge", "label_judge")
    single = RunConfig(label_batch=1)
    every = sum_ranges(assume_calls(role, single) for role in roles)  # type: ignore[arg-type]
    assert every.low < 5.35 < 7.7 < every.high  # docs/quality.md


def test_batches_the_lean_pipeline_and_fewer_arms_mean_fewer_calls() -> None:
    usual = RunConfig(label_batch=1)
    assert assume_calls("label_judge", RunConfig()).likely < (
        assume_calls("label_judge", usual).likely - 0.7
    )
    lean = RunConfig(pipeline="lean")
    assert assume_calls("rewriter", lean).likely < 0.3 < assume_calls("rewriter", usual).likely
    alone = RunConfig(arms=("updated",))
    assert assume_calls("rewriter", alone) == exactly(0)
    assert assume_calls("label_judge", alone).likely < 1.2


def test_samples_that_are_too_long_are_not_reworded() -> None:
    run, alone = RunConfig(), RunConfig(arms=("updated",))
    for role in ("rewriter", "label_judge"):
        assert assume_calls(role, run, reworded=0) == assume_calls(role, alone)
    earlier = PastRuns(calls=defaultdict(list), arms={arm: [] for arm in ARM_SHARES})
    means = {
        share: PastFigures(past_calls=(), earlier=earlier, run=run, reworded=share).arms().range
        for share in (0, 0.5, 1)
    }
    assert means[0].likely < means[0.5].likely < means[1].likely
    assert means[0] == ARM_SHARES["original"] + ARM_SHARES["updated"]


def test_nothing_recorded_leaves_what_is_stated() -> None:
    assert estimate_density([], ME) == KnownRange(range=CHARACTERS_PER_TOKEN, basis=STATED_BASIS)
    said = estimate_answer([], ME)
    assert said.basis == STATED_BASIS
    assert estimate_duration([], ME, said.range) == KnownRange(
        range=assume_seconds(said.range), basis=STATED_BASIS
    )


def test_a_model_that_is_told_to_think_may_think_up_to_the_limit() -> None:
    plain = assume_answer("label_judge", max_tokens=2048, effort=None)
    deep = assume_answer("label_judge", max_tokens=2048, effort="high")
    assert plain.high < 200 < deep.high == 2048
    assert assume_answer("label_judge", max_tokens=2048, effort="none") == plain
    assert assume_answer("extractor", max_tokens=10, effort="high") == exactly(10)


@pytest.mark.parametrize(
    ("role", "kind", "recorded"),
    [
        ("extractor", "choice", 431),
        ("extractor", "answer", 673),
        ("extractor", "summary", 801),
        ("replacer", "answer", 636),
        ("fact_judge", "answer", 656),
    ],
)
def test_the_stated_lengths_hold_those_of_the_recorded_demos(
    role: str, kind: TaskKind, recorded: int
) -> None:
    stated = assume_answer(role, max_tokens=2048, effort=None, kind=kind)
    labels = assume_answer(role, max_tokens=2048, effort=None)
    assert stated.low < recorded < stated.high
    assert labels.likely < stated.likely and recorded / 2 < stated.likely < 2 * recorded


def test_the_nearest_calls_teach_the_density() -> None:
    own, beside = seen(), seen(role="replacer", size=3000)
    others = seen(model="openai:other", size=2000)
    assert estimate_density(own + beside + others, ME).range.likely == 4
    assert estimate_density(beside + others, ME).range.likely == 3
    assert estimate_density(others, ME).range.likely == 2
    bases = [estimate_density(calls, ME).basis for calls in (own, beside, others)]
    assert len({basis.origin for basis in bases}) == 3
    assert {basis.n for basis in bases} == {5}
    widths = [estimate_density(calls, ME).range.widen(1) for calls in (own, beside, others)]
    ratios = [width.high / width.likely for width in widths]
    assert ratios == sorted(ratios) and ratios[0] < ratios[2]


def test_a_server_that_counts_no_tokens_teaches_nothing() -> None:
    assert estimate_density(seen(prompt_tokens=0), ME).basis == STATED_BASIS
    assert estimate_answer(seen(completion_tokens=0), ME).basis == STATED_BASIS
    assert estimate_duration(seen(seconds=0.0), ME, exactly(60)).basis == STATED_BASIS


def test_answers_are_learnt_by_role_and_end_at_the_limit() -> None:
    assert estimate_answer(seen(), ME).range.likely == 100
    assert estimate_answer(seen(role="extractor"), ME).basis == STATED_BASIS
    other = estimate_answer(seen(model="openai:other"), ME)
    assert other.range.likely == 100 and other.range.high > 200
    short = RoleModel(role=ME.role, model=ME.model, max_tokens=80)
    assert estimate_answer(seen(), short).range.high == 80


def test_another_model_s_speed_tells_nothing() -> None:
    assert estimate_duration(seen(), ME, exactly(60)).range.likely == 2
    assert estimate_duration(seen(model="openai:other"), ME, exactly(60)).basis == STATED_BASIS


def test_other_kinds_of_questions_teach_no_length() -> None:
    others = seen(is_alike=False)
    assert estimate_answer(others, ME) == estimate_answer([], ME)
    assert estimate_answer(others + seen(completion_tokens=900), ME).range.likely == 900
    assert estimate_density(others, ME).range.likely == 4


def test_a_model_s_pace_with_other_questions_is_scaled_by_length() -> None:
    usual = assume_seconds(exactly(100)).likely
    for others in (seen(is_alike=False, seconds=3 * usual), seen(role="x", seconds=3 * usual)):
        slow = estimate_duration(others, ME, between(10, 600, 900))
        assert slow.range.likely == pytest.approx(3 * assume_seconds(exactly(600)).likely)
        assert slow.range.high == pytest.approx(3 * assume_seconds(exactly(900)).high)
        assert slow.basis.n == 5
    uncounted = seen(is_alike=False, completion_tokens=0)
    assert estimate_duration(uncounted, ME, exactly(60)).basis == STATED_BASIS


def test_the_cached_share_needs_a_few_calls() -> None:
    assert estimate_cached_share(seen(cached_tokens=600), ME) == pytest.approx(0.6)
    assert estimate_cached_share(seen(n=4, cached_tokens=600), ME) is None
    assert estimate_cached_share(seen(model="openai:other", cached_tokens=600), ME) is None


# -- money ----------------------------------------------------------------------------------------


def test_a_line_multiplies_what_is_known() -> None:
    line = cost_line(asked())
    assert line.calls == between(100, 200, 300)
    assert line.prompt_tokens == between(250_000, 500_000, 750_000)
    assert line.completion_tokens == between(10_000, 40_000, 90_000)
    assert line.call_seconds == between(100, 400, 1200)
    assert line.usd is not None
    assert line.usd.likely == pytest.approx(500_000 * 2e-6 + 40_000 * 10e-6)
    assert line.usd.high == pytest.approx(750_000 * 2e-6 + 90_000 * 10e-6)


def test_at_the_low_end_the_instructions_are_cached_after_the_first_call() -> None:
    line = cost_line(asked())
    cached = 99 * 2000
    assert line.usd is not None
    expected = (250_000 - cached) * 2e-6 + cached * 0.2e-6 + 10_000 * 10e-6
    assert line.usd.low == pytest.approx(expected)
    short = cost_line(asked(fixed=4000, varied=known(6000)))
    assert short.usd is not None and short.usd.low > line.usd.low


def test_the_recorded_share_of_cached_tokens_makes_the_likely_cost_lower() -> None:
    plain, cached = cost_line(asked()).usd, cost_line(asked(cached_share=0.5)).usd
    assert plain is not None and cached is not None
    assert cached.likely == pytest.approx(plain.likely - 250_000 * 1.8e-6)
    assert cached.high == plain.high


def test_cached_tokens_are_expected_by_the_provider_s_rule_until_some_were_recorded() -> None:
    unknown = cost_line(asked())
    assert unknown.cached_tokens == between(0, 0, 299 * 2000)
    ruled = cost_line(asked(cached_from=1024))
    assert ruled.cached_tokens == between(0, 199 * 2000, 299 * 2000)
    assert ruled.usd is not None and unknown.usd is not None
    assert ruled.usd.likely == pytest.approx(unknown.usd.likely - 199 * 2000 * 1.8e-6)
    assert cost_line(asked(cached_from=2001)).cached_tokens.likely == 0
    recorded = cost_line(asked(cached_from=1024, cached_share=0.1))
    assert recorded.cached_tokens.likely == 50_000
    assert cost_line(asked(cached_from=1024, cached_share=0.0)).cached_tokens.likely == 0
    assert sum_lines((ruled, recorded)).cached_tokens.likely == 199 * 2000 + 50_000


def test_at_the_high_end_every_prompt_is_written_to_the_cache_where_that_costs_more() -> None:
    dear = PRICE.model_copy(update={"cache_write": 2.5})
    line = cost_line(asked(priced=ModelPrice(price=dear, origin="test")))
    assert line.usd is not None
    assert line.usd.high == pytest.approx(750_000 * 2.5e-6 + 90_000 * 10e-6)


def test_an_unpriced_model_makes_the_sum_unknown_and_never_nothing() -> None:
    lines = (cost_line(asked()), cost_line(asked(role="target", priced=ModelPrice(price=None))))
    totals = sum_lines(lines)
    assert lines[1].usd is None
    assert totals.usd is None
    assert totals.priced_usd == lines[0].usd
    assert totals.calls == between(200, 400, 600)
    fit = fit_budget(100.0, totals)
    assert fit is not None and (fit.likely, fit.high) == (None, None)


@pytest.mark.parametrize(
    ("budget", "likely", "high"), [(1.0, False, False), (2.0, True, False), (3.0, True, True)]
)
def test_a_budget_is_held_against_both_ends(budget: float, likely: bool, high: bool) -> None:
    fit = fit_budget(budget, sum_lines((cost_line(asked()),)))
    assert fit is not None and (fit.likely, fit.high) == (likely, high)
    assert fit_budget(None, sum_lines(())) is None


# -- time -----------------------------------------------------------------------------------------


def seconds(
    lane: ModelThroughput, *, concurrency: int = 10, samples: int = 100, role: str = "composer"
) -> Range:
    lines = [cost_line(asked(role=role))]
    return estimate_run_seconds(lines, [lane], concurrency=concurrency, samples=samples)


def test_calls_share_the_time_among_the_samples_that_are_open_together() -> None:
    lane = ModelThroughput(model="openai:me", in_flight=10)
    assert seconds(lane) == between(10, 40, 120)
    assert seconds(lane, concurrency=4) == between(20, 80, 240)
    assert seconds(lane, samples=1) == between(100, 400, 1200)


def test_a_slow_model_holds_up_the_run() -> None:
    assert seconds(ModelThroughput(model="openai:me", in_flight=1)) == between(100, 400, 1200)
    paced = ModelThroughput(model="openai:me", in_flight=10, requests_per_minute=10)
    assert seconds(paced).likely == 1200
    counted = ModelThroughput(model="openai:me", in_flight=10, tokens_per_minute=60_000)
    assert seconds(counted).likely == 540


def test_targets_are_asked_after_the_refresh() -> None:
    lanes = [
        ModelThroughput(model="openai:me", in_flight=10),
        ModelThroughput(model="openai:you", in_flight=10),
    ]
    lines = [cost_line(asked()), cost_line(asked(role="target", model="openai:you"))]
    found = estimate_run_seconds(lines, lanes, concurrency=10, samples=100)
    assert found.likely == 80


def test_judges_of_defences_score_after_the_targets_and_few_samples_do_not_hold_them_up() -> None:
    lanes = [
        ModelThroughput(model="openai:me", in_flight=10),
        ModelThroughput(model="openai:you", in_flight=10),
    ]
    lines = [
        cost_line(asked(role=role, model=model, stage="numleak"))
        for role, model in (("target_utility", "openai:you"), ("utility_judge", "openai:me"))
    ]
    assert estimate_run_seconds(lines, lanes, concurrency=10, samples=1).likely == 80


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


def made(*lines: EstimateLine) -> CostEstimate:
    return CostEstimate(
        name="trial", task="emotion", config="trial.yaml", made_at="2026-01-01T00:00:00+00:00",
        samples=100, to_pay=100, lines=lines, totals=sum_lines(lines), seconds=exactly(1),
        concurrency=32,
    )  # fmt: skip


def test_an_estimate_is_read_as_it_was_kept(tmp_path: Path) -> None:
    workspace, estimate = Workspace(tmp_path), made(cost_line(asked()))
    assert read_estimate(workspace, "trial") is None
    assert save_estimate(workspace, estimate) == find_estimate_path(workspace, "trial")
    assert read_estimate(workspace, "trial") == estimate


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2}'])
def test_a_file_that_is_no_estimate_counts_as_none(tmp_path: Path, text: str) -> None:
    path = find_estimate_path(Workspace(tmp_path), "trial")
    path.parent.mkdir()
    path.write_text(text)
    assert read_estimate(Workspace(tmp_path), "trial") is None
    path.unlink()
    path.symlink_to("/dev/zero")
    assert read_estimate(Workspace(tmp_path), "trial") is None


def test_the_error_is_told_for_each_figure() -> None:
    cost = Cost(
        billed_usd=3.0, billed_calls=400, cached_calls=9, prompt_tokens=500_000,
        completion_tokens=40_000,
    )  # fmt: skip
    found = measure_error(made(cost_line(asked())), cost)
    by_measure = {miss.measure: miss for miss in found.misses}
    assert set(by_measure) == {"calls", "prompt_tokens", "completion_tokens", "usd"}
    assert (by_measure["calls"].ratio, by_measure["calls"].inside) == (2.0, False)
    assert (by_measure["prompt_tokens"].ratio, by_measure["prompt_tokens"].inside) == (1.0, True)
    assert not by_measure["usd"].inside
    assert found.known_calls == 9


def test_money_that_is_not_known_has_no_error() -> None:
    cost = Cost(billed_usd=None, billed_calls=200)
    assert {miss.measure for miss in measure_error(made(cost_line(asked())), cost).misses} == {
        "calls",
        "prompt_tokens",
        "completion_tokens",
    }
    unpriced = made(cost_line(asked(priced=ModelPrice(price=None))))
    known_now = Cost(billed_usd=1.0)
    assert "usd" not in {miss.measure for miss in measure_error(unpriced, known_now).misses}


def test_a_run_that_was_to_cost_nothing_has_no_ratio() -> None:
    (calls, *_) = measure_error(made(), Cost(billed_calls=3)).misses
    assert (calls.ratio, calls.inside) == (None, False)


BATCHED = PriceConfig(input=2.0, output=8.0, batch_input=1.0, batch_output=4.0)


def in_batches(
    *lines: EstimateLine, attempts: int = 3, others: Mapping[str, PriceConfig] | None = None
) -> BatchEstimate | None:
    return estimate_batches(
        lines,
        {"openai:m": BATCHED, **(others or {})},
        max_attempts=attempts,
        is_alone=lambda line: line.role == "target",
        time_live=lambda some: sum_ranges(line.call_seconds for line in some),
    )


def priced_line(**changes: object) -> EstimateLine:
    return cost_line(asked(model="openai:m", priced=ModelPrice(price=BATCHED), **changes))


def test_batches_cost_half_but_for_the_live_tail_and_take_their_rounds() -> None:
    line = priced_line()
    found = in_batches(line)
    assert found is not None and found.usd is not None and line.usd is not None
    assert found.usd.likely == pytest.approx(line.usd.likely * (0.5 * (1 - LIVE_TAIL) + LIVE_TAIL))
    assert found.rounds == ROUNDS and found.unpriced == ()
    tail = line.call_seconds.times(LIVE_TAIL)
    assert found.seconds == ROUNDS * BATCH_SECONDS + tail
    once = in_batches(line, attempts=1)
    assert once is not None and once.rounds == between(4, 4, 4)


def test_a_target_takes_rounds_of_its_own() -> None:
    alone = in_batches(priced_line(role="target"))
    assert alone is not None and alone.rounds == TARGET_ROUNDS
    both = in_batches(priced_line(), priced_line(role="target"))
    assert both is not None and both.rounds == ROUNDS + TARGET_ROUNDS


def test_models_without_a_batch_price_are_named_and_asked_live() -> None:
    live = PriceConfig(input=2.0, output=8.0)
    other = cost_line(asked(model="openai:live", priced=ModelPrice(price=live)))
    free = cost_line(asked(model="hf:here", priced=ModelPrice(price=FREE)))
    line = priced_line()
    found = in_batches(line, other, free, others={"openai:live": live, "hf:here": FREE})
    alone = in_batches(line)
    assert found and found.usd and alone and alone.usd and other.usd
    assert found.unpriced == ("openai:live",)
    assert found.usd.likely == pytest.approx(alone.usd.likely + other.usd.likely)
    assert found.seconds.likely == pytest.approx(
        alone.seconds.likely + other.call_seconds.likely + free.call_seconds.likely
    )
    assert in_batches(other, others={"openai:live": live}) is None
    unknown = cost_line(asked(model="openai:new", priced=ModelPrice(price=None)))
    mixed = in_batches(line, unknown)
    assert mixed and mixed.usd is None and mixed.unpriced == ("openai:new",)


def test_cached_tokens_of_a_batch_cost_as_its_others_and_writing_is_discounted() -> None:
    model = BATCHED.model_copy(update={"cached_input": 0.2, "cache_write": 2.5})
    found = find_batch_price(model)
    assert found and found.cached_input is None
    assert found.cache_write == 2.5 * (model.batch_input or 0) / model.input
    assert find_batch_price(FREE) is None

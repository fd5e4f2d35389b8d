"""Planted signals: made from recall, from the truth, from nothing; and what is said of them."""

import json
from collections import Counter

import numpy as np
import pytest

from coreeval.evaluation.numleak.document import as_json
from coreeval.evaluation.numleak.leak.attributing import DATE_ALONE, attribute, ties_of
from coreeval.evaluation.numleak.leak.formulas import per_date, spread_of
from coreeval.evaluation.numleak.leak.found import Attribution, Route
from coreeval.evaluation.numleak.leak.measuring import Measuring
from coreeval.evaluation.numleak.leak.routes import route_of
from coreeval.evaluation.numleak.leak.rows import attribution_rows
from coreeval.evaluation.numleak.parsing import points_of
from coreeval.evaluation.numleak.series import open_series
from coreeval.evaluation.numleak.signature import span
from coreeval.evaluation.numleak.statistics import Settings
from coreeval.evaluation.numleak.statistics.answers import answers_of, standard
from tests.evaluation.numleak.leak.planted import Origin, planted, signal_of, triples
from tests.support.numleak_data import FILES, NUMLEAK
from tests.support.numleak_records import beside_records, of, sweep

RIGHT: dict[Origin, Route] = {
    "recall": "through_recall",
    "truth": "not_through_recall",
    "nothing": "not_through_recall",
}
SEEDS = 200


def found(origin: Origin, recall_r: float, dates: int, seed: int) -> Attribution:
    return attribute("s", planted(origin, recall_r, dates, seed), Settings(draws=200, seed=seed))


@pytest.mark.parametrize("origin", RIGHT)
def test_over_200_seeds_a_verdict_is_right_or_left_open(origin: Origin) -> None:
    def route(seed: int) -> Route:
        measuring = Measuring(planted(origin, 0.8, 120, seed), Settings(draws=200, seed=seed))
        return route_of(ties_of(measuring))[0]

    routes = Counter(route(seed) for seed in range(SEEDS))
    wrong = routes.keys() - {RIGHT[origin], "undecided"}
    assert routes[RIGHT[origin]] >= 0.8 * SEEDS
    assert sum(routes[route] for route in wrong) <= 0.03 * SEEDS


def test_an_honest_signal_has_a_leak_share_near_one_where_recall_is_right() -> None:
    honest = found("truth", 0.99, 77, 3)
    assert honest.leak_share.estimate > 0.99
    assert honest.route == "undecided"
    assert "only the few mistakes tell them apart" in honest.reasons[2]


def test_what_leaks_goes_wrong_with_recall_and_what_is_honest_does_not() -> None:
    leaky, honest = found("recall", 0.8, 120, 1), found("truth", 0.8, 120, 1)
    assert leaky.route == "through_recall" and honest.route == "not_through_recall"
    assert leaky.follows_errors.ci_low > 0 > honest.follows_errors.ci_low
    assert honest.truth_beyond.ci_low > 0 > leaky.truth_beyond.ci_low
    assert "goes wrong with it" in leaky.reasons[1] and "At most " in honest.reasons[1]


def test_the_null_of_both_slopes_counts_what_was_seen_as_one_permutation() -> None:
    leaky = found("recall", 0.8, 77, 2)
    for dealt, slope in (
        (leaky.dealt_truth, leaky.slope_on_truth),
        (leaky.dealt_recall, leaky.slope_on_recall),
    ):
        assert (dealt.permutations, dealt.p_value) == (10_000, 1 / 10_001)
        assert dealt.low < 0 < dealt.high < slope.ci_low
    assert found("nothing", 0.8, 77, 2).dealt_truth.p_value > 0.05


def test_a_share_of_no_tie_is_not_defined() -> None:
    none = found("nothing", 0.9, 77, 4)
    for share in (none.leak_share, none.through):
        assert np.isnan(share.estimate) and share.dates == 77
    assert none.ceiling.estimate == 1


def test_a_signal_that_follows_wrong_recall_leaks_without_any_truth() -> None:
    rng = np.random.default_rng(5)
    truth, recall = rng.normal(size=(2, 60))
    one = attribute("s", triples(recall + 0.5 * rng.normal(size=60), recall, truth), Settings())
    assert one.route == "through_recall"
    assert "right or wrong" in one.reasons[0]


@pytest.mark.parametrize("dates", [0, 1, 3, 19])
def test_few_dates_are_undecided(dates: int) -> None:
    one = attribute("s", planted("recall", 0.8, 60, 1)[:dates], Settings(draws=100))
    assert one.route == "undecided"
    assert one.reasons == (f"{dates} dates have signal, recall and truth; 20 are the least.",)


def test_a_constant_signal_is_undecided() -> None:
    flat = triples(np.ones(30), *np.random.default_rng(1).normal(size=(2, 30)))
    one = attribute("s", flat, Settings(draws=100))
    assert one.route == "undecided" and "never vary" in one.reasons[0]
    assert np.isnan(one.dealt_truth.p_value) and np.isnan(one.leak_share.estimate)


def test_perfect_recall_is_undecided_and_what_it_leaves_undefined() -> None:
    truth, noise = np.random.default_rng(1).normal(size=(2, 40))
    one = attribute("s", triples(truth + noise, truth, truth), Settings(draws=100))
    assert one.route == "undecided"
    assert one.reasons[1].endswith("it cannot be computed.")
    assert "no mistake tells them apart" in one.reasons[2]
    shown = {row.what: row for row in attribution_rows(as_json(one))}
    for what in (
        "follows recall's mistakes: partial r given the truth",
        "follows the truth besides: partial r given recall",
    ):
        assert shown[what][1:] == ("undefined", "", "40")
    json.dumps(as_json(one), allow_nan=False)


def test_one_mistake_gives_numbers_without_an_interval_and_no_verdict() -> None:
    truth, noise = np.random.default_rng(1).normal(size=(2, 40))
    recall = truth + (np.arange(40) == 3)
    one = attribute("s", triples(truth + noise, recall, truth), Settings(draws=100))
    assert one.route == "undecided" and "few mistakes" in one.reasons[2]
    for found in (one.follows_errors, one.truth_beyond):
        assert np.isfinite(found.estimate) and np.isnan([found.ci_low, found.ci_high]).all()
        assert span(found).endswith(" (no interval, n 40)")


def test_of_the_models_own_score_it_is_said_that_it_is_memory_in_any_case() -> None:
    dates = planted("truth", 0.8, 120, 1)
    assert attribute("sentiment", dates, Settings(draws=100)).reasons[-1] == DATE_ALONE
    assert DATE_ALONE not in attribute("mine", dates, Settings(draws=100)).reasons


@beside_records
def test_beside_sonnets_own_recall_an_honest_signal_has_a_leak_share_of_99_6_percent() -> None:
    series = open_series("mkt_rf", base=NUMLEAK, file=FILES["mkt_rf"])
    said = answers_of(points_of(of(sweep("A"), "claude-sonnet", "mkt_rf"), series, None).points)
    truth, recall = standard(said.truth), standard(said.estimate)
    shares = list[float]()
    for seed in range(SEEDS):
        signal = signal_of("truth", truth, recall, np.random.default_rng(seed))
        rows, _ = per_date(triples(signal, recall, truth))
        spread = spread_of(rows.sum(axis=0))
        assert f"{float(spread.recall_r):.2f}" == "0.98"
        shares.append(float(spread.leak_share))
    assert len(said.periods) == 77
    assert f"{np.median(shares):.3f}" == "0.996"

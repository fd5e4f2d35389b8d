"""Attribution of a signal: formulas, numbers and verdicts."""

import json
from collections import Counter

import numpy as np
import pytest

from coreeval.evaluation.numleak.audit import as_json
from coreeval.evaluation.numleak.audit_tables import attribution_rows
from coreeval.evaluation.numleak.leak.attribution import (
    DATE_ALONE,
    SignalMeasures,
    attribute,
    collect_evidence,
    compute_covariances,
    leak_share,
    sum_dates,
    worst_case,
)
from coreeval.evaluation.numleak.leak.mediation import Attribution, Route, find_route
from coreeval.evaluation.numleak.parsing import read_points
from coreeval.evaluation.numleak.series import open_series
from coreeval.evaluation.numleak.signature import span
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.evaluation.numleak.statistics.date_intervals import collect_answers, standardise
from tests.evaluation.numleak.leak.planted import Origin, planted, signal_of, triples
from tests.support.numleak_data import FILES, NUMLEAK
from tests.support.numleak_records import beside_records, of, sweep


@pytest.mark.parametrize(("residual", "signal"), [(0.02, 0.74), (0.02, 0.64)])
def test_the_papers_leak_share_comes_of_its_correlations(residual: float, signal: float) -> None:
    assert f"{float(leak_share(residual, signal)):.1%}" == "99.9%"


def test_the_ceiling_saturates_wherever_recall_is_above_the_signal() -> None:
    for recall in (0.32, 0.65, 0.99):
        assert worst_case(recall, -0.07) == 1
    assert worst_case(0.31, 0.62) == pytest.approx(0.5)


def test_shares_stay_between_nothing_and_all_and_need_a_tie() -> None:
    assert leak_share(0.5, 0.3) == 0 and leak_share(0.0, 0.3) == 1
    assert np.isnan(leak_share(0.1, 0.0)) and np.isnan(worst_case(0.3, 0.0))


def test_every_number_is_what_regressions_give() -> None:
    dates = planted("recall", 0.8, 60, 1)
    s, h, t = (np.array([each[at] for each in dates]) for at in (1, 2, 3))
    rows, (of_s, of_h, of_t) = sum_dates(dates)
    found = compute_covariances(rows.sum(axis=0))
    beside = np.linalg.lstsq(np.stack([np.ones(60), h, t], axis=1), s, rcond=None)[0]
    left = s - np.polyval(np.polyfit(h, s, 1), h)
    assert found.slope_on_truth * of_s / of_t == pytest.approx(np.polyfit(t, s, 1)[0])
    assert found.slope_on_recall * of_s / of_h == pytest.approx(np.polyfit(h, s, 1)[0])
    assert found.recall_beside * of_s / of_h == pytest.approx(beside[1])
    assert found.truth_beside * of_s / of_t == pytest.approx(beside[2])
    assert found.residual_r == pytest.approx(np.corrcoef(left, t)[0, 1])
    direct = beside[2] / np.polyfit(t, s, 1)[0]
    assert found.through == pytest.approx(1 - direct), "indirect and direct effect are the total"
    errors, own = (each - np.polyval(np.polyfit(t, each, 1), t) for each in (h, s))
    assert found.follows_errors == pytest.approx(np.corrcoef(errors, own)[0, 1])


def test_recall_without_a_mistake_leaves_nothing_to_tell_apart() -> None:
    truth, noise = np.random.default_rng(1).normal(size=(2, 30))
    rows, _ = sum_dates(triples(truth + noise, truth, truth))
    found = compute_covariances(rows.sum(axis=0))
    assert found.leak_share == pytest.approx(1) and found.residual_r == pytest.approx(0)
    assert np.isnan([found.follows_errors, found.truth_beyond, found.through]).all()


def test_a_signal_of_which_recall_leaves_nothing_is_all_recall() -> None:
    truth, recall = np.random.default_rng(1).normal(size=(2, 30)) + 2.0
    rows, _ = sum_dates(triples(recall + 1.0, recall, truth))
    found = compute_covariances(rows.sum(axis=0))
    assert found.leak_share == 1 and found.through == pytest.approx(1)
    assert np.isnan([found.residual_r, found.truth_beyond]).all()
    assert found.follows_errors == pytest.approx(1)


RIGHT: dict[Origin, Route] = {
    "recall": "through_recall",
    "truth": "not_through_recall",
    "nothing": "not_through_recall",
}
SEEDS = 200


def found(origin: Origin, recall_r: float, dates: int, seed: int) -> Attribution:
    return attribute(
        "s", planted(origin, recall_r, dates, seed), AuditSettings(draws=200, seed=seed)
    )


@pytest.mark.parametrize("origin", RIGHT)
def test_over_200_seeds_a_verdict_is_right_or_left_open(origin: Origin) -> None:
    def route(seed: int) -> Route:
        measuring = SignalMeasures(
            planted(origin, 0.8, 120, seed), AuditSettings(draws=200, seed=seed)
        )
        return find_route(collect_evidence(measuring))[0]

    routes = Counter(route(seed) for seed in range(SEEDS))
    wrong = routes.keys() - {RIGHT[origin], "undecided"}
    assert routes[RIGHT[origin]] >= 0.8 * SEEDS
    assert sum(routes[route] for route in wrong) <= 0.03 * SEEDS


def test_an_honest_signal_has_a_leak_share_near_one_where_recall_is_right() -> None:
    honest = found("truth", 0.99, 77, 3)
    assert honest.leak_share.estimate > 0.99
    assert honest.route == "undecided"
    assert "): a signal that follows one follows the other" in honest.reasons[2]


def test_what_leaks_goes_wrong_with_recall_and_what_is_honest_does_not() -> None:
    leaky, honest = found("recall", 0.8, 120, 1), found("truth", 0.8, 120, 1)
    assert leaky.route == "through_recall" and honest.route == "not_through_recall"
    assert leaky.follows_errors.ci_low > 0 > honest.follows_errors.ci_low
    assert honest.truth_beyond.ci_low > 0 > leaky.truth_beyond.ci_low
    assert "is wrong in the same direction" in leaky.reasons[1] and "At most " in honest.reasons[1]


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
    one = attribute(
        "s", triples(recall + 0.5 * rng.normal(size=60), recall, truth), AuditSettings()
    )
    assert one.route == "through_recall"
    assert "right or wrong" in one.reasons[0]


@pytest.mark.parametrize("dates", [0, 1, 3, 19])
def test_few_dates_are_undecided(dates: int) -> None:
    one = attribute("s", planted("recall", 0.8, 60, 1)[:dates], AuditSettings(draws=100))
    assert one.route == "undecided"
    assert one.reasons == (
        f"Only {dates} dates have a signal, a recalled value and a true value, but at least 20 are "
        "needed.",
    )


def test_a_constant_signal_is_undecided() -> None:
    flat = triples(np.ones(30), *np.random.default_rng(1).normal(size=(2, 30)))
    one = attribute("s", flat, AuditSettings(draws=100))
    assert one.route == "undecided" and "never vary" in one.reasons[0]
    assert np.isnan(one.dealt_truth.p_value) and np.isnan(one.leak_share.estimate)


def test_perfect_recall_is_undecided_and_what_it_leaves_undefined() -> None:
    truth, noise = np.random.default_rng(1).normal(size=(2, 40))
    one = attribute("s", triples(truth + noise, truth, truth), AuditSettings(draws=100))
    assert one.route == "undecided"
    assert one.reasons[1].endswith("it cannot be computed.")
    assert "): a signal that follows one follows the other" in one.reasons[2]
    shown = {row.what: row for row in attribution_rows(as_json(one))}
    for what in (
        "follows recall errors: partial r given true values",
        "follows true values beyond recall: partial r given recall",
    ):
        assert shown[what][1:] == ("undefined", "", "40")
    json.dumps(as_json(one), allow_nan=False)


def test_one_mistake_gives_numbers_without_an_interval_and_no_verdict() -> None:
    truth, noise = np.random.default_rng(1).normal(size=(2, 40))
    recall = truth + (np.arange(40) == 3)
    one = attribute("s", triples(truth + noise, recall, truth), AuditSettings(draws=100))
    assert one.route == "undecided" and "few errors" in one.reasons[2]
    for found in (one.follows_errors, one.truth_beyond):
        assert np.isfinite(found.estimate) and np.isnan([found.ci_low, found.ci_high]).all()
        assert span(found).endswith(" (no interval, n 40)")


def test_of_the_models_own_score_it_is_said_that_it_is_memory_in_any_case() -> None:
    dates = planted("truth", 0.8, 120, 1)
    assert attribute("sentiment", dates, AuditSettings(draws=100)).reasons[-1] == DATE_ALONE
    assert DATE_ALONE not in attribute("mine", dates, AuditSettings(draws=100)).reasons


@beside_records
def test_beside_sonnets_own_recall_an_honest_signal_has_a_leak_share_of_99_6_percent() -> None:
    series = open_series("mkt_rf", base=NUMLEAK, file=FILES["mkt_rf"])
    said = collect_answers(
        read_points(of(sweep("A"), "claude-sonnet", "mkt_rf"), series, None).points
    )
    truth, recall = standardise(said.truth), standardise(said.estimate)
    shares = list[float]()
    for seed in range(SEEDS):
        signal = signal_of("truth", truth, recall, np.random.default_rng(seed))
        rows, _ = sum_dates(triples(signal, recall, truth))
        spread = compute_covariances(rows.sum(axis=0))
        assert f"{float(spread.recall_r):.2f}" == "0.98"
        shares.append(float(spread.leak_share))
    assert len(said.periods) == 77
    assert f"{np.median(shares):.3f}" == "0.996"

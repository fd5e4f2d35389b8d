"""Scores over templates: held against scikit-learn, by hand, and against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats  # type: ignore[import-untyped]
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

from coreeval.evaluation import label_scores
from coreeval.evaluation.label_scores import (
    MISSING,
    AnswerTable,
    AnswerView,
    ViewScores,
    average_templates,
    expand_interval,
    resample,
    score_difference,
    score_draws,
    score_share_draws,
    two_sided_p,
)
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.evaluation.statistics import bootstrap_sums

LABELS = 3
UNPARSED, TRUNCATED, REFUSED = range(LABELS, LABELS + 3)
CODES = st.integers(MISSING, REFUSED)
LABEL = st.integers(0, LABELS - 1)


def _table(due: ArrayLike, *ways: ArrayLike) -> AnswerTable:
    return AnswerTable(np.array(due, np.int16), np.array(ways, np.int16).T, LABELS)


def _view(table: AnswerTable, *ways: int) -> AnswerView:
    return AnswerView(tuple(range(1, len(ways) + 1)), ways, table.is_counted[:, list(ways)])


def _scored(table: AnswerTable, *ways: int, draws: int = 50) -> ViewScores:
    (found,) = resample(table, [_view(table, *ways)], seed=7, draws=draws)
    return found


def _noisy(n: int, wrong: float, ways: int = 1, seed: int = 1) -> AnswerTable:
    chance = np.random.default_rng(seed)
    due = chance.integers(LABELS, size=n)
    said = [np.where(chance.random(n) < wrong, (due + 1) % LABELS, due) for _ in range(ways)]
    return _table(due, *said)


@given(st.lists(st.tuples(LABEL, CODES), min_size=1, max_size=30))
def test_macro_f1_is_that_of_scikit_learn_over_what_was_not_refused(
    rows: list[tuple[int, int]],
) -> None:
    table = _table([due for due, _ in rows], [said for _, said in rows])
    kept = [(due, said) for due, said in rows if said not in (MISSING, REFUSED)]
    found = _scored(table, 0, draws=2)
    assert found.n == len(kept)
    if not kept:
        assert np.isnan(found.macro_f1[0, 0])
        assert average_templates(found.macro_f1, found) == NO_SCORE
        return
    expected = f1_score(*zip(*kept, strict=True), labels=range(LABELS), average="macro",
                        zero_division=0)  # fmt: skip
    assert found.macro_f1[0, 0] == pytest.approx(expected)
    assert found.accuracy[0, 0] == pytest.approx(np.mean([a == b for a, b in kept]))


def test_answers_without_a_label_are_wrong_and_no_class() -> None:
    right = _scored(_table([0, 1, 2], [0, 1, 2]), 0)
    for fault in (UNPARSED, TRUNCATED):
        found = _scored(_table([0, 1, 2, 2], [0, 1, 2, fault]), 0)
        assert found.accuracy[0, 0] == 0.75
        # two of label 2 due, one given and hit: F1 = 2 / 3; the others stay at 1
        assert found.macro_f1[0, 0] == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert right.macro_f1[0, 0] == 1.0


def test_the_average_is_over_templates_not_over_questions() -> None:
    table = _table([0, 1, 2, 0], [0, 1, 2, 0], [1, 1, REFUSED, REFUSED])
    found = _scored(table, 0, 1)
    assert found.each.tolist() == [4, 2]
    # template 1 all right; template 2: one of two
    assert average_templates(found.accuracy, found).estimate == pytest.approx((1.0 + 0.5) / 2)
    assert average_templates(found.accuracy, found).n == 4


def test_a_template_that_was_always_refused_is_left_out_of_the_average() -> None:
    found = _scored(_table([0, 1], [0, 1], [REFUSED, REFUSED]), 0, 1)
    assert average_templates(found.accuracy, found).estimate == 1.0
    assert score_draws(found.accuracy[:, 1], int(found.each[1])) == NO_SCORE


def test_a_sample_brings_all_its_templates() -> None:
    """Three equal templates are no more than one; three that err apart make the mean surer."""
    chance = np.random.default_rng(3)
    due = np.zeros(400, np.int16)
    apart = [chance.integers(2, size=400) for _ in range(3)]
    same = _scored(_table(due, *[apart[0]] * 3), 0, 1, 2, draws=1000)
    alone = _scored(_table(due, apart[0]), 0, draws=1000)
    varied = _scored(_table(due, *apart), 0, 1, 2, draws=1000)

    def width(found: ViewScores) -> float:
        score = average_templates(found.accuracy, found)
        assert score.ci_low is not None and score.ci_high is not None
        return score.ci_high - score.ci_low

    assert width(same) == pytest.approx(width(alone))
    assert width(varied) == pytest.approx(width(alone) / 3**0.5, rel=0.15)


def test_equal_answers_in_two_arms_differ_by_no_more_than_one_answer() -> None:
    table = _noisy(100, 0.3)
    twice = AnswerTable(table.due, np.repeat(table.said, 2, axis=1), LABELS)
    one, two = resample(twice, [_view(twice, 0), _view(twice, 1)], seed=7, draws=100)
    found = score_difference(one.macro_f1, two.macro_f1, one)
    assert found == Score(estimate=0.0, ci_low=-0.01, ci_high=0.01, n=100)


def test_an_interval_has_the_width_that_theory_gives() -> None:
    found = _scored(_noisy(2000, 0.3), 0, draws=2000)
    score = average_templates(found.accuracy, found)
    assert score.estimate and score.ci_low is not None and score.ci_high is not None
    deviation = (score.estimate * (1 - score.estimate) / 2000) ** 0.5
    assert score.ci_high - score.ci_low == pytest.approx(2 * 1.96 * deviation, rel=0.08)


def test_many_samples_are_resampled_in_groups_with_the_same_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = _noisy(4000, 0.3, ways=3)
    singly = average_templates(*_f1(_scored(table, 0, 1, 2, draws=1000)))
    monkeypatch.setattr(label_scores, "GROUPS", 1000)
    grouped = average_templates(*_f1(_scored(table, 0, 1, 2, draws=1000)))
    assert grouped.estimate == pytest.approx(singly.estimate)
    assert grouped.n == singly.n
    ends = (singly.ci_low, singly.ci_high, grouped.ci_low, grouped.ci_high)
    low, high, low_grouped, high_grouped = [end for end in ends if end is not None]
    assert high_grouped - low_grouped == pytest.approx(high - low, rel=0.15)


def _f1(found: ViewScores) -> tuple[label_scores.Floats, ViewScores]:
    return found.macro_f1, found


def test_the_draws_depend_on_the_seed_and_on_nothing_else() -> None:
    table = _noisy(50, 0.3)
    again = _scored(table, 0)
    assert np.array_equal(_scored(table, 0).macro_f1, again.macro_f1)
    (other,) = resample(table, [_view(table, 0)], seed=8, draws=50)
    assert not np.array_equal(other.macro_f1, again.macro_f1)


def test_pairing_narrows_the_difference() -> None:
    """Ten of 100 samples are lost; unpaired intervals of 0.8 and 0.7 would overlap widely."""
    before, after = [0] * 80 + [1] * 20, [0] * 70 + [1] * 30
    table = _table([0] * 100, before, after)
    one, two = resample(table, [_view(table, 0), _view(table, 1)], seed=7, draws=2000)
    score = score_difference(one.accuracy, two.accuracy, one)
    assert score.estimate == pytest.approx(-0.1)
    # the exact spread of a sum of 100 rows of which a tenth is -1: sqrt(.1*.9/100) = .03
    # and one answer more, 1 of 100
    assert score.ci_low == pytest.approx(-0.1 - 1.96 * 0.032, abs=0.011)
    assert score.ci_high == pytest.approx(-0.1 + 1.96 * 0.032, abs=0.011)


def test_the_bootstrap_agrees_with_resampling_the_samples() -> None:
    table = _noisy(150, 0.3, ways=2)
    one, two = resample(table, [_view(table, 0), _view(table, 1)], seed=7, draws=2000)
    score = score_difference(one.macro_f1, two.macro_f1, one)
    chance = np.random.default_rng(3)
    values = [_gain(table, chance.integers(150, size=150)) for _ in range(250)]
    low, high = np.quantile(values, [0.025, 0.975])
    assert score.ci_low == pytest.approx(low, abs=0.03)
    assert score.ci_high == pytest.approx(high, abs=0.03)


def _gain(table: AnswerTable, drawn: label_scores.Numbers) -> float:
    first, second = (
        f1_score(table.due[drawn], table.said[drawn, way], labels=range(LABELS), average="macro",
                 zero_division=0)
        for way in (0, 1)
    )  # fmt: skip
    return float(second - first)


@given(st.lists(st.tuples(LABEL, CODES, CODES), min_size=2, max_size=20))
def test_intervals_are_ordered_and_bounded(rows: list[tuple[int, int, int]]) -> None:
    due, first, second = zip(*rows, strict=True)
    found = _scored(_table(due, first, second), 0, 1)
    for values in (found.macro_f1, found.accuracy):
        score = average_templates(values, found)
        if score.ci_low is not None and score.ci_high is not None:
            assert 0 <= score.ci_low <= score.ci_high <= 1


def test_one_sample_has_no_interval() -> None:
    found = _scored(_table([1], [1]), 0)
    assert average_templates(found.accuracy, found) == Score(
        estimate=1.0, ci_low=None, ci_high=None, n=1
    )


def test_kinds_are_counted_over_ways() -> None:
    table = _table([0, 1, 2], [0, REFUSED, MISSING], [UNPARSED, TRUNCATED, 1])
    every = np.array([True, True, True])
    assert table.kinds((0, 1), every) == {
        "answered": 2,
        "unparsed": 1,
        "truncated": 1,
        "refused": 1,
    }
    assert table.kinds((0,), np.array([False, True, False]))["refused"] == 1


def test_a_score_whose_draws_are_all_the_same_has_an_interval_with_a_width() -> None:
    found = score_share_draws(np.ones(201), 79)
    assert (found.estimate, found.ci_high) == (1.0, 1.0)
    assert found.ci_low == pytest.approx(0.954, abs=0.001)  # Wilson (1927): 79 of 79


def test_right_answers_about_few_documents_are_no_more_certain_than_the_documents() -> None:
    found = score_share_draws(np.ones(201), 50, units=5)
    assert found.ci_low == pytest.approx(0.566, abs=0.001)  # Wilson (1927): 5 of 5
    alone = score_share_draws(np.ones(201), 50, units=1)
    assert (alone.estimate, alone.ci_low, alone.ci_high) == (1.0, None, None)
    table = AnswerTable(np.zeros(50, np.int16), np.zeros((50, 1), np.int16), LABELS,
                        np.arange(50) // 10)  # fmt: skip
    found_by_draws = _scored(table, 0, draws=200)
    score = average_templates(found_by_draws.accuracy, found_by_draws)
    assert score == found


def test_few_samples_have_the_interval_and_the_p_value_of_student() -> None:
    values = 0.5 + stats.norm.ppf((np.arange(15) + 0.5) / 15)
    sums = bootstrap_sums(values[:, None], 20000, np.random.default_rng(3))
    replicates = np.concatenate([[values.mean()], sums[:, 0] / 15])
    found = expand_interval(replicates, 15)
    low, high = stats.t.interval(0.95, 14, loc=values.mean(), scale=stats.sem(values))
    assert found.ci_low == pytest.approx(low, abs=0.03)
    assert found.ci_high == pytest.approx(high, abs=0.03)
    assert two_sided_p(replicates, 15) == pytest.approx(
        stats.ttest_1samp(values, 0).pvalue, abs=0.01
    )


def test_one_sample_has_no_interval_and_none_no_number() -> None:
    one = np.array([1.0, 1.0])
    assert expand_interval(one, 1).estimate == 1
    assert expand_interval(one, 1).ci_low is None
    assert two_sided_p(one, 1) is None
    assert expand_interval(one * np.nan, 0).estimate is None


def test_a_difference_knows_of_the_answer_that_was_not_drawn() -> None:
    same = np.zeros(1001)
    one = expand_interval(same, 100)
    assert (one.ci_low, one.ci_high) == pytest.approx((0, 0.037), abs=0.001)  # Wilson: 0 of 100
    found = expand_interval(same, 100, answers=1)
    assert (found.ci_low, found.ci_high) == pytest.approx((-0.01, 0.01))
    assert two_sided_p(same, 100, answers=1) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_the_p_value_is_that_of_the_interval_that_just_holds_0(sign: int) -> None:
    draws = np.random.default_rng(5).normal(0.02, 0.01, 20_000)
    values = sign * np.concatenate([[0.02], draws])
    p_value = two_sided_p(values, 10_000, answers=100)
    assert p_value is not None
    tail = np.quantile(draws, p_value / 2)
    assert 0.02 - np.hypot(0.02 - tail, 0.01) == pytest.approx(0, abs=1e-4)
    assert two_sided_p(values, 10_000) == pytest.approx(p_value * 0.53, rel=0.2)

"""What defences cost: NumLeak's own scores, and judges that disagree or will not score."""

import math

import numpy as np
import pytest

from coreeval.evaluation.numleak.defences.answers import Scored
from coreeval.evaluation.numleak.defences.found import defences_of
from coreeval.evaluation.numleak.defences.questions import Category
from coreeval.evaluation.numleak.defences.usefulness import Useful, agreement_of, mean_score, useful
from tests.evaluation.numleak.defences.kit import SERIES, attacked, judged
from tests.support.numleak_records import beside_records, rows

FULL = [4] * 6
Published = dict[Category, list[int | None]]
NONE: Published = {"conceptual": [*FULL], "history": [*FULL], "adjacent_numeric": [*FULL]}
RETRIEVAL: Published = {
    "conceptual": [*FULL],
    "history": [4, 4, 4, 4, 4, 3],
    "adjacent_numeric": [4, 4, 4, 2, 1, 1],
}


@beside_records
def test_two_judges_agree_as_published() -> None:
    pairs = [
        (row["sonnet_score"], row["opus_score"]) for row in rows("mitigation_judge_replication")
    ]
    found = agreement_of(pairs, first="sonnet", second="opus")
    assert found.n == 50
    assert round(found.pearson_r.estimate, 3) == 0.831
    assert round(found.exact.estimate * found.n) == 36 and found.exact.ci_low > 0.58
    assert found.within_one.estimate == 1 and found.within_one.ci_low == pytest.approx(
        0.929, abs=1e-3
    )
    assert (round(found.first_mean, 2), round(found.second_mean, 2)) == (3.80, 3.52)
    one, other = np.array(pairs).T
    apart = np.var(one) + np.var(other) + (one.mean() - other.mean()) ** 2
    concordance = 2 * np.cov(one, other, bias=True)[0, 1] / apart
    assert found.weighted_kappa == pytest.approx(concordance), "Lin's (1989): the same number"
    assert round(found.weighted_kappa, 3) == 0.768


def test_weighted_kappa_by_hand() -> None:
    found = agreement_of([(0, 0), (0, 4), (4, 4), (4, 4)], first="a", second="b")
    seen, expected = 16 / 4, (2 * 3 * 16 + 2 * 1 * 16) / 16
    assert found.weighted_kappa == 1 - seen / expected
    alike = agreement_of([(4, 4)] * 5, first="a", second="b")
    assert math.isnan(alike.weighted_kappa) and math.isnan(alike.pearson_r.estimate)
    assert alike.exact.estimate == 1
    nobody = agreement_of([], first="a", second="b")
    assert nobody.n == 0 and math.isnan(nobody.first_mean)


def scores(which: Published, before: Published | None = None) -> Useful:
    control = judged("m", "none", before) if before else []
    return useful(judged("m", "d", which), control, judge="judge")


def test_the_means_of_a_defence_as_in_table_17() -> None:
    found = scores(RETRIEVAL, NONE)
    assert found.mean.estimate == 3.5 and (found.n, found.scored) == (18, 18)
    means = {name: round(each.estimate, 2) for name, each in found.categories.items()}
    assert means == {"conceptual": 4.00, "history": 3.83, "adjacent_numeric": 2.67}
    assert found.change.estimate == pytest.approx(-0.5)
    assert found.change.ci_low < -0.5 < found.change.ci_high


def test_a_mean_has_a_width_where_all_scores_are_alike() -> None:
    found = mean_score([4] * 18)
    assert (found.estimate, found.ci_high) == (4, 4)
    assert found.ci_low == pytest.approx(3.2965, abs=1e-3), "four times Wilson's of 18 of 18"
    assert math.isnan(mean_score([]).estimate)
    same = scores(NONE, NONE).change
    assert same.estimate == 0 and math.isnan(same.ci_low)


def test_what_a_judge_does_not_score_counts_for_nothing_and_not_as_nought() -> None:
    found = scores({"conceptual": [4, None, 4, None]})
    assert (found.n, found.scored, found.unscored) == (4, 2, 2)
    assert found.mean.estimate == 4
    assert math.isnan(found.change.estimate), "there is no control"


def test_an_answer_that_was_cut_off_is_not_scored() -> None:
    replies = judged("m", "d", {"conceptual": [4, 0]})
    replies[1] = replies[1].model_copy(update={"kind": "truncated"})
    found = useful(replies, [], judge="judge")
    assert (found.scored, found.unscored, found.truncated, found.mean.estimate) == (1, 0, 1, 4)


def test_the_first_judge_counts_and_the_second_is_held_against_it() -> None:
    replies = judged("m", "soft", {"history": [4, 3, 2, 1, None]})
    second = [Scored(judge="other", score=score) for score in (4, 2, 2, None)]
    replies[:4] = [
        one.model_copy(update={"scores": (*one.scores, score)})
        for one, score in zip(replies, second, strict=False)
    ]
    found = defences_of(attacked("m", "soft"), replies, SERIES, {})
    assert found is not None and found.agreement is not None
    assert found.judges == ("judge", "other")
    assert found.agreement.n == 3 and found.agreement.exact.estimate == pytest.approx(2 / 3)
    cell = found.cells[0].useful
    assert cell is not None and cell.mean.estimate == 2.5
    assert "The judge judge gave no score to 1 of 5 answers" in found.notes[1]


def test_usefulness_alone_is_told_too() -> None:
    found = defences_of([], judged("m", "soft", NONE), SERIES, {})
    assert found is not None and found.cells[0].held.plain.n == 0

"""Rankings of candidates: Table 18 from its records, and cases made by hand."""

from collections.abc import Mapping
from statistics import mean, stdev

import pytest

from coreeval.evaluation.numleak.rankings.reading import Candidate, read_candidates
from coreeval.evaluation.numleak.rankings.scoring import Ranking, ranked, rankings
from coreeval.evaluation.numleak.statistics import Settings
from tests.support.numleak_records import RESPONSES, beside_records, rows

FEW = Settings(draws=200, seed=1)
SEEDS = ("SMR_A_5x", "SMR_A_5x_s42", "SMR_A_5x_s7", "SMR_A_5x_s13")


def at(date: str, text: str = "+1.00", **scores: float) -> list[Candidate]:
    """Return the candidates of a date by name; only the true one has a text."""
    return [
        Candidate(model="m", date=date, candidate=name, mean_logprob=score,
                  text=text if name == "true" else None)
        for name, score in scores.items()
    ]  # fmt: skip


def one(*dates: list[Candidate]) -> Ranking:
    (found,) = rankings([each for those in dates for each in those], FEW)
    return found


# -- the paper's table ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> Mapping[str, Ranking]:
    found = read_candidates(RESPONSES / "71b_logprob_ranking.jsonl.gz")
    assert (len(found.good), len(found.bad), found.passed_over) == (1200, 0, 248)
    return {each.model: each for each in rankings(found.good, FEW)}


@beside_records
@pytest.mark.parametrize(
    ("model", "top1", "rank", "gap"),
    [
        ("SMR_A_0x", "0.10", "3.33", "-0.753"),
        ("SMR_A_1x", "0.13", "3.33", "-0.434"),
        ("SMR_A_20x", "0.93", "1.07", "+0.826"),
    ],
)
def test_table_18(
    published: Mapping[str, Ranking], model: str, top1: str, rank: str, gap: str
) -> None:
    found = published[model]
    assert f"{found.top1.estimate:.2f}" == top1
    assert f"{found.mean_rank.estimate:.2f}" == rank
    assert f"{found.mean_gap.estimate:+.3f}" == gap
    assert (found.n, found.candidates, found.chance_rank) == (30, 5, 3)
    assert found.chance == pytest.approx(0.2)


@beside_records
def test_table_18_over_the_seeds_of_five_mentions(published: Mapping[str, Ranking]) -> None:
    found = [published[name] for name in SEEDS]
    told = {
        "top1": [each.top1.estimate for each in found],
        "rank": [each.mean_rank.estimate for each in found],
        "gap": [each.mean_gap.estimate for each in found],
    }
    assert f"{mean(told['top1']):.2f} ± {stdev(told['top1']):.2f}" == "0.67 ± 0.26"
    assert f"{mean(told['rank']):.2f} ± {stdev(told['rank']):.2f}" == "1.48 ± 0.44"
    assert f"{mean(told['gap']):+.3f} ± {stdev(told['gap']):.3f}" == "+0.352 ± 0.320"
    assert all(each.top1.ci_low > each.chance and each.p_value < 0.01 for each in found)


@beside_records
@pytest.mark.parametrize(
    ("model", "won", "lost"),
    [("SMR_A_5x_s42", 6, 6), ("SMR_A_5x", 11, 15), ("SMR_A_20x", 1, 2), ("SMR_A_mirrored", 10, 11)],
)
def test_where_the_true_value_loses_its_neighbour_wins(
    published: Mapping[str, Ranking], model: str, won: int, lost: int
) -> None:
    neighbour = published[model].lost_to["adjacent_month"]
    assert (round(neighbour.estimate * neighbour.n), neighbour.n) == (won, lost)


@beside_records
def test_the_authors_own_ranks_come_out() -> None:
    lines = rows("71b_logprob_ranking")
    theirs = {
        (row["model_tag"], row["date"]): row for row in lines if row["type"] == "rank_summary"
    }
    found = read_candidates(RESPONSES / "71b_logprob_ranking.jsonl.gz").good
    for key, row in theirs.items():
        made, _ = ranked(key[1], [each for each in found if (each.model, each.date) == key])
        assert made is not None
        assert made.rank == row["true_rank"]
        assert made.gap == pytest.approx(row["true_minus_best_other"])


# -- by hand --------------------------------------------------------------------------------------


def test_ranks_gaps_and_who_wins() -> None:
    found = one(
        at("2000", true=-1.0, sign_flip=-2.0, decoy=-3.0),
        at("2001", true=-2.0, sign_flip=-1.0, decoy=-3.0),
        at("2002", true=-4.0, sign_flip=-1.0, decoy=-3.0),
        at("2003", true=-2.0, sign_flip=-3.0, decoy=-1.5),
    )
    assert found.top1.estimate == 0.25 and found.chance == pytest.approx(1 / 3)
    assert found.mean_rank.estimate == 2.0 == found.chance_rank
    assert found.mean_gap.estimate == pytest.approx((1 - 1 - 3 - 0.5) / 4)
    assert {name: round(3 * each.estimate) for name, each in found.lost_to.items()} == {
        "sign_flip": 2, "decoy": 1,
    }  # fmt: skip
    assert found.p_value == pytest.approx(1 - (2 / 3) ** 4)


def test_equals_share_a_rank_and_neither_is_first() -> None:
    found = one(at("2000", true=-1.0, decoy=-1.0), at("2001", true=-1.0, decoy=-2.0))
    assert found.mean_rank.estimate == 1.0
    assert found.top1.estimate == 0.5 and found.lost_to["decoy"].n == 1


def test_chance_follows_the_number_of_candidates_of_each_date() -> None:
    found = one(at("2000", true=-1.0, a=-2.0), at("2001", true=-1.0, a=-2.0, b=-3.0, c=-4.0))
    assert found.chance == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert found.p_value == pytest.approx(1 / 8) and found.candidates == 3


def test_what_cannot_be_ranked_is_left_out_with_its_reason() -> None:
    twin = Candidate(model="m", date="2002", candidate="sign_flip", text="0.00", mean_logprob=-1)
    same = [*at("2002", text="0.00", true=-1.0, decoy=-2.0), twin]
    found = one(at("2000", decoy=-1.0), at("2001", true=-1.0), same)
    assert found.n == 1 and found.candidates == 2
    assert [(each.date, each.reason) for each in found.left_out] == [
        ("2000", "no candidate is called 'true'"),
        ("2001", "there is nothing to rank the true value against"),
        ("2002", "sign_flip has the text of the true value"),
    ]
    nothing = one(at("2000", decoy=-1.0))
    assert nothing.n == 0 and nothing.top1.n == 0 and nothing.p_value != nothing.p_value


def test_models_and_series_stand_apart() -> None:
    several = [
        each.model_copy(update={"model": model, "series": series})
        for model, series in (("a", ""), ("b", ""), ("a", "tides"))
        for each in at("2000", true=-1.0, decoy=-2.0)
    ]
    assert [(each.model, each.series, each.n) for each in rankings(several, FEW)] == [
        ("a", "", 1), ("b", "", 1), ("a", "tides", 1),
    ]  # fmt: skip

"""Entropies of answers, and candidates ranked by log-probabilities."""

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.replies import Point, TokenReading
from coreeval.evaluation.numleak.statistics import AuditSettings, measure
from coreeval.evaluation.numleak.statistics.logprobs import (
    CandidateRanking,
    RankingCandidate,
    compare_entropies,
    list_entropy_notes,
    rank_candidates,
    rank_date,
    read_candidates,
)
from coreeval.evaluation.statistics import Array
from tests.evaluation.numleak.statistics.kit import DEFINITION, FEW, asked, returns
from tests.support.numleak_records import RESPONSES, beside_records, rows


def points(bits: Array, *, invented: bool = False) -> list[Point]:
    """Return an answer for each month with so many bits; nan was not measured."""
    made = asked(
        returns(len(bits)), returns(len(bits)), variant="fictitious" if invented else "value"
    )
    return [
        replace(
            one, read_out=TokenReading(None, "no value") if math.isnan(each) else TokenReading(each)
        )
        for one, each in zip(made, bits.tolist(), strict=True)
    ]


def test_what_is_memorized_is_more_peaked_than_what_is_made_up() -> None:
    rng = np.random.default_rng(3)
    low, high = rng.gamma(1.0, 0.21, 30), rng.gamma(9.0, 1.14 / 9, 30)
    found = compare_entropies(points(low), points(high, invented=True), FEW)
    assert found is not None
    assert found.series.mean.estimate == pytest.approx(low.mean())
    assert found.fictitious.median.estimate == pytest.approx(np.median(high))
    assert found.series.bits == tuple(sorted(low.tolist()))
    assert found.difference.estimate == pytest.approx(high.mean() - low.mean())
    assert found.difference.ci_low > 0 and found.p_value == pytest.approx(1 / 401)
    for metric in (found.series.mean, found.series.median, found.fictitious.median):
        assert metric.ci_low < metric.estimate < metric.ci_high and metric.dates == 30


def test_two_of_a_kind_do_not_differ_and_equal_answers_differ_never() -> None:
    rng = np.random.default_rng(1)
    found = compare_entropies(points(rng.gamma(2, 0.5, 40)), points(rng.gamma(2, 0.5, 40)), FEW)
    assert found is not None and found.difference.ci_low < 0 < found.difference.ci_high
    assert found.p_value > 0.05
    same = compare_entropies(points(np.full(6, 0.5)), points(np.full(6, 0.5)), FEW)
    assert same is not None and same.p_value == 1.0
    assert same.series.median[:3] == (0.5, 0.5, 0.5)


def test_the_permutation_test_holds_its_level() -> None:
    rng, found = np.random.default_rng(5), []
    for _ in range(200):
        made = compare_entropies(points(rng.gamma(1, 0.5, 12)), points(rng.gamma(1, 0.5, 12)),
                         AuditSettings(draws=200, seed=int(rng.integers(99))))  # fmt: skip
        assert made is not None
        found.append(made.p_value)
    assert np.mean(np.array(found) <= 0.05) < 0.1


def test_what_has_none_is_counted_with_its_reason() -> None:
    value = points(np.array([0.1, math.nan, 0.2, math.nan]))
    value[3] = replace(value[3], read_out=None)
    found = compare_entropies(value, [], FEW)
    assert found is not None
    assert (found.series.asked, found.series.mean.n) == (4, 2)
    assert found.series.left_out == {"no value": 1, "no log-probabilities were returned": 1}
    assert math.isnan(found.series.mean.ci_low) and math.isnan(found.p_value)
    assert math.isnan(found.difference.estimate) and not found.fictitious.bits
    notes = list(list_entropy_notes(found))
    assert notes[0].startswith("2 of 4 answers about the series have no entropy: no value (1)")
    assert notes[1].startswith(
        "the entropies cannot be compared, because the model was not asked about any fictitious "
        "series"
    )


def test_several_answers_on_a_date_are_one_date() -> None:
    twice = points(np.array([0.1, 0.2, 0.3, 0.4, 0.5])) * 2
    found = compare_entropies(twice, [], FEW)
    assert found is not None
    assert (found.series.mean.n, found.series.mean.dates) == (10, 5)
    assert (found.series.median.n, found.series.median.dates) == (10, 5)


def test_answers_without_log_probabilities_have_no_entropies() -> None:
    plain = asked([1.0] * 6, [1.0] * 6)
    assert compare_entropies(plain, plain, FEW) is None
    assert measure(plain, definition=DEFINITION, settings=FEW).entropy is None
    assert list(list_entropy_notes(None)) == []


LINE = {"model": "m", "date": "2000-01", "candidate": "true", "text": "+1.0", "mean_logprob": -0.5}
GOOD = RankingCandidate(model="m", date="2000-01", candidate="true", text="+1.0", mean_logprob=-0.5)


def write(path: Path, *lines: object) -> Path:
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    path.write_text(text, encoding="utf-8")
    return path


def test_our_names_and_the_authors_both_are_read(tmp_path: Path) -> None:
    theirs = {"type": "record", "model_tag": "m", "date": 200001, "candidate": "sign_flip",
              "candidate_text": "-1.0", "mean_logprob": -1, "n_tokens": 5}  # fmt: skip
    summary = {"type": "summary", "model_tag": "m", "n": 30}
    found = read_candidates(write(tmp_path / "a.jsonl", LINE, "", theirs, summary))
    assert found.good == (
        GOOD,
        RankingCandidate(
            model="m", date="200001", candidate="sign_flip", text="-1.0", mean_logprob=-1
        ),
    )
    assert (found.bad, found.passed_over) == ((), 1)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    assert read_candidates(packed) == found


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "the value is not a JSON object"),
        ({**LINE, "mean_logprob": 0.1}, "mean_logprob: input should be less than or equal to 0"),
        ({**LINE, "mean_logprob": None}, "mean_logprob: input should be a valid number"),
        (
            '{"model":"m","date":"1","candidate":"a","mean_logprob":-Infinity}',
            "mean_logprob must be a",
        ),
        ('{"model":"m","date":"1","candidate":"a","mean_logprob":NaN}', "mean_logprob: "),
        ({key: each for key, each in LINE.items() if key != "model"}, "model: field required"),
        ({**LINE, "candidate": ""}, "candidate: string should have at least 1 character"),
        ({**LINE, "text": "\ud800", "date": "2001"}, "incomplete character"),
        (LINE, "duplicate candidate for this date, first in line 1"),
    ],
)
def test_a_bad_line_has_its_number_and_reason(tmp_path: Path, line: object, reason: str) -> None:
    found = read_candidates(write(tmp_path / "a.jsonl", LINE, line))
    assert found.good == (GOOD,)
    (bad,) = found.bad
    assert (bad.file, bad.line) == ("a.jsonl", 2) and reason in bad.reason


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "is empty"),
        (["{"], "the file has 1 line, but none is a candidate; line 1: not JSON"),
        ([{"type": "summary"}], "the file has 1 line, but none is a candidate"),
    ],
)
def test_a_file_without_a_candidate_is_refused(
    tmp_path: Path, lines: list[object], said: str
) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        read_candidates(write(tmp_path / "a.jsonl", *lines))
    assert caught.value.where.endswith("a.jsonl") and 'called "true"' in caught.value.hint


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot read"):
        read_candidates(tmp_path / "none.jsonl")


FEW_DRAWS = AuditSettings(draws=200, seed=1)
SEEDS = ("SMR_A_5x", "SMR_A_5x_s42", "SMR_A_5x_s7", "SMR_A_5x_s13")


def at(date: str, text: str = "+1.00", **scores: float) -> list[RankingCandidate]:
    """Return the candidates of a date by name; only the true one has a text."""
    return [
        RankingCandidate(model="m", date=date, candidate=name, mean_logprob=score,
                  text=text if name == "true" else None)
        for name, score in scores.items()
    ]  # fmt: skip


def one(*dates: list[RankingCandidate]) -> CandidateRanking:
    (found,) = rank_candidates([each for those in dates for each in those], FEW_DRAWS)
    return found


# -- the paper's table ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> Mapping[str, CandidateRanking]:
    found = read_candidates(RESPONSES / "71b_logprob_ranking.jsonl.gz")
    assert (len(found.good), len(found.bad), found.passed_over) == (1200, 0, 248)
    return {each.model: each for each in rank_candidates(found.good, FEW_DRAWS)}


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
    published: Mapping[str, CandidateRanking], model: str, top1: str, rank: str, gap: str
) -> None:
    found = published[model]
    assert f"{found.top1.estimate:.2f}" == top1
    assert f"{found.mean_rank.estimate:.2f}" == rank
    assert f"{found.mean_gap.estimate:+.3f}" == gap
    assert (found.n, found.candidates, found.chance_rank) == (30, 5, 3)
    assert found.chance == pytest.approx(0.2)


@beside_records
def test_table_18_over_the_seeds_of_five_mentions(
    published: Mapping[str, CandidateRanking],
) -> None:
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
    published: Mapping[str, CandidateRanking], model: str, won: int, lost: int
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
        made, _ = rank_date(key[1], [each for each in found if (each.model, each.date) == key])
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
    twin = RankingCandidate(
        model="m", date="2002", candidate="sign_flip", text="0.00", mean_logprob=-1
    )
    same = [*at("2002", text="0.00", true=-1.0, decoy=-2.0), twin]
    found = one(at("2000", decoy=-1.0), at("2001", true=-1.0), same)
    assert found.n == 1 and found.candidates == 2
    assert [(each.date, each.reason) for each in found.left_out] == [
        ("2000", "no candidate is called 'true'"),
        ("2001", "there is no other candidate to rank against the true value"),
        ("2002", "sign_flip has the same text as the true value"),
    ]
    nothing = one(at("2000", decoy=-1.0))
    assert nothing.n == 0 and nothing.top1.n == 0 and nothing.p_value != nothing.p_value


def test_models_and_series_stand_apart() -> None:
    several = [
        each.model_copy(update={"model": model, "series": series})
        for model, series in (("a", ""), ("b", ""), ("a", "tides"))
        for each in at("2000", true=-1.0, decoy=-2.0)
    ]
    assert [(each.model, each.series, each.n) for each in rank_candidates(several, FEW_DRAWS)] == [
        ("a", "", 1), ("b", "", 1), ("a", "tides", 1),
    ]  # fmt: skip

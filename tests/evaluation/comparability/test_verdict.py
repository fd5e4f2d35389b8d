"""Words, verdicts and sentences beside values that can be reckoned by hand."""

import pytest

from coreeval.evaluation.comparability.rows import (
    describe_depths,
    describe_reuse,
    list_absent,
    list_rows,
    list_sources,
    read_comparability,
)
from coreeval.evaluation.comparability.verdict import (
    LIMITS,
    Comparability,
    Measure,
    choose_word,
    judge_measures,
    samples_needed,
)
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.meanings import COMPARABILITY


def score(low: float, value: float, high: float, n: int = 50) -> Score:
    return Score(estimate=value, ci_low=low, ci_high=high, n=n)


def measured(name: str, value: Score, *, p: float | None = None, margin: float = 1.0) -> Measure:
    limit = LIMITS[name]
    low, high = (limit.low, limit.high) if p is None else (-margin, margin)
    return Measure(
        name=name,
        original=None if p is None else 2.0,
        updated=None if p is None else 2.0 + (value.estimate or 0),
        score=value,
        low=low,
        high=high,
        p_adjusted=p,
        word=choose_word(value, low, high, p),
        decides=limit.decides,
    )


@pytest.mark.parametrize(
    ("value", "p", "word"),
    [
        (score(0.9, 1, 1.1), None, "alike"),
        (score(0.8, 1, 1.25), None, "alike"),
        (score(0.79, 1, 1.1), None, "cannot_tell"),
        (score(0.5, 0.6, 0.79), None, "differs"),
        (score(0.5, 0.7, 0.81), None, "cannot_tell"),
        (score(1.3, 1.4, 1.5), None, "differs"),
        (score(0.81, 0.7, 0.9), 0.05, "alike"),
        (score(0.6, 0.7, 0.9), 0.05, "differs"),
        (score(0.6, 0.7, 0.9), 0.051, "cannot_tell"),
        (score(0.5, 0.6, 0.7, n=5), None, "cannot_tell"),
        (score(0.5, 0.6, 0.7, n=6), None, "differs"),
        (Score(estimate=0.1, ci_low=None, ci_high=None, n=50), None, "cannot_tell"),
        (NO_SCORE, None, "cannot_tell"),
    ],
)
def test_words(value: Score, p: float | None, word: str) -> None:
    assert choose_word(value, 0.8, 1.25, p) == word


def test_one_sided_ranges() -> None:
    assert choose_word(score(0.8, 0.9, 1), 0.8, None) == "alike"
    assert choose_word(score(0.1, 0.2, 0.29), None, 0.3) == "alike"
    assert choose_word(score(0.31, 0.5, 0.6), None, 0.3) == "differs"


def test_the_largest_difference_is_named_first_and_only_those_that_decide() -> None:
    verdict, sentences, needed = judge_measures(
        [
            measured("structure", score(0.4, 0.45, 0.5)),
            measured("length_ratio", score(0.36, 0.45, 0.58)),
            measured("headline_only", score(1, 1, 1)),
            measured("grade", score(1.1, 1.2, 1.3), p=0.01),
        ]
    )
    assert (verdict, needed) == ("not_comparable", None)
    assert [each.split("(")[0].strip() for each in sentences] == [
        "The updated texts are shorter",
        "The updated texts often rest on news that is similar only in structure",
        "The updated texts are harder to read",
    ]
    assert sentences[0].endswith(
        "0.45 (0.36 to 0.58, n = 50); values of 0.80 to 1.25 are equivalent."
    )
    assert (
        "2 before, 3.2 after, difference +1.2 (+1.1 to +1.3, n = 50); values of -1 to +1 are"
        in (sentences[2])
    )


def test_alike_and_open_measures() -> None:
    alike, wide = score(0.95, 1, 1.05), score(0.7, 1, 1.3)
    assert judge_measures([measured("length_ratio", alike)])[0] == "comparable"
    verdict, sentences, needed = judge_measures(
        [measured("length_ratio", wide), measured("length_share", score(0.9, 0.95, 1))]
    )
    assert (verdict, needed) == ("cannot_tell", samples_needed(measured("length_ratio", wide)))
    assert "texts of" not in sentences[0] and "50 samples are too few" in sentences[0]


def test_where_no_number_of_samples_can_be_named_few_samples_are_no_reason_to_stop() -> None:
    few, many = (measured("numbers", score(-1, 0, 1, n), p=1.0, margin=0.0) for n in (3, 50))
    _, [told], needed = judge_measures([few])
    assert needed is None and "3 samples are too few" in told and "hardly" not in told
    assert told.endswith("So few cannot show how many would suffice.")
    _, [told], _ = judge_measures([many])
    assert told.startswith("50 samples cannot decide this measure") and "too few" not in told
    assert "More samples would hardly help" in told


def test_a_sentence_names_four_measures_at_most() -> None:
    wide = score(-9, 0, 9)
    names = ("sentences", "grade", "oddness", "numbers", "capitals", "rare_words")
    _, [sentence], _ = judge_measures([measured(name, wide, p=1.0) for name in names])
    assert "under a neutral model; % of words with a digit; and 2 more measures. About" in sentence


def test_the_number_of_samples_that_would_tell() -> None:
    # 0.3 must shrink to 0.2, the way from 1 to the nearer end: 50 x (0.3 / 0.2)^2 = 113.
    assert samples_needed(measured("length_ratio", score(0.7, 1, 1.3))) == 120
    # On the end of the range a quarter of its width, 0.1125: 50 x (0.3 / 0.1125)^2 = 356.
    assert samples_needed(measured("length_ratio", score(0.5, 0.8, 1.1))) == 360
    assert samples_needed(measured("length_ratio", score(-50, 1, 50))) is None
    assert samples_needed(measured("length_ratio", NO_SCORE)) == 6


def test_every_measure_has_a_source_and_every_verdict_its_words() -> None:
    assert all(limit.source and limit.title for limit in LIMITS.values())
    assert all(limit.less or limit.low is None for limit in LIMITS.values())
    assert set(COMPARABILITY) == {"comparable", "not_comparable", "cannot_tell"}


FOUND = Comparability(
    verdict="not_comparable",
    sentences=("They differ.",),
    samples=9,
    compared=8,
    measures=(
        measured("length_ratio", score(0.3, 0.45, 0.5)).model_copy(update={"part": "premise"}),
        measured("difficulty", score(0.1, 0.2, 0.3), p=0.01, margin=0.05),
        measured("headline_only", Score(estimate=1.0, ci_low=None, ci_high=None, n=1)),
    ),
    absent={"topic": "no embeddings", "gone": "unknown to this version"},
    events={"1": 7, "2": 1},
    most_reused=2,
    rungs={"named": 9},
    depths={"headline": 8, "article": 1},
)


def test_rows_for_a_reader() -> None:
    length, hard, depth = list_rows(FOUND)
    assert (length.value, length.span, length.range) == ("0.45", "0.30 to 0.50", "0.80 to 1.25")
    assert "field premise" in length.notes
    assert (hard.original, hard.updated, hard.value) == ("2.000", "2.200", "+0.200")
    assert (depth.value, depth.span, depth.word) == ("100 %", "", "cannot_tell")
    assert depth.notes == ("informative only",)
    assert describe_reuse(FOUND) == "7 events support 1 sample each; 1 event supports 2 samples."
    assert describe_depths(FOUND) == "8 rest on a headline alone and 1 rests on an article's text"
    assert [each.source for each in list_absent(FOUND)] == ["no embeddings"]
    assert len(list_sources(FOUND)) == 3


def test_what_a_report_says_is_read_again_and_nothing_else_is_an_error() -> None:
    dumped = FOUND.model_dump(mode="json")
    assert read_comparability({"comparability": dumped}) == FOUND
    for damaged in ({}, {"comparability": None}, {"comparability": {"verdict": "fine"}}):
        assert read_comparability(damaged) is None
    new = dumped | {"measures": [dumped["measures"][0] | {"name": "of a later version"}]}
    read = read_comparability({"comparability": new})
    assert read is not None and read.measures == ()

"""Made ratings: raters of known reliability, and tables that are awkward to score."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import krippendorff as reference
import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa  # type: ignore[import-untyped]

from coreeval.errors import UsageError
from coreeval.evaluation.annotation.compared_ratings import Ratings
from coreeval.evaluation.annotation.criteria import LABEL_STUDY, CriterionName, Level
from coreeval.evaluation.annotation.rating_scores import (
    count_values,
    measure_agreement,
    measure_fleiss_kappa,
    measure_krippendorff_alpha,
    score_ratings,
)
from coreeval.evaluation.annotation.rating_study import (
    MOST_RATERS,
    KeyItem,
    RatedArm,
    StudyKey,
    StudySource,
)
from coreeval.evaluation.annotation.ratings import (
    Annotation,
    CriterionResult,
    RatingCollection,
    SheetRow,
    collect_ratings,
)
from coreeval.evaluation.statistics import wilson_interval

Table = Sequence[Sequence[int | None]]
"""Items by raters; None is no rating."""
AWKWARD: dict[str, Table] = {
    "one item": [[1, 2, 1]],
    "two raters": [[1, 1], [2, 2], [1, 2], [2, 1]],
    "all against all": [[1, 2, 3], [2, 3, 1], [3, 1, 2]],
    "one is different": [[3, 3, 3]] * 20 + [[3, 3, 1]],
    "a value nobody gives": [[1, 1, 3], [3, 3, 3], [1, 3, 3]],
    "holes": [[1, None, 1], [None, 2, 3], [2, 2, None], [None, None, 3], [3, 3, 3]],
    "a rater who gives up": [[1, 1, 1], [2, 2, 2], [3, 2, None], [1, 2, None], [3, 3, None]],
    "seven raters": [[1, 1, 1, 2, 2, 3, 3], [3, 3, 3, 3, 3, 3, 2], [1, 2, 1, 2, 1, 2, 1]],
}


def ratings_of(table: Table) -> Ratings:
    """Return a table as ratings by item and rater."""
    return {
        f"i{n}": {f"r{m}": value for m, value in enumerate(row) if value is not None}
        for n, row in enumerate(table)
    }


def simulated(
    items: int, raters: int, values: tuple[int, ...], *, knows: float, holes: float, seed: int
) -> Table:
    """Return ratings by raters who see the truth with a chance, and guess otherwise.

    Guesses are as frequent as the truth: two of them agree beyond chance in `knows` squared.
    """
    rng = np.random.default_rng(seed)
    shares = np.arange(1, len(values) + 1) / np.arange(1, len(values) + 1).sum()
    truth = rng.choice(values, size=items, p=shares)
    guesses = rng.choice(values, size=(items, raters), p=shares)
    sees, given = rng.random((items, raters)) < knows, rng.random((items, raters)) >= holes
    said = np.where(sees, truth[:, None], guesses)
    return [
        [int(value) if there else None for value, there in zip(row, some, strict=True)]
        for row, some in zip(said, given, strict=True)
    ]


SCALES: dict[Level, tuple[int, ...]] = {"nominal": (0, 1), "ordinal": (1, 2, 3)}
RANDOM = {
    f"{items} items, {raters} raters, {knows}, {holes}, {len(values)} values": simulated(
        items, raters, values, knows=knows, holes=holes, seed=n
    )
    for n, (items, raters, knows, holes, values) in enumerate(
        product((3, 50, 200), (2, 5), (0.3, 0.9), (0.0, 0.3), SCALES.values())
    )
}
TABLES = AWKWARD | RANDOM


def values_of(table: Table) -> tuple[int, ...]:
    return SCALES["nominal" if any(0 in row for row in table) else "ordinal"]


def varies(rows: Table) -> bool:
    """Tell whether there is more than one value, without which nothing is defined."""
    return len({one for row in rows for one in row if one is not None}) > 1


@pytest.mark.parametrize("level", SCALES)
def test_alpha_is_that_of_krippendorff(level: Level) -> None:
    for name, table in TABLES.items():
        values = values_of(table)
        found = measure_krippendorff_alpha(ratings_of(table), values, level, seed=1, draws=2)
        paired = [row for row in table if sum(one is not None for one in row) >= 2]
        assert found.n == len(paired), name
        if not varies(paired):
            assert found.estimate is None, name
            continue
        numbers = np.array([[np.nan if one is None else one for one in row] for row in table]).T
        domain = np.array(values, float)
        expected = reference.alpha(numbers, value_domain=domain, level_of_measurement=level)
        assert found.estimate == pytest.approx(expected, abs=1e-9), name


def test_kappa_is_that_of_statsmodels_on_complete_items() -> None:
    for name, table in TABLES.items():
        values, raters = values_of(table), len(table[0])
        whole = [row for row in table if None not in row]
        found = measure_fleiss_kappa(ratings_of(table), values, raters=raters, seed=1, draws=2)
        assert found.n == len(whole), name
        if not varies(whole):
            assert found.estimate is None, name
            continue
        expected = fleiss_kappa(count_values(ratings_of(whole), values))
        assert found.estimate == pytest.approx(expected, abs=1e-9), name


def test_the_example_of_krippendorff() -> None:
    """Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section E."""
    rows = (
        "1 1 . 1", "2 2 3 2", "3 3 3 3", "3 3 3 3", "2 2 2 2", "1 2 3 4", "4 4 4 4", "1 1 2 1",
        "2 2 2 2", ". 5 5 5", ". . 1 1", ". . 3 .",
    )  # fmt: skip
    said = ratings_of([[None if one == "." else int(one) for one in row.split()] for row in rows])
    nominal, ordinal = (
        measure_krippendorff_alpha(said, range(1, 6), level, seed=1, draws=10) for level in SCALES
    )
    assert (round(nominal.estimate or 0, 3), round(ordinal.estimate or 0, 3)) == (0.743, 0.815)
    assert nominal.n == 11


def test_raters_of_known_reliability() -> None:
    """Two raters see the truth with a chance of 0.9: they agree beyond chance in 0.81 of pairs."""
    said = ratings_of(simulated(20_000, 3, (1, 2, 3), knows=0.9, holes=0, seed=5))
    kappa = measure_fleiss_kappa(said, (1, 2, 3), raters=3, seed=1, draws=50)
    alpha = measure_krippendorff_alpha(said, (1, 2, 3), "ordinal", seed=1, draws=50)
    assert kappa.estimate == pytest.approx(0.81, abs=0.01)
    assert alpha.estimate == pytest.approx(0.81, abs=0.015)
    assert kappa.ci_low and kappa.ci_high and kappa.ci_low < 0.81 < kappa.ci_high


def test_where_nothing_can_be_said_there_is_no_number() -> None:
    same = ratings_of([[3, 3, 3]] * 10)
    for found in (
        measure_fleiss_kappa(same, (1, 2, 3), raters=3, seed=1),
        measure_krippendorff_alpha(same, (1, 2, 3), "ordinal", seed=1),
    ):
        assert (found.estimate, found.n) == (None, 10)
    alone = ratings_of([[3], [1]])
    assert measure_krippendorff_alpha(alone, (1, 2, 3), "ordinal", seed=1).n == 0
    assert measure_agreement(alone, (1, 2, 3)).estimate is None
    assert measure_fleiss_kappa(alone, (1, 2, 3), raters=1, seed=1).estimate is None


def test_a_handful_of_uncommon_ratings_gives_no_interval() -> None:
    few, more = ([[1, 1, 0]] * n + [[1, 1, 1]] * 40 for n in (4, 5))
    found = [
        measure_krippendorff_alpha(ratings_of(table), (0, 1), "nominal", seed=1)
        for table in (few, more)
    ]
    assert [one.ci_low is None for one in found] == [True, False]
    assert all(one.estimate is not None for one in found)


def test_agreement_that_is_perfect_keeps_a_width_where_it_is_a_share() -> None:
    table = ratings_of([[1, 1], [0, 0], [1, 1]])
    share = measure_agreement(table, (0, 1))
    assert (share.estimate, share.ci_high) == (1.0, 1.0) and (share.ci_low or 1) < 0.5
    perfect = measure_krippendorff_alpha(table, (0, 1), "nominal", seed=1)
    assert (perfect.estimate, perfect.ci_low) == (1.0, None)


ITEMS = ("i1", "i2", "i3", "i4")
ARMS: tuple[RatedArm, ...] = ("original", "updated", "original", "updated")


def row(item: str, rater: str, *given: object, where: str = "a.csv, line 2") -> SheetRow:
    pairs = zip(LABEL_STUDY.criteria, given, strict=False)
    cells = {str(each.name): str(value) for each, value in pairs}
    return SheetRow(where=where, item=item, rater=rater, cells=cells)


def full(rater: str, *values: Sequence[int]) -> list[SheetRow]:
    return [row(item, rater, *given) for item, given in zip(ITEMS, values, strict=True)]


def scored(collected: RatingCollection) -> Annotation:
    key = StudyKey(
        study="abc123",
        made_of=StudySource(kind="run", name="weekly", version="1"),
        seed=7,
        asked=2,
        raters=("ann", "bo"),
        scale="",
        items=tuple(
            KeyItem(item=item, sample=f"s{item}", arm=arm, label="joy", text_sha256="")
            for item, arm in zip(ITEMS, ARMS, strict=True)
        ),
    )
    texts = {item: f"text of {item}" for item in ITEMS}
    return score_ratings(collected, key, texts, run="weekly/1", at="2026-11-22T00:00:00", draws=50)


def by(found: Annotation, name: CriterionName) -> CriterionResult:
    return next(each for each in found.criteria if each.criterion == name)


GOOD = (3, 3, 1, 1)


# -- rows ---------------------------------------------------------------------------------------


def test_ratings_are_read_however_a_spreadsheet_writes_them() -> None:
    said = collect_ratings([row("i1", "ann", " 3 ", "2.0", "1,0", "0")], ["i1"])
    assert {name: items["i1"]["ann"] for name, items in said.ratings.items()} == {
        "fluency": 3,
        "coherence": 2,
        "factuality": 1,
        "accuracy": 0,
    }
    assert said.problems == ()


@pytest.mark.parametrize("said", ["0", "4", "2.5", "good", "-1", "٣", "1e0", "3 3"])
def test_what_is_no_rating_does_not_count_and_is_told(said: str) -> None:
    found = collect_ratings([row("i1", "ann", said, 3, 1, 1)], ["i1"])
    wrong, missing = found.problems
    assert (wrong.kind, wrong.criterion, wrong.said) == ("not_a_rating", "fluency", said)
    assert wrong.where == "a.csv, line 2"
    assert (missing.kind, missing.criterion) == ("missing", "fluency")
    assert found.ratings["fluency"]["i1"] == {}


def test_missing_ratings_are_counted_one_by_one_and_an_empty_sheet_once() -> None:
    rows = [row("i1", "ann", *GOOD), row("i2", "ann", 3), row("i1", "bo"), row("i2", "bo")]
    found = collect_ratings(rows, ["i1", "i2", "i3"])
    kinds = Counter((each.kind, each.rater) for each in found.problems)
    assert kinds == {("missing", "ann"): 3 + 4, ("empty", "bo"): 1}
    assert found.raters == ("ann",)


def test_a_rating_given_twice_counts_once_and_not_at_all_if_it_is_another() -> None:
    rows = [row("i1", "ann", *GOOD), row("i1", "ann", 3, 2, "", 1, where="b.csv, line 9")]
    found = collect_ratings(rows, ["i1"])
    told = {each.criterion: (each.kind, each.said) for each in found.problems}
    assert told == {
        "fluency": ("double", "3, 3"),
        "coherence": ("contradiction", "3, 2"),
        "accuracy": ("double", "1, 1"),
    }
    assert found.problems[0].where == "a.csv, line 2; b.csv, line 9"
    assert found.ratings["coherence"]["i1"] == {}
    assert found.ratings["fluency"]["i1"] == {"ann": 3}


def test_case_does_not_tell_raters_apart() -> None:
    """A sheet that is handed in twice would agree with itself."""
    rows = [row("i1", "Ada", *GOOD), row("i1", "ADA", *GOOD), row("i1", "Bo", *GOOD)]
    found = collect_ratings(rows, ["i1"])
    assert found.raters == ("Ada", "Bo")
    assert {each.kind for each in found.problems} == {"double"}


def test_rows_about_nothing_or_by_nobody_are_told() -> None:
    found = collect_ratings([row("x9", "ann", *GOOD), row("i1", "", *GOOD)], ["i1"])
    assert [each.kind for each in found.problems] == ["unknown_item", "no_rater"]
    assert found.raters == ()


def test_names_without_end_are_refused_where_there_are_too_many() -> None:
    rows = (row("i1", f"r{number}", *GOOD) for number in range(20_000))
    with pytest.raises(UsageError, match="name more than 99 raters"):
        collect_ratings(rows, ["i1"])
    assert next(rows).rater == f"r{MOST_RATERS + 1}"
    many = [row("i1", f"r{number}", *GOOD) for number in range(MOST_RATERS)]
    assert len(collect_ratings(many, ["i1"]).raters) == MOST_RATERS


# -- findings -----------------------------------------------------------------------------------


def test_means_and_their_difference() -> None:
    rows = [
        *full("ann", (3, 3, 1, 1), (2, 3, 0, 1), (3, 3, 1, 1), (3, 3, 1, 1)),
        *full("bo", (3, 3, 1, 1), (1, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1)),
    ]
    found = scored(collect_ratings(rows, ITEMS))
    fluency = by(found, "fluency")
    assert fluency.arms["original"].estimate == 3
    updated = fluency.arms["updated"]
    low, high = wilson_interval(0.625, 2)  # 1.5 and 3 on the scale of 1 to 3
    assert (updated.estimate, updated.n) == (2.25, 2)
    assert (updated.ci_low, updated.ci_high) == pytest.approx((1 + 2 * low, 1 + 2 * high))
    gap = fluency.difference
    assert (gap.estimate, gap.n) == (-0.75, (2, 2))
    assert gap.ci_low is not None and gap.ci_high is not None and gap.ci_low < -0.75 < gap.ci_high
    assert by(found, "factuality").difference.estimate == -0.25
    assert [each.missing for each in found.raters] == [0, 0]


def test_newcombe_on_shares() -> None:
    """Newcombe (1998), table II, method 10: 56 of 70 against 48 of 80 is 0.0524 to 0.3339."""
    from coreeval.evaluation.annotation.rating_scores import _difference
    from coreeval.evaluation.scores import score_proportion

    found = _difference(score_proportion(56, 70), score_proportion(48, 80))
    assert found.estimate == pytest.approx(0.2)
    assert (found.ci_low, found.ci_high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_one_rater_has_means_and_no_agreement() -> None:
    found = scored(collect_ratings(full("ann", GOOD, GOOD, GOOD, GOOD), ITEMS))
    fluency = by(found, "fluency")
    assert fluency.arms["updated"].estimate == 3
    assert fluency.reliability.agreement.estimate is None
    assert fluency.reliability.kappa.estimate is None
    assert fluency.notes == ("there is only one rater, so agreement cannot be measured",)


def test_raters_of_different_texts_have_no_agreement() -> None:
    rows = [row("i1", "ann", *GOOD), row("i2", "bo", *GOOD)]
    notes = by(scored(collect_ratings(rows, ITEMS)), "fluency").notes
    assert notes == ("no text was rated by two raters, so agreement cannot be measured",)


def test_what_prevails_is_told_beside_kappa() -> None:
    rows = [
        *full("ann", (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 0, 1)),
        *full("bo", (3, 3, 1, 1), (3, 1, 1, 1), (3, 3, 1, 1), (3, 3, 0, 1)),
    ]
    found = scored(collect_ratings(rows, ITEMS))
    assert by(found, "fluency").notes == (
        "all ratings are 3: the raters agree, and kappa and alpha are not defined",
    )
    coherence = by(found, "coherence")
    assert coherence.prevalence == {1: 0.125, 2: 0, 3: 0.875}
    assert "too few for an interval" in coherence.notes[0]
    assert (coherence.reliability.kappa.estimate or 0) < 0 < 0.8 < coherence.prevalence[3]
    assert "all raters agree on every text" in by(found, "factuality").notes[0]


def test_disagreements_are_listed_the_widest_first() -> None:
    rows = [
        *full("ann", (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1)),
        *full("bo", (3, 3, 1, 1), (2, 3, 1, 1), (1, 3, 1, 1), (3, 3, 1, 0)),
    ]
    found = scored(collect_ratings(rows, ITEMS)).disagreements
    assert [(each.item, each.criterion) for each in found] == [
        ("i3", "fluency"),
        ("i4", "accuracy"),
        ("i2", "fluency"),
    ]
    assert found[0].ratings == {"ann": 3, "bo": 1}
    assert (found[0].text, found[0].arm) == ("text of i3", "original")


def test_an_annotation_survives_being_written() -> None:
    found = scored(collect_ratings(full("ann", GOOD, GOOD, GOOD, GOOD), ITEMS))
    assert Annotation.model_validate_json(found.model_dump_json()) == found

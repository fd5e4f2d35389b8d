"""Rows become ratings and ratings findings; what is wrong with a row is told and does not count."""

from collections import Counter
from collections.abc import Sequence

import pytest

from coreeval.evaluation.annotation.collecting import Collected, SheetRow, collect
from coreeval.evaluation.annotation.drawing import RatedArm
from coreeval.evaluation.annotation.guideline import CRITERIA, CriterionName
from coreeval.evaluation.annotation.key import Key, KeyItem, MadeOf
from coreeval.evaluation.annotation.results import Annotation, Rated
from coreeval.evaluation.annotation.scoring import score
from coreeval.evaluation.statistics import wilson

ITEMS = ("i1", "i2", "i3", "i4")
ARMS: tuple[RatedArm, ...] = ("original", "updated", "original", "updated")


def row(item: str, rater: str, *given: object, where: str = "a.csv, line 2") -> SheetRow:
    pairs = zip(CRITERIA, given, strict=False)
    cells = {str(each.name): str(value) for each, value in pairs}
    return SheetRow(where=where, item=item, rater=rater, cells=cells)


def full(rater: str, *values: Sequence[int]) -> list[SheetRow]:
    return [row(item, rater, *given) for item, given in zip(ITEMS, values, strict=True)]


def scored(collected: Collected) -> Annotation:
    key = Key(
        study="abc123",
        made_of=MadeOf(kind="run", name="weekly", version="1"),
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
    return score(collected, key, texts, run="weekly/1", at="2026-11-22T00:00:00", draws=50)


def by(found: Annotation, name: CriterionName) -> Rated:
    return next(each for each in found.criteria if each.criterion == name)


GOOD = (3, 3, 1, 1)


# -- rows ---------------------------------------------------------------------------------------


def test_ratings_are_read_however_a_spreadsheet_writes_them() -> None:
    said = collect([row("i1", "ann", " 3 ", "2.0", "1,0", "0")], ["i1"])
    assert {name: items["i1"]["ann"] for name, items in said.ratings.items()} == {
        "fluency": 3,
        "coherence": 2,
        "factuality": 1,
        "accuracy": 0,
    }
    assert said.problems == ()


@pytest.mark.parametrize("said", ["0", "4", "2.5", "good", "-1", "٣", "1e0", "3 3"])
def test_what_is_no_rating_does_not_count_and_is_told(said: str) -> None:
    found = collect([row("i1", "ann", said, 3, 1, 1)], ["i1"])
    wrong, missing = found.problems
    assert (wrong.kind, wrong.criterion, wrong.said) == ("not_a_rating", "fluency", said)
    assert wrong.where == "a.csv, line 2"
    assert (missing.kind, missing.criterion) == ("missing", "fluency")
    assert found.ratings["fluency"]["i1"] == {}


def test_missing_ratings_are_counted_one_by_one_and_an_empty_sheet_once() -> None:
    rows = [row("i1", "ann", *GOOD), row("i2", "ann", 3), row("i1", "bo"), row("i2", "bo")]
    found = collect(rows, ["i1", "i2", "i3"])
    kinds = Counter((each.kind, each.rater) for each in found.problems)
    assert kinds == {("missing", "ann"): 3 + 4, ("empty", "bo"): 1}
    assert found.raters == ("ann",)


def test_a_rating_given_twice_counts_once_and_not_at_all_if_it_is_another() -> None:
    rows = [row("i1", "ann", *GOOD), row("i1", "ann", 3, 2, "", 1, where="b.csv, line 9")]
    found = collect(rows, ["i1"])
    told = {each.criterion: (each.kind, each.said) for each in found.problems}
    assert told == {
        "fluency": ("double", "3, 3"),
        "coherence": ("contradiction", "3, 2"),
        "accuracy": ("double", "1, 1"),
    }
    assert found.problems[0].where == "a.csv, line 2; b.csv, line 9"
    assert found.ratings["coherence"]["i1"] == {}
    assert found.ratings["fluency"]["i1"] == {"ann": 3}


def test_rows_about_nothing_or_by_nobody_are_told() -> None:
    found = collect([row("x9", "ann", *GOOD), row("i1", "", *GOOD)], ["i1"])
    assert [each.kind for each in found.problems] == ["unknown_item", "no_rater"]
    assert found.raters == ()


# -- findings -----------------------------------------------------------------------------------


def test_means_and_their_difference() -> None:
    rows = [
        *full("ann", (3, 3, 1, 1), (2, 3, 0, 1), (3, 3, 1, 1), (3, 3, 1, 1)),
        *full("bo", (3, 3, 1, 1), (1, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1)),
    ]
    found = scored(collect(rows, ITEMS))
    fluency = by(found, "fluency")
    assert fluency.arms["original"].estimate == 3
    updated = fluency.arms["updated"]
    low, high = wilson(0.625, 2)  # 1.5 and 3 on the scale of 1 to 3
    assert (updated.estimate, updated.n) == (2.25, 2)
    assert (updated.ci_low, updated.ci_high) == pytest.approx((1 + 2 * low, 1 + 2 * high))
    gap = fluency.difference
    assert (gap.estimate, gap.n) == (-0.75, (2, 2))
    assert gap.ci_low is not None and gap.ci_high is not None and gap.ci_low < -0.75 < gap.ci_high
    assert by(found, "factuality").difference.estimate == -0.25
    assert [each.missing for each in found.raters] == [0, 0]


def test_newcombe_on_shares() -> None:
    """Newcombe (1998), table II, method 10: 56 of 70 against 48 of 80 is 0.0524 to 0.3339."""
    from coreeval.evaluation.annotation.scoring import _difference
    from coreeval.evaluation.scoring.classification import proportion

    found = _difference(proportion(56, 70), proportion(48, 80))
    assert found.estimate == pytest.approx(0.2)
    assert (found.ci_low, found.ci_high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_one_rater_has_means_and_no_agreement() -> None:
    found = scored(collect(full("ann", GOOD, GOOD, GOOD, GOOD), ITEMS))
    fluency = by(found, "fluency")
    assert fluency.arms["updated"].estimate == 3
    assert fluency.reliability.agreement.estimate is None
    assert fluency.reliability.kappa.estimate is None
    assert fluency.notes == ("one rater: there is a mean, and no agreement",)


def test_raters_of_different_texts_have_no_agreement() -> None:
    rows = [row("i1", "ann", *GOOD), row("i2", "bo", *GOOD)]
    notes = by(scored(collect(rows, ITEMS)), "fluency").notes
    assert notes == ("no text was rated by two raters: there is no agreement",)


def test_what_prevails_is_told_beside_kappa() -> None:
    rows = [
        *full("ann", (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 0, 1)),
        *full("bo", (3, 3, 1, 1), (3, 1, 1, 1), (3, 3, 1, 1), (3, 3, 0, 1)),
    ]
    found = scored(collect(rows, ITEMS))
    assert by(found, "fluency").notes == (
        "all ratings are 3: the raters agree, and kappa and alpha are not defined",
    )
    coherence = by(found, "coherence")
    assert coherence.prevalence == {1: 0.125, 2: 0, 3: 0.875}
    assert "too few for an interval" in coherence.notes[0]
    assert (coherence.reliability.kappa.estimate or 0) < 0 < 0.8 < coherence.prevalence[3]
    assert "all raters say the same of every text" in by(found, "factuality").notes[0]


def test_disagreements_are_listed_the_widest_first() -> None:
    rows = [
        *full("ann", (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1), (3, 3, 1, 1)),
        *full("bo", (3, 3, 1, 1), (2, 3, 1, 1), (1, 3, 1, 1), (3, 3, 1, 0)),
    ]
    found = scored(collect(rows, ITEMS)).disagreements
    assert [(each.item, each.criterion) for each in found] == [
        ("i3", "fluency"),
        ("i4", "accuracy"),
        ("i2", "fluency"),
    ]
    assert found[0].ratings == {"ann": 3, "bo": 1}
    assert (found[0].text, found[0].arm) == ("text of i3", "original")


def test_an_annotation_survives_being_written() -> None:
    found = scored(collect(full("ann", GOOD, GOOD, GOOD, GOOD), ITEMS))
    assert Annotation.model_validate_json(found.model_dump_json()) == found

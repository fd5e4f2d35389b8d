"""Samples are drawn by label, shown in one arm by lot, and nothing but their text tells it."""

from collections import Counter
from collections.abc import Sequence

import pytest

from coreeval.evaluation.annotation.rating_study import (
    RATED_ARMS,
    NewsExcerpt,
    RatedArm,
    RatingCandidate,
    draw_study,
    shuffle_for_rater,
)
from coreeval.evaluation.annotation.sheets import make_sheet_item

NEWS = NewsExcerpt(
    published_at="2026-11-02", domain="example.org", url="https://e.org", snippet="It."
)


def candidate(number: int, label: str, arms: Sequence[RatedArm]) -> RatingCandidate:
    return RatingCandidate(
        sample=f"s{number}",
        label=label,
        meaning="",
        question="?",
        texts={arm: {"text": f"{arm} {number}"} for arm in arms},
        evidence=(NEWS,) * (number % 3 + 1),
    )


def pool(whole: int, bare: int) -> list[RatingCandidate]:
    """Return samples, two thirds joy and one third anger; `bare` of them were not reworded."""
    every: tuple[RatedArm, ...] = ("original", "semantic", "updated")
    arms = [every] * whole + [("original", "updated")] * bare
    labels = ("joy", "joy", "anger")
    return [candidate(n, labels[n % 3], each) for n, each in enumerate(arms)]


def test_arms_have_as_many_samples_of_each_label_and_none_twice() -> None:
    _, items = draw_study(pool(90, 60), blocks=30, seed=7)
    by_arm = Counter(each.arm for each in items)
    assert (by_arm["original"], by_arm["updated"]) == (30, 30)
    assert 14 <= by_arm["semantic"] <= 16, "as many as samples that have one are of the pool"
    labels = {arm: Counter(e.candidate.label for e in items if e.arm == arm) for arm in by_arm}
    assert labels["original"] == labels["updated"]
    assert labels["updated"]["anger"] == pytest.approx(10, abs=2)
    assert len({each.candidate.sample for each in items}) == len(items)


@pytest.mark.parametrize("seed", range(20))
def test_a_block_has_one_label(seed: int) -> None:
    """Labels whose samples make no whole number of blocks leave some over, not a mixed block."""
    for blocks in (1, 4, 50):
        _, items = draw_study(pool(8, 7), blocks=blocks, seed=seed)
        labels = {
            arm: sorted(e.candidate.label for e in items if e.arm == arm) for arm in RATED_ARMS
        }
        assert labels["original"] == labels["updated"] != []
        assert not Counter(labels["semantic"]) - Counter(labels["original"])


def test_a_label_with_one_sample_is_not_compared() -> None:
    both: tuple[RatedArm, ...] = ("original", "updated")
    lone = [candidate(n, label, both) for n, label in enumerate(("joy", "anger", "fear"))]
    assert draw_study(lone, blocks=50, seed=7)[1] == []
    _, items = draw_study([*lone, candidate(3, "fear", both)], blocks=50, seed=7)
    assert [each.candidate.label for each in items] == ["fear", "fear"]


def test_too_few_samples_are_all_shown_but_for_what_makes_no_block() -> None:
    _, items = draw_study(pool(4, 4), blocks=50, seed=7)
    assert Counter(each.arm for each in items) == {"original": 3, "updated": 3, "semantic": 1}
    assert draw_study(pool(0, 1), blocks=50, seed=7)[1] == []


def test_the_same_seed_draws_the_same_and_another_one_another() -> None:
    first, again, other = (draw_study(pool(30, 0), blocks=5, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert first[0] != other[0]


def test_names_and_what_stands_beside_a_text_do_not_depend_on_its_arm() -> None:
    """Of a sample that is drawn in one arm or another, only the text changes."""
    seen: dict[str, set[str]] = {}
    places: dict[RatedArm, list[int]] = {"original": [], "updated": []}
    for seed in range(60):
        study, items = draw_study(pool(0, 12), blocks=6, seed=seed)
        for each in items:
            beside = repr((make_sheet_item(each).label, make_sheet_item(each).evidence))
            seen.setdefault(each.candidate.sample, set()).add(beside)
            places[each.arm].append(int(each.item.removeprefix(f"{study}-")))
    assert all(len(beside) == 1 for beside in seen.values())
    means = {arm: sum(some) / len(some) for arm, some in places.items()}
    assert means["original"] == pytest.approx(means["updated"], abs=0.6)
    assert set(places["original"]) == set(places["updated"]) == set(range(1, 13))


def test_spaces_and_signs_do_not_tell_the_arm() -> None:
    """Benchmarks of tweets end every text with a space; rewritten texts do not."""
    loose = candidate(0, "joy", ("original", "updated")).texts
    loose["original"] = {"text": " so  happy &amp; \n"}
    given = RatingCandidate(
        sample="s", label="joy", meaning="", question="", texts=loose, evidence=()
    )
    items = [
        draw_study([given, candidate(1, "joy", ("original", "updated"))], blocks=1, seed=n)[1]
        for n in range(9)
    ]
    texts = {make_sheet_item(each).fields["text"] for some in items for each in some}
    assert "so happy &" in texts and not {text for text in texts if text != text.strip()}


def test_each_rater_has_an_order_of_their_own() -> None:
    items = list(range(20))
    first, second = (shuffle_for_rater(rater, items, seed=7) for rater in ("rater-1", "rater-2"))
    assert sorted(first) == sorted(second) == items
    assert first != second != items

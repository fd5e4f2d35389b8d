"""A sheet shows choices, questions and documents without their gold, which stands beside them."""

import pytest

from coreeval.evaluation.annotation.rating_study import RatingCandidate, StudyItem
from coreeval.evaluation.annotation.sheets import make_sheet_item


@pytest.mark.parametrize(
    ("label", "texts", "shown", "gold"),
    [
        (
            "B",
            {"question": "Who?", "A": "Bo Li", "B": "Ada Roe"},
            ["question", "A", "B"],
            "Ada Roe",
        ),
        (
            "number",
            {"question": "How many?", "answers": "3\nthree", "unit": "days", "tolerance": "0"},
            ["question"],
            "3",
        ),
        ("summary", {"document": "It rained.", "summary": "Rain."}, ["document"], "Rain."),
        ("joy", {"text": "What a day"}, ["text"], "joy"),
    ],
)
def test_the_gold_is_that_of_the_arm(
    label: str, texts: dict[str, str], shown: list[str], gold: str
) -> None:
    candidate = RatingCandidate(
        sample="q1",
        label=label,
        meaning="",
        question="What is right?",
        texts={"original": dict.fromkeys(texts, "old"), "updated": texts},
        evidence=(),
    )
    item = make_sheet_item(StudyItem(item="x-001", arm="updated", candidate=candidate))
    assert [*item.fields] == shown
    assert item.label == gold

import pytest

from coreeval.agents.length import Length, length_limits
from coreeval.schema import Plan, Statement, Task

from .builders import PAIRS, TWEETS

TOLD = Plan(
    decision="use",
    statements=(
        Statement(
            text="Gold tops 4,500 dollars", evidence_ids=("e",), quote="Gold", modality="asserted"
        ),
    ),
)


@pytest.mark.parametrize(
    ("task", "count", "limits"),
    [
        (TWEETS, 8, Length(8, 4, 12)),
        (TWEETS, 40, Length(40, 30, 50)),
        (PAIRS, 40, Length(40, 24, 56)),
        (TWEETS, 2, Length(2, 1, 6)),
    ],
)
def test_lengths_of_tweets_and_sentences(task: Task, count: int, limits: Length) -> None:
    assert length_limits(task, "word " * count) == limits


def test_a_sentence_need_not_be_longer_than_its_news() -> None:
    assert length_limits(PAIRS, "word " * 40, TOLD) == Length(40, 4, 56)
    assert length_limits(PAIRS, "word " * 5, TOLD) == Length(5, 1, 9)
    assert length_limits(TWEETS, "word " * 40, TOLD) == Length(40, 30, 50)

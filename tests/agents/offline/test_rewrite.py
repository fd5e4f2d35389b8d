import pytest

from coreeval.agents.offline import rewrite
from coreeval.agents.offline.rewrite import rewrite_offline
from coreeval.schema import Extraction, Lock
from tests.agents.offline.made import pair, tweet


@pytest.mark.parametrize(
    ("turn", "before", "after"),
    [
        (
            rewrite.make_passive,
            "Walmart bought the retailer in 2016 .",
            "The retailer was bought by Walmart in 2016 .",
        ),
        (
            rewrite.make_passive,
            "Apple sold one million tablets in April.",
            "One million tablets were sold by Apple in April.",
        ),
        (
            rewrite.make_active,
            "The retailer was bought by Walmart in 2016.",
            "Walmart bought the retailer in 2016.",
        ),
        (
            rewrite.move_side_first,
            "The ferry stayed in port because the fog was thick.",
            "Because the fog was thick, the ferry stayed in port.",
        ),
        (
            rewrite.move_main_first,
            "Because the fog was thick, the ferry stayed in port.",
            "The ferry stayed in port because the fog was thick.",
        ),
        (
            rewrite.move_speaker_last,
            "Shell said that the plant would close.",
            "The plant would close, Shell said.",
        ),
        (
            rewrite.move_speaker_first,
            "The plant would close , officials said .",
            "Officials said that the plant would close .",
        ),
        (
            rewrite.move_time_first,
            "The library opened its doors in July 2015.",
            "In July 2015, the library opened its doors.",
        ),
    ],
)
def test_a_turn(turn: rewrite.Transform, before: str, after: str) -> None:
    assert turn(before) == after


@pytest.mark.parametrize(
    "sentence",
    [
        "So happy that the map led me to a lake.",
        "He sold it.",
        "McDonald 's opened its first restaurant in Moscow .",
        "The gold price jumps the week after I sold my necklace.",
        "Ford sold Volvo in 2010 and kept the rest.",
        "Packing up the flat after nine years.",
    ],
)
def test_no_turn_where_a_rule_is_not_sure(sentence: str) -> None:
    assert rewrite.make_passive(sentence) is None
    assert rewrite.move_side_first(sentence) is None


async def test_a_rewording_leaves_locks_tags_and_names_alone() -> None:
    sample = tweet("I'm so happy again, it's the biggest day #again @again \U0001f600", "joy")
    locks = (Lock(span="I'm so happy", field="text", why="label_carrier"),)
    said = await rewrite_offline(sample, Extraction(locked=locks))
    assert said.reworded
    text = said.fields["text"]
    assert text == "I'm so happy once more, it is the largest day #again @again \U0001f600"


async def test_a_text_that_cannot_be_reworded_says_so() -> None:
    sample = tweet("Bliss #SemST", "joy")
    said = await rewrite_offline(sample, Extraction())
    assert not said.reworded
    assert said.reason
    assert said.fields == sample.fields


async def test_both_sides_of_a_pair_are_reworded() -> None:
    sample = pair(
        "Walmart bought the retailer in 2016 .",
        "The retailer was bought by Walmart in 2016 .",
        "equivalent",
    )
    said = await rewrite_offline(sample, Extraction())
    assert all(said.fields[name] != text for name, text in sample.fields.items())
    assert said.fields["sentence1"] != said.fields["sentence2"]

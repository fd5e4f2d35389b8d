from typing import get_args

import pytest

from coreeval.agents.screen import DEFAULT_POLICY, screen
from coreeval.schema import Extraction, Flag, Sensitive

from .builders import sample


def flagged(*flags: Flag) -> Extraction:
    return Extraction(sensitive=tuple(Sensitive(flag=flag, span="it") for flag in flags))


def test_every_flag_has_a_policy() -> None:
    assert set(DEFAULT_POLICY) == set(get_args(Flag))


@pytest.mark.parametrize("flag", ["self_harm", "sexual_violence"])
def test_a_flag_of_the_extractor_is_enough(flag: Flag) -> None:
    assert screen(sample("a plain day"), flagged(flag)) == f"{flag}: 'it'"


@pytest.mark.parametrize(
    "flag",
    ["abuse", "crime_or_accusation", "death_or_illness", "minor", "private_person", "quotation"],
)
def test_other_flags_let_news_in(flag: Flag) -> None:
    assert screen(sample("a plain day"), flagged(flag)) is None


def test_a_protected_group_counts_where_the_text_is_hostile() -> None:
    assert screen(sample("Muslims celebrate today"), flagged("protected_group")) is None
    assert screen(sample("I hate them so much"), flagged("protected_group")) is not None
    assert screen(sample("they again"), flagged("protected_group", "abuse")) is not None


@pytest.mark.parametrize(
    "text",
    [
        "I want to die",
        "i wanna die lol",
        "thinking of killing myself",
        "she took her own life",
        "#depressed #suicide",
        "so down #iwanttodie",
        "He was charged with rape .",
        "sexually assaulted by a guard",
        "all muslims should leave",
        "immigrants are vermin",
        "I hate the damn jews",
    ],
)
def test_words_of_our_own_close_the_door(text: str) -> None:
    assert screen(sample(text), Extraction()) is not None


@pytest.mark.parametrize(
    "text",
    [
        "you are killing it!",
        "I'm dying to see that film",
        "wanna die laughing",
        "nearly died of laughter, kill me now",
        "Suicide Blast killed 11 people",
        "a suicide bomber; political suicide",
        "Suicide Squad was awful",
        "cut myself some slack, cut myself shaving",
        "grape juice and drapes",
        "I hate when women are talked over",
        "muslims are not terrorists",
        "#depression is real",
        "the Muslim ban is evil",
        "I hate Mondays",
    ],
)
def test_harmless_phrases_pass(text: str) -> None:
    assert screen(sample(text), Extraction()) is None


def test_both_texts_of_a_pair_are_read() -> None:
    assert screen(sample("fine .", "Three were raped ."), Extraction()) is not None

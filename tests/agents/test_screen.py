from typing import get_args

import pytest

from coreeval.agents.rules import DEFAULT_POLICY
from coreeval.agents.screen import Screened, screen
from coreeval.schema import Extraction, Flag, Policy, Sensitive

from .builders import sample


def flagged(*flags: Flag) -> Extraction:
    return Extraction(sensitive=tuple(Sensitive(flag=flag, span="it") for flag in flags))


def read(text: str, extraction: Extraction, *more: str) -> Screened:
    return screen(sample(text, *more), extraction, DEFAULT_POLICY)


def test_every_flag_has_a_policy() -> None:
    assert set(DEFAULT_POLICY) == set(get_args(Flag))


@pytest.mark.parametrize("flag", ["self_harm", "sexual_violence"])
def test_a_flag_of_the_extractor_is_enough(flag: Flag) -> None:
    assert read("a plain day", flagged(flag)) == Screened("semantic_only", f"{flag}: 'it'")


@pytest.mark.parametrize(
    "flag",
    ["abuse", "crime_or_accusation", "death_or_illness", "minor", "private_person"],
)
def test_other_flags_let_neutral_news_in(flag: Flag) -> None:
    assert read("a plain day", flagged(flag)).policy == "neutral_only"


def test_without_flags_all_is_allowed() -> None:
    assert read("a plain day", flagged()) == Screened("allow")
    assert read("a plain day", flagged("quotation")) == Screened("allow")


@pytest.mark.parametrize("policy", ["allow", "neutral_only", "semantic_only", "skip"])
def test_the_owner_decides(policy: Policy) -> None:
    chosen = {**DEFAULT_POLICY, "minor": policy}
    assert screen(sample("a plain day"), flagged("minor"), chosen).policy == policy


def test_the_strictest_flag_decides_and_is_named() -> None:
    found = read("a plain day", flagged("abuse", "self_harm", "minor"))
    assert found == Screened("semantic_only", "self_harm: 'it'")


def test_a_protected_group_counts_where_the_text_is_hostile() -> None:
    assert read("Muslims celebrate today", flagged("protected_group")).policy == "allow"
    hostile = read("I hate them so much", flagged("protected_group"))
    assert hostile.policy == "semantic_only"
    insulted = read("they again", flagged("protected_group", "abuse"))
    assert insulted.policy == "semantic_only"


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
    assert read(text, Extraction()).policy == "semantic_only"


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
    assert read(text, Extraction()).policy == "allow"


def test_both_texts_of_a_pair_are_read() -> None:
    assert read("fine .", Extraction(), "Three were raped .").policy == "semantic_only"

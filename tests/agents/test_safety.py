"""Takedown lists, and which samples may be written about."""

from pathlib import Path
from typing import get_args

import pytest

from coreeval.agents.safety import (
    DEFAULT_POLICY,
    EMPTY_TAKEDOWN,
    ScreenResult,
    Takedown,
    build_takedown,
    load_takedown,
    screen_sample,
)
from coreeval.errors import ConfigError
from coreeval.schema import Extraction, Flag, Policy, Sensitive

from .builders import news, sample


def flagged(*flags: Flag) -> Extraction:
    return Extraction(sensitive=tuple(Sensitive(flag=flag, span="it") for flag in flags))


def read(text: str, extraction: Extraction, *more: str) -> ScreenResult:
    return screen_sample(sample(text, *more), extraction, DEFAULT_POLICY)


def test_every_flag_has_a_policy() -> None:
    assert set(DEFAULT_POLICY) == set(get_args(Flag))


@pytest.mark.parametrize("flag", ["self_harm", "sexual_violence"])
def test_a_flag_of_the_extractor_is_enough(flag: Flag) -> None:
    assert read("a plain day", flagged(flag)) == ScreenResult("semantic_only", f"{flag}: 'it'")


@pytest.mark.parametrize(
    "flag",
    ["abuse", "crime_or_accusation", "death_or_illness", "minor", "private_person"],
)
def test_other_flags_let_neutral_news_in(flag: Flag) -> None:
    assert read("a plain day", flagged(flag)).policy == "neutral_only"


def test_without_flags_all_is_allowed() -> None:
    assert read("a plain day", flagged()) == ScreenResult("allow")
    assert read("a plain day", flagged("quotation")) == ScreenResult("allow")


@pytest.mark.parametrize("policy", ["allow", "neutral_only", "semantic_only", "skip"])
def test_the_owner_decides(policy: Policy) -> None:
    chosen = {**DEFAULT_POLICY, "minor": policy}
    assert screen_sample(sample("a plain day"), flagged("minor"), chosen).policy == policy


def test_the_strictest_flag_decides_and_is_named() -> None:
    found = read("a plain day", flagged("abuse", "self_harm", "minor"))
    assert found == ScreenResult("semantic_only", "self_harm: 'it'")


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


LISTED = build_takedown(["José Núñez", "Acme Corp", "0123456789abcdef"])


@pytest.mark.parametrize(
    "text",
    [
        "José Núñez opens a shop",
        "JOSE NUNEZ opens a shop",
        "said Jose\u0301 Nu\u0301n\u0303ez.",
        "Jos\u00e9 Nu\u0301n\u0303ez\u2019s shop",
        "acme corp grows",
        "<b>Acme</b> Corp grows",
        "ACME\u00a0Corp. grows",
    ],
)
def test_a_name_is_found_however_it_is_written(text: str) -> None:
    assert len(list(LISTED.names_in(text))) == 1
    assert LISTED.forbids(news(text))


@pytest.mark.parametrize("text", ["José Ruiz opens a shop", "Acme Corporation grows", "Nunez"])
def test_other_names_are_left_alone(text: str) -> None:
    assert not LISTED.forbids(news(text))


def test_ids_snippets_and_entities_count() -> None:
    assert LISTED.forbids(news("All is well", key="0123456789abcdef"))
    assert LISTED.forbids(news("All is well", snippet="So says Acme Corp"))
    assert LISTED.forbids(news("All is well", people=("Jose Nunez",)))
    assert not EMPTY_TAKEDOWN.forbids(news("José Núñez opens a shop"))


def test_an_address_counts() -> None:
    item = news("All is well").model_copy(update={"url": "https://a.test/jose-nunez-shop"})
    assert LISTED.forbids(item)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("李明", "昨日李明出席了會議"),
        ("村上春樹", "作家の村上春樹さんが"),
        ("สมชาย ใจดี", "นายสมชายใจดีกล่าว"),
    ],
)
def test_a_name_in_a_text_without_spaces(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "takedown.txt"
    path.write_text(f"{name}\n", encoding="utf-8")
    listed = load_takedown(path)
    assert listed.forbids(news(text))
    assert not listed.forbids(news("昨日王偉出席了會議"))


def test_a_list_is_read(tmp_path: Path) -> None:
    path = tmp_path / "takedown.txt"
    path.write_text("# people\n\nJosé  Núñez  # asked on 1 May\nAcme Corp\n0123456789abcdef\n")
    found = load_takedown(path)
    assert found == LISTED
    assert len(found) == 3
    assert found.fingerprint == LISTED.fingerprint != EMPTY_TAKEDOWN.fingerprint == ""


def test_the_fingerprint_does_not_hang_on_the_order() -> None:
    assert build_takedown(["b b", "a a"]).fingerprint == build_takedown(["a a", "b b"]).fingerprint


@pytest.mark.parametrize(("line", "says"), [("Al", "'Al' is neither"), ("  --- ", "'---'")])
def test_a_line_that_is_no_entry(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "takedown.txt"
    path.write_text(f"Acme Corp\n{line}\n")
    with pytest.raises(ConfigError, match=says) as caught:
        load_takedown(path)
    assert caught.value.where == f"{path}, line 2"


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_a_list_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "takedown.txt"
    if content:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load_takedown(path)
    assert caught.value.where == str(path)


def test_an_empty_list_forbids_nothing() -> None:
    assert not Takedown().forbids(news("Anything at all"))


def test_in_other_languages_each_flag_of_the_extractor_counts() -> None:
    about, plain = flagged("protected_group"), sample("Über Gruppen")
    assert screen_sample(plain, about, DEFAULT_POLICY).policy == "allow"
    assert screen_sample(plain, about, DEFAULT_POLICY, "de").policy == "semantic_only"

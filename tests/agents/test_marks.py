import pytest

from coreeval.agents.marks import (
    closed_quotations,
    emoji,
    hashtags,
    latin_share,
    marker_count,
    mentions,
    quotations,
    target_spellings,
    urls,
    without_marks,
)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1eb\U0001f1f7"
THUMB = "\U0001f44d\U0001f3fd"


def test_mentions_and_hashtags() -> None:
    text = "@user see me@mail.org and @User2: #Not #1 &#39; #100days http://x.y/#top"
    assert mentions(text) == ["@user", "@User2"]
    assert hashtags(text) == ["#Not", "#100days"]
    assert urls(text) == ["http://x.y/#top"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no 1 here", []),
        (f"{FAMILY}{FLAG}{THUMB}", [FAMILY, FLAG, THUMB]),
        ("\u2764\ufe0f\u2600", ["\u2764\ufe0f", "\u2600"]),
        ("\U0001f602\U0001f602", ["\U0001f602", "\U0001f602"]),
        ("1\ufe0f\u20e3", ["1\ufe0f\u20e3"]),
        ("caf\u00e9 \u2026 \u2014 \u00b0C \u20ac5 \u4f60\u597d", []),
    ],
)
def test_emoji_are_counted_as_people_see_them(text: str, found: list[str]) -> None:
    assert emoji(text) == found


def test_marks_go_and_an_emoji_ends_a_sentence() -> None:
    assert without_marks("@user Hi #tag \U0001f602 You").split() == ["Hi", ".", "You"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('He said " we are fine , " and left', ["we are fine ,"]),
        ("``well within standards '' they said", ["well within standards"]),
        ("But she said : \u201cno", ["no"]),
        ("'I miss your personality' he said", ["I miss your personality"]),
        ("the boys' and the girls' teams don't 'win'", []),
        ('just "" nothing', []),
    ],
)
def test_quotations(text: str, found: list[str]) -> None:
    assert quotations(text) == found


def test_only_closed_quotations_are_locked() -> None:
    assert closed_quotations('" yes , " he said , " no') == ['" yes , "']
    assert closed_quotations("\u201cyes\u201d &quot;no&quot;") == [
        "\u201cyes\u201d",
        "&quot;no&quot;",
    ]


def test_a_marker_is_a_whole_token() -> None:
    assert marker_count("#not #NOT #notyou #not", "#not") == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Abortion is #abortionrights", ["#abortionrights", "Abortion"]),
        ("abortions are many", []),
        ("I am pro-choice", ["pro-choice"]),
        ("#ProChoice", ["#ProChoice"]),
        ("choice", []),
    ],
)
def test_a_target_is_named_as_a_word_or_in_a_hashtag(text: str, found: list[str]) -> None:
    assert target_spellings(text, ("abortion", "pro-choice")) == found


def test_latin_share() -> None:
    assert latin_share("caf\u00e9") == 1.0
    assert latin_share("12 !") == 1.0
    assert latin_share("\u043f\u0440\u0438\u0432\u0435\u0442 ok") < 0.5

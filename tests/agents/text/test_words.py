"""Words and marks of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents.text import words as words_module
from coreeval.agents.text.words import (
    build_span_pattern,
    count_marker,
    count_words,
    find_closed_quotations,
    find_content_words,
    find_emoji,
    find_hashtags,
    find_mentions,
    find_quotations,
    find_span,
    find_target,
    find_urls,
    has_span,
    is_same_text,
    join_numbers,
    list_trigrams,
    mask_spans,
    measure_containment,
    measure_latin_share,
    normalise,
    remove_marks,
    split_words,
    stem,
)


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("Ben &amp; Jerry\u2019s  ice", "Ben & Jerry's ice"),
        ("one\\n\\ntwo", "one two"),
        ("a \u201cscare\u201d quote \u2014 here\u2026", 'a "scare" quote - here...'),
        ("``well within standards ''", '"well within standards "'),
        ("sun \u2600\ufe0f day\u200b", "sun \u2600 day"),
        ("&lt;3 you", "<3 you"),
        ("this&not that", "this&not that"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_normalise(raw: str, plain: str) -> None:
    assert normalise(raw) == plain


@given(st.text())
def test_normalising_removes_runs_of_space_whatever_comes(text: str) -> None:
    assert normalise(text) == " ".join(normalise(text).split())


@pytest.mark.parametrize(
    ("split", "joined"),
    [
        ("limit of 1. 5 \u00b0C", "limit of 1.5 \u00b0C"),
        ("gold at $4, 500 an ounce", "gold at $4,500 an ounce"),
        ("a fund of 1, 234, 567 dollars", "a fund of 1,234,567 dollars"),
        ("by 2030. 5 things to know", "by 2030. 5 things to know"),
        ("rows 3, 4 and 5", "rows 3, 4 and 5"),
    ],
)
def test_numbers_that_a_source_split_are_joined(split: str, joined: str) -> None:
    assert join_numbers(split) == joined


@pytest.mark.parametrize(
    ("tokenised", "plain"),
    [
        ("the nation 's largest", "the nation's largest"),
        ("they didn 't go", "they didn't go"),
        ("U.S. sales , up", "US sales, up"),
        ("we 're off", "we\u2019re off"),
    ],
)
def test_tokenised_and_plain_spelling_have_the_same_words(tokenised: str, plain: str) -> None:
    assert split_words(tokenised) == split_words(plain)


def test_the_country_is_not_the_pronoun() -> None:
    assert split_words("US joins us") == ["usa", "joins", "us"]


def test_content_words_leave_out_what_states_nothing() -> None:
    assert find_content_words("I am so happy that it's a birthday!") == ["happy", "birthday"]


@pytest.mark.parametrize(
    "forms",
    [
        ("rise", "rises", "rising", "rose"),
        ("plan", "plans", "planned", "planning"),
        ("city", "cities"),
        ("price", "prices", "pricing", "priced"),
        ("launch", "launches", "launched"),
        ("say", "said", "says", "saying"),
        ("speak", "spoke", "spoken"),
        ("withdraw", "withdrew", "withdrawn"),
        ("agree", "agrees", "agreed", "agreeing"),
        ("rally", "rallies", "rallied", "rallying"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("gas", "gap"), ("rally", "rail"), ("bus", "business"), ("glass", "glad")]
)
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_no_trigram_reaches_across_a_masked_span() -> None:
    masked = mask_spans("I love my @user and my dog", ["@user"])
    assert list_trigrams(masked) == {("i", "love", "my"), ("and", "my", "dog")}


def test_containment_is_the_share_of_the_texts_own_trigrams() -> None:
    assert measure_containment("a b c d", "a b c x y") == 0.5
    assert measure_containment("a b", "a b") == 0.0
    assert measure_containment("a b c", "a b c", fewest=2) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Happy birthday!", "happy  birthday", True),
        ("Wal-Mart , Inc .", "WalMart, Inc.", True),
        ("Happy birthday", "Happy birthdays", False),
    ],
)
def test_same_text_looks_past_case_space_and_punctuation(one: str, other: str, same: bool) -> None:
    assert is_same_text(one, other) is same


@pytest.mark.parametrize(
    ("text", "span", "found"),
    [
        ("Partners w/ #anxiety &amp;makes", "#anxiety & makes", "#anxiety &amp;makes"),
        ("Wal-Mart 's  profit", "Wal-Mart's profit", "Wal-Mart 's  profit"),
        ("one\\ntwo", "one two", "one\\ntwo"),
        ("most. \\nJulianne Hough", "Julianne Hough", "Julianne Hough"),
        ("it\u2019s \u201cover\u201d", 'it\'s "over"', "it\u2019s \u201cover\u201d"),
        ("AI and ai", "ai", "ai"),
        ("a Party", "party", "Party"),
        ("a party", "art", None),
        ("a party", "  ", None),
        ("sun \u2600\ufe0f", "\u2600", "\u2600\ufe0f"),
    ],
)
def test_locate_returns_the_span_as_the_text_spells_it(
    text: str, span: str, found: str | None
) -> None:
    assert find_span(text, span) == found


@pytest.mark.parametrize(
    "span", ['"' * 20_000, ". " * 20_000, "a " * 20_000, "&quot;" * 20_000, "x" * 200_000]
)
def test_no_pattern_is_made_that_is_larger_than_the_text(
    span: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()
    monkeypatch.setattr(words_module, "build_span_pattern", lambda span: made.append(span))
    for text in ('A text with "signs", and some words.', "x", "", "a " * 3000 + '."' * 3000):
        assert find_span(text, span) is None
        assert not has_span(text, span)
    assert made == []


LIKE = "aAiI\u0130\u0131sS\u017fkK\u212a\u00df\u1e9e\u03c2\u03a3\u03c3 .'\"&;\u2026-`\u201c_"
"""Letters that a pattern takes for one another, and signs with several spellings."""


@given(st.text(alphabet=LIKE, max_size=12), st.text(alphabet=LIKE, max_size=4))
def test_every_span_that_its_pattern_finds_is_looked_for(text: str, span: str) -> None:
    pattern = build_span_pattern(span)
    found = pattern.search(text) if pattern else None
    assert (find_span(text, span) is None) == (found is None)


def test_holds_can_ask_for_the_same_case() -> None:
    assert has_span("Yay, #Irony", "#irony")
    assert not has_span("Yay, #Irony", "#irony", any_case=False)
    assert not has_span("anything", "")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_every_span_is_found_in_itself(span: str) -> None:
    if build_span_pattern(span) is not None:
        assert has_span(f"x {normalise(span)} y", span)


@pytest.mark.parametrize(
    ("text", "count"),
    [("that's it", 2), ("Wal-Mart , the nation 's", 4), ("one\\ntwo .. \U0001f602", 2), ("", 0)],
)
def test_words_are_counted_as_spaces_part_them(text: str, count: int) -> None:
    assert count_words(text) == count


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1eb\U0001f1f7"
THUMB = "\U0001f44d\U0001f3fd"


def test_mentions_and_hashtags() -> None:
    text = "@user see me@mail.org and @User2: #Not #1 &#39; #100days http://x.y/#top"
    assert find_mentions(text) == ["@user", "@User2"]
    assert find_hashtags(text) == ["#Not", "#100days"]
    assert find_urls(text) == ["http://x.y/#top"]


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
    assert find_emoji(text) == found


def test_marks_go_and_an_emoji_ends_a_sentence() -> None:
    assert remove_marks("@user Hi #tag \U0001f602 You").split() == ["Hi", ".", "You"]


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
    assert find_quotations(text) == found


def test_only_closed_quotations_are_locked() -> None:
    assert find_closed_quotations('" yes , " he said , " no') == ['" yes , "']
    assert find_closed_quotations("\u201cyes\u201d &quot;no&quot;") == [
        "\u201cyes\u201d",
        "&quot;no&quot;",
    ]


def test_a_marker_is_a_whole_token() -> None:
    assert count_marker("#not #NOT #notyou #not", "#not") == 3


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
    assert find_target(text, ("abortion", "pro-choice")) == found


def test_latin_share() -> None:
    assert measure_latin_share("caf\u00e9") == 1.0
    assert measure_latin_share("12 !") == 1.0
    assert measure_latin_share("\u043f\u0440\u0438\u0432\u0435\u0442 ok") < 0.5

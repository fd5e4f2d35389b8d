import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents import words as words_module
from coreeval.agents.words import (
    containment,
    content_words,
    holds,
    join_numbers,
    locate,
    mask,
    normalise,
    same_text,
    span_pattern,
    stem,
    trigrams,
    word_count,
    words,
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
    assert words(tokenised) == words(plain)


def test_the_country_is_not_the_pronoun() -> None:
    assert words("US joins us") == ["usa", "joins", "us"]


def test_content_words_leave_out_what_states_nothing() -> None:
    assert content_words("I am so happy that it's a birthday!") == ["happy", "birthday"]


@pytest.mark.parametrize(
    "forms",
    [
        ("rise", "rises", "rising", "rose"),
        ("plan", "plans", "planned", "planning"),
        ("city", "cities"),
        ("price", "prices", "pricing", "priced"),
        ("launch", "launches", "launched"),
        ("say", "said", "says", "saying"),
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
    masked = mask("I love my @user and my dog", ["@user"])
    assert trigrams(masked) == {("i", "love", "my"), ("and", "my", "dog")}


def test_containment_is_the_share_of_the_texts_own_trigrams() -> None:
    assert containment("a b c d", "a b c x y") == 0.5
    assert containment("a b", "a b") == 0.0
    assert containment("a b c", "a b c", fewest=2) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Happy birthday!", "happy  birthday", True),
        ("Wal-Mart , Inc .", "WalMart, Inc.", True),
        ("Happy birthday", "Happy birthdays", False),
    ],
)
def test_same_text_looks_past_case_space_and_punctuation(one: str, other: str, same: bool) -> None:
    assert same_text(one, other) is same


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
    assert locate(text, span) == found


@pytest.mark.parametrize(
    "span", ['"' * 20_000, ". " * 20_000, "a " * 20_000, "&quot;" * 20_000, "x" * 200_000]
)
def test_no_pattern_is_made_that_is_larger_than_the_text(
    span: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()
    monkeypatch.setattr(words_module, "span_pattern", lambda span: made.append(span))
    for text in ('A text with "signs", and some words.', "x", "", "a " * 3000 + '."' * 3000):
        assert locate(text, span) is None
        assert not holds(text, span)
    assert made == []


LIKE = "aAiI\u0130\u0131sS\u017fkK\u212a\u00df\u1e9e\u03c2\u03a3\u03c3 .'\"&;\u2026-`\u201c_"
"""Letters that a pattern takes for one another, and signs with several spellings."""


@given(st.text(alphabet=LIKE, max_size=12), st.text(alphabet=LIKE, max_size=4))
def test_every_span_that_its_pattern_finds_is_looked_for(text: str, span: str) -> None:
    pattern = span_pattern(span)
    found = pattern.search(text) if pattern else None
    assert (locate(text, span) is None) == (found is None)


def test_holds_can_ask_for_the_same_case() -> None:
    assert holds("Yay, #Irony", "#irony")
    assert not holds("Yay, #Irony", "#irony", any_case=False)
    assert not holds("anything", "")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_every_span_is_found_in_itself(span: str) -> None:
    if span_pattern(span) is not None:
        assert holds(f"x {normalise(span)} y", span)


@pytest.mark.parametrize(
    ("text", "count"),
    [("that's it", 2), ("Wal-Mart , the nation 's", 4), ("one\\ntwo .. \U0001f602", 2), ("", 0)],
)
def test_words_are_counted_as_spaces_part_them(text: str, count: int) -> None:
    assert word_count(text) == count

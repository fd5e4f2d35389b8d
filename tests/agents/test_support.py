import pytest

from coreeval.agents.support import Support, evidence_text, quoted_in, readings

from .builders import news


@pytest.mark.parametrize(
    ("quote", "title"),
    [
        ("limit of 1.5 \u00b0C", "Nations miss limit of 1. 5 \u00b0C"),
        ("cut \u2018deep\u2019", "They cut 'deep' again"),
        ("gold tops $4, 500", "Gold tops $4, 500 an ounce"),
    ],
)
def test_a_quotation_survives_odd_spelling(quote: str, title: str) -> None:
    assert quoted_in(quote, evidence_text(news(title)))


@pytest.mark.parametrize("quote", ["art", "of the", "gold tops $4,600", ""])
def test_what_is_no_quotation(quote: str) -> None:
    assert not quoted_in(quote, "Gold tops $4,500 in the wake of the party")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("gold rises month to date", "Gold rises MTD"),
        ("CEO quits", "Chief executive officer quits"),
        ("prices fell by two percent", "Prices fall 2%"),
        ("British firms", "Firms in Britain"),
        ("the United States grows", "US growing"),
        ("the government plans", "Govt planning"),
        ("a French \u20ac5 tax", "France: a tax of five euros"),
    ],
)
def test_inflection_signs_and_short_forms_are_no_new_words(text: str, title: str) -> None:
    support = Support.of([news(title)])
    assert support.missing_words(text) == []
    assert support.missing_numbers(text) == []


def test_new_words_and_numbers_are_named() -> None:
    support = Support.of([news("Chevron cuts jobs", snippet="About 800 posts go.")])
    assert support.missing_words("Chevron cuts 800 jobs in Texas, sadly") == ["texas", "sadly"]
    assert support.missing_numbers("Chevron cuts 900 jobs") == ["900"]
    assert support.missing_words("my family", allowed=frozenset({"family"})) == []


def test_the_pronoun_us_is_not_a_country() -> None:
    assert "united" not in readings("join us")
    assert {"united", "states"} <= readings("join the U.S. team")

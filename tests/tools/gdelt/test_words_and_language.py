import pytest

from coreeval.tools.gdelt.language import checked_language, language_code
from coreeval.tools.gdelt.words import keys, query_keys, stem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("companies", "company"), ("prices", "price"), ("boxes", "box"), ("crashes", "crash"),
        ("running", "run"), ("making", "make"), ("visiting", "visit"), ("votings", "vote"),
        ("walking", "walk"), ("classes", "class"), ("buses", "buse"),
    ],
)  # fmt: skip
def test_forms_meet(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    "word", ["king", "spring", "gas", "virus", "iris", "glass", "oil", "2025s"]
)
def test_words_that_only_look_like_forms_stay(word: str) -> None:
    assert stem(word) == word


def test_words_are_equal_or_nothing() -> None:
    assert set(keys("Lincoln")).isdisjoint(keys("Li"))
    assert stem("care") != stem("car")


def test_both_sides_are_normalised_alike() -> None:
    assert keys("Gutiérrez\u2019s Café") == keys("gutierrez CAFE") == ["gutierrez", "cafe"]
    assert keys("AT&T and the S & P 500") == ["att", "sp", "500"]
    assert keys("The U.S. told us") == ["US", "told"]
    assert keys("WHO says who is ill") == ["WHO", "ill"]


def test_queries_lose_suffixes_and_forms_of_address() -> None:
    assert query_keys("Chevron Corp.") == {"chevron"}
    assert query_keys("Dr. Ann Lee") == {"ann", "lee"}
    assert query_keys("Co") == {"co"}
    assert query_keys("what is it") == frozenset()


@pytest.mark.parametrize(
    ("mark", "code"),
    [("English", "en"), ("eng", "en"), ("en-GB", "en"), ("Italian", "it"), ("", "und"),
     ("Klingon", "und")],
)  # fmt: skip
def test_language_marks(mark: str, code: str) -> None:
    assert language_code(mark) == code


@pytest.mark.parametrize(
    ("title", "code"),
    [
        ("Trump attacca la sentenza sui dazi, politica e orribile", "und"),
        ("Protesta in Spagna contro la violenza di Israele su Gaza - Primopiano", "und"),
        ("जलवायु परिवर्तनको सजाय मुस्ताङले भोग्दैछ", "und"),
        ("12 345", "und"),
        ("La Niña returns to Los Angeles", "en"),
        ("Pennzoil \u2013 Royal Dutch Shell Plc.com", "en"),
        ("Vietnamese consumers shift toward greener e-commerce", "en"),
        ("Gold price rises", "en"),
    ],
)
def test_titles_marked_english_are_checked(title: str, code: str) -> None:
    assert checked_language("en", title) == code


def test_other_marks_are_believed() -> None:
    assert checked_language("it", "Gold price rises") == "it"

import pytest

from coreeval.tools.gdelt.words import (
    check_language,
    find_title_names,
    language_code,
    query_keys,
    search_keys,
    stem,
)


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
    assert set(search_keys("Lincoln")).isdisjoint(search_keys("Li"))
    assert stem("care") != stem("car")


def test_both_sides_are_normalised_alike() -> None:
    assert (
        search_keys("Gutiérrez\u2019s Café")
        == search_keys("gutierrez CAFE")
        == ["gutierrez", "cafe"]
    )
    assert search_keys("AT&T and the S & P 500") == ["att", "sp", "500"]
    assert search_keys("The U.S. told us") == ["US", "told"]
    assert search_keys("WHO says who is ill") == ["WHO", "ill"]


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
    assert check_language("en", title) == code


def test_other_marks_are_believed() -> None:
    assert check_language("it", "Gold price rises") == "it"


def test_names_come_from_titles_that_show_them() -> None:
    titles = [
        "Trade talks stall as Elon Musk visits Rotterdam on Friday",
        "Why Elon Musk sold his house on Friday",
        "Shares fall after Elon Musk leaves Rotterdam for good on Friday",
        "In Title Case Elon Musk And Rotterdam Are No Proof",
        "A Turkey farmer shows a wild Turkey how it is done",
        "The Turkey vote was closer than pollsters said",
        "Prices of turkey rose again this winter in Turkey",
    ]
    names = find_title_names(titles)
    assert names[0] == ("Elon Musk", "Rotterdam")
    assert names[1] == ("Elon Musk",)
    assert names[3] == ()
    assert not any("Turkey" in found or "Friday" in found for found in names)

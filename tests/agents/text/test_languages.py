"""Numbers, words, calendar and habits of texts that are not in English."""

import pytest

from coreeval.agents.text.language_checks import list_unchecked
from coreeval.agents.text.numbers import find_missing_numbers, find_numbers
from coreeval.agents.text.support import Support, find_calendar_words, find_unknown_names
from coreeval.agents.text.vocabulary import recognise_language
from coreeval.agents.text.voice import voice_hints
from coreeval.agents.text.words import find_closed_quotations, find_quotations, split_words, stem


@pytest.mark.parametrize(
    ("language", "text", "readings"),
    [
        ("de", "1.500 Menschen", {"1500"}),
        ("de", "1,5 Grad", {"1.5"}),
        ("de", "1,500 Gramm", {"1.5"}),
        ("de", "1.234.567,89 Euro", {"1234567.89"}),
        ("de", "2,4 Millionen Euro", {"2400000"}),
        ("de", "drei Milliarden", {"3000000000"}),
        ("de", "einundzwanzig Züge", {"21"}),
        ("de", "dreißig Züge", {"30"}),
        ("de", "um 12:30 Uhr", {"12:30"}),
        ("es", "1.500 personas", {"1500", "1.5"}),
        ("es", "2,4 millones", {"2400000"}),
        ("es", "tres mil millones", {"3000000000"}),
        ("es", "treinta y uno", {"31"}),
        ("fr", "12,5 degrés", {"12.5"}),
    ],
)
def test_numbers_are_read_by_the_language(language: str, text: str, readings: set[str]) -> None:
    (number,) = find_numbers(text, language)
    assert number.readings == readings


def test_a_number_may_be_written_in_another_form() -> None:
    known = find_numbers("Die Bahn streicht vierzig Züge und zahlt 2,4 Mio. Euro", "de")
    assert find_missing_numbers("40 Züge, 2.400.000 Euro", known, "de") == []
    (missing,) = find_missing_numbers("41 Züge", known, "de")
    assert missing.text == "41"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Der Zug nach Berlin ist schon wieder ausgefallen"),
        ("es", "El tren a Madrid se ha cancelado otra vez"),
        ("en", "The train to Paris was cancelled again, and I am so glad"),
        (None, "Nordbahn streicht 40"),
    ],
)
def test_function_words_tell_a_language(language: str | None, text: str) -> None:
    assert recognise_language(split_words(text)) == language


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [("de", "züge", "zug"), ("de", "verkaufte", "verkauft"), ("es", "trenes", "tren")],
)
def test_inflected_words_have_one_stem(language: str, one: str, other: str) -> None:
    assert stem(one, language) == stem(other, language)


def test_german_words_are_found_in_compounds_and_function_words_are_no_content() -> None:
    support = Support(["Bahnstreik: Nordbahn streicht am Montag 40 Züge"], "de")
    assert support.missing_words("Der Streik der Bahn trifft einen Zug") == ["trifft"]
    assert support.missing_numbers("vierzig Züge, 3 Busse") == ["3"]


def test_words_of_an_unknown_language_are_not_judged() -> None:
    support = Support(["Le train est en retard"], "fr")
    assert support.missing_words("Les bus ne roulent pas") == []
    assert support.missing_numbers("12 bus") == ["12"]


def test_calendar_words_of_german_and_spanish() -> None:
    assert find_calendar_words("Am Montag und im März, sonntags nie", "de") == {
        "montag", "märz", "sonntag",
    }  # fmt: skip
    assert find_calendar_words("El lunes 3 de mayo", "es") == {"lunes", "mayo"}


def test_names_are_told_by_capitals_except_in_german() -> None:
    text = "Die neue Bahn hält in Ulm"
    assert find_unknown_names(text, like="Ein Satz hier", known=(), language="de") == []
    spanish = "Hoy llega el tren a Toledo"
    assert find_unknown_names(spanish, like="una frase", known=(), language="es") == ["Toledo"]


@pytest.mark.parametrize("text", ["Er sagt: „Ganz ohne Not“", "Dice: «Ganz ohne Not»"])
def test_quotation_marks_of_other_languages(text: str) -> None:
    assert find_quotations(text) == ["Ganz ohne Not"]
    assert len(find_closed_quotations(text)) == 1


def test_german_words_are_no_english_slang() -> None:
    text = "Bin im Bus und da ist es wieder so voll wie immer"
    assert not any("im" in hint.split(": ")[-1] for hint in voice_hints(text, "de"))
    assert "speaks as I or we" in voice_hints("Ich bin so froh!", "de")


def test_what_is_not_checked_is_said() -> None:
    assert list_unchecked("en") == []
    german, french = list_unchecked("de"), list_unchecked("fr")
    assert "names that are not in the news" in german
    assert "names that are not in the news" not in list_unchecked("es")
    assert set(german) < set(french)

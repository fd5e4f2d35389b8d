"""A person is found where the takedown list finds them, and behind escapes."""

import time

import pytest
from pydantic import JsonValue

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.agents.safety import build_takedown
from tests.hostile.patterns import seconds

NAMES = ["José Núñez", "Acme Corp", "Anna-Lena Strauß", "Лев Яшин"]
FINDER = NameFinder(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "José Núñez opens a shop",
        "JOSE NUNEZ opens a shop",
        "said Jose\u0301 Nu\u0301n\u0303ez.",
        "Jos\u00e9 Nu\u0301n\u0303ez\u2019s shop",
        "acme   corp grows",
        "Anna\u2011Lena STRAUSS",
        "лев яшин",
        "Ac\u00adme Cor\u200bp",
        "Jos&eacute; N&uacute;&ntilde;ez",
    ],
)
def test_what_the_list_finds(text: str) -> None:
    assert FINDER.finds(text)
    assert list(build_takedown(NAMES).names_in(text))


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/2026/jose-nunez-opens.html",
        "the_jose_nunez_case",
        "q=Jos%C3%A9%20N%C3%BA%C3%B1ez&x",
        '{"a": "Jos\\u00e9 N\\u00fa\\u00f1ez"}',
        '{"a": "{\\"b\\": \\"Jos\\\\u00e9 N\\\\u00fa\\\\u00f1ez\\"}"}',
        "acme\ncorp",
        "Acme\\nCorp",
    ],
)
def test_what_else_names_them(text: str) -> None:
    assert FINDER.finds(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/jane-q-example",
        "jane q example",
        "JaneQExample",
        "at /conan-obrien/",
        "at /conan-o-brien/",
        "Conan O\u2019Brien",
        '{"a": "Jane\\tQ. Example"}',
        '{"a": "so\\r\\nJane Q.\\r\\nExample"}',
        '"{\\"a\\": \\"Jane Q.\\\\r\\\\nExample\\"}"',
        "Ja\u200cne Q. Exa\u200dmple",
        "said J.\u200bQ.\u200bDoe",
        "Nina\u200bTomas",
        "Li\u200bKe",
        "Li&#8203;Ke",
        "q=Jane%2520Q.%2520Example",
        "Jane&amp;nbsp;Q.&amp;nbsp;Example",
        "<b>Jane</b> Q. Ex<i>ample</i>",
        "<p>Jane Q.</p><p>Example</p>",
        "&lt;b&gt;Jane&lt;/b&gt; Q. Example",
        "50%Jane Q. Example",
        b"Jos\xe9 N\xfa\xf1ez".decode("utf-8", "surrogateescape"),
        "Jos\\xe9 N\\xfa\\xf1ez",
        "C:\\nina tomas",
        "Jane Q.             " * 9 + "\n" * 200 + "Example",
        "said JQ Doe",
    ],
)
def test_other_ways_to_write_a_name_are_found(text: str) -> None:
    names = ("Jane Q. Example", "Conan O'Brien", "José Núñez", "Nina Tomas", "J. Q. Doe", "Li Ke")
    assert NameFinder(names).finds(text)


@pytest.mark.parametrize("text", ["I like it", "Jane P. Example", "the example of Jane", "J Doe"])
def test_no_more_is_found_than_a_name(text: str) -> None:
    assert not NameFinder(["Li Ke", "Jane Q. Example", "J. Q. Doe"]).finds(text)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("Ali Y\u0131ld\u0131z", ["ALI YILDIZ", "Ali Yildiz", "ali-yildiz", "ALİ YILDIZ"]),
        ("Ali Yildiz", ["Ali Y\u0131ld\u0131z", "ALİ YILDIZ"]),
        ("Łukasz Żal", ["Lukasz Zal", "LUKASZ ZAL", "ŁUKASZ ŻAL", "\\u0141ukasz \\u017bal"]),
        ("Lukasz Zal", ["Łukasz Żal", "ŁUKASZ ŻAL", "Łukasz Zal"]),
        ("Bjørn Sæther", ["Bjorn Saether", "BJØRN SÆTHER"]),
        ("Bjorn Saether", ["Bjørn Sæther", "BJØRN SÆTHER"]),
        ("Đorđe Ħalil", ["Dorde Halil", "ĐORĐE ĦALIL"]),
        ("Guðrún Þórsdóttir", ["Gudrun Thorsdottir", "GUÐRÚN ÞÓRSDÓTTIR"]),
        ("Gudrun Thorsdottir", ["Guðrún Þórsdóttir"]),
        ("Lœtitia Ŧuuri", ["Loetitia Tuuri", "LŒTITIA ŦUURI"]),
    ],
)
def test_letters_with_strokes_are_those_without(name: str, others: list[str]) -> None:
    listed = build_takedown([name])
    for text in (name, *others, *(f"é said {other} é" for other in others)):
        assert NameFinder([name]).finds(text), text
        assert list(listed.names_in(text)) == [name]
    assert not NameFinder([name]).finds("é said Æthelred Łoś \u0131dó é")


def test_a_name_in_escaped_letters_of_another_plane_is_found() -> None:
    assert NameFinder(["\U00010414\U00010415\U00010416"]).finds(
        r"\ud801\udc14\ud801\udc15\ud801\udc16"
    )


@pytest.mark.parametrize(
    "piece", ["\\", "<", "<a ", "&", "&amp;", "%25", "\\n", "jane ", "jane\\", "\ud83d", " "]
)
def test_texts_of_one_sign_take_time_in_proportion(piece: str) -> None:
    """Where each sign is held against all others it takes a minute."""
    text = piece * (200_000 // len(piece)) + r" \u00e9"
    assert seconds(NameFinder(["Jane Example"]).finds, text, 20.0) < 20.0


@pytest.mark.parametrize(
    "text",
    ["José Ruiz", "Nunez", "Acme Corporation", "Lacme Corp", "corp acme", "", "100% &c; \\u"],
)
def test_others_are_left_alone(text: str) -> None:
    assert not FINDER.finds(text)


def test_a_name_is_found_anywhere_in_a_long_text() -> None:
    filler = "corp acm nunez jose, " * 5000
    for text in (f"Acme Corp {filler}", f"{filler}Acme Corp", f"{filler}Acme Corp {filler}"):
        assert FINDER.finds(text)
    assert not FINDER.finds(filler)


def test_values_lose_what_names_them_and_nothing_else() -> None:
    value: JsonValue = {"a": ["about Acme Corp", 1, None, True], "acme corp": {"b": "fine"}}
    assert FINDER.finds_in(value)
    assert FINDER.blanked(value) == {
        "a": [TAKEN_DOWN, 1, None, True], TAKEN_DOWN: {"b": "fine"}
    }  # fmt: skip
    assert not FINDER.finds_in(FINDER.blanked(value))


def test_keys_that_name_them_stay_different() -> None:
    value: JsonValue = {"Acme Corp": 1, "acme-corp": 2, TAKEN_DOWN: 3, "other": 4}
    assert FINDER.blanked(value) == {
        "(taken down 2)": 1, "(taken down 3)": 2, TAKEN_DOWN: 3, "other": 4
    }  # fmt: skip


def test_a_text_of_many_near_misses_takes_no_more_than_its_length() -> None:
    began = time.process_time()
    assert not FINDER.finds("acme " * 200_000)
    assert time.process_time() - began < 30

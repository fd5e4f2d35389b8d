"""A person is found where the takedown list finds them, and behind escapes."""

import time

import pytest
from pydantic import JsonValue

from coreeval.agents.takedown import takedown_of
from coreeval.releases.forgetting.names import TAKEN_DOWN, Finder

NAMES = ["José Núñez", "Acme Corp", "Anna-Lena Strauß", "Лев Яшин"]
FINDER = Finder(NAMES)


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
    assert list(takedown_of(NAMES).names_in(text))


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


def test_a_text_of_many_near_misses_takes_no_more_than_its_length() -> None:
    began = time.process_time()
    assert not FINDER.finds("acme " * 200_000)
    assert time.process_time() - began < 30

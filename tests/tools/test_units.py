"""Units are found beside numbers, whatever their spelling."""

import pytest

from coreeval.tools.units import name_unit, read_unit_at, spell_units, units_agree, write_powers


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("km/h", "kilometre per hour"),
        ("kilometers an hour", "kilometre per hour"),
        ("kg m-3", "kilogram per cubic metre"),
        ("km and miles", "kilometre"),
        ("billion US dollars", "US dollar"),
        ("C$ million", "Canadian dollar"),
        ("square kilometres", "square kilometre"),
        ("(million t)", "tonne"),
        ("people per square kilometre", ""),
        ("kilometrage, smiles, centimes", ""),
    ],
)
def test_the_unit_of_a_text(text: str, name: str) -> None:
    assert units_agree(name_unit(text), name) and bool(name_unit(text)) is bool(name)


def test_the_unit_behind_a_number() -> None:
    assert read_unit_at("12-km race", 2) == ("kilometre", 5)
    assert read_unit_at("12 of 30 km", 2) == ("", 2)
    assert read_unit_at("12 m", 2) == ("", 2)
    assert read_unit_at("12 m/s", 2)[1] == len("12 m/s")


def test_a_letter_is_what_the_unit_asked_for_measures() -> None:
    assert spell_units("12 m or 3 m people", "kilometre") == "12 metre or 3 metre people"
    assert spell_units("12 m and 5m tonnes", "tonne") == "12 m and 5m tonnes"
    assert spell_units("12 m", "") == "12 m"


def test_raised_digits_are_powers_of_lengths_and_times_alone() -> None:
    assert write_powers("5 km\u00b2, 5 million\u00b2, 5 m s\u207b\u00b9") == (
        "5 km^2, 5 million\u00b2, 5 m s^-1"
    )

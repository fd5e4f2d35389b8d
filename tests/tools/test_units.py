"""Units are found beside numbers, whatever their spelling."""

import pytest

from coreeval.tools.units import find_units, is_measured, read_unit_at


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("km/h", {"kilometre per hour"}),
        ("kilometers an hour", {"kilometre per hour"}),
        ("12 km and 3 miles", {"kilometre", "mile"}),
        ("billion US dollars", {"dollar"}),
        ("C$ million", {"dollar"}),
        ("square kilometres", {"square kilometre"}),
        ("kilometrage, smiles, centimes", set()),
    ],
)
def test_units_of_a_text(text: str, names: set[str]) -> None:
    assert find_units(text) == names


def test_the_unit_behind_a_number() -> None:
    assert read_unit_at("12-km race", 2) == ("kilometre", 5)
    assert read_unit_at("12 of 30 km", 2) == ("", 2)
    assert is_measured("kilometre per hour") and not is_measured("dollar per hour")

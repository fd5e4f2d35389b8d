"""Units that numbers are in: how they are written, and what a model may call them."""

from functools import cache
from importlib import resources

import yaml
from pydantic import TypeAdapter

from coreeval.schema import Text, Value


class Unit(Value):
    """What the values of a series are counted in."""

    name: Text
    """What a question asks for: "percent", "degrees Fahrenheit"."""
    symbol: str = ""
    """Written behind a number: "%", "°F"; empty where nothing is."""
    points_name: Text
    """What differences of values are counted in: "percentage points"."""
    forms: tuple[str, ...] = ()
    """Other words and symbols for it in an answer, in lower case; plurals too."""
    basis_points: bool = False
    """Whether an answer may count in hundredths of it, as basis points (percent alone)."""


@cache
def known_units() -> dict[str, Unit]:
    """Return the units that come with the package, by the key that a series names them by."""
    file = resources.files("coreeval.evaluation.numleak.series") / "units.yaml"
    return TypeAdapter(dict[str, Unit]).validate_python(yaml.safe_load(file.read_text("utf-8")))


def named_unit(raw: object) -> object:
    """Return the unit that a text names; anything else unchanged.

    Raises:
        ValueError: there is no such unit.
    """
    if not isinstance(raw, str):
        return raw
    units = known_units()
    if raw not in units:
        known = ", ".join(units)
        raise ValueError(
            f"there is no unit {raw!r} (known: {known}); a unit of your own is a mapping"
        )
    return units[raw]

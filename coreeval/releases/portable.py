"""What a run recorded, without the places of the machine that it ran on."""

from pathlib import Path
from typing import Any


def portable(values: dict[str, Any], base: Path) -> dict[str, Any]:
    """Return plain values in which paths below `base` start there, and those at home with `~`."""
    places = {f"{base}/": "", f"{Path.home()}/": "~/"}
    known = {start: short for start, short in places.items() if start.count("/") > 1}
    return {key: _shortened(value, known) for key, value in values.items()}


def _shortened(value: object, places: dict[str, str]) -> object:
    if isinstance(value, str):
        for start, short in places.items():
            value = value.replace(start, short)
        return value
    if isinstance(value, dict):
        return {key: _shortened(inner, places) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner, places) for inner in value]
    return value

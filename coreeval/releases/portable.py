"""What a run recorded, without the places of the machine that it ran on."""

from pathlib import Path
from typing import Any


def portable(values: dict[str, Any], base: Path) -> dict[str, Any]:
    """Return plain values in which paths below `base` start there, and say nothing of it."""
    return {key: _shortened(value, f"{base}/") for key, value in values.items()}


def _shortened(value: object, start: str) -> object:
    if isinstance(value, str):
        return value.replace(start, "") if start.count("/") > 1 else value
    if isinstance(value, dict):
        return {key: _shortened(inner, start) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner, start) for inner in value]
    return value

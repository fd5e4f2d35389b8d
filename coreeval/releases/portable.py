"""What a run recorded, without the places of the machine that it ran on."""

import re
from pathlib import Path
from typing import Any

ELSEWHERE = ".../"
"""Stands for a folder that is neither the config's nor the user's own."""
_WITHIN = re.compile(
    r"((?:(?<=replay:)|(?<![\w/.~:-])))/(?:[^\s/'\"`,;:|<>()\[\]{}]+/)+([^\s/'\"`,;:|<>()\[\]{}]*)"
)
"""An absolute path of two parts or more in a sentence; not one in a URL or in a model's name."""


def portable(values: dict[str, Any], base: Path) -> dict[str, Any]:
    """Return plain values without absolute paths.

    Paths below `base` start there, those at home with `~`; of any other, `.../` and its last part
    are left.
    """
    places = {f"{base}/": "", f"{Path.home()}/": "~/"}
    known = {start: short for start, short in places.items() if start.count("/") > 1}
    return {key: _shortened(value, known) for key, value in values.items()}


def _shortened(value: object, places: dict[str, str]) -> object:
    if isinstance(value, str):
        for start, short in places.items():
            value = value.replace(start, short)
        return _without_elsewhere(value)
    if isinstance(value, dict):
        return {key: _shortened(inner, places) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner, places) for inner in value]
    return value


def _without_elsewhere(text: str) -> str:
    """Return a text in which of each absolute path only the last part is left."""
    if text.startswith("/") and "\n" not in text:
        return ELSEWHERE + text.rstrip("/").rpartition("/")[2]
    return _WITHIN.sub(rf"\1{ELSEWHERE}\2", text)

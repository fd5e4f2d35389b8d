"""Removes paths of this machine from what others may read."""

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

ELSEWHERE = ".../"
"""The placeholder for a folder that is neither the config's nor the user's."""
FOLDER_START = r"(?:(?<=file://)|(?<![\w/.~-]))"
"""The place before a folder in a text: its name may occur in the path of a URL, too."""
_WITHIN = re.compile(
    r"((?:(?<=replay:)|(?<=\bhf:)|(?<![\w/.~:-])))/(?:[^\s/'\"`,;:|<>()\[\]{}]+/)+([^\s/'\"`,;:|<>()\[\]{}]*)"
)
"""An absolute path of two or more parts in a sentence, but not in a URL or a model's name."""
_WHOLE = re.compile(r"(|replay:|hf:)/((?:[^\n]*/)?)([^/\n]+)/*")
"""An absolute path alone, or the name of a model on this machine: it may contain spaces."""


def strip_paths(values: dict[str, Any], *bases: Path) -> dict[str, Any]:
    """Return plain values without absolute paths.

    Paths below one of the bases become relative to it, and those below the home folder start with
    `~`; any other is cut to `.../` and its last part. Names of models on this machine also keep
    six digits of their folder's digest, so that two with the same last part stay different.
    """
    places = {**{f"{base}/": "" for base in bases}, f"{Path.home()}/": "~/"}
    known = {start: short for start, short in places.items() if start.count("/") > 1}
    return {key: _shorten_path(value, known) for key, value in values.items()}


def shorten_name(model: str, *bases: Path) -> str:
    """Return a model's public name: a file or weights on this machine lose their absolute path."""
    return str(strip_paths({"": model}, *bases)[""])


def _shorten_path(value: object, places: dict[str, str]) -> object:
    if isinstance(value, str):
        for start, short in places.items():
            value = re.sub(FOLDER_START + re.escape(start), short, value)
        return _strip_text(value)
    if isinstance(value, dict):
        return {key: _shorten_path(inner, places) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shorten_path(inner, places) for inner in value]
    return value


def _strip_text(text: str) -> str:
    """Return a text with each absolute path cut to its last part."""
    if whole := _WHOLE.fullmatch(text):
        provider, folder, last = whole.groups()
        mark = f"{sha256(os.fsencode(folder)).hexdigest()[:6]}/" if provider else ""
        return f"{provider}{ELSEWHERE}{mark}{last}"
    return _WITHIN.sub(rf"\1{ELSEWHERE}\2", text)

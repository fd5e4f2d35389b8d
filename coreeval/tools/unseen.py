"""Characters without a shape in texts of others: controls, and what reorders or hides the rest."""

import re
from typing import TypeVar

UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control, bidi, zero-width and tag characters, halves of surrogate pairs; not tab and newline."""
_JOINED = re.compile(r"(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")
"""Inside emoji and in some scripts joiners are orthography."""
_Shown = TypeVar("_Shown")


def unseen_in(text: str) -> list[re.Match[str]]:
    """Return the characters without a shape in a text, but for joiners that belong there."""
    if text.isascii() and text.isprintable():
        return []
    joined = {match.start() for match in _JOINED.finditer(text)}
    return [match for match in UNSEEN.finditer(text) if match.start() not in joined]


def visible(text: str) -> str:
    """Return a text with U+FFFD in the place of each character without a shape; lines end in LF."""
    text = text.replace("\r\n", "\n")
    found = unseen_in(text)
    if not found:
        return text
    letters = list(text)
    for match in found:
        letters[match.start()] = "\N{REPLACEMENT CHARACTER}"
    return "".join(letters)


def visible_line(text: str) -> str:
    """Return a text in the same way, on one line."""
    return " ".join(visible(text).split())


def visible_value(value: _Shown) -> _Shown | str:
    """Return a value of a page as it is, a text with its tricks visible: `finalize` of Jinja."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return type(value)(shown) if shown != value else value

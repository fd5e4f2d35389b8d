"""Character references of HTML, such as `&amp;` and `&#39;`, in texts of strangers."""

import html
import re

_LONG = re.compile(r"&#([0-9]{8,})")
_MOST_DIGITS = 8
"""No character has a number of so many digits; what HTML makes of one that is too large stays."""


def unescape(text: str) -> str:
    """Return a text with its references resolved, however many digits they have.

    Python refuses to read a number of more than 4300 digits; a reference to no character becomes
    U+FFFD, as HTML says.
    """
    if "&" not in text:
        return text
    return html.unescape(_LONG.sub(_shortened, text))  # noqa: TID251 - here alone


def _shortened(found: re.Match[str]) -> str:
    return "&#" + (found[1].lstrip("0")[:_MOST_DIGITS] or "0")

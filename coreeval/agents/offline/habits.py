"""A new text in the habits of the original's author, as far as rules can follow them."""

import re

from coreeval.agents import voice
from coreeval.agents.marks import without_marks

_LAST_STOP = re.compile(r"(?<![.])\.(?=(?:\s*(?:[#@]\w+|[^\w\s.])+)*\s*$)")
_FIRST = re.compile(r"(?<![#@\w])[^\W\d_]\w*")


def in_habit(original: str, text: str, proper: frozenset[str]) -> str:
    """Return a text without the final stop or the first capital that the author leaves out."""
    if voice.ends_open(original):
        text = _LAST_STOP.sub("", text)
    return _lowered(text, proper) if voice.lower_starts(original) else text


def _lowered(text: str, proper: frozenset[str]) -> str:
    first = _FIRST.search(text)
    if not first or not without_marks(text[: first.end()]).strip():
        return text
    word = first.group()
    if word in proper or word == "I" or word[1:] != word[1:].lower():
        return text
    return text[: first.start()] + word.lower() + text[first.end() :]

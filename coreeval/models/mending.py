"""Slips of JSON put right, in time proportional to the text.

A text is cut into signs, words and strings once, from left to right, and joined again as JSON.
Nothing is made up: where a value or an end is missing, it still is afterwards.
"""

import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Final

_MOST_KEY: Final = 80
"""Characters of a key that are looked at to tell whether a comma is missing before it."""
_TOKEN: Final = re.compile(
    r"\s+|(?P<sign>[{}\[\]:,])|(?P<quote>[\"'\u201c])|(?P<comment>//[^\n]*|/\*)"
    r"|(?P<word>[^\s{}\[\]:,\"'\u201c](?:[^{}\[\]:,\"\n/]|/(?![/*]))*)"
)
_CLOSING: Final = {'"': re.compile(r'\\.|"', re.DOTALL), "'": re.compile(r"\\.|'", re.DOTALL),
                   "\u201c": re.compile(r"\\.|[\"\u201d]", re.DOTALL)}  # fmt: skip
_ENDS_STRING: Final = re.compile(
    rf"\s*(?:[,:}}\]]|//|/\*|$|[\"'\u201c][^\"'\u201c\u201d\n]{{0,{_MOST_KEY}}}[\"'\u201d]\s*[:,}}\]])"
)
"""What stands behind a quote that ends a string; behind any other, the string goes on."""
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CONSTANTS: Final = {
    **{name: name for name in ("true", "false", "null", "NaN", "Infinity", "-Infinity")},
    **{"True": "true", "False": "false", "None": "null"},
}


MOST_MENDED: Final = 1 << 15
"""Characters of an object that is mended: 8,192 tokens at 4 characters each, twice the length that
a second answer may have by default. The worst text of that length takes 0.05 s."""


class _NotMendable(Exception):
    """A string or a comment has no end."""


def put_right(text: str) -> str | None:
    """Return an object with its commas, quotes and line breaks put right.

    Quotes may be single, typographic or missing, and stand unescaped inside a string; line breaks
    may stand in strings; commas may be missing or stand before an end; comments are left out. What
    comes back need not be JSON: a slip of another kind is as it was.

    Args:
        text: The object, from its first brace to its last.

    Returns:
        None where a string or a comment has no end, or where there are more than `MOST_MENDED`
        characters.
    """
    if len(text) > MOST_MENDED:
        return None
    try:
        return "".join(_joined(_tokens(text)))
    except _NotMendable:
        return None


def _joined(tokens: Iterator[str]) -> Iterator[str]:
    """Yield tokens with the commas that JSON has between them."""
    before, comma = "", False
    for token in tokens:
        behind_value = before not in ("", "{", "[", ":", ",")
        if token == "," and behind_value:
            comma = True
        elif token == ",":
            yield ",,"  # a value is missing: it is no JSON, and stays none
            comma = False
        elif token in ("}", "]", ":"):
            yield token
            comma = False
        else:
            yield f",{token}" if comma or behind_value else token
            comma = False
        before = token


def _tokens(text: str) -> Iterator[str]:
    """Yield the signs and values of a text, each as JSON has it."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _NotMendable
        at = found.end()
        if found["sign"]:
            yield found["sign"]
        elif found["quote"]:
            inside, at = _string(text, at, _CLOSING[found["quote"]])
            yield inside
        elif found["comment"] == "/*":
            at = _after_comment(text, at)
        elif found["word"]:
            yield _word(found["word"].strip())


def _after_comment(text: str, at: int) -> int:
    end = text.find("*/", at)
    if end < 0:
        raise _NotMendable
    return end + 2


def _string(text: str, start: int, closing: re.Pattern[str]) -> tuple[str, int]:
    """Return a string as JSON has it, and where the text goes on behind it."""
    parts, at = list[str](), start
    for found in closing.finditer(text, start):
        parts.append(_plain(text[at : found.start()]))
        at, said = found.end(), found.group()
        if said.startswith("\\"):
            parts.append(_escape(text, found.start()))
            at = found.start() + 2
        elif _ENDS_STRING.match(text, at):
            return f'"{"".join(parts)}"', at
        else:
            parts.append(_plain(said))
    raise _NotMendable


def _escape(text: str, at: int) -> str:
    """Return the first two characters of an escape; of what is none, both as they are read."""
    if _ESCAPE.match(text, at):
        return text[at : at + 2]
    return _plain("'" if text[at + 1] == "'" else text[at : at + 2])


def _plain(text: str) -> str:
    """Return characters as they stand in a JSON string."""
    return encode_basestring(text)[1:-1]


def _word(word: str) -> str:
    """Return a word without quotes: a number or a constant, or else a string."""
    if _NUMBER.fullmatch(word):
        return word
    return _CONSTANTS.get(word) or f'"{_plain(word)}"'

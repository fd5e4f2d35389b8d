"""Finding a person in any text that is kept: as the takedown list does, and in URLs and escapes.

What the list finds is found, and more: `jose-nunez` in an address, an accent that is an escape of
JSON inside JSON. It reads gigabytes, so a text is looked at closely only where the longest part of
a name stands.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from urllib.parse import unquote

from pydantic import JsonValue

from coreeval.agents.takedown import folded
from coreeval.tools.html_references import unescape

TAKEN_DOWN = "(taken down)"
"""Stands where a text named somebody."""
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_REFERENCE = re.compile(r"&#?\w+;")
_INVISIBLE = "\u200b\u2060\ufeff\u00ad\ufe0f\u200e\u200f"
_BETWEEN = r"[\W_]{1,3}"
"""What may stand between two words of a name."""
_AROUND = 64
"""Characters on both sides of a name that are looked at with it: references and escapes shrink."""


class Finder:
    """Tells which texts name somebody.

    Args:
        names: The name, and others that the same person goes by.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._pieces = tuple({_longest_piece(name) for name in names})
        self._ascii = _ascii_pieces(self._pieces)
        self._patterns = [_pattern(name) for name in names]
        self._reach = _AROUND + 2 * max(map(len, names))

    @property
    def plainest(self) -> tuple[str, ...]:
        """A part of each name without which no text has it, but for marks, case and escapes.

        There is none for names of other alphabets.
        """
        return tuple(piece.decode() for piece in self._ascii)

    def finds(self, text: str) -> bool:
        """Tell whether a text names somebody."""
        decoded = _decoded(text)
        if not self._may_name(decoded):
            return False
        return any(
            pattern.search(folded(part))
            for part in self._near(_light(decoded))
            for pattern in self._patterns
        )

    def finds_in(self, value: object) -> bool:
        """Tell whether any text of a value, keys of mappings included, names somebody."""
        if isinstance(value, str):
            return self.finds(value)
        if isinstance(value, dict):
            return any(self.finds_in(part) for pair in value.items() for part in pair)
        return isinstance(value, list | tuple) and any(map(self.finds_in, value))

    def blanked(self, value: JsonValue) -> JsonValue:
        """Return a value in which each text that names somebody is `TAKEN_DOWN`."""
        if isinstance(value, str):
            return TAKEN_DOWN if self.finds(value) else value
        if isinstance(value, dict):
            return {str(self.blanked(key)): self.blanked(each) for key, each in value.items()}
        return [self.blanked(each) for each in value] if isinstance(value, list) else value

    def _may_name(self, text: str) -> bool:
        """Tell whether a closer look is worth its time, which is ten times that of this one."""
        if text.isascii() or not self._ascii:
            return True
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").lower()
        return any(piece in plain for piece in self._ascii)

    def _near(self, light: str) -> Iterator[str]:
        """Yield the stretches of a text in which a name may stand."""
        for piece in self._pieces:
            at = light.find(piece)
            while at >= 0:
                yield light[max(0, at - self._reach) : at + self._reach]
                at = light.find(piece, at + self._reach // 2)


def _ascii_pieces(pieces: Sequence[str]) -> tuple[bytes, ...]:
    """Return what can be looked for in ASCII; nothing if a name has no such part.

    `ss` may be written as one letter, and other alphabets have more ways to be small.
    """
    plain = [max(piece.split("ss"), key=len) for piece in pieces]
    whole = all(len(each) > 1 and each.isascii() for each in plain)
    return tuple(each.encode() for each in plain) if whole else ()


def _decoded(text: str) -> str:
    """Return a text without the escapes of JSON, addresses and HTML."""
    if "\\u" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    if "%" in text:
        text = unquote(text, errors="replace")
    return unescape(text) if "&" in text and _REFERENCE.search(text) else text


def _light(text: str) -> str:
    """Return a text without case, marks and what cannot be seen; `folded` does more, slower."""
    if text.isascii():
        return text.lower()
    return _unmarked().sub("", unicodedata.normalize("NFKD", text)).casefold()


@cache
def _unmarked() -> re.Pattern[str]:
    """Return a pattern of all characters that `_light` leaves out."""
    marks = (chr(code) for code in range(0x20000) if unicodedata.combining(chr(code)))
    return re.compile(f"[{''.join(marks)}{_INVISIBLE}]")


def _longest_piece(name: str) -> str:
    parts: list[str] = re.findall(r"[^\W_]+", _light(folded(name)))
    return max(parts, key=len)


def _pattern(name: str) -> re.Pattern[str]:
    """Return what a name looks like, whatever stands between its words."""
    words = (re.escape(word) for word in re.split(r"[\s_-]+", folded(name)) if word)
    return re.compile(rf"(?<![^\W_]){_BETWEEN.join(words)}(?![^\W_])")

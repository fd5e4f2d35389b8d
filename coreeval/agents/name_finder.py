"""Finds a person in any text: news, addresses, answers, and files that contain these.

A name is found regardless of case, accents and strokes, as `jose-nunez` in an address, with an
accent escaped in JSON inside JSON, and with a tag in it. `coreeval takedown` reads gigabytes, so a
text is examined closely only if it contains the longest part of a name.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, count, pairwise
from types import MappingProxyType
from urllib.parse import unquote

from pydantic import JsonValue

from coreeval.tools.text import unescape

TAKEN_DOWN = "(taken down)"
"""Replacement for a name that was taken down."""
STROKED: Mapping[str, str] = MappingProxyType(
    {"\u0131": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "æ": "ae",
     "œ": "oe", "þ": "th"}
)  # fmt: skip
"""Small letters that Unicode does not take apart, and how names with them are written in ASCII."""
_STROKED = {
    letter: plain
    for small, plain in STROKED.items()
    for letter in (small, small.upper())
    if not letter.isascii()
}
_ESCAPE = re.compile(r"(?<!\\)\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""A character beyond the first 65,536, written as two escapes."""
_REFERENCE = re.compile(r"&#?\w+;")
_TAG = re.compile(r"<[^<>]{0,500}>")
_BYTES = {0xDC00 + byte: chr(byte) for byte in range(0x80, 0x100)}
"""Bytes that are not UTF-8, as `surrogateescape` decodes them, mapped to Latin-1."""
_NO_WIDTH = "\u200b"
_MOST_ESCAPES = 4
"""The most levels of escaping that are undone."""
_SELECTORS = "\u034f\ufe00-\ufe0f\U000e0000-\U000e01ef"
"""Invisible characters, besides marks and formats, that select among glyphs."""
_BETWEEN = r"(?:\\{1,8}[nrtfbv]|\\{0,8}[\W_])"
"""The separators between two words of a name, up to three, besides the name's own signs."""
_BEGIN, _END = r"(?:(?<![^\W_])|(?<=\\[nrtfbv]))", r"(?![^\W_])"
_NO_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_UNSPACED = re.compile(f"[{_NO_SPACES}]")
_TOGETHER = 8
"""The fewest letters of a name that is also searched for without spaces: `Li Ke` would match in
`like`.
"""
_AROUND = 64
"""The number of characters examined on each side of a name."""


class NameFinder:
    """Finder of texts that name somebody.

    Args:
        names: The name, and other names of the same person.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._pieces = tuple({_longest_piece(name) for name in names})
        self._ascii = _ascii_pieces(self._pieces)
        self._patterns = [_pattern(name) for name in names]
        self._reach = _AROUND + 32 * max(map(len, map(_words, names)))

    @property
    def plainest(self) -> tuple[str, ...]:
        """Return a part of each name that is in all texts with the name, despite marks or escapes.

        Names in other alphabets have no such part.
        """
        return tuple(piece.decode() for piece in self._ascii)

    def finds(self, text: str) -> bool:
        """Return whether a text names somebody."""
        return any(map(self._finds_plainly, _forms(text)))

    def _finds_plainly(self, text: str) -> bool:
        """Return whether a text names somebody, without decoding the text."""
        if not self._may_name(text):
            return False
        light = fold_letters(text)
        if not any(piece in light for piece in self._pieces):
            return False
        return self._finds_closely(" ".join(light.split()))

    def finds_in(self, value: object) -> bool:
        """Return whether any text in a value, including the keys of mappings, names somebody.

        Bytes count as text: some programs write texts as binary columns.
        """
        if isinstance(value, str):
            return self.finds(value)
        if isinstance(value, bytes):
            return self.finds(value.decode(errors="replace"))
        if isinstance(value, dict):
            return any(self.finds_in(part) for pair in value.items() for part in pair)
        return isinstance(value, list | tuple) and any(map(self.finds_in, value))

    def blanked(self, value: JsonValue) -> JsonValue:
        """Return a value in which each text that names somebody is replaced by `TAKEN_DOWN`."""
        if isinstance(value, str):
            return TAKEN_DOWN if self.finds(value) else value
        if isinstance(value, dict):
            names = self.blanked_keys(value)
            return {names.get(key, key): self.blanked(each) for key, each in value.items()}
        return [self.blanked(each) for each in value] if isinstance(value, list) else value

    def blanked_keys(self, keys: Collection[str]) -> dict[str, str]:
        """Return a replacement for each key that names somebody; different keys stay different."""
        numbered = (f"{TAKEN_DOWN[:-1]} {number})" for number in count(2))
        free = (each for each in chain([TAKEN_DOWN], numbered) if each not in keys)
        return dict(zip(filter(self.finds, dict.fromkeys(keys)), free, strict=False))

    def _may_name(self, text: str) -> bool:
        """Return whether a closer look is worthwhile; it takes ten times as long as this check."""
        if text.isascii() or not self._ascii:
            return True
        plain = _without_strokes(unicodedata.normalize("NFKD", text))
        letters = plain.encode("ascii", "ignore").lower()
        return any(piece in letters for piece in self._ascii)

    def _finds_closely(self, light: str) -> bool:
        """Return whether a name occurs in one of the parts of a text that may contain it."""
        for piece in self._pieces:
            at = light.find(piece)
            while at >= 0:
                end = at + self._reach
                for pattern in self._patterns:
                    found = pattern.search(light, max(0, at - self._reach), end)
                    if found and (found.end() < end or end >= len(light)):
                        return True
                at = light.find(piece, at + self._reach // 2)
        return False


def _ascii_pieces(pieces: Sequence[str]) -> tuple[bytes, ...]:
    """Return the ASCII pieces to look for; empty if a name has no such piece.

    `ss` may be written as one letter, and other alphabets have more lower-case forms.
    """
    plain = [max(piece.split("ss"), key=len) for piece in pieces]
    whole = all(len(each) > 1 and each.isascii() for each in plain)
    return tuple(each.encode() for each in plain) if whole else ()


def _forms(text: str) -> Iterator[str]:
    """Yield a text at each level of unescaping, each also without its tags.

    A space without width may be inside a word, or the only space between two words.
    """
    for _ in range(_MOST_ESCAPES):
        yield text
        if _NO_WIDTH in text:
            yield text.replace(_NO_WIDTH, " ")
        if "<" in text:
            yield from {_TAG.sub("", text), _TAG.sub(" ", text)} - {text}
        decoded = _decoded(text)
        if decoded == text:
            return
        text = decoded


def _decoded(text: str) -> str:
    """Return a text without its outermost JSON, URL and HTML escapes."""
    if not text.isascii():
        text = text.translate(_BYTES) if _has_bytes(text) else text
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
        text = _PAIR.sub(_joined, text)
    if "%" in text:
        text = unquote(text, errors="replace")
    return unescape(text) if "&" in text and _REFERENCE.search(text) else text


def _has_bytes(text: str) -> bool:
    """Return whether a text was read from bytes that are not valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def fold_letters(text: str) -> str:
    """Return a text without case, marks, strokes and invisible characters."""
    if text.isascii():
        return text.lower()
    return _without_strokes(_unmarked().sub("", unicodedata.normalize("NFKD", text)).casefold())


def _without_strokes(text: str) -> str:
    """Return a text with ASCII for the letters of `STROKED`; faster than `translate`."""
    for letter, plain in _STROKED.items():
        text = text.replace(letter, plain)
    return text


@cache
def _unmarked() -> re.Pattern[str]:
    """Return a pattern for all characters that `fold_letters` removes."""
    every = map(chr, range(0x20000))
    left_out = (
        each for each in every if unicodedata.combining(each) or unicodedata.category(each) == "Cf"
    )
    return re.compile(f"[{re.escape(''.join(left_out))}{_SELECTORS}]")


def _words(name: str) -> list[str]:
    """Return the words of a name, without full stops and hyphens."""
    words: list[str] = re.findall(r"[^\W_]+", fold_letters(name))
    return words


def _longest_piece(name: str) -> str:
    return max(_words(name), key=len)


def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that matches a name, regardless of what separates its words.

    Letters may adjoin a name if its script has no spaces. No separator is needed between initials,
    if the name itself has no space, or in a long name.
    """
    light, words = fold_letters(name), list(re.finditer(r"[^\W_]+", fold_letters(name)))
    close = sum(len(word[0]) for word in words) >= _TOGETHER
    pattern = re.escape(words[0][0])
    for one, other in pairwise(words):
        initials = len(one[0]) == len(other[0]) == 1
        own = light[one.end() : other.start()]
        spaced = any(map(str.isspace, own))
        least = 0 if close or initials or not spaced else 1
        most = 3 + len(own.replace(" ", ""))
        pattern += f"{_BETWEEN}{{{least},{most}}}{re.escape(other[0])}"
    begin = "" if is_unspaced(words[0][0][0]) else _BEGIN
    end = "" if is_unspaced(words[-1][0][-1]) else _END
    return re.compile(f"{begin}{pattern}{end}")


def is_unspaced(letter: str) -> bool:
    """Return whether a letter belongs to a script that puts no spaces between words."""
    return bool(_UNSPACED.match(letter))

"""The elements of a list in one JSON document, read one by one.

Files of benchmarks are often one document of many megabytes; only one of its elements is in memory
at a time.
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from coreeval.config.user_files import MOST_LINE_BYTES
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import CHUNK, mark_repeated_key, open_records

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(object_pairs_hook=mark_repeated_key)
_LONGEST_TORN: Final = 3
"""A number that is cut at the end of the buffer ends fewer characters before it, as in `1e-`."""


class JsonElement(NamedTuple):
    """An element of a list, with the number of the line on which it starts, from 1."""

    line: int
    value: object


def iter_json_elements(path: Path, key: str | None = None) -> Iterator[JsonElement]:
    """Yield the elements of the list in a file, plain or .gz.

    Args:
        path: The file.
        key: The key of the list in the document's outermost object; None: the document is the list.

    Raises:
        DatasetError: the file cannot be read, is not JSON in UTF-8, or has no such list; an element
            has more characters than a line may have bytes.
    """
    with open_records(path) as file:
        text = _BufferedText(file)
        try:
            found = key is None or _find_value(text, key)
            if not found or text.peek() != "[":
                raise _no_list_error(path, key)
            yield from _iter_list(text)
            if key is None and text.peek():
                raise ValueError("the file continues after the list")
        except (ValueError, RecursionError) as error:
            raise DatasetError(
                f"the file is not valid JSON: {_describe(error)}, in the value that begins on "
                f"line {text.line}",
                where=str(path),
                hint="download it again if it is incomplete; for a file with one object per "
                "line, use the format jsonl",
            ) from None


def _describe(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):  # its position is in the buffer
        return error.msg
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "values are nested too deeply" if isinstance(error, RecursionError) else str(error)


def _no_list_error(path: Path, key: str | None) -> DatasetError:
    if key is None:
        hint = "a list of objects is expected, as in [{...}, {...}]"
        return DatasetError("the file contains no JSON list", where=str(path), hint=hint)
    hint = f'an object with a list is expected, as in {{"{key}": [{{...}}, {{...}}]}}'
    return DatasetError(f"the file contains no list {key!r}", where=str(path), hint=hint)


class _BufferedText:
    """The part of a document that is in memory, and its position in the document."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        self.line = 1
        """The number of the line to read next."""

    def peek(self) -> str:
        """Return the next non-space character, or "" at the end, without moving past it."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            self._move(end)
            if end < len(self._text) or not self._extend():
                return self._text[end : end + 1]

    def take(self, wanted: str) -> None:
        """Move past the next character; raise ValueError unless it is the expected one."""
        found = self.peek()
        if found != wanted:
            raise ValueError(f"expected {wanted!r} but found {found!r}" if found else
                             "it is truncated")  # fmt: skip
        self._move(self._at + 1)

    def read_value(self) -> object:
        """Return the next value, and move past it."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._extend():
                    raise
                continue
            if end > len(self._text) - _LONGEST_TORN and self._extend():
                continue
            self._move(end)
            return value

    def _move(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def _extend(self) -> bool:
        """Double the text in memory, so long values are rarely parsed again; False at the end."""
        if self._ended:
            return False
        held = self._text[self._at :]
        if len(held) > MOST_LINE_BYTES:
            raise ValueError(f"a value is longer than {MOST_LINE_BYTES >> 20} MiB")
        piece = self._file.read(max(CHUNK, len(held)))
        self._ended = not piece
        self._text, self._at = held + self._decoder.decode(piece, self._ended), 0
        return True


def _find_value(text: _BufferedText, key: str) -> bool:
    """Move to the value of a key of the outermost object; return whether the key exists."""
    if text.peek() != "{":
        return False
    text.take("{")
    while text.peek() == '"':
        name = text.read_value()
        text.take(":")
        if name == key:
            return True
        text.read_value()
        if text.peek() == ",":
            text.take(",")
    return False


def _iter_list(text: _BufferedText) -> Iterator[JsonElement]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    while True:
        text.peek()
        line = text.line
        yield JsonElement(line, text.read_value())
        if text.peek() == "]":
            text.take("]")
            return
        text.take(",")

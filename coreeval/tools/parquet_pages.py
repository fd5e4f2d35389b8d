"""The headers of a Parquet file's pages, read before a page is unpacked.

Arrow reserves memory by the header of a page, whatever the footer says. A header is a struct in
Thrift's compact protocol.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

MOST_UNPACKED_RATIO: Final = 100
"""The number of times its size that a file's pages may unpack to."""
ALLOWED_PAGE_BYTES: Final = 64 << 20
"""The number of bytes that the pages of a file of any size may unpack to: 64 MiB."""

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DETAILS: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
"""The field of a page header with the number of values and the encoding, by the page's type."""
_VALUES: Final = 1
"""The field with the number of values inside it."""
_ENCODING: Final = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
"""The field with the encoding inside it."""
_NOT_READ: Final = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
"""Encodings in which a page says once more how many texts it has: Arrow reserves memory by this
number, whatever the header says."""
_BOOLEANS, _INTEGERS, _LISTS = (1, 2), (4, 5, 6), (9, 10)
_I32, _TEXT, _MAP, _STRUCT = 5, 8, 11, 12
_FIXED: Final = {1: 0, 2: 0, 3: 1, 7: 8}
"""The bytes of a value by its Thrift type: true, false, byte and double."""
_FIRST_READ, _MOST_HEADER = 1 << 10, 16 << 20
"""Arrow reads no header of more than 16 MiB either."""
_MOST_DEPTH: Final = 16
_MOST_EMPTY_PAGES: Final = 1_000
"""The most pages without values in a column chunk; usual programs write one, the dictionary."""


@dataclass(frozen=True)
class Column:
    """The values of a column in one row group, as its page headers declare them."""

    group: int
    index: int
    values: int


class _Incomplete(ValueError):
    """The header is longer than the bytes read."""


def read_pages(path: Path, metadata: Any, columns: list[int]) -> Iterator[Column]:  # noqa: ANN401
    """Yield the number of values of each column in each row group; no page is unpacked.

    Args:
        path: The file.
        metadata: The file's metadata as pyarrow's `FileMetaData`.
        columns: The indices of the columns that will be read.

    Raises:
        OSError: the pages unpack to many more bytes than the file has, a page has an encoding that
            is not read, or its header is damaged.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        most = max(ALLOWED_PAGE_BYTES, MOST_UNPACKED_RATIO * size)
        unpacked = walked = 0
        for group in range(metadata.num_row_groups if columns else 0):
            chunks = metadata.row_group(group)
            for index in columns:
                chunk, found = chunks.column(index), 0
                try:
                    for page in _pages_of(file, chunk):
                        if page.encoding in _NOT_READ:
                            raise OSError(_describe_encoding(chunk, page.encoding))
                        found += page.values if page.is_data else 0
                        unpacked += page.unpacked
                        walked += page.length
                        if unpacked > most:
                            raise OSError(_describe_excess(most, size))
                        if walked > size:
                            raise ValueError("pages overlap")
                except ValueError as error:
                    raise OSError(
                        f"a page of the column {_name_of(chunk)!r} is damaged ({error}); get the "
                        "file again"
                    ) from None
                yield Column(group, index, found)


def _describe_excess(most: int, size: int) -> str:
    return (
        f"its {size:,} bytes unpack to more than {most >> 20} MiB; "
        "write it again with a dictionary or without compression"
    )


def _describe_encoding(chunk: Any, encoding: int) -> str:  # noqa: ANN401 - pyarrow has no types
    return (
        f"the column {_name_of(chunk)!r} has the encoding {_NOT_READ[encoding]}, which is not "
        "read; write the file again with a plain or dictionary encoding (in DuckDB: "
        "PARQUET_VERSION V1)"
    )


def _name_of(chunk: Any) -> str:  # noqa: ANN401 - pyarrow has no types
    return str(chunk.path_in_schema)[:100]


@dataclass(frozen=True)
class _Page:
    length: int
    unpacked: int
    values: int
    encoding: int
    is_data: bool


def _pages_of(file: BinaryIO, chunk: Any) -> Iterator[_Page]:  # noqa: ANN401
    """Yield the pages of a column chunk that Arrow reads: until they have the footer's values."""
    place = chunk.data_page_offset
    if 0 < (chunk.dictionary_page_offset or 0) < place:
        place = chunk.dictionary_page_offset
    end, seen, empty = place + chunk.total_compressed_size, 0, 0
    if place < 0:
        raise ValueError("its place is negative")
    while seen < chunk.num_values:
        if place >= end:
            raise ValueError("it has fewer values than the footer says")
        page = _read_page(file, place)
        place += page.length
        values = page.values if page.is_data else 0
        seen, empty = seen + values, empty + (not values)
        if empty > _MOST_EMPTY_PAGES:
            raise ValueError(f"it has more than {_MOST_EMPTY_PAGES:,} pages without values")
        yield page


def _read_page(file: BinaryIO, place: int) -> _Page:
    length = _FIRST_READ
    while True:
        file.seek(place)
        start = file.read(length)
        try:
            return _Header(start).page()
        except _Incomplete:
            if len(start) < length or length >= _MOST_HEADER:
                raise ValueError("its header has no end") from None
            length *= 2


class _Header:
    """A page header, read strictly: what Thrift's own reader would skip or cut is refused."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def page(self) -> _Page:
        numbers, details = dict[int, int](), dict[int, dict[int, int]]()
        for field, kind in self._fields():
            if field in (1, 2, 3):
                numbers[field] = self._i32(kind)
            elif field in _DETAILS.values():
                details[field] = self._details(kind)
            else:
                self._skip(kind, _MOST_DEPTH)
        return self._check(numbers, details)

    def _check(self, numbers: dict[int, int], details: dict[int, dict[int, int]]) -> _Page:
        if len(numbers) < 3:
            raise ValueError("its header has no type or size")
        kind, unpacked = numbers[1], max(numbers[2], numbers[3])
        values, encoding = 0, 0
        if kind in _DETAILS:
            known = details.get(_DETAILS[kind], {})
            if not {_VALUES, _ENCODING[kind]} <= known.keys():
                raise ValueError("its header has no number of values or no encoding")
            values, encoding = known[_VALUES], known[_ENCODING[kind]]
        if min(numbers[2], numbers[3], values) < 0:
            raise ValueError("its header has a negative number")
        if kind == _DICTIONARY and values > unpacked:
            raise ValueError("its dictionary has more values than bytes")
        return _Page(self._at + numbers[3], unpacked, values, encoding, kind in (_DATA, _DATA_V2))

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads the value."""
        field, known = 0, set[int]()
        while first := self._byte():
            step, kind = first >> 4, first & 15
            field = field + step if step else self._signed()
            if field in known or not 0 < field < 1 << 15:
                raise ValueError("its header repeats a field")
            known.add(field)
            yield field, kind

    def _details(self, kind: int) -> dict[int, int]:
        """Return the numbers in the struct with the details of a page, by field."""
        if kind != _STRUCT:
            raise ValueError("its header has a field of another type")
        numbers = dict[int, int]()
        for field, inner in self._fields():
            if field == _VALUES or inner == _I32:
                numbers[field] = self._i32(inner)
            else:
                self._skip(inner, _MOST_DEPTH)
        return numbers

    def _i32(self, kind: int) -> int:
        if kind != _I32:
            raise ValueError("its header has a field of another type")
        number = self._signed()
        if not -(1 << 31) <= number < 1 << 31:
            raise ValueError("its header has a number of more than 32 bits")
        return number

    def _skip(self, kind: int, depth: int) -> None:
        if not depth:
            raise ValueError("its header is nested too deeply")
        if kind in _FIXED:
            self._skip_bytes(_FIXED[kind])
        elif kind in _INTEGERS:
            self._varint()
        elif kind == _TEXT:
            self._skip_bytes(self._varint())
        else:
            self._skip_nested(kind, depth)

    def _skip_nested(self, kind: int, depth: int) -> None:
        if kind in _LISTS:
            first = self._byte()
            count = self._varint() if first >> 4 == 15 else first >> 4
            self._skip_elements(count, (first & 15,), depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            self._skip_elements(count, (kinds >> 4, kinds & 15), depth)
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth - 1)
        else:
            raise ValueError("its header has an unknown type")

    def _skip_elements(self, count: int, kinds: tuple[int, ...], depth: int) -> None:
        for _ in range(count):
            for kind in kinds:
                if kind in _BOOLEANS:  # a byte in a list or map, and no byte in a struct
                    self._skip_bytes(1)
                else:
                    self._skip(kind, depth - 1)

    def _skip_bytes(self, count: int) -> None:
        self._at += count
        if self._at > len(self._content):
            raise _Incomplete

    def _byte(self) -> int:
        self._skip_bytes(1)
        return self._content[self._at - 1]

    def _signed(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("its header has a number without end")

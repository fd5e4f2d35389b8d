"""Splits, counts and locates the names and lists of GKG rows by column, without loops."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from coreeval.tools.gdelt.page_text import without_unseen
from coreeval.tools.gdelt.rows import PROMINENT_MENTIONS, PROMINENT_OFFSET

if TYPE_CHECKING:
    from coreeval.schema import EntityType


Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
END, HASH, COMMA = b";#,"
OFFSET_DIGITS = 9
"""The most digits of an offset, more than any text needs; the digits after them are dropped."""


@dataclass(frozen=True, slots=True)
class NameMentions:
    """Mentions of names in some rows, each with its row and its offset in the page."""

    row: Ints
    name: Any
    at: Ints


@dataclass(frozen=True, slots=True)
class ListColumn:
    """The concatenated lists of some rows."""

    text: bytes
    """The items in UTF-8, each followed by a semicolon."""
    ends: Ints
    """The position of the last semicolon of each row."""

    def items(self) -> tuple[Ints, Any]:
        """Return the row of each item, and the items as Arrow strings with their semicolons."""
        end = np.flatnonzero(self._bytes() == END)
        bounds = pa.py_buffer(np.concatenate([[0], end + 1]).astype(np.int32))
        buffers = [None, bounds, pa.py_buffer(self.text)]
        return self._rows(end), pa.Array.from_buffers(pa.string(), len(end), buffers)

    def split_names(self) -> NameMentions:
        """Split `Name,offset;Name,offset`."""
        end, marks, last = self._find_marks(COMMA)
        start, mark = (
            _starts_after(end),
            marks[last - 1],
        )  # from another item, if this one has none
        return self._mentions(start, mark, mark, end, (mark >= start) & (mark < end))

    def split_places(self) -> NameMentions:
        """Split `type#City, State, Country#…#offset;…` and keep the first part of each name."""
        end, marks, last = self._find_marks(HASH)
        first = _starts_after(last)
        name = marks[first] + 1
        commas = np.append(np.flatnonzero(self._bytes() == COMMA), len(self.text))
        stop = np.minimum(marks[np.minimum(first + 1, last)], commas[commas.searchsorted(name)])
        return self._mentions(name, stop, marks[last - 1], end, last - first >= 2)

    def _bytes(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.text, np.uint8)

    def _rows(self, end: Ints) -> Ints:
        counts = np.diff(end.searchsorted(self.ends), prepend=-1)
        return np.repeat(np.arange(len(counts)), counts)

    def _find_marks(self, mark: int) -> tuple[Ints, Ints, Ints]:
        """Return the items' ends, all marks and ends, and which of these are ends."""
        text = self._bytes()
        marks = np.flatnonzero((text == mark) | (text == END))
        last = np.flatnonzero(text[marks] == END)
        return marks[last], marks, last

    def _mentions(
        self, name: Ints, stop: Ints, mark: Ints, end: Ints, whole: Flags
    ) -> NameMentions:
        """Return the mentions of the items that have both a name and a number after the mark."""
        kept = np.flatnonzero(whole)
        offsets = self._texts(mark[kept] + 1, end[kept])
        numbers = pc.ascii_is_decimal(offsets)
        if not pc.all(numbers).as_py():
            kept, offsets = kept[numbers.to_numpy(zero_copy_only=False)], offsets.filter(numbers)
        if (end[kept] - mark[kept]).max(initial=0) > OFFSET_DIGITS + 1:
            offsets = pc.utf8_slice_codeunits(offsets, 0, OFFSET_DIGITS)
        at = pc.cast(offsets, pa.int64()).to_numpy()
        return NameMentions(self._rows(end)[kept], self._texts(name[kept], stop[kept]), at)

    def _texts(self, start: Ints, end: Ints) -> Any:  # noqa: ANN401 - Arrow has no types
        """Return the texts between ascending positions: every second interval between them."""
        bounds = np.stack([start, end], axis=1).astype(np.int32)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.text)]
        texts = pa.Array.from_buffers(pa.string(), max(bounds.size - 1, 0), buffers)
        return texts.take(pa.array(np.arange(0, bounds.size, 2, dtype=np.int32)))


def _starts_after(ends: Ints) -> Ints:
    """Return the start of each interval, which is after the end of the previous one."""
    return np.concatenate([[0], ends[:-1] + 1])


def join_lists(values: Sequence[bytes]) -> ListColumn:
    """Concatenate the lists of some rows; invalid bytes become replacement characters.

    The result must be smaller than 2 GB: Arrow counts the bytes of a column in 31 bits.
    """
    text = b";".join([*values, b""])
    try:
        text.decode()
    except UnicodeDecodeError:
        return join_lists([value.decode("utf-8", "replace").encode() for value in values])
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return ListColumn(text, np.cumsum(lengths + 1) - 1)


MOST_NAMES, MOST_THEMES = 200, 300
"""The most names and themes of a page that are kept, the first ones; real pages have up to 32 and
106 (research: gdelt §2)."""
LONGEST_NAME, LONGEST_THEME = 200, 100
"""The most characters of a name and a theme; longer ones are left out."""
TYPES: tuple["EntityType", ...] = ("person", "organisation", "place", "other")
"""The types of names, in order of precedence if several lists contain a name."""
MOST_COUNTED = 2**15 - 1
ENTITY = pa.struct(
    [("name", pa.string()), ("type", pa.string()), ("at", pa.int32()), ("n", pa.int16())]
)


def find_prominent_names(rows: int, by_type: Sequence[NameMentions]) -> Any:  # noqa: ANN401 - Arrow has no types
    """Return each row's distinct names that occur early in the page or repeatedly.

    There are at most `MOST_NAMES`: a row of some megabytes could name a million.
    """
    spelled = pa.concat_arrays([each.name for each in by_type]).dictionary_encode()
    names, name_of = _distinct_names(spelled.dictionary)
    name = name_of[spelled.indices.to_numpy()]
    row, at = (np.concatenate([getattr(each, part) for each in by_type]) for part in ("row", "at"))
    kind = np.repeat(np.arange(len(by_type)), [len(each.row) for each in by_type])
    kept = np.flatnonzero(name >= 0)
    grouped = _group_mentions(row[kept], kind[kept], name[kept], at[kept])
    return _to_lists(rows, names, grouped.choose_prominent(_fold_names(names)))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Mentions of one name in one list of one row, grouped at the position of the first."""

    row: Ints
    kind: Ints
    name: Ints
    at: Ints
    """The offset of the first mention."""
    n: Ints

    def choose_prominent(self, fold_of: Ints) -> "_Groups":
        """Return the prominent groups; of those in a row that differ only in case, the first."""
        prominent = (self.at < PROMINENT_OFFSET) | (self.n >= PROMINENT_MENTIONS)
        places = np.flatnonzero((self.n > 0) & prominent)
        names = self.row[places] * (len(fold_of) + 1) + fold_of[self.name[places]]
        first = places[_firsts(names)]
        ordered = first[np.argsort(self.row[first], kind="stable")]
        return self._pick(ordered[_ranks(self.row[ordered]) < MOST_NAMES])

    def _pick(self, places: Ints) -> "_Groups":
        columns = (self.row, self.kind, self.name, self.at, self.n)
        return _Groups(*(column[places] for column in columns))


def _group_mentions(row: Ints, kind: Ints, name: Ints, at: Ints) -> _Groups:
    """Group mentions by row, list and name; all but the first of a group have `n` 0."""
    key = (row * len(TYPES) + kind) * (int(name.max(initial=0)) + 1) + name
    order = np.argsort(key, kind="stable")
    starts = _starts(key[order])
    first, n, earliest = order[starts], np.zeros_like(at), at.copy()
    n[first] = np.diff(starts, append=len(order))
    earliest[first] = np.minimum.reduceat(at[order], starts) if len(starts) else 0
    return _Groups(row, kind, name, earliest, n)


def _distinct_names(spelled: Any) -> tuple[Any, Ints]:  # noqa: ANN401
    """Return the distinct names of spellings, and the index of each one's name, -1 for none."""
    names = _strip_names(spelled)
    if names is spelled:
        return spelled, np.arange(len(spelled))
    coded = names.dictionary_encode()
    return coded.dictionary, coded.indices.fill_null(-1).to_numpy().astype(np.int64)


def _strip_names(names: Any) -> Any:  # noqa: ANN401
    """Strip white space and hidden characters from names; the empty and the overlong are null."""
    long = pc.greater(pc.binary_length(names), LONGEST_NAME)
    spaced = pc.or_(pc.starts_with(names, " "), pc.ends_with(names, " "))
    plain = pc.and_not(pc.and_(pc.ascii_is_printable(names), pc.not_equal(names, "")), spaced)
    plain = pc.and_not(plain, long)
    return _correct_names(names, pc.invert(plain), _strip_name)


def _strip_name(spelling: str) -> str | None:
    name = spelling.strip()
    name = name if name.isprintable() else without_unseen(name)
    return name if 0 < len(name) <= LONGEST_NAME else None


def _fold_names(names: Any) -> Ints:  # noqa: ANN401
    """Return a number for each name, the same for names that differ only in case."""
    beyond = pc.invert(pc.string_is_ascii(names))
    folded = _correct_names(pc.ascii_lower(names), beyond, str.casefold)
    codes = folded.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.int64)


def _correct_names(names: Any, odd: Any, correct: Callable[[str], str | None]) -> Any:  # noqa: ANN401
    """Correct the irregular names one by one; most files have none."""
    if not pc.any(odd).as_py():
        return names
    corrected = [correct(name) for name in names.filter(odd).to_pylist()]
    return pc.replace_with_mask(names, odd, pa.array(corrected, pa.string()))


def _to_lists(rows: int, names: Any, chosen: _Groups) -> Any:  # noqa: ANN401
    entities = pa.StructArray.from_arrays(
        [
            names.take(pa.array(chosen.name)),
            pa.array(TYPES, pa.string()).take(pa.array(chosen.kind)),
            pa.array(chosen.at, pa.int32()),
            pa.array(np.minimum(chosen.n, MOST_COUNTED), pa.int16()),
        ],
        fields=list(ENTITY),
    )
    return pa.ListArray.from_arrays(_offsets(rows, chosen.row), entities)


def split_distinct_items(column: ListColumn) -> Any:  # noqa: ANN401
    """Split `A;B;A;` into lists of the distinct items in order, at most `MOST_THEMES`."""
    row, items = column.items()
    coded = items.dictionary_encode()
    distinct = pc.utf8_slice_codeunits(coded.dictionary, 0, -1)
    code = coded.indices.to_numpy()
    first = _firsts(row * (len(distinct) + 1) + code)
    lengths = pc.utf8_length(distinct).to_numpy(zero_copy_only=False)
    first = first[((lengths > 0) & (lengths <= LONGEST_THEME))[code[first]]]
    first = first[_ranks(row[first]) < MOST_THEMES]
    return pa.ListArray.from_arrays(
        _offsets(len(column.ends), row[first]), distinct.take(pa.array(code[first]))
    )


def _offsets(rows: int, owner: Ints) -> Any:  # noqa: ANN401
    counts = np.bincount(owner, minlength=rows)
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _firsts(keys: Ints) -> Ints:
    """Return the index of each key's first occurrence, in ascending order."""
    order = np.argsort(keys, kind="stable")
    first = np.zeros(len(keys), bool)
    first[order[_starts(keys[order])]] = True
    return np.flatnonzero(first)


def _ranks(ordered: Ints) -> Ints:
    """Return the place of each value among its equals, from 0."""
    return np.arange(len(ordered)) - ordered.searchsorted(ordered)


def _starts(ordered: Ints) -> Ints:
    return np.flatnonzero(np.diff(ordered, prepend=-1))

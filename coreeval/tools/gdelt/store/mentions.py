"""The names of GKG rows, by column: split, counted and placed without a loop over mentions.

Only odd names are worked on one by one; Arrow and numpy do the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from coreeval.tools.gdelt.gkg import PROMINENT_MENTIONS, PROMINENT_OFFSET
from coreeval.tools.gdelt.untrusted import without_unseen

if TYPE_CHECKING:
    from coreeval.schema import EntityType

Ints = npt.NDArray[np.int64]
TYPES: tuple["EntityType", ...] = ("person", "organisation", "place", "other")
"""In order: a name that several lists have is of the first one's type."""
OFFSET_DIGITS = 9
"""More digits than any text has characters; what follows them is dropped."""
MOST_COUNTED = 2**15 - 1
ENTITY = pa.struct(
    [("name", pa.string()), ("type", pa.string()), ("at", pa.int32()), ("n", pa.int16())]
)


@dataclass(frozen=True, slots=True)
class Mentions:
    """Mentions of names in some rows, each with its row and its offset in the page."""

    row: Any
    name: Any
    at: Any


def text_column(values: Sequence[bytes]) -> Any:  # noqa: ANN401 - Arrow has no types
    """Return bytes as an Arrow column of strings; bad bytes become replacement characters."""
    column = pa.array(values, pa.binary())
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in values], pa.string())


def named(column: Any) -> Mentions:  # noqa: ANN401
    """Split `Name,offset;Name,offset`."""
    row, items = _items(column)
    return _mentions(row, items, items, ",")


def placed(column: Any) -> Mentions:  # noqa: ANN401
    """Split `type#City, State, Country#…#offset;…` and keep the first part of each name."""
    row, blocks = _items(column)
    parts = pc.split_pattern(blocks, "#", max_splits=2)
    whole = pc.equal(pc.list_value_length(parts), 3)
    row, blocks, parts = _where(whole, row, blocks, parts)
    names = pc.list_element(pc.split_pattern(pc.list_element(parts, 1), ",", max_splits=1), 0)
    return _mentions(row, blocks, names, "#")


def _items(column: Any) -> tuple[Any, Any]:  # noqa: ANN401
    split = pc.split_pattern(column, ";")
    return pc.list_parent_indices(split), pc.list_flatten(split)


def _mentions(row: Any, items: Any, names: Any, mark: str) -> Mentions:  # noqa: ANN401
    """Take the offset after the last mark; where `names` are the items, the name before it."""
    pairs = pc.split_pattern(items, mark, max_splits=1, reverse=True)
    both = pc.equal(pc.list_value_length(pairs), 2)
    row, pairs, names = _where(both, row, pairs, names)
    offsets = pc.list_element(pairs, 1)
    numbers = pc.ascii_is_decimal(offsets)
    row, pairs, names, offsets = _where(numbers, row, pairs, names, offsets)
    at = pc.cast(pc.utf8_slice_codeunits(offsets, 0, OFFSET_DIGITS), pa.int64())
    return Mentions(row, pc.list_element(pairs, 0) if mark == "," else names, at)


def _where(mask: Any, *columns: Any) -> Sequence[Any]:  # noqa: ANN401
    """Return the columns where a mask is true, as they are where it is true everywhere."""
    return columns if pc.all(mask).as_py() else [pc.filter(each, mask) for each in columns]


def prominent(rows: int, by_type: Sequence[Mentions]) -> Any:  # noqa: ANN401
    """Return each row's names that stand early in the page or are repeated, each once.

    Args:
        rows: How many rows there are.
        by_type: The mentions of each of `TYPES`.
    """
    names, name = _names(pa.chunked_array([each.name for each in by_type], pa.string()))
    row, at = (
        np.concatenate([getattr(each, part).to_numpy(zero_copy_only=False) for each in by_type])
        .astype(np.int64) for part in ("row", "at")
    )  # fmt: skip
    kind = np.repeat(np.arange(len(by_type)), [len(each.row) for each in by_type])
    kept = name >= 0
    groups = _grouped(row[kept], kind[kept], name[kept], at[kept])
    return _lists(rows, names, groups.chosen(_folds(names)))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Mentions of one name in one list of one row, put together."""

    row: Ints
    kind: Ints
    name: Ints
    at: Ints
    """The first offset."""
    n: Ints

    def chosen(self, fold_of: Ints) -> "_Groups":
        """Return the prominent ones, and of those that differ in case only the first of a row."""
        prominent = (self.at < PROMINENT_OFFSET) | (self.n >= PROMINENT_MENTIONS)
        good = self._pick(np.flatnonzero(prominent))
        key = good.row * (len(fold_of) + 1) + fold_of[good.name]
        return good._pick(np.sort(np.unique(key, return_index=True)[1]))

    def _pick(self, places: Ints) -> "_Groups":
        columns = (self.row, self.kind, self.name, self.at, self.n)
        return _Groups(*(column[places] for column in columns))


def _grouped(row: Ints, kind: Ints, name: Ints, at: Ints) -> _Groups:
    """Group mentions by row, list and name, in the order of their first occurrence."""
    key = (row * len(TYPES) + kind) * (int(name.max(initial=0)) + 1) + name
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = order[starts]
    count = np.diff(starts, append=len(order))
    earliest = np.minimum.reduceat(at[order], starts) if len(starts) else at[:0]
    place = np.lexsort((first, row[first]))
    first = first[place]
    return _Groups(row[first], kind[first], name[first], earliest[place], count[place])


def _names(mentions: Any) -> tuple[Any, Ints]:  # noqa: ANN401
    """Return the distinct names, and the place of each mention's name among them, -1 for none."""
    spelled = mentions.combine_chunks().dictionary_encode()
    coded = _stripped(spelled.dictionary).dictionary_encode()
    name_of = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary, name_of[spelled.indices.to_numpy(zero_copy_only=False)]


def _stripped(names: Any) -> Any:  # noqa: ANN401
    """Take away white space around names and what is hidden in them; null where nothing is left."""
    spaced = pc.or_(pc.starts_with(names, " "), pc.ends_with(names, " "))
    plain = pc.and_not(pc.and_(pc.ascii_is_printable(names), pc.not_equal(names, "")), spaced)
    return _corrected(names, pc.invert(plain), _stripped_name)


def _stripped_name(spelling: str) -> str | None:
    name = spelling.strip()
    return (name if name.isprintable() else without_unseen(name)) or None


def _folds(names: Any) -> Ints:  # noqa: ANN401
    """Return a number for each name that is the same where they differ in case only."""
    beyond = pc.invert(pc.string_is_ascii(names))
    folded = _corrected(pc.ascii_lower(names), beyond, str.casefold)
    codes = folded.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.int64)


def _corrected(names: Any, odd: Any, correct: Callable[[str], str | None]) -> Any:  # noqa: ANN401
    """Correct the odd names one by one; most files have few."""
    corrected = [correct(name) for name in names.filter(odd).to_pylist()]
    return pc.replace_with_mask(names, odd, pa.array(corrected, pa.string()))


def _lists(rows: int, names: Any, chosen: _Groups) -> Any:  # noqa: ANN401
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


def distinct_items(column: Any) -> Any:  # noqa: ANN401
    """Split `A;B;A;` into lists of the distinct items, in their order."""
    row, items = _items(column)
    coded = items.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    kept = np.flatnonzero(pc.binary_length(items).to_numpy(zero_copy_only=False) > 0)
    owner = row.to_numpy(zero_copy_only=False).astype(np.int64)
    key = owner[kept] * (len(coded.dictionary) + 1) + codes[kept]
    first = kept[np.sort(np.unique(key, return_index=True)[1])]
    offsets = _offsets(len(column), owner[first])
    return pa.ListArray.from_arrays(offsets, items.take(pa.array(first)))


def _offsets(rows: int, owner: Ints) -> Any:  # noqa: ANN401
    counts = np.bincount(owner, minlength=rows)
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())

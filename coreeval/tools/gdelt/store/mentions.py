"""The names of GKG rows, by column: split, counted and placed without a loop over mentions.

Only odd names are worked on one by one; Arrow and numpy do the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from coreeval.tools.gdelt.gkg import PROMINENT_MENTIONS, PROMINENT_OFFSET
from coreeval.tools.gdelt.store.lists import Column, Ints, Mentions
from coreeval.tools.gdelt.untrusted import without_unseen

if TYPE_CHECKING:
    from coreeval.schema import EntityType

TYPES: tuple["EntityType", ...] = ("person", "organisation", "place", "other")
"""In order: a name that several lists have is of the first one's type."""
MOST_COUNTED = 2**15 - 1
ENTITY = pa.struct(
    [("name", pa.string()), ("type", pa.string()), ("at", pa.int32()), ("n", pa.int16())]
)


def prominent(rows: int, by_type: Sequence[Mentions]) -> Any:  # noqa: ANN401 - Arrow has no types
    """Return each row's names that stand early in the page or are repeated, each once.

    Args:
        rows: How many rows there are.
        by_type: The mentions of each of `TYPES`.
    """
    spelled = pa.concat_arrays([each.name for each in by_type]).dictionary_encode()
    names, name_of = _names(spelled.dictionary)
    name = name_of[spelled.indices.to_numpy()]
    row, at = (np.concatenate([getattr(each, part) for each in by_type]) for part in ("row", "at"))
    kind = np.repeat(np.arange(len(by_type)), [len(each.row) for each in by_type])
    kept = np.flatnonzero(name >= 0)
    grouped = _grouped(row[kept], kind[kept], name[kept], at[kept])
    return _lists(rows, names, grouped.chosen(_folds(names)))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Mentions of one name in one list of one row, put together at the place of the first one."""

    row: Ints
    kind: Ints
    name: Ints
    at: Ints
    """The first offset."""
    n: Ints

    def chosen(self, fold_of: Ints) -> "_Groups":
        """Return the prominent ones, and of those that differ in case only the first of a row."""
        prominent = (self.at < PROMINENT_OFFSET) | (self.n >= PROMINENT_MENTIONS)
        places = np.flatnonzero((self.n > 0) & prominent)
        names = self.row[places] * (len(fold_of) + 1) + fold_of[self.name[places]]
        first = places[_firsts(names)]
        return self._pick(first[np.argsort(self.row[first], kind="stable")])

    def _pick(self, places: Ints) -> "_Groups":
        columns = (self.row, self.kind, self.name, self.at, self.n)
        return _Groups(*(column[places] for column in columns))


def _grouped(row: Ints, kind: Ints, name: Ints, at: Ints) -> _Groups:
    """Group mentions by row, list and name; where one is not the first, its `n` is 0."""
    key = (row * len(TYPES) + kind) * (int(name.max(initial=0)) + 1) + name
    order = np.argsort(key, kind="stable")
    starts = _starts(key[order])
    first, n, earliest = order[starts], np.zeros_like(at), at.copy()
    n[first] = np.diff(starts, append=len(order))
    earliest[first] = np.minimum.reduceat(at[order], starts) if len(starts) else 0
    return _Groups(row, kind, name, earliest, n)


def _names(spelled: Any) -> tuple[Any, Ints]:  # noqa: ANN401
    """Return the distinct names of spellings, and the place of each one's, -1 for none."""
    names = _stripped(spelled)
    if names is spelled:
        return spelled, np.arange(len(spelled))
    coded = names.dictionary_encode()
    return coded.dictionary, coded.indices.fill_null(-1).to_numpy().astype(np.int64)


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
    """Correct the odd names one by one; most files have none."""
    if not pc.any(odd).as_py():
        return names
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


def distinct_items(column: Column) -> Any:  # noqa: ANN401
    """Split `A;B;A;` into lists of the distinct items, in their order."""
    row, items = column.items()
    coded = items.dictionary_encode()
    distinct = pc.utf8_slice_codeunits(coded.dictionary, 0, -1)
    code = coded.indices.to_numpy()
    first = _firsts(row * (len(distinct) + 1) + code)
    full = pc.not_equal(distinct, "").to_numpy(zero_copy_only=False)
    first = first[full[code[first]]]
    return pa.ListArray.from_arrays(
        _offsets(len(column.ends), row[first]), distinct.take(pa.array(code[first]))
    )


def _offsets(rows: int, owner: Ints) -> Any:  # noqa: ANN401
    counts = np.bincount(owner, minlength=rows)
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _firsts(keys: Ints) -> Ints:
    """Return where each key stands first, in ascending order."""
    order = np.argsort(keys, kind="stable")
    first = np.zeros(len(keys), bool)
    first[order[_starts(keys[order])]] = True
    return np.flatnonzero(first)


def _starts(ordered: Ints) -> Ints:
    return np.flatnonzero(np.diff(ordered, prepend=-1))

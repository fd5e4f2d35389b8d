"""Numbers of 16 and 32 bits as their shortest decimal, as the person who wrote them knows them.

The float32 of 1.1 is 1.100000023841858 as a Python float: another text, and another number.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

Shorten = Callable[[Any], object]
_NARROW: Final = {"halffloat": np.float16, "float": np.float32}
"""Arrow's types, by name."""
_OF_SPARSE: Final = "subtype"
"""The attribute of pandas' sparse dtype with the dtype of its numbers."""
_OF_ARROW: Final = "pyarrow_dtype"
"""The attribute of pandas' dtype of Arrow arrays with the type of their values."""
_OF_CATEGORIES: Final = "categories"
"""The attribute of pandas' categorical dtype with its values."""


def is_narrow(kind: Any) -> bool:  # noqa: ANN401 - a dtype of NumPy or pandas
    """Return whether a dtype is of floating-point numbers of less than 64 bits, also categories."""
    kind = getattr(getattr(kind, _OF_CATEGORIES, None), "dtype", kind)
    if getattr(kind, "kind", "") != "f":
        return False
    return bool(getattr(kind, _OF_SPARSE, kind).itemsize < np.dtype(float).itemsize)


def list_arrow_rows(table: Any) -> list[dict[str, object]]:  # noqa: ANN401 - pyarrow has no types
    """Return the rows of a table or a batch as plain values, with short numbers."""
    return list(shorten_rows(table.to_pylist(), table.schema))


def shorten_rows(
    rows: Iterable[dict[str, object]],
    schema: Any,  # noqa: ANN401 - pyarrow has no types
) -> Iterator[dict[str, object]]:
    """Yield rows that were read from Arrow, with short numbers."""
    found = {field.name: change for field in schema if (change := find_shortener(field.type))}
    for row in rows:
        yield row | {name: change(row[name]) for name, change in found.items() if name in row}


def shorten_frame(frame: Any) -> Any:  # noqa: ANN401 - a frame of pandas
    """Return a frame with short numbers in place of those of 16 and 32 bits."""
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    changed = {place: short for place, column in enumerate(columns)
               if (short := _find_short(column)) is not None}  # fmt: skip
    frame = frame.copy() if changed else frame
    for place, column in changed.items():
        frame.isetitem(place, column)
    return frame


def _find_short(column: Any) -> Any:  # noqa: ANN401 - a series of pandas
    """Return a column with short numbers; None if it has no narrow ones."""
    if is_narrow(column.dtype):
        return shorten_column(column)
    kind = getattr(column.dtype, _OF_ARROW, None)
    if kind is not None and find_shortener(kind):
        return shorten_column(column)
    if column.dtype == object and any(map(_is_narrow_number, column)):
        return column.map(lambda value: float(str(value)) if _is_narrow_number(value) else value)
    return None


def _is_narrow_number(value: object) -> bool:
    return isinstance(value, np.floating) and is_narrow(value.dtype)


def shorten_column(column: Any) -> list[object]:  # noqa: ANN401 - a series of pandas
    """Return the numbers of a narrow column as short numbers."""
    import pyarrow as pa  # type: ignore[import-untyped]  # slow to import

    found = pa.array(column.sparse.to_dense() if hasattr(column.dtype, _OF_SPARSE) else column)
    change = find_shortener(found.type) or (lambda value: value)
    return [*map(change, found.to_pylist())]


def find_shortener(kind: Any) -> Shorten | None:  # noqa: ANN401 - pyarrow has no types
    """Return a function that shortens the plain values of an Arrow type; None if it has none."""
    import pyarrow as pa

    if narrow := _NARROW.get(str(kind)):
        return lambda value: None if value is None else float(str(narrow(value)))
    if pa.types.is_dictionary(kind):
        return find_shortener(kind.value_type)
    if pa.types.is_struct(kind):
        fields = {field.name: change for field in kind if (change := find_shortener(field.type))}
        return (lambda value: value and _change_fields(value, fields)) if fields else None
    if pa.types.is_map(kind):
        of_item = find_shortener(kind.item_type)
        return of_item and (lambda value: value and [(key, of_item(item)) for key, item in value])
    if pa.types.is_nested(kind) and hasattr(kind, "value_type"):  # the kinds of lists
        each_of = find_shortener(kind.value_type)
        return each_of and (lambda value: value and [*map(each_of, value)])
    return None


def _change_fields(value: Mapping[str, object], fields: Mapping[str, Shorten]) -> object:
    return {**value, **{name: change(value[name]) for name, change in fields.items()}}

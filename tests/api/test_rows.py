"""Rows in memory: lists of dicts, frames and Arrow tables give the same plain values."""

from collections.abc import Callable
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from coreeval.api.rows import Rows, list_rows, to_date_text, to_plain
from coreeval.errors import UsageError

ROWS: list[dict[str, object]] = [
    {"id": 1, "text": "a", "options": {"A": "x"}},
    {"id": 2, "text": None, "options": {"A": "x", "B": "y"}},
    {"id": None, "text": "c", "options": None},
]


class Stream:
    """A table of a library that CoreEval does not know, which speaks the Arrow C interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.Table.from_pylist(ROWS).__arrow_c_stream__(requested_schema)


MAKE: dict[str, Callable[[], Rows]] = {
    "list": lambda: ROWS,
    "generator": lambda: (row for row in ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "any library": Stream,
}


@pytest.mark.parametrize("kind", MAKE)
def test_all_kinds_of_rows_are_read_alike(kind: str) -> None:
    found = list_rows(MAKE[kind](), "pairs")
    assert found == ROWS
    assert [type(row["id"]) for row in found] == [int, int, type(None)]


NARROW = np.array([1.1, 1e-7], np.float32)
NARROW_KINDS: dict[str, Callable[[], Rows]] = {
    "numpy": lambda: [{"v": each, "l": NARROW[:1]} for each in NARROW],
    "half": lambda: [{"v": np.float16(1.1), "l": [np.float16(1.1)]}, {"v": 1e-7, "l": [1.1]}],
    "pandas": lambda: pd.DataFrame({"v": NARROW, "l": [NARROW[:1]] * 2}),
    "pandas, nullable": lambda: pd.DataFrame({"v": NARROW, "l": [[1.1]] * 2}).astype(
        {"v": "Float32"}
    ),
    "pandas, arrow": lambda: pd.DataFrame({"v": NARROW, "l": [[1.1]] * 2}).astype(
        {"v": "float[pyarrow]"}
    ),
    "pandas, sparse": lambda: pd.DataFrame({"v": pd.arrays.SparseArray(NARROW), "l": [[1.1]] * 2}),
    "pandas, sparse, 64 bits": lambda: pd.DataFrame(
        {"v": pd.arrays.SparseArray([1.1, 1e-7]), "l": [[1.1]] * 2}
    ),
    "pandas, objects": lambda: pd.DataFrame({"v": [*NARROW], "l": [[1.1]] * 2}, dtype=object),
    "pandas, categories": lambda: pd.DataFrame({"v": pd.Categorical(NARROW), "l": [[1.1]] * 2}),
    "arrow": lambda: pa.table({"v": NARROW, "l": [NARROW[:1]] * 2}),
    "arrow scalars": lambda: [{"v": each, "l": [1.1]} for each in pa.array(NARROW)],
}


@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_numbers_of_32_bits_keep_their_digits(kind: str) -> None:
    assert list_rows(NARROW_KINDS[kind](), "values") == [
        {"v": 1.1, "l": [1.1]},
        {"v": 1e-7, "l": [1.1]},
    ]


def test_a_frame_of_32_bits_is_left_as_it_is() -> None:
    frame = pd.DataFrame({"v": NARROW, "w": [None, np.nan]}).astype({"w": "float32"})
    assert list_rows(frame, "values") == [{"v": 1.1, "w": None}, {"v": 1e-7, "w": None}]
    assert [str(kind) for kind in frame.dtypes] == ["float32", "float32"]


def test_other_values_beside_numbers_of_32_bits_stay() -> None:
    frame = pd.DataFrame({"v": pd.Series([NARROW[0], "a", None, 3], dtype=object)})
    assert [row["v"] for row in list_rows(frame, "values")] == [1.1, "a", None, 3]
    assert type(frame["v"][0]) is np.float32


def test_an_index_of_dates_becomes_a_column() -> None:
    frame = pd.DataFrame({"value": [1.5]}, index=pd.to_datetime(["2020-03-01"]))
    [row] = list_rows(frame, "values", index="date")
    assert to_date_text(row["date"]) == "2020-03-01"
    [plain] = list_rows(frame, "values")
    assert plain == {"value": 1.5}


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (np.int64(3), 3),
        (np.float64("nan"), None),
        (float("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("2020-03-01"), "2020-03-01"),
        (np.datetime64("NaT"), None),
        (np.array(["a", "b"]), ["a", "b"]),
        ({"A": np.str_("x"), "B": None}, {"A": "x"}),
        (pa.scalar("x"), "x"),
        ("nan", "nan"),
        (True, True),
    ],
)
def test_values_become_plain(given: object, plain: object) -> None:
    found = to_plain(given)
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (date(2020, 3, 5), "2020-03-05"),
        (datetime(2020, 3, 5, 12), "2020-03-05"),
        (pd.Timestamp("2020-03-05"), "2020-03-05"),
        (pd.Period("2020Q1"), "2020Q1"),
        (2020, "2020"),
        ("March", "March"),
    ],
)
def test_dates_become_texts(given: object, text: str) -> None:
    assert to_date_text(given) == text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": 1}, "a single dict is not a list of rows"),
        ([1, 2], "a row is a int, not a dict"),
        (7, "a row is a int, not a dict"),
        ([{"id": 1}, None], "a row is a NoneType, not a dict"),
    ],
)
def test_what_is_no_row_is_refused(given: Rows, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        list_rows(given, "pairs")
    assert raised.value.where == "pairs" and "list of dicts" in raised.value.hint

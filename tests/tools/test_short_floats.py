"""The shortest decimals of numbers in Arrow's types of 16 and 32 bits."""

import math

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from coreeval.tools.short_floats import list_arrow_rows, shorten_frame

FLOAT = pa.float32()
SOME = pa.struct([("n", FLOAT), ("text", pa.string())])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FLOAT, 1.1),
        (FLOAT, None),
        (FLOAT, 3.4e38),
        (pa.float16(), 0.1),
        (pa.float64(), 1.100000023841858),
        (pa.list_(FLOAT), [1.1, None]),
        (pa.list_(FLOAT), []),
        (pa.large_list(FLOAT), [1.1]),
        (pa.list_(FLOAT, 2), [1.1, 2.2]),
        (pa.list_(pa.list_(FLOAT)), [[1.1], None]),
        (SOME, {"n": 1.1, "text": "1.1"}),
        (SOME, None),
        (pa.list_(SOME), [{"n": 1.1, "text": None}]),
        (pa.map_(pa.string(), FLOAT), [("a", 1.1)]),
        (pa.dictionary(pa.int8(), FLOAT), 1.1),
        (pa.string(), "1.1"),
    ],
)
def test_a_value_is_the_one_that_was_written(kind: pa.DataType, value: object) -> None:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array([value], plain)
    if plain is not kind:
        column = column.dictionary_encode()
    assert list_arrow_rows(pa.table({"id": [7], "v": column})) == [{"id": 7, "v": value}]


@pytest.mark.parametrize("kind", [FLOAT, pa.list_(FLOAT), pa.dictionary(pa.int32(), FLOAT)])
def test_a_frame_with_arrows_types_has_the_values_that_were_written(kind: pa.DataType) -> None:
    value = [1.1] if kind == pa.list_(FLOAT) else 1.1
    column = pa.array([value, None], kind if kind == pa.list_(FLOAT) else FLOAT)
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
    frame = pd.DataFrame({"v": pd.Series(column, dtype=pd.ArrowDtype(column.type))})
    assert shorten_frame(frame)["v"].tolist()[0] == value


def test_what_is_no_number_stays(recwarn: pytest.WarningsRecorder) -> None:
    table = pa.table({"v": pa.array([math.inf, -math.inf, math.nan], FLOAT)})
    high, low, none = (row["v"] for row in list_arrow_rows(table))
    assert (high, low) == (math.inf, -math.inf)
    assert isinstance(none, float) and math.isnan(none)
    assert not list(recwarn)

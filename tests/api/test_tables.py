"""Tables and results: what they hold, what they convert to, and how they read."""

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime

import pytest
from pydantic import JsonValue

from coreeval.api.tables import CellKind, Result, Row, Table
from coreeval.errors import UsageError

COLUMNS: dict[str, CellKind] = {
    "id": "text",
    "n": "integer",
    "share": "number",
    "done": "boolean",
    "day": "date",
    "at": "time",
    "labels": "texts",
}
ROWS = (
    ("a", 1, 0.25, True, date(2026, 3, 1), datetime(2026, 3, 1, 12, tzinfo=UTC), ("x", "y")),
    ("b", None, None, None, None, None, ()),
)
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\nnext line"


def test_it_holds_rows_and_columns() -> None:
    table = Table("samples", COLUMNS, ROWS)
    assert len(table) == 2
    assert table.shape == (2, 7)
    assert table[0] == dict(zip(COLUMNS, ROWS[0], strict=True))
    assert table[-1]["id"] == "b"
    assert table["n"] == (1, None)
    assert table[1:] == Table("samples", COLUMNS, ROWS[1:])
    assert list(table) == table.to_dicts()
    assert Table.from_dicts("samples", COLUMNS, table.to_dicts()) == table


def test_it_cannot_be_changed() -> None:
    table = Table("samples", {"id": "text"}, [["a"]])
    with pytest.raises(AttributeError):
        table.rows = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        table.columns["id"] = "integer"  # type: ignore[index]
    assert isinstance(table.rows[0], tuple)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row has 2 cells for 1 columns"):
        Table("samples", {"id": "text"}, [("a", "b")])


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="'name' is not a column; the columns are: id, n"):
        Table("samples", {"id": "text", "n": "integer"})["name"]


@pytest.mark.parametrize("rows", [ROWS, ()])
def test_an_arrow_table_keeps_types_and_title(rows: tuple[Row, ...]) -> None:
    made = Table("samples", COLUMNS, rows).to_arrow()
    found = {field.name: str(field.type) for field in made.schema}
    assert found == {
        "id": "string",
        "n": "int64",
        "share": "double",
        "done": "bool",
        "day": "date32[day]",
        "at": "timestamp[us, tz=UTC]",
        "labels": "list<item: string>",
    }
    assert made.schema.metadata == {b"title": b"samples"}
    assert made.num_rows == len(rows)
    assert [tuple(each["labels"]) for each in made.to_pylist()] == [row[-1] for row in rows]


def test_a_frame_has_the_same_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = Table("samples", COLUMNS, ROWS).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["share"][0] == 0.25


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        Table("samples", COLUMNS, ROWS).to_pandas()


def test_its_repr_shows_the_first_rows_on_a_line_each() -> None:
    table = Table("samples", {"id": "text", "n": "integer"}, [(HOSTILE, 1)] + [("b", 22)] * 11)
    lines = repr(table).splitlines()
    assert lines[0] == "samples: 12 rows, 2 columns"
    assert lines[1].split() == ["id", "n"]
    assert len(lines) == 1 + 1 + 10 + 1
    assert lines[-1] == "and 2 more rows"
    assert "\x1b" not in repr(table)
    assert max(map(len, lines)) < 60


def test_its_html_is_escaped_and_bounded() -> None:
    columns: dict[str, CellKind] = {f"c{number}": "text" for number in range(30)}
    table = Table(HOSTILE, columns, [[HOSTILE + "z" * 10_000] * 30] * 1000)
    made = table._repr_html_()
    assert "<script" not in made
    assert "&lt;script&gt;" in made
    assert "\x1b" not in made and "\u202e" not in made
    assert made.count("<tr>") == 1 + 20
    assert made.count("<th>") == 20
    assert "and 980 more rows and 10 more columns" in made
    assert len(made) < 20 * 20 * 300


def test_its_cells_read_as_people_write_them() -> None:
    line = repr(Table("samples", COLUMNS, ROWS)).splitlines()[2]
    assert line.split(maxsplit=5) == [
        *("a", "1", "0.25", "True", "2026-03-01"),
        "2026-03-01 12:00:00+00:00  x, y",
    ]


class Found(Result):
    """A result as the functions return them."""

    @property
    def document(self) -> Mapping[str, JsonValue]:
        return {"answer": 42}

    @property
    def summary(self) -> str:
        return f"found <b>one</b> {HOSTILE}"

    @property
    def table(self) -> Table:
        return Table("answers", {"answer": "integer"}, [[42]])


def test_a_result_shows_its_summary_and_its_table() -> None:
    found = Found()
    assert found.to_json() == '{\n  "answer": 42\n}'
    assert found.to_dicts() == [{"answer": 42}]
    assert found.to_arrow().to_pylist() == [{"answer": 42}]
    assert repr(found).splitlines()[1:] == ["answers: 1 row, 1 column", "  answer", "      42"]
    assert str(found) == repr(found)
    made = found._repr_html_()
    assert "<script" not in made and "<b>" not in made
    assert '<td class="n">42</td>' in made

"""Lines of a publisher's file, and answers that go on with them."""

from pathlib import Path

import pytest

from coreeval.evaluation.numleak.parsing import read_points
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.series.catalogue import read_series
from coreeval.evaluation.numleak.series.excerpt import find_excerpt, read_line_values
from tests.support.tides import TIDES, tides

FRENCH = (
    "Prose.\n\n,Mkt-RF,SMB\n192607,  2.96, -2.30\n192608,  2.64, -1.40\n192609,  0.36, -1.32\n"
    "192610, -3.24,  0.04\n192611, 99.99, -0.20\n192612,  2.62, -0.04\n\n Annual\n1927, 29.4, 1\n"
)
WIDE = "Year,Q1,Q2,Q3,Q4\n1990,1.0,2.0,3.0,4.0\n1991,5.0,,7.0,8.0\n1992,9.0,10.0,11.0,12.0\n"


def read(text: str, **changes: object) -> Series:
    definition = SeriesDefinition.model_validate({**TIDES, "notable": {}, **changes})
    return read_series(definition, text.encode(), origin="a test")


@pytest.fixture
def french() -> Series:
    source = {"path": "f.csv", "format": "french", "missing": ["99.99"]}
    return read(FRENCH, source=source, column="Mkt-RF")


@pytest.fixture
def wide() -> Series:
    return read(WIDE, source={"path": "w.csv", "format": "wide_csv"}, frequency="quarterly")


def month(text: str) -> Period:
    return Period.parse(text, "monthly")


def test_lines_stand_as_the_file_has_them(french: Series) -> None:
    excerpt = find_excerpt(french)
    assert excerpt is not None and excerpt.header == ",Mkt-RF,SMB"
    assert excerpt.lines[0].text == "192607,  2.96, -2.30"
    assert [line.whole for line in excerpt.lines] == [True] * 4 + [False, True]
    assert excerpt.place_of(month("1926-09")) == 2
    assert excerpt.place_of(month("1926-11")) is None
    assert excerpt.lines[1].fill({month("1926-08"): "1.23"}) == "192608,1.23,"


def test_a_line_may_hold_a_year(wide: Series) -> None:
    excerpt = find_excerpt(wide)
    assert excerpt is not None
    assert [len(line.places) for line in excerpt.lines] == [4, 3, 4]
    assert [line.whole for line in excerpt.lines] == [True, False, True]
    first = {period: str(at) for at, (period, _) in enumerate(excerpt.lines[0].places)}
    assert excerpt.lines[0].fill(first) == "1990,0,1,2,3"


@pytest.mark.parametrize("mark", [*"\v\f\x1c\x1d\x1e\x85\u2028\u2029"])
def test_only_a_line_feed_ends_a_line(mark: str) -> None:
    """Above the header and in a line, it shifts none of the lines below."""
    note = f"one{mark}two"
    rows = ["1926-07,1.0,", f"1926-08,2.0,{note}", "1926-09,3.0,", "1926-10,4.0,"]
    text = "\r\n".join([note, "date,tide,note", *rows, ""])
    excerpt = find_excerpt(read(text, column="tide"))
    assert excerpt is not None and excerpt.header == "date,tide,note"
    assert [line.text for line in excerpt.lines] == rows
    assert all(line.whole and line.places for line in excerpt.lines)


@pytest.mark.parametrize("note", ["one\ntwo", "one\ntwo\rthree"])
def test_a_row_of_several_lines_is_not_asked_about(note: str) -> None:
    text = f'date,tide,note\n1926-07,1.0,\n1926-08,2.0,"{note}"\n1926-09,3.0,\n'
    series = read(text, column="tide")
    excerpt = find_excerpt(series)
    assert excerpt is not None and len(series.values) == 3
    assert [line.whole for line in excerpt.lines] == [True, False, True]
    assert excerpt.place_of(month("1926-08")) is None


def test_values_that_are_computed_have_no_lines(tmp_path: Path) -> None:
    assert find_excerpt(tides(tmp_path, transform={"change": "difference"})) is None
    plain = tides(tmp_path)
    assert find_excerpt(plain) is not None
    assert find_excerpt(Series(definition=plain.definition, values=plain.values)) is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("192609,0.40,\n192610,-3.24,", {"1926-09": 0.40, "1926-10": -3.24}),
        ("192609,  0.40, -1.3\n192609,  7.77, -1.3", {"1926-09": 0.40}),
        ("nothing of the kind", {}),
        ("", {}),
    ],
)
def test_lines_that_are_said_are_read_by_their_dates(
    french: Series, said: str, expected: dict[str, float]
) -> None:
    excerpt = find_excerpt(french)
    assert excerpt is not None
    assert read_line_values(said, excerpt, french) == {month(at): v for at, v in expected.items()}


def reply(text: str | None, **changes: object) -> Reply:
    usual = {"model": "m", "series": "tides", "date": "1926-09", "variant": "continuation",
             "response": text, "shown": 2, "wanted": 2}  # fmt: skip
    return Reply.model_validate({**usual, **changes})


@pytest.mark.parametrize(
    ("text", "kind", "estimates", "status"),
    [
        ("192609, 0.36, 1\n192610, -3.20, 1", "answered", [0.36, -3.2], "parsed"),
        ("```csv\n192609,0.36,1\n192610,-3.20,1\n```", "answered", [0.36, -3.2], "parsed"),
        ("| 192609 | 0.36 | 1 |\n| 192610 | -3.20 | 1 |", "answered", [0.36, -3.2], "parsed"),
        ("192608, 2.64, 1\n192610, -3.20, 1\n192611, 1, 1", "answered", [None, -3.2], "unparsed"),
        ("192609, 0.36, 1\n192610, -3.2", "truncated", [0.36, None], "truncated"),
        ("I don't know these values.", "answered", [None, None], "refused"),
        (None, "refused", [None, None], "refused"),
    ],
)
def test_a_continuation_is_aligned_by_dates(
    french: Series, text: str | None, kind: str, estimates: list[float | None], status: str
) -> None:
    found = read_points([reply(text, kind=kind)], french, None)
    assert not found.points and not found.bad
    assert [row.estimate for row in found.continued] == estimates
    assert [row.truth for row in found.continued] == [0.36, -3.24]
    assert {row.status for row in found.continued} <= {"parsed", status}
    assert {(row.last, row.mean, row.told) for row in found.continued} == {(2.64, 2.8, False)}


def test_without_the_file_or_its_lines_nothing_is_counted(french: Series) -> None:
    bare = Series(definition=french.definition, values=french.values)
    for series, changes, words in (
        (bare, {}, "pass it with --series NAME=FILE"),
        (french, {"shown": None}, "does not state how many lines"),
        (french, {"date": "1926-07"}, "fewer than 2 lines before 1926-07"),
    ):
        found = read_points([reply("192609, 0.36, 1", **changes)], series, None)
        assert not found.continued
        assert words in found.bad[0].reason

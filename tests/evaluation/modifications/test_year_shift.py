"""Which numbers are years, and that all of an item's move alike."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.evaluation.benchmarks.items import load_items
from coreeval.evaluation.modifications import Modified, Unmodified, shift_years
from coreeval.evaluation.modifications.years import years_in
from coreeval.schema import Item
from tests.evaluation.recorded import CAP, beside


def item(text: str, output: str = "93.5%", key: str = "x") -> Item:
    return Item(id=key, split="test", input=text, output=output)


def shifted(text: str, by: int) -> str:
    """Shift with the first key that draws this shift."""
    for key in map(str, range(200)):
        found = shift_years(item(text, key=key), seed=7)
        assert isinstance(found, Modified), found
        old, new = next(iter(found.changes.items()))
        if int(new) - int(old) == by:
            return found.item.input
    raise AssertionError(f"no key draws a shift by {by}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sales in 2014 , up from 2013", "sales in 2042 , up from 2041"),
        ("as of 2014-12-31.", "as of 2042-12-31."),
        ("2014-05-05,0.0,1.5,-0.1", "2042-05-05,0.0,1.5,-0.1"),
        ("due 12/31/2014 and 31.12.2015", "due 12/31/2042 and 31.12.2043"),
        ("|12/31/04|12/31/05|", "|12/31/32|12/31/33|"),
        ("[31-dec-2012 100.0 [31-dec-13 131.8", "[31-dec-2040 100.0 [31-dec-41 131.8"),
        ("on 20141231 at", "on 20421231 at"),
        ("FY14 and fy 2015", "FY42 and fy 2043"),
        ("fiscal 2014, fiscal year 2015", "fiscal 2042, fiscal year 2043"),
        ("fiscal '14 and Dec '15", "fiscal '42 and Dec '43"),
        ("2Q14, q3 2014, 2014E, 2015q1", "2Q42, q3 2042, 2042E, 2043q1"),
        ("from 2013-2014 and 2013–2015", "from 2041-2042 and 2041–2043"),  # noqa: RUF001
        ("the 2013-14 season", "the 2041-42 season"),
        ("mid-2014, post-2015", "mid-2042, post-2043"),
        ("december 31,2014", "december 31,2042"),
        ("december 31 , 2014 .see 2014.", "december 31 , 2042 .see 2042."),
        ("甲公司2014年12月20日", "甲公司2042年12月20日"),
        ("december 312014 as of 2014january 1", "december 312042 as of 2042january 1"),
        ("in 2014 shares rose", "in 2042 shares rose"),
        ("$spy falls. $ 2014-09-10: cibc", "$spy falls. $ 2042-09-10: cibc"),
    ],
)
def test_a_year_moves_however_it_is_written(text: str, expected: str) -> None:
    assert shifted(text, 28) == expected


@pytest.mark.parametrize(
    "text",
    [
        "it paid 2,014 dollars and 12,014.5",
        "$ 2014 million, $2014, € 1,999 and usd 2014",
        "2014 million shares, 2014 %, 2014 thousand",
        "a total of 2014 employees and 2014 full-time employees",
        "a loss of -1954 ( 1954 ) or $ -1968 ( 1968 )",
        "20.14 or 2014.5 or 0.2014",
        "http://example.org/2014/05 and www.example.org/2015",
        "asu no . 2014-09 and ASU 2016-02",
        "the company 2019s assets 201cnotes201d",
        "120145 or 201 or 2114 or 1799",
        "r2014a and x_2014",
        "|in millions|now|then|\n|sales|1987|2011|\n|cost|1954|$ 2013|",
    ],
)
def test_what_only_looks_like_a_year_stays(text: str) -> None:
    assert [*years_in(text)] == []
    found = shift_years(item(f"In 1999:\n{text}"), seed=7)
    assert isinstance(found, Modified)
    assert found.item.input.partition("\n")[2] == text


def test_a_tables_names_move_and_its_values_stay() -> None:
    text = "|in millions|2014|2013|\n|december 31 2014|$ 3.1|1987|\n|year ended|2014|2013|"
    assert shifted(text, -28) == (
        "|in millions|1986|1985|\n|december 31 1986|$ 3.1|1987|\n|year ended|1986|1985|"
    )


def test_decades_move_by_whole_ones() -> None:
    assert shifted("in the 1990s, until 1998", 20) == "in the 2010s, until 2018"


def test_the_calendar_stays_right() -> None:
    """28 years on, 29 February is a day again, and the same day of the week."""
    for key in range(40):
        found = shift_years(item("on 2012-02-29", key=str(key)), seed=7)
        assert isinstance(found, Modified)
        assert (int(found.changes["2012"]) - 2012) % 28 == 0


def test_the_answer_stays_and_an_answer_that_is_a_year_is_left_alone() -> None:
    found = shift_years(item("growth from 2013 to 2014?", "2014.5"), seed=7)
    assert isinstance(found, Modified)
    assert found.item.output == "2014.5"
    refused = shift_years(item("the best year of 2013 and 2014?", "2014"), seed=7)
    assert refused == Unmodified(id="x", reason="its answer is one of its years")


def test_an_item_without_years_or_without_room_says_so() -> None:
    assert shift_years(item("sales of $ 2014"), seed=7) == Unmodified(
        id="x", reason="it names no year"
    )
    wide = shift_years(item("from 1910 to 2090"), seed=7)
    assert isinstance(wide, Unmodified)
    assert "too far" in wide.reason


def test_the_shift_depends_on_seed_and_item_only() -> None:
    texts = [item("in 2014", key=str(key)) for key in range(40)]
    drawn = [shift_years(one, seed=7) for one in texts]
    assert drawn == [shift_years(one, seed=7) for one in reversed(texts)][::-1]
    assert len({one.item.input for one in drawn if isinstance(one, Modified)}) > 1
    assert drawn != [shift_years(one, seed=8) for one in texts]


@given(st.lists(st.integers(1960, 2030), min_size=1, max_size=5), st.integers(0, 99))
def test_differences_between_years_stay(years: list[int], seed: int) -> None:
    text = " and ".join(f"in {year}" for year in years)
    found = shift_years(item(text), seed=seed)
    assert isinstance(found, Modified)
    moved = [int(year) for year in re.findall(r"\d{4}", found.item.input)]
    assert {new - old for new, old in zip(moved, years, strict=True)} == {moved[0] - years[0]}
    assert moved[0] != years[0]


@beside
@pytest.mark.parametrize(
    ("benchmark", "split", "name", "kept"),
    [
        ("finqa", "dev", "mod_dev.json.gz", 0),
        ("alphafin", "eval", "research_mod_eval.json.gz", 0),
    ],
)
def test_the_same_items_change_as_with_the_papers_authors(
    benchmark: str, split: str, name: str, kept: int
) -> None:
    ours = load_items(benchmark, CAP / benchmark, split).items
    theirs = load_items(benchmark, CAP / benchmark / name, split).items
    differ = [
        one.id
        for one, other in zip(ours, theirs, strict=True)
        if any(years_in(one.input)) != (one.input != other.input)
    ]
    assert len(differ) == kept

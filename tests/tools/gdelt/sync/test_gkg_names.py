"""Lists in GKG columns: items, names and offsets, and what is no such thing."""

import pytest

from coreeval.tools.gdelt.sync.gkg_names import (
    LONGEST_NAME,
    LONGEST_THEME,
    MOST_NAMES,
    MOST_THEMES,
    NameMentions,
    find_prominent_names,
    join_lists,
    split_distinct_items,
)

Told = list[tuple[int, str, int]]


def told(mentions: NameMentions) -> Told:
    return list(
        zip(mentions.row.tolist(), mentions.name.to_pylist(), mentions.at.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([b"Ann Lee,12;Bo Ek,900"], [(0, "Ann Lee", 12), (0, "Bo Ek", 900)]),
        ([b"Ann Lee,12;", b"", b"Bo Ek,9"], [(0, "Ann Lee", 12), (2, "Bo Ek", 9)]),
        ([b"Lee, Ann,12;,3"], [(0, "Lee, Ann", 12), (0, "", 3)]),
        ([b"no offset", b"Bo Ek,9"], [(1, "Bo Ek", 9)]),
        ([b"no offset"], []),
        ([b"Ann,;Ann,-3;Ann,x;Ann,3 ;Ann,0012"], [(0, "Ann", 12)]),
        ([b"Ann,12345678912;Ann,1234567891x;Bo,7"], [(0, "Ann", 123456789), (0, "Bo", 7)]),
        ([b"", b""], []),
        (["Zo\u00eb,1;\u738b,2".encode()], [(0, "Zo\u00eb", 1), (0, "\u738b", 2)]),
        ([b"Zo\xeb,1", b"Bo,2"], [(0, "Zo\ufffd", 1), (1, "Bo", 2)]),
    ],
)
def test_named(rows: list[bytes], expected: Told) -> None:
    assert told(join_lists(rows).split_names()) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([b"4#Oslo, Oslo, Norway#NO#NO12##59.9#10.7#-1#44"], [(0, "Oslo", 44)]),
        ([b"1#Norway#NO#7;1#Mali#ML#8", b"1#Chad#CD#9"],
         [(0, "Norway", 7), (0, "Mali", 8), (1, "Chad", 9)]),
        ([b"1,2#Oslo#NO#7;1#, Oslo#NO#8"], [(0, "Oslo", 7), (0, "", 8)]),
        ([b"Oslo", b"1#Oslo", b"1#Oslo#", b"1#Oslo#7", b""], [(3, "Oslo", 7)]),
        ([b"1#Oslo;#7"], []),
    ],
)  # fmt: skip
def test_placed(rows: list[bytes], expected: Told) -> None:
    assert told(join_lists(rows).split_places()) == expected


def test_items() -> None:
    row, items = join_lists([b"TAX;;WATER;", b"", b"TAX"]).items()
    assert row.tolist() == [0, 0, 0, 0, 1, 2]
    assert items.to_pylist() == ["TAX;", ";", "WATER;", ";", ";", "TAX;"]


def test_names_and_themes_without_end_are_cut() -> None:
    many = ";".join(f"Name{number},{number % 9}" for number in range(MOST_NAMES + 50))
    rows = [many.encode(), f"{'x' * (LONGEST_NAME + 1)},1;Bo Ek,2".encode(), many.encode()]
    found = find_prominent_names(3, [join_lists(rows).split_names()]).to_pylist()
    first = [f"Name{number}" for number in range(MOST_NAMES)]
    names = [[each["name"] for each in row] for row in found]
    assert [sorted(names[0]), names[1], sorted(names[2])] == [
        sorted(first), ["Bo Ek"], sorted(first),
    ]  # fmt: skip
    themes = ";".join(f"T{number}" for number in range(MOST_THEMES + 50))
    column = join_lists([themes.encode(), f"{'x' * (LONGEST_THEME + 1)};TAX".encode()])
    assert split_distinct_items(column).to_pylist() == [
        [f"T{number}" for number in range(MOST_THEMES)],
        ["TAX"],
    ]

from datetime import UTC, datetime
from pathlib import Path

from coreeval.tools.gdelt.parts.compact import compact
from tests.tools.gdelt.parts.making import SEEN, add_rows, offered, prior_of, row

STATED = datetime(2026, 6, 9, 7, tzinfo=UTC)


def test_the_ladder_of_precision(tmp_path: Path) -> None:
    found, _ = offered(
        tmp_path,
        row("https://a.example/2026/06/01/x", stated=STATED),
        row("https://b.example/2026/06/10/x"),
        row("https://c.example/x"),
        row("https://d.example/x", title="Farmers plant more oats this year"),
    )
    assert {one.domain: (one.published_precision, one.published_at) for one in found.values()} == {
        "a.example": ("exact", STATED),
        "b.example": ("url", datetime(2026, 6, 10, tzinfo=UTC)),
        "c.example": ("cluster", STATED),
        "d.example": ("crawl", SEEN),
    }
    stories = {one.domain: one.cluster for one in found.values()}
    assert stories.pop("d.example") == ""
    (story,) = set(stories.values())
    assert story in {one.id for one in found.values()}


def test_a_page_is_not_dated_by_a_later_twin(tmp_path: Path) -> None:
    later = datetime(2026, 6, 11, 7, tzinfo=UTC)
    found, _ = offered(
        tmp_path, row("https://a.example/x"), row("https://b.example/x", stated=later, seen=later)
    )
    assert [one.published_precision for one in found.values()] == ["crawl", "exact"]


def test_an_old_page_crawled_late_is_old(tmp_path: Path) -> None:
    (found,), _ = offered(tmp_path, row("https://a.example/2019/03/01/x"))
    assert "2019" in found


def test_what_is_not_offered_is_counted_and_still_tells_a_story(tmp_path: Path) -> None:
    found, stats = offered(
        tmp_path,
        row("https://a.example/x"),
        row("https://a.example/x", title="Another title of the very same page"),
        row("https://b.example/x", language="it"),
        row("https://c.example/x", title="Protesta contro la violenza di Israele su"),
        row("https://d.example/"),
        row("https://e.example/x", title="Too short"),
    )
    assert list(found) == ["https://a.example/x"]
    assert stats.dropped == {
        "front_page": 1, "other_language": 1, "short": 1, "unknown_language": 1,
    }  # fmt: skip
    assert (stats.articles, stats.duplicates) == (1, 1)


def test_copies_that_are_not_offered_make_a_story_notable(tmp_path: Path) -> None:
    add_rows(
        tmp_path,
        row("https://a.example/x"),
        row("https://b.example/x", language="it"),
        row("https://d.example/"),
        row("https://f.example/x", title="Farmers plant more oats this year"),
    )
    compact(tmp_path)
    assert prior_of(tmp_path, "ferry") > prior_of(tmp_path, "oat")


def test_two_rows_about_one_page_complete_each_other(tmp_path: Path) -> None:
    plain = row("https://a.example/x", title="The title that GKG gives is this",
                names=[("Ferry Board", "organisation")], file=0, line=4)  # fmt: skip
    told = row("http://www.a.example/x?utm_source=y", title="The title that GAL gives is that",
               snippet="It is so.", stated=STATED, file=1, line=2)  # fmt: skip
    for number, rows in enumerate([(plain, told), (told, plain), (told, told, plain)]):
        (tmp_path / str(number)).mkdir()
        (one,) = offered(tmp_path / str(number), *rows)[0].values()
        assert (one.title, one.snippet) == ("The title that GAL gives is that", "It is so.")
        assert [entity.name for entity in one.entities] == ["Ferry Board"]
        assert (one.published_at, one.origin) == (STATED, "b:2; a:4")


def test_a_row_that_adds_nothing_is_no_origin(tmp_path: Path) -> None:
    (one,) = offered(tmp_path, row("https://a.example/x"), row("https://a.example/x", line=9))[
        0
    ].values()
    assert one.origin == "a:1"

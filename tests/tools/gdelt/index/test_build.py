import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from sqlite3 import Connection

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import KnowledgeError, RunCorrupt, RunError
from coreeval.tools.gdelt.index import build
from coreeval.tools.gdelt.index import build as compacting
from coreeval.tools.gdelt.index.build import (
    CLOSED_ROWS,
    KEPT_S,
    CompactionResult,
    DaySpan,
    compact,
    plan_spans,
)
from coreeval.tools.gdelt.index.news_index import NewsIndex
from coreeval.tools.gdelt.index.store_catalog import (
    StorePart,
    list_parts,
    open_catalog,
    part_folder,
    replace_parts,
)
from coreeval.tools.gdelt.own_files import WORK
from tests.tools.gdelt.index import part_samples
from tests.tools.gdelt.index.part_samples import Row, add_rows, add_signals, prior_of, row

FIRST = datetime(2026, 5, 24, 12, tzinfo=UTC)
SUBJECTS = ("farmers", "bakers", "sailors", "teachers", "miners", "pilots", "clerks", "judges")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small stores for large ones, which are kept in several parts."""
    monkeypatch.setattr(build, "SMALL_ROWS", 1)


@pytest.fixture(scope="module")
def thirteen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a large store of thirteen days, in parts; only to copy."""
    store = tmp_path_factory.mktemp("thirteen")
    add_rows(store, *(on(day, "a") for day in range(13)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "SMALL_ROWS", 1)
        assert compact(store) == CompactionResult(parts=4, rows=13)
    return store


@pytest.fixture
def store(large: None, thirteen: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return shutil.copytree(thirteen, tmp_path / "store")


def on(day: int, site: str, title: str = "") -> Row:
    subject = SUBJECTS[day % len(SUBJECTS)]
    seen = FIRST + timedelta(days=day)
    return row(f"https://{site}.example/{day}", title or f"The {subject} of {site} plant oats",
               seen=seen, stated=seen)  # fmt: skip


def spans_of(store: Path) -> list[tuple[int, int, int]]:
    """Return (number, first day, last day) of the parts."""
    start = FIRST.date().toordinal()
    with open_catalog(store) as database:
        return [
            (part.id, datetime.fromisoformat(part.first).toordinal() - start,
             datetime.fromisoformat(part.last).toordinal() - start)
            for part in list_parts(database)
        ]  # fmt: skip


def held(store: Path) -> dict[str, str]:
    """Return the story of each offered article, by URL."""
    shelf = NewsIndex(store)
    found = {one.url: one.cluster for one in part_samples.held(shelf)}
    shelf.close()
    return found


def test_only_what_changed_is_made_again(store: Path) -> None:
    assert spans_of(store) == [(1, 0, 9), (2, 10, 10), (3, 11, 11), (4, 12, 12)]
    assert compact(store) == CompactionResult(parts=0, rows=0)
    add_rows(store, on(12, "b"))
    assert compact(store) == CompactionResult(parts=1, rows=2)
    assert len(held(store)) == 14


def test_days_are_put_together_when_they_no_longer_grow(large: None, tmp_path: Path) -> None:
    add_rows(tmp_path, *(on(day, "a") for day in range(3)))
    compact(tmp_path)
    assert [span[1:] for span in spans_of(tmp_path)] == [(0, 0), (1, 1), (2, 2)]
    add_rows(tmp_path, *(on(day, "a") for day in range(3, 6)))
    compact(tmp_path)
    assert [span[1:] for span in spans_of(tmp_path)] == [(0, 2), (3, 3), (4, 4), (5, 5)]
    assert len(held(tmp_path)) == 6


def test_days_whose_segments_are_gone_go_too(large: None, tmp_path: Path) -> None:
    add_rows(tmp_path, *(on(day, "a") for day in range(24)))
    compact(tmp_path)
    with open_catalog(tmp_path) as database, database:
        database.execute("DELETE FROM segments WHERE day < '2026-06-06'")
    compact(tmp_path)
    assert min(held(tmp_path)) == "https://a.example/13"
    assert [span[1:] for span in spans_of(tmp_path)] == [(13, 20), (21, 21), (22, 22), (23, 23)]


def test_rows_of_impossible_days_do_no_harm_to_a_store(tmp_path: Path) -> None:
    """Older versions read them."""
    for number, year in enumerate((1, 1960, 9999)):
        at = datetime(year, 12 if year > 1 else 1, 31 if year > 1 else 1, tzinfo=UTC)
        add_rows(tmp_path, row(f"https://old.example/{number}", seen=at, stated=at))
    assert compact(tmp_path) == CompactionResult(parts=0, rows=0)
    add_rows(tmp_path, on(0, "a"))
    assert compact(tmp_path) == CompactionResult(parts=1, rows=1)
    assert list(held(tmp_path)) == ["https://a.example/0"]


def test_a_part_is_replaced_only_by_all_of_its_days(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add_rows(tmp_path, *(on(day, "a") for day in range(6)))
    compact(tmp_path)
    assert [span[1:] for span in spans_of(tmp_path)] == [(0, 5)]
    monkeypatch.setattr(build, "SMALL_ROWS", 1)
    monkeypatch.setattr(compacting, "replace_parts", listing := Listing())
    compact(tmp_path)
    assert listing.seen == [4, 0]
    assert [span[1:] for span in spans_of(tmp_path)] == [(0, 2), (3, 3), (4, 4), (5, 5)]


class Listing:
    """Counts the parts of each transaction before it is made."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(
        self, database: Connection, gone: Sequence[StorePart], new: Sequence[StorePart]
    ) -> None:
        self.seen.append(len(new))
        replace_parts(database, gone, new)


def test_a_story_goes_on_in_the_next_part(large: None, tmp_path: Path) -> None:
    title = "Ministers agree to fund ten new ferries"
    add_rows(tmp_path, *(on(day, "a") for day in range(13)), on(9, "b", title), on(10, "c", title))
    compact(tmp_path)
    stories = held(tmp_path)
    assert stories["https://b.example/9"] == stories["https://c.example/10"] != ""


def test_a_page_found_again_later_is_a_duplicate(large: None, tmp_path: Path) -> None:
    add_rows(tmp_path, *(on(day, "a") for day in range(13)))
    again = on(11, "z") | {"url": "https://a.example/1"}
    add_rows(tmp_path, again)
    compact(tmp_path)
    shelf = NewsIndex(tmp_path)
    stats = shelf.stats()
    shelf.close()
    assert (stats.articles, stats.duplicates) == (13, 1)


def test_signals_count_where_no_copies_do(tmp_path: Path) -> None:
    titles = ("The farmers of one plant oats", "The bakers of two bake bread today")
    add_rows(tmp_path, row("https://a.example/x", titles[0]), row("https://b.example/x", titles[1]))
    add_signals(tmp_path, "2026-06-10", a=19)
    compact(tmp_path)
    assert prior_of(tmp_path, "farmer") > prior_of(tmp_path, "baker")


def test_replaced_parts_stay_for_those_who_read_them(tmp_path: Path) -> None:
    add_rows(tmp_path, on(0, "a"))
    compact(tmp_path)
    shelf = NewsIndex(tmp_path)
    add_rows(tmp_path, on(0, "b"))
    compact(tmp_path)
    assert [one.url for one in part_samples.held(shelf)] == ["https://a.example/0"]
    shelf.close()
    assert len(held(tmp_path)) == 2
    old = part_folder(tmp_path, 1)
    os.utime(old, (0, old.stat().st_mtime - KEPT_S - 60))
    compact(tmp_path)
    assert not old.exists()
    assert part_folder(tmp_path, 2).exists()


def test_a_killed_compaction_loses_only_the_part_in_hand(large: None, tmp_path: Path) -> None:
    add_rows(tmp_path, *(on(day, "a") for day in range(13)))
    script = f"""
        import os, signal, sys
        from pathlib import Path
        from coreeval.tools.gdelt.index import build
        build.SMALL_ROWS = 1
        write, parts = build.write_part, []
        def killed(database, folder):
            write(database, folder)
            parts.append(folder)
            if len(parts) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        build.write_part = killed
        build.compact(Path({str(tmp_path)!r}))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)])
    assert done.returncode == -signal.SIGKILL
    assert len(held(tmp_path)) == 10
    assert compact(tmp_path) == CompactionResult(parts=3, rows=3)
    assert len(held(tmp_path)) == 13
    assert not (tmp_path / "parts" / WORK).exists()


@pytest.mark.parametrize("file", ["index.bin", "texts.bin"])
def test_a_damaged_part_is_made_again(store: Path, file: str) -> None:
    whole = held(store)
    damaged = part_folder(store, 2) / file
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(KnowledgeError, match="truncated") as caught:
        NewsIndex(store)
    assert "coreeval gdelt sync" in caught.value.hint
    assert compact(store) == CompactionResult(parts=1, rows=1)
    assert held(store) == whole


@pytest.mark.parametrize("kept", [0, 4096])
def test_a_damaged_list_of_the_store_is_explained(store: Path, kept: int) -> None:
    listed = store / "store.db"
    whole = listed.read_bytes()
    listed.write_bytes(whole[:kept] + b"x" * (len(whole) - kept))
    with pytest.raises(RunCorrupt, match="the news store is damaged") as caught:
        NewsIndex(store)
    assert "move the store away" in caught.value.hint


def test_segments_with_other_columns_are_refused(tmp_path: Path) -> None:
    add_rows(tmp_path, on(0, "a"))
    (file,) = tmp_path.glob("segments/*/*.parquet")
    pq.write_table(pa.table({"title": ["x"]}), file)
    with pytest.raises(KnowledgeError, match="data file of the news store is damaged: Binder"):
        compact(tmp_path)


def test_too_little_room_for_compaction_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MEMORY", "1KB")
    add_rows(tmp_path, on(0, "a"))
    with pytest.raises(RunError, match="cannot be made searchable: Out of Memory") as caught:
        compact(tmp_path)
    assert "disk is not full" in caught.value.hint


def test_parts_of_another_version_are_made_again(large: None, tmp_path: Path) -> None:
    add_rows(
        tmp_path, *(on(day, "a") for day in range(13)), on(12, "z") | {"url": on(1, "a")["url"]}
    )
    compact(tmp_path)
    whole = held(tmp_path)
    for index in tmp_path.glob("parts/*/index.bin"):
        index.rename(index.with_name("words.parquet"))
    with pytest.raises(KnowledgeError, match="another version"):
        NewsIndex(tmp_path)
    assert compact(tmp_path).parts == 4
    assert held(tmp_path) == whole


def test_a_changed_byte_is_found_by_the_next_sync(store: Path) -> None:
    index = part_folder(store, 3) / "index.bin"
    data = bytearray(index.read_bytes())
    data[data.index(b"plant")] ^= 1
    index.write_bytes(data)
    assert compact(store) == CompactionResult(parts=1, rows=1)


def test_a_part_is_on_the_disk_before_the_store_lists_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a power cut leaves a part that is listed, and whose files are empty."""
    really, flushed, listed = os.fsync, set[str](), list[set[str]]()
    publish = replace_parts

    def note(file: int) -> None:
        really(file)
        flushed.add(Path(f"/proc/self/fd/{file}").readlink().name)

    def noted(database: Connection, gone: Sequence[StorePart], new: Sequence[StorePart]) -> None:
        listed.extend(
            {path.name for path in part_folder(store, part.id).rglob("*")} - flushed for part in new
        )
        publish(database, gone, new)

    monkeypatch.setattr("coreeval.tools.files.os.fsync", note)
    monkeypatch.setattr(compacting, "replace_parts", noted)
    add_rows(store, on(1, "flushed"))
    assert compact(store).parts
    assert listed and not any(listed)


START = date(2026, 5, 24)  # an aligned stretch of ten days begins here


def days_of(count: int, rows: int, start: date = START) -> dict[date, int]:
    return {start + timedelta(days=at): rows for at in range(count)}


def day_at(first: int, last: int, grows: bool) -> DaySpan:
    return DaySpan(START + timedelta(days=first), START + timedelta(days=last), grows)


def test_a_small_store_is_one_part_however_long() -> None:
    assert plan_spans({START: 5, date(2015, 2, 18): 7}) == [
        DaySpan(date(2015, 2, 18), START, grows=True)
    ]
    assert plan_spans({}) == []


def test_days_that_no_longer_grow_are_put_together() -> None:
    assert START.toordinal() % 10 == 0
    assert plan_spans(days_of(24, 130_000)) == [
        day_at(0, 9, False), day_at(10, 19, False), day_at(20, 20, False),
        day_at(21, 21, True), day_at(22, 22, True), day_at(23, 23, True),
    ]  # fmt: skip


def test_a_new_day_moves_no_border_behind() -> None:
    before, after = plan_spans(days_of(24, 130_000)), plan_spans(days_of(25, 130_000))
    assert before[:2] == after[:2]
    assert after[2] == day_at(20, 21, False)


def test_days_with_very_many_rows_stay_alone() -> None:
    found = plan_spans(days_of(12, CLOSED_ROWS - 1))
    assert found == [day_at(at, at, at > 8) for at in range(12)]


def test_a_span_is_compared_with_its_neighbours() -> None:
    two = timedelta(days=2)
    assert day_at(0, 9, False).reach == (START - two, START + timedelta(days=9) + two)
    assert day_at(9, 9, True).reach == (START + timedelta(days=7), START + timedelta(days=9))

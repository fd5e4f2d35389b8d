"""Files from a folder: read once, every row accounted for, bad ones aside."""

import gzip
import os
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from sqlite3 import connect

import pytest
from filelock import FileLock

from coreeval.errors import KnowledgeError, RunCorrupt, RunError, RunLocked
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.news_index import NewsIndex
from coreeval.tools.gdelt.index.store_catalog import StoreLayout
from coreeval.tools.gdelt.own_files import DOWNLOADS
from coreeval.tools.gdelt.sync import feeds, file_reader, intake
from coreeval.tools.gdelt.sync.segment_rows import LONGEST_KEPT, MOST_KEPT
from coreeval.tools.gdelt.sync.sync import Around, SyncProgress, SyncResult, sync_folder
from tests.tools.gdelt.file_samples import gal_line, gkg_line, listed, write, write_artlist
from tests.tools.gdelt.sync.kit import (
    NOW,
    aside_of,
    asked,
    data_files,
    event_line,
    gal_gz,
    gkg_file,
    gkg_zip,
    noon,
    quarters,
    rows_of,
    stamp,
    urls_of,
    zipped,
)

SHARED = Path(__file__).parents[4].parent / "shared" / "data" / "gdelt"


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder with a file of each kind."""
    folder = tmp_path / "news"
    (folder / "deep").mkdir(parents=True)
    (folder / f"{stamp(NOW)}.gkg.csv.zip").write_bytes(gkg_zip(NOW))
    (folder / "deep" / f"{stamp(NOW)}.gal.json.gz").write_bytes(gal_gz(NOW))
    write_artlist(
        folder / "list.json", listed("Gold , up 1 . 5 %", "https://a.example/1", "20260812T204500Z")
    )
    write(folder / f"{stamp(NOW)}.export.CSV", event_line(NOW, "https://news.example/1"))
    (folder / "notes.txt").write_text("nothing")
    (folder / ".hidden.csv").write_text(gkg_line())
    return folder


def synced(store: Path, news: Path) -> SyncResult:
    return sync_folder(store, news, around=Around(now=noon))


def test_everything_is_read_and_listed(tmp_path: Path, news: Path) -> None:
    seen: list[SyncProgress] = []
    store, finished = tmp_path / "store", list[Path]()
    around = Around(now=noon, watch=seen.append, finish=finished.append)
    done = sync_folder(store, news, around=around)
    counts = done.counts
    assert (counts.files, counts.rows, counts.articles, done.gaps) == (4, 6, 5, 0)
    assert counts.ignored == {"notes.txt": "contains no news"}
    assert (seen[-1].done, seen[-1].total, seen[-1].articles) == (5, 5, 5)
    assert finished == [store]
    assert Counter(row["feed"] for row in rows_of(store)) == {"gkg": 3, "gal": 1, "artlist": 1}
    (signal,) = rows_of(store, "signals")
    assert signal["num_mentions"] == 4
    days = asked(store, "SELECT path, day, rows FROM segments ORDER BY path")
    assert [(path.split("/")[:2], day, rows) for path, day, rows in days] == [
        (["segments", "2026-08-12"], "2026-08-12", 1),
        (["segments", "2026-10-05"], "2026-10-05", 4),
        (["signals", "2026-10-05"], "2026-10-05", 1),
    ]
    assert data_files(store) == {path for path, _, _ in days}
    held = asked(store, "SELECT count(*) FROM holds JOIN files ON file = id")
    assert held == [(4,)]


def test_rows_name_their_file_and_line(tmp_path: Path, news: Path) -> None:
    synced(tmp_path / "store", news)
    names = dict(asked(tmp_path / "store", "SELECT id, name FROM files"))
    origins = {row["url"]: (names[row["file"]], row["line"]) for row in rows_of(tmp_path / "store")}
    assert origins["https://a.example/1"] == ("list.json", 1)
    assert origins[f"https://news.example/{stamp(NOW)}/2"] == (f"{stamp(NOW)}.gkg.csv.zip", 3)


def test_a_file_is_read_once_by_whatever_name(tmp_path: Path, news: Path) -> None:
    store = tmp_path / "store"
    synced(store, news)
    (news / "copy.zip").write_bytes(gkg_zip(NOW))
    (news / "later.csv").write_text(gkg_file(NOW + timedelta(minutes=15)))
    done = synced(store, news)
    assert (done.counts.files, done.counts.known, done.counts.articles) == (1, 5, 3)
    assert len(urls_of(store)) == len(set(urls_of(store))) == 8


def test_two_files_of_one_content_in_one_sync(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / "news").mkdir(exist_ok=True)
        write(tmp_path / "news" / name, gkg_line())
    done = synced(tmp_path / "store", tmp_path / "news")
    assert (done.counts.files, done.counts.known) == (1, 1)
    assert len(rows_of(tmp_path / "store")) == 1


def test_bad_rows_are_counted_and_kept_aside(tmp_path: Path) -> None:
    lines = [gkg_line(), "half a row", gkg_line(title=""), gkg_line(date="never"), gkg_line()[:60]]
    write(tmp_path / "news.csv.gz", *lines, *["x\t" * 3000] * 150)
    store = tmp_path / "store"
    done = synced(store, tmp_path / "news.csv.gz")
    assert dict(done.counts.bad) == {"columns": 152, "untitled": 1, "no_date": 1}
    assert done.counts.rows == 155 == done.counts.articles + done.counts.bad.total()
    rows = aside_of(store, "news.csv.gz")
    assert rows[0] == {"line": 2, "reason": "columns", "row": "half a row"}
    assert [row["line"] for row in rows[:4]] == [2, 3, 4, 5]
    assert len(rows) == MOST_KEPT
    assert max(len(row["row"]) for row in rows) == LONGEST_KEPT


def test_a_row_of_the_year_one_is_a_bad_row(tmp_path: Path) -> None:
    rows = ("2026-10-05T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    titles = ("Farmers plant oats", "Bakers plant oats", "Sailors plant oats")
    lines = [
        gal_line(title, f"https://a.example/{title[0]}", date)
        for title, date in zip(titles, rows, strict=True)
    ]
    write(tmp_path / "news.gal.json", *lines)
    done = sync_folder(
        tmp_path / "store", tmp_path / "news.gal.json", around=Around(now=noon, finish=compact)
    )
    assert (done.counts.articles, done.counts.bad) == (1, {"no_date": 2})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("wrong", ["29990101000001", "99991231234500", "00010101000000"])
def test_a_wrong_date_in_a_name_makes_no_gaps(tmp_path: Path, wrong: str) -> None:
    store, news = tmp_path / "store", tmp_path / "news"
    news.mkdir()
    first, last = NOW - timedelta(days=2), NOW - timedelta(days=2, hours=-1)
    for rows, at in enumerate([first, last, NOW], start=1):
        name = wrong if at == NOW else stamp(at)
        write(news / f"{name}.gkg.csv", *gkg_file(at, rows).splitlines())
    done = synced(store, news)
    assert (done.counts.files, done.gaps) == (3, 3)
    ranges = asked(store, "SELECT first, last FROM asked")
    assert ranges == [(int(first.timestamp()), int(last.timestamp()))]


def test_a_cut_file_gives_what_is_left(tmp_path: Path) -> None:
    whole = gzip.compress("".join(gkg_file(at, 40) for at in quarters(NOW, 40)).encode())
    (tmp_path / "news.gz").write_bytes(whole[:-300])
    done = synced(tmp_path / "store", tmp_path / "news.gz")
    assert done.counts.bad == {"damaged": 1}
    assert 1000 < done.counts.articles < 1600
    assert asked(tmp_path / "store", "SELECT state FROM files") == [("damaged",)]


@pytest.mark.parametrize(
    ("feed", "name", "text"),
    [
        ("gkg", "gkg.csv", gkg_file(NOW, 40)),
        (
            "events",
            "export.CSV",
            "".join(event_line(NOW, f"https://n.example/{n}") + "\n" for n in range(40)),
        ),
    ],
)
def test_a_plain_copy_that_is_cut_in_a_row_is_a_part_of_its_batch(
    tmp_path: Path, feed: str, name: str, text: str
) -> None:
    copy = tmp_path / f"{stamp(NOW)}.{name}"
    states = "SELECT state FROM batches"
    copy.write_text(text[: len(text) * 2 // 3])
    cut = synced(tmp_path / "store", copy)
    assert cut.counts.bad == {"damaged": 1}
    assert (cut.counts.rows, cut.counts.copies) == (27, {feed: [int(NOW.timestamp())]})
    assert asked(tmp_path / "store", "SELECT state FROM files") == [("damaged",)]
    assert asked(tmp_path / "store", states) == [("part",)]
    [row] = aside_of(tmp_path / "store", copy.name)
    assert row["reason"] == "damaged"
    copy.write_text(text.removesuffix("\n"))
    assert synced(tmp_path / "store", copy).counts.bad == {}
    assert asked(tmp_path / "store", states) == [("read",)]


def test_a_bad_row_that_has_its_end_is_no_cut(tmp_path: Path) -> None:
    copy = tmp_path / f"{stamp(NOW)}.gkg.csv"
    copy.write_text(gkg_file(NOW, 40) + "a row\n")
    assert synced(tmp_path / "store", copy).counts.bad == {"columns": 1}
    assert asked(tmp_path / "store", "SELECT state FROM batches") == [("read",)]


def test_a_bomb_is_refused_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "MOST_UNPACKED", 1 << 20)
    (tmp_path / "a.zip").write_bytes(zipped(("a", gkg_file(NOW) + "\n" * 10_000_000)))
    write(tmp_path / "b.csv", gkg_line())
    done = synced(tmp_path / "store", tmp_path)
    assert done.counts.bad == {"too_large": 1}
    assert len(rows_of(tmp_path / "store")) == 1
    assert asked(tmp_path / "store", "SELECT name, state FROM files WHERE state <> 'read'") == [
        ("a.zip", "refused")
    ]


def test_a_file_that_cannot_be_read_is_left_out(
    tmp_path: Path, news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = feeds.feed_of

    def refusing(path: Path) -> object:
        if path.name == "list.json":
            raise PermissionError(13, "Permission denied", str(path))
        return told(path)

    monkeypatch.setattr(file_reader, "feed_of", refusing)
    done = synced(tmp_path / "store", news)
    assert done.counts.ignored["list.json"] == "cannot be read: Permission denied"
    assert done.counts.files == 3


def test_a_name_that_would_be_a_path_stays_in_the_store(tmp_path: Path) -> None:
    folder = tmp_path / "news" / "%2e%2e"
    folder.mkdir(parents=True)
    write(folder / ("n" * 200 + ".csv"), gkg_line(), "bad")
    write(folder / "a b&c.csv", gkg_line(url="https://b.example/1"), "bad")
    synced(tmp_path / "store", tmp_path / "news")
    kept = sorted(path.name for path in (tmp_path / "store" / "aside").iterdir())
    assert len(kept) == 2 and all(len(name) < 200 and "/" not in name for name in kept)


def test_names_that_are_not_utf_8_are_kept_escaped(tmp_path: Path, news: Path) -> None:
    (news / os.fsdecode(b"K\xf6ln.txt")).write_text("nothing")
    write(news / os.fsdecode(b"M\xfcnchen.csv"), gkg_line(url="https://m.example/1"), "bad")
    store = tmp_path / "store"
    done = synced(store, news)
    assert (done.counts.files, done.counts.ignored[r"K\xf6ln.txt"]) == (5, "contains no news")
    assert asked(store, "SELECT name FROM files WHERE bad <> '{}'") == [(r"M\xfcnchen.csv",)]
    aside = StoreLayout(store).aside(r"M\xfcnchen.csv").name.removesuffix(".jsonl.gz")
    assert [row["line"] for row in aside_of(store, aside)] == [2]


def test_many_files_are_committed_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "FILES", 3)
    (tmp_path / "news").mkdir()
    for at in quarters(NOW - timedelta(hours=2), 8):
        (tmp_path / "news" / f"{stamp(at)}.gkg.csv.zip").write_bytes(gkg_zip(at))
    done = synced(tmp_path / "store", tmp_path / "news")
    assert (done.counts.files, len(data_files(tmp_path / "store"))) == (8, 3)
    assert len(set(urls_of(tmp_path / "store"))) == 24


# -- what is no store, no news, or somebody else's -------------------------------------------------


def test_no_news_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(KnowledgeError, match=r"no GDELT files at this[\s\S]*contains no files"):
        synced(tmp_path / "store", tmp_path / "empty")
    (tmp_path / "empty" / "a.txt").write_text("x")
    with pytest.raises(KnowledgeError, match=r"a\.txt \(contains no news\)"):
        synced(tmp_path / "store", tmp_path / "empty")
    with pytest.raises(KnowledgeError, match="does not exist"):
        synced(tmp_path / "store", tmp_path / "nowhere")


def test_a_folder_that_is_something_else_is_not_touched(tmp_path: Path, news: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    for place in (tmp_path / "other", news / "notes.txt"):
        with pytest.raises(KnowledgeError, match="this is not a news store"):
            synced(place, news)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]


def test_a_second_sync_says_that_there_is_a_first(tmp_path: Path, news: Path) -> None:
    (tmp_path / "store").mkdir()
    with FileLock(tmp_path / "store" / "lock"), pytest.raises(RunLocked, match="another sync"):
        synced(tmp_path / "store", news)
    assert synced(tmp_path / "store", news).counts.files == 4


def test_a_store_of_a_newer_format_is_left_alone(tmp_path: Path, news: Path) -> None:
    store = tmp_path / "store"
    synced(store, news)
    with closing(connect(store / "store.db")) as ledger, ledger:
        ledger.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(RunCorrupt, match="schema version 99"):
        synced(store, news)


def test_a_damaged_ledger_is_told(tmp_path: Path, news: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "store.db").write_bytes(b"no database" * 1000)
    with pytest.raises(RunError, match=r"news store is damaged[\s\S]*sync again"):
        synced(store, news)


def test_a_reader_leaves_a_store_that_was_only_begun_to_the_next_sync(
    tmp_path: Path, news: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "store.db").touch()  # as a full disk leaves it
    with pytest.raises(KnowledgeError, match=r"still empty[\s\S]*coreeval gdelt sync` again"):
        NewsIndex(store)
    assert synced(store, news).counts.files == 4
    with pytest.raises(KnowledgeError):
        NewsIndex(store)
    assert asked(store, "SELECT name FROM sqlite_master WHERE name = 'parts'") == []


def test_leftovers_are_removed(tmp_path: Path, news: Path) -> None:
    store = tmp_path / "store"
    synced(store, news)
    before = data_files(store)
    for name in (
        "segments/2026-10-05/00000009-0000dead.parquet",
        "signals/2020-01-01/.00000009-0000dead.parquet.1.tmp",
        f"{DOWNLOADS}/a",
    ):
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_bytes(b"left by a process that was killed")
    synced(store, news)
    assert data_files(store) == before
    assert not (store / DOWNLOADS).exists()


def test_files_of_other_names_are_no_leftovers(tmp_path: Path, news: Path) -> None:
    store = tmp_path / "store"
    synced(store, news)
    own = ["downloads/a", "segments/customers/a.csv", "segments/2026-10-05/a.parquet",
           "signals/lab/a.csv", "parts/2024 turbine/plan.txt", "parts/000099/plan.txt",
           "parts/.work/a.txt"]  # fmt: skip
    for name in own:
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text("mine")
        os.utime((store / name).parent, (0, 0))  # what was replaced a day ago is deleted
    sync_folder(store, news, around=Around(finish=compact))
    assert [name for name in own if not (store / name).exists()] == []


def test_the_real_files(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    done = synced(tmp_path / "store", SHARED)
    assert (done.counts.files, done.counts.rows, done.counts.articles) == (17, 15130, 9579)
    assert dict(done.counts.bad) == {"untitled": 114, "collection": 2}
    assert len(done.counts.ignored) == 14
    assert len(rows_of(tmp_path / "store")) == 9579

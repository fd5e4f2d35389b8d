"""The mirror: what is fetched, what is a gap, and every way in which it misbehaves."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from multidict import CIMultiDict

from coreeval.errors import KnowledgeError, RunError, UsageError
from coreeval.tools.gdelt.own_files import DOWNLOADS
from coreeval.tools.gdelt.sync import downloads, file_reader, intake
from coreeval.tools.gdelt.sync.downloads import (
    ChecksumUnreadable,
    normalise_mirror_url,
    read_md5_header,
)
from coreeval.tools.gdelt.sync.feeds import Feed, parse_feeds
from coreeval.tools.gdelt.sync.sync import Around, SyncResult, sync_folder, sync_mirror
from tests.support.mirror_server import Answer, MirrorServer
from tests.tools.gdelt.sync.kit import (
    EVENTS,
    GAL,
    GKG,
    MENTIONS,
    NOW,
    ROWS,
    asked,
    fill,
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

HOURS = 6
START = NOW - timedelta(hours=HOURS)
ALL: tuple[Feed, ...] = ("gkg", "gal", "events", "mentions")
AT = START + timedelta(hours=1)
"""A batch that is to make trouble."""


@pytest.fixture
def server() -> Iterator[MirrorServer]:
    with MirrorServer().running() as running:
        yield running


def synced(
    store: Path,
    server: MirrorServer,
    feeds: tuple[Feed, ...] = ("gkg",),
    start: datetime | None = START,
    end: datetime | None = None,
    now: datetime = NOW,
) -> SyncResult:
    around = Around(now=lambda: now, pause_s=0.001)
    return sync_mirror(store, start=start, end=end, feeds=feeds, mirror=server.url, around=around)


def test_a_window_is_fetched_feed_by_feed(tmp_path: Path, server: MirrorServer) -> None:
    fill(server, quarters(START, 4 * HOURS), ALL)
    done = synced(tmp_path / "store", server, ALL)
    counts = done.counts
    gal = 4 * HOURS - 2  # the last ones may still be written
    assert counts.files == 3 * 4 * HOURS + gal
    assert counts.articles == 4 * HOURS * ROWS + gal
    assert (done.gaps, done.troubles.failed, counts.bad.total()) == (0, {}, 0)
    assert len(rows_of(tmp_path / "store", "signals")) == 2 * 4 * HOURS
    assert not (tmp_path / "store" / DOWNLOADS).exists()
    assert server.most_at_once <= downloads.AT_ONCE
    minutes = {int(path.split("/")[-1][10:12]) for path in server.asked if ".gal." in path}
    assert {minute % 15 for minute in minutes} == set(range(8))


def test_readers_that_run_ahead_do_not_wait_for_the_downloads(
    tmp_path: Path, server: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "AHEAD", 10 * downloads.WAITING)
    fill(server, quarters(START, 4 * HOURS))
    assert synced(tmp_path / "store", server).counts.files == 4 * HOURS


def test_nothing_is_fetched_twice(tmp_path: Path, server: MirrorServer) -> None:
    fill(server, quarters(START, 4 * HOURS), ALL)
    synced(tmp_path / "store", server, ALL)
    before = urls_of(tmp_path / "store")
    server.asked.clear()
    done = synced(tmp_path / "store", server, ALL)
    assert (done.counts.files, done.counts.known) == (0, 0)
    may_still_come = {path.format(stamp(NOW)) for path in (GKG, EVENTS, MENTIONS)}
    assert {path for path in server.asked if ".gal." not in path} == may_still_come
    assert not set(server.asked) & set(server.files), "only what was not there is asked for"
    assert urls_of(tmp_path / "store") == before


def test_going_on_from_the_last_batch(tmp_path: Path, server: MirrorServer) -> None:
    late = NOW - timedelta(minutes=30)
    fill(server, [at for at in quarters(START, 4 * HOURS) if at != late])
    assert synced(tmp_path / "store", server).troubles.late == 2  # that one, and the next one
    later = NOW + timedelta(hours=5)
    fill(server, [late, *quarters(NOW, 20)])
    done = synced(tmp_path / "store", server, start=None, now=later)
    assert done.counts.files == 21
    assert len(urls_of(tmp_path / "store")) == (4 * HOURS + 20) * ROWS
    with pytest.raises(KnowledgeError, match="the store has no news to continue from yet"):
        synced(tmp_path / "other", server, start=None)


def test_what_is_not_there_after_its_time_is_a_gap(tmp_path: Path, server: MirrorServer) -> None:
    fill(server, [at for at in quarters(START, 4 * HOURS) if at != AT])
    done = synced(tmp_path / "store", server)
    assert (done.gaps, done.known_gaps) == (1, 0)
    assert asked(tmp_path / "store", "SELECT batch FROM batches WHERE state = 'missing'") == [
        (int(AT.timestamp()),)
    ]
    fill(server, [AT])
    assert (synced(tmp_path / "store", server).gaps, len(urls_of(tmp_path / "store"))) == (0, 72)
    server.asked.clear()


def test_a_gap_of_long_ago_is_not_asked_for_again(tmp_path: Path, server: MirrorServer) -> None:
    later = NOW + timedelta(days=2)
    fill(server, [NOW - timedelta(minutes=15)])
    synced(tmp_path / "store", server, end=NOW, now=later)
    server.asked.clear()
    done = synced(tmp_path / "store", server, end=NOW, now=later)
    assert (server.asked, done.gaps) == ([], 4 * HOURS - 1)


@pytest.mark.parametrize("feeds", [("gkg",), ("gkg", "gal")])
def test_a_mirror_that_is_behind_by_more_than_a_day_loses_nothing(
    tmp_path: Path, server: MirrorServer, feeds: tuple[Feed, ...]
) -> None:
    """The last feed is further behind than others are settled; the others are not."""
    store, last, first = tmp_path / "store", feeds[-1], NOW - timedelta(hours=30)
    both = [at for at in quarters(first, 4 * 30 + 1) if at <= NOW]
    fill(server, both, feeds[:-1])
    fill(server, [] if feeds[:-1] else both[:1], [last])
    synced(store, server, feeds, start=first)
    for hours in (12, 24):
        done = synced(store, server, feeds, start=None, now=NOW + timedelta(hours=hours))
        assert done.counts.articles == 0
    fill(server, both, [last])
    synced(store, server, feeds, start=None, now=NOW + timedelta(hours=36))
    days = asked(store, f"SELECT count(*) FROM batches WHERE feed = '{last}' AND state = 'read'")
    assert days == [(len(both),)]


def test_what_a_mirror_never_had_is_given_up(tmp_path: Path, server: MirrorServer) -> None:
    later = NOW + timedelta(days=8)
    for _ in range(2):
        server.asked.clear()
        done = synced(tmp_path / "store", server, end=NOW, now=later)
    assert (server.asked, done.gaps) == ([], 4 * HOURS)


def test_a_clock_that_was_ahead_settles_no_gap(tmp_path: Path, server: MirrorServer) -> None:
    store, ahead = tmp_path / "store", NOW + timedelta(days=3)
    assert synced(store, server, end=NOW, now=ahead).gaps == 4 * HOURS
    fill(server, quarters(START, 4 * HOURS))
    assert synced(store, server).counts.files == 4 * HOURS, "they have come since"


def test_the_known_hole_is_named(tmp_path: Path, server: MirrorServer) -> None:
    start = datetime.fromisoformat("2025-06-14T12:00:00+00:00")
    fill(server, quarters(start, 24))
    done = synced(tmp_path / "store", server, start=start, end=start + timedelta(hours=12))
    assert (done.counts.files, done.gaps, done.known_gaps) == (24, 24, 24)


MD5 = "d41d8cd98f00b204e9800998ecf8427e"
"""Of nothing."""
TROUBLES = {
    "an error of the server": Answer(status=500),
    "too many requests": Answer(status=429),
    "a body that ends early": Answer(body=gkg_zip(AT), cut=True),
    "a checksum that is another file's": Answer(body=gkg_zip(AT), headers={"ETag": f'"{MD5}"'}),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_what_passes_is_tried_again(tmp_path: Path, server: MirrorServer, trouble: Answer) -> None:
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), trouble, trouble, gkg_zip(AT))
    done = synced(tmp_path / "store", server)
    assert (done.troubles.failed, done.gaps) == ({}, 0)
    assert len(urls_of(tmp_path / "store")) == 72
    assert server.asked.count(GKG.format(stamp(AT))) == 3


@pytest.mark.parametrize("trouble", [*TROUBLES.values(), Answer(status=302), Answer(status=403)])
def test_what_does_not_pass_is_told_and_left_for_next_time(
    tmp_path: Path, server: MirrorServer, trouble: Answer
) -> None:
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), trouble)
    done = synced(tmp_path / "store", server)
    assert list(done.troubles.failed) == [f"gkg {AT:%Y-%m-%d %H:%M}"]
    assert (done.counts.files, done.gaps) == (4 * HOURS - 1, 1)
    fill(server, [AT])
    assert synced(tmp_path / "store", server).counts.files == 1


def test_a_slow_download_ends(
    tmp_path: Path, server: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "TIMEOUT", aiohttp.ClientTimeout(total=0.2))
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), Answer(hang=True), gkg_zip(AT))
    assert synced(tmp_path / "store", server).troubles.failed == {}


def test_a_mirror_that_cannot_be_reached_is_one_message(tmp_path: Path) -> None:
    with MirrorServer().running() as gone:
        pass
    with pytest.raises(RunError, match=r"the mirror cannot be used[\s\S]*to continue"):
        synced(tmp_path / "store", gone)


@pytest.mark.parametrize("proxy", ["http://a..b", "http://me:hunter2@h:port", "http://["])
def test_a_proxy_without_an_address_is_one_message(
    tmp_path: Path, server: MirrorServer, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(
        RunError, match="HTTP_PROXY or HTTPS_PROXY is not a proxy address"
    ) as caught:
        synced(tmp_path / "store", server)
    assert "hunter2" not in str(caught.value)


BAD_ARCHIVES = {
    "two files": zipped(("a.csv", gkg_file(AT)), ("b.csv", gkg_file(AT))),
    "not an archive": b"<html>Service unavailable</html>",
    "a cut archive": gkg_zip(AT)[:-40],
}


@pytest.mark.parametrize("body", BAD_ARCHIVES.values(), ids=BAD_ARCHIVES)
def test_a_file_that_the_mirror_has_like_this_counts_as_read(
    tmp_path: Path, server: MirrorServer, body: bytes
) -> None:
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), body)
    done = synced(tmp_path / "store", server)
    assert (done.counts.bad.total(), done.gaps) == (1, 0)
    assert len(urls_of(tmp_path / "store")) == 69


def test_a_bomb_is_refused(
    tmp_path: Path, server: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "MOST_UNPACKED_DOWNLOAD", 1 << 20)
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), zipped(("a.csv", gkg_file(AT) + "\n" * 50_000_000)))
    assert synced(tmp_path / "store", server).counts.bad == {"too_large": 1}
    assert len(urls_of(tmp_path / "store")) == 69


def test_a_download_without_end_is_left(
    tmp_path: Path, server: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "LARGEST", 10_000)
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), bytes(20_000))
    done = synced(tmp_path / "store", server)
    assert list(done.troubles.failed.values()) == ["it is larger than 0 MB"]


def test_names_in_an_archive_are_not_used(tmp_path: Path, server: MirrorServer) -> None:
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), zipped(("../../../evil.csv", gkg_file(AT))))
    synced(tmp_path / "store", server)
    assert not list(tmp_path.rglob("evil*"))
    assert len(urls_of(tmp_path / "store")) == 72


def test_a_file_read_from_disk_is_not_fetched(tmp_path: Path, server: MirrorServer) -> None:
    fill(server, quarters(START, 4 * HOURS))
    (tmp_path / f"{stamp(AT)}.gkg.csv.zip").write_bytes(gkg_zip(AT))
    sync_folder(tmp_path / "store", tmp_path / f"{stamp(AT)}.gkg.csv.zip", around=Around(now=noon))
    synced(tmp_path / "store", server)
    assert GKG.format(stamp(AT)) not in server.asked
    assert len(urls_of(tmp_path / "store")) == len(set(urls_of(tmp_path / "store"))) == 72


def test_two_minutes_of_gal_make_one_batch(tmp_path: Path, server: MirrorServer) -> None:
    for minute in (0, 7):
        at = AT + timedelta(minutes=minute)
        server.put(GAL.format(stamp(at)), gal_gz(at))
    done = synced(tmp_path / "store", server, ("gal",), start=AT, end=AT + timedelta(minutes=15))
    assert (done.counts.files, done.gaps) == (2, 0)
    assert asked(tmp_path / "store", "SELECT state FROM batches") == [("read",)]


def gal_paths(*minutes: int) -> list[str]:
    return [GAL.format(stamp(AT + timedelta(minutes=minute))) for minute in minutes]


def put_gal(server: MirrorServer, *minutes: int) -> None:
    for minute in minutes:
        at = AT + timedelta(minutes=minute)
        server.put(GAL.format(stamp(at)), gal_gz(at))


def synced_gal(store: Path, server: MirrorServer, **changes: datetime | None) -> SyncResult:
    """Fetch the articles of one quarter hour, unless `start` is changed."""
    window = {"start": AT, "end": AT + timedelta(minutes=15)} | changes
    around = Around(now=lambda: window.get("now") or NOW, pause_s=0.001)
    return sync_mirror(
        store, start=window["start"], end=window["end"], feeds=("gal",), mirror=server.url,
        around=around,
    )  # fmt: skip


@pytest.mark.parametrize("again", [{}, {"start": None, "end": None}], ids=["same", "last"])
def test_a_late_file_of_a_batch_is_fetched_by_a_later_sync(
    tmp_path: Path, server: MirrorServer, again: dict[str, datetime | None]
) -> None:
    put_gal(server, 0)
    done = synced_gal(tmp_path / "store", server)
    assert (done.counts.files, done.troubles.growing, done.gaps) == (1, 1, 0)
    put_gal(server, 3, 7)
    server.asked.clear()
    assert synced_gal(tmp_path / "store", server, **again).counts.files == 2
    assert not set(gal_paths(0)) & set(server.asked), "what was read is not fetched again"
    settled = AT + timedelta(days=1)
    synced_gal(tmp_path / "store", server, now=settled)
    server.asked.clear()
    done = synced_gal(tmp_path / "store", server, now=settled)
    assert (server.asked, done.troubles.growing) == ([], 0)
    assert len(urls_of(tmp_path / "store")) == 3


def test_a_file_that_fails_leaves_the_others_of_its_batch(
    tmp_path: Path, server: MirrorServer
) -> None:
    put_gal(server, 0, 7)
    server.put(gal_paths(3)[0], Answer(status=500))
    done = synced_gal(tmp_path / "store", server)
    assert (done.counts.files, list(done.troubles.failed)) == (1, [f"gal {AT:%Y-%m-%d %H:%M}"])
    assert asked(tmp_path / "store", "SELECT state FROM batches") == [("part",)]
    put_gal(server, 3)
    done = synced_gal(tmp_path / "store", server, now=NOW + timedelta(days=5))
    assert (done.counts.files, done.troubles.failed) == (2, {})
    assert asked(tmp_path / "store", "SELECT state FROM batches") == [("read",)]


NO_CHECKSUM = {"Content-Type": "application/zip"}
NOT_WHOLE = {
    "an empty file": b"",
    "an empty archive's start": b"PK",
    "a page of a proxy": b"<html>Please log in</html>",
    "two files": zipped(("a.csv", gkg_file(AT)), ("b.csv", gkg_file(AT))),
    "a cut archive": gkg_zip(AT)[:-40],
    "a changed archive": gkg_zip(AT).replace(b"P", b"Q", 1),
}


@pytest.mark.parametrize("body", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_without_a_checksum_damage_is_told_and_fetched_again(
    tmp_path: Path, server: MirrorServer, body: bytes
) -> None:
    fill(server, quarters(START, 4 * HOURS))
    server.put(GKG.format(stamp(AT)), Answer(body=body, headers=NO_CHECKSUM))
    done = synced(tmp_path / "store", server)
    assert (done.counts.bad.total(), done.gaps) == (0, 1)
    assert "the mirror states no MD5" in done.troubles.failed[f"gkg {AT:%Y-%m-%d %H:%M}"]
    server.put(GKG.format(stamp(AT)), Answer(body=gkg_zip(AT), headers=NO_CHECKSUM))
    done = synced(tmp_path / "store", server)
    assert (done.counts.files, done.troubles.failed, done.gaps) == (1, {}, 0)
    assert len(urls_of(tmp_path / "store")) == 72


def test_a_checksum_that_cannot_be_read_is_told(tmp_path: Path, server: MirrorServer) -> None:
    fill(server, quarters(START, 4 * HOURS))
    answer = Answer(body=gkg_zip(AT), headers={"x-goog-hash": "md5=%%%"})
    server.put(GKG.format(stamp(AT)), answer)
    done = synced(tmp_path / "store", server)
    assert "states an invalid MD5" in done.troubles.failed[f"gkg {AT:%Y-%m-%d %H:%M}"]


YEAR = timedelta(days=364)


@pytest.mark.parametrize("both", [True, False], ids=["and before", "only"])
def test_a_clock_that_was_a_year_ahead_does_not_end_going_on(
    tmp_path: Path, server: MirrorServer, both: bool
) -> None:
    store, ahead = tmp_path / "store", NOW + YEAR
    fill(server, [*quarters(START, 4 * HOURS), *quarters(ahead - timedelta(hours=1), 4)])
    if both:
        synced(store, server)
    synced(store, server, start=ahead - timedelta(hours=1), now=ahead)
    later = NOW + timedelta(hours=1)
    fill(server, quarters(NOW, 4))
    if both:
        done = synced(store, server, start=None, now=later)
        assert (done.counts.files, done.ahead) == (4, 4)
    else:
        with pytest.raises(KnowledgeError, match=r"4 batches are dated after[\s\S]*--days 7"):
            synced(store, server, start=None, now=later)
        assert synced(store, server, now=later).counts.files == 4 * HOURS + 4


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (NOW + timedelta(days=1), None, "in the future"),
        (START, START - timedelta(days=1), "reversed"),
        (NOW - timedelta(days=9000), NOW - timedelta(days=8000), "GDELT 2 begins on 2015-02-18"),
    ],
)
def test_windows_that_cannot_be(
    tmp_path: Path, server: MirrorServer, start: datetime, end: datetime | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        synced(tmp_path / "store", server, start=start, end=end)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "url",
    [
        *("http://data.gdeltproject.org", "ftp://x", "gdelt", "https://"),
        *("https://a..b", "https://h:99999"),
    ],
)
def test_no_mirror_without_tls(url: str) -> None:
    with pytest.raises(UsageError, match="not an address of"):
        normalise_mirror_url(url)


def test_the_address_may_have_the_folder_in_it() -> None:
    assert normalise_mirror_url("https://x.example/gdeltv2/") == "https://x.example"


def test_feeds_by_name() -> None:
    assert parse_feeds("mentions, GKG,gkg") == ("gkg", "mentions")
    for names in ("gkg,tweets", ""):
        with pytest.raises(UsageError, match=r"unknown feed 'tweets'|no feed"):
            parse_feeds(names)


OTHER = "rL0Y20zC+Fzt72VPzMSk2A=="


@pytest.mark.parametrize(
    ("headers", "md5"),
    [
        ([("x-goog-hash", "crc32c=x,md5=1B2M2Y8AsgTpgAmY7PhCfg==")], MD5),
        ([("x-goog-hash", "crc32c=x"), ("X-Goog-Hash", "md5=1B2M2Y8AsgTpgAmY7PhCfg==")], MD5),
        ([("x-goog-hash", "md5=1B2M2Y8AsgTpgAmY7PhCfg=="), ("x-goog-hash", "crc32c=x")], MD5),
        ([("ETag", f'"{MD5}"')], MD5),
        ([("ETag", '"5f3-abc"')], None),
        ([("x-goog-hash", "crc32c=x")], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_checksum_that_a_mirror_states(headers: list[tuple[str, str]], md5: str | None) -> None:
    assert read_md5_header(CIMultiDict(headers)) == md5


@pytest.mark.parametrize("word", ["md5=%%%", "md5=", "md5=AAAA", "md5=é",
                                  f"md5=1B2M2Y8AsgTpgAmY7PhCfg==,md5={OTHER}"])  # fmt: skip
def test_a_checksum_that_is_none_is_not_passed_over(word: str) -> None:
    with pytest.raises(ChecksumUnreadable, match=r"an invalid MD5|two different"):
        read_md5_header(CIMultiDict([("x-goog-hash", word), ("ETag", f'"{MD5}"')]))

"""Pages of current events from a wiki's API: what is fetched, when, and how the API misbehaves."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coreeval.errors import RunError, UsageError
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.news_index import NewsIndex
from coreeval.tools.gdelt.local import LocalKnowledge
from coreeval.tools.gdelt.own_files import DOWNLOADS
from coreeval.tools.gdelt.sync import portal_api
from coreeval.tools.gdelt.sync.batches import measure_store_coverage
from coreeval.tools.gdelt.sync.feeds import Feed
from coreeval.tools.gdelt.sync.portal_api import check_contact, normalise_api_url
from coreeval.tools.gdelt.sync.portal_sync import HOPELESS, PortalAccess
from coreeval.tools.gdelt.sync.store_ledger import open_ledger
from coreeval.tools.gdelt.sync.sync import Around, SyncProgress, SyncResult, sync_mirror
from tests.support.mirror_server import Answer, MirrorServer
from tests.support.wiki_server import JSON, WikiServer, failed, page_html, parsed
from tests.tools.gdelt.sync.kit import asked, fill, quarters, rows_of

NOW = datetime(2026, 10, 5, 12, tzinfo=UTC)
DAYS = 6
START = datetime(2026, 9, 30, tzinfo=UTC)
PAGE = "Portal:Current_events/2026_October_2"
"""The page of a day that is to make trouble."""


@pytest.fixture
def wiki() -> Iterator[WikiServer]:
    with WikiServer().running() as running:
        for number in range(DAYS):
            running.put(name_of(START + timedelta(days=number)), html_of(f"day {number}"))
        yield running


def name_of(day: datetime) -> str:
    return f"Portal:Current_events/{day.year}_{day:%B}_{day.day}"


def html_of(*words: str) -> str:
    facts = (f"Voters in Chile elect a new senate, officials say of {word}." for word in words)
    return page_html(*facts)


def synced(
    store: Path,
    wiki: WikiServer,
    *,
    now: datetime = NOW,
    start: datetime | None = START,
    feeds: tuple[Feed, ...] = ("current_events",),
    mirror: str = "https://mirror.example",
) -> SyncResult:
    portal = PortalAccess(contact="me@example.org", url=wiki.url)
    around = Around(now=lambda: now, pause_s=0.001, finish=compact)
    return sync_mirror(store, start=start, feeds=feeds, mirror=mirror, portal=portal, around=around)


def titles(store: Path) -> list[str]:
    """Return the facts that a search has to offer."""
    index = NewsIndex(store)
    found = index.evidence(range(index.stats().articles))
    index.close()
    return sorted(item.title.rpartition(" of ")[2] for item in found)


def test_each_day_is_a_page(tmp_path: Path, wiki: WikiServer) -> None:
    done = synced(tmp_path / "store", wiki)
    assert (done.counts.files, done.counts.articles, done.gaps) == (DAYS, DAYS, 0)
    assert wiki.asked == [name_of(START + timedelta(days=number)) for number in range(DAYS)]
    assert wiki.most_at_once == 1
    assert {query["maxlag"] for query in wiki.queries} == {"5"}
    (agent,) = wiki.agents
    assert agent.startswith("CoreEval/") and "(me@example.org)" in agent
    assert not (tmp_path / "store" / DOWNLOADS).exists()
    assert titles(tmp_path / "store") == [f"day {number}." for number in range(DAYS)]


def test_days_that_may_still_change_are_read_again(tmp_path: Path, wiki: WikiServer) -> None:
    store = tmp_path / "store"
    synced(store, wiki)
    wiki.asked.clear()
    done = synced(store, wiki)
    assert wiki.asked == [name_of(START + timedelta(days=number)) for number in range(2, DAYS)]
    assert (done.counts.files, done.counts.known) == (0, DAYS - 2), "no page has changed"
    wiki.asked.clear()
    synced(store, wiki, now=NOW + timedelta(days=30), start=START)
    assert name_of(START) not in wiki.asked and PAGE in wiki.asked


def test_a_later_version_of_a_page_replaces_the_earlier_one(
    tmp_path: Path, wiki: WikiServer
) -> None:
    store = tmp_path / "store"
    wiki.put(PAGE, html_of("old", "both"), html_of("both", "new"), html_of("old", "both"))
    synced(store, wiki)
    assert {"old.", "both."} < set(titles(store))
    synced(store, wiki)
    assert "old." not in titles(store) and {"both.", "new."} < set(titles(store))
    synced(store, wiki)
    assert {"old.", "both."} < set(titles(store)) and "new." not in titles(store)
    with LocalKnowledge(store, news=store, min_precision="url") as news:
        stats = news.stats()
    assert stats.rows == stats.duplicates + stats.articles + sum(stats.dropped.values())
    with open_ledger(store / "store.db") as ledger:
        (feed,) = measure_store_coverage(ledger, NOW).feeds
    assert [day.articles for day in feed.days] == [1, 1, 2, 1, 1, 1]


def test_a_page_that_lost_its_facts_replaces_nothing(tmp_path: Path, wiki: WikiServer) -> None:
    store = tmp_path / "store"
    wiki.put(PAGE, html_of("kept"), "<p>blanked</p>", page_html())
    synced(store, wiki)
    assert synced(store, wiki).counts.bad == {"layout": 1}
    assert synced(store, wiki).counts.bad.total() == 0
    assert "kept." in titles(store)


def test_days_without_a_page_are_absent(tmp_path: Path, wiki: WikiServer) -> None:
    store = tmp_path / "store"
    for day in (PAGE, name_of(NOW)):
        del wiki.pages[day]
    done = synced(store, wiki)
    assert (done.counts.articles, done.gaps, done.troubles.late) == (DAYS - 2, 1, 1)
    assert done.troubles.failed == {}
    assert tuple(asked(store, "SELECT state FROM batches WHERE state <> 'read'")) == (("missing",),)


def test_a_day_without_events_is_read(tmp_path: Path, wiki: WikiServer) -> None:
    wiki.put(PAGE, page_html())
    done = synced(tmp_path / "store", wiki)
    assert (done.counts.files, done.counts.articles, done.gaps) == (DAYS, DAYS - 1, 0)
    assert done.counts.bad.total() == 0


def test_it_goes_on_from_the_newest_page(tmp_path: Path, wiki: WikiServer) -> None:
    store = tmp_path / "store"
    synced(store, wiki)
    wiki.asked.clear()
    synced(store, wiki, now=NOW + timedelta(days=2), start=None)
    days = [START + timedelta(days=number) for number in range(2, DAYS + 2)]
    assert wiki.asked == [name_of(day) for day in days]


def test_what_was_read_before_a_failure_is_kept(tmp_path: Path, wiki: WikiServer) -> None:
    store = tmp_path / "store"
    later = [START + timedelta(days=number) for number in range(3, DAYS)]
    html = {name_of(day): wiki.pages[name_of(day)] for day in later}
    for name in html:
        wiki.put(name, Answer(status=403))
    with pytest.raises(RunError, match="cannot be fetched: HTTP 403"):
        synced(store, wiki)
    wiki.pages.update(html)
    assert synced(store, wiki).troubles.failed == {}
    assert titles(store) == [f"day {number}." for number in range(DAYS)]


def test_a_stop_keeps_what_was_read(tmp_path: Path, wiki: WikiServer) -> None:
    store = tmp_path / "store"

    def interrupt(at: SyncProgress) -> None:
        if at.done == 1:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    portal = PortalAccess(contact="me@example.org", url=wiki.url)
    around = Around(now=lambda: NOW, pause_s=0.001, watch=interrupt)
    done = sync_mirror(store, start=START, feeds=("current_events",), portal=portal, around=around)
    assert done.stopped
    read = len(rows_of(store))
    wiki.asked.clear()
    done = synced(store, wiki)
    assert len(rows_of(store)) == DAYS and done.counts.articles == DAYS - read


def test_facts_and_a_mirror_are_synced_together(tmp_path: Path, wiki: WikiServer) -> None:
    store, hour = tmp_path / "store", NOW - timedelta(hours=1)
    with MirrorServer().running() as mirror:
        fill(mirror, quarters(hour, 4), ("gal",))
        done = synced(store, wiki, start=hour, feeds=("gal", "current_events"), mirror=mirror.url)
    assert done.counts.articles > 1 and done.troubles.failed == {}
    assert {row["feed"] for row in rows_of(store)} == {"gal", "current_events"}


# -- an API that misbehaves -----------------------------------------------------------------------

GOOD = parsed(PAGE, html_of("trouble"))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=429, headers={"Retry-After": "0"}),
        Answer(status=503, headers={"Retry-After": "0"}),
        Answer(status=500, body=b"<html>down</html>"),
        failed("maxlag", **{"Retry-After": "0"}),
        failed("ratelimited"),
        failed("internal_api_error_DBQueryError"),
        Answer(body=b"<!DOCTYPE html><p>busy</p>", headers={"Content-Type": "text/html"}),
        Answer(body=GOOD.body[:-20], headers=JSON),
        Answer(body=GOOD.body, cut=True, headers=JSON),
        Answer(body=b"", headers=JSON),
        Answer(body=b"[" * 100_000, headers=JSON),
    ],
)
def test_a_failure_that_may_pass_is_tried_again(
    tmp_path: Path, wiki: WikiServer, answer: Answer
) -> None:
    wiki.put(PAGE, answer, answer, GOOD)
    done = synced(tmp_path / "store", wiki)
    assert done.troubles.failed == {} and done.counts.articles == DAYS
    assert wiki.asked.count(PAGE) == 3


@pytest.mark.parametrize(
    ("answer", "told", "times"),
    [
        (Answer(status=404), "HTTP 404", 1),
        (Answer(status=302, headers={"Location": "https://other.example/x"}), "other.example", 1),
        (Answer(status=301, headers={"Location": "http://["}), "HTTP 301", 1),
        (Answer(status=429, headers={"Retry-After": "86400"}), "a pause of 86,400 s", 1),
        (Answer(status=503), "HTTP 503", portal_api.ATTEMPTS),
        (failed("readonly"), "readonly", portal_api.ATTEMPTS),
        (failed("badvalue"), "badvalue", 1),
        (Answer(body=b'{"batchcomplete": true}', headers=JSON), "MediaWiki", 1),
        (Answer(body=b"[]", headers=JSON), "MediaWiki", 1),
        (parsed("Portal:Current_events/2026_May_1", html_of("x")), "another page", 1),
        (Answer(body=b"x" * (portal_api.MOST_BYTES + 1), headers=JSON), "more than 4 MiB", 1),
    ],
)
def test_a_failure_that_does_not_pass_is_told(
    tmp_path: Path, wiki: WikiServer, answer: Answer, told: str, times: int
) -> None:
    wiki.put(PAGE, answer)
    done = synced(tmp_path / "store", wiki)
    (why,) = done.troubles.failed.values()
    assert told in why
    assert wiki.asked.count(PAGE) == times
    assert done.counts.articles == DAYS - 1
    wiki.pages[PAGE] = [GOOD]
    assert synced(tmp_path / "store", wiki).troubles.failed == {}
    assert "trouble." in titles(tmp_path / "store")


def test_an_answer_without_end_is_cut_off(
    tmp_path: Path, wiki: WikiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portal_api, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(portal_api, "ATTEMPTS", 2)
    wiki.put(PAGE, Answer(hang=True))
    done = synced(tmp_path / "store", wiki)
    assert list(done.troubles.failed) == ["current_events 2026-10-02"]


def test_a_redirect_is_not_followed(tmp_path: Path, wiki: WikiServer) -> None:
    with WikiServer().running() as other:
        wiki.put(PAGE, Answer(status=307, headers={"Location": other.url}))
        synced(tmp_path / "store", wiki)
        assert other.asked == []


def test_a_page_that_is_a_redirect_is_of_another_layout(tmp_path: Path, wiki: WikiServer) -> None:
    wiki.put(PAGE, '<div class="redirectMsg"><ul><li><a href="/wiki/X">X</a></li></ul></div>')
    assert synced(tmp_path / "store", wiki).counts.bad == {"layout": 1}


def test_the_service_is_given_up_after_some_days_in_a_row(tmp_path: Path, wiki: WikiServer) -> None:
    wiki.pages = {name: [Answer(status=403)] for name in wiki.pages}
    with pytest.raises(RunError, match="cannot be fetched: HTTP 403"):
        synced(tmp_path / "store", wiki)
    assert len(wiki.asked) == HOPELESS


def test_a_proxy_that_is_none(
    tmp_path: Path, wiki: WikiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "nonsense://user:secret@proxy.example")
    with pytest.raises(RunError) as caught:
        synced(tmp_path / "store", wiki)
    assert "secret" not in str(caught.value)


def test_the_same_revision_gives_the_same_bytes() -> None:
    page = json.loads(GOOD.body)["parse"]
    again = {**page, "pageid": 8, "parsedtime": "now"}
    day = datetime(2026, 10, 2).date()
    assert portal_api._to_page(page, day) == portal_api._to_page(again, day)


@pytest.mark.parametrize("contact", ["me@example.org", " https://example.org/me "])
def test_contacts(contact: str) -> None:
    assert check_contact(contact) == contact.strip()


@pytest.mark.parametrize(
    "contact", [None, "", "me", "me@here", "a b@example.org", "me@example.org\r\nX: 1", "(x)@y.z",
                "https://" + "x" * 300, "m\u00e9@example.org"],
)  # fmt: skip
def test_contacts_that_are_none(contact: str | None) -> None:
    with pytest.raises(UsageError, match="contact"):
        check_contact(contact)


@pytest.mark.parametrize(
    "url",
    ["http://wiki.example/w/api.php", "https://u:p@wiki.example/", "ftp://x", "", "https://["],
)
def test_addresses_that_are_no_api(url: str) -> None:
    with pytest.raises(UsageError, match="the API of a wiki"):
        normalise_api_url(url)


def test_without_the_feed_no_contact_is_needed(tmp_path: Path) -> None:
    with MirrorServer().running() as mirror:
        around = Around(now=lambda: NOW, pause_s=0.001)
        start = NOW - timedelta(hours=1)
        done = sync_mirror(tmp_path / "s", start=start, feeds=("gal",), mirror=mirror.url,
                           around=around)  # fmt: skip
    assert done.counts.articles == 0

from datetime import UTC, datetime

import pytest

from coreeval.tools.gdelt.rows import (
    canonical,
    date_in_url,
    evidence_id,
    host_of,
    is_front_page,
    parse_stamp,
    plausible_time,
)

SEEN = datetime(2026, 5, 30, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("20260610033000", datetime(2026, 6, 10, 3, 30, tzinfo=UTC)),
        ("20260610T033000Z", datetime(2026, 6, 10, 3, 30, tzinfo=UTC)),
        ("2026-06-10T03:30:00.000Z", datetime(2026, 6, 10, 3, 30, tzinfo=UTC)),
        ("2026-06-10 03:30:00 UTC", datetime(2026, 6, 10, 3, 30, tzinfo=UTC)),
        ("2026-06-10T03:30:00+02:00", datetime(2026, 6, 10, 1, 30, tzinfo=UTC)),
        ("2026-06-10", datetime(2026, 6, 10, tzinfo=UTC)),
        ("20261310033000", None),
        ("2026-06-10T03:30:00 CEST", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_stamps(stamp: str, time: datetime | None) -> None:
    assert parse_stamp(stamp) == time


@pytest.mark.parametrize(
    ("url", "day"),
    [
        ("https://a.example/2026/05/30/news", datetime(2026, 5, 30, tzinfo=UTC)),
        ("https://a.example/2026/5/3/news", datetime(2026, 5, 3, tzinfo=UTC)),
        ("https://a.example/world/2025/oct/14/news", datetime(2025, 10, 14, tzinfo=UTC)),
        ("https://a.example/content/2026-05-29-news", datetime(2026, 5, 29, tzinfo=UTC)),
        ("https://a.example/2019/03/01/old", datetime(2019, 3, 1, tzinfo=UTC)),
        ("https://a.example/2026/05/31/tomorrow", None),
        ("https://a.example/1914/07/28/war", None),
        ("https://a.example/2026/02/30/no-such-day", None),
        ("https://a.example/2026/05/", None),
        ("https://a.example/x?from=2026-05-01", None),
        ("https://a.example/id-12026-05-011", None),
    ],
)
def test_a_date_in_the_url(url: str, day: datetime | None) -> None:
    assert date_in_url(url, SEEN) == day


def test_a_stated_time_is_never_after_the_crawl() -> None:
    tomorrow, next_week = datetime(2026, 5, 31, 9, tzinfo=UTC), datetime(2026, 6, 7, tzinfo=UTC)
    assert plausible_time(tomorrow, SEEN) == SEEN
    assert plausible_time(next_week, SEEN) is None
    assert plausible_time(datetime(1970, 1, 1, tzinfo=UTC), SEEN) is None
    assert plausible_time(None, SEEN) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://www.a.example/news/one",
        "https://a.example:443/news/one/",
        "https://amp.a.example/news/one#top",
        "https://m.a.example/news/one/amp/",
        "https://a.example/amp/news/one?utm_source=x&fbclid=y",
    ],
)
def test_one_article_has_one_id(url: str) -> None:
    assert canonical(url) == "a.example/news/one"
    assert evidence_id(url) == evidence_id("https://a.example/news/one")


def test_parameters_that_name_the_article_stay() -> None:
    assert canonical("https://a.example/s?b=2&id=1&utm_x=3") == "a.example/s?b=2&id=1"
    assert evidence_id("https://a.example/s?id=1") != evidence_id("https://a.example/s?id=2")
    assert canonical("https://a.example/example") == "a.example/example"


def test_hosts_and_front_pages() -> None:
    assert host_of("https://www.A.example/x") == "a.example"
    assert host_of("BBC Monitoring") == host_of("https://[broken") == ""
    assert is_front_page("https://gcap.global/")
    assert not is_front_page("https://a.example/?p=12")

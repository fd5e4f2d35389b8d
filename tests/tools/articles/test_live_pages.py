"""Pages are fetched only where the host allows it, politely, and within limits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from coreeval.config.credentials import hide_url_credentials
from coreeval.tools.articles.article_text import ArticleText, NoText, TextRetrieval
from tests.support.news_site import (
    BODY,
    GERMAN,
    FastTime,
    NewsSite,
    always,
    article_page,
    bomb,
    endless,
    hang,
    network_of,
    news_site,
    page,
    status,
)
from tests.tools.articles.kit import evidence, texts_of

CONTACT = "https://example.org/bot"


@pytest.fixture
async def site() -> AsyncIterator[NewsSite]:
    async with news_site() as opened:
        yield opened


class Reader:
    """Fetches pages of a site."""

    def __init__(self, caches: Path) -> None:
        self.caches, self.time = caches, FastTime()
        self.addresses = dict[str, str]()
        self.config: dict[str, object] = {"fetch": True, "contact": CONTACT, "timeout_s": 20}

    async def all(self, *urls: str) -> TextRetrieval:
        network = network_of(self.addresses, self.time)
        async with texts_of(self.caches, network, config=self.config) as texts:
            return await texts.fetch_texts([evidence(url) for url in urls])

    async def one(self, url: str) -> ArticleText | NoText:
        (found,) = (await self.all(url)).by_id.values()
        return found

    async def why(self, url: str) -> tuple[str, str]:
        found = await self.one(url)
        assert isinstance(found, NoText), found
        return found.reason, found.detail


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


async def test_a_page_that_may_be_read_gives_its_text(site: NewsSite, reader: Reader) -> None:
    found = await reader.one(site.url("open.test"))
    assert isinstance(found, ArticleText)
    assert all(part in found.text for part in BODY)
    assert "Imprint" not in found.text
    assert (found.source, found.language, found.publisher) == ("web", "en", "The Lenn Herald")
    assert (found.date_source, found.published_precision) == ("stated", "exact")
    assert found.published_at.isoformat() == "2026-10-05T06:30:00+00:00"
    assert len(found.text_sha256) == 64
    (headers,) = site.headers
    assert headers["User-Agent"].startswith("coreeval/")
    assert CONTACT in headers["User-Agent"]


async def test_a_text_is_kept_and_the_page_not_fetched_again(
    site: NewsSite, reader: Reader
) -> None:
    first = await reader.one(site.url("open.test"))
    assert await reader.one(site.url("open.test")) == first
    assert site.asked["open.test"] == ["/robots.txt", "/2026/ferry"]


async def test_robots_is_read_once_a_day(site: NewsSite, reader: Reader) -> None:
    site.robots["open.test"] = "User-agent: *\nDisallow: /private\n"
    await reader.all(site.url("open.test", "/a"), site.url("open.test", "/b"))
    assert site.asked["open.test"].count("/robots.txt") == 1
    reader.time.now += 25 * 3600
    await reader.one(site.url("open.test", "/c"))
    assert site.asked["open.test"].count("/robots.txt") == 2


@pytest.mark.parametrize(
    ("robots", "reason"),
    [
        ("User-agent: *\nDisallow: /\n", "forbidden"),
        ("User-agent: coreeval\nDisallow: /2026/\n", "forbidden"),
        ("User-agent: coreeval\nAllow: /\n\nUser-agent: *\nDisallow: /\n", "forbidden"),
        ("User-agent: *\nDisallow: /*/ferry$\n", "forbidden"),
        ("User-agent: GPTBot\nDisallow: /\n", "opted_out"),
        ("User-agent: CCBot\nUser-agent: Google-Extended\nDisallow: /\n", "opted_out"),
        ("User-agent: ClaudeBot\nDisallow: /2026\n", "opted_out"),
        ("User-agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /\n", "opted_out"),
        ("User-Agent: *\nContent-Usage: train-ai=n\nAllow: /\n", "opted_out"),
        ("User-agent: *\nCrawl-delay: 3600\n", "host_busy"),
    ],
)
async def test_robots_that_forbids_is_obeyed(
    robots: str, reason: str, site: NewsSite, reader: Reader
) -> None:
    site.robots["no.test"] = robots
    assert (await reader.why(site.url("no.test")))[0] == reason
    assert site.asked["no.test"] == ["/robots.txt"]


@pytest.mark.parametrize(("number", "allowed"), [(403, True), (404, True), (500, False)])
async def test_a_robots_that_is_not_there_allows_and_one_out_of_reach_forbids(
    number: int, allowed: bool, site: NewsSite, reader: Reader
) -> None:
    site.answers["robots x.test"] = status(number)
    found = await reader.one(site.url("x.test"))
    if isinstance(found, NoText):
        assert not allowed and found.reason == "robots_unknown"
        assert site.asked["x.test"] == ["/robots.txt"]
    else:
        assert allowed


async def test_a_robots_that_never_ends_is_read_as_far_as_500_kib(
    site: NewsSite, reader: Reader
) -> None:
    long = "User-agent: *\n" + "Disallow: /elsewhere\n" * 100_000 + "Disallow: /\n"
    site.robots["long.test"] = long
    assert isinstance(await reader.one(site.url("long.test")), ArticleText)


@pytest.mark.parametrize(
    "head",
    [
        '<meta name="robots" content="index, NOAI">',
        '<meta name="tdm-reservation" content="1">',
        '<meta name="robots" content="noimageai">',
    ],
)
async def test_a_page_whose_metadata_forbid_mining_is_left_alone(
    head: str, site: NewsSite, reader: Reader
) -> None:
    site.answers["x.test"] = always(lambda: page(article_page(head=head)))
    assert (await reader.why(site.url("x.test")))[0] == "opted_out"


@pytest.mark.parametrize(
    "header",
    [{"X-Robots-Tag": "noai"}, {"X-Robots-Tag": "otherbot: noimageai"}, {"TDM-Reservation": "1"}],
)
async def test_a_header_that_forbids_mining_is_obeyed(
    header: dict[str, str], site: NewsSite, reader: Reader
) -> None:
    site.answers["x.test"] = always(lambda: page(article_page(), **header))
    assert (await reader.why(site.url("x.test")))[0] == "opted_out"


async def test_pages_of_a_host_are_fetched_one_by_one_with_pauses(
    site: NewsSite, reader: Reader
) -> None:
    site.robots["open.test"] = "User-agent: *\nCrawl-delay: 7\n"
    await reader.all(*(site.url("open.test", f"/{n}") for n in range(4)))
    assert site.most_open["open.test"] == 1
    assert reader.time.slept == pytest.approx([7, 7, 7])
    reader.time.slept.clear()
    await reader.all(*(site.url("plain.test", f"/{n}") for n in range(2)))
    assert reader.time.slept == pytest.approx([5])


async def test_a_short_pause_is_waited_for_and_the_page_asked_again(
    site: NewsSite, reader: Reader
) -> None:
    answers = [status(429, Retry_After="20"), always(lambda: page(article_page()))]

    async def limited(request: web.Request) -> web.StreamResponse:
        return await answers.pop(0)(request)

    site.answers["x.test"] = limited
    assert isinstance(await reader.one(site.url("x.test")), ArticleText)
    assert reader.time.slept == pytest.approx([20])


@pytest.mark.parametrize("number", [429, 503])
async def test_a_host_that_asks_for_a_long_pause_is_left_alone(
    number: int, site: NewsSite, reader: Reader
) -> None:
    site.answers["x.test"] = status(number, Retry_After="7200")
    found = await reader.all(site.url("x.test", "/a"), site.url("x.test", "/b"))
    assert found.count_reasons() == {"host_busy": 2}
    assert site.asked["x.test"] == ["/robots.txt", "/a"]
    reader.time.now += 7201
    assert (await reader.why(site.url("x.test", "/b")))[0] == "host_busy"
    assert site.asked["x.test"][-1] == "/b"


async def test_a_host_has_a_daily_cap(site: NewsSite, reader: Reader) -> None:
    reader.config["pages_a_day"] = 2
    found = await reader.all(*(site.url("open.test", f"/{n}") for n in range(3)))
    assert found.count_reasons() == {"daily_cap": 1}
    reader.time.now += 24 * 3600
    assert isinstance(await reader.one(site.url("open.test", "/2")), ArticleText)


async def test_a_host_that_hangs_costs_its_time_limit(site: NewsSite, reader: Reader) -> None:
    site.answers["x.test"] = site.answers["robots y.test"] = hang
    reader.config["timeout_s"] = 0.3
    assert await reader.why(site.url("x.test")) == ("unreachable", "after 0.3 s")
    assert (await reader.why(site.url("y.test")))[0] == "robots_unknown"


async def test_no_page_is_asked_for_after_the_deadline(site: NewsSite, reader: Reader) -> None:
    site.answers["x.test"] = hang
    reader.config |= {"timeout_s": 0.5, "deadline_s": 0.2}
    found = await reader.all(*(site.url("x.test", f"/{n}") for n in range(3)))
    assert found.count_reasons() == {"unreachable": 1, "out_of_time": 2}


async def test_a_page_without_an_end_is_too_large(site: NewsSite, reader: Reader) -> None:
    site.answers |= {"x.test": endless, "y.test": bomb}
    assert await reader.why(site.url("x.test")) == ("too_large", "more than 5 MiB")
    assert await reader.why(site.url("y.test")) == ("too_large", "more than 5 MiB")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(403), "refused"),
        (status(402), "refused"),
        (status(404), "gone"),
        (status(500), "unreachable"),
        (status(200, Content_Type="application/pdf"), "not_html"),
        (status(200, Content_Type="text/html", Content_Encoding="br"), "unreadable"),
        (status(302), "gone"),
    ],
)
async def test_what_is_no_page_has_a_reason(
    answer: object, reason: str, site: NewsSite, reader: Reader
) -> None:
    site.answers["x.test"] = answer  # type: ignore[assignment]
    assert (await reader.why(site.url("x.test")))[0] == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (article_page(body=(*BODY[:3], "Subscribe now to continue reading this story.")), "wall"),
        (article_page("Are you a robot?", ("Please complete the captcha.",)), "wall"),
        (article_page(head='<script type="application/ld+json">{"isAccessibleForFree": false}'
                           "</script>"), "wall"),
        (article_page(body=BODY[:1]), "too_short"),
        (article_page("Markt", GERMAN, language="de"), "other_title"),
        (article_page(body=(TITLE_IN_GERMAN := "Harbour ferry service repairs", *GERMAN)),
         "other_language"),
        (article_page(date="2024-03-01"), "other_date"),
        ("", "unreadable"),
    ],
)  # fmt: skip
async def test_a_page_that_is_not_the_article_has_a_reason(
    text: str, reason: str, site: NewsSite, reader: Reader
) -> None:
    site.answers["x.test"] = always(lambda: page(text))
    assert (await reader.why(site.url("x.test")))[0] == reason


async def test_a_redirect_obeys_the_other_host(site: NewsSite, reader: Reader) -> None:
    site.answers["x.test"] = status(301, Location=site.url("forbidding.test"))
    site.answers["y.test"] = status(302, Location=site.url("open.test"))
    site.robots["forbidding.test"] = "User-agent: *\nDisallow: /\n"
    assert (await reader.why(site.url("x.test")))[0] == "forbidden"
    found = await reader.one(site.url("y.test"))
    assert isinstance(found, ArticleText)
    assert found.url == site.url("open.test")


async def test_redirects_end(site: NewsSite, reader: Reader) -> None:
    site.answers["x.test"] = status(302, Location="/again")
    assert (await reader.why(site.url("x.test")))[0] == "redirects"


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/",
        "http://[::ffff:127.0.0.1]:{port}/", "http://2130706433/", "http://inside.test:{port}/",
        "http://inside6.test/", "file:///etc/passwd", "http://user:word@open.test:{port}/",
        "https://xn--axn--/x", "http://[:]/x", "//[", "http://[::1]\u2100@",
    ],
)  # fmt: skip
async def test_a_redirect_into_this_network_is_not_followed(
    target: str, site: NewsSite, reader: Reader
) -> None:
    reader.addresses = {"inside.test": "127.0.0.1", "inside6.test": "fe80::1"}
    reader.addresses["2130706433"] = "127.0.0.1"
    site.answers["x.test"] = status(302, Location=target.format(port=site.port))
    assert (await reader.why(site.url("x.test")))[0] == "address"
    assert set(site.asked) == {"x.test"}


async def test_an_address_without_its_credential_is_not_asked(
    site: NewsSite, reader: Reader
) -> None:
    url = site.url("open.test", "/2026/ferry?token=abcdef")
    assert (await reader.why(hide_url_credentials(url)))[0] == "address"
    assert site.asked["open.test"] == []


async def test_an_address_of_this_network_is_not_asked(site: NewsSite, reader: Reader) -> None:
    reader.addresses = {"inside.test": "10.0.0.5"}
    assert (await reader.why(site.url("inside.test")))[0] == "address"
    assert (await reader.why(f"http://127.0.0.1:{site.port}/2026/x"))[0] == "address"


async def test_cookies_are_not_sent_back(site: NewsSite, reader: Reader) -> None:
    cookie = {"Set-Cookie": "visits=1; Path=/"}
    site.answers["x.test"] = always(lambda: page(article_page(), **cookie))
    await reader.all(site.url("x.test", "/a"), site.url("x.test", "/b"))
    assert len(site.headers) == 2
    assert not any("Cookie" in headers for headers in site.headers)


async def test_hosts_are_asked_at_the_same_time(site: NewsSite, reader: Reader) -> None:
    met = asyncio.Barrier(3)

    async def together(_request: web.Request) -> web.Response:
        await met.wait()
        return page(article_page())

    site.answers |= dict.fromkeys(("a.test", "b.test", "c.test"), together)
    found = await reader.all(*(site.url(host) for host in ("a.test", "b.test", "c.test")))
    assert found.count_sources() == {"web": 3}


async def test_a_page_that_several_want_is_fetched_once(site: NewsSite, reader: Reader) -> None:
    network = network_of(time=reader.time)
    async with texts_of(reader.caches, network, config=reader.config) as texts:
        item = evidence(site.url("open.test"))
        found = await asyncio.gather(*(texts.fetch_texts([item]) for _ in range(5)))
    assert [each.count_sources() for each in found] == [{"web": 1}] * 5
    assert site.asked["open.test"] == ["/robots.txt", "/2026/ferry"]


async def test_a_proxy_of_the_environment_is_not_used(
    site: NewsSite, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    found = await reader.all(site.url("open.test"))
    assert found.count_sources() == {"web": 1}
    assert "Pages are fetched without the environment's proxy" in found.notes[0]


async def test_a_page_without_a_text_is_not_fetched_again_on_the_same_day(
    site: NewsSite, reader: Reader
) -> None:
    site.answers["x.test"] = status(404)
    first = await reader.why(site.url("x.test"))
    assert await reader.why(site.url("x.test")) == first
    assert site.asked["x.test"] == ["/robots.txt", "/2026/ferry"]

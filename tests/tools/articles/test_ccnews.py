"""Pages in WARC files: found by URL and time of crawl, also in damaged files."""

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import KnowledgeError
from coreeval.tools.articles import ccnews
from coreeval.tools.articles.article_text import ArticleText, NoText, TextRetrieval
from coreeval.tools.articles.file_index import FileTally
from tests.support.news_site import BODY, article_page
from tests.tools.articles.kit import ARTICLES, evidence, texts_of

URL = "https://herald.example/2026/ferry"
PAGE = article_page()


def record(
    url: str = URL,
    body: bytes | str = PAGE,
    *,
    seen: str = "2026-10-05T08:00:00Z",
    status: int = 200,
    headers: Sequence[str] = ("Content-Type: text/html",),
) -> bytes:
    """Return a record as Common Crawl writes them: each packed by itself."""
    content = body.encode() if isinstance(body, str) else body
    http = "\r\n".join([f"HTTP/1.1 {status} X", *headers, "", ""]).encode() + content
    head = [
        "WARC/1.0", "WARC-Type: response", f"WARC-Target-URI: {url}", f"WARC-Date: {seen}",
        "WARC-Record-ID: <urn:uuid:0a6e5e2c-0000-4000-8000-000000000000>",
        "Content-Type: application/http; msgtype=response", f"Content-Length: {len(http)}",
    ]  # fmt: skip
    return gzip.compress("\r\n".join([*head, "", ""]).encode() + http + b"\r\n\r\n")


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(records))
    return path


async def found_in(folder: Path, *files: Path, url: str = URL) -> TextRetrieval:
    async with texts_of(folder / "caches", ccnews=[*map(str, files)]) as texts:
        return await texts.fetch_texts([evidence(url)])


def only(found: TextRetrieval) -> ArticleText | NoText:
    (result,) = found.by_id.values()
    return result


async def test_a_last_record_with_an_odd_address_refuses_no_archive(tmp_path: Path) -> None:
    file = write(tmp_path / "a.warc.gz", record(), record("https://x.example/\x7f", seen="never"))
    assert isinstance(only(await found_in(tmp_path, file)), ArticleText)


async def test_a_page_is_found_among_others(tmp_path: Path) -> None:
    others = [record(f"https://other.example/{number}", "x") for number in range(50)]
    file = write(tmp_path / "a.warc.gz", *others[:20], record(), *others[20:])
    result = only(await found_in(tmp_path, file))
    assert isinstance(result, ArticleText)
    assert all(part in result.text for part in BODY)
    assert (result.source, result.date_source) == ("ccnews", "stated")


async def test_a_text_is_kept_when_the_file_is_gone(tmp_path: Path) -> None:
    file = write(tmp_path / "a.warc.gz", record())
    first = only(await found_in(tmp_path, file))
    file.unlink()
    assert only(await found_in(tmp_path)) == first


async def test_a_file_is_scanned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, urls = tmp_path / "a.warc.gz", [f"https://herald.example/{n}" for n in range(10)]
    write(file, *map(record, urls))
    scans = list[Path]()
    scan = ccnews.scan_records

    def counted(path: Path, tally: FileTally) -> object:
        scans.append(path)
        return scan(path, tally)

    monkeypatch.setattr("coreeval.tools.articles.sources.scan_records", counted)
    async with texts_of(tmp_path / "caches", ccnews=[str(file)]) as texts:
        for url in urls:
            assert (await texts.fetch_texts([evidence(url)])).count_sources() == {"ccnews": 1}
    assert scans == [file]


async def test_the_first_capture_after_the_article_is_read(tmp_path: Path) -> None:
    early = record(body=article_page("Timetable"), seen="2026-09-01T00:00:00Z")
    late = record(body=article_page(body=(*BODY, "A correction.")), seen="2026-11-01T00:00:00Z")
    file = write(tmp_path / "a.warc.gz", early, late, record())
    result = only(await found_in(tmp_path, file))
    assert isinstance(result, ArticleText)
    assert "A correction." not in result.text
    result = only(await found_in(tmp_path / "b", write(tmp_path / "b.warc.gz", early)))
    assert isinstance(result, NoText) and result.reason == "not_found"


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (record(status=404), "gone"),
        (record(headers=["Content-Type: application/pdf"]), "not_html"),
        (record(headers=["Content-Type: text/html", "X-Robots-Tag: noai"]), "opted_out"),
        (record(headers=["Content-Type: text/html", "tdm-reservation: 1"]), "opted_out"),
        (record(body=b" " * (6 << 20)), "too_large"),
        (record(headers=["Content-Type: text/html", "Content-Encoding: gzip"],
                body=gzip.compress(bytes(200 << 20))), "too_large"),
        (record(headers=["Content-Type: text/html", "Content-Encoding: gzip"], body=b"none"),
         "unreadable"),
        (record(body=b""), "unreadable"),
    ],
)  # fmt: skip
async def test_a_record_that_is_no_article_has_a_reason(
    one: bytes, reason: str, tmp_path: Path
) -> None:
    result = only(await found_in(tmp_path, write(tmp_path / "a.warc.gz", one)))
    assert isinstance(result, NoText)
    assert result.reason == reason


async def test_a_packed_page_is_unpacked(tmp_path: Path) -> None:
    packed = record(
        headers=["Content-Type: text/html", "Content-Encoding: gzip"],
        body=gzip.compress(PAGE.encode()),
    )
    result = only(await found_in(tmp_path, write(tmp_path / "a.warc.gz", packed)))
    assert isinstance(result, ArticleText)


@pytest.mark.parametrize("kept", [0.5, 0.97])
async def test_a_file_that_is_cut_off_gives_what_it_has(kept: float, tmp_path: Path) -> None:
    long = record("https://other.example/x", bytes(range(256)) * 2000)
    whole = record() + long
    file = write(tmp_path / "a.warc.gz", whole[: int(len(record()) + kept * len(long))])
    found = await found_in(tmp_path, file)
    assert isinstance(only(found), ArticleText)
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"{file}: reading stopped after")


async def test_a_file_damaged_in_the_middle_gives_what_comes_before(tmp_path: Path) -> None:
    file = write(tmp_path / "a.warc.gz", record(), b"\0" * 500, record("https://b.example/x"))
    found = await found_in(tmp_path, file)
    assert isinstance(only(found), ArticleText)
    assert len(found.notes) == 1


async def test_a_file_of_another_kind_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="this file contains no web archive pages") as caught:
        await found_in(tmp_path, write(tmp_path / "a.warc.gz", b"something else\n" * 99))
    assert caught.value.where.endswith("a.warc.gz")


async def test_real_pages_are_read(tmp_path: Path) -> None:
    file = ARTICLES / "CC-NEWS-20260701000000-00001.sample.warc.gz"
    if not file.exists():
        pytest.skip("the development data is not beside this checkout")
    tally = FileTally()
    assert len(list(ccnews.scan_records(file, tally))) == 40
    assert (tally.rows, tally.damage) == (40, "")
    url = "https://globalnews.ca/news/11862251/russia-missile-attack-kyiv-ukraine/"
    async with texts_of(tmp_path, ccnews=[str(file.parent)]) as texts:
        found = await texts.fetch_texts(
            [evidence(url, "Russia hits Kyiv with missile", at=datetime(2026, 5, 25, tzinfo=UTC))]
        )
    result = only(found)
    assert isinstance(result, ArticleText)
    assert f"{result.published_at:%Y-%m-%d}" == "2026-05-24"
    assert (result.publisher, result.published_precision) == ("Global News", "exact")

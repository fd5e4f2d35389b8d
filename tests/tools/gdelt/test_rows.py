import gzip
import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.config.credentials import hide_url_credentials
from coreeval.tools.gdelt import rows
from coreeval.tools.gdelt.rows import (
    FileDamage,
    Kind,
    canonical,
    classify_lines,
    date_in_url,
    evidence_id,
    find_files,
    first_lines,
    host_of,
    is_front_page,
    parse_stamp,
    read_lines,
)
from coreeval.tools.gdelt.sync.file_reader import line_groups
from tests.tools.gdelt.file_samples import gal_line, gkg_line, listed, write, write_artlist

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
        ("0001-01-01T00:00:00Z", None),
        ("19700101000000", None),
        ("1995-01-01", datetime(1995, 1, 1, tzinfo=UTC)),
        ("99991231T235959Z", None),
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


@pytest.mark.parametrize(
    "url",
    [
        "http://www.a.example/news/one",
        "https://a.example:443/news/one/",
        "https://amp.a.example/news/one#top",
        "https://m.a.example/news/one/amp/",
        "https://a.example/amp/news/one?utm_source=x&fbclid=y",
        "https://a.example/news/one?mc_cid=1&amp=1",
        "https://a.example/news/one?outputType=amp&GCLID=z",
    ],
)
def test_one_article_has_one_id(url: str) -> None:
    assert canonical(url) == "a.example/news/one"
    assert evidence_id(url) == evidence_id("https://a.example/news/one")


def test_parameters_that_name_the_article_stay() -> None:
    assert canonical("https://a.example/s?b=2&id=1&utm_x=3") == "a.example/s?b=2&id=1"
    assert evidence_id("https://a.example/s?id=1") != evidence_id("https://a.example/s?id=2")
    assert canonical("https://a.example/example") == "a.example/example"


@pytest.mark.parametrize(
    "place",
    ["?cid=", "?source=", "?src=", "?ref=", "?partner=", "?share=", "?feed=", "?rss=", "?cmp=",
     "?output=", "?ns_id=", "?at_id=", "?amp=4", "?id=%B0%A", "#/news/", "#!news/", "#!/?id="],
)  # fmt: skip
def test_two_addresses_are_two_articles(place: str) -> None:
    one, other = (f"https://a.example/view.php{place}{number}" for number in (1, 2))
    assert evidence_id(one) != evidence_id(other)


def test_the_order_of_values_of_one_parameter_counts() -> None:
    assert canonical("https://a.example/s?b=2&a=9&a=1") == "a.example/s?a=9&a=1&b=2"


@pytest.mark.parametrize("name", ["article_key", "articleKey", "token", "secret", "auth", "q"])
def test_an_address_without_its_credential_keeps_its_id(name: str) -> None:
    values = ("20260102010001", "20260102010002", "sk-abcdef1234567890")
    urls = [f"https://a.example/view.php?{name}={value}" for value in values]
    ids = [evidence_id(url) for url in urls]
    assert len(set(ids)) == len(urls)
    assert [evidence_id(hide_url_credentials(url)) for url in urls] == ids


def test_hosts_and_front_pages() -> None:
    assert host_of("https://www.A.example/x") == "a.example"
    assert host_of("BBC Monitoring") == host_of("https://[broken") == ""
    assert is_front_page("https://gcap.global/")
    assert not is_front_page("https://a.example/?p=12")


def detect_kind(path: Path) -> Kind | None:
    return classify_lines(first_lines(path))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.csv.zip", "a.unknown"])
def test_a_file_is_known_by_its_content_not_its_name(tmp_path: Path, name: str) -> None:
    assert detect_kind(write(tmp_path / name, gkg_line())) == "gkg"


def test_gal_is_told_from_article_lists(tmp_path: Path) -> None:
    gal = gal_line("A title", "https://a.example/1", "2026-06-10T00:00:00Z")
    assert detect_kind(write(tmp_path / "g.json.gz", gal)) == "gal"
    one_line = write_artlist(tmp_path / "one.json", listed("T", "https://a.example", "2026"))
    indented = write_artlist(tmp_path / "many.json", listed("T", "https://a", "2026"), indent=4)
    rows = write(tmp_path / "rows.jsonl", '{"title": "T", "url": "https://a", "date": "2026"}')
    table = write(tmp_path / "t.csv", "url,title,seendate", "https://a,T,2026")
    assert [detect_kind(path) for path in (one_line, indented, rows, table)] == ["artlist"] * 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"timeline": [{"series": "Volume"}]}',
        "Please limit requests to one every 5 seconds",
        "\t".join(["20260610033000-1"] * 16),
        '{"api": "doc", "body": "x", "source": "y"}',
        "[1, 2]",
    ],
)
def test_everything_else_holds_no_articles(tmp_path: Path, text: str) -> None:
    assert detect_kind(write(tmp_path / "x.json", text)) is None


def test_one_broken_first_line_does_not_hide_a_gkg_file(tmp_path: Path) -> None:
    assert detect_kind(write(tmp_path / "x.csv", "half a row", gkg_line())) == "gkg"


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "one\u2028still one\x0b", "two", end="\r\n")
    assert [line.decode() for line in read_lines(path)] == ["one\u2028still one\x0b", "two"]


def test_a_truncated_archive_yields_what_is_left(tmp_path: Path) -> None:
    whole = write(tmp_path / "x.gz", *(f"{number:0200d}" for number in range(5000)))
    whole.write_bytes(whole.read_bytes()[:-40])
    read = []
    with pytest.raises(FileDamage):
        for line in read_lines(whole):
            read.append(line)
    assert len(read) > 1000


def test_a_file_that_cannot_be_unpacked_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(FileDamage):
        detect_kind(tmp_path / "x.zip")


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("b.csv", "a/c.csv", ".coreeval/cache.csv", "a/.d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, "x")
    assert [path.name for path in find_files(tmp_path)] == ["c.csv", "b.csv"]
    assert find_files(tmp_path / "b.csv") == [tmp_path / "b.csv"]


def test_an_archive_that_is_encrypted_is_damaged(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.csv", "x\n")
    data = bytearray(made.getvalue())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(FileDamage, match="encrypted"):
        list(read_lines(path))


def test_what_begins_without_end_is_looked_at_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LONGEST_LINE", 1 << 10)
    monkeypatch.setattr(rows, "MOST_LOOKED_AT", 1 << 13)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 16) + b"\n" + b'{"url": "u", "desc": "d"}\n'))
    assert first_lines(path) == []


def test_an_archive_whose_names_are_no_text_is_damaged(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("\u00e9.csv", "x\n")
    path = tmp_path / "a.zip"
    path.write_bytes(made.getvalue().replace("\u00e9".encode(), b"\xe9\xff"))
    with pytest.raises(FileDamage, match="codec"):
        list(read_lines(path))
    with pytest.raises(FileDamage, match="codec"):
        list(line_groups(path, 1 << 20))

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from coreeval.tools.gdelt import formats
from coreeval.tools.gdelt.formats import (
    FileDamage,
    detect_kind,
    find_files,
    first_lines,
    read_lines,
)
from coreeval.tools.gdelt.sync.file_reader import line_groups
from tests.tools.gdelt.file_samples import gal_line, gkg_line, listed, write, write_artlist


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
    monkeypatch.setattr(formats, "LONGEST_LINE", 1 << 10)
    monkeypatch.setattr(formats, "MOST_LOOKED_AT", 1 << 13)
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

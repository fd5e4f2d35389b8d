from pathlib import Path

import pytest

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.files import find_files
from coreeval.tools.gdelt.sources import read_sources
from tests.tools.gdelt.writing import gkg_line, write


def test_rows_are_counted_by_file_and_reason(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", gkg_line(), gkg_line(title=""), "x\ty")
    write(tmp_path / "b.csv.gz", gkg_line(url="https://www.news.example/ferries?utm_source=x"))
    (tmp_path / "c.zip").write_bytes(b"PK\x03\x04broken")
    write(tmp_path / "notes.txt", "hello")
    sources = read_sources(tmp_path, find_files(tmp_path))
    assert [(file.name, file.rows, file.articles, file.bad) for file in sources.files] == [
        ("a.csv", 3, 1, {"untitled": 1, "columns": 1}),
        ("b.csv.gz", 1, 1, {}),
    ]
    assert [file for file, _ in sources.articles] == [0, 1]
    assert sources.ignored.keys() == {"c.zip", "notes.txt"}
    assert sources.ignored["c.zip"].startswith("damaged")


def test_a_file_that_breaks_off_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    write(
        path, *(gkg_line(url=f"https://a.example/{at}", title=f"{at:0400d}") for at in range(3000))
    )
    path.write_bytes(path.read_bytes()[:-30])
    (file,) = read_sources(path, [path]).files
    assert file.bad == {"damaged": 1} and file.articles > 1000


def test_a_folder_without_articles_says_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path / "events.csv", "1\t2\t3")
    with pytest.raises(KnowledgeError) as caught:
        read_sources(tmp_path, find_files(tmp_path))
    assert "events.csv (holds no articles)" in caught.value.hint
    assert "GKG 2.1" in caught.value.hint

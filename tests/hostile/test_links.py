"""Names and links in stores, runs and caches that somebody else made: none leads out of them."""

import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.releases.forgetting.caches import forget_cached
from coreeval.releases.forgetting.names import Finder
from coreeval.tools.json_cache import JsonCache

NAME = "Taco Bell"
FINDER = Finder([NAME])
BIG = os.urandom(50_000).hex()
"""A value that goes into a file of its own."""
LETTER = zlib.compress(f'"about {NAME}"'.encode())
"""A file of the reader's, such that it would count as an answer about them."""


def planted_cache(folder: Path, filename: str, *, key: str = NAME) -> Path:
    """Return a cache of one old entry that says that its value is in another file."""
    with JsonCache(folder) as cache:
        assert cache.put(key, "value", expire_s=60)
    with closing(sqlite3.connect(folder / "cache.db")) as database, database:
        change = "UPDATE Cache SET mode = 2, filename = ?, value = NULL, expire_time = 1"
        assert database.execute(change, [filename]).rowcount == 1
    return folder


def mine(folder: Path) -> Path:
    """Return a file of the reader's."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "letter.txt"
    path.write_bytes(LETTER)
    return path


@pytest.mark.parametrize("way", ["absolute", "above", "link", "linked folder"])
@pytest.mark.parametrize("key", [NAME, "nobody"])
def test_a_cache_does_not_decide_which_files_takedown_deletes(
    tmp_path: Path, way: str, key: str
) -> None:
    own, folder = mine(tmp_path / "home"), tmp_path / "cache"
    names = {"absolute": str(own), "above": "../home/letter.txt", "link": "to",
             "linked folder": "ab/letter.txt"}  # fmt: skip
    planted_cache(folder, names[way], key=key)
    (folder / "to").symlink_to(own)
    (folder / "ab").symlink_to(own.parent)
    for dry in (True, False):
        told = [*forget_cached(folder, FINDER, dry=dry)]
        assert [found.action for found in told] == ["deleted"] * (key == NAME) + ["reported"]
        assert own.read_bytes() == LETTER


def test_an_entry_with_a_file_of_its_own_is_still_deleted(tmp_path: Path) -> None:
    with JsonCache(tmp_path) as cache:
        assert cache.put("key", [NAME, BIG], expire_s=60)
    assert [*tmp_path.glob("*/*/*.val")]
    (found,) = forget_cached(tmp_path, FINDER, dry=False)
    assert (found.count, found.action) == (1, "deleted")
    assert not [*tmp_path.glob("*/*/*.val")]


@pytest.mark.parametrize("way", ["absolute", "above", "link", "linked folder"])
def test_a_cache_that_clears_old_entries_deletes_nothing_outside(tmp_path: Path, way: str) -> None:
    own, folder = mine(tmp_path / "home"), tmp_path / "cache"
    names = {"absolute": str(own), "above": "../home/letter.txt", "link": "to",
             "linked folder": "ab/letter.txt"}  # fmt: skip
    planted_cache(folder, names[way])
    (folder / "to").symlink_to(own)
    (folder / "ab").symlink_to(own.parent)
    with JsonCache(folder) as cache:
        assert cache.put("another", 1, expire_s=60)  # clears what is too old
        assert cache.put(NAME, 2, expire_s=60)
        assert cache.get(NAME) == 2
    assert own.read_bytes() == LETTER


def test_a_cache_that_forgets_keeps_the_folders_above_it(tmp_path: Path) -> None:
    empty = tmp_path / "home" / "empty"
    empty.mkdir(parents=True)
    with JsonCache(planted_cache(tmp_path / "cache", "../home/empty/gone")) as cache:
        assert cache.put("another", 1, expire_s=60)
    assert empty.is_dir()


def test_a_cache_writes_through_no_link(tmp_path: Path) -> None:
    folder, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    folder.mkdir()
    for number in range(256):
        (folder / f"{number:02x}").symlink_to(home)
    with JsonCache(folder) as cache:
        assert not cache.put("big", BIG, expire_s=60)
    assert not [*home.iterdir()]


def test_a_cache_puts_no_tables_into_another_database(tmp_path: Path) -> None:
    other, folder = tmp_path / "other.db", tmp_path / "cache"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE mine (a)")
    before = other.read_bytes()
    folder.mkdir()
    (folder / "cache.db").symlink_to(other)
    with JsonCache(folder) as cache:
        assert cache.put("key", 1, expire_s=60)
        assert cache.get("key") == 1
    assert other.read_bytes() == before

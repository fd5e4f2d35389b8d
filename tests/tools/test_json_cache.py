"""The cache on disk: JSON only, and nothing in it is trusted."""

import pickle
import random
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import JsonValue

from coreeval.errors import RunError
from coreeval.tools.json_cache import JsonCache


def test_values_come_back_for_other_processes(tmp_path: Path) -> None:
    big: JsonValue = ["x" * 100_000]
    with JsonCache(tmp_path) as cache:
        assert cache.put("small", {"a": [1, None]}, expire_s=60)
        assert cache.put("big", big, expire_s=60)  # goes into a file of its own
        assert cache.put("old", 1, expire_s=-1)
    with JsonCache(tmp_path) as cache:
        assert (cache.get("small"), cache.get("big")) == ({"a": [1, None]}, big)
        assert cache.get("old") is None
        assert cache.get("never") is None


def test_what_a_clock_kept_that_was_ahead_counts_as_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, year = time.time, 365 * 86400.0
    with JsonCache(tmp_path) as cache:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + year)
            assert cache.put("key", [], expire_s=3600)
            assert cache.get("key") == []
        assert cache.get("key") is None, "or it would be believed for a year and an hour"
        assert cache.put("key", ["now"], expire_s=3600)
        assert cache.get("key") == ["now"]


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("place", ["row", "file", "outside"])
def test_what_was_planted_is_never_run_or_read(tmp_path: Path, place: str) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "cache"
    with JsonCache(folder) as cache:
        cache.put("key", "harmless", expire_s=60)
    load = pickle.dumps(Bomb(mark))
    (folder / "planted").write_bytes(load)
    (tmp_path / "outside").write_bytes(b"\x78\x9c\x03\x00\x00\x00\x00\x01")
    row = {"row": (4, None, load), "file": (4, "planted", None), "outside": (2, "../outside", None)}
    with sqlite3.connect(folder / "cache.db") as database:
        database.execute("UPDATE Cache SET mode = ?, filename = ?, value = ?", row[place])
    database.close()
    with JsonCache(folder) as cache:
        assert cache.get("key") is None
        assert cache.put("key", "again", expire_s=60)
        assert cache.get("key") == "again"
    assert not mark.exists()


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"no database" * 1000)
    with JsonCache(tmp_path) as cache:
        assert cache.put("key", 1, expire_s=60)
        assert cache.get("key") == 1


def test_a_cache_on_a_full_disk_keeps_what_was_paid_for(tmp_path: Path) -> None:
    with JsonCache(tmp_path) as cache:
        assert cache.put("paid", 1, expire_s=60)
        assert cache.put("large", "x" * 100_000, expire_s=60)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(RunError, match="a cache cannot be used: disk") as caught:
            JsonCache(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "disk is not full" in caught.value.hint
    with JsonCache(tmp_path) as cache:
        assert (cache.get("paid"), cache.get("large")) == (1, "x" * 100_000)


def test_a_cache_with_other_tables_is_made_anew(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database:
        database.execute("CREATE TABLE Settings (a)")
    with JsonCache(tmp_path) as cache:
        assert cache.put("key", 1, expire_s=60)


def test_a_cache_that_is_made_anew_keeps_no_value_and_every_other_file(tmp_path: Path) -> None:
    with JsonCache(tmp_path) as cache:
        assert cache.put("key", random.Random(0).randbytes(50_000).hex(), expire_s=60)
    (value,) = tmp_path.glob("*/*/*.val")
    mine = value.with_name("mine.val")
    mine.write_text("mine")
    (tmp_path / "cache.db").write_bytes(b"no database" * 1000)
    JsonCache(tmp_path).close()
    assert (value.exists(), mine.exists()) == (False, True)

"""Names and links in stores, runs and caches that somebody else made: none leads out of them."""

import asyncio
import json
import os
import shutil
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from coreeval.agents.name_finder import NameFinder
from coreeval.cli import main
from coreeval.config import load_config
from coreeval.errors import KnowledgeError, RunCorrupt
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.graph.run import open_run
from coreeval.releases.takedown.calls import UNREADABLE_FILE, erase_cache_entries, erase_calls
from coreeval.releases.takedown.news_store import erase_news
from coreeval.releases.takedown.runs import list_results
from coreeval.tools.clock import utc_now
from coreeval.tools.files import MOST_UNPACKED, write_text
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.store_catalog import StoreLayout
from coreeval.tools.gdelt.local import open_local
from coreeval.tools.gdelt.own_files import DOWNLOADS, WORK
from coreeval.tools.gdelt.sync.sync import Around, sync_folder
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import MOST_FILE_BYTES, RunFiles, Workspace
from tests.cli.kit import DEMO
from tests.releases.kit import make_run

NAME = "Taco Bell"
FINDER = NameFinder([NAME])
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


@pytest.mark.parametrize("way", ["absolute", "above", "link", "linked folder", "mine"])
@pytest.mark.parametrize("key", [NAME, "nobody"])
def test_a_cache_does_not_decide_which_files_takedown_deletes(
    tmp_path: Path, way: str, key: str
) -> None:
    own, folder = mine(tmp_path / "home"), tmp_path / "cache"
    names = {"absolute": str(own), "above": "../home/letter.txt", "link": "to",
             "linked folder": "ab/letter.txt", "mine": "letter.txt"}  # fmt: skip
    planted_cache(folder, names[way], key=key)
    mine(folder)
    (folder / "to").symlink_to(own)
    (folder / "ab").symlink_to(own.parent)
    for dry in (True, False):
        told = [*erase_cache_entries(folder, FINDER, dry=dry)]
        assert [found.action for found in told] == ["deleted"] * (key == NAME) + ["reported"]
        assert own.read_bytes() == (folder / "letter.txt").read_bytes() == LETTER


def test_an_entry_with_a_file_of_its_own_is_still_deleted(tmp_path: Path) -> None:
    with JsonCache(tmp_path) as cache:
        assert cache.put("key", [NAME, BIG], expire_s=60)
    assert [*tmp_path.glob("*/*/*.val")]
    (found,) = erase_cache_entries(tmp_path, FINDER, dry=False)
    assert (found.count, found.action) == (1, "deleted")
    assert not [*tmp_path.glob("*/*/*.val")]


@pytest.mark.parametrize("place", ["value", "file", "key"])
def test_a_packed_bomb_in_a_cache_is_told_and_never_unpacked(tmp_path: Path, place: str) -> None:
    """What names somebody beside it is deleted all the same."""
    most = 2 * MOST_UNPACKED
    bomb = zlib.compress(b'"' + bytes(most) + b'"')
    with JsonCache(tmp_path) as cache:
        assert cache.put("bomb", "x", expire_s=60) and cache.put("key", NAME, expire_s=60)
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database, database:
        if place == "file":
            name = f"00/00/{0:028x}.val"
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).touch()
            os.truncate(tmp_path / name, most)
            database.execute(
                "UPDATE Cache SET mode = 2, filename = ?, value = NULL WHERE rowid = 1", (name,)
            )
        else:
            database.execute(f"UPDATE Cache SET {place} = ? WHERE rowid = 1", (bomb,))
    tracemalloc.start()
    named, told = erase_cache_entries(tmp_path, FINDER, dry=False)
    with JsonCache(tmp_path) as cache:
        assert cache.get("bomb") is None
    assert tracemalloc.get_traced_memory()[1] < 2 * most
    tracemalloc.stop()
    assert (named.kind, named.count, named.action) == ("cached answers", 1, "deleted")
    assert (told.kind, told.count, told.action) == (UNREADABLE_FILE, 1, "reported")
    assert "delete the cache" in told.to_do


def test_a_packed_bomb_in_a_call_store_is_told(tmp_path: Path) -> None:
    open_calls(tmp_path / "calls.db").close()
    bomb = zlib.compress(bytes(MOST_UNPACKED + 1))
    with closing(sqlite3.connect(tmp_path / "calls.db")) as database, database:
        database.execute("INSERT INTO texts VALUES ('x', ?)", (bomb,))
    with pytest.raises(RunCorrupt, match="more than 64 MiB"):
        [*erase_calls(tmp_path / "calls.db", FINDER, dry=True)]


@pytest.mark.parametrize("way", ["absolute", "above", "link", "linked folder", "mine"])
def test_a_cache_that_clears_old_entries_deletes_nothing_outside(tmp_path: Path, way: str) -> None:
    own, folder = mine(tmp_path / "home"), tmp_path / "cache"
    names = {"absolute": str(own), "above": "../home/letter.txt", "link": "to",
             "linked folder": "ab/letter.txt", "mine": "letter.txt"}  # fmt: skip
    planted_cache(folder, names[way])
    mine(folder)
    (folder / "to").symlink_to(own)
    (folder / "ab").symlink_to(own.parent)
    with JsonCache(folder) as cache:
        assert cache.put("another", 1, expire_s=60)  # clears what is too old
        assert cache.put(NAME, 2, expire_s=60)
        assert cache.get(NAME) == 2
    assert own.read_bytes() == (folder / "letter.txt").read_bytes() == LETTER


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


# -- news stores ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a news store of the demo's news."""
    store = tmp_path_factory.mktemp("made") / "store"
    sync_folder(store, DEMO / "news", around=Around(finish=compact))
    return store


@pytest.fixture
def store(made_store: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(made_store, tmp_path / "store"))


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def use_store(store: Path) -> Iterator[Callable[[], object]]:
    """Yield all that is done with a store."""
    yield lambda: list(erase_news(store, FINDER, dry=True))
    yield lambda: list(erase_news(store, FINDER, dry=False))
    yield lambda: sync_folder(store, DEMO / "news", around=Around(finish=compact))
    yield lambda: compact(store)
    yield lambda: open_local(store, store.parent)
    yield StoreLayout(store).require


@pytest.mark.parametrize(
    "entry",
    ["segments", "signals", "parts", "aside", DOWNLOADS, "lock", "store.db",
     "segments/2026-01-01", "signals/2026-01-01", "parts/000099", f"parts/{WORK}",
     "aside/x.jsonl.gz"],
)  # fmt: skip
def test_a_news_store_with_a_link_in_it_is_refused(store: Path, tmp_path: Path, entry: str) -> None:
    home = tmp_path / "home"
    for name in ("a/b.parquet", "20260101/photo.jpg", "letter.txt"):
        mine(home / Path(name).parent)
    link, target = store / entry, home
    if link.is_dir():
        shutil.rmtree(link)
    if entry in ("lock", "store.db", "aside/x.jsonl.gz"):
        target = home / "letter.txt"
        link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    for number in range(2):  # what was replaced a day ago is deleted
        os.utime(home / "20260101", (number, number))
    before = tree(home)
    for use in use_store(store):
        with pytest.raises(KnowledgeError, match="contains a link") as told:
            use()
        assert told.value.where == str(link)
        assert "gdelt sync" not in told.value.hint
        assert tree(home) == before


@pytest.mark.parametrize("way", ["absolute", "above", "in the store", "mine"])
def test_a_news_store_that_lists_files_outside_is_refused(
    store: Path, tmp_path: Path, way: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    segment = next(store.glob("segments/*/*.parquet"))
    for own in (home / "mydata.parquet", store / "segments" / "mine" / "mydata.parquet"):
        own.parent.mkdir(exist_ok=True)
        shutil.copy(segment, own)
    paths = {
        "absolute": str(home / "mydata.parquet"),
        "above": "segments/../../home/mydata.parquet",
        "in the store": "lock",
        "mine": "segments/mine/mydata.parquet",
    }
    with closing(sqlite3.connect(store / "store.db")) as database, database:
        listed = segment.relative_to(store).as_posix()
        change = "UPDATE segments SET path = ? WHERE path = ?"
        assert database.execute(change, [paths[way], listed]).rowcount == 1
    before = tree(home), own.read_bytes()
    for use in [*use_store(store)][:4]:
        with pytest.raises(KnowledgeError, match="lists a file that is not one of its data files"):
            use()
        assert (tree(home), own.read_bytes()) == before


@pytest.mark.timeout(60)
@pytest.mark.parametrize("entry", ["lock", "segments/pipe"])
def test_a_news_store_with_a_pipe_in_it_is_refused(store: Path, entry: str) -> None:
    (store / entry).unlink(missing_ok=True)
    os.mkfifo(store / entry)
    for use in use_store(store):
        with pytest.raises(KnowledgeError, match="contains a named pipe"):
            use()


def test_a_news_store_may_be_reached_by_a_link(store: Path, tmp_path: Path) -> None:
    (tmp_path / "news").symlink_to(store)
    assert [*erase_news(tmp_path / "news", FINDER, dry=False)]
    open_local(tmp_path / "news", tmp_path).close()


# -- workspaces -----------------------------------------------------------------------------------


def too_large(path: Path) -> None:
    path.touch()
    os.truncate(path, MOST_FILE_BYTES + 1)


KINDS: dict[str, Callable[[Path], None]] = {
    "a link": lambda path: path.symlink_to("/dev/zero"),
    "a named pipe": os.mkfifo,
    "a file of more than 512 MiB": too_large,
}
READING = {
    "takedown.txt": ("export", "view", "annotate", "release"),
    "reviews/weekly.jsonl": ("review", "release"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("entry", "command"), [(entry, each) for entry in READING for each in READING[entry]]
)
def test_a_file_of_somebody_elses_workspace_is_neither_followed_nor_read_without_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    entry: str,
    command: str,
    kind: str,
) -> None:
    files = make_run(tmp_path).files
    monkeypatch.chdir(tmp_path)
    planted, out = files.root.parent / ".coreeval" / entry, str(tmp_path / "out")
    planted.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](planted)
    given = {"export": ["--to", "csv", "--out", out], "view": ["--bundle", out],
             "annotate": ["--out", out], "release": ["--version", "2"], "review": []}  # fmt: skip
    about = ["export", str(files.root)] if command == "annotate" else [str(files.root)]
    assert main([command, *about, *given[command]]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"this workspace contains {kind}" in said
    assert "bug" not in said and not Path(out).exists()


WHOLE_FILES: dict[str, Callable[[Workspace], Path]] = {
    "takedown.txt": lambda workspace: workspace.takedown,
    "trusted.json": lambda workspace: workspace.trust_file,
    "reviews/a.jsonl": lambda workspace: workspace.decisions("a"),
    "reviews/a.notes.jsonl": lambda workspace: workspace.notes("a"),
    "reviews/a.releases": lambda workspace: workspace.reviewed_releases("a"),
    "estimates/a.json": lambda workspace: workspace.estimate("a"),
}


@pytest.mark.parametrize("entry", WHOLE_FILES)
def test_no_file_of_a_workspace_that_is_read_whole_is_special_or_too_large(
    tmp_path: Path, entry: str
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / ".coreeval").symlink_to(tmp_path / "disk")  # the workspace itself may be a link
    workspace = Workspace(tmp_path / ".coreeval")
    path = WHOLE_FILES[entry](workspace)
    assert path == workspace.root / entry and not path.exists()
    path.parent.mkdir(exist_ok=True)
    for kind, make in KINDS.items():
        make(path)
        with pytest.raises(RunCorrupt, match=f"this workspace contains {kind}"):
            WHOLE_FILES[entry](workspace)
        path.unlink()
    if "/" in entry:
        path.parent.rmdir()
        path.parent.symlink_to(tmp_path)
        with pytest.raises(RunCorrupt, match="this workspace contains a link") as told:
            WHOLE_FILES[entry](workspace)
        assert told.value.where == str(path.parent)


def test_review_decides_through_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files, own = make_run(tmp_path).files, tmp_path / "new"
    monkeypatch.chdir(tmp_path)
    log = tmp_path / ".coreeval" / "reviews" / "weekly.jsonl"
    log.parent.mkdir(parents=True)
    for link in (log, log.with_suffix(".lock")):
        link.symlink_to(own)
        assert main(["review", str(files.root), "--by", "Ada", "--all", "reject"]) != 0
        assert "which CoreEval never creates" in " ".join(capsys.readouterr().err.split())
        assert not own.exists()
        link.unlink()


# -- runs -----------------------------------------------------------------------------------------


COMMANDS = ("resume", "trace", "status", "release", "takedown")


def give(command: str, run: Path) -> int:
    """Give a command about a run."""
    if command == "takedown":
        return main(["takedown", NAME, str(run), "--yes"])
    more = ["--version", "1"] if command == "release" else []
    return main([command, str(run), *more])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "entry",
    ["dataset", "dataset/README.md", "run.db", "checkpoints.db", "control", "manifest.json",
     "report.json", "run.lock"],
)  # fmt: skip
def test_a_run_with_a_link_in_it_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    entry: str,
) -> None:
    files, home = make_run(tmp_path).files, tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    link, target = files.root / entry, home
    if link.is_dir():
        shutil.copytree(link, home)
        shutil.rmtree(link)
    mine(home)
    (home / "README.md").write_text(f"of {NAME}")
    if entry not in ("dataset", "control"):
        target = home / "a"
        link.replace(target) if link.is_file() else target.touch()
    if entry in ("run.db", "checkpoints.db"):
        target.unlink(missing_ok=True)
        with closing(sqlite3.connect(target)) as database, database:
            database.execute("CREATE TABLE mine (a)")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    before = tree(home)
    assert give(command, files.root) != 0
    said = capsys.readouterr()
    assert "contains a link" in (said.out if command == "takedown" else said.err)
    assert tree(home) == before


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "entry", ["manifest.json", "run.db", "run.db-journal", "config.yaml", "annotation.json"]
)
def test_a_run_with_a_pipe_in_it_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    entry: str,
) -> None:
    files = make_run(tmp_path).files
    monkeypatch.chdir(tmp_path)
    (files.root / entry).unlink(missing_ok=True)
    os.mkfifo(files.root / entry)
    assert give(command, files.root) != 0
    said = capsys.readouterr()
    assert "contains a named pipe" in (said.out if command == "takedown" else said.err)


@pytest.mark.timeout(30)
def test_a_config_that_is_a_pipe_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = make_run(tmp_path).files
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    manifest = json.loads(files.manifest.read_text())
    manifest["source"]["path"] = str(tmp_path / "pipe")
    files.manifest.write_text(json.dumps(manifest))
    assert load_config(files.config).run == open_run(files.root, None)[2].config.run


def test_a_run_may_be_reached_by_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = make_run(tmp_path).files
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latest").symlink_to(files.root)
    assert give("trace", tmp_path / "latest") == 0
    assert "contains a link" not in capsys.readouterr().err


def test_takedown_deletes_of_a_run_only_what_a_run_writes(tmp_path: Path) -> None:
    files = make_run(tmp_path).files
    for name in ("updated/train-00000-of-00001.parquet", "README.md", "notes.md", "mine/a.parquet"):
        path = files.dataset / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    written = {path.relative_to(files.root).as_posix() for path in list_results(files)}
    assert {"dataset/updated/train-00000-of-00001.parquet", "dataset/README.md"} <= written
    assert not {"dataset/notes.md", "dataset/mine/a.parquet"} & written


@pytest.mark.parametrize("name", ["run.db", "calls.db", "checkpoints.db"])
def test_no_tables_are_put_into_the_database_of_another_program(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE mine (a)")

    def use() -> None:
        if name == "run.db":
            RunStore.open(path, now=utc_now).close()
        elif name == "calls.db":
            open_calls(path).close()
        else:
            asyncio.run(use_checkpoints(path))

    with pytest.raises(RunCorrupt, match="another program"):
        use()
    with closing(sqlite3.connect(path)) as database:
        assert [*database.execute("SELECT name FROM sqlite_master")] == [("mine",)]


async def use_checkpoints(path: Path) -> None:
    async with open_checkpoints(path):
        pass


@pytest.mark.parametrize("name", ["run.db", "checkpoints.db"])
def test_a_store_of_a_run_that_is_a_link_is_not_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.symlink_to(tmp_path / "other")
    with pytest.raises(RunCorrupt, match="is a link"):
        if name == "run.db":
            RunStore.open(path, now=utc_now).close()
        else:
            asyncio.run(use_checkpoints(path))
    assert not (tmp_path / "other").exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["run.db", "checkpoints.db", "calls.db"])
def test_a_store_that_is_a_pipe_is_not_opened(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunCorrupt, match="is a named pipe"):
        if name == "run.db":
            RunStore.open(tmp_path / name, now=utc_now).close()
        elif name == "calls.db":
            open_calls(tmp_path / name).close()
        else:
            asyncio.run(use_checkpoints(tmp_path / name))


@pytest.mark.timeout(60)
def test_a_draft_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".README.md.0.tmp")
    write_text(tmp_path / "README.md", "words")
    assert (tmp_path / "README.md").read_text() == "words"


def test_a_draft_that_is_a_link_empties_nothing(tmp_path: Path) -> None:
    own = mine(tmp_path / "home")
    (tmp_path / ".README.md.0.tmp").symlink_to(own)
    write_text(tmp_path / "README.md", "words")
    assert (tmp_path / "README.md").read_text() == "words"
    assert own.read_bytes() == LETTER


# -- what a config calls a benchmark --------------------------------------------------------------


@pytest.mark.parametrize("named", [".", "..", "sheets", ".coreeval"])
def test_a_config_exempts_nothing_that_was_given_or_is_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    tmp_path = tmp_path / "project"  # of which `..` holds no other test's files
    tmp_path.mkdir()
    files = with_dataset(tmp_path, tmp_path / named)
    monkeypatch.chdir(tmp_path)
    kept = (tmp_path / ".coreeval" / "noted.jsonl", tmp_path / "sheets" / "a.jsonl")
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'{{"said": "{NAME}"}}\n')
    shutil.move(files.root, tmp_path / ".coreeval" / "runs" / "weekly" / "1")
    assert main(["takedown", NAME, "sheets", "--yes"]) == 0
    for path in kept:
        assert NAME not in path.read_text()


@pytest.mark.parametrize("received", [False, True])
def test_a_benchmark_in_what_was_given_stays_as_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    received: bool,
) -> None:
    files = with_dataset(tmp_path, tmp_path / "mine")
    if not received:
        shutil.move(files.root, tmp_path / ".coreeval" / "run")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine" / "a.jsonl"
    path.parent.mkdir()
    path.write_text(f'{{"said": "{NAME}"}}\n')
    assert main(["takedown", NAME, ".", "--yes"]) == int(received)
    said = " ".join(capsys.readouterr().out.split())
    assert ("run/config.yaml names it as benchmark" in said) and received == ("remove it" in said)
    assert NAME in path.read_text()


def test_a_benchmark_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    run = tmp_path / ".coreeval" / "run"
    with_dataset(tmp_path, folder).root.rename(run)
    monkeypatch.chdir(tmp_path)
    folder.mkdir()
    for name in ("broken.jsonl", "whole.jsonl"):
        (folder / name).write_text(f'{{"said": "{NAME}"}}\n')
    (folder / "damaged.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    real = Path.open

    def failing(path: Path, *how: Any, **more: Any) -> Any:  # noqa: ANN401 - as Path.open
        if path.name == "broken.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *how, **more)

    monkeypatch.setattr(Path, "open", failing)
    assert main(["takedown", NAME, str(run), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "broken.jsonl" in said
    assert "damaged.db" in said
    assert "benchmark" in said


def with_dataset(folder: Path, path: Path) -> RunFiles:
    """Return the files of a run whose config names another folder as its benchmark."""
    files = make_run(folder).files
    said = yaml.safe_load(files.config.read_text())
    said["dataset"]["path"] = str(path)
    files.config.write_text(yaml.safe_dump(said))
    (folder / ".coreeval" / "runs" / "weekly").mkdir(parents=True)
    return files

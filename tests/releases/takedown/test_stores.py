"""What is taken out of calls, news, files and lists, and what stays."""

import asyncio
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from openpyxl import Workbook

from coreeval.agents.name_finder import NameFinder
from coreeval.api.calls import export_calls
from coreeval.api.reviews import review
from coreeval.errors import KnowledgeError, RunCorrupt, RunLocked, RunStateError, UsageError
from coreeval.graph.cassettes.record import record as record_cassette
from coreeval.releases.annotation_sheets import export_sheets
from coreeval.releases.exports.export import export
from coreeval.releases.takedown import batch_folders, erasure, news_store
from coreeval.releases.takedown.calls import TextMatches, erase_cache_entries, erase_calls
from coreeval.releases.takedown.documents import erase_in_document
from coreeval.releases.takedown.erasure import Erasure, find_places
from coreeval.releases.takedown.names import add_names, check_names, find_missing_names
from coreeval.releases.takedown.news_store import erase_news
from coreeval.releases.takedown.scores import erase_scores
from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.local import open_local
from coreeval.tools.gdelt.sync.sync import Around, sync_folder
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import RunFiles, Workspace
from tests.cli.kit import DEMO
from tests.releases.kit import make_run
from tests.tools.gdelt.index.part_samples import add_rows, row
from tests.tools.gdelt.sync.test_facts import fact_line
from tests.tools.stores.test_call_batches import question
from tests.viewer.kit import write_bundle_of

FINDER = NameFinder(["Taco Bell"])
WHOLE = {"start": "2025-08-01", "end": "2026-10-01"}


def call(said: str, answer: str, **more: object) -> CallRecord:
    messages = [{"role": "system", "content": f"{said} " * 200}, {"role": "user", "content": said}]
    request = call_request(
        provider="openai", endpoint="http://x", model="m", parameters={}, schema={},
        messages=messages, draw=0,
    )  # fmt: skip
    record = CallRecord(
        key=call_key(request), draw=0, role="composer", request=request, response=answer,
        valid=True, usd=0.25, prompt_tokens=7, completion_tokens=3, started_at="2026-01-01",
    )  # fmt: skip
    return replace(record, **more)  # type: ignore[arg-type]  # of any column


def stored(path: Path, *records: CallRecord) -> None:
    store = open_calls(path, "run@now")
    for record in records:
        asyncio.run(store.put(record))
    store.close()


def test_questions_of_batches_that_name_somebody_are_deleted(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    bodies = {"a": b'"about Taco Bell"', "b": b'"about nobody"'}
    with closing(open_calls(path, "run@now")) as calls:
        for key, body in bodies.items():
            asyncio.run(calls.batches.queue(replace(question(key), body=body)))
    assert [(each.kind, each.count) for each in erase_calls(path, FINDER, dry=False)] == [
        ("questions of batches", 1)
    ]
    with closing(open_calls(path, "run@now")) as calls:
        assert [calls.batches.find(key) is None for key in bodies] == [True, False]


async def test_questions_that_a_provider_has_are_told(tmp_path: Path) -> None:
    path, now = tmp_path / "calls.db", datetime(2026, 11, 28, tzinfo=UTC)
    with closing(open_calls(path, "run@now")) as calls:
        for key, folder in {"a": "", "b": str(tmp_path / "out"), "c": ""}.items():
            about = replace(question(key), body=b'"about Taco Bell"')
            await calls.batches.queue(about)
            (length,) = calls.batches.queue_lengths()
            batch = await calls.batches.begin(
                length, [key], made_at=now, budget_usd=10.0, folder=folder
            )
            assert batch is not None
            if key == "c":
                await calls.batches.update(batch, {"state": "collected"})
    found = [*erase_calls(path, FINDER, dry=False)]
    assert [(each.kind, each.count, each.action) for each in found] == [
        ("questions of batches", 3, "deleted"),
        ("questions at a provider", 1, "reported"),
    ]
    assert "--live" in found[1].to_do


async def test_the_folders_of_batches_are_looked_into(tmp_path: Path) -> None:
    workspace, folder, away = Workspace(tmp_path / "home"), tmp_path / "out", tmp_path / "away"
    workspace.root.mkdir()
    folder.mkdir()
    now, ids = datetime(2026, 11, 28, tzinfo=UTC), list[str]()
    with closing(open_calls(workspace.calls, "run@now")) as calls:
        for key, place in {"a": folder, "b": away, "c": "/tmp/x\0", "d": "/a" * 4000}.items():
            await calls.batches.queue(question(key))
            (length,) = calls.batches.queue_lengths()
            batch = await calls.batches.begin(
                length, [key], made_at=now, budget_usd=10.0, folder=str(place)
            )
            assert batch is not None
            ids.append(batch.id)
    ours = [folder / f"{ids[0]}{end}" for end in (".jsonl", ".results.jsonl")]
    for path in (*ours, folder / "another.jsonl"):
        path.write_text('{"text": "about Taco Bell"}\n')
    found = Erasure(workspace, [], FINDER, workspace.takedown, lambda _: None).erase_all()
    assert {each.path for each in found if each.action == "blanked"} == set(ours)
    assert [FINDER.finds(path.read_text()) for path in ours] == [False, False]
    assert FINDER.finds((folder / "another.jsonl").read_text()), "it is of nobody's batch"
    (left,) = (each for each in found if each.path == away)
    assert left.action == "reported" and "mount it or move it back" in left.to_do


@pytest.mark.parametrize("problem", ["store in use", "folder closed"])
async def test_files_of_batches_that_cannot_be_looked_for_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    workspace = Workspace(tmp_path / "home")
    workspace.root.mkdir()
    with closing(open_calls(workspace.calls, "run@now")) as calls:
        await calls.batches.queue(question("a"))
        (length,) = calls.batches.queue_lengths()
        now = datetime(2026, 11, 28, tzinfo=UTC)
        await calls.batches.begin(length, ["a"], made_at=now, budget_usd=10.0, folder=str(tmp_path))

    def refuse(path: Path, **_: object) -> None:
        raise RunLocked("another process uses this database", where=str(path))

    if problem == "store in use":
        monkeypatch.setattr(batch_folders, "open_database", refuse)
    else:
        monkeypatch.setattr("os.access", lambda *_: False)
    found = Erasure(workspace, [], FINDER, workspace.takedown, lambda _: None).count_all()
    (told,) = (each for each in found if each.kind == "file that cannot be read")
    assert told.path == (workspace.calls if problem == "store in use" else tmp_path)


def test_a_call_loses_its_words_and_keeps_its_price(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    asked, answered = call("about Taco Bell", "yes"), call("where?", "at taco bell")
    hidden = call("who?", "x", logprobs='[{"token": "Taco Bell"}]', tries="429: Taco Bell is busy")
    other = call("what?", "no")
    stored(path, asked, answered, hidden, other)
    store = open_calls(path, "run@now")
    before = store.ledger.spent()
    store.close()
    assert [*erase_calls(path, FINDER, dry=True)] == [
        TextMatches(kind="calls", path=path, count=3, action="blanked"),
        TextMatches(kind="instructions", path=path, count=1, action="deleted"),
    ]
    assert sum(found.count for found in erase_calls(path, FINDER, dry=False)) == 4
    assert not [*erase_calls(path, FINDER, dry=False)]

    store = open_calls(path, "run@now")
    assert store.ledger.spent() == before
    assert [store.get(each.key) for each in (asked, answered, hidden)] == [None] * 3
    kept = store.get(other.key)
    assert kept is not None and kept.response == "no"
    gone = [each for each in store.records() if each.is_erased]
    assert store.corrupt_rows == 0
    store.close()
    assert [(each.usd, each.prompt_tokens, each.paid_by, each.role, each.valid, each.response)
            for each in gone] == [(0.25, 7, "run@now", "composer", False, "")] * 3  # fmt: skip


def test_bytes_that_were_deleted_before_go_too(tmp_path: Path) -> None:
    """Rows that an earlier deletion left in free pages are words that are kept."""
    path = tmp_path / "calls.db"
    stored(path, *(call(f"q{n}", f"short Taco Bell {n}") for n in range(50)), call("q", "a"))
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA secure_delete=OFF")
        file.execute("DELETE FROM calls WHERE rowid <= 50")
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"Taco Bell" in path.read_bytes()
    assert not [*erase_calls(path, FINDER, dry=False)]
    assert not any(b"Taco Bell" in each.read_bytes() for each in tmp_path.iterdir())


def test_a_damaged_store_is_told(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(RunCorrupt):
        list(erase_calls(path, FINDER, dry=False))


def test_a_news_store_without_them(tmp_path: Path) -> None:
    store = tmp_path / "store"
    sync_folder(store, DEMO / "news", around=Around(finish=compact))
    assert titles(store, "Taco Bell") > 0
    others, rows = titles(store, "Apple"), stats(store)
    (dry,) = erase_news(store, FINDER, dry=True)
    assert titles(store, "Taco Bell") > 0
    (done,) = erase_news(store, FINDER, dry=False)
    assert done == dry
    assert titles(store, "Taco Bell") == 0
    assert titles(store, "Apple") == others
    now = stats(store)
    assert now[0] == rows[0]
    assert now[1]["taken down"] == done.count
    assert now[0] == sum(now[1].values()) + now[2]
    assert sync_folder(store, DEMO / "news", around=Around(finish=compact)).counts.files == 0
    assert titles(store, "Taco Bell") == 0
    assert not [*erase_news(store, FINDER, dry=False)]


def test_a_fact_that_only_cites_news_about_them(tmp_path: Path) -> None:
    cited = [{"url": "https://news.example/taco-bell-closes"}]
    lines = [fact_line(sources=cited), fact_line("Voters in Peru elect a mayor.")]
    (tmp_path / "facts.jsonl").write_text("\n".join(lines))
    store = tmp_path / "store"
    sync_folder(store, tmp_path / "facts.jsonl", around=Around(finish=compact))
    (done,) = erase_news(store, FINDER, dry=False)
    assert done.count == 1
    assert titles(store, "Chile") == 1


@pytest.mark.parametrize("name", ["Łukasz Żal", "Lukasz Zal"])
def test_news_that_writes_strokes_or_leaves_them_out(tmp_path: Path, name: str) -> None:
    told = ("Łukasz Żal wins in Ghana", "LUKASZ ZAL wins in Peru", "Łukasz Żak wins in Kenya")
    (tmp_path / "facts.jsonl").write_text("\n".join(map(fact_line, told)), encoding="utf-8")
    store = tmp_path / "store"
    sync_folder(store, tmp_path / "facts.jsonl", around=Around(finish=compact))
    (done,) = erase_news(store, NameFinder([name]), dry=False)
    assert done.count == 2
    assert [titles(store, place) for place in ("Ghana", "Peru", "Kenya")] == [0, 0, 1]


@pytest.mark.parametrize("damage", ["other columns", "other types", "one long text", "missing"])
def test_a_damaged_file_of_a_news_store_is_reported(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The places after the store are searched all the same."""
    monkeypatch.setattr(news_store, "MOST_UNPACKED", 100 << 20)
    folder = tmp_path / ".coreeval"
    store, sheet = folder / "gdelt" / "store", folder / "z.csv"
    store.mkdir(parents=True)
    add_rows(store, row("https://a.example/x", title="Taco Bell opens"))
    compact(store)
    sheet.write_text("id,text\n1,Taco Bell was here\n")
    (file,) = store.glob("segments/*/*.parquet")
    table, rows = pq.read_table(file), 1000
    if damage == "other columns":
        pq.write_table(pa.table({"title": ["Taco Bell", "x"]}), file)
    elif damage == "other types":
        other = table.set_column(3, "crawled_at", [["soon"]])
        pq.write_table(pa.concat_tables([other, other.set_column(1, "title", [["x"]])]), file)
    elif damage == "one long text":  # 200 MB in a few kB
        many = table.take(pa.array([0] * rows)).set_column(1, "title", [["x" * 200_000] * rows])
        pq.write_table(many, file, compression="zstd", dictionary_pagesize_limit=1 << 30)
    else:
        file.unlink()
    workspace = Workspace(folder)
    found = Erasure(workspace, [], FINDER, workspace.takedown, lambda _: None).erase_all()
    (told,) = (each for each in found if each.kind == "file that cannot be read")
    assert (told.path, "data file of the news store" in told.to_do) == (store, True)
    assert "Taco Bell" not in sheet.read_text()


def test_downloads_that_cannot_be_deleted_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_rows(tmp_path, row("https://a.example/x", title="Nobody opens"))
    compact(tmp_path)
    downloads = tmp_path / ".coreeval-downloads"
    downloads.mkdir()
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as in another user's folder
    (told,) = erase_news(tmp_path, FINDER, dry=False)
    assert (told.path, "cannot be deleted" in told.to_do) == (downloads, True)


def titles(store: Path, name: str) -> int:
    with open_local(store, store.parent, min_precision="crawl") as news:
        query = EntityQuery(id="q", text=name)
        found = asyncio.run(news.fetch([query], Window.model_validate(WHOLE), 50))
        return len(found.by_query["q"])


def stats(store: Path) -> tuple[int, dict[str, int], int]:
    with open_local(store, store.parent, min_precision="crawl") as news:
        told = news.stats()
        rest = told.duplicates + sum(told.dropped.values()) + told.articles
        return told.rows, told.bad, rest


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{"Taco Bell": '),
        ("a.csv", b'"Taco Bell,"x\n"' + b"y" * 200_000),
        ("a.xlsx", b"PK\x03\x04 Taco Bell"),
        ("a.parquet", b"PAR1 Taco Bell PAR1"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\0 Taco Bell"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    (found,) = erase_in_document(path, FINDER, dry=False)
    assert found.action == "reported"
    assert "yourself" in found.to_do
    assert path.read_bytes() == content


def test_what_does_not_name_them_is_not_touched(tmp_path: Path) -> None:
    files = {"a.json": '{"a":1}', "a.csv": "a;b\n", "a.jsonl": "{}\n", "a.html": "<p>", "b": "x"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    book = Workbook()
    book.save(tmp_path / "a.xlsx")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    for path in before:
        assert not [*erase_in_document(path, FINDER, dry=False)]
    now = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert now == before


def test_lines_of_json_keep_their_other_words(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"n": "Taco Bell", "v": "rejected"}\n{"n": "é"}\n', "utf-8")
    (found,) = erase_in_document(path, FINDER, dry=False)
    assert (found.count, found.action) == (1, "blanked")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert lines == [{"n": "(taken down)", "v": "rejected"}, {"n": "é"}]


def test_a_list_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "takedown.txt"
    names = check_names(["  José   Núñez ", "Jose Nunez", "Acme Corp"])
    assert names == ["José Núñez", "Acme Corp"]
    assert find_missing_names(path, names) == names
    add_names(path, names[:1])
    first = path.read_text("utf-8")
    add_names(path, names)
    add_names(path, ["JOSE NUNEZ"])
    assert path.read_text("utf-8") == f"{first}Acme Corp\n"
    assert not find_missing_names(path, names)
    with pytest.raises(UsageError, match="'Al' is not a valid name"):
        check_names(["Al"])


def test_names_that_are_listed_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    path, names = tmp_path / "takedown.txt", [f"Jane Number {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add_names(path, [name]), names))
    assert not find_missing_names(path, names)


def test_scores_of_texts_are_deleted_whoever_they_are_of(tmp_path: Path) -> None:
    elsewhere = tmp_path / "own.jsonl"
    elsewhere.write_text("mine")
    (tmp_path / "scores").mkdir()
    scores, link = tmp_path / "scores/a.jsonl", tmp_path / "scores/b.jsonl"
    scores.write_text('{"key": "00"}\n')
    link.symlink_to(elsewhere)
    (dry,) = erase_scores(tmp_path / "scores", dry=True)
    assert (dry.count, scores.exists()) == (1, True)
    assert [*erase_scores(tmp_path / "scores", dry=False)] == [dry]
    assert (scores.exists(), elsewhere.read_text()) == (False, "mine")
    assert [*erase_scores(tmp_path / "scores", dry=False)] == []


def test_a_folder_of_scores_that_leads_elsewhere_is_left(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ws")
    workspace.root.mkdir()
    (tmp_path / "own").mkdir()
    workspace.scores.symlink_to(tmp_path / "own")
    assert find_places(workspace, [], workspace.takedown).scores == []
    workspace.scores.unlink()
    workspace.scores.mkdir()
    assert find_places(workspace, [], workspace.takedown).scores == [workspace.scores]


def test_no_copy_of_a_run_is_made_until_a_takedown_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, workspace = make_run(tmp_path), Workspace(tmp_path / ".coreeval")
    workspace.root.mkdir(exist_ok=True)
    run, out = made.files.root, tmp_path / "new" / "out"

    def try_copies() -> None:
        for copy in (
            lambda: export(run, to="jsonl", out=out),
            lambda: export_sheets(run, out),
            lambda: write_bundle_of(run, out),
            lambda: review(run, csv=out),
            lambda: review(run, html=out),
            lambda: export_calls("openai:x", out=out, run=run, workspace=workspace.root),
            *held,
        ):
            with pytest.raises(RunStateError, match="has not finished"):
                copy()
            assert not any(out.parent.glob("*"))

    def erase(files: RunFiles, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
        try_copies()
        yield from ()
        if stopped:
            raise KeyboardInterrupt

    stopped, held = [True], list[Callable[[], object]]()
    stored(workspace.root / "calls.db", call("a question", "{}"))
    monkeypatch.setattr(erasure, "erase_from_run", erase)
    takedown = Erasure(workspace, [tmp_path], FINDER, workspace.takedown, print)
    with pytest.raises(KeyboardInterrupt):
        takedown.erase_all()
    held += [made.release, lambda: record_cassette(run, out)]
    try_copies()
    stopped.clear()
    held.clear()
    another = replace(takedown, finder=NameFinder(["Ada Roe"]))
    assert [(each.kind, each.path) for each in another.erase_all()] == [(erasure.UNFINISHED, run)]
    try_copies()
    assert takedown.erase_all() == []
    assert write_bundle_of(run, out).exists()


def test_values_of_a_cache_without_an_entry_are_deleted(tmp_path: Path) -> None:
    """A killed process leaves them; a value with the name is counted."""
    with JsonCache(tmp_path) as cache:
        for key, text in {"a": "Taco Bell", "b": "Taco Bell", "c": "nobody", "d": "kept"}.items():
            assert cache.put(key, [text, random.Random(0).randbytes(50_000).hex()], expire_s=60)
    with closing(sqlite3.connect(tmp_path / "cache.db")) as database, database:
        database.create_function("unpacked", 1, lambda packed: zlib.decompress(packed).decode())
        rows = dict(database.execute("SELECT unpacked(key), filename FROM Cache"))
        database.execute("DELETE FROM Cache WHERE unpacked(key) IN ('\"a\"', '\"c\"')")
    mine = tmp_path / "ab" / "cd" / "mine.val"
    mine.parent.mkdir(parents=True)
    mine.write_text("Taco Bell")
    (dry,) = erase_cache_entries(tmp_path, FINDER, dry=True)
    assert [*erase_cache_entries(tmp_path, FINDER, dry=False)] == [dry]
    assert (dry.count, dry.action) == (2, "deleted")
    left = {tmp_path / rows['"d"'], mine}
    assert {*tmp_path.glob("??/??/*.val")} == left


def test_a_store_that_is_beside_own_files_neither_deletes_nor_exempts_them(tmp_path: Path) -> None:
    """A `store.db` and a `cache.db` may be somebody else's; scores may have files beside them."""
    workspace, folder, made = Workspace(tmp_path / "ws"), tmp_path / "project", tmp_path / "made"
    workspace.scores.mkdir(parents=True)
    (tmp_path / "facts.jsonl").write_text(fact_line("Voters in Peru elect a mayor."))
    sync_folder(made, tmp_path / "facts.jsonl", around=Around(finish=compact))
    folder.mkdir()
    shutil.copy(made / "store.db", folder)
    with closing(sqlite3.connect(folder / "store.db")) as database, database:
        for table in ("files", "segments", "holds", "parts"):
            database.execute(f"DELETE FROM {table}")
    JsonCache(folder).close()
    names = ["downloads/a.csv", "segments/a.csv", "segments/customers/a.csv", "signals/lab/a.csv",
             "segments/2026-01-01/a.csv", "parts/2024 turbine/a.csv", "parts/000001/a.csv",
             "parts/.work/a.csv", "aside/a.csv", "ab/cd/a.csv"]  # fmt: skip
    own = [*(folder / name for name in names), workspace.scores / "a.csv", folder / "ab/cd/a.val"]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id,text\n1,Taco Bell\n2,kept\n")
    replaced = folder / "parts" / "000007"
    replaced.mkdir()
    (replaced / "texts.bin").write_bytes(b"packed")
    found = Erasure(workspace, [folder], FINDER, workspace.takedown, print).erase_all()
    assert {each.path for each in found} == {*own}
    assert [path.read_text() for path in own[:-1]] == ["id,text\n1,(taken down)\n2,kept\n"] * 11
    assert (own[-1].exists(), replaced.exists()) == (True, False)


def test_a_lock_of_a_news_store_that_is_a_file_of_the_user_stays(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (tmp_path / "facts.jsonl").write_text(fact_line("Voters in Peru elect a mayor."))
    sync_folder(store, tmp_path / "facts.jsonl", around=Around(finish=compact))
    (store / "lock").write_text("mine")
    with pytest.raises(KnowledgeError, match="is not empty"):
        list(erase_news(store, FINDER, dry=False))
    assert (store / "lock").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="paths cannot be this long")
def test_deep_folders_exempt_nothing(tmp_path: Path) -> None:
    """The path in the release is longer than the system allows, so what is in it is reported."""
    workspace, run = Workspace(tmp_path / "ws"), make_run(tmp_path).files.root
    workspace.root.mkdir()
    release = tmp_path / "release"
    release.mkdir()
    for name in ("release.json", "release.sha256"):
        (release / name).write_text("{}")
    mine, store = tmp_path / "mine.csv", tmp_path / "store"
    mine.write_text("id,text\n1,Taco Bell\n")
    (tmp_path / "facts.jsonl").write_text(fact_line("Voters in Peru elect a mayor."))
    sync_folder(store, tmp_path / "facts.jsonl", around=Around(finish=compact))
    try:
        make_deep(run, 600)
        make_deep(release, 25, "a" * 200)
        make_deep(store / "segments", 25, "a" * 200)
        found = Erasure(workspace, [tmp_path], FINDER, workspace.takedown, print).erase_all()
    finally:
        subprocess.run(["rm", "-rf", run / "a"], check=True)
    assert not FINDER.finds(mine.read_text())
    unread = {each.path for each in found if "too long" in each.to_do}
    assert len(unread) == 2 and {path.relative_to(tmp_path).parts[0] for path in unread} == {
        "release", "store"
    }  # fmt: skip
    (refused,) = (each for each in found if each.path == store)
    assert "nested so deeply" in refused.to_do


def make_deep(folder: Path, deep: int, name: str = "a") -> None:
    """Nest folders in a folder."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(deep):
        os.mkdir(name, dir_fd=at)
        inside = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inside
    os.close(at)

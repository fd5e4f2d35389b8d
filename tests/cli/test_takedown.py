"""`coreeval takedown`: nothing that is kept names them any more, and all the rest still works."""

import csv
import gzip
import io
import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from zipfile import ZipFile

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml
from filelock import FileLock
from openpyxl import Workbook, load_workbook

from coreeval.agents.name_finder import NameFinder
from coreeval.agents.safety import SafetyRules
from coreeval.cli import main
from coreeval.cli.takedown import place_lines
from coreeval.config import Config, load_config
from coreeval.graph.bundled import DATASETS, demo_data
from coreeval.graph.setup import load_rules
from coreeval.releases.takedown.calls import TextMatches, erase_calls
from coreeval.releases.takedown.names import add_names
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.workspace import Workspace
from coreeval.viewer.app import create_app
from coreeval.viewer.catalog import RunCatalog
from tests.cli.kit import CONFIG, Shell
from tests.cli.test_docs import documented
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer
from tests.support.odd_rows import odd_row
from tests.viewer.kit import served

NAME = "Taco Bell"
"""The demo's news has it in the titles of two articles, its emotion benchmark in one sample."""
FORMS = (b"taco bell", b"taco-bell", b"taco_bell", b"tacobell", b"taco\\u0020bell")
LEFT = {(".coreeval", "releases"), (".coreeval", "takedown.txt"), ("sheets", "notes.txt")}
"""What goes on naming them: what is published, the list, and a file of nobody's form."""
LEFT_KINDS = {"release", "benchmark", "files of news", "file"}
PRICE = {"input": 1, "output": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with two runs, one of a benchmark that names them, and a release.

    The servers of their models stay up.
    """
    folder, news = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("news")
    with ExitStack() as up:
        for task in ("rte", "emotion"):
            data = {**DATASETS[task], "path": str(demo_data() / DATASETS[task]["path"])}
            config = folder / f"{task}.yaml"
            said: dict[str, Any] = {**CONFIG, "name": task, "task": task, "dataset": data}
            config.write_text(yaml.safe_dump(said), encoding="utf-8")
            answers = OfflineAnswers(load_config(config), news / task)
            up.callback(answers.close)
            server = up.enter_context(LLMServer(answers).in_thread())
            player = {"model": "openai:good", "base_url": server.url, "price": PRICE}
            said["models"] = {"default": player, "targets": [{"model": "offline:classifier"}]}
            config.write_text(yaml.safe_dump(said), encoding="utf-8")
            assert main(["refresh", str(config)]) == 0
        assert main(["release", str(run_of(folder, "rte")), "--version", "1"]) == 0
        yield folder


@pytest.fixture
def folder(made: Path, shell: Shell) -> Path:
    """Return a copy of it that is the current folder, with more that names them."""
    shutil.copytree(made, shell.folder, dirs_exist_ok=True)
    old, new = str(made), str(shell.folder)
    for path in (*shell.folder.rglob("manifest.json"), *shell.folder.rglob("config.yaml")):
        path.write_text(path.read_text("utf-8").replace(old, new), encoding="utf-8")
    plant(shell.folder)
    return shell.folder


def plant(folder: Path) -> None:
    """Name them wherever no demo run does."""
    home = folder / ".coreeval"
    with JsonCache(home / "cache" / "doc") as cache:
        cache.put("q taco bell", {"titles": ["quiet"]}, expire_s=1e6)
        cache.put("q long", {"titles": ["TACO  BELL " * 9000]}, expire_s=1e6)
        cache.put("q other", {"titles": ["Shell"]}, expire_s=1e6)
    (home / "reviews").mkdir()
    note = {"sample": "s", "digest": "d", "verdict": "rejected", "by": "ann", "at": "2026-01-01"}
    lines = [note | {"note": "no T\u00e1co Bell here"}, note | {"sample": "t", "note": "fine"}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (home / "reviews" / "rte.jsonl").write_text(text, encoding="utf-8")
    (home / "pcr" / "x").mkdir(parents=True)
    (home / "pcr" / "x" / "m.jsonl").write_text('{"a": "Taco Bell"}\n{"a": "b"}\n')
    (home / "estimates").mkdir(exist_ok=True)
    (home / "estimates" / "rte.json").write_text('{"first": ["Taco&nbsp;Bell", 1]}')
    (home / ".draft.json.17.tmp").write_text('{"x": "taco bell"}')
    run = run_of(folder, "rte")
    (run / "ours.json").write_text('{"study": "1", "disagreed": ["on Taco Bell"]}')
    with closing(sqlite3.connect(run / "checkpoints.db")) as file, file:
        file.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) "
            "VALUES ('lost', '1', 'msgpack', ?)", (b"\xa9Taco Bell",),
        )  # fmt: skip
    (store,) = (path.parent for path in (home / "gdelt").glob("*/store.db"))
    (store / "aside").mkdir(exist_ok=True)
    with gzip.open(store / "aside" / "a.jsonl.gz", "wt") as lines_aside:
        lines_aside.write('{"line": 1, "row": "Taco Bell"}\n{"line": 2, "row": "other"}\n')
    sheets = folder / "sheets"
    sheets.mkdir()
    (sheets / "rater-1.csv").write_text(
        '\ufeff"item","text","note"\r\n"1","said, taco\nbell","ok"\r\n"2","x","y"\r\n', "utf-8",
        newline="",
    )  # fmt: skip
    book = Workbook()
    assert book.active is not None
    book.active.append(["1", "At Taco Bell", 4])
    book.active.append(["2", "elsewhere", 5])
    book.save(sheets / "rater-2.xlsx")
    (sheets / "rater-3.html").write_text("<p>Taco <b>Bell</b></p>")
    (sheets / "notes.txt").write_text("mine: Taco Bell")


def run_of(folder: Path, name: str) -> Path:
    (run,) = (folder / ".coreeval" / "runs" / name).iterdir()
    return run


def naming(root: Path) -> list[Path]:
    """Return the files below a folder that name them, packed or not."""
    return [path for path in sorted(root.rglob("*")) if path.is_file() and _names(path)]


def _names(path: Path) -> bool:
    return _holds(path, FORMS)


def _holds(path: Path, forms: Sequence[bytes]) -> bool:
    return any(form in body.lower() for body in _bodies(path) for form in forms)


def _bodies(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, and what is packed in it, without the code under test."""
    raw = path.read_bytes()
    yield raw
    if raw.startswith(b"SQLite format 3"):
        yield from _blobs(path)
    elif raw.startswith(b"PAR1"):
        yield repr(pq.read_table(path).to_pylist()).encode()
    elif raw.startswith(b"\x1f\x8b"):
        yield gzip.decompress(raw)
    elif raw.startswith(b"PK"):
        with ZipFile(io.BytesIO(raw)) as packed:
            yield from (packed.read(name) for name in packed.namelist())
    elif path.name == "texts.bin":
        yield from _blocks(raw)
    elif path.suffix == ".val":
        yield _inflated(raw)


def _blobs(path: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute(  # a virtual table has its bytes in others
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        ).fetchall()
        for (table,) in tables:
            for row in file.execute(f'SELECT * FROM "{table}"'):
                yield from (_inflated(each) for each in row if isinstance(each, bytes))


def _blocks(raw: bytes) -> Iterator[bytes]:
    """Yield the packed blocks of the texts of a part (tools/gdelt/index/storage.py)."""
    number, start = int.from_bytes(raw[-8:], "little"), 0
    ends = len(raw) - 8 - 16 * number
    for at in range(ends, ends + 8 * number, 8):
        end, size = (int.from_bytes(raw[n : n + 8], "little") for n in (at, at + 8 * number))
        yield pa.decompress(raw[start:end], size, codec="zstd", asbytes=True)
        start = end


def _inflated(body: bytes) -> bytes:
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body


def kept_back(folder: Path) -> set[tuple[str, ...]]:
    """Return the beginnings of the paths that still name them."""
    return {path.relative_to(folder).parts[:2] for path in naming(folder)}


def spent(folder: Path) -> tuple[float, int, int]:
    """Return what all calls cost, their tokens and their number."""
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as file:
        query = "SELECT sum(usd), sum(prompt_tokens + completion_tokens), count(*) FROM calls"
        usd, tokens, calls = file.execute(query).fetchone()
    return round(usd, 9), tokens, calls


def test_no_byte_that_is_kept_names_them(folder: Path, shell: Shell) -> None:
    before, home = naming(folder), folder / ".coreeval"
    stores = {"calls.db", "run.db", "texts.bin", "cache.db", "store.db", "checkpoints.db"}
    assert {path.name for path in before} >= stores - {"store.db"}
    money, releases = spent(folder), digest(home / "releases")
    told = shell("takedown", NAME, folder / "sheets", "--dry-run", "--json")
    assert told.code == 0
    assert naming(folder) == before
    assert not told.document["done"] and not told.document["listed"]

    said = shell("takedown", NAME, folder / "sheets", "--yes", "--json")
    assert said.code == 0, said.out
    assert set(said.document) == documented("coreeval takedown")
    assert said.document["places"] == told.document["places"]
    assert kept_back(folder) == LEFT
    assert {row["kind"] for row in said.document["left"]} == LEFT_KINDS
    assert digest(home / "releases") == releases
    assert spent(folder) == money
    sheet = (folder / "sheets" / "rater-1.csv").read_text("utf-8-sig").splitlines()
    assert list(csv.reader(sheet)) == [
        ["item", "text", "note"], ["1", "(taken down)", "ok"], ["2", "x", "y"],
    ]  # fmt: skip
    page = load_workbook(folder / "sheets" / "rater-2.xlsx").active
    assert page is not None
    assert list(page.values) == [("1", "(taken down)", 4), ("2", "elsewhere", 5)]
    again = shell("takedown", NAME, folder / "sheets", "--yes", "--json").document
    assert again["places"] == []
    assert again["left"] == said.document["left"]


def test_calls_that_were_erased_stop_no_estimate_and_no_export(folder: Path, shell: Shell) -> None:
    said = shell("takedown", NAME, "--yes", "--json").document["places"]
    assert {"blanked"} == {row["action"] for row in said if row["kind"] == "calls"}
    for config in ("rte.yaml", "emotion.yaml"):
        assert shell("estimate", folder / config).code == 0
    run = run_of(folder, "emotion")
    assert shell("resume", run).code == 0
    assert shell("evaluate", run, "--dry-run").code == 0
    assert shell("calls", "export", "--model", "openai:good", "--out", folder / "x.jsonl").code == 0


PERSON = "Zebulon Quarkwhistle"
HANDLE = "zebulon-quarkwhistle"


@pytest.fixture
def named(shell: Shell) -> Path:
    """Return the workspace of a config with a person's name, which ids have too, and no text."""
    data, source = shell.folder / "data", demo_data() / "emotion"
    data.mkdir()
    for split in ("test", "train"):
        texts, labels = (
            (source / f"{split}_{kind}.txt").read_text("utf-8").splitlines()
            for kind in ("text", "labels")
        )
        with (data / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for n, (text, label) in enumerate(zip(texts, labels, strict=True)):
                row = {"id": f"{HANDLE}/{n}" if n < 3 else f"{split}/{n}", "text": text}
                file.write(json.dumps(row | {"label": int(label)}) + "\n")
    dataset = {"format": "jsonl", "path": str(data), "split": "test"}
    said: dict[str, Any] = {**CONFIG, "name": HANDLE, "dataset": dataset}
    said["detect"] = {"evaluate": False}
    config = shell.write("c.yaml", yaml.safe_dump(said))
    answers = OfflineAnswers(load_config(config), shell.folder.parent / f"{shell.folder.name}-news")
    with closing(answers), LLMServer(answers).in_thread() as server:
        player = {"model": "openai:good", "base_url": server.url, "price": PRICE}
        config.write_text(yaml.safe_dump(said | {"models": {"default": player}}), encoding="utf-8")
        assert shell("refresh", config).code == 0
    home = shell.folder / ".coreeval"
    assert shell("release", run_of(shell.folder, HANDLE), "--version", "1").code == 0
    return home


def test_a_name_in_ids_and_in_the_name_of_a_config_stays_only_where_that_is_told(
    named: Path, shell: Shell
) -> None:
    run, money = run_of(shell.folder, HANDLE), spent(shell.folder)
    before = calls_of_samples(run)
    assert {f"{HANDLE}/{n}" for n in range(3)} < before.keys()
    dry = shell("takedown", PERSON, "--dry-run", "--json").document
    said = shell("takedown", PERSON, "--yes", "--json").document
    assert said["places"] == dry["places"]
    left = said["left"]

    rows = {(row["kind"], row["path"]) for row in left}
    assert ("payers", str(named / "calls.db")) in rows
    for kind in ("runs", "releases"):
        assert ("name of a folder", str(named / kind / HANDLE)) in rows
    reported = {Path(row["path"]) for row in left if not row["kind"].startswith("name of")}
    names = {Path(row["path"]) for row in left if row["kind"].startswith("name of")}
    there = sorted(named.rglob("*"))
    assert {path for path in there if HANDLE in path.name} == names
    word = (HANDLE.encode(), PERSON.lower().encode(), HANDLE.replace("-", "").encode())
    telling = [path for path in there if path.is_file() and _holds(path, word)]
    told = [path for path in telling if reported & {path, *path.parents}]
    assert [*telling] == [*told, named / "takedown.txt"]
    assert run / "run.db" not in telling
    assert columns_with(named / "calls.db", HANDLE) == {("calls", "paid_by")}

    after = calls_of_samples(run)
    neutral = {f"taken down/{n + 1}": before[f"{HANDLE}/{n}"] for n in range(3)}
    others = {each: rows for each, rows in before.items() if HANDLE not in each}
    assert after == others | neutral
    assert odd_row(run) == ""
    assert spent(shell.folder) == money
    again = shell("takedown", PERSON, "--yes", "--json").document
    assert again["places"] == []
    assert again["left"] == left


def calls_of_samples(run: Path) -> dict[str, list[str]]:
    """Return the keys of the calls of each sample."""
    with closing(sqlite3.connect(run / "run.db")) as file:
        found = dict[str, list[str]]()
        for sample, key in file.execute("SELECT sample_id, key FROM calls ORDER BY key"):
            found.setdefault(sample, []).append(key)
    return found


def columns_with(path: Path, word: str) -> set[tuple[str, str]]:
    """Return the tables and columns of a database in which a word stands, packed or not."""
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            (table, column)
            for (table,) in tables
            for row in file.execute(f'SELECT * FROM "{table}"')
            for column in row.keys()  # noqa: SIM118 - a row iterates over its values
            for value in (row[column],)
            for body in (_inflated(value) if isinstance(value, bytes) else str(value).encode(),)
            if word.encode() in body
        }


def digest(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_files_of_articles_that_a_config_names_are_only_reported(
    folder: Path, shell: Shell
) -> None:
    file = folder / "texts.jsonl"
    file.write_text(json.dumps({"url": "https://a.example/1", "text": f"{NAME} opens."}) + "\n")
    before, config = file.read_bytes(), run_of(folder, "rte") / "config.yaml"
    said = yaml.safe_load(config.read_text("utf-8"))
    said["knowledge"] |= {"text": "article", "articles": {"files": [str(file)]}}
    config.write_text(yaml.safe_dump(said), encoding="utf-8")
    left = shell("takedown", NAME, "--yes", "--json").document["left"]
    assert [row["count"] for row in left if row["kind"] == "articles"] == [1]
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["task.yaml", "series.json"])
def test_a_name_in_the_copy_of_an_input_is_only_reported(
    folder: Path, shell: Shell, name: str
) -> None:
    copy = run_of(folder, "rte") / name
    copy.write_text(f"description: Whether a text is about {NAME}.\n", encoding="utf-8")
    before = copy.read_bytes()
    left = shell("takedown", NAME, "--yes", "--json").document["left"]
    assert [row["path"] for row in left if row["path"].endswith(name)] == [str(copy)]
    assert copy.read_bytes() == before


def test_runs_are_finished_by_resume(folder: Path, shell: Shell) -> None:
    rte, emotion = run_of(folder, "rte"), run_of(folder, "emotion")
    counts = {run: shell("status", run, "--json").document["counts"] for run in (rte, emotion)}
    assert shell("takedown", NAME, "--yes").code == 0
    open_again = shell("status", rte, "--json").document
    assert open_again["status"] == "interrupted"
    assert open_again["counts"]["pending"] > 0
    assert open_again["counts"]["total"] == counts[rte]["total"]
    one_less = shell("status", emotion, "--json").document
    assert one_less["counts"]["total"] == counts[emotion]["total"] - 1
    assert "taken down" in one_less["bad_rows"][-1]["reason"]
    assert odd_row(rte) == odd_row(emotion) == ""
    for run in (rte, emotion):
        assert shell("trace", run, "--json").code == 0
        refused = shell("release", run, "--version", "2")
        assert refused.code == 2
        assert "coreeval resume" in refused.err
    for run in (rte, emotion):
        resumed = shell("resume", run)
        assert resumed.code == 0, resumed.err
        assert odd_row(run) == ""
    assert shell("status", rte, "--json").document["counts"]["pending"] == 0
    assert shell("release", rte, "--version", "2").code == 0
    release = folder / ".coreeval" / "releases" / "rte" / "2"
    assert shell("verify", release).code == 0
    assert naming(release) == naming(rte) == naming(emotion) == []
    assert shell("verify", release.with_name("1")).code == 0


GARBAGE = b"SQLite format 3\0" + b"x" * 5000


@pytest.mark.parametrize("damage", [b"", GARBAGE, None])
@pytest.mark.parametrize("name", ["calls.db", "run.db", "checkpoints.db", "cache.db", "store.db"])
def test_a_damaged_place_is_reported_and_the_others_are_worked_on(
    folder: Path, shell: Shell, name: str, damage: bytes | None
) -> None:
    """None stands for a link to a file elsewhere."""
    store = folder / ".coreeval" / "broken"
    if name in ("cache.db", "store.db"):
        store.mkdir()
        broken = store / name
    else:
        broken = (folder / ".coreeval" if name == "calls.db" else run_of(folder, "rte")) / name
    broken.unlink(missing_ok=True)
    elsewhere = folder.parent / f"{folder.name}-elsewhere"
    if damage is None:
        elsewhere.write_bytes(b"mine")
        broken.symlink_to(elsewhere)
    else:
        broken.write_bytes(damage)
    mine = folder / ".coreeval" / "mine.jsonl"
    mine.write_text(json.dumps({"text": f"about {NAME}"}) + "\n")
    for how in ("--dry-run", "--yes"):
        said = shell("takedown", NAME, how)
        unread = "check it yourself" in said.out
        assert said.code == (1 if unread and how == "--yes" else 0), said.err
        if damage or damage is None:
            assert unread
    assert NAME not in mine.read_text()
    if damage is None:
        assert elsewhere.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["cache.db", "store.db", "release.json"])
def test_a_store_or_release_exempts_no_run_no_workspace_and_no_folder(
    folder: Path, shell: Shell, name: str
) -> None:
    """Also other programs have a `cache.db`; a run or a workspace may come from somebody else."""
    run, sheets = run_of(folder, "emotion"), folder / "sheets"
    (sheets / "more").mkdir()
    (sheets / "more" / "a.csv").write_text(f"id,text\n1,{NAME}\n")
    for place in (run, run / "control", folder / ".coreeval", sheets):
        place.mkdir(exist_ok=True)
        if name == "release.json":
            (place / name).write_text("{}")
        elif name == "cache.db":
            JsonCache(place).close()
        else:
            with closing(sqlite3.connect(place / name)) as file, file:
                file.execute("CREATE TABLE t (a)")
    said = shell("takedown", NAME, sheets, "--yes", "--json")
    assert said.code == 0, said.out
    assert kept_back(folder) == LEFT
    assert {row["kind"] for row in said.document["left"]} == LEFT_KINDS


def test_a_release_exempts_no_run_in_it(folder: Path, shell: Shell) -> None:
    release = folder / ".coreeval" / "releases" / "rte" / "1"
    inside, cache = release / "run", release / "doc"
    shutil.copytree(run_of(folder, "rte"), inside)
    shutil.copytree(folder / ".coreeval" / "cache" / "doc", cache)
    for name in ("release.json", "release.sha256"):
        shutil.copy(release / name, folder / ".coreeval")
    before = digest(release)
    assert shell("takedown", NAME, folder / "sheets", "--yes").code == 0
    assert kept_back(folder) == LEFT
    assert not {inside / "run.db", cache / "cache.db"} & {*naming(folder)}
    own = {path: body for path, body in before.items() if not {inside, cache} & {*path.parents}}
    assert own.items() <= digest(release).items()


def test_a_lock_file_of_another_program_is_reported(folder: Path, shell: Shell) -> None:
    (folder / "sheets" / "poetry.lock").write_text(f"by {NAME}")
    left = shell("takedown", NAME, folder / "sheets", "--dry-run", "--json").document["left"]
    assert str(folder / "sheets" / "poetry.lock") in {row["path"] for row in left}


def test_no_copy_can_be_made_of_a_run_that_could_not_be_searched(
    folder: Path, shell: Shell
) -> None:
    run, other = run_of(folder, "emotion"), run_of(folder, "rte")
    (run / "run.db").write_bytes(GARBAGE)
    assert naming(run / "dataset")
    said = shell("takedown", NAME, "--yes")
    assert said.code == 1 and "run.db" in said.out
    assert naming(run / "dataset") == []
    assert ((run / ".takedown").exists(), (other / ".takedown").exists()) == (True, False)
    assert "has not finished" in shell("export", run, "--to", "hf", "--out", "copy").err


def test_a_run_that_is_worked_on_is_refused(folder: Path, shell: Shell) -> None:
    before = naming(folder)
    with FileLock(run_of(folder, "rte") / "run.lock"):
        said = shell("takedown", NAME, "--yes", "--json")
        assert shell("takedown", NAME, "--dry-run").code == 0
    assert (said.code, said.error["kind"]) == (1, "locked")
    assert not (folder / ".coreeval" / "takedown.txt").exists()
    assert naming(folder) == before


def test_a_call_store_that_is_used_is_refused(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.tools.stores.sqlite.BUSY_MS", 200)
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as file:
        file.execute("BEGIN")
        file.execute("SELECT count(*) FROM calls").fetchone()
        said = shell("takedown", NAME, "--yes", "--json")
    assert (said.code, said.error["kind"]) == (1, "locked")
    assert shell("takedown", NAME, "--yes").code == 0


def test_nobody_is_there_to_agree(folder: Path, shell: Shell) -> None:
    before = naming(folder)
    said = shell("takedown", NAME)
    assert said.code == 2
    assert "--dry-run" in said.err and "--yes" in said.err
    assert naming(folder) == before
    assert not (folder / ".coreeval" / "takedown.txt").exists()


@pytest.mark.parametrize(("answer", "goes"), [("y", True), ("n", False)])
def test_a_person_is_asked(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: str, goes: bool
) -> None:
    before = naming(folder)
    typed = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    said = shell("takedown", NAME)
    assert said.code == 0
    assert "Permanently delete everything stored about Taco Bell?" in said.err
    assert (naming(folder) != before) is goes
    assert ("nothing was changed" in said.out) is not goes


def test_a_run_made_while_the_question_stands_is_worked_on_too(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    rte = run_of(folder, "rte")

    def answer(*_: object) -> str:
        shutil.copytree(rte, rte.with_name("second"))
        return "y\n"

    typed = io.StringIO()
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(typed, "readline", answer)
    monkeypatch.setattr("sys.stdin", typed)
    said = shell("takedown", NAME)
    assert said.code == 0
    assert said.out.count("samples in flight") == 2
    assert naming(rte) == naming(rte.with_name("second")) == []


def test_a_run_that_began_before_the_list_and_appears_after_the_names_are_on_it(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    rte = run_of(folder, "rte")
    early, late = rte.with_name("early"), rte.with_name("late")

    def add(path: Path, names: Sequence[str]) -> None:
        add_names(path, names)
        shutil.copytree(rte, early)

    def work(path: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
        yield from erase_calls(path, finder, dry=dry)
        shutil.copytree(early, late)

    monkeypatch.setattr("coreeval.releases.takedown.erasure.add_names", add)
    monkeypatch.setattr("coreeval.releases.takedown.erasure.erase_calls", work)
    said = shell("takedown", NAME, "--yes", "--json")
    assert said.code == 1
    assert naming(early) == []
    (row,) = (row for row in said.document["left"] if row["kind"] == "made meanwhile")
    assert (row["path"], row["action"]) == (str(late), "reported")
    assert "it was not checked" in row["to_do"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert shell("takedown", NAME, "--yes").code == 0
    assert naming(late) == []


def test_a_refresh_that_has_read_the_list_is_seen(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, codes = run_of(folder, "rte").with_name("new"), list[int]()

    def read(config: Config, workspace: Workspace | None = None) -> SafetyRules:
        found = load_rules(config, workspace)
        codes.append(main(["takedown", NAME, "--yes"]))
        return found

    monkeypatch.setattr("coreeval.graph.run.load_rules", read)
    assert shell("refresh", folder / "rte.yaml", "--run-dir", new).code == 0
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert codes == [1]  # the new run is locked
    assert shell("takedown", NAME, "--yes").code == 0
    assert naming(new) == []


@pytest.mark.parametrize("name", ["Al", "a # b", "0123456789abcdef", " . "])
def test_what_is_no_name(folder: Path, shell: Shell, name: str) -> None:
    said = shell("takedown", name, "--yes")
    assert said.code == 2
    assert "at least three letters" in said.err


def test_a_file_name_cannot_imitate_a_line_of_the_output() -> None:
    row = {"path": "a\nnothing was changed.csv", "count": 1, "kind": "texts", "action": "left"}
    [line] = place_lines([row])
    assert "\n" not in line and line.endswith("a nothing was changed.csv")


def test_places_that_are_not_there(shell: Shell) -> None:
    assert shell("takedown", NAME, "--yes").code == 2
    assert shell("takedown", NAME, "nowhere", "--yes").code == 2


def test_an_alias_and_a_list_elsewhere(folder: Path, shell: Shell) -> None:
    (folder / "ours.txt").write_text("# ours\nMr Quux")
    said = shell(
        "takedown", "Quillfeather Inc", "--alias", NAME, "--alias", "mr  quux",
        "--list", "ours.txt", "--yes", "--json",
    )  # fmt: skip
    assert said.code == 0
    listed = (folder / "ours.txt").read_text("utf-8")
    assert listed == "# ours\nMr Quux\nQuillfeather Inc\nTaco Bell\n"
    assert not (folder / ".coreeval" / "takedown.txt").exists()
    assert {row["action"] for row in said.document["places"]} == {"blanked", "deleted", "reopened"}


def test_what_was_stopped_goes_on(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coreeval.releases.takedown.news_store.compact", stop)
    assert shell("takedown", NAME, "--yes").code == 130
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert (folder / ".coreeval" / "takedown.txt").exists()
    assert any(path.name == "texts.bin" for path in naming(folder))
    assert shell("takedown", NAME, folder / "sheets", "--yes").code == 0
    assert kept_back(folder) == LEFT


def test_new_runs_and_releases_respect_the_list_of_the_workspace(
    folder: Path, shell: Shell
) -> None:
    (folder / ".coreeval" / "takedown.txt").write_text("Taco Bell\n")
    rte = run_of(folder, "rte")
    assert shell("release", rte, "--version", "2").code == 0
    release = folder / ".coreeval" / "releases" / "rte" / "2"
    made = json.loads((release / "release.json").read_text("utf-8"))
    assert made["takedown"]["entries"] == 1
    assert made["takedown"]["withheld"] > 0
    config = folder / "rte.yaml"
    said = shell("refresh", config, "--run-dir", folder / "new", "--json")
    assert said.code == 0, said.out
    manifest = json.loads((folder / "new" / "manifest.json").read_text("utf-8"))
    assert manifest["knowledge"]["takedown"] == 1
    assert naming(folder / "new") == []


def test_the_words_of_a_person(folder: Path, shell: Shell) -> None:
    said = shell("takedown", NAME, "--yes").out
    assert "removed: Taco Bell" in said
    assert "coreeval resume" in said
    assert "on the list: .coreeval/takedown.txt" in said
    nobody = shell("takedown", "Nobody Atall", "--yes").out
    assert "nothing stored here names Nobody Atall" in nobody


def test_the_pages_of_a_run_that_was_changed(folder: Path, shell: Shell) -> None:
    assert shell("takedown", NAME, "--yes").code == 0
    home = Workspace(folder / ".coreeval")
    keys = {path: key for key, path in RunCatalog(workspace=home).find_runs().items()}
    with served(create_app([], workspace=home)) as address:
        assert fetched(address).status == 200
        for run in (run_of(folder, "rte"), run_of(folder, "emotion")):
            page = f"{address}/run/{keys[run]}"
            for part in ("", "/samples", "/detection", "/live"):
                assert fetched(f"{page}{part}").status == 200
            for sample in shell("trace", run, "--json").document["samples"]:
                told = fetched(f"{page}/sample/{sample['sample']}")
                assert told.status == 200
                assert b"taco" not in told.read().lower()


def fetched(address: str) -> HTTPResponse:
    answer = urlopen(address)
    assert isinstance(answer, HTTPResponse)
    return answer


def test_every_call_of_a_story_can_be_shown(folder: Path, shell: Shell) -> None:
    assert shell("takedown", NAME, "--yes").code == 0
    rte = run_of(folder, "rte")
    for sample in shell("trace", rte, "--json").document["samples"]:
        said = shell("trace", rte, sample["sample"], "--calls")
        assert said.code == 0, said.err
        assert "taco" not in said.out.lower()
    assert '"taken_down": ' in shell("calls", "stats", "--json").out
    assert shell("calls", "gc", "--dry-run").code == 0


def test_a_run_of_which_nothing_is_left_does_not_begin_again(folder: Path, shell: Shell) -> None:
    """Else `resume` would read the benchmark, which still names them."""
    rte = run_of(folder, "rte")
    with closing(sqlite3.connect(rte / "run.db")) as file, file:
        file.execute(
            """UPDATE samples SET fields = '{"sentence1": "Taco Bell", "sentence2": ""}'"""
        )
    assert shell("takedown", NAME, "--yes").code == 0
    shell("resume", rte)
    assert shell("status", rte, "--json").document["counts"]["total"] == 0
    assert naming(rte) == []

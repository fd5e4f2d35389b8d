"""The pages of a run or release as files."""

import asyncio
import json
import shutil
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from httpx2 import AsyncClient

from coreeval.errors import ReleaseError, RunStateError, UsageError
from coreeval.releases.release import read_release
from coreeval.releases.review.review import Choice, record_choices, resolve_run
from coreeval.runs.manifest import read_manifest
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.workspace import Workspace
from coreeval.viewer import bundle
from tests.cli.conftest import shell  # noqa: F401 - a fixture
from tests.cli.kit import Shell
from tests.releases.kit import NOW, SNIPPET, Made, make_run
from tests.releases.people import rewrite, sample_id
from tests.releases.test_release import FREE
from tests.viewer.kit import Finished, write_bundle_of
from tests.viewer.test_run_pages import words_of

KEPT, REJECTED, LATER, FAILED = map(sample_id, range(4))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run of six samples; its release leaves one out that a person rejected."""
    made = make_run(tmp_path_factory.mktemp("made"), dataset=FREE)
    record_choices(made.files.root, [Choice(sample=REJECTED, verdict="rejected")], by="Ada")
    release(made)
    return made


def release(made: Made, *, takedown: Path | None = None) -> Path:
    """Release a run that stands in its workspace, and return the folder."""
    there = made.folder / ".coreeval" / "runs" / read_manifest(made.files.manifest).run
    shutil.copytree(made.files.root, there)
    return made.release("1", takedown=takedown).path


def read_all(folder: Path) -> str:
    """Return what all files of a bundle say."""
    files = [path for path in folder.rglob("*") if path.is_file() and "static" not in path.parts]
    return "".join(path.read_text(encoding="utf-8") for path in files)


def test_a_bundle_names_no_folder_of_this_machine(finished: Finished, tmp_path: Path) -> None:
    said = read_all(write_bundle_of(finished.first, tmp_path / "pages"))
    assert ".yaml</bdi>" in said  # the name of the config stays
    assert str(finished.workspace.root.parent) not in said
    assert 'hx-get="' not in said
    assert "/static/" not in said.replace("../static/", "")


def test_a_bundle_names_no_folder_of_files_outside_the_project(tmp_path: Path) -> None:
    for name in ("project", "disk"):
        (tmp_path / name).mkdir()
    disk = tmp_path / "disk" / "jane.doe"
    knowledge = {"path": str(disk / "news"), "window": {"start": "2026-11-01"}}
    models = {"default": "offline", "targets": [f"replay:{disk}/answers.jsonl"]}
    made = make_run(tmp_path / "project", knowledge=knowledge, models=models)
    at = made.files.root / "report.html"
    at.write_text(f"<p>replay:{disk}/answers.jsonl, {disk}/news, https://x.org{disk}/news")
    said = (write_bundle_of(made.files.root, tmp_path / "pages") / "report.html").read_text()
    assert said.endswith(f"replay:…/answers.jsonl, …/news, https://x.org{disk}/news")


def test_the_report_of_somebody_elses_run_runs_no_script(
    finished: Finished, tmp_path: Path
) -> None:
    theirs = tmp_path / "runs" / "theirs"
    shutil.copytree(finished.first, theirs)
    (theirs / "report.html").write_text("<script>alert(document.domain)</script>")
    said = (write_bundle_of(theirs, tmp_path / "pages") / "report.html").read_text()
    policy, _, rest = said.partition("<script>")
    assert rest == "alert(document.domain)</script>"  # not one character of it stands before
    assert policy.startswith("<!doctype html>")
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\';' in policy
    assert "script-src" not in policy


def test_a_takedown_that_ends_between_two_pages_leaves_no_bundle(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_bundle_of(made.files.root, tmp_path / "pages")
    before = read_all(folder)
    listed = Workspace(Path(read_manifest(made.files.manifest).workspace)).takedown
    fetch = bundle._fetch

    async def list_name(client: AsyncClient, address: str) -> bytes:
        listed.write_text("Jane Doe\n")
        return await fetch(client, address) + b"Jane Doe"

    monkeypatch.setattr(bundle, "_fetch", list_name)
    try:
        with pytest.raises(RunStateError, match="has changed while texts were copied"):
            write_bundle_of(made.files.root, folder)
    finally:
        listed.unlink()
    assert read_all(folder) == before and sorted(tmp_path.iterdir()) == [folder]


def test_a_bundle_replaces_itself_and_nothing_else(made: Made, tmp_path: Path) -> None:
    folder = write_bundle_of(made.files.root, tmp_path / "pages")
    before = read_all(folder)
    marker = folder / "bundle.json"
    known = json.loads(marker.read_text())
    assert {*known["files"], "bundle.json"} == {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    }
    marker.write_text(json.dumps(known | {"files": [*known["files"], "samples-9.html"]}))
    for name in ("samples-9.html", "CNAME"):
        (folder / name).write_text("bench.example")
    (folder / "index.html").write_text("")
    (tmp_path / ".coreeval-draft-a").mkdir()  # what a killed process left
    (tmp_path / ".coreeval-draft-a.lock").touch()
    write_bundle_of(made.files.root, folder)
    assert not (folder / "samples-9.html").exists()
    (folder / "CNAME").unlink()
    assert read_all(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]
    fewer = [name for name in known["files"] if name != "detection.html"]
    marker.write_text(json.dumps(known | {"files": fewer}))
    (folder / "detection.html").write_text("mine")
    with pytest.raises(UsageError, match="this file is not part of the bundle"):
        write_bundle_of(made.files.root, folder)
    assert (folder / "detection.html").read_text() == "mine"
    assert json.loads(marker.read_text())["files"] == fewer


def test_a_bundle_fills_an_empty_folder_without_replacing_it(made: Made, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir(mode=0o700)
    (tmp_path / "pages").symlink_to("volume")
    (tmp_path / "volume" / ".coreeval-draft-a").mkdir()  # what a killed process left
    (tmp_path / "volume" / ".coreeval-draft-a.lock").touch()
    folder = write_bundle_of(made.files.root, tmp_path / "pages")
    assert (tmp_path / "pages").is_symlink()
    assert (tmp_path / "volume").stat().st_mode & 0o777 == 0o700
    assert (folder / "index.html").is_file()
    assert not list(folder.glob(".coreeval*"))


def test_a_bundle_inside_a_release_is_refused(made: Made, tmp_path: Path) -> None:
    for name in ("release.json", "release.sha256"):
        (tmp_path / name).touch()
    with pytest.raises(ReleaseError, match="this folder is a release"):
        write_bundle_of(made.files.root, tmp_path / "pages")


@pytest.mark.parametrize(
    "marker",
    [
        *("", "{}", "[1", '{"coreeval_bundle": 1, "files": ["../kept.txt"]}'),
        '{"coreeval_bundle": 1, "files": ["index.html", "notes.txt"]}',
    ],
)
def test_a_folder_with_something_else_is_refused(made: Made, tmp_path: Path, marker: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "kept.txt").write_text("mine")
    (folder / ("bundle.json" if marker else "mine.txt")).write_text(marker or "mine")
    with pytest.raises(UsageError, match="this folder contains something other than a bundle"):
        write_bundle_of(made.files.root, folder)
    assert (tmp_path / "kept.txt").exists()
    assert len(list(folder.iterdir())) == 1


def test_a_bundle_follows_no_link_out_of_its_folder(made: Made, tmp_path: Path) -> None:
    folder, outside = tmp_path / "pages", tmp_path / "outside"
    outside.mkdir()
    folder.mkdir()
    (folder / "bundle.json").write_text('{"coreeval_bundle": 1, "files": []}')
    (folder / "sample").symlink_to(outside)
    with pytest.raises(UsageError, match="through a link"):
        write_bundle_of(made.files.root, folder)
    assert not list(outside.iterdir())


def test_the_bundle_of_a_release_shows_only_what_it_publishes(made: Made, tmp_path: Path) -> None:
    plan = bundle.plan_bundle(made.shelf / "1")
    assert KEPT in plan.samples
    assert not {REJECTED, FAILED} & {*plan.samples}
    folder = write_bundle_of(made.shelf / "1", tmp_path / "pages")
    said = read_all(folder)
    assert "This is a copy of the release <bdi>weekly 1</bdi>, in which " in said
    assert "old tweet number 0" in said
    assert "old tweet number 1" not in said
    assert "old tweet number 3" not in said
    assert len(list(folder.glob("sample/*.html"))) == len(plan.samples)


def test_the_bundle_of_a_release_shows_neither_withheld_texts_nor_steps(tmp_path: Path) -> None:
    made = make_run(tmp_path, dataset=FREE)
    store = RunStore.open(made.files.store, now=lambda: NOW)
    detail = {"composed": {"text": "a draft about Bo Li"}}
    for each in (LATER, FAILED, KEPT):
        store.history.record(StepRecord(sample_id=each, attempt=1, node="compose", detail=detail,
                                        started_at=NOW.isoformat(), seconds=1.0))  # fmt: skip
    store.close()
    changes = {
        "reason": "facts_supported: no news says 'Bo Li'",
        "semantic_status": "reworded",
        "semantic": {"text": "reworded 3"},
        "updated": {"text": "a rejected text"},
    }
    asyncio.run(rewrite(made, 3, **changes))
    listed = tmp_path / "takedown.txt"
    listed.write_text("Ada Roe opened\n")
    place = release(made, takedown=listed)
    withheld = [row.id for row in read_release(place).samples() if row.withheld]
    assert KEPT in withheld and LATER not in withheld
    said = read_all(write_bundle_of(place, tmp_path / "pages"))
    assert "new tweet number 2" in said and "The river rose again." in said
    assert "reworded 3" in said  # the semantic arm has it
    for hidden in (SNIPPET, "Ada Roe opened it", "reworded 0", "Bo Li", "rejected text"):
        assert hidden not in said
    assert not {*withheld} & {*bundle.plan_bundle(place).samples}
    hidden_texts = read_all(write_bundle_of(place, tmp_path / "hidden", hide_texts=True))
    assert "new tweet number 2" not in hidden_texts


def test_a_release_and_hidden_texts_hide_messages_in_causes(tmp_path: Path) -> None:
    made = make_run(tmp_path, dataset=FREE)
    failed = {"outcome": "failed", "semantic_status": "reworded", "semantic": {"text": "other"}}
    for number, who in ((2, "Bo"), (3, "Cy")):
        said = f"declined for {who} Li"
        asyncio.run(rewrite(made, number, **failed, reason=said, updated=None, facts=()))
    for pages in (
        write_bundle_of(made.files.root, tmp_path / "hidden", hide_texts=True),
        write_bundle_of(release(made), tmp_path / "released"),
    ):
        assert " Li" not in read_all(pages)
        front = words_of((pages / "index.html").read_text())
        assert "reasons not shown 2" in front
        assert "no news 1" in front


def test_the_bundle_of_a_release_is_refused_if_its_run_has_other_texts_now(tmp_path: Path) -> None:
    made = make_run(tmp_path, dataset=FREE)
    place = release(made)
    run = resolve_run(place)
    shutil.rmtree(made.files.root)
    run.rename(made.files.root)
    asyncio.run(rewrite(made, 2, updated={"text": "written after a takedown"}))
    shutil.copytree(made.files.root, run)
    said = f"has changed since this release was made: 1 sample differs, the first is {LATER!r}"
    with pytest.raises(UsageError, match=said):
        bundle.plan_bundle(place)
    with pytest.raises(UsageError, match=said):
        bundle.plan_bundle(place, hide_texts=True)


def test_the_bundle_of_a_release_that_was_altered_blames_the_release(tmp_path: Path) -> None:
    place = release(make_run(tmp_path, dataset=FREE))
    [table] = (place / "samples").glob("*.parquet")
    rows = pq.read_table(table)
    column = rows.schema.get_field_index("updated_sha256")
    forged = pa.array(["0" * 64] * len(rows), rows.schema.field(column).type)
    pq.write_table(rows.set_column(column, rows.schema.field(column), forged), table)
    with pytest.raises(ReleaseError, match="the release has changed since it was made"):
        bundle.plan_bundle(place)


def test_texts_that_a_release_leaves_out_are_shown_in_no_bundle(tmp_path: Path) -> None:
    closed = release(make_run(tmp_path))
    with pytest.raises(UsageError, match="omits the original texts"):
        bundle.plan_bundle(closed)
    hidden = read_all(write_bundle_of(closed, tmp_path / "pages", hide_texts=True))
    assert "old tweet" not in hidden
    assert KEPT in hidden


def test_the_command_says_what_it_wrote_or_why_not(
    shell: Shell,  # noqa: F811
    made: Made,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle, "MOST_SAMPLES", 2)
    told = shell("view", made.files.root, "--bundle", "pages", "--json").document
    folder = shell.folder / "pages"
    assert told["files"] == len([path for path in folder.rglob("*") if path.is_file()]) - 1
    assert (told["samples"], told["total"], told["release"]) == (2, 6, None)
    front = (folder / "index.html").read_text()
    assert "2 of 6 samples have a page (accepted samples were chosen first)" in front
    assert (folder / "samples.html").read_text().count('href="sample/') == 2
    both = shell("view", made.files.root, made.files.root, "--bundle", "both")
    assert (both.code, "a bundle contains one run or release" in both.err) == (2, True)
    assert not (shell.folder / "both").exists()

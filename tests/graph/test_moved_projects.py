"""Projects whose folder was copied or renamed: their runs use the files of the new folder."""

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from coreeval.agents.name_finder import NameFinder
from coreeval.config import load_config
from coreeval.config.load import read_config_name
from coreeval.errors import ConfigError, ReleaseError
from coreeval.graph.evaluate import prepare_evaluation
from coreeval.graph.run import lock_opened_run, open_run
from coreeval.graph.run_origin import list_changes
from coreeval.models.replay import open_replay
from coreeval.releases.create import make_release
from coreeval.releases.takedown.calls import TextMatches
from coreeval.releases.takedown.erasure import Erasure
from coreeval.releases.withheld import refuse_listed_samples
from coreeval.runs import config_source
from coreeval.runs.manifest import Evaluation, read_manifest, write_manifest
from coreeval.runs.own_config import iter_config_remarks, load_own_config
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.sync.sync import Around, sync_folder
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import RunFiles, Workspace
from coreeval.viewer.bundle import plan_bundle
from tests.cli.kit import DEMO
from tests.releases.kit import make_run
from tests.tools.stores.test_call_batches import question

NEWS = {"window": {"start": "2026-11-01"}, "path": "news", "takedown": "names.txt"}
LICENCE = {"name": "CC-BY-4.0", "redistribute": True}
ITEMS = """\
name: weekly
dataset: {path: data/rows.csv, format: jsonl}
models: {targets: [openai:gpt-5.6]}
"""
CLOSED = {"name": "all rights reserved", "redistribute": False}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with relative paths and a run in its workspace."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "names.txt").write_text("Nobody Nowhere\n")
    (folder / "news").mkdir()
    fill(folder, NEWS)
    return folder


def fill(folder: Path, news: Mapping[str, object]) -> None:
    made = make_run(folder, dataset={"licence": LICENCE}, knowledge=news)
    inside = folder / ".coreeval" / "runs" / "weekly" / "20261120T030000Z"
    inside.parent.mkdir(parents=True)
    shutil.move(made.files.root, inside)


def run_of(folder: Path) -> RunFiles:
    return RunFiles(folder / ".coreeval" / "runs" / "weekly" / "20261120T030000Z")


def change(folder: Path, file: str = "weekly.yaml", **sections: dict[str, object]) -> None:
    config = folder / file
    said = yaml.safe_load(config.read_text())
    for name, section in sections.items():
        said[name] = said.get(name, {}) | section
    config.write_text(yaml.safe_dump(said))


def place(project: Path, how: str) -> Path:
    """Copy the project, or rename it, and return its new folder."""
    new = project.with_name("new")
    if how == "copied":
        shutil.copytree(project, new)
    else:
        project.rename(new)
    return new


def link_workspace(folder: Path, disk: Path) -> None:
    """Move the workspace of a project to another place, and leave a link to it."""
    open_calls(folder / ".coreeval" / "calls.db").close()
    disk.parent.mkdir(exist_ok=True)
    (folder / ".coreeval").rename(disk)
    (folder / ".coreeval").symlink_to(disk)


@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_a_run_uses_the_files_of_its_present_folder(project: Path, how: str) -> None:
    new = place(project, how)
    with (new / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    change(new, run={"budget_usd": 0.2}, dataset={"licence": CLOSED})
    for _ in range(2):  # the second time, the first has written to the run
        files, manifest, setup = open_run(run_of(new).root, None)
        assert manifest.config_folder == new
        config = setup.config
        assert config.knowledge.path == str(new / "news")
        assert config.dataset.path == str(new / "bench")
        assert len(setup.rules.takedown) == 2
        assert config.run.budget_usd == 0.2
        assert config.dataset.licence and not config.dataset.licence.redistribute
        assert any(str(project) in each and "new" in each for each in setup.remarks)
        assert list_changes(manifest, setup) == ["the benchmark " + config.dataset.path]
        with lock_opened_run(files, manifest, setup):
            pass
    stored = json.loads(files.manifest.read_text())["source"]
    assert stored == {
        "path": str(project / "weekly.yaml"),
        "sha256": "f00d",
        "overrides": [],
    }
    third = new.rename(project.with_name("third"))
    assert open_run(run_of(third).root, None)[2].config.knowledge.path == str(third / "news")


@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_a_run_that_was_continued_there_still_uses_them(project: Path, how: str) -> None:
    new = place(project, how)
    files, manifest, _ = open_run(run_of(new).root, None)
    write_manifest(files.manifest, manifest)  # as a resume does, with the workspace found
    assert open_run(files.root, None)[2].config.knowledge.path == str(new / "news")
    third = new.rename(project.with_name("third"))
    assert open_run(run_of(third).root, None)[2].config.knowledge.path == str(third / "news")


def test_a_run_that_comes_back_from_a_copy_uses_its_first_folder_again(project: Path) -> None:
    new = place(project, "copied")
    files, manifest, _ = open_run(run_of(new).root, None)
    write_manifest(files.manifest, manifest)  # as a resume does
    shutil.rmtree(project)
    shutil.copytree(new, project)
    with (project / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    _, manifest, setup = open_run(run_of(project).root, None)
    assert manifest.config_folder == project and not setup.remarks
    assert len(setup.rules.takedown) == 2
    assert setup.config.dataset.path == str(project / "bench")


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_a_run_with_a_config_in_memory_moves_with_its_project(
    project: Path, how: str, *, recorded: bool
) -> None:
    files = run_of(project)
    said = json.loads(files.manifest.read_text())
    said["source"] = {"path": "", "sha256": "f00d"} | (
        {"project": str(project)} if recorded else {}
    )
    files.manifest.write_text(json.dumps(said))
    (project / "weekly.yaml").unlink()
    new = place(project, how)
    with (new / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    for folder in (new, new.with_name("third")):
        if not folder.exists():
            new.rename(folder)
        files, manifest, setup = open_run(run_of(folder).root, None)
        assert setup.config.dataset.path == str(folder / "bench")
        assert len(setup.rules.takedown) == 2
        [remark] = setup.remarks
        assert str(project) in remark and folder.name in remark
        with lock_opened_run(files, manifest, setup):
            write_manifest(files.manifest, manifest)  # as a resume does
        hidden = plan_bundle(files.root).folders
        assert {str(project), str(folder)} <= {*hidden}
    release = make_release(run_of(folder).root, version="1")
    assert release.manifest.takedown.entries == 2
    assert "third" not in (release.path / "release.json").read_text()


@pytest.mark.parametrize("target", ["disk", "disk/.coreeval"])
@pytest.mark.parametrize("kept", ["weekly.yaml", "renamed", "in memory"])
def test_a_workspace_on_another_disk_is_used_with_the_project_that_links_to_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, kept: str, target: str
) -> None:
    link_workspace(project, project.parent / target)
    files = run_of(project)
    said = json.loads(files.manifest.read_text()) | {"workspace": str(project / ".coreeval")}
    if kept == "renamed":
        (project / "weekly.yaml").rename(project / "tweets.yaml")
    elif kept == "in memory":
        said["source"] = {"path": "", "sha256": "f00d", "project": str(project)}
        (project / "weekly.yaml").unlink()
    files.manifest.write_text(json.dumps(said))
    assert read_manifest(files.manifest).source.moved is None
    assert read_manifest(files.manifest).config_folder == project
    new = place(project, "renamed")
    monkeypatch.chdir(new)
    with (new / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    for _ in range(2):
        files, manifest, setup = open_run(run_of(new).root, None)
        assert setup.config.dataset.path == str(new / "bench")
        assert len(setup.rules.takedown) == 2 and len(setup.remarks) == 1
        assert manifest.config_folder == new
        write_manifest(files.manifest, manifest)  # as a resume does
    assert make_release(run_of(new).root, version="1").manifest.takedown.entries == 2


def test_a_config_whose_old_name_another_benchmark_uses_is_found(project: Path) -> None:
    (project / "weekly.yaml").rename(project / "first.yaml")
    other = yaml.safe_load((project / "first.yaml").read_text()) | {"name": "second"}
    (project / "weekly.yaml").write_text(yaml.safe_dump(other))
    (project / "names.txt").write_text("Nobody Nowhere\nAda Roe\n")
    manifest = read_manifest(run_of(project).manifest)
    assert manifest.source.file == project / "first.yaml"
    (project / "first.yaml").unlink()
    manifest = read_manifest(run_of(project).manifest)
    assert manifest.source.file == project / "weekly.yaml"
    [remark] = iter_config_remarks(manifest.source)
    assert "describes another benchmark by now" in remark


def test_prices_move_with_a_project_that_is_renamed_twice(project: Path) -> None:
    prices = "reader: {input_usd_per_mtok: 1, output_usd_per_mtok: 2}\n"
    (project / "prices.yaml").write_text(prices)
    change(project, run={"prices": "prices.yaml"})
    new = place(project, "copied")
    files, manifest, setup = open_run(run_of(new).root, None)
    with lock_opened_run(files, manifest, setup):
        assert setup.config.run.prices == str(new / "prices.yaml")
    third = new.rename(project.with_name("third"))
    kept = open_run(run_of(third).root, None, keep=True)[2].config
    assert kept.run.prices == str(third / "prices.yaml")


@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_a_release_obeys_the_list_of_the_present_folder(project: Path, how: str) -> None:
    new = place(project, how)
    with (new / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    change(new, knowledge={"takedown": "more.txt"})
    (new / "more.txt").write_text("Grace Hopper\n")
    made = make_release(run_of(new).root, version="1")
    assert made.manifest.takedown.entries == 3
    assert made.path == new / ".coreeval" / "releases" / "weekly" / "1"
    config = load_config(made.path / "config.yaml")
    assert config.dataset.path == str(made.path / "bench"), "published paths are relative"


def test_files_that_only_the_old_folder_has_are_used_there(project: Path) -> None:
    new = place(project, "copied")
    shutil.rmtree(new / "news")
    files, manifest, setup = open_run(run_of(new).root, None)
    assert setup.config.knowledge.path == str(project / "news")
    with lock_opened_run(files, manifest, setup):
        pass
    change(new, run={"budget_usd": 3})
    assert open_run(files.root, None)[2].config.run.budget_usd == 3, "the config is the run's"


def test_a_list_that_only_the_old_folder_has_is_used_there(project: Path) -> None:
    new = place(project, "copied")
    (new / "names.txt").unlink()
    assert open_run(run_of(new).root, None)[2].rules.takedown.names == ("Nobody Nowhere",)
    assert make_release(run_of(new).root, version="1").manifest.takedown.entries == 1
    (project / "names.txt").unlink()
    with pytest.raises(ConfigError, match="the takedown list cannot be read") as caught:
        make_release(run_of(new).root, version="2")
    assert caught.value.where == str(new / "names.txt")


def test_the_files_of_another_project_are_not_used(project: Path, tmp_path: Path) -> None:
    """A run without its workspace was moved into the workspace of another project."""
    other = tmp_path / "other"
    run_of(other).root.parent.mkdir(parents=True)
    shutil.copytree(run_of(project).root, run_of(other).root)
    (other / "news").mkdir()
    (other / "weekly.yaml").write_text("name: another\n")
    manifest = read_manifest(run_of(other).manifest)
    assert manifest.source.file == project / "weekly.yaml"
    assert load_own_config(run_of(other), manifest).knowledge.path == str(project / "news")
    (remark,) = iter_config_remarks(manifest.source)
    assert "still uses the config" in remark and remark.endswith(str(project))


def test_a_copy_whose_config_is_unclear_says_that_it_uses_the_old_one(project: Path) -> None:
    new = place(project, "copied")
    (new / "weekly.yaml").rename(new / "tweets.yaml")
    shutil.copy(new / "tweets.yaml", new / "variant.yaml")
    for _ in range(2):
        files, manifest, setup = open_run(run_of(new).root, None)
        assert manifest.source.file == project / "weekly.yaml"
        assert len(setup.remarks) == 1 and "still uses the config" in setup.remarks[0]
        write_manifest(files.manifest, manifest)  # as a resume does


@pytest.mark.parametrize("how", ["stays", "copied", "renamed"])
def test_a_config_file_that_was_renamed_is_found_by_its_name(project: Path, how: str) -> None:
    (project / "task.yaml").write_text("name: weekly\nlabels: []\n")
    new = project if how == "stays" else place(project, how)
    (new / "weekly.yaml").rename(new / "tweets.yaml")
    change(new, "tweets.yaml", run={"budget_usd": 3})
    _, manifest, setup = open_run(run_of(new).root, None)
    assert manifest.source.file == new / "tweets.yaml"
    assert setup.config.run.budget_usd == 3 and setup.config.knowledge.path == str(new / "news")
    assert len(setup.remarks) == 1 and ("renamed" in setup.remarks[0]) == (how == "stays")


def test_a_config_file_that_is_missing_is_reported(project: Path) -> None:
    (project / "weekly.yaml").rename(project / "tweets.yaml")
    shutil.copy(project / "tweets.yaml", project / "other.yaml")  # which one it is is unclear
    remarks = open_run(run_of(project).root, None)[2].remarks
    assert len(remarks) == 1 and "is missing" in remarks[0] and "weekly.yaml" in remarks[0]


def test_a_crowded_folder_is_searched_once_for_a_renamed_config(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "weekly.yaml").rename(project / "tweets.yaml")
    for number in range(100):
        (project / f"c{number}.yaml").write_text("name: other\n" + "#" * 64_000)
    read, path = list[Path](), run_of(project).manifest

    def read_name(file: Path, overrides: tuple[str, ...]) -> object:
        read.append(file)
        return read_config_name(file, overrides)

    monkeypatch.setattr(config_source, "read_config_name", read_name)
    for _ in range(2):
        assert read_manifest(path).source.file == project / "tweets.yaml"
        assert len(read) == 1 + (1 << 20) // 64_012
    (project / "tweets.yaml").write_text((project / "tweets.yaml").read_text() + "# changed\n")
    assert read_manifest(path).source.file == project / "tweets.yaml"
    assert read[-1] == project / "tweets.yaml" and read.count(read[-1]) == 2


@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_a_takedown_searches_the_news_of_the_present_folder(project: Path, how: str) -> None:
    sync_folder(project / "news", DEMO / "news", around=Around(finish=compact))
    new = place(project, how)
    found = take_down(new)
    assert [each.path for each in found if each.kind == "news"] == [new / "news"]
    status = json.loads(run_of(new).manifest.read_text())
    assert status["source"]["path"] == str(project / "weekly.yaml")


def test_a_takedown_reports_news_that_are_missing(project: Path) -> None:
    (project / "news").rename(project / "moved")
    (left,) = [each for each in take_down(project) if each.path == project / "news"]
    assert left.action == "reported" and "missing" in left.to_do


@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_a_model_that_is_a_file_keeps_its_name_and_is_opened_in_the_present_folder(
    project: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("said.jsonl", "more.jsonl"):
        (project / name).write_text("")
    change(project, models={"targets": ["replay:said.jsonl"]})
    config = load_config(project / "weekly.yaml")
    run_of(project).config.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    added = Evaluation(added=({"model": f"replay:{project}/more.jsonl"},))
    manifest = read_manifest(run_of(project).manifest)
    write_manifest(run_of(project).manifest, manifest.model_copy(update={"evaluation": added}))
    new = place(project, how)
    monkeypatch.chdir(new)
    change(new, run={"budget_usd": 3})  # which changes no result
    with (new / "said.jsonl").open("a") as file:
        file.write("{}\n")
    plan = prepare_evaluation(run_of(new).root, ["replay:said.jsonl", "replay:more.jsonl"], None)
    targets = plan.setup.config.models.targets
    assert plan.asked_targets == list(targets)
    assert [each.name for each in targets] == [f"{project}/said.jsonl", f"{project}/more.jsonl"]
    assert [each.place for each in targets] == [f"{new}/said.jsonl", f"{new}/more.jsonl"]
    with pytest.raises(ConfigError, match="not a recorded answer") as caught:
        open_replay(targets[0])
    assert caught.value.where and caught.value.where.startswith(str(new))
    assert not any("models" in each for each in list_changes(plan.manifest, plan.setup))


@pytest.mark.parametrize("how", ["copied", "renamed"])
@pytest.mark.parametrize("name", ["p", "q"])
def test_files_beside_a_project_are_moved_with_it(tmp_path: Path, how: str, name: str) -> None:
    old = tmp_path / "team" / "p"
    for folder in (old, old.with_name("shared"), old.with_name("news")):
        folder.mkdir(parents=True)
    (old / "../shared/names.txt").write_text("Nobody Nowhere\n")
    fill(old, NEWS | {"path": "../news", "takedown": "../shared/names.txt"})
    tree = place(old.parent, how)
    new = (tree / "p").rename(tree / name)
    with (tree / "shared" / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    change(new, run={"budget_usd": 0.2}, dataset={"licence": CLOSED})
    _, manifest, setup = open_run(run_of(new).root, None)
    knowledge = setup.config.knowledge
    assert knowledge.takedown == str(tree / "shared" / "names.txt")
    assert knowledge.path == str(tree / "news")
    assert setup.config.run.budget_usd == 0.2 and len(setup.rules.takedown) == 2
    assert list_changes(manifest, setup) == ["the benchmark " + setup.config.dataset.path]


def test_a_file_beside_the_old_folder_that_the_config_names_stays(tmp_path: Path) -> None:
    old, news = tmp_path / "team" / "p", tmp_path / "team" / "news"
    for folder in (old, news):
        folder.mkdir(parents=True)
    fill(old, {"window": {"start": "2026-11-01"}, "path": str(news)})
    new = place(old.parent, "copied") / "p"
    manifest = read_manifest(run_of(new).manifest)
    assert manifest.source.file == new / "weekly.yaml"
    assert load_own_config(run_of(new), manifest).knowledge.path == str(news)


def test_files_that_were_left_beside_the_old_folder_are_used_there(tmp_path: Path) -> None:
    old, shared = tmp_path / "a" / "p", tmp_path / "a" / "shared" / "news"
    old.mkdir(parents=True)
    shared.mkdir(parents=True)
    fill(old, {"window": {"start": "2026-11-01"}, "path": "../shared/news"})
    (tmp_path / "b").mkdir()
    new = old.rename(tmp_path / "b" / "p")
    change(new, run={"budget_usd": 0.2})
    _, manifest, setup = open_run(run_of(new).root, None)
    assert setup.config.knowledge.path == str(shared)
    assert list_changes(manifest, setup) == ["the benchmark " + setup.config.dataset.path]


LONG = "/tmp/" + "a" * 300


@pytest.mark.parametrize(
    ("file", "keys", "path"),
    [
        ("manifest.json", ("source", "path"), "/tmp/x\0y/weekly.yaml"),
        ("manifest.json", ("source", "path"), "/tmp/\ud800.yaml"),
        ("manifest.json", ("workspace",), LONG),
        ("manifest.json", ("workspace",), "/a" * 4000),
        ("config.yaml", ("knowledge", "path"), LONG),
        ("config.yaml", ("dataset", "path"), LONG),
        ("config.yaml", ("dataset", "path"), "loop"),
    ],
)
def test_an_odd_path_in_a_received_run_ends_no_takedown(
    project: Path, file: str, keys: tuple[str, ...], path: str
) -> None:
    received = run_of(place(project, "copied"))
    (received.root / "loop").symlink_to("loop")
    said = values = yaml.safe_load((received.root / file).read_text())
    for key in keys[:-1]:
        values = values[key]
    values[keys[-1]] = path
    write = json.dumps if file == "manifest.json" else yaml.safe_dump
    (received.root / file).write_text(write(said))
    sync_folder(project / "news", DEMO / "news", around=Around(finish=compact))
    found = take_down(project, received.root)
    assert [each.path for each in found if each.kind == "news"] == [project / "news"]
    if file == "manifest.json":
        (damaged,) = [each for each in found if "the manifest is damaged" in each.to_do]
        assert damaged.path == received.manifest


@pytest.mark.parametrize("task", ["refresh", "items", "misspelt"])
@pytest.mark.parametrize("linked", [True, False])
def test_a_benchmark_is_left_if_its_run_is_elsewhere(
    project: Path, tmp_path: Path, task: str, *, linked: bool
) -> None:
    text, rows = "text,label\nLunch at Taco Bell,joy\n", project / "data" / "rows.csv"
    rows.parent.mkdir()
    rows.write_text(text)
    if linked:
        link_workspace(project, tmp_path / "disk")
    if task == "items":
        (project / "weekly.yaml").write_text(ITEMS)
    else:
        change(project, dataset={"path": "data/rows.csv"})
    if task == "misspelt":
        change(project, run={"bugdet_usd": 3})
    run_of(project).root.rename(tmp_path / "elsewhere")
    found = {each.kind: each.action for each in take_down(project, rows.parent)}
    assert found["benchmark"] == "reported"
    assert rows.read_text() == text


@pytest.mark.parametrize("deleted", [False, True])
def test_a_release_is_not_published_if_a_list_of_its_config_has_grown(
    project: Path, *, deleted: bool
) -> None:
    release = make_release(run_of(project).root, version="1")
    refuse_listed_samples(release)
    if deleted:
        shutil.rmtree(run_of(project).root)
    with (project / "names.txt").open("a") as names:
        names.write("Ada Roe\n")
    with pytest.raises(ReleaseError, match="names or news on the takedown list"):
        refuse_listed_samples(release)


@pytest.mark.parametrize("how", ["copied", "renamed", "linked"])
@pytest.mark.parametrize("files", ["batches", "../batches"])
def test_a_takedown_searches_the_batches_of_the_present_folder(
    tmp_path: Path, how: str, files: str
) -> None:
    old = tmp_path / "team" / "p"
    folder = Path(os.path.normpath(old / files))
    for each in (old, folder):
        each.mkdir(parents=True)
    fill(old, {"window": {"start": "2026-11-01"}})
    workspace, payer = Workspace(old / ".coreeval"), read_manifest(run_of(old).manifest).payer
    with closing(open_calls(workspace.calls, payer)) as calls:
        asyncio.run(calls.batches.queue(question("a")))
        (length,) = calls.batches.queue_lengths()
        now, recorded = datetime(2026, 11, 28, tzinfo=UTC), workspace.record_path(str(folder))
        sending = calls.batches.begin(length, ["a"], made_at=now, budget_usd=9.0, folder=recorded)
        batch = asyncio.run(sending)
    assert batch is not None
    asked = folder / f"{batch.id}.jsonl"
    asked.write_text('{"text": "about Taco Bell"}\n')
    change(old, dataset={"path": "."})  # files of batches are of no benchmark
    if how == "linked":  # and `COREEVAL_HOME` names the other disk
        link_workspace(old, tmp_path / "disk" / ".coreeval")
        new, searched = old, tmp_path / "disk"
    else:
        new = searched = place(old.parent, how) / "p"
    found = [each.path for each in take_down(searched) if each.path.name == asked.name]
    assert found == [(new / files).resolve() / asked.name]
    assert asked.exists() == (how != "renamed")
    assert how == "renamed" or ("Taco Bell" in asked.read_text()) == (how == "copied")


def take_down(folder: Path, *given: Path) -> list[TextMatches]:
    workspace = Workspace(folder / ".coreeval")
    finder = NameFinder(["Taco Bell"])
    return Erasure(workspace, given, finder, workspace.takedown, lambda _: None).erase_all()

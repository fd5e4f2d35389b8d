"""Configs of runs and projects that are damaged: what they name is searched, left or reported."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from coreeval.agents.name_finder import NameFinder
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches
from coreeval.releases.takedown.erasure import Erasure
from coreeval.releases.takedown.project_configs import DOUBTED
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.sync.sync import Around, sync_folder
from coreeval.tools.workspace import RunFiles, Workspace
from tests.cli.kit import DEMO
from tests.releases.kit import make_run

ROWS = "text,label\nLunch at Taco Bell,joy\n"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Return a run whose news store is beside its project, and whose benchmark is a table."""
    project = tmp_path / "project"
    project.mkdir()
    sync_folder(tmp_path / "store", DEMO / "news", around=Around(finish=compact))
    news = {"window": {"start": "2026-11-01"}, "path": "../store"}
    files = make_run(project, knowledge=news).files
    (project / "rows.csv").write_text(ROWS)
    for config in (project / "weekly.yaml", files.config):
        said = yaml.safe_load(config.read_text())
        said["dataset"] |= {"format": "csv", "path": str(project / "rows.csv")}
        config.write_text(yaml.safe_dump(said, sort_keys=False))
    manifest = json.loads(files.manifest.read_text())
    manifest["knowledge"]["path"] = str(tmp_path / "store")
    files.manifest.write_text(json.dumps(manifest))
    return RunFiles(files.root.rename(project / ".coreeval" / "run"))


def find_project(files: RunFiles) -> Path:
    return files.root.parents[1]


def cut(text: str) -> str:
    return text[: text.index("train_split") + 5]


def cut_after_a_line(text: str) -> str:
    return text[: text.index("  train_split")]


def change_version(text: str) -> str:
    return text + "another_key: true\n"


@pytest.mark.parametrize("damage", [cut, cut_after_a_line, None])
def test_a_run_whose_config_is_damaged_is_reported_and_its_files_are_found(
    files: RunFiles, damage: Callable[[str], str] | None
) -> None:
    text = files.config.read_text()
    files.config.unlink()
    if damage:
        files.config.write_text(damage(text))
    found = take_down(files)
    (left,) = [each for each in found if each.path == files.config]
    assert left.kind == UNREADABLE_FILE and "restore it" in left.to_do
    check_files(files, found)


def test_a_config_of_another_version_names_the_same_files(files: RunFiles) -> None:
    files.config.write_text(change_version(files.config.read_text()))
    (find_project(files) / "weekly.yaml").unlink()
    found = take_down(files)
    assert not any(each.kind == UNREADABLE_FILE for each in found)
    check_files(files, found)


@pytest.mark.parametrize("name", ["weekly.yaml", "configs/more/weekly.yml"])
def test_a_project_config_with_mistakes_keeps_its_benchmark(files: RunFiles, name: str) -> None:
    for path in (files.config, files.store, files.manifest):
        path.unlink()
    project = find_project(files)
    text = (project / "weekly.yaml").read_text()
    (project / "weekly.yaml").unlink()
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(change_version(text))
    found = take_down(files)
    (left,) = [each for each in found if each.path == project / "rows.csv"]
    assert left.kind == ("benchmark" if name == "weekly.yaml" else DOUBTED)
    assert name in left.to_do and not any(each.kind == UNREADABLE_FILE for each in found)
    assert (project / "rows.csv").read_text() == ROWS


def test_a_project_config_that_is_not_yaml_is_reported(files: RunFiles) -> None:
    config = find_project(files) / "weekly.yaml"
    config.write_text(cut(files.config.read_text()))
    config.with_name("other.yaml").write_text("name: {{ template }}\n- x\n")  # no config
    found = take_down(files)
    assert [each.path for each in found if each.kind == UNREADABLE_FILE] == [config]


@pytest.mark.parametrize("place", ["weekly.yaml", "configs/weekly.yaml", ""])
def test_a_benchmark_in_the_folder_of_its_project_is_left_unless_it_is_named(
    files: RunFiles, place: str
) -> None:
    project, config = find_project(files), find_project(files) / "weekly.yaml"
    for each in (config, files.config):
        said = yaml.safe_load(each.read_text())
        said["dataset"]["path"] = str(project)
        each.write_text(yaml.safe_dump(said))
    (project / "configs").mkdir()
    config.replace(project / place) if place else config.unlink()  # as if given in memory
    sheet, answers = project / "sheets" / "ada.csv", files.root / "numleak" / "a.jsonl"
    for path, text in ((sheet, ROWS), (answers, '{"text": "Taco Bell"}\n')):
        path.parent.mkdir()
        path.write_text(text)
    left = {each.path: each.to_do for each in take_down(files) if each.kind == "file of a project"}
    assert {*left} == {project / "rows.csv", sheet}
    assert all("name it" in to_do for to_do in left.values())
    assert (project / "rows.csv").read_text() == sheet.read_text() == ROWS
    assert "Taco Bell" not in answers.read_text(), "it is the run's own"
    take_down(files, project, sheet.parent)
    assert (project / "rows.csv").read_text() == ROWS != sheet.read_text()
    take_down(files, project / "rows.csv")
    assert (project / "rows.csv").read_text() == "text,label\n(taken down),joy\n"


def test_a_benchmark_s_own_folder_is_searched_if_it_is_named(files: RunFiles) -> None:
    config, rows = find_project(files) / "weekly.yaml", find_project(files) / "rows"
    for each in (config, files.config):
        said = yaml.safe_load(each.read_text())
        said["dataset"]["path"] = str(rows)
        each.write_text(yaml.safe_dump(said))
    rows.mkdir()
    (rows / "test.csv").write_text(ROWS)
    take_down(files)
    assert (rows / "test.csv").read_text() == ROWS
    take_down(files, rows)
    assert (rows / "test.csv").read_text() != ROWS


def write_config(path: Path, **keys: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    dataset = {"format": "csv", "path": "none.csv"}
    path.write_text(yaml.safe_dump({"name": "other", "dataset": dataset} | keys))


CLAIMS: list[dict[str, object]] = [
    {"dataset": {"format": "csv", "path": "../../sheets"}},
    {"dataset": {"format": "csv", "path": "../../.."}},
    {"knowledge": {"articles": {"files": ["../../sheets/ada.csv"]}}},
    {"knowledge": {"articles": {"ccnews": ["../../sheets/"]}}},
    {"knowledge": {"takedown": "../../sheets/ada.csv"}},
]


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("given", [[""], ["sheets", "got"]])
def test_a_received_config_keeps_no_file_silently(
    files: RunFiles, claim: dict[str, object], given: list[str]
) -> None:
    project = find_project(files)
    sheet, config = project / "sheets" / "ada.csv", project / "got" / "more" / "x.yaml"
    sheet.parent.mkdir()
    sheet.write_text(ROWS)
    write_config(config, **claim)
    places = [project / each for each in given]
    left = [each for each in take_down(files, *places) if each.kind == DOUBTED]
    assert bool(left) == (sheet.read_text() == ROWS)
    assert all(str(config) in each.to_do for each in left)
    config.unlink()
    take_down(files, *places)
    assert sheet.read_text() != ROWS


def test_a_benchmark_that_projects_share_is_left(files: RunFiles) -> None:
    project = find_project(files)
    shared = project.parent / "shared" / "bench" / "rows.csv"
    shared.parent.mkdir(parents=True)
    shared.write_text(ROWS)
    for name in ("first", "second"):
        dataset = {"format": "csv", "path": "../shared/bench"}
        write_config(project.parent / name / "c.yaml", dataset=dataset)
    places = [project.parent / each for each in ("first", "second", "shared")]
    assert any(each.kind == DOUBTED for each in take_down(files, *places))
    assert shared.read_text() == ROWS


def test_a_received_config_has_no_other_folders_searched(files: RunFiles) -> None:
    project = find_project(files)
    other = project.with_name("other")
    other.mkdir()
    (other / "rows.csv").write_text(ROWS)
    write_config(project / "got" / "x.yaml", dataset={"format": "csv", "path": str(other)})
    for each in (files.store, files.config, files.manifest):  # a received run names them as well
        copy = project / "got" / "run" / each.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(each.read_bytes())
    said = yaml.safe_load(files.config.read_text())
    said["dataset"]["path"] = said["knowledge"]["path"] = str(other)
    (project / "got" / "run" / "config.yaml").write_text(yaml.safe_dump(said))
    assert not any(each.path.is_relative_to(other) for each in take_down(files))


def test_a_received_run_keeps_no_file_silently(files: RunFiles) -> None:
    project = find_project(files)
    sheet = project / "sheets" / "ada.csv"
    sheet.parent.mkdir()
    sheet.write_text(ROWS)
    said = yaml.safe_load(files.config.read_text())
    said["dataset"]["path"] = str(sheet)
    received = files.root.rename(project / "run")
    (received / "config.yaml").write_text(yaml.safe_dump(said))
    found = take_down(files)
    assert [each.path for each in found if each.kind == DOUBTED] == [sheet]
    assert sheet.read_text() == ROWS


def test_a_config_in_a_subfolder_whose_run_is_in_the_workspace_is_trusted(files: RunFiles) -> None:
    project = find_project(files)
    (project / "configs").mkdir()
    (project / "weekly.yaml").unlink()
    write_config(project / "configs" / "x.yaml", dataset={"format": "csv", "path": "../rows.csv"})
    found = {each.kind for each in take_down(files)}
    assert "benchmark" in found and DOUBTED not in found
    assert (project / "rows.csv").read_text() == ROWS


def test_settings_of_another_program_are_no_config(files: RunFiles) -> None:
    project = find_project(files)
    sheet = project / "sheets" / "ada.csv"
    sheet.parent.mkdir()
    sheet.write_text(ROWS)
    (project / "train.yaml").write_text("dataset: {path: sheets, batch_size: 32}\n")
    take_down(files)
    assert sheet.read_text() != ROWS


LISTED = "name\nTaco Bell\n"


def test_other_takedown_lists_keep_the_name_and_are_not_reported(files: RunFiles) -> None:
    project = find_project(files)
    config, other = project / "weekly.yaml", project / "other" / ".coreeval" / "takedown.txt"
    said = yaml.safe_load(files.config.read_text())
    own = [project / name for name in ("run.csv", "config.csv", "configs/now.csv")]
    for file, listed in ((files.config, own[0]), (config, own[1])):
        said["knowledge"]["takedown"] = str(listed)
        file.write_text(yaml.safe_dump(said))
    other.parent.mkdir(parents=True)
    config.rename(project / "moved.yaml")  # beside the workspace
    manifest = json.loads(files.manifest.read_text())
    manifest["source"]["path"] = str(project / "configs" / "weekly.yaml")
    files.manifest.write_text(json.dumps(manifest))
    write_config(
        project / "configs" / "weekly.yaml", name="weekly", knowledge={"takedown": "now.csv"}
    )
    for each in (*own, other):
        each.write_text(LISTED)
    found = take_down(files)
    assert {each.path for each in found}.isdisjoint((*own, other))
    assert all(each.read_text() == LISTED for each in (*own, other))
    take_down(files, *own)
    assert all(each.read_text() == LISTED for each in own)


def test_a_list_of_a_project_elsewhere_is_left(files: RunFiles) -> None:
    project = find_project(files)
    write_config(project / "other" / "x.yaml", knowledge={"takedown": "names.csv"})
    listed = project / "other" / "names.csv"
    listed.write_text(LISTED)
    (left,) = [each for each in take_down(files) if each.path == listed]
    assert (left.kind, left.action) == ("takedown list", "reported")
    assert listed.read_text() == LISTED


def take_down(files: RunFiles, *given: Path) -> list[TextMatches]:
    project = find_project(files)
    workspace, finder = Workspace(project / ".coreeval"), NameFinder(["Taco Bell"])
    erasure = Erasure(workspace, given or [project], finder, workspace.takedown, lambda _: None)
    return erasure.erase_all()


def check_files(files: RunFiles, found: list[TextMatches]) -> None:
    project = find_project(files)
    actions = {each.path: each.action for each in found if each.kind in ("news", "benchmark")}
    assert actions[project.with_name("store")] == "deleted"
    assert actions[project / "rows.csv"] == "reported"
    assert (project / "rows.csv").read_text() == ROWS


def test_files_of_news_outside_the_workspace_are_reported(files: RunFiles) -> None:
    store = find_project(files).with_name("store")
    (store / "store.db").unlink()
    found = take_down(files)
    (left,) = [each for each in found if each.path == store]
    assert (left.kind, left.count, left.action) == ("files of news", 2, "reported")
    finder, home = NameFinder(["Taco Bell"]), Workspace(find_project(files) / ".coreeval")
    given = Erasure(home, [store], finder, home.takedown, lambda _: None).count_all()
    assert not any(each.kind == "files of news" for each in given), "they are searched themselves"

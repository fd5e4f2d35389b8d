import json
import socket
import sys
from pathlib import Path
from types import ModuleType

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.hub_files import keep_to_own_files
from coreeval.evaluation.benchmarks.load import list_splits
from tests.evaluation.benchmarks.kit import dataset, read

pytestmark = pytest.mark.timeout(60)
OWN = json.dumps({"text": "so happy", "label": "joy"}) + "\n"
CARD = "---\nconfigs:\n- config_name: default\n  {}\n---\n"
FILE = "data_files:\n  - split: test\n    path: {}"


def folder_with_card(tmp_path: Path, text: str) -> Path:
    (tmp_path / "secret.jsonl").write_text(OWN)
    folder = tmp_path / "set"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "mine.jsonl").write_text(OWN)
    (folder / "README.md").write_text(CARD.format(text))
    return folder


@pytest.mark.parametrize(
    "text",
    [
        FILE.format("{outside}/secret.jsonl"),
        FILE.format("[deep/mine.jsonl, ../secret.jsonl]"),
        FILE.format("zip://secret.jsonl::{outside}/secret.zip"),
        "data_dir: ..",
    ],
)
def test_a_card_names_no_file_outside_of_its_folder(tmp_path: Path, text: str) -> None:
    folder = folder_with_card(tmp_path, text.replace("{outside}", str(tmp_path)))
    with pytest.raises(DatasetError, match="outside the dataset") as caught:
        read("hf", folder)
    assert caught.value.where == str(folder) and "README.md" in caught.value.hint


def test_no_name_of_a_split_is_looked_for_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="outside the dataset"):
        list_splits(dataset("hf", folder_with_card(tmp_path, "data_dir: ..")))


def test_no_request_is_made_for_an_address_in_a_card(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inner:
        inner.settimeout(0)
        address = f"http://127.0.0.1:{inner.getsockname()[1]}/x.jsonl"
        folder = folder_with_card(tmp_path, FILE.format(address))
        with pytest.raises(DatasetError, match="outside the dataset"):
            read("hf", folder)
        with pytest.raises(BlockingIOError):
            inner.accept()


def test_the_other_file_of_settings_is_a_card_too(tmp_path: Path) -> None:
    folder = folder_with_card(tmp_path, FILE.format("deep/mine.jsonl"))
    text = CARD.format(FILE.format("../secret.jsonl")).replace("---\n", "")
    (folder / ".huggingface.yaml").write_text(text)
    with pytest.raises(DatasetError, match="outside the dataset"):
        read("hf", folder)


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = folder_with_card(tmp_path, FILE.format("deep/link.jsonl"))
    link = folder / "deep" / "link.jsonl"
    link.symlink_to(folder / "deep" / "mine.jsonl")
    assert [sample.fields["text"] for sample in read("hf", folder).samples] == ["so happy"]
    for target in (tmp_path / "secret.jsonl", tmp_path):
        link.unlink()
        link.symlink_to(target)
        with pytest.raises(DatasetError, match="points outside it") as caught:
            read("hf", folder)
        assert "link.jsonl" in caught.value.where


def test_a_card_names_files_of_its_own(tmp_path: Path) -> None:
    folder = folder_with_card(tmp_path, "data_dir: deep")
    (folder / "deep" / "mine.jsonl").rename(folder / "deep" / "test.jsonl")
    assert [sample.fields["text"] for sample in read("hf", folder).samples] == ["so happy"]


# -- datasets on the hub ---------------------------------------------------------------------------


class DataFiles(ModuleType):
    @staticmethod
    def resolve_pattern(pattern: str, base_path: str, allowed: object = None) -> list[str]:
        return [f"{base_path}/{pattern}"]


class Package(ModuleType):
    data_files = DataFiles("datasets.data_files")


HOME = "hf://datasets/o/n@aaaa"


@pytest.mark.parametrize(
    ("path", "base_path", "pattern"),
    [
        ("o/n", HOME, "http://10.0.0.1/x.jsonl"),
        ("o/n", HOME, "/etc/passwd"),
        ("o/n", HOME, "../../p/q@main/x.jsonl"),
        ("o/n", HOME, "hf://datasets/p/q/x.jsonl"),
        ("o/n", HOME, "*::http://10.0.0.1/x.zip"),
        ("o/n", HOME, "http://[/x"),
        ("o/n", f"{HOME}/../../p/q@main", "x.jsonl"),
        ("o/n", "hf://datasets/o/nn@aaaa", "x.jsonl"),
        ("o/n", "hf://datasets/p/q@aaaa", "x.jsonl"),
        ("o/n", "/etc", "*"),
        ("buckets/o/n", "hf://buckets/p/q", "*"),
    ],
)
def test_a_card_of_the_hub_names_no_file_elsewhere(path: str, base_path: str, pattern: str) -> None:
    package = Package("datasets")
    with (
        keep_to_own_files(package, path),
        pytest.raises(DatasetError, match="outside the dataset"),
    ):
        package.data_files.resolve_pattern(pattern, base_path=base_path)


@pytest.mark.parametrize(
    ("path", "base_path"),
    [
        ("o/n", HOME),
        ("hf://datasets/o/n", f"{HOME}/data"),
        ("buckets/o/n", "hf://buckets/o/n"),
        ("hf://buckets/o/n/a", "hf://buckets/o/n/a/b"),
    ],
)
def test_a_card_of_the_hub_names_its_own(path: str, base_path: str) -> None:
    package = Package("datasets")
    with keep_to_own_files(package, path):
        found = package.data_files.resolve_pattern("**/test[-._ 0-9]*", base_path, None)
    assert found == [f"{base_path}/**/test[-._ 0-9]*"]
    assert package.data_files.resolve_pattern("/etc/passwd", "") == ["//etc/passwd"]


def test_files_that_name_other_files_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", ModuleType("h5py"))
    with keep_to_own_files(Package("datasets"), "o/n"), pytest.raises(ImportError):
        __import__("h5py")
    assert __import__("h5py")

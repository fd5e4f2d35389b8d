"""Datasets of the hub, with a stand-in for the `datasets` package."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import fingerprint, splits_of
from tests.evaluation.benchmarks.kit import dataset, read, reasons

ROWS: list[dict[str, object]] = [
    {"idx": 7, "tweet": "so happy", "label": 1},
    {"idx": 8, "tweet": "so sad", "label": -1},
]
COLUMNS = {"text": "tweet", "id": "idx"}


class Stream:
    def __init__(self, column_names: list[str] | None) -> None:
        self.column_names = column_names

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(ROWS)


class Package(ModuleType):
    declared: list[str] | None = None

    def get_dataset_split_names(self, path: str, subset: str | None) -> list[str]:
        if path == "empty/answer":
            raise KeyError("id")  # as huggingface_hub does where the answer is {}
        if path == "no/such":
            raise FileNotFoundError("not on the hub")
        return ["train", "test"]

    def load_dataset(self, path: str, subset: str | None, *, split: str, streaming: bool) -> Stream:
        assert streaming and subset == "emotion"
        return Stream(self.declared)


@pytest.fixture(params=[None, ["idx", "tweet", "label"]])
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Package:
    package = Package("datasets")
    package.declared = request.param
    monkeypatch.setitem(sys.modules, "datasets", package)
    return package


@pytest.mark.usefixtures("package")
def test_rows_of_the_hub() -> None:
    found = read("hf", Path("tweet_eval"), subset="emotion", columns=COLUMNS)
    assert [(s.id, s.label_text) for s in found.samples] == [("7", "joy")]
    assert [line for line, _ in reasons(found.bad_rows)] == [2]
    assert splits_of(dataset("hf", Path("tweet_eval"))) == ["test", "train"]


@pytest.mark.usefixtures("package")
def test_what_goes_wrong() -> None:
    with pytest.raises(DatasetError, match="cannot be opened: not on the hub"):
        read("hf", Path("no/such"))
    with pytest.raises(DatasetError, match="cannot be opened: 'id'"):
        read("hf", Path("empty/answer"))
    with pytest.raises(DatasetError, match="no column 'text'") as caught:
        read("hf", Path("tweet_eval"), subset="emotion")
    assert caught.value.where == "tweet_eval (emotion)"


@pytest.mark.usefixtures("package")
def test_fingerprint_is_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataset("hf", Path("tweet_eval"), subset="emotion")
    before = fingerprint(config)
    assert fingerprint(config) == before
    monkeypatch.setitem(ROWS[0], "tweet", "other")
    assert fingerprint(config) != before


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match="not installed") as caught:
        read("hf", Path("tweet_eval"))
    assert "coreeval[hf]" in caught.value.hint

"""A benchmark's folder comes from others: no link in it turns a file of the user into samples."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.items import load_items
from coreeval.tasks import load_task
from tests.evaluation.benchmarks.kit import EMOTION, put, read
from tests.evaluation.benchmarks.kit_kinds import QUIZ, READING, SUMMARIES

RTE = "index\tsentence1\tsentence2\tlabel\n0\tone\ttwo\tentailment\n"
ROW = '{"text": "so happy", "label": "joy"}\n'
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "test/ects/ABM_q1_2021.txt": ("a long secret", lambda at: read("ectsum", at, SUMMARIES)),
    "test/gt_summaries/ABM_q1_2021.txt": ("secret", lambda at: read("ectsum", at, SUMMARIES)),
    "test.csv": ("text,label\nso happy,joy\n", lambda at: read("csv", at)),
    "test.jsonl": (ROW, lambda at: read("jsonl", at)),
    "test.json": ("[]", lambda at: read("finqa", at, READING)),
    "dev-v1.1.json": ('{"data": []}', lambda at: read("squad", at, READING, split="dev")),
    "test/anatomy_test.csv": ("Which?,tin,gold,A\n", lambda at: read("mmlu", at, QUIZ)),
    "dev.tsv": (RTE, lambda at: read("rte", at, load_task("rte"), split="dev")),
    "test_text.txt": ("so happy\n", lambda at: read("tweeteval", at)),
    "test_labels.txt": ("1\n", lambda at: read("tweeteval", at)),
    "mapping.txt": ("0\tanger\n", lambda at: read("tweeteval", at, EMOTION)),
    "ori_train.json": ("[]", lambda at: load_items("finqa", at, "train")),
}
"""By the file that is a link: what it leads to, and what reads the folder."""


def make_folder(tmp_path: Path, name: str) -> Path:
    """Return a folder with the files that go with one of this name."""
    folder = tmp_path / "theirs"
    put(folder / name, READERS[name][0]).unlink()
    if "ABM" in name:
        for part in ("ects", "gt_summaries"):
            put(folder / "test" / part / "ABM_q1_2021.txt", "a long text")
        (folder / name).unlink()
    if name.endswith(".txt") and "/" not in name:
        put(folder / "test_text.txt", "so happy\n")
        put(folder / "test_labels.txt", "1\n")
        (folder / name).unlink(missing_ok=True)
    return folder


@pytest.mark.parametrize("name", READERS)
def test_no_link_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    content, use = READERS[name]
    folder = make_folder(tmp_path, name)
    (folder / name).symlink_to(put(tmp_path / "secret", content))
    with pytest.raises(DatasetError, match="points outside it") as caught:
        use(folder)
    assert Path(name).name in caught.value.where


def test_a_folder_on_the_way_is_no_link(tmp_path: Path) -> None:
    put(tmp_path / "home" / "ABM_q1_2021.txt", "a long secret")
    put(tmp_path / "theirs" / "test" / "gt_summaries" / "ABM_q1_2021.txt", "secret")
    (tmp_path / "theirs" / "test" / "ects").symlink_to(tmp_path / "home")
    with pytest.raises(DatasetError, match="points outside it"):
        read("ectsum", tmp_path / "theirs", SUMMARIES)


def test_links_inside_the_folder_and_to_the_folder_are_followed(tmp_path: Path) -> None:
    put(tmp_path / "set" / "deep" / "mine.jsonl", ROW)
    (tmp_path / "set" / "test.jsonl").symlink_to(Path("deep", "mine.jsonl"))
    (tmp_path / "link").symlink_to(tmp_path / "set")
    for path in (tmp_path / "link", tmp_path / "link" / "test.jsonl"):
        assert [sample.fields["text"] for sample in read("jsonl", path).samples] == ["so happy"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path, linked: bool) -> None:
    os.mkfifo(tmp_path / ("pipe" if linked else "test.csv"))
    if linked:
        (tmp_path / "test.csv").symlink_to("pipe")
    with pytest.raises(DatasetError, match="contains a named pipe"):
        read("csv", tmp_path)

"""TweetEval's folders, whole and damaged."""

import shutil
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import (
    counts_note,
    find_row_count,
    find_target,
    iter_benchmark,
    list_splits,
)
from coreeval.tasks import load_task
from tests.evaluation.benchmarks.kit import EMOTION, dataset, put, read, reasons, tweets


def test_lines_are_cut_at_lf_only(tmp_path: Path) -> None:
    texts = "\ufeffone \u2028 still one \r\ntwo\x85\x0c &amp; a  b \nthree\t'quote\" \n"
    found = read("tweeteval", tweets(tmp_path, texts, "\ufeff0\r\n1\r\n2\n"))
    assert [sample.fields["text"] for sample in found.samples] == [
        "one \u2028 still one",
        "two\x85\x0c &amp; a  b",
        "three\t'quote\"",
    ]
    assert [(s.id, s.label, s.label_text) for s in found.samples] == [
        ("emotion/test/1", 0, "anger"),
        ("emotion/test/2", 1, "joy"),
        ("emotion/test/3", 2, "optimism"),
    ]


def test_bad_rows_have_their_line_and_reason(tmp_path: Path) -> None:
    folder = tweets(tmp_path, b"good\n \nbad \xff byte\nx\ny\nz\n", b"0\n1\n2\n9\n\xfe\n\n")
    found = read("tweeteval", folder)
    assert [sample.id for sample in found.samples] == ["emotion/test/1"]
    assert reasons(found.bad_rows) == [
        (2, "the text field is empty"),
        (3, "the line is not UTF-8"),
        (4, "the label '9' is not in the task emotion (0 anger, 1 joy, 2 optimism, 3 sadness)"),
        (5, "the line is not UTF-8"),
        (6, "the label is missing"),
    ]  # fmt: skip
    assert found.bad_rows[1].text == "bad \ufffd byte"
    assert [row.file for row in found.bad_rows[2:4]] == ["test_text.txt", "test_labels.txt"]


def test_a_bad_rows_text_is_cut(tmp_path: Path) -> None:
    found = read("tweeteval", tweets(tmp_path, f"fine\n{'x' * 999}\n", "0\n7\n"))
    assert len(found.bad_rows[0].text) == 200


@pytest.mark.parametrize("texts", ["a\nb", "a\nb\n", "a\nb\n\n\n"])
def test_blank_lines_at_the_end_do_not_matter(tmp_path: Path, texts: str) -> None:
    found = read("tweeteval", tweets(tmp_path, texts, "0\n1\n\n"))
    assert (len(found.samples), found.bad_rows) == (2, ())


@pytest.mark.parametrize(("texts", "labels"), [("a\nb\nc\n", "0\n1\n"), ("a\n", "0\n1\n")])
def test_another_number_of_labels_is_an_error(tmp_path: Path, texts: str, labels: str) -> None:
    config = dataset("tweeteval", tweets(tmp_path, texts, labels))
    with pytest.raises(DatasetError, match=r"test_text\.txt has \d lines and test_labels\.txt"):
        iter_benchmark(config, EMOTION)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such folder") as nowhere:
        read("tweeteval", tmp_path / "none")
    assert "test_text.txt and test_labels.txt" in nowhere.value.hint
    with pytest.raises(DatasetError, match=r"it has no \*_text.txt"):
        read("tweeteval", tmp_path)
    put(tmp_path / "test_text.txt", "a\n")
    with pytest.raises(DatasetError, match="the labels are missing"):
        read("tweeteval", tmp_path)
    with pytest.raises(DatasetError, match="no split 'train'") as unknown:
        read("tweeteval", tmp_path, split="train")
    assert "available splits: test" in unknown.value.hint


def test_an_empty_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the split 'test' is empty"):
        read("tweeteval", tweets(tmp_path, "", ""))


def test_a_split_without_a_sample_says_why(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no valid sample") as caught:
        read("tweeteval", tweets(tmp_path, "a\nb\n", "7\n8\n"))
    assert "line 1" in caught.value.where and "'7'" in caught.value.hint


def test_the_mapping_must_be_the_tasks(tmp_path: Path) -> None:
    folder = tweets(tmp_path, "a\n", "0\n")
    put(folder / "mapping.txt", "0\tnon_irony\n1\tirony")
    with pytest.raises(DatasetError, match="label 0 is 'non_irony' in this file") as caught:
        read("tweeteval", folder)
    assert "task; add" in caught.value.hint
    assert len(read("tweeteval", folder, load_task("irony")).samples) == 1


def test_a_task_with_two_texts_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the task mrpc requires sentence1, sentence2"):
        read("tweeteval", tweets(tmp_path, "a\n", "0\n"), load_task("mrpc"))


@pytest.fixture
def stance(tmp_path: Path) -> Path:
    tweets(tmp_path / "climate", "warm\ncold\n", "2\n1\n")
    tweets(tmp_path / "feminist", "equal\n", "2\n")
    tweets(tmp_path / "feminist", "equal\n", "2\n", split="train")
    put(tmp_path / "mapping.txt", "0\tnone\n1\tagainst\n2\tfavor\n")
    return tmp_path


def test_one_target_or_all(stance: Path) -> None:
    task = load_task("stance", "all")
    one = read("tweeteval", stance, load_task("stance", "feminism"), target="feminism")
    everything = read("tweeteval", stance, task, target="all")
    assert [sample.id for sample in one.samples] == ["stance/feminism/test/1"]
    ids = [sample.id for sample in everything.samples]
    assert ids == ["stance/climate/test/1", "stance/climate/test/2", "stance/feminism/test/1"]
    assert [find_target(i) for i in ids] == ["climate", "climate", "feminism"]
    assert list_splits(dataset("tweeteval", stance, target="all")) == ["test"]


def test_a_targets_own_folder_gives_the_same_samples(stance: Path) -> None:
    task = load_task("stance", "climate")
    above = read("tweeteval", stance, task, target="climate")
    direct = read("tweeteval", stance / "climate", task, target="climate")
    assert above.samples == direct.samples
    with pytest.raises(DatasetError, match="only one target, not all"):
        read("tweeteval", stance / "climate", task, target="all")


@pytest.mark.parametrize("target", [None, "atheism"])
def test_a_target_that_is_not_there(stance: Path, target: str | None) -> None:
    with pytest.raises(DatasetError) as caught:
        read("tweeteval", stance, load_task("stance", "atheism"), target=target)
    assert "climate, feminism, or all" in caught.value.hint


def test_two_folders_of_one_target_are_not_mixed_up(stance: Path) -> None:
    """`feminist` and `feminism` are one target: neither copy may silently be left out."""
    shutil.copytree(stance / "climate", stance / "feminism")
    with pytest.raises(DatasetError, match="two folders have the target 'feminism': feminis"):
        read("tweeteval", stance, load_task("stance", "all"), target="all")


def test_ids_without_a_target() -> None:
    assert find_target("emotion/test/1") is None
    assert find_target("702876-702977") is None


def test_an_excerpt_is_not_taken_for_a_damaged_copy(tmp_path: Path) -> None:
    folder = tweets(tmp_path / "emotion", "a\n", "0\n")
    config = dataset("tweeteval", folder)
    assert read("tweeteval", folder).note is None
    for split in ("train", "val"):
        tweets(folder, "a\n", "0\n", split=split)
    assert find_row_count(config, "test") == 1421
    assert read("tweeteval", folder).note == counts_note(config, 1)
    assert "has 1 rows, but the published one has 1421" in str(counts_note(config, 1))

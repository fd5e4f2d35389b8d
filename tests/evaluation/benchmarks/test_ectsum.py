"""ECTSum: transcripts made by hand, and the real ones of the development data if there are any."""

import tarfile
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import fingerprint, list_splits
from tests.evaluation.benchmarks.kit import dataset, put, read
from tests.evaluation.benchmarks.kit_kinds import READING, SUMMARIES

REAL = Path(__file__).parents[4] / "shared/data/ectsum"
CALL = "Good morning and welcome.\nRevenue rose 4 percent to $ 12 million.\n"
BULLETS = "q1 revenue $12 million.\nrevenue rose 4 percent.\n"


def write_call(
    root: Path, name: str, call: str | bytes = CALL, summary: str | None = BULLETS
) -> None:
    put(root / "ects" / f"{name}.txt", call)
    if summary is not None:
        put(root / "gt_summaries" / f"{name}.txt", summary)


def test_calls_with_their_bullets(tmp_path: Path) -> None:
    for name in ("XYZ_q1_2021", "ABC_q2_2021", "XYZ_q2_2021"):
        write_call(tmp_path / "val", name)
    assert list_splits(dataset("ectsum", tmp_path)) == ["val"]
    found = read("ectsum", tmp_path, SUMMARIES, split="validation").samples
    assert [(sample.id, sample.cluster) for sample in found] == [
        ("ABC_q2_2021", "ABC"), ("XYZ_q1_2021", "XYZ"), ("XYZ_q2_2021", "XYZ")
    ]  # fmt: skip
    assert found[0].fields == {"document": CALL.strip(), "summary": BULLETS.strip()}
    before = fingerprint(dataset("ectsum", tmp_path, "val"))
    put(tmp_path / "val" / "gt_summaries" / "ABC_q2_2021.txt", BULLETS.replace("12", "13"))
    assert fingerprint(dataset("ectsum", tmp_path, "val")) != before


@pytest.mark.parametrize(
    ("call", "summary", "reason"),
    [
        (CALL, None, "X_q1_2020.txt cannot be read: [Errno 2] No such file"),
        (" \n", BULLETS, "X_q1_2020.txt is empty"),
        (CALL, " \n", "the summary field is empty"),
        (b"\xff\xfe", BULLETS, "cannot be read: 'utf-8' codec"),
        (CALL, CALL + BULLETS, "the summary is longer than the document"),
        ("word " * 80_001, BULLETS, "the document field has 400,004 characters, but"),
        ("word " * 1_000_000, BULLETS, "it is larger than 4 MiB"),
    ],
)
def test_what_is_no_call_says_why(
    tmp_path: Path, call: str | bytes, summary: str | None, reason: str
) -> None:
    write_call(tmp_path / "test", "A_q1_2020")
    write_call(tmp_path / "test", "X_q1_2020", call, summary)
    found = read("ectsum", tmp_path, SUMMARIES)
    assert len(found.samples) == 1 and reason in found.bad_rows[0].reason
    assert found.bad_rows[0].file == "test/ects/X_q1_2020.txt"


def test_a_document_of_20_000_tokens_passes(tmp_path: Path) -> None:
    write_call(tmp_path / "test", "A_q1_2020", "revenue rose four percent again today " * 4_000)
    assert len(read("ectsum", tmp_path, SUMMARIES).samples) == 1


def test_folders_without_calls_and_other_kinds_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "test.tar.gz", b"")
    with pytest.raises(DatasetError, match="the folder has no transcripts") as caught:
        read("ectsum", tmp_path, SUMMARIES)
    assert "test/ects" in caught.value.hint and "unpack archives first" in caught.value.hint
    write_call(tmp_path / "test", "A_q1_2020")
    with pytest.raises(DatasetError, match="ectsum is for tasks of the kind summary"):
        read("ectsum", tmp_path, READING)


@pytest.mark.skipif(not REAL.is_dir(), reason="the development data are not there")
@pytest.mark.parametrize(("split", "calls"), [("train", 200), ("val", 249), ("test", 165)])
def test_the_real_calls(tmp_path: Path, split: str, calls: int) -> None:
    with tarfile.open(REAL / f"{split}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    found = read("ectsum", tmp_path, SUMMARIES, split=split)
    assert len(found.samples) == calls and not found.bad_rows
    assert all(sample.id.startswith(f"{sample.cluster}_q") for sample in found.samples)

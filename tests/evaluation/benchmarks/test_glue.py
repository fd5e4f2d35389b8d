"""MRPC in its original and its GLUE form, and RTE."""

from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import counts_note, find_row_count, iter_benchmark, list_splits
from coreeval.tasks import load_task
from tests.evaluation.benchmarks.kit import EMOTION, dataset, put, read, reasons

HEADER = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
MRPC, RTE = load_task("mrpc"), load_task("rte")


def original(folder: Path) -> Path:
    put(folder / "msr_paraphrase_train.txt", HEADER + '1\t1\t2\ta " b\tc\n0\t3\t4\td\te " " "\n')
    put(folder / "msr_paraphrase_test.txt", HEADER.replace("\n", "\r\n") + "1\t5\t6\tf , g\th\r\n")
    put(folder / "dev_ids.tsv", "3\t4\n")
    return folder


def test_quotes_are_text(tmp_path: Path) -> None:
    found = read("mrpc", original(tmp_path), MRPC, split="train")
    assert [(s.id, s.label_text, s.fields) for s in found.samples] == [
        ("1-2", "equivalent", {"sentence1": 'a " b', "sentence2": "c"}),
        ("3-4", "not_equivalent", {"sentence1": "d", "sentence2": 'e " " "'}),
    ]


def test_dev_is_the_listed_part_of_train(tmp_path: Path) -> None:
    found = read("mrpc", original(tmp_path), MRPC, split="validation")
    assert [(s.id, s.split) for s in found.samples] == [("3-4", "dev")]


def test_crlf_and_tokenised_spacing(tmp_path: Path) -> None:
    sample = read("mrpc", original(tmp_path), MRPC).samples[0]
    assert sample.fields == {"sentence1": "f , g", "sentence2": "h"}


def test_glue_form_without_the_originals(tmp_path: Path) -> None:
    put(tmp_path / "dev.tsv", HEADER + "1\t7\t8\ta\tb\n")
    put(tmp_path / "test.tsv", HEADER.replace("Quality", "index") + "0\t7\t8\ta\tb\n")
    assert read("mrpc", tmp_path, MRPC, split="dev").samples[0].id == "7-8"
    assert list_splits(dataset("mrpc", tmp_path)) == ["dev", "test"]
    with pytest.raises(DatasetError, match="no labels"):
        read("mrpc", tmp_path, MRPC)


def test_one_file_is_one_split(tmp_path: Path) -> None:
    path = original(tmp_path) / "msr_paraphrase_test.txt"
    assert read("mrpc", path, MRPC).samples[0].id == "5-6"
    with pytest.raises(DatasetError, match="no split 'train'"):
        iter_benchmark(dataset("mrpc", path), MRPC, split="train")


def test_bad_pairs(tmp_path: Path) -> None:
    rows = (
        "1\t1\t2\ta\tb\n1\t1\t2\tc\td\n1\t3\t4\te\n\n2\t5\t6\tg\th\n1\t\t7\ti\tj\n1\t8\t9\t \tk\n"
    )
    put(tmp_path / "msr_paraphrase_test.txt", HEADER + rows)
    found = read("mrpc", tmp_path, MRPC)
    assert len(found.samples) == 1
    assert reasons(found.bad_rows) == [
        (3, "the id '1-2' occurs twice"),
        (4, "the line has 4 columns, but the header has 5"),
        (6, "the label '2' is not in the task mrpc (0 not_equivalent, 1 equivalent)"),
        (7, "the id is empty"),
        (8, "the sentence1 field is empty"),
    ]


def test_no_mrpc_at_all(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="none of the expected files") as empty:
        read("mrpc", tmp_path, MRPC)
    assert "msr_paraphrase_train.txt" in empty.value.hint
    with pytest.raises(DatasetError, match="no such file or folder"):
        read("rte", tmp_path / "none", RTE)
    put(tmp_path / "msr_paraphrase_test.txt", "Quality\ttext\n1\ta\n")
    with pytest.raises(DatasetError, match="no column '#1 String'"):
        read("mrpc", tmp_path, MRPC)
    with pytest.raises(DatasetError, match="the task emotion requires text"):
        read("mrpc", tmp_path, EMOTION)


def rte(folder: Path) -> Path:
    head = "index\tsentence1\tsentence2\tlabel\n"
    put(folder / "train.tsv", head + '0\tIt "rains .\tWet .\tentailment\n')
    put(folder / "dev.tsv", head + "0\tSun .\tRain .\tnot_entailment\n1\tA\tB\tentailment\n")
    put(folder / "test.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n")
    return folder


def test_rte_test_is_dev(tmp_path: Path) -> None:
    found = read("rte", rte(tmp_path), RTE)
    assert [(s.id, s.split, s.label) for s in found.samples] == [("0", "test", 1), ("1", "test", 0)]
    assert found.samples[0].fields == {"premise": "Sun .", "hypothesis": "Rain ."}
    assert [s.fields for s in read("rte", tmp_path, RTE, split="val").samples] == [
        s.fields for s in found.samples
    ]


def test_rte_train_and_a_file_without_labels(tmp_path: Path) -> None:
    assert read("rte", rte(tmp_path), RTE, split="train").samples[0].fields["premise"] == (
        'It "rains .'
    )
    with pytest.raises(DatasetError, match=r"test\.tsv has no column 'label'.*no labels"):
        read("rte", tmp_path / "test.tsv", RTE)


def test_rte_without_an_index_counts_rows(tmp_path: Path) -> None:
    put(tmp_path / "dev.tsv", "sentence1\tsentence2\tlabel\na\tb\tentailment\n")
    assert read("rte", tmp_path, RTE).samples[0].id == "rte/test/1"


def test_expected_counts(tmp_path: Path) -> None:
    pairs, entail = (
        dataset("mrpc", original(tmp_path / "MRPC")),
        dataset("rte", rte(tmp_path / "RTE")),
    )
    assert [find_row_count(pairs, s) for s in ("train", "dev", "test")] == [4076, 408, 1725]
    assert [find_row_count(entail, s) for s in ("train", "dev", "test")] == [2490, 277, 277]
    assert counts_note(entail, 277) is None
    assert "published one has 277" in str(counts_note(entail, 276))
    assert find_row_count(dataset("rte", rte(tmp_path / "mine")), "test") is None
    put(tmp_path / "glue" / "MRPC" / "train.tsv", HEADER)
    put(tmp_path / "glue" / "MRPC" / "dev.tsv", HEADER)
    assert find_row_count(dataset("mrpc", tmp_path / "glue" / "MRPC"), "train") == 3668


def test_hypotheses_about_one_premise_are_one_cluster(tmp_path: Path) -> None:
    samples = read("rte", rte(tmp_path), RTE, split="train").samples
    premises = {sample.cluster: sample.fields["premise"] for sample in samples}
    assert all(premises[sample.cluster] == sample.fields["premise"] for sample in samples)
    assert all(sample.cluster for sample in samples)


def test_pairs_tied_by_a_shared_sentence_are_one_cluster(tmp_path: Path) -> None:
    rows = [("1", "2"), ("3", "4"), ("4", "5"), ("2", "6")]
    lines = [f"1\t{one}\t{two}\ttext {one}\ttext {two}" for one, two in rows]
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    (tmp_path / "msr_paraphrase_test.txt").write_text("\n".join([head, *lines]) + "\n")
    first, second, third, fourth = (each.cluster for each in read("mrpc", tmp_path, MRPC).samples)
    assert first == fourth != second == third


@pytest.mark.timeout(30)
def test_a_long_chain_of_sentences_is_one_cluster_in_bounded_time(tmp_path: Path) -> None:
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [f"1\ta{at + 1}\ta{at}\tx\ty" for at in range(40_000)]  # each way took minutes
    put(tmp_path / "train.tsv", "\n".join([head, *rows]))
    found = read("mrpc", tmp_path, load_task("mrpc"), split="train")
    assert {sample.cluster for sample in found.samples} == {"a40000"}

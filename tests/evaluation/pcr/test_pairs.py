"""Files of pairs: every line is either a pair or a bad line with its reason."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.pcr import Comparison, Pair, Pairs, PcrSettings, read_pairs, study
from coreeval.evaluation.pcr.pairs import Status, rates_differ, read_statuses
from tests.evaluation.pcr.kit import RECORD, pair, two_splits


def read(path: Path, *lines: str | bytes | dict[str, Any]) -> Pairs:
    """Return what is read from a file of these lines."""
    raw = [
        line if isinstance(line, bytes) else line.encode() if isinstance(line, str)
        else json.dumps(line).encode()
        for line in lines
    ]  # fmt: skip
    path.write_bytes(b"\n".join(raw) + b"\n")
    return read_pairs(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the pairs of a test are."""
    return tmp_path / "pairs.jsonl"


def test_a_whole_record(path: Path) -> None:
    options = {"A": "one", "B": "two"}
    full = RECORD | {
        "original_choice": "A",
        "modified_choice": "",
        "original_options": options,
        "modified_options": ["two", "one"],
        "original_status": "answered",
        "modified_status": "truncated",
        "cluster": "report 7",
        "model": "a model",
        "comment": "not ours",
    }
    assert read(path, full).good == (
        Pair(
            split="train",
            id="1",
            reference="yes",
            original_output="yes",
            modified_output="no",
            original_choice="A",
            modified_choice="",
            original_options=options,
            modified_options={"A": "two", "B": "one"},
            original_status="answered",
            modified_status="truncated",
            cluster="report 7",
            model="a model",
        ),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**RECORD, "id": None}, "id is missing"),
        ({**RECORD, "id": " "}, "id is empty"),
        (
            {**RECORD, "original_status": "failed"},
            "original_status is not one of answered, refused",
        ),
        ({**RECORD, "cluster": 7}, "cluster must be a text, not int"),
        ({**RECORD, "id": True}, "id must be a text, not bool"),
        ({**RECORD, "id": 1.5}, "id must be a text, not float"),
        ({**RECORD, "split": ""}, "split is empty"),
        ({**RECORD, "reference": 3}, "reference must be a text, not int"),
        (
            {**RECORD, "reference": "\ud800"},
            "reference contains an incomplete character (a lone surrogate)",
        ),
        ({**RECORD, "original_output": ["a"]}, "original_output must be a text, not list"),
        ({**RECORD, "modified_output": None}, "the pair is incomplete: modified_output is missing"),
        ({k: v for k, v in RECORD.items() if k != "original_output"}, "original_output is missing"),
        ({"split": "train", "id": "1", "reference": ""}, "original_output is missing"),
        ({**RECORD, "original_choice": 1}, "original_choice must be a text, not int"),
        (
            {**RECORD, "original_options": "A B"},
            "is neither an object that maps letters to texts nor a list of texts",
        ),
        ({**RECORD, "modified_options": {"A": 1}}, "an option of modified_options must be a text"),
        ({**RECORD, "modified_options": ["x"] * 27}, "has more options than letters"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["a", "b"]', "the value is not a JSON object"),
        (b'{"id": "\xff"}', "the line is not UTF-8"),
    ],
)
def test_a_line_that_is_no_pair_is_kept_with_its_reason(
    path: Path, line: str | bytes | dict[str, Any], reason: str
) -> None:
    found = read(path, {**RECORD, "id": "a"}, line, {**RECORD, "id": "b"})
    assert [each.id for each in found.good] == ["a", "b"]
    (bad,) = found.bad
    assert (bad.file, bad.line) == ("pairs.jsonl", 2)
    assert reason in bad.reason and len(bad.text) <= 200


def test_an_id_counts_once_in_a_split_and_again_in_another(path: Path) -> None:
    lines = (
        RECORD,
        {**RECORD, "split": "test"},
        {**RECORD, "reference": "no"},
        {**RECORD, "id": 1},
    )
    found = read(path, *lines)
    assert [(each.split, each.reference) for each in found.good] == [
        ("train", "yes"),
        ("test", "yes"),
    ]
    assert [bad.reason for bad in found.bad] == [
        "the id '1' occurs twice in 'train', first in line 1"
    ] * 2


def test_blank_lines_and_line_separators_inside_a_text(path: Path) -> None:
    found = read(path, "", {**RECORD, "reference": "a\u2028b"}, "  ")
    assert [each.reference for each in found.good] == ["a\u2028b"] and not found.bad


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot read"):
        read_pairs(path)


def test_the_right_letter_moves_with_its_text() -> None:
    first, second = {"A": "one", "B": "two"}, {"A": "two", "B": "one"}
    assert pair(reference="A", options=(first, second)).modified_reference == "B"
    assert pair(reference=" a ", options=(first, second)).modified_reference == "B"
    assert pair(reference="two", options=(first, second)).modified_reference == "two"
    assert pair(reference="A").modified_reference == "A"
    assert pair(reference="A", options=(first, {"A": "three"})).modified_reference == ""


ASKED = PcrSettings(metric="exact_match", consistency="exact", draws=300, exchangeable=True)


def compared(pairs: list[Pair]) -> Comparison:
    return study({"it": pairs}, ASKED)["it"]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("yes", "answered"),
        ("", "empty"),
        (" \n", "empty"),
        ("I cannot help with that.", "refused"),
        ("抱歉,我无法回答这个问题", "refused"),
        ("none", "answered"),
        ("It rose by 4 %.", "answered"),
        ("x " * 200 + "I cannot say", "answered"),
    ],
)
def test_what_became_of_an_answer_without_a_status(said: str, status: Status) -> None:
    assert read_statuses(pair(outputs=(said, "yes"))) == (status, "answered")


def test_a_recorded_status_counts_and_a_right_answer_is_one() -> None:
    assert read_statuses(replace(pair(), modified_status="truncated")) == ("answered", "truncated")
    right = pair(reference="I do not know", outputs=("I do not know", "I do not know"))
    assert read_statuses(right) == ("answered", "answered")


def refused(split: str, share: float) -> list[Pair]:
    """Return a clean model's pairs, of which so many of a split are refused."""
    rng = np.random.default_rng(1)
    return [
        replace(each, original_output="", modified_output="", original_status="refused",
                modified_status="refused")
        if each.split == split and rng.random() < share
        else each
        for each in two_splits((500, 300, 350), (500, 300, 350))
    ]  # fmt: skip


def test_refusing_one_split_makes_no_verdict() -> None:
    found = compared(refused("train", 0.2))
    assert found.difference.points.p_value < 0.05
    assert found.verdict == "inconclusive"
    train = found.splits["train"]
    assert f"{train.unanswered} of 500 items of train and 0 of 500 items of test" in found.reason
    assert train.statuses[0] == {"answered": 500 - train.unanswered, "refused": train.unanswered}


def test_a_verdict_that_holds_whatever_was_refused_stands() -> None:
    known = [
        replace(each, original_output="yes", modified_output="yes")
        if each.split == "test" and int(each.id) % 10
        else each
        for each in refused("train", 0.05)
    ]
    assert compared(known).verdict == "contaminated"


def test_rates_are_compared_by_fishers_test() -> None:
    some, none = np.arange(100) < 10, np.zeros(100, dtype=bool)
    assert rates_differ(some, none) and not rates_differ(some, some)
    assert not rates_differ(some, none[:0])


def documents(copies: int, named: bool) -> list[Pair]:
    """Return items that are there several times, with or without a cluster."""
    return [
        replace(each, id=f"{each.id}/{copy}", cluster=f"{each.split} {each.id}" if named else None)
        for each in two_splits((60, 33, 45), (60, 27, 45))
        for copy in range(copies)
    ]


def test_repeated_items_do_not_count_twice() -> None:
    once, naive, whole = compared(documents(1, False)), compared(documents(4, False)), compared(
        documents(4, True)
    )  # fmt: skip
    assert (whole.splits["train"].n, whole.splits["train"].clusters) == (240, 60)
    errors = [one.difference.points.standard_error for one in (once, naive, whole)]
    assert errors[2] == pytest.approx(errors[0], rel=0.15)
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.15)
    assert whole.difference.points.p_value == pytest.approx(
        once.difference.points.p_value, abs=0.08
    )


def test_a_cluster_may_be_named_by_a_whole_text() -> None:
    pairs = documents(4, True)
    longer = [
        replace(
            each, cluster="train" + "x" * 200_000 if each.cluster == "train 0" else each.cluster
        )
        for each in pairs
    ]
    tracemalloc.start()
    found = compared(longer).splits["train"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000_000
    assert (found.n, found.clusters) == (240, 60)


def test_documents_of_unequal_size_give_right_p_values() -> None:
    """Train has documents of six items, test of two, and half of what is right is the document."""
    small, studies = 0, 120
    for seed in range(studies):
        rng, pairs = np.random.default_rng(seed), list[Pair]()
        for split, size, count in (("train", 6, 40), ("test", 2, 120)):
            for document in range(count):
                share = rng.beta(1, 1)
                for number in range(size):
                    said = "yes" if rng.random() < share else "no"
                    both = (said, said if rng.random() < 0.7 else "perhaps")
                    made = pair(split, document * size + number, "yes", both)
                    pairs.append(replace(made, cluster=f"{split} {document}"))
        small += (
            study({"it": pairs}, replace(ASKED, draws=99))["it"].difference.points.p_value <= 0.05
        )
    assert small / studies < 0.11

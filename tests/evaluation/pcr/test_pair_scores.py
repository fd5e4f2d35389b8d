"""Refusals make no verdict; several questions of one document count as one."""

from dataclasses import replace

import numpy as np
import pytest

from coreeval.evaluation.pcr import Comparison, Pair, PcrSettings, study
from coreeval.evaluation.pcr.pair_scores import rates_differ, read_statuses
from coreeval.evaluation.pcr.pairs import Status
from tests.evaluation.pcr.kit import pair, two_splits

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

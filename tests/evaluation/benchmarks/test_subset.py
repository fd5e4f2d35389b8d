"""A part of a benchmark is chosen reproducibly, and unknown ids and labels are told."""

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.subset import Subset, choose_ids
from coreeval.schema import Sample


def make_rows(joy: int = 60, fear: int = 30, anger: int = 10) -> list[Sample]:
    labels = ["joy"] * joy + ["fear"] * fear + ["anger"] * anger
    return [
        Sample(
            id=f"s{number}",
            split="test",
            fields={"text": f"text {number}"},
            label=0,
            label_text=label,
        )
        for number, label in enumerate(labels)
    ]


def choose(rows: list[Sample] | None = None, **settings: object) -> list[str]:
    return sorted(choose_ids(rows or make_rows(), Subset.model_validate(settings)))


def test_a_random_choice_depends_on_seed_and_ids_alone() -> None:
    ten = choose(limit=10, order="random", seed=7)
    assert len(ten) == 10
    assert ten != choose(limit=10)
    assert ten == choose(make_rows()[::-1], limit=10, order="random", seed=7)
    assert set(ten) < set(choose(limit=20, order="random", seed=7))
    assert ten != choose(limit=10, order="random", seed=8)


@pytest.mark.parametrize(
    ("limit", "shares"), [(10, (6, 3, 1)), (3, (2, 1, 0)), (7, (4, 2, 1)), (500, (60, 30, 10))]
)
def test_a_stratified_choice_keeps_the_shares_of_labels(
    limit: int, shares: tuple[int, int, int]
) -> None:
    labels = {row.id: row.label_text for row in make_rows()}
    found = [labels[name] for name in choose(limit=limit, order="stratified", seed=1)]
    assert tuple(map(found.count, ("joy", "fear", "anger"))) == shares


def test_ids_and_labels_narrow_the_choice() -> None:
    assert choose(ids=["s3", "s61"]) == ["s3", "s61"]
    assert choose(ids=["s3", "s61"], labels=["fear"]) == ["s61"]
    assert len(choose(labels=["fear", "anger"])) == 40
    assert choose(labels=["anger"], limit=2) == ["s90", "s91"]


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ({"ids": ["s3", "s999"]}, "no sample with the id 's999'", "did you mean"),
        ({"labels": ["faer"]}, "no sample with the label 'faer'", "did you mean 'fear'?"),
        ({"labels": ["zzz"]}, "'zzz'", "available: anger, fear, joy"),
        ({"ids": ["s3"], "labels": ["fear"]}, "no sample has both", ""),
    ],
)
def test_what_the_benchmark_lacks_is_told(
    settings: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        choose_ids(make_rows(), Subset.model_validate(settings))
    assert message in caught.value.message and hint in caught.value.hint

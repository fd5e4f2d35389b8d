"""The published files: exact counts of rows and labels."""

from collections import Counter
from pathlib import Path

import pytest

from coreeval.evaluation.benchmarks import counts_note, list_splits, list_targets
from coreeval.tasks import load_task
from tests.evaluation.benchmarks.kit import dataset, read

SHARED = Path(__file__).parents[3].parent / "shared" / "data"
TWEETS, PAIRS = SHARED / "tweeteval", SHARED / "mrpc"
pytestmark = pytest.mark.skipif(
    not TWEETS.is_dir(), reason="the published benchmarks are not beside this checkout"
)


@pytest.mark.parametrize(
    ("task", "split", "count"),
    [
        ("emotion", "train", 3257),
        ("emotion", "val", 374),
        ("emotion", "test", 1421),
        ("irony", "train", 2862),
        ("irony", "validation", 955),
        ("irony", "test", 784),
    ],
)
def test_tweets(task: str, split: str, count: int) -> None:
    found = read("tweeteval", TWEETS / task, load_task(task), split=split)
    assert (len(found.samples), found.bad_rows, found.note) == (count, (), None)
    assert found.split in ("train", "val", "test")
    assert len({sample.id for sample in found.samples}) == count


def test_tweets_keep_their_labels_and_entities() -> None:
    found = read("tweeteval", TWEETS / "emotion", split="train")
    labels = Counter(sample.label_text for sample in found.samples)
    assert labels == {"anger": 1400, "joy": 708, "optimism": 294, "sadness": 855}
    texts = [sample.fields["text"] for sample in found.samples]
    assert any("&amp;" in text for text in texts)
    assert all(text == text.strip() for text in texts)


@pytest.mark.parametrize(
    ("target", "counts"),
    [
        ("abortion", (587, 66, 280)),
        ("atheism", (461, 52, 220)),
        ("climate", (355, 40, 169)),
        ("hillary", (620, 69, 295)),
        ("all", (2023, 227, 964)),
    ],
)
def test_stance(target: str, counts: tuple[int, ...]) -> None:
    task = load_task("stance", target)
    for split, count in zip(("train", "val", "test"), counts, strict=True):
        found = read("tweeteval", TWEETS / "stance", task, split=split, target=target)
        assert (len(found.samples), found.bad_rows, found.note) == (count, (), None)


def test_a_sample_has_the_same_id_read_alone_or_with_all_targets() -> None:
    config = dataset("tweeteval", TWEETS / "stance", target="all")
    assert list_targets(config) == ["abortion", "atheism", "climate", "hillary"]
    everything = read("tweeteval", TWEETS / "stance", load_task("stance", "all"), target="all")
    alone = read("tweeteval", TWEETS / "stance", load_task("stance", "climate"), target="climate")
    by_id = {sample.id: sample for sample in everything.samples}
    assert all(by_id[sample.id] == sample for sample in alone.samples)


@pytest.mark.parametrize(
    ("split", "equivalent", "other"),
    [("train", 2753, 1323), ("dev", 279, 129), ("validation", 279, 129), ("test", 1147, 578)],
)
def test_mrpc(split: str, equivalent: int, other: int) -> None:
    found = read("mrpc", PAIRS, load_task("mrpc"), split=split)
    labels = Counter(sample.label_text for sample in found.samples)
    assert labels == {"equivalent": equivalent, "not_equivalent": other}
    assert (found.bad_rows, found.note) == ((), None)


def test_mrpc_keeps_ids_quotes_and_spacing() -> None:
    first = read("mrpc", PAIRS, load_task("mrpc"), split="train").samples[0]
    assert first.id == "702876-702977"
    assert 'called " the witness " , of' in first.fields["sentence1"]
    assert list_splits(dataset("mrpc", PAIRS)) == ["dev", "test", "train"]


def test_a_wrong_count_is_noted_for_the_whole_benchmark_only() -> None:
    whole = counts_note(dataset("tweeteval", TWEETS / "emotion"), 1400)
    assert whole is not None and "has 1400 rows, but the published one has 1421" in whole

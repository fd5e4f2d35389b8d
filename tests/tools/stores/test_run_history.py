"""Train items in run.db: beside the samples, and never among them."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.schema import Sample, TrainEnd
from coreeval.tools.stores.run_history import TRAIN_PREFIX
from coreeval.tools.stores.run_store import RunStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore.open(tmp_path / "run.db", now=lambda: NOW)) as opened:
        yield opened


def sample(own: str, split: str = "train") -> Sample:
    return Sample(
        id=own,
        split=split,
        fields={"text": own.removeprefix(TRAIN_PREFIX)},
        label=0,
        label_text="joy",
    )


async def test_items_are_open_until_they_end_and_in_the_order_drawn(store: RunStore) -> None:
    store.train.add([sample("2"), sample("1"), sample("3"), sample("4")])
    assert store.train.open_ids() == store.train.ids() == [f"{TRAIN_PREFIX}{n}" for n in "2134"]
    ended = TrainEnd(status="reworded", semantic={"text": "two"})
    await store.train.end("train:2", ended)
    await store.train.end("train:3", TrainEnd(status="failed", reason="no answer"))
    await store.train.end("train:4", TrainEnd(status="label_changed", semantic={"text": "4"}))
    assert store.train.open_ids() == ["train:1"]
    assert store.train.counts() == {"open": 1, "reworded": 1, "failed": 1, "label_changed": 1}
    (item,) = store.train.rewordings()
    assert (item.sample, item.end) == (sample("train:2"), ended)
    assert store.train.item("train:3").end.reason == "no answer"


async def test_only_what_failed_is_opened_again(store: RunStore) -> None:
    store.train.add([sample("1"), sample("2")])
    assert store.train.forget_failed() == 0
    await store.train.end("train:1", TrainEnd(status="failed", reason="no answer"))
    await store.train.end("train:2", TrainEnd(status="unchanged"))
    assert store.train.forget_failed() == 1
    assert store.train.open_ids() == ["train:1"]
    assert store.train.item("train:1").end == TrainEnd()


def test_an_item_is_found_like_a_sample_and_counts_as_none(store: RunStore) -> None:
    store.add_samples([sample("1", "test")])
    store.train.add([sample("1")])
    assert store.sample("1").split == "test"
    assert store.sample("train:1") == sample("train:1")
    assert (store.total(), store.pending()) == (1, ["1"])
    with pytest.raises(KeyError, match="train:9"):
        store.sample("train:9")


def test_an_id_that_the_benchmark_has_is_refused_and_nothing_is_kept(store: RunStore) -> None:
    store.add_samples([sample("train:7", "test")])
    with pytest.raises(DatasetError, match="'train:7'"):
        store.train.add([sample("6"), sample("7")])
    assert store.train.counts() == {}

"""Which samples stay together, and who works on which of them."""

import random
from pathlib import Path

from coreeval.config.run import RunConfig
from coreeval.graph.sample_groups import GroupQueue, group_samples
from coreeval.schema import Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore

SETTINGS = RunConfig(label_batch=2)


def group(folder: Path, *texts: str) -> list[int]:
    """Return the groups of samples with these texts, two of which are labelled in one call."""
    samples = [
        Sample(id=f"s:{n}", split="test", fields={"text": text}, label=0, label_text="x")
        for n, text in enumerate(texts)
    ]
    with RunStore.open(folder / "run.db", now=utc_now) as store:
        store.add_samples(samples)
        return list(group_samples(store, SETTINGS).values())


def test_a_batch_is_a_group(tmp_path: Path) -> None:
    assert group(tmp_path, "a", "b", "c", "d", "e") == [0, 0, 1, 1, 2]


def test_equal_texts_join_their_batches(tmp_path: Path) -> None:
    assert group(tmp_path, "a", "b", "c", "d", "a", "e", "f", "d") == [0, 0, 1, 1, 0, 0, 1, 1]


def take_all(queue: GroupQueue, worker: int) -> list[str]:
    taken = list[str]()
    while some := queue.take(worker):
        taken += [sample_id for sample_id, _ in some]
    return taken


NUMBERS = {"a": 0, "b": 0, "c": 1, "d": 2, "e": 2, "f": 3}


def test_groups_are_dealt_whole_and_in_order_with_their_ranks() -> None:
    queue = GroupQueue("abcdef", NUMBERS, {})
    assert queue.take(0) == [("a", 0), ("b", 1)]
    assert queue.take(1) == [("c", 2)]
    assert take_all(queue, 0) == ["d", "e", "f"]
    assert queue.take(1) == []
    assert not queue.is_done
    assert all(queue.end(each) for each in "abcdef")
    assert queue.is_done


def test_a_worker_gets_what_it_had_before_then_what_nobody_had_then_that_of_others() -> None:
    owners = {0: 0, 1: 1, 2: 1}
    queue = GroupQueue("abcdef", NUMBERS, owners)
    assert take_all(queue, 0) == ["a", "b", "f", "d", "e", "c"]
    assert owners == {0: 0, 1: 0, 2: 0, 3: 0}


def test_what_a_worker_did_not_end_is_dealt_again_before_the_rest() -> None:
    queue = GroupQueue("abcdef", NUMBERS, {})
    queue.take(0)
    queue.take(0)
    queue.end("a")
    assert queue.take_back(0) == ["b", "c"]
    assert not queue.end("b"), "a late word from the dead counts for nothing"
    assert queue.take(0) == [("b", 1)]
    assert take_all(queue, 1) == ["d", "e", "f", "c"]


def test_every_sample_ends_once_whatever_dies() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        ids = [f"s{n}" for n in range(40)]
        queue = GroupQueue(ids, {each: n // 3 for n, each in enumerate(ids)}, {})
        held = {worker: list[str]() for worker in range(3)}
        ended = list[str]()
        while not queue.is_done:
            worker = chance.randrange(3)
            match chance.choice(["take", "end", "end", "die"]):
                case "take":
                    held[worker] += [sample_id for sample_id, _ in queue.take(worker)]
                case "end" if held[worker]:
                    ended.append(held[worker].pop())
                    assert queue.end(ended[-1])
                case "die" if chance.random() < 0.2:
                    assert sorted(queue.take_back(worker)) == sorted(held[worker])
                    held[worker] = []
        assert sorted(ended) == sorted(ids)

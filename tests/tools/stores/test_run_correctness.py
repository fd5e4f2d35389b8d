"""What is known of targets' answers by sample, whatever was written and deleted in which order."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.schema import Prediction, Result, Sample
from coreeval.tools.stores.run_queries import SampleFilter
from coreeval.tools.stores.run_store import RunStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _say(
    number: int, source: str, answer: str, *, template: int = 1, target: str = "m", **more: object
) -> Prediction:
    known = {"target": target, "source": source, "sample_id": f"s/{number}", "template": template}
    return Prediction.model_validate({**known, "answer": answer, **more})


ANSWERS = (
    _say(1, "original", "a"), _say(1, "original", "a", template=2),
    _say(1, "updated", "b"), _say(1, "updated", "b", template=2),
    _say(2, "original", "a"), _say(2, "original", "b", template=2),
    _say(2, "updated", "a"), _say(2, "updated", "", template=2, kind="refused", reason="no"),
    _say(3, "original", "b"), _say(3, "updated", "a"),
    _say(4, "original", "", kind="refused", reason="no"), _say(4, "semantic", "", kind="unparsed"),
    _say(3, "original", "some words", target="n", right=True, score=1.0),
    _say(3, "updated", "other words", target="n", right=False, score=0.2),
    _say(3, "train", "a", target="n"),
)  # fmt: skip
"""Every gold label is `a`."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore.open(tmp_path / "run.db", now=lambda: NOW)) as opened:
        opened.add_samples(
            Sample(id=f"s/{number}", split="test", fields={"text": "x"}, label=0, label_text="a")
            for number in range(1, 5)
        )
        opened.add_predictions(ANSWERS)
        yield opened


def _ids(store: RunStore, **chosen: object) -> list[int]:
    found = store.listing.ids(SampleFilter.model_validate(chosen))
    return [int(each.rpartition("/")[2]) for each in found]


def test_answers_about_a_sample_are_all_right_all_wrong_or_mixed(store: RunStore) -> None:
    assert store.target_answers.by_sample(range(1, 5)) == {
        1: {"m": {"original": "right", "updated": "wrong"}},
        2: {"m": {"original": "mixed", "updated": "right"}},
        3: {"m": {"original": "wrong", "updated": "right"},
            "n": {"original": "right", "updated": "wrong"}},
        4: {"m": {"semantic": "wrong"}},
    }  # fmt: skip
    assert store.target_answers.targets() == ["m", "n"]
    assert store.targets() == {"m", "n"}
    lists = store.target_answers.tally()
    assert [(each.target, each.lost, each.gained) for each in lists] == [("m", 1, 1), ("n", 1, 0)]
    assert lists[0].arms["original"].model_dump() == {"right": 1, "wrong": 1, "mixed": 1}
    assert list(lists[0].arms) == ["original", "semantic", "updated"]


def test_a_list_is_filtered_by_what_one_target_got_right_and_wrong(store: RunStore) -> None:
    assert _ids(store, on_original="right", on_updated="wrong") == [1, 3]
    assert _ids(store, on_original="right", on_updated="wrong", target="n") == [3]
    assert _ids(store, on_original="mixed") == [2]
    assert _ids(store, on_semantic="wrong", label="a") == [4]
    assert _ids(store, target="n") == [3]
    assert _ids(store, target="nobody", on_original="right") == []


def test_answers_about_one_sample_are_sorted_and_only_of_the_arms(store: RunStore) -> None:
    found = store.target_answers.about("s/3")
    assert [(each.target, each.source, each.right) for each in found] == [
        ("m", "original", None), ("m", "updated", None),
        ("n", "original", True), ("n", "updated", False),
    ]  # fmt: skip
    assert len(store.target_answers.about("s/1")) == 4
    assert store.target_answers.about("s/9") == []


async def test_what_is_answered_again_or_forgotten_is_counted_as_it_is(store: RunStore) -> None:
    store.add_predictions([_say(1, "updated", "a"), _say(1, "updated", "a", template=2)])
    assert _ids(store, on_original="right", on_updated="wrong") == [3]
    for number in (2, 3):
        await store.commit(Result(sample_id=f"s/{number}", outcome="failed", attempts=1))
    store.forget("failed")
    assert _ids(store, target="m", on_original="mixed") == []
    assert store.target_answers.by_sample([3]) == {3: {"m": {}}}
    assert [one.model_dump()["lost"] for one in store.target_answers.tally()] == [0, 0]
    assert store.target_answers.tally()[0].arms["updated"].right == 1


def test_a_run_of_version_12_gets_its_answers_counted(store: RunStore, tmp_path: Path) -> None:
    kept = store.target_answers.by_sample(range(1, 5)), store.target_answers.tally()
    store.close()
    with closing(sqlite3.connect(tmp_path / "run.db")) as database:
        triggers = "SELECT name FROM sqlite_master WHERE name LIKE 'count_answers%'"
        for (name,) in database.execute(triggers).fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.executescript("DROP TABLE correctness; DROP TABLE correctness_sums;")
        database.execute("UPDATE schema_version SET version = 12")
        database.commit()
    with closing(RunStore.open(tmp_path / "run.db", now=lambda: NOW)) as again:
        answers = again.target_answers
        assert (answers.by_sample(range(1, 5)), answers.tally()) == kept
        again.add_predictions([_say(1, "updated", "a"), _say(1, "updated", "a", template=2)])
        assert _ids(again, on_original="right", on_updated="wrong") == [3]

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.evaluation.report.definitions import EXCERPT, MOST, find_highlights
from coreeval.schema import Freshness, Outcome, Prediction, Result, Sample
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script> \u202egnp.exe\nnext \x1b[31m"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    opened = RunStore.open(tmp_path / "run.db", now=lambda: NOW)
    yield opened
    opened.close()


def end(store: RunStore, key: str, outcome: Outcome, text: str = "old", **changes: object) -> None:
    """Store a sample that has ended."""
    sample = Sample(id=key, split="test", fields={"text": text}, label=1, label_text="joy")
    store.add_samples([sample])
    values = {"sample_id": key, "outcome": outcome, "attempts": 1, **changes}
    asyncio.run(store.commit(Result.model_validate(values)))


def said(key: str, target: str, source: str, answer: str, template: int = 1) -> Prediction:
    return Prediction(target=target, source=source, sample_id=key, template=template, answer=answer)


def test_each_stands_out_in_its_own_way_and_none_is_there_twice(store: RunStore) -> None:
    end(store, "plain", "accepted", updated={"text": "new"}, rung="named")
    end(store, "tried", "accepted", updated={"text": "new"}, attempts=3, rung="structure")
    end(store, "loose", "accepted", updated={"text": "new"}, rung="sibling")
    end(store, "label", "label_unrecoverable", original_label="anger")
    end(store, "facts", "rejected_facts", attempts=2, reason="no news says so")
    end(store, "none", "no_knowledge", attempts=0)
    found = {pick.sample: pick for pick in find_highlights(store, [])}
    assert list(found) == ["label", "facts", "tried", "loose", "none"]
    assert found["label"].why.startswith("a blind judge labelled the original")
    assert found["facts"].why.startswith("after 2 attempts, ")
    assert (found["facts"].reason, found["facts"].shown) == ("no news says so", "")
    assert found["tried"].why == "it was accepted only on attempt 3"
    assert (found["tried"].shown, found["tried"].text, found["tried"].reason) == (
        "updated",
        "new",
        "",
    )
    assert "on the sibling rung" in found["loose"].why


def test_a_sample_that_targets_lose_is_the_first(store: RunStore) -> None:
    for key in ("kept", "half", "lost"):
        end(store, key, "accepted", updated={"text": "new"})
    rows = [
        said(key, "t1", "original", "joy", n) for key in ("kept", "half", "lost") for n in (1, 2)
    ]
    rows += [said("kept", "t1", "updated", "joy", n) for n in (1, 2)]
    rows += [said("half", "t1", "updated", answer, n) for n, answer in ((1, "joy"), (2, "anger"))]
    rows += [said("lost", "t1", "updated", "anger", n) for n in (1, 2)]
    rows += [said("kept", "t2", "updated", "anger")]  # nothing is known of its original
    store.add_predictions(rows)
    (first, *_) = find_highlights(store, ["t1", "t2"])
    assert first.sample == "lost"
    assert first.why.startswith("1 of 2 targets got the original right and the updated text wrong")


def test_the_oldest_evidence_and_the_most_money_stand_out(store: RunStore) -> None:
    for key, day in (("newer", 20), ("older", 2), ("dear", 25)):
        known = Freshness(
            earliest=datetime(2026, 2, day, tzinfo=UTC), precision="exact", after_cutoff={}
        )
        end(store, key, "accepted", updated={"text": "new"}, freshness=known)
    for key, usd in (("newer", 0.5), ("dear", 0.75)):
        call = CallRow(key=key, role="composer", model="m", draw=0, cached=False, usd=usd)
        store.history.record(
            StepRecord(
                sample_id=key,
                attempt=1,
                node="compose",
                started_at="2026",
                seconds=1,
                calls=(call,),
            )
        )
    end(store, "after", "no_knowledge")
    whys = {pick.sample: pick.why for pick in find_highlights(store, [])}
    assert whys["older"] == "it rests on the oldest evidence, from 2026-02-02"
    assert whys["dear"] == "it is the most expensive sample (0.7500 USD)"
    assert "newer" not in whys


def test_texts_are_short_and_hide_nothing(store: RunStore) -> None:
    end(store, "a", "rejected_form", HOSTILE + "x" * 10_000, reason=HOSTILE)
    (pick,) = find_highlights(store, [])
    assert len(pick.original) == EXCERPT and pick.original.endswith("…")
    assert pick.original.startswith("<script>alert(1)</script> �gnp.exe next �[31m")
    assert pick.reason == "<script>alert(1)</script> �gnp.exe next �[31m"


def test_the_text_of_an_unsafe_sample_is_not_passed_on(store: RunStore) -> None:
    end(store, "a", "unsafe", "a cruel text", reason="abuse: 'cruel'")
    (pick,) = find_highlights(store, [])
    assert "cruel" not in pick.model_dump_json()


def test_there_are_at_most_ten(store: RunStore) -> None:
    outcomes: tuple[Outcome, ...] = (
        "label_unrecoverable", "rejected_label", "rejected_facts", "rejected_form", "failed",
        "unsafe", "no_knowledge",
    )  # fmt: skip
    for outcome in outcomes:
        end(store, outcome, outcome)
    for number in range(12):
        end(store, f"a{number}", "accepted", attempts=number + 2, rung="concept")
    found = find_highlights(store, [])
    assert len(found) <= MOST
    assert len({pick.sample for pick in found}) == len(found) == 9

"""Answers of a batch: as much of each as of a live one, and few in memory at once."""

import tracemalloc
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage

from coreeval.graph import batch_collector
from coreeval.graph.batch_collector import KEPT_BYTES, KEPT_TOGETHER, BatchCollector
from coreeval.models.answers import MOST_ANSWER_CHARACTERS
from coreeval.models.batch_dispatch import dump_outcome, load_outcome
from coreeval.models.batches import BatchAnswer
from coreeval.tools.stores.batch_records import CollectedAnswer, SentRequest

MOST_OF_ONE = 12 * MOST_ANSWER_CHARACTERS + 10_000
"""The most bytes of an answer: a character beyond the first 65,536 is written as two escapes."""
ASKED = SentRequest(reservation="r", size=100, max_tokens=100, tries="", has_answer=False)


@dataclass
class Commits:
    """A call store that only notes how many answers, of how many bytes, each commit has."""

    sizes: list[tuple[int, int]] = field(default_factory=list)

    async def keep(
        self, batch: object, answers: Sequence[CollectedAnswer], changes: Mapping[str, object]
    ) -> object:
        """Note a commit."""
        self.sizes.append((len(answers), sum(len(each.answer) for each in answers)))
        return batch


async def collect(*, count: int, text: str, length: int) -> list[tuple[int, int]]:
    """Collect a batch of answers that repeat a text to a length; return the commits."""

    async def read_answers(_state: object) -> AsyncIterator[BatchAnswer]:
        for number in range(count):
            said = AIMessage(text * (length // len(text)))
            yield BatchAnswer(custom_id=str(number), outcome=said)

    commits = Commits()
    unused = cast(Any, None)
    collector = BatchCollector(unused, unused, cast(Any, commits), unused, unused)
    known: Any = SimpleNamespace(endpoint=SimpleNamespace(read_answers=read_answers), price=None)
    batch: Any = SimpleNamespace(usd=0.0, live_usd=0.0, unreadable_at="", model="m")
    left = {str(number): ASKED for number in range(count)}
    _, failure = await collector._keep_answers(batch, known, unused, left, set(left))
    assert failure is None and not left
    return commits.sizes


@pytest.mark.parametrize("text", ["x", "\u00e9", "\U0001f600"])
async def test_long_answers_are_committed_by_their_bytes(text: str) -> None:
    tracemalloc.start()
    try:
        sizes = await collect(count=40, text=text, length=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(count for count, _ in sizes) == 40
    assert max(size for _, size in sizes) < KEPT_BYTES + MOST_OF_ONE
    assert peak < 4 * KEPT_BYTES


async def test_short_answers_are_committed_by_their_number() -> None:
    sizes = await collect(count=2 * KEPT_TOGETHER + 1, text="joy", length=3)
    assert [count for count, _ in sizes] == [KEPT_TOGETHER, KEPT_TOGETHER, 1]


async def test_enough_bytes_are_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_collector, "KEPT_BYTES", 1)
    assert [count for count, _ in await collect(count=3, text="joy", length=3)] == [1, 1, 1, 0]


@pytest.mark.parametrize("more", [-1, 0, 1, 1_000_000])
def test_a_batch_keeps_as_much_of_an_answer_as_a_live_call(more: int) -> None:
    text = "\u00e9" * (MOST_ANSWER_CHARACTERS + more)
    kept = load_outcome(dump_outcome(AIMessage(text)))
    assert isinstance(kept, AIMessage) and kept.text == text[:MOST_ANSWER_CHARACTERS]

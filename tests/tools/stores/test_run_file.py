from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.schema import BadRow, Evidence, ReplacedFact, Result, Sample, Triple
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import EvidenceExcerpt, ReleaseSample

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DIGEST = "d" * 64


def _sample(number: int) -> Sample:
    return Sample(
        id=str(number), split="test", fields={"text": f"old {number}"}, label=1, label_text="joy"
    )


def _evidence(title: str) -> Evidence:
    return Evidence(
        id="e1",
        url="https://example.org/a",
        domain="example.org",
        title=title,
        published_at=NOW,
        published_precision="url",
        origin="f:1",
    )


def _kept(number: int) -> ReleaseSample:
    fact = ReplacedFact(
        sample_id=str(number),
        field="text",
        before=None,
        after=Triple(head="new", relation="is", tail="here"),
        evidence_id="e1",
        quote="",
    )
    result = Result(
        sample_id=str(number),
        outcome="accepted",
        attempts=2,
        updated={"text": f"new {number}"},
        facts=(fact,),
        kept_from="2026.01",
    )
    excerpt = EvidenceExcerpt(evidence=_evidence(""), snippet_sha256=DIGEST)
    return ReleaseSample(sample=_sample(number), result=result, excerpts=(excerpt,))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore.open(tmp_path / "run.db", now=lambda: NOW)) as opened:
        yield opened


def test_a_kept_sample_enters_with_its_result_in_the_place_that_the_benchmark_gives_it(
    store: RunStore,
) -> None:
    bad = BadRow(file="f", line=2, reason="no label", text="?")
    store.add_samples([_sample(1), bad, _kept(2), _sample(3), _kept(4)])
    assert store.pending() == ["1", "3"]
    assert store.counts() == {"accepted": 2}
    assert (store.total(), store.carry_over.count_from_release()) == (4, 2)
    assert store.carry_over.ids_from_release(["1", "2", "3"]) == {"2"}
    assert [one.result.kept_from for one in store.sample_results()] == ["2026.01", "2026.01"]
    assert store.result("2") == _kept(2).result
    assert len(store.bad_rows()) == 1


def test_a_limit_counts_kept_samples_and_asks_for_no_row_after_the_last(store: RunStore) -> None:
    asked = list[int]()

    def rows() -> Iterator[Sample | ReleaseSample]:
        for number in range(5):
            asked.append(number)
            yield _kept(number) if number % 2 else _sample(number)

    store.add_samples(rows(), limit=2)
    assert (store.total(), store.carry_over.count_from_release(), asked) == (2, 1, [0, 1])


async def test_what_a_run_was_offered_itself_comes_before_what_a_release_said(
    store: RunStore,
) -> None:
    store.add_samples([_kept(1)])
    assert store.history.evidence(["e1", "e2"]) == {"e1": _evidence("")}
    await store.history.add_evidence([_evidence("the whole title")])
    assert store.history.evidence(["e1"])["e1"].title == "the whole title"
    assert store.carry_over.excerpts(["e1"])["e1"] == EvidenceExcerpt(
        evidence=_evidence(""), snippet_sha256=DIGEST
    )

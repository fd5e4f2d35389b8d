import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from coreeval.agents.safety import EMPTY_TAKEDOWN, build_takedown
from coreeval.config import DatasetConfig
from coreeval.errors import ReleaseError
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.releases.carry_over import CarryOver, CarryOverTerms, Renewal
from coreeval.releases.release import Release, ReleasedArm
from coreeval.releases.release_manifest import ArmRow, FactRow, SampleRow
from coreeval.releases.sources import Horizon
from coreeval.runs.manifest import FollowedRelease
from coreeval.schema import BadRow, ReplacedFact, Result, Sample, Triple
from coreeval.tasks import load_task
from coreeval.tools.cutoffs import DateClaim, TargetDates
from coreeval.tools.files import read_parquet
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import ReleaseSample, SampleResult
from tests.releases.kit import NOW, SNIPPET, Made, make_run
from tests.releases.people import rewrite

FIRST, SECOND, THIRD = (f"emotion/test/{n}" for n in (1, 2, 3))
TARGET = TargetDates(
    target="openai:new",
    cutoff=DateClaim(date="2026-11-03", source="config", confidence="given"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three samples are accepted: their oldest evidence is of the 2nd, the 2nd and the 3rd."""
    return make_run(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def release(made: Made) -> Release:
    return made.release()


def samples(made: Made) -> list[Sample]:
    config = DatasetConfig(format="tweeteval", path=str(made.benchmark))
    return list(load_benchmark(config, load_task("emotion")).samples)


def rows_of(release: Release, folder: str) -> list[dict[str, object]]:
    """Return a file's rows without what is held anew beside the targets of a run."""
    rows = read_parquet(release.file(folder))
    return [{key: row[key] for key in row if key != "after_cutoff"} for row in rows]


def terms(**changes: object) -> CarryOverTerms:
    usual: dict[str, Any] = {"takedown": EMPTY_TAKEDOWN, "min_precision": "cluster", "targets": ()}
    return CarryOverTerms(**({"horizon": Horizon()} | usual | changes))


def kept_by(keeper: CarryOver, rows: Sequence[Sample | BadRow]) -> dict[str, ReleaseSample]:
    return {row.sample.id: row for row in keeper.iter_rows(rows) if isinstance(row, ReleaseSample)}


def test_what_was_accepted_is_kept_and_everything_else_is_made_anew(
    made: Made, release: Release
) -> None:
    keeper = CarryOver(release, terms())
    bad = BadRow(file="f", line=1, reason="no label", text="?")
    rows: list[Sample | BadRow] = [bad, *samples(made)]
    found = list(keeper.iter_rows(rows))
    assert [type(row) for row in found] == [BadRow, *[ReleaseSample] * 3, *[Sample] * 3]
    assert (keeper.kept, keeper.renewed) == (3, {"not_accepted": 3})
    assert keeper.describe(FollowedRelease(version="2026.47", digest="", path="")) == (
        "kept from 2026.47: 3 of 6 samples; to be renewed: 3 that were not accepted"
    )


def test_a_kept_sample_says_what_it_was_and_where_it_is_from(made: Made, release: Release) -> None:
    keeper = CarryOver(release, terms(targets=(TARGET,)))
    second = kept_by(keeper, samples(made))[SECOND]
    result = second.result
    assert result.model_dump(include={"outcome", "attempts", "rung", "kept_from"}) == {
        "outcome": "accepted",
        "attempts": 1,
        "rung": "named",
        "kept_from": "2026.47",
    }
    assert (result.updated, result.semantic) == ({"text": "new tweet number 1"}, None)
    assert [fact.evidence_id for fact in result.facts] == [f"{1:016x}", f"{0:016x}"]
    assert result.facts[0].before and result.facts[0].quote == ""
    assert result.freshness
    assert result.freshness.earliest == datetime(2026, 11, 2, tzinfo=UTC)
    assert result.freshness.after_cutoff == {"openai:new": False}, "held anew beside new targets"
    assert {each.evidence.snippet for each in second.excerpts} == {SNIPPET, "The river rose again."}
    assert second.excerpts[0].evidence.origin == "release weekly 2026.47"


@pytest.mark.parametrize(
    ("changes", "kept", "renewed"),
    [
        ({"horizon": Horizon(oldest=datetime(2026, 11, 2, tzinfo=UTC))}, 3, {}),
        ({"horizon": Horizon(oldest=datetime(2026, 11, 2, 1, tzinfo=UTC))}, 1, {"age": 2}),
        (
            {"horizon": Horizon(cutoffs={"t": datetime(2026, 11, 4, tzinfo=UTC)})},
            0,
            {"cutoff": 3},
        ),
        ({"min_precision": "exact"}, 3, {}),
        ({"takedown": build_takedown(["Ada Roe"])}, 1, {"takedown": 2}),
        ({"takedown": build_takedown([f"{1:016x}"])}, 1, {"takedown": 2}),
        ({"takedown": build_takedown(["tweet number"])}, 3, {}),
    ],
)
def test_what_is_stale_or_listed_is_made_anew(
    made: Made, release: Release, changes: dict[str, Any], kept: int, renewed: dict[Renewal, int]
) -> None:
    keeper = CarryOver(release, terms(**changes))
    assert len(kept_by(keeper, samples(made))) == kept
    assert keeper.renewed == {"not_accepted": 3, **renewed}


@pytest.mark.parametrize(
    "changes",
    [
        {"semantic": {"text": "Bo Li, reworded"}},
        {
            "facts": (
                ReplacedFact(
                    sample_id=THIRD,
                    field="text",
                    before=None,
                    after=Triple(head="Bo Li", relation="is", tail="here"),
                    evidence_id=f"{1:016x}",
                    quote="",
                ),
            )
        },
    ],
)
def test_what_adds_a_listed_name_beside_the_updated_text_is_made_anew(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    made = make_run(tmp_path)
    asyncio.run(rewrite(made, 2, **changes))
    release = made.release(snippets=False)
    assert THIRD in kept_by(CarryOver(release, terms()), samples(made))
    keeper = CarryOver(release, terms(takedown=build_takedown(["Bo Li"])))
    assert set(kept_by(keeper, samples(made))) == {FIRST, SECOND}
    assert keeper.renewed == {"takedown": 1, "not_accepted": 3}


def test_evidence_that_is_dated_less_certainly_than_the_config_wants_is_made_anew(
    made: Made, release: Release
) -> None:
    class Crawled(Release):
        def facts(self, ids: Sequence[str] | None = None) -> Iterator[FactRow]:
            for fact in super().facts(ids):
                yield fact.model_copy(update={"published_precision": "crawl"})

    keeper = CarryOver(Crawled(path=release.path, manifest=release.manifest), terms())
    assert kept_by(keeper, samples(made)) == {}
    assert keeper.renewed["precision"] == 3


@pytest.mark.parametrize("arm", ["updated", "semantic"])
def test_a_text_that_is_not_the_recorded_one_is_refused(
    made: Made, release: Release, arm: ReleasedArm
) -> None:
    class Rewritten(Release):
        def arm(self, name: ReleasedArm, ids: Sequence[str] | None = None) -> Iterator[ArmRow]:
            fields = {"fields": {"text": "another text"}} if name == arm else {}
            return (row.model_copy(update=fields) for row in super().arm(name, ids))

    keeper = CarryOver(Rewritten(path=release.path, manifest=release.manifest), terms())
    with pytest.raises(ReleaseError, match=f"contradicts itself: a text of {FIRST}"):
        kept_by(keeper, samples(made))


def test_two_rows_of_a_sample_are_refused(made: Made, release: Release) -> None:
    class Doubled(Release):
        def samples(self, ids: Sequence[str] | None = None) -> Iterator[SampleRow]:
            return (row for row in super().samples(ids) for _ in range(2))

    keeper = CarryOver(Doubled(path=release.path, manifest=release.manifest), terms())
    with pytest.raises(ReleaseError, match=f"{FIRST} has 2 rows in samples/"):
        kept_by(keeper, samples(made))


def test_a_sample_whose_text_or_label_changed_is_made_anew(made: Made, release: Release) -> None:
    first, second, third, *rest = samples(made)
    other = first.model_copy(update={"fields": {"text": "another tweet"}})
    relabelled = second.model_copy(update={"label": 0, "label_text": "anger"})
    keeper = CarryOver(release, terms())
    unknown = third.model_copy(update={"id": "emotion/test/77"})
    assert set(kept_by(keeper, [other, relabelled, unknown, third, *rest])) == {THIRD}
    assert keeper.renewed == {"changed": 2, "new": 1, "not_accepted": 3}


def test_a_benchmark_in_another_order_keeps_the_same(made: Made, release: Release) -> None:
    forwards = kept_by(CarryOver(release, terms()), samples(made))
    backwards = kept_by(CarryOver(release, terms()), samples(made)[::-1])
    assert backwards == forwards and len(forwards) == 3


def test_what_a_release_withheld_is_made_anew(made: Made, tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("Ada Roe\n")
    release = made.release("2026.48", takedown=listed)
    keeper = CarryOver(release, terms())
    assert set(kept_by(keeper, samples(made))) == {THIRD}
    assert keeper.renewed == {"withheld": 2, "not_accepted": 3}


@pytest.mark.parametrize("snippets", [True, False])
def test_a_run_that_keeps_everything_is_released_with_the_same_rows(
    tmp_path: Path, snippets: bool
) -> None:
    made = make_run(tmp_path)
    first = made.release("1", snippets=snippets)
    made.files.store.unlink()
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        store.add_samples(CarryOver(first, terms()).iter_rows(samples(made)))
        for sample_id in store.pending():
            asyncio.run(store.commit(Result(sample_id=sample_id, outcome="no_knowledge")))
    second = made.release("2", snippets=snippets)
    assert rows_of(second, "updated") == rows_of(first, "updated")
    assert rows_of(second, "provenance") == rows_of(first, "provenance")
    assert {row.kept_from for row in second.samples()} == {"1", None}
    third = CarryOver(second, terms())
    assert {each.result.kept_from for each in kept_by(third, samples(made)).values()} == {"1"}


def renewed(sample: Sample, outcome: str = "accepted", **more: object) -> SampleResult:
    said = {"sample_id": sample.id, "outcome": outcome, "attempts": 1, **more}
    return SampleResult(sample=sample, result=Result.model_validate(said))


def test_a_renewal_is_put_back_only_if_it_found_nothing_newer(made: Made, release: Release) -> None:
    oldest = datetime(2026, 11, 10, tzinfo=UTC)
    first = samples(made)[0]
    known = datetime(2026, 11, 2, tzinfo=UTC)

    def again(ended: SampleResult, newest: datetime | None, horizon: Horizon | None = None) -> bool:
        chosen = Horizon(oldest=oldest) if horizon is None else horizon
        kept = CarryOver(release, terms(horizon=chosen)).keep_again(ended, newest)
        assert kept is None or kept.result.updated == {"text": "Ada Roe opened it"}
        return kept is not None

    assert again(renewed(first), known)
    assert again(renewed(first, "no_knowledge"), None)
    assert not again(renewed(first), known.replace(day=3)), "newer, if still behind the horizon"
    assert not again(renewed(first, "rejected_facts"), None)
    assert not again(renewed(first, "failed"), None)
    assert not again(renewed(first, kept_from="0"), known)
    assert not again(renewed(first), known, Horizon()), "it was not stale"
    after = Horizon(oldest=oldest, cutoffs={"openai:new": oldest})
    assert not again(renewed(first), known, after), "a new target may know its evidence"
    other = first.model_copy(update={"fields": {"text": "another original"}})
    assert not again(renewed(other), known)

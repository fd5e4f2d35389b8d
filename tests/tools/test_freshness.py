"""How new evidence is, beside what each target was trained on."""

from datetime import UTC, datetime, timedelta

from coreeval.schema import Evidence, Precision
from coreeval.tools.cutoffs import Stated, TargetDates
from coreeval.tools.freshness import TargetFreshness, by_target, freshness

DAY = datetime(2026, 3, 1, tzinfo=UTC)
RELEASED = Stated(date="2026-03-01", source="config", confidence="given")
TARGETS = (
    TargetDates(target="openai:new", released=RELEASED),
    TargetDates(target="openai:unknown"),
)


def _evidence(key: str, at: datetime, precision: Precision = "exact") -> Evidence:
    return Evidence(
        id=key,
        url=f"https://example.org/{key}",
        domain="example.org",
        title="title",
        published_at=at,
        published_precision=precision,
        origin="f:1",
    )


def test_the_oldest_piece_decides_and_the_least_certain_time_is_told() -> None:
    new = _evidence("a", DAY + timedelta(days=9), "crawl")
    found = freshness([new, _evidence("b", DAY, "url")], TARGETS)
    assert found and (found.earliest, found.precision) == (DAY, "crawl")
    assert found.after_cutoff == {"openai:new": True, "openai:unknown": None}
    older = freshness([new, _evidence("b", DAY - timedelta(seconds=1))], TARGETS)
    assert older and older.after_cutoff == {"openai:new": False, "openai:unknown": None}
    assert freshness([], TARGETS) is None


def test_accepted_samples_are_counted_for_each_target() -> None:
    samples = [
        freshness([_evidence("a", DAY)], TARGETS),
        freshness([_evidence("a", DAY, "crawl")], TARGETS),
        freshness([_evidence("a", DAY - timedelta(days=1), "crawl")], TARGETS),
        None,
    ]
    new, unknown = by_target(samples, TARGETS)
    assert new == TargetFreshness(target="openai:new", after=2, before=1, unknown=1, by_crawl=1)
    assert unknown == TargetFreshness(target="openai:unknown", unknown=4)
    assert new.accepted == unknown.accepted == 4
    assert by_target(samples, ()) == ()

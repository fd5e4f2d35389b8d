"""The samples of one side of a comparison, a run or a release.

All of them are read by what is needed to compare them; a few are read with their texts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from coreeval.releases.release import Release, read_release
from coreeval.schema import Evidence, ReplacedFact, Triple, Value
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_queries import SampleState
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import RunStore
from coreeval.viewer.redaction import redact_text

Texts = Mapping[str, str]
_STATE_COLUMNS = ("id", "label_text", "outcome", "updated_sha256", "semantic_sha256")


class SideFact(Value):
    """A replaced fact and the article that it rests on."""

    before: Triple | None
    """None for an addition."""
    after: Triple
    headline: str
    url: str
    domain: str
    published_at: str


class SideSample(Value):
    """A sample with all that two sides are compared by."""

    outcome: str
    reason: str
    label: str
    attempts: int
    original: dict[str, str] | None
    """None where a release may not pass it on."""
    semantic: dict[str, str] | None
    updated: dict[str, str] | None
    facts: tuple[SideFact, ...]

    def redact(self) -> "SideSample":
        """Return it with marks in place of texts and reason, and without facts."""
        arms = {
            name: _redact_fields(getattr(self, name))
            for name in ("original", "semantic", "updated")
        }
        reason = self.reason and redact_text(self.reason)
        return self.model_copy(update={**arms, "reason": reason, "facts": ()})


class SampleSource(NamedTuple):
    """The samples of a run or a release."""

    read_all: Callable[[], Iterable[SampleState]]
    """Those of a release have digests in place of texts."""
    read_some: Callable[[Sequence[str]], Mapping[str, SideSample]]
    """By id; what has not ended, or is not there, is left out."""


def _redact_fields(fields: Texts | None) -> Texts | None:
    return fields and {name: redact_text(text) for name, text in fields.items()}


# -- a run ----------------------------------------------------------------------------------------


def build_run_source(path: Path) -> SampleSource:
    """Return the ended samples of a run, from its run.db; it is opened for each question."""

    def all_of() -> Iterable[SampleState]:
        with closing(RunStore.open(path, now=utc_now)) as store:
            return store.sample_states.all()

    def some_of(ids: Sequence[str]) -> Mapping[str, SideSample]:
        with closing(RunStore.open(path, now=utc_now)) as store:
            found = store.sample_states.some(ids)
            used = {fact.evidence_id for each in found.values() for fact in each.result.facts}
            evidence = store.evidence(list(used))
        return {key: _build_run_sample(ended, evidence) for key, ended in found.items()}

    return SampleSource(all_of, some_of)


def _build_run_sample(ended: SampleResult, evidence: Mapping[str, Evidence]) -> SideSample:
    sample, result = ended.sample, ended.result
    return SideSample(
        outcome=result.outcome,
        reason=result.reason,
        label=sample.label_text,
        attempts=result.attempts,
        original=sample.fields,
        semantic=result.semantic if result.semantic_status == "reworded" else None,
        updated=result.updated,
        facts=tuple(_build_run_fact(fact, evidence.get(fact.evidence_id)) for fact in result.facts),
    )


def _build_run_fact(fact: ReplacedFact, item: Evidence | None) -> SideFact:
    return SideFact(
        before=fact.before,
        after=fact.after,
        headline=(item.title or item.snippet) if item else fact.quote,
        url=item.url if item else "",
        domain=item.domain if item else "",
        published_at=item.published_at.isoformat() if item else "",
    )


# -- a release ------------------------------------------------------------------------------------


def build_release_source(path: Path) -> SampleSource:
    """Return the samples of a release, from its files."""
    release = read_release(path)

    def all_of() -> Iterable[SampleState]:
        return [
            tuple(row[name] for name in _STATE_COLUMNS)
            for row in release.rows("samples", columns=_STATE_COLUMNS)
        ]

    return SampleSource(all_of, lambda ids: _read_release_samples(release, ids))


def _read_release_samples(release: Release, ids: Sequence[str]) -> Mapping[str, SideSample]:
    arms = {
        name: _read_release_texts(release, name, ids)
        for name in ("updated", "semantic", "original")
    }
    facts = dict[str, list[SideFact]]()
    for row in release.rows("provenance", ids=ids):
        facts.setdefault(row["id"], []).append(_build_release_fact(row))
    return {
        row["id"]: SideSample(
            outcome=row["outcome"],
            reason=row["reason"],
            label=row["label_text"],
            attempts=row["attempts"],
            facts=tuple(facts.get(row["id"], ())),
            **{name: texts.get(row["id"]) for name, texts in arms.items()},
        )
        for row in release.rows("samples", ids=ids)
    }


def _read_release_texts(
    release: Release, arm: str, ids: Sequence[str]
) -> Mapping[str, dict[str, str]]:
    if arm == "original" and not release.manifest.licence.redistribute:
        return {}
    names = release.task.fields
    rows = release.rows(arm, columns=("id", *names), ids=ids)
    return {row["id"]: {name: row[name] for name in names} for row in rows}


def _build_release_fact(row: Mapping[str, Any]) -> SideFact:
    return SideFact(
        before=_read_triple(row, "before") if row["before_head"] else None,
        after=_read_triple(row, "after"),
        headline=row["snippet"],
        url=row["url"],
        domain=row["domain"],
        published_at=row["published_at"],
    )


def _read_triple(row: Mapping[str, Any], side: str) -> Triple:
    return Triple(**{part: row[f"{side}_{part}"] for part in ("head", "relation", "tail")})

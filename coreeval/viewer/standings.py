"""How samples stand on one side of a comparison: all of them lightly, a few with all they have."""

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
from coreeval.viewer.hiding import mark

Texts = Mapping[str, str]
_LIGHT = ("id", "label_text", "outcome", "updated_sha256", "semantic_sha256")


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

    def hidden(self) -> "SideSample":
        """Return it with marks in place of texts and reason, and without facts."""
        arms = {name: _marked(getattr(self, name)) for name in ("original", "semantic", "updated")}
        reason = self.reason and mark(self.reason)
        return self.model_copy(update={**arms, "reason": reason, "facts": ()})


class Standings(NamedTuple):
    """The samples of a run or a release."""

    all: Callable[[], Iterable[SampleState]]
    """Those of a release have digests in place of texts."""
    some: Callable[[Sequence[str]], Mapping[str, SideSample]]
    """By id; what has not ended, or is not there, is left out."""


def _marked(fields: Texts | None) -> Texts | None:
    return fields and {name: mark(text) for name, text in fields.items()}


# -- a run ----------------------------------------------------------------------------------------


def of_run(path: Path) -> Standings:
    """Return the ended samples of a run, from its run.db; it is opened for each question."""

    def all_of() -> Iterable[SampleState]:
        with closing(RunStore.open(path, now=utc_now)) as store:
            return store.sample_states.all()

    def some_of(ids: Sequence[str]) -> Mapping[str, SideSample]:
        with closing(RunStore.open(path, now=utc_now)) as store:
            found = store.sample_states.some(ids)
            used = {fact.evidence_id for each in found.values() for fact in each.result.facts}
            evidence = store.evidence(list(used))
        return {key: _of_ended(ended, evidence) for key, ended in found.items()}

    return Standings(all_of, some_of)


def _of_ended(ended: SampleResult, evidence: Mapping[str, Evidence]) -> SideSample:
    sample, result = ended.sample, ended.result
    return SideSample(
        outcome=result.outcome,
        reason=result.reason,
        label=sample.label_text,
        attempts=result.attempts,
        original=sample.fields,
        semantic=result.semantic if result.semantic_status == "reworded" else None,
        updated=result.updated,
        facts=tuple(_fact(fact, evidence.get(fact.evidence_id)) for fact in result.facts),
    )


def _fact(fact: ReplacedFact, item: Evidence | None) -> SideFact:
    return SideFact(
        before=fact.before,
        after=fact.after,
        headline=(item.title or item.snippet) if item else fact.quote,
        url=item.url if item else "",
        domain=item.domain if item else "",
        published_at=item.published_at.isoformat() if item else "",
    )


# -- a release ------------------------------------------------------------------------------------


def of_release(path: Path) -> Standings:
    """Return the samples of a release, from its files."""
    release = read_release(path)

    def all_of() -> Iterable[SampleState]:
        return [
            tuple(row[name] for name in _LIGHT) for row in release.rows("samples", columns=_LIGHT)
        ]

    return Standings(all_of, lambda ids: _some_of(release, ids))


def _some_of(release: Release, ids: Sequence[str]) -> Mapping[str, SideSample]:
    arms = {name: _texts(release, name, ids) for name in ("updated", "semantic", "original")}
    facts = dict[str, list[SideFact]]()
    for row in release.rows("provenance", ids=ids):
        facts.setdefault(row["id"], []).append(_published(row))
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


def _texts(release: Release, arm: str, ids: Sequence[str]) -> Mapping[str, dict[str, str]]:
    if arm == "original" and not release.manifest.licence.redistribute:
        return {}
    names = release.task.fields
    rows = release.rows(arm, columns=("id", *names), ids=ids)
    return {row["id"]: {name: row[name] for name in names} for row in rows}


def _published(row: Mapping[str, Any]) -> SideFact:
    return SideFact(
        before=_triple(row, "before") if row["before_head"] else None,
        after=_triple(row, "after"),
        headline=row["snippet"],
        url=row["url"],
        domain=row["domain"],
        published_at=row["published_at"],
    )


def _triple(row: Mapping[str, Any], side: str) -> Triple:
    return Triple(**{part: row[f"{side}_{part}"] for part in ("head", "relation", "tail")})

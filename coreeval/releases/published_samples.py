"""The samples of a release as pages show them: only what the release's files contain.

Texts, facts and evidence come from the release, never from the run, which may have others: texts
that the release withholds, rejected drafts, and texts that were written again since.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from coreeval.errors import UsageError
from coreeval.releases.carry_over import read_excerpt, read_replaced_fact
from coreeval.releases.release import Release, hash_texts
from coreeval.releases.release_manifest import FactRow, SampleRow
from coreeval.releases.sources import is_accepted
from coreeval.releases.verify import require_whole
from coreeval.runs.arms import semantic_fields, updated_fields
from coreeval.runs.history import SampleHistory, diff_arms
from coreeval.schema import Evidence, Result
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult


@dataclass(frozen=True, kw_only=True)
class PublishedSample:
    """A sample as a release contains it."""

    result: Result
    evidence: Mapping[str, Evidence]
    """The evidence of its facts, by id."""

    def restrict(self, history: SampleHistory) -> SampleHistory:
        """Return the history of the sample with only what the release contains."""
        return SampleHistory(
            sample=history.sample,
            result=self.result,
            train_item=None,
            steps=(),
            attempts=(),
            evidence=dict(self.evidence),
            diffs=tuple(diff_arms(history.sample, self.result)),
            answers=(),
            seconds=history.seconds,
            billed_usd=history.billed_usd,
        )


def read_published_samples(release: Release, most: int) -> dict[str, PublishedSample]:
    """Return at most this many samples of a release by id, accepted ones first.

    Samples that it withholds are left out, even if it contains their reworded texts.

    Raises:
        ReleaseError: a file is missing or damaged.
    """
    ids = list(islice(_list_published(release), most))
    rows = {row.id: row for row in release.samples(ids)}
    updated = {row.id: row.fields for row in release.arm("updated", ids)}
    semantic = {row.id: row.fields for row in release.arm("semantic", ids)}
    facts = defaultdict[str, list[FactRow]](list)
    for fact in release.facts(ids):
        facts[fact.id].append(fact)
    return {
        each: PublishedSample(
            result=_result(
                rows[each],
                updated=updated.get(each) if is_accepted(rows[each]) else None,
                semantic=semantic.get(each),
                facts=facts[each],
            ),
            evidence={
                fact.evidence_id: read_excerpt(fact, release).evidence for fact in facts[each]
            },
        )
        for each in ids
    }


def _list_published(release: Release) -> Iterator[str]:
    accepted, others = list[str](), list[str]()
    for row in release.samples():
        if not row.withheld and (row.updated_sha256 or row.semantic_sha256):
            (accepted if is_accepted(row) else others).append(row.id)
    return chain(accepted, others)


def _result(
    row: SampleRow,
    *,
    updated: dict[str, str] | None,
    semantic: dict[str, str] | None,
    facts: Sequence[FactRow],
) -> Result:
    return Result(
        sample_id=row.id,
        outcome=row.outcome,
        reason=row.reason,
        attempts=row.attempts,
        rung=row.rung,
        semantic_status=row.semantic_status,
        semantic=semantic,
        updated=updated,
        original_label=row.original_label,
        facts=tuple(map(read_replaced_fact, facts)),
        kept_from=row.kept_from,
    )


def refuse_changed_run(release: Release, store: RunStore) -> None:
    """Refuse a run whose outcomes or texts are no longer those of a release made from it.

    Raises:
        UsageError: a sample differs.
        ReleaseError: it is the release that has changed, or its table of samples is missing or
            damaged.
    """
    found = {ended.sample.id: _summarize(ended, release) for ended in store.sample_results()}
    changed = [row.id for row in release.samples() if _differs(row, found.get(row.id))]
    if changed:
        require_whole(release.path)
        others = format_quantity(len(changed), "sample differs", "samples differ")
        raise UsageError(
            f"the run has changed since this release was made: {others}, the first is "
            f"{changed[0]!r}",
            where=str(release.path),
            hint="make a new release of the run, or use the run's directory",
        )


def _summarize(ended: SampleResult, release: Release) -> tuple[str | None, ...]:
    arms = (
        ended.sample.fields,
        updated_fields(ended, release.manifest.on_reject),
        semantic_fields(ended),
    )
    return (ended.result.outcome, *(hash_texts(each) if each else None for each in arms))


def _differs(row: SampleRow, now: tuple[str | None, ...] | None) -> bool:
    """Return whether the run now has another outcome or text; texts left out are not compared."""
    told = (row.outcome, row.original_sha256, row.updated_sha256, row.semantic_sha256)
    return now is None or any(was and was != is_now for was, is_now in zip(told, now, strict=True))

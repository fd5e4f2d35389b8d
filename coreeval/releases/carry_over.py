"""Decides which samples of a release a new run keeps: fresh, unchanged, and still allowed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Generic, Literal, Protocol, TypeVar

from coreeval.agents.safety import Takedown
from coreeval.config.dates import parse_age
from coreeval.errors import ReleaseError
from coreeval.releases.release import Release, hash_texts
from coreeval.releases.release_manifest import ArmRow, FactRow, SampleRow
from coreeval.releases.sources import Horizon, is_accepted
from coreeval.runs.arms import TRIPLE_COLUMNS
from coreeval.runs.manifest import FollowedRelease
from coreeval.schema import BadRow, Evidence, Precision, ReplacedFact, Result, Sample, Triple
from coreeval.tools.cutoffs import CERTAIN_FIRST, TargetDates, measure_freshness
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.run_tables import EvidenceExcerpt, ReleaseSample, SampleResult

Renewal = Literal[
    "new", "changed", "withheld", "not_accepted", "age", "cutoff", "undated", "precision",
    "takedown",
]  # fmt: skip
"""The reason that a sample is not kept; the first that applies."""


@dataclass(frozen=True, kw_only=True)
class CarryOverTerms:
    """The conditions for keeping a sample."""

    horizon: Horizon
    takedown: Takedown
    min_precision: Precision
    """Lowest acceptable precision of the publication time of its evidence."""
    targets: Sequence[TargetDates]
    """The targets whose dates are compared with the evidence again."""


class CarryOver:
    """Comparison of a benchmark with a release, whose rows are read as needed."""

    def __init__(self, release: Release, terms: CarryOverTerms) -> None:
        self.renewed = Counter[Renewal]()
        """The number of samples that were not kept, by reason."""
        self.kept = 0
        self._release, self._terms = release, terms
        self._samples = _RowCursor(release.samples)
        self._updated = _RowCursor(lambda: release.arm("updated"))
        self._semantic = _RowCursor(lambda: release.arm("semantic"))
        self._facts = _RowCursor(release.facts)

    def iter_rows(
        self, rows: Iterable[Sample | BadRow]
    ) -> Iterator[Sample | BadRow | ReleaseSample]:
        """Yield the rows of a benchmark, each with its released result if that is kept.

        Raises:
            ReleaseError: the release contradicts itself.
        """
        for row in rows:
            yield row if isinstance(row, BadRow) else self.carry_over(row) or row

    def carry_over(self, sample: Sample) -> ReleaseSample | None:
        """Return a sample with the result that it keeps; None if it must be renewed.

        Raises:
            ReleaseError: the release contradicts itself.
        """
        found = self._carried_result(sample)
        if isinstance(found, ReleaseSample):
            self.kept += 1
            return found
        self.renewed[found] += 1
        return None

    def keep_again(self, ended: SampleResult, newest: datetime | None) -> ReleaseSample | None:
        """Return a sample with old evidence as released if its renewal found nothing newer.

        A sample that a new target may know is not kept, because its evidence predates the cutoff.
        Call this for samples in the benchmark's order.

        Args:
            ended: How the renewal ended; only an accepted sample, or one without news, can have
                found nothing newer.
            newest: When the newest evidence of the new text was published; None without any.

        Raises:
            ReleaseError: the release contradicts itself.
        """
        if ended.result.kept_from or ended.result.outcome not in ("accepted", "no_knowledge"):
            return None
        found = self._kept_but_for_age(ended.sample)
        if found is None or (newest and newest > found[1]):
            return None
        return found[0]

    def newest_evidence(self, sample: Sample) -> datetime | None:
        """Return the time that news must be newer than to renew a sample with old evidence.

        None if the sample is renewed in any case, or not at all. Call this in the same order as
        `keep_again`.

        Raises:
            ReleaseError: the release contradicts itself.
        """
        found = self._kept_but_for_age(sample)
        return found and found[1]

    def _kept_but_for_age(self, sample: Sample) -> tuple[ReleaseSample, datetime] | None:
        """Return a sample renewed only because of old evidence, and its newest evidence date."""
        row = next(iter(self._samples.of(sample.id)), None)
        if row is None or _outdated_reason(sample, row) or not self._only_too_old(row):
            return None
        found = self._as_released(sample, row)
        if not isinstance(found, ReleaseSample) or not row.newest_evidence:
            return None
        return found, _moment(row.newest_evidence)

    def describe(self, parent: FollowedRelease) -> str:
        """Describe how many samples were kept, and why the others are renewed."""
        why = [
            f"{n} {_describe_reason(reason, parent)}" for reason, n in self.renewed.most_common()
        ]
        anew = f"to be renewed: {', '.join(why)}" if why else "no sample is renewed"
        of = self.kept + self.renewed.total()
        return f"kept from {parent.version}: {self.kept} of {format_quantity(of, 'sample')}; {anew}"

    def _carried_result(self, sample: Sample) -> ReleaseSample | Renewal:
        """Return a sample with the result that it keeps, or the reason that it keeps none."""
        known = self._samples.of(sample.id)
        if not known:
            return "new"
        if len(known) > 1:
            raise self._contradicts(f"{sample.id} has {len(known)} rows in samples/")
        [row] = known
        reason = _outdated_reason(sample, row) or self._staleness(row)
        return reason or self._as_released(sample, row)

    def _as_released(self, sample: Sample, row: SampleRow) -> ReleaseSample | Renewal:
        """Return a sample with its released result, or the reason that now forbids it."""
        updated = self._text(self._updated, row, row.updated_sha256).fields
        digest = row.semantic_sha256
        reworded = self._text(self._semantic, row, digest).fields if digest else None
        facts = self._facts.of(sample.id)
        excerpts = {fact.evidence_id: read_excerpt(fact, self._release) for fact in facts}
        evidence = [each.evidence for each in excerpts.values()]
        if not self._certain(evidence):
            return "precision"
        texts = [*updated.values(), *(reworded or {}).values(), *_list_triple_parts(facts)]
        if self._taken_down(sample, texts, evidence):
            return "takedown"
        return ReleaseSample(
            sample=sample,
            result=self._result(row, updated, reworded, facts, evidence),
            excerpts=tuple(excerpts.values()),
        )

    def _staleness(self, row: SampleRow) -> Renewal | None:
        stale = self._terms.horizon.passed_by(row)
        return stale.why if stale else None

    def _only_too_old(self, row: SampleRow) -> bool:
        stale, cutoffs = self._staleness(row), replace(self._terms.horizon, oldest=None)
        return stale == "age" and cutoffs.passed_by(row) is None

    def _certain(self, evidence: Sequence[Evidence]) -> bool:
        least = CERTAIN_FIRST.index(self._terms.min_precision)
        return all(CERTAIN_FIRST.index(item.published_precision) <= least for item in evidence)

    def _taken_down(
        self, sample: Sample, texts: Sequence[str], evidence: Sequence[Evidence]
    ) -> bool:
        """Return whether a sample uses listed evidence, or these texts add a listed name."""
        listed = self._terms.takedown
        added = listed.find_new_names(sample.fields.values(), texts)
        return bool(added) or any(map(listed.forbids, evidence))

    def _text(self, arm: "_RowCursor[ArmRow]", row: SampleRow, digest: str | None) -> ArmRow:
        """Return a sample's row in an arm, whose texts must have the digest in samples/."""
        found = arm.of(row.id)
        if len(found) != 1:
            raise self._contradicts(f"{row.id} has {len(found)} rows in an arm")
        if hash_texts(found[0].fields) != digest:
            raise self._contradicts(f"a text of {row.id} differs from the one in samples/")
        return found[0]

    def _contradicts(self, problem: str) -> ReleaseError:
        return ReleaseError(
            f"the release contradicts itself: {problem}",
            where=str(self._release.path),
            hint="download the release again; do not repair it by hand",
        )

    def _result(
        self,
        row: SampleRow,
        updated: dict[str, str],
        reworded: dict[str, str] | None,
        facts: Sequence[FactRow],
        evidence: Sequence[Evidence],
    ) -> Result:
        return Result.model_validate(
            {
                "sample_id": row.id,
                "outcome": "accepted",
                "attempts": row.attempts,
                "rung": row.rung,
                "semantic_status": row.semantic_status,
                "semantic": reworded,
                "updated": updated,
                "original_label": row.original_label,
                "facts": [read_replaced_fact(fact) for fact in facts],
                "freshness": measure_freshness(evidence, self._terms.targets),
                "kept_from": row.kept_from or self._release.manifest.version,
            }
        )


def _describe_reason(reason: Renewal, parent: FollowedRelease) -> str:
    """Return a reason worded to follow a number of samples."""
    if reason == "age" and parent.stale_after:
        return f"with evidence older than {parse_age(parent.stale_after).description}"
    return _REASONS[reason]


_REASONS: dict[Renewal, str] = {
    "new": "that the release does not contain",
    "changed": "whose original or label has changed",
    "withheld": "that the release withheld",
    "not_accepted": "that were not accepted",
    "age": "with outdated evidence",
    "cutoff": "with evidence from before a new target's cutoff",
    "undated": "without dated evidence",
    "precision": "with dates less certain than knowledge.min_precision",
    "takedown": "named in the takedown list",
}


def _outdated_reason(sample: Sample, row: SampleRow) -> Renewal | None:
    """Return the reason that a sample cannot be kept, apart from its evidence."""
    before = (row.original_sha256, row.label, row.label_text)
    if before != (hash_texts(sample.fields), sample.label, sample.label_text):
        return "changed"
    if row.withheld:
        return "withheld"
    return None if is_accepted(row) else "not_accepted"


def read_excerpt(fact: FactRow, release: Release) -> EvidenceExcerpt:
    """Return the evidence of a fact from provenance, which has no headlines."""
    evidence = Evidence.model_validate(
        {
            "id": fact.evidence_id,
            "url": fact.url,
            "domain": fact.domain,
            "title": "",
            "snippet": fact.snippet,
            "published_at": datetime.fromisoformat(fact.published_at),
            "published_precision": fact.published_precision,
            "origin": f"release {release.manifest.name} {release.manifest.version}",
            "source": fact.source,
            "licence": fact.licence,
            "depth": fact.evidence_depth or "headline",
            "text_sha256": fact.text_sha256,
        }
    )
    return EvidenceExcerpt(evidence=evidence, snippet_sha256=fact.snippet_sha256)


def _list_triple_parts(facts: Sequence[FactRow]) -> Iterator[str]:
    for fact in facts:
        yield from (str(getattr(fact, name)) for name in TRIPLE_COLUMNS)


def read_replaced_fact(fact: FactRow) -> ReplacedFact:
    """Return a fact from provenance, without its quote, which provenance does not contain."""
    before = Triple(head=fact.before_head, relation=fact.before_relation, tail=fact.before_tail)
    after = Triple(head=fact.after_head, relation=fact.after_relation, tail=fact.after_tail)
    return ReplacedFact(
        sample_id=fact.id,
        field=fact.field,
        before=None if before == _INSERTED else before,
        after=after,
        evidence_id=fact.evidence_id,
        quote="",
    )


def _moment(stated: str) -> datetime:
    return datetime.fromisoformat(stated)


_INSERTED = Triple(head="", relation="", tail="")


class _OfSample(Protocol):
    """A row that names its sample."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_OfSample)


class _RowCursor(Generic[T]):
    """Rows by sample, read up to the requested sample.

    Skipped rows stay in memory: those of samples that are made again, and those needed later if the
    benchmark has another order.
    """

    def __init__(self, rows: Callable[[], Iterator[T]]) -> None:
        self._groups = groupby(rows(), key=lambda row: row.id)
        self._waiting: dict[str, list[T]] = {}

    def of(self, sample_id: str) -> list[T]:
        """Return the rows of a sample; empty if it has none or they were returned before."""
        if sample_id in self._waiting:
            return self._waiting.pop(sample_id)
        for found, rows in self._groups:
            if found == sample_id:
                return list(rows)
            self._waiting[found] = list(rows)
        return []

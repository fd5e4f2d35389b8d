"""Finds samples that need a person's decision before they are published (research: pilot §4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from coreeval.releases.release import hash_texts
from coreeval.releases.review.decisions import (
    REASONS,
    ListingReason,
    NewFact,
    PersonMention,
    ReviewEntry,
)
from coreeval.releases.review.notes import NO_REMARKS, Remarks
from coreeval.releases.review.persons import (
    SampleNotes,
    find_persons,
    find_unnamed,
    gdelt_persons,
    read_notes,
)
from coreeval.schema import Evidence, ReplacedFact
from coreeval.tools.chunks import chunks
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult

MANY_ATTEMPTS = 3
"""The number of attempts from which a text is doubtful (own choice; the pilot accepted 42 of its 47
texts at the first or second attempt, pilot §8)."""
_BATCH = 500
_BY_NAME = {"plan": "", "original": "", "news": ", according to GDELT", "mention": ""}


@dataclass(frozen=True, kw_only=True)
class PublishedText:
    """The text that a run made from a sample and would publish."""

    arm: Literal["updated", "semantic"]
    fields: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Return the digest that identifies the text in decisions."""
        return hash_texts(self.fields)


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A sample with everything known about it."""

    ended: SampleResult
    written: PublishedText
    noted: SampleNotes
    facts: tuple[ReplacedFact, ...]
    evidence: Mapping[str, Evidence]
    remarks: Remarks

    @property
    def sources(self) -> list[Evidence]:
        """Return the evidence of the sample's facts, without duplicates."""
        ids = dict.fromkeys(fact.evidence_id for fact in self.facts)
        return [self.evidence[known] for known in ids if known in self.evidence]


def find_published_text(ended: SampleResult) -> PublishedText | None:
    """Return the new text that a release publishes; if there are two, the one with new facts."""
    result = ended.result
    if result.outcome == "accepted" and result.updated:
        return PublishedText(arm="updated", fields=result.updated)
    if result.semantic_status == "reworded" and result.semantic:
        return PublishedText(arm="semantic", fields=result.semantic)
    return None


def list_samples(
    store: RunStore, *, vouched: bool, remarks: Mapping[str, Remarks]
) -> list[ReviewEntry]:
    """Return samples that name a person, are doubtful or have notes, by severity of the reasons.

    Samples with the same reason keep the benchmark's order.

    Args:
        store: The run's store.
        vouched: Whether the release that samples were kept from was reviewed in this workspace. If
            so, only those with a note are listed again; otherwise all of them are, because their
            history is in another run.
        remarks: People's notes, by sample.
    """
    cases = (
        case
        for case in _cases(store, remarks)
        if case.remarks or not (vouched and case.ended.result.kept_from)
    )
    found = (_build_listed(case) for case in cases)
    return sorted((each for each in found if each), key=_gravity)


def _gravity(each: ReviewEntry) -> int:
    return min(REASONS.index(reason) for reason in each.reasons)


def _cases(store: RunStore, remarks: Mapping[str, Remarks]) -> Iterator[_Case]:
    """Yield the samples that could be listed: accepted, or unsafe and reworded."""
    known = read_notes(store)
    facts = {key: tuple(rows) for key, rows in groupby(store.facts(), lambda row: row.sample_id)}
    ended = store.sample_results(["accepted", "unsafe"])
    for some in chunks(ended, _BATCH):
        ids = {fact.evidence_id for one in some for fact in facts.get(one.sample.id, ())}
        evidence = _evidence(store, sorted(ids))
        for one in some:
            if text := find_published_text(one):
                key = one.sample.id
                yield _Case(
                    ended=one,
                    written=text,
                    noted=known.get(key, SampleNotes()),
                    facts=facts.get(key, ()),
                    evidence=evidence,
                    remarks=remarks.get(key, NO_REMARKS),
                )


def _evidence(store: RunStore, ids: Sequence[str]) -> Mapping[str, Evidence]:
    """Return evidence from the run, or else as carried over from a release."""
    given_on = {key: told.evidence for key, told in store.carry_over.excerpts(ids).items()}
    return given_on | store.history.evidence(ids)


def _build_listed(case: _Case) -> ReviewEntry | None:
    """Return a sample as shown to a person; None if there is no reason to list it."""
    sample, result = case.ended.sample, case.ended.result
    names = find_persons(case.written.fields, sample.fields, case.noted, case.sources)
    why = tuple(_iter_reasons(case, names))
    if not why:
        return None
    return ReviewEntry(
        sample=sample.id,
        label=sample.label_text,
        outcome=result.outcome,
        arm=case.written.arm,
        original=sample.fields,
        new=dict(case.written.fields),
        digest=case.written.digest,
        names=tuple(names),
        beside=tuple(find_unnamed(gdelt_persons(case.sources), names)),
        why=why,
        facts=tuple(_new_fact(fact, case.evidence) for fact in case.facts),
        remarks=case.remarks,
    )


def _iter_reasons(case: _Case, names: list[PersonMention]) -> Iterator[ListingReason]:
    """Yield the reasons for listing a sample."""
    if case.remarks:
        notes, tags = len(case.remarks.notes), ", ".join(case.remarks.tags)
        counted = f"{notes} note{'' if notes == 1 else 's'}" if notes else ""
        told = "; ".join(filter(None, (counted, tags and f"tagged {tags}")))
        yield ListingReason(reason="noted", detail=told)
    if case.written.arm == "semantic":
        because = case.ended.result.reason or "its policy"
        yield ListingReason(reason="semantic_only", detail=f"only reworded: {because}")
        return
    yield from _person_reasons(case, names)
    yield from _screen_reasons(case)
    yield from _work_reasons(case)


def _person_reasons(case: _Case, names: list[PersonMention]) -> Iterator[ListingReason]:
    for person in case.noted.persons:
        if person.polarity == "negative":
            yield ListingReason(reason="negative", detail=f"negative about {person.name}")
    subjects = (person.name for person in case.noted.persons if person.role == "subject")
    if absent := find_unnamed(subjects, names):
        told = f"the text is about {', '.join(absent)} without naming them"
        yield ListingReason(reason="unnamed", detail=told)
    if names:
        told = ", ".join(f"{each.name}{_describe_source(each)}" for each in names)
        yield ListingReason(reason="person", detail=f"names {told}")


def _describe_source(named: PersonMention) -> str:
    return f" (new{_BY_NAME[named.known]})" if named.new else " (as the original does)"


def _screen_reasons(case: _Case) -> Iterator[ListingReason]:
    about = case.noted
    if about.harm:
        yield ListingReason(reason="harm", detail=about.harm)
    if about.policy != "allow":
        flags = ", ".join(about.sensitive) or "words of the original"
        yield ListingReason(reason="flag", detail=f"{about.policy}, because of {flags}")
    if any(item.instruction_like for item in case.sources):
        yield ListingReason(
            reason="instruction", detail="the evidence reads like an instruction to a model"
        )
    if release := case.ended.result.kept_from:
        yield ListingReason(
            reason="kept", detail=f"kept from {release}, which was not reviewed here"
        )


def _work_reasons(case: _Case) -> Iterator[ListingReason]:
    about, attempts = case.noted, case.ended.result.attempts
    if about.translated:
        yield ListingReason(reason="translated", detail="the news is in another language")
    if about.unsure:
        yield ListingReason(
            reason="label", detail=f"the text is less clear than the original: {about.unsure}"
        )
    if attempts >= MANY_ATTEMPTS:
        yield ListingReason(reason="attempts", detail=f"accepted after {attempts} attempts")
    if any(item.published_precision == "crawl" for item in case.sources):
        yield ListingReason(
            reason="precision", detail="the evidence is dated only by GDELT's crawl"
        )


def _new_fact(fact: ReplacedFact, evidence: Mapping[str, Evidence]) -> NewFact:
    item = evidence.get(fact.evidence_id)
    return NewFact(
        field=fact.field,
        before=fact.before,
        after=fact.after,
        quote=fact.quote,
        evidence_id=fact.evidence_id,
        url=item.url if item else "",
        domain=item.domain if item else "",
        title=item.title or item.snippet if item else "",
        published_at=item.published_at.isoformat() if item else "",
        published_precision=item.published_precision if item else None,
    )

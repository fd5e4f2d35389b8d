"""What a release has that its parent has not: the counts, and CHANGELOG.md."""

from collections.abc import Iterable, Mapping

from coreeval.releases.release import Release
from coreeval.releases.release_manifest import (
    Changelog,
    Changes,
    FactRow,
    ReleaseManifest,
    SampleRow,
)

Texts = Mapping[str, str]
"""Digest of the updated texts by sample, of those that are in the updated arm."""
FactKey = tuple[str, ...]


def changes(
    parent: Release | None, samples: Iterable[SampleRow], facts: Iterable[FactRow]
) -> Changelog:
    """Count what is new, gone, changed and kept beside the parent.

    Raises:
        ReleaseError: a file of the parent cannot be read.
    """
    before = _texts(parent.samples()) if parent else {}
    known = set(map(fact_key, parent.facts())) if parent else set[FactKey]()
    after, stated = _texts(samples), set(map(fact_key, facts))
    both = before.keys() & after.keys()
    kept = sum(before[each] == after[each] for each in both)
    return Changelog(
        samples=Changes(
            added=len(after.keys() - before.keys()),
            removed=len(before.keys() - after.keys()),
            changed=len(both) - kept,
            kept=kept,
        ),
        facts=Changes(
            added=len(stated - known), removed=len(known - stated), kept=len(stated & known)
        ),
    )


def _texts(samples: Iterable[SampleRow]) -> Texts:
    return {each.id: each.updated_sha256 for each in samples if each.updated_sha256}


def fact_key(fact: FactRow) -> FactKey:
    """Return what makes two facts the same: sample, field, new triple and evidence."""
    new = (fact.after_head, fact.after_relation, fact.after_tail)
    return (fact.id, fact.field, *new, fact.evidence_id)


def changelog_text(manifest: ReleaseManifest, parent: Release | None) -> str:
    """Return CHANGELOG.md: this release against its parent."""
    changelog = manifest.changelog
    since = f"since {parent.manifest.version}" if parent else "the first release"
    rows = "\n".join(
        f"| {what} | {one.added} | {one.removed} | {one.changed or ''} | {one.kept} |"
        for what, one in (("samples", changelog.samples), ("facts", changelog.facts))
    )
    return f"""# {manifest.name} {manifest.version}, {since}

| of the updated arm | added | removed | changed | kept |
|---|---|---|---|---|
{rows}

A sample is changed where its texts are; a fact is another one where its words or its evidence are.
"""

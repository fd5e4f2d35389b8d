"""What is new in a release beside its parent: the counts, and CHANGELOG.md."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from coreeval.releases.markdown import code_span, escape
from coreeval.releases.release import Release
from coreeval.releases.release_manifest import (
    ChangeCounts,
    Changelog,
    FactRow,
    ReleaseManifest,
    SampleRow,
)
from coreeval.tools.text import visible_line

if TYPE_CHECKING:
    from coreeval.releases.diff import Diff


MOST_NAMED = 200
"""Samples of a kind whose ids stand in CHANGELOG.md; `coreeval diff` has all."""
CELL_CHARS = 80
"""Characters of a setting that stand there."""
Texts = Mapping[str, str]
"""Digest of the updated texts by sample, of those that are in the updated arm."""
FactKey = tuple[str, ...]


def count_changes(
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
        samples=ChangeCounts(
            added=len(after.keys() - before.keys()),
            removed=len(before.keys() - after.keys()),
            changed=len(both) - kept,
            kept=kept,
        ),
        facts=ChangeCounts(
            added=len(stated - known), removed=len(known - stated), kept=len(stated & known)
        ),
    )


def _texts(samples: Iterable[SampleRow]) -> Texts:
    return {each.id: each.updated_sha256 for each in samples if each.updated_sha256}


def fact_key(fact: FactRow) -> FactKey:
    """Return what makes two facts the same: sample, field, new triple and evidence."""
    new = (fact.after_head, fact.after_relation, fact.after_tail)
    return (fact.id, fact.field, *new, fact.evidence_id)


def format_changelog(manifest: ReleaseManifest, diff: "Diff | None") -> str:
    """Return CHANGELOG.md: this release against its parent, by numbers and ids, without texts.

    Args:
        manifest: The release's.
        diff: From its parent to it; None where it has none.
    """
    changelog = manifest.changelog
    since = f"since {diff.before.version}" if diff else "the first release"
    rows = "\n".join(
        f"| {what} | {one.added} | {one.removed} | {one.changed or ''} | {one.kept} |"
        for what, one in (("samples", changelog.samples), ("facts", changelog.facts))
    )
    return f"""# {manifest.name} {manifest.version}, {since}

| of the updated arm | added | removed | changed | kept |
|---|---|---|---|---|
{rows}

A sample is changed where its texts are; a fact is another one where its words or its evidence are.
{summarize_diff(diff) if diff else ""}"""


def summarize_diff(diff: "Diff") -> str:
    """Return what a changelog says of a diff beyond the counts, each part only where it is."""
    parts = (_outcomes(diff), _settings(diff), _samples(diff))
    return "".join(f"\n## {title}\n\n{body}\n" for title, body in parts if body)


def _outcomes(diff: "Diff") -> tuple[str, str]:
    rows = [f"| {one.before} | {one.after} | {one.samples} |" for one in diff.outcomes]
    return "Other outcomes", _table("| before | after | samples |", rows)


def _settings(diff: "Diff") -> tuple[str, str]:
    rows = [
        f"| {escape(one.name)} | {_cell(one.before)} | {_cell(one.after)} |"
        for one in diff.settings
        if not one.name.startswith(_COUNT_KEYS)
    ]
    return "How it was made", _table("| what | before | after |", rows)


def _samples(diff: "Diff") -> tuple[str, str]:
    by_kind = {kind: [one.id for one in diff.changed if one.updated == kind] for kind in _KINDS}
    lines = [f"- {kind} ({len(ids)}): {_name_samples(ids)}" for kind, ids in by_kind.items() if ids]
    return "Samples of the updated arm", "\n".join(lines)


_KINDS = ("added", "removed", "changed")
_COUNT_KEYS = ("counts.", "arms.", "bad_rows")


def _name_samples(ids: Sequence[str]) -> str:
    shown = ", ".join(code_span(each) for each in ids[:MOST_NAMED])
    return f"{shown} and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else shown


def _table(head: str, rows: Sequence[str]) -> str:
    line = "|" + "---|" * (head.count("|") - 1)
    return "\n".join([head, line, *rows]) if rows else ""


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = visible_line(text)
    return escape(line) if len(line) <= CELL_CHARS else f"{escape(line[:CELL_CHARS])} …"

"""The differences between two releases or runs, and the changelog of a release.

`write_diff_page` writes them as one self-contained page with external text escaped.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coreeval.releases.comparable import RELEASE_SETTINGS, Comparable, ComparableTitle
from coreeval.releases.release import Release, ReleasedArm
from coreeval.releases.release_manifest import (
    ChangeCounts,
    Changelog,
    FactRow,
    ReleaseManifest,
    SampleRow,
)
from coreeval.releases.sources import Horizon, StaleSample, find_new_cutoffs, iter_stale_samples
from coreeval.schema import Value
from coreeval.tools.files import write_text
from coreeval.tools.formatting import list_first
from coreeval.tools.markdown import code_span, escape
from coreeval.tools.outputs import PAGE, refuse_foreign_output
from coreeval.tools.pages import open_templates
from coreeval.tools.tables import Foreign, markdown_table
from coreeval.tools.text import DiffPiece, visible_line, word_diff

if TYPE_CHECKING:
    pass


MOST_NAMED = 200
"""The most samples of a kind whose ids are in CHANGELOG.md; `coreeval diff` has all of them."""
CELL_CHARS = 80
"""The most characters of a setting in CHANGELOG.md."""
Texts = Mapping[str, str]
"""The digest of each sample's updated texts, for the samples in the updated arm."""
FactKey = tuple[str, ...]


def count_changes(
    parent: Release | None, samples: Iterable[SampleRow], facts: Iterable[FactRow]
) -> Changelog:
    """Count what is new, gone, changed and kept relative to the parent.

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
    """Return the key that identifies a fact: sample, field, new triple and evidence."""
    new = (fact.after_head, fact.after_relation, fact.after_tail)
    return (fact.id, fact.field, *new, fact.evidence_id)


def format_changelog(manifest: ReleaseManifest, diff: "Diff | None") -> str:
    """Return CHANGELOG.md: the changes from the parent as numbers and ids, without texts.

    Args:
        manifest: The manifest of the release.
        diff: The changes from its parent; None without a parent.
    """
    changelog = manifest.changelog
    since = f"changes since {diff.before.version}" if diff else "the first release"
    rows = (
        (what, one.added, one.removed, one.changed or "", one.kept)
        for what, one in (("samples", changelog.samples), ("facts", changelog.facts))
    )
    return f"""# {manifest.name} {manifest.version}, {since}

{markdown_table("of the updated arm", "added", "removed", "changed", "kept", rows=rows)}

A sample has changed if its texts have changed. A fact whose words or evidence have changed is
counted as removed and added.
{summarize_diff(diff) if diff else ""}"""


def summarize_diff(diff: "Diff") -> str:
    """Return the changelog's sections beyond the counts, without the empty ones."""
    parts = (_outcomes(diff), _settings(diff), _samples(diff))
    return "".join(f"\n## {title}\n\n{body}\n" for title, body in parts if body)


def _outcomes(diff: "Diff") -> tuple[str, str]:
    rows = [(one.before, one.after, one.samples) for one in diff.outcomes]
    table = markdown_table("before", "after", "samples", rows=rows)
    return "Changed outcomes", table if rows else ""


def _settings(diff: "Diff") -> tuple[str, str]:
    rows = [
        (Foreign(one.name), _cell(one.before), _cell(one.after))
        for one in diff.settings
        if not one.name.startswith(_COUNT_KEYS)
    ]
    table = markdown_table("what", "before", "after", rows=rows)
    return "Differences in settings", table if rows else ""


def _samples(diff: "Diff") -> tuple[str, str]:
    by_kind = {kind: [one.id for one in diff.changed if one.updated == kind] for kind in _KINDS}
    lines = [
        f"- {kind} ({len(ids)}): {list_first([code_span(each) for each in ids], MOST_NAMED)}"
        for kind, ids in by_kind.items()
        if ids
    ]
    return "Samples of the updated arm", "\n".join(lines)


_KINDS = ("added", "removed", "changed")
_COUNT_KEYS = ("counts.", "arms.", "bad_rows")


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = visible_line(text)
    return escape(line) if len(line) <= CELL_CHARS else f"{escape(line[:CELL_CHARS])} …"


InUpdated = Literal["added", "removed", "changed", "same"]
ARMS: tuple[ReleasedArm, ...] = ("updated", "semantic", "original")
NOT_THERE = "not there"
"""Placeholder for the outcome of a sample that one side does not have."""
_COMPARED = ("outcome", "label_text", "semantic_status", "withheld")


class ValueChange(Value):
    """A value that differs; None for a side without a value."""

    name: str
    before: object
    after: object


class OutcomeMove(Value):
    """Samples whose outcome changed from one to another."""

    before: str
    """An outcome, or `not there`."""
    after: str
    samples: int


class FieldDiff(Value):
    """The word-by-word differences in a text field."""

    arm: ReleasedArm
    field: str
    pieces: tuple[DiffPiece, ...]


class FactDiff(Value):
    """A replaced fact that only one side has."""

    op: Literal["added", "removed"]
    fact: FactRow


class SampleDiff(Value):
    """A sample that differs."""

    id: str
    updated: InUpdated
    """Which sides have its text in the updated arm."""
    changes: tuple[ValueChange, ...]
    """Changes to its outcome, label, rewording status, withheld reason or original's digest."""
    fields: tuple[FieldDiff, ...]
    """Changes to its texts; those to an original only if both sides may show it."""
    facts: tuple[FactDiff, ...]


class Diff(Value):
    """The differences between two releases or runs."""

    before: ComparableTitle
    after: ComparableTitle
    settings: tuple[ValueChange, ...]
    """Changes to the settings and results, by dotted key."""
    samples: ChangeCounts
    """Changes to the updated arm, by id and texts."""
    facts: ChangeCounts
    """Changes to the facts; a fact is identified by its new triple and its evidence."""
    outcomes: tuple[OutcomeMove, ...]
    """Changes to the outcomes, most frequent first."""
    changed: tuple[SampleDiff, ...]
    """Changed samples in the order of the later side; samples only in the earlier side come
    last."""
    stale: tuple[StaleSample, ...]
    """Accepted samples of the later side that the next refresh would renew."""


def compare_in_full(
    before: Comparable, after: Comparable, *, oldest: datetime | None = None
) -> Diff:
    """Compare two sides word by word; the arguments are those of `compare_digests`.

    Raises:
        ReleaseError: a file of a release cannot be read.
    """
    found = compare_digests(before, after, oldest=oldest)
    fields = _field_diffs(before, after, {one.id for one in found.changed})
    changed = (one.model_copy(update={"fields": fields.get(one.id, ())}) for one in found.changed)
    return found.model_copy(update={"changed": tuple(changed)})


def compare_digests(
    before: Comparable, after: Comparable, *, oldest: datetime | None = None
) -> Diff:
    """Compare two sides by the digests of their texts, without reading the texts.

    Args:
        before: The earlier one.
        after: The later one.
        oldest: Evidence published earlier is stale; None if only new targets make it stale.

    Raises:
        ReleaseError: a file of a release cannot be read.
    """
    old = {row.id: row for row in before.samples()}
    new = {row.id: row for row in after.samples()}
    pairs = [(old.get(each), new.get(each)) for each in (*new, *(old.keys() - new.keys()))]
    facts, counted = _fact_diffs(before.facts(), after.facts())
    different = {_row_id(*pair) for pair in pairs if _differs(*pair)} | facts.keys()
    horizon = Horizon(oldest=oldest, cutoffs=find_new_cutoffs(before.cutoffs, after.cutoffs or ()))
    return Diff(
        before=before.title,
        after=after.title,
        settings=tuple(_setting_changes(before, after)),
        samples=_value_counts(pairs),
        facts=counted,
        outcomes=tuple(_outcome_moves(pairs)),
        changed=tuple(
            SampleDiff(
                id=_row_id(*pair),
                updated=_updated_state(*pair),
                changes=tuple(_value_changes(*pair)),
                fields=(),
                facts=tuple(facts.get(_row_id(*pair), ())),
            )
            for pair in pairs
            if _row_id(*pair) in different
        ),
        stale=tuple(iter_stale_samples(new.values(), horizon)),
    )


# -- samples --------------------------------------------------------------------------------------

RowPair = tuple[SampleRow | None, SampleRow | None]


def _row_id(old: SampleRow | None, new: SampleRow | None) -> str:
    some = new or old
    assert some is not None
    return some.id


def _updated_state(old: SampleRow | None, new: SampleRow | None) -> InUpdated:
    before, after = old and old.updated_sha256, new and new.updated_sha256
    if before == after:
        return "same"
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def _differs(old: SampleRow | None, new: SampleRow | None) -> bool:
    if old is None or new is None:
        return True
    digests = ("updated_sha256", "semantic_sha256", "original_sha256", *_COMPARED)
    return any(getattr(old, name) != getattr(new, name) for name in digests)


def _value_changes(old: SampleRow | None, new: SampleRow | None) -> Iterator[ValueChange]:
    for name in (*_COMPARED, "original_sha256"):
        before, after = (getattr(row, name) if row else None for row in (old, new))
        if before != after:
            yield ValueChange(name=name, before=before, after=after)


def _value_counts(pairs: Iterable[RowPair]) -> ChangeCounts:
    found = Counter(
        "kept" if (how := _updated_state(*pair)) == "same" else how
        for pair in pairs
        if any(row and row.updated_sha256 for row in pair)
    )
    return ChangeCounts(**found)


def _outcome_moves(pairs: Iterable[RowPair]) -> Iterator[OutcomeMove]:
    found = Counter(tuple(row.outcome if row else NOT_THERE for row in pair) for pair in pairs)
    for (before, after), number in found.most_common():
        if before != after:
            yield OutcomeMove(before=before, after=after, samples=number)


# -- fields ---------------------------------------------------------------------------------------


def _field_diffs(
    before: Comparable, after: Comparable, different: Collection[str]
) -> dict[str, tuple[FieldDiff, ...]]:
    """Return the fields that differ, by sample."""
    found = defaultdict[str, list[FieldDiff]](list)
    for arm in ARMS:
        old, new = ({row.id: row.fields for row in side.arm(arm) if row.id in different}
                    for side in (before, after))  # fmt: skip
        shown = old.keys() & new.keys() if arm == "original" else old.keys() | new.keys()
        for sample_id in shown:
            found[sample_id] += _arm_diffs(arm, old.get(sample_id, {}), new.get(sample_id, {}))
    return {sample_id: tuple(fields) for sample_id, fields in found.items()}


def _arm_diffs(
    arm: ReleasedArm, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[FieldDiff]:
    for field in dict.fromkeys((*new, *old)):
        before, after = old.get(field, ""), new.get(field, "")
        if before != after:
            yield FieldDiff(arm=arm, field=field, pieces=word_diff(before, after))


# -- facts and settings ---------------------------------------------------------------------------


def _fact_diffs(
    before: Iterable[FactRow], after: Iterable[FactRow]
) -> tuple[Mapping[str, list[FactDiff]], ChangeCounts]:
    """Return the facts that only one side has, by sample, and the counts of all facts."""
    old, new = ({fact_key(fact): fact for fact in facts} for facts in (before, after))
    found = defaultdict[str, list[FactDiff]](list)
    for key in _facts_of_one_side(old, new):
        found[old[key].id].append(FactDiff(op="removed", fact=old[key]))
    for key in _facts_of_one_side(new, old):
        found[new[key].id].append(FactDiff(op="added", fact=new[key]))
    both = len(old.keys() & new.keys())
    return found, ChangeCounts(added=len(new) - both, removed=len(old) - both, kept=both)


def _facts_of_one_side(
    these: Mapping[FactKey, FactRow], those: Mapping[FactKey, FactRow]
) -> Iterator[FactKey]:
    return (key for key in these if key not in those)


def _setting_changes(old: Comparable, new: Comparable) -> Iterator[ValueChange]:
    """Yield the settings that differ; between a release and a run, only those that both have."""
    left_out = RELEASE_SETTINGS if old.title.kind != new.title.kind else ()
    for name in dict.fromkeys((*old.settings, *new.settings)):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after and name.partition(".")[0] not in left_out:
            yield ValueChange(name=name, before=before, after=after)


MOST_SHOWN = 1000
"""The most samples on a page; browsers cannot display a whole large benchmark."""


def write_diff_page(path: Path, diff: Diff) -> None:
    """Write the diff page as one atomic replacement."""
    refuse_foreign_output(path, PAGE)
    write_text(path, render_diff_page(diff))


def render_diff_page(diff: Diff) -> str:
    """Return the diff page."""
    templates = open_templates("coreeval.releases", lstrip_blocks=True)
    document = diff.model_dump(mode="json")
    shown, left = document["changed"][:MOST_SHOWN], max(0, len(document["changed"]) - MOST_SHOWN)
    return templates.get_template("diff.html.jinja").render(
        document | {"changed": shown, "left": left, "titles": [str(diff.before), str(diff.after)]}
    )

"""Compares two runs or releases: their settings, their models, and the samples that differ.

Differences are computed once while both sides are unchanged, then filtered for each page.

For all samples, only the compared values are read; texts are read for a few samples.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import compress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from coreeval.config import ROLES, ModelsConfig, load_config
from coreeval.releases.comparable import ComparableTitle, flatten_values, open_comparable
from coreeval.releases.diff import NOT_THERE, OutcomeMove
from coreeval.releases.release import Release, ReleasedArm, hash_texts, read_release
from coreeval.releases.release_manifest import ChangeCounts, FactRow, ReleaseManifest
from coreeval.runs.history import redact_text
from coreeval.runs.manifest import Cost, Manifest, read_manifest
from coreeval.schema import Evidence, ReplacedFact, RoleName, Triple, Value
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_queries import ComparedSample
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.results import Results, build_results, read_results

RELEASE_PREFIX = "release:"
"""Prefix of the key of a release, which distinguishes it from a run's."""
Texts = Mapping[str, str]


class SideFact(Value):
    """A replaced fact and the article that supports it."""

    before: Triple | None
    """None for an addition."""
    after: Triple
    headline: str
    url: str
    domain: str
    published_at: str


class SideSample(Value):
    """A sample with all its compared values."""

    outcome: str
    reason: str
    label: str
    attempts: int
    original: dict[str, str] | None
    """The original text; None if a release may not redistribute it."""
    semantic: dict[str, str] | None
    updated: dict[str, str] | None
    facts: tuple[SideFact, ...]

    def redact(self) -> "SideSample":
        """Return the sample with placeholders for texts and reason, and without facts."""
        arms = {
            name: _redact_fields(getattr(self, name))
            for name in ("original", "semantic", "updated")
        }
        reason = self.reason and redact_text(self.reason)
        return self.model_copy(update={**arms, "reason": reason, "facts": ()})


class SampleSource(NamedTuple):
    """The samples of a run or a release."""

    read_all: Callable[[], Iterable[ComparedSample]]
    """Reads all samples; those of a release have digests instead of texts."""
    read_some: Callable[[Sequence[str]], Mapping[str, SideSample]]
    """Reads samples by id; samples that have not ended or do not exist are left out."""


def _redact_fields(fields: Texts | None) -> Texts | None:
    return fields and {name: redact_text(text) for name, text in fields.items()}


# -- a run ----------------------------------------------------------------------------------------


def build_run_source(path: Path) -> SampleSource:
    """Return the ended samples of a run from its run.db, which is opened for each query."""

    def all_of() -> Iterable[ComparedSample]:
        with RunStore.open(path, now=utc_now) as store:
            return store.sample_states.all()

    def some_of(ids: Sequence[str]) -> Mapping[str, SideSample]:
        with RunStore.open(path, now=utc_now) as store:
            found = store.sample_states.some(ids)
            used = {fact.evidence_id for each in found.values() for fact in each.result.facts}
            evidence = store.history.evidence(list(used))
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
    """Return the samples of a release from its files."""
    release = read_release(path)
    return SampleSource(release.compared_samples, lambda ids: _read_release_samples(release, ids))


def _read_release_samples(release: Release, ids: Sequence[str]) -> Mapping[str, SideSample]:
    arms = {
        name: {row.id: row.fields for row in release.arm(name, ids)}
        for name in get_args(ReleasedArm)
    }
    facts = dict[str, list[SideFact]]()
    for fact in release.facts(ids):
        facts.setdefault(fact.id, []).append(_build_release_fact(fact))
    return {
        row.id: SideSample(
            outcome=row.outcome,
            reason=row.reason,
            label=row.label_text,
            attempts=row.attempts,
            facts=tuple(facts.get(row.id, ())),
            **{name: texts.get(row.id) for name, texts in arms.items()},
        )
        for row in release.samples(ids)
    }


def _build_release_fact(row: FactRow) -> SideFact:
    before = Triple(head=row.before_head, relation=row.before_relation, tail=row.before_tail)
    after = Triple(head=row.after_head, relation=row.after_relation, tail=row.after_tail)
    return SideFact(
        before=before if row.before_head else None,
        after=after,
        headline=row.snippet,
        url=row.url,
        domain=row.domain,
        published_at=row.published_at,
    )


_RESULT_SETTINGS = ("counts", "arms", "bad_rows", "models")
"""Settings with their own tables."""


@dataclass(frozen=True, kw_only=True)
class ComparisonSide:
    """One of two sides of a comparison; equal to another side if both have the same path."""

    key: str
    """Its key in URLs."""
    title: ComparableTitle = field(compare=False)
    path: Path
    counts: Mapping[str, int] = field(compare=False)
    cost: Cost = field(compare=False)
    models: ModelsConfig = field(compare=False)
    settings: Mapping[str, object] = field(compare=False)
    """Its settings by dotted key, without models."""
    samples: SampleSource = field(compare=False)
    stamp: tuple[int, str] = field(compare=False)
    """A value that changes whenever the side changes."""
    task: str = field(compare=False)
    results: Results | None = field(compare=False)
    """The findings about targets; None if there are none yet."""
    changes: ChangeCounts | None = field(compare=False, default=None)
    """The changes of a release's updated arm relative to its parent; None for a run."""

    @property
    def is_run(self) -> bool:
        """Return whether the side is a run, so that its samples have pages."""
        return self.title.kind == "run"


class SettingChange(Value):
    """A setting that differs; None if a side does not have it."""

    name: str
    before: object
    after: object


class RoleModels(Value):
    """The model of a role on each side."""

    role: str
    before: str
    after: str
    others: tuple[SettingChange, ...]
    """The other settings of the role that differ."""

    @property
    def differs(self) -> bool:
        """Return whether the role has any difference."""
        return self.before != self.after or bool(self.others)


def load_run_side(key: str, path: Path) -> ComparisonSide:
    """Return a run as one side of a comparison.

    Raises:
        RunStateError: the run's manifest cannot be read.
        RunCorrupt: the run's run.db is missing.
    """
    files = RunFiles(path)
    manifest, store = read_manifest(files.manifest), files.require_store()
    config = dict(flatten_values("", load_config(files.config).model_dump(mode="json")))
    with RunStore.open(store, now=utc_now) as opened:
        stamp = opened.sample_states.stamp()
    side = _build_side(key, path, manifest, config, build_run_source(store), stamp)
    return replace(side, results=read_results(files))


def load_release_side(key: str, path: Path) -> ComparisonSide:
    """Return a release as one side of a comparison.

    Raises:
        ReleaseError: the release is damaged.
    """
    manifest = read_release(path).manifest
    stamp = manifest.counts["total"], manifest.created_at
    side = _build_side(key, path, manifest, {}, build_release_source(path), stamp)
    results = build_results(manifest.findings) if manifest.findings else None
    return replace(side, results=results, changes=manifest.changelog.samples)


def _build_side(
    key: str,
    path: Path,
    manifest: Manifest | ReleaseManifest,
    config: Mapping[str, object],
    samples: SampleSource,
    stamp: tuple[int, str],
) -> ComparisonSide:
    side = open_comparable(path)
    settings = {**side.settings, **config}
    return ComparisonSide(
        key=key,
        title=side.title,
        path=path,
        counts=manifest.counts,
        cost=manifest.cost,
        models=ModelsConfig.model_validate(manifest.models),
        settings={k: v for k, v in settings.items() if k.partition(".")[0] not in _RESULT_SETTINGS},
        samples=samples,
        stamp=stamp,
        task=manifest.task,
        results=None,
    )


def compare_models(before: ComparisonSide, after: ComparisonSide) -> list[RoleModels]:
    """Return the model of each role on both sides, with defaults filled in."""
    return [
        _compare_role(role, *(_read_model_settings(side, role) for side in (before, after)))
        for role in ROLES
    ]


def _read_model_settings(side: ComparisonSide, role: RoleName) -> Mapping[str, object]:
    return dict(flatten_values("", side.models.for_role(role).model_dump(mode="json")))


def _compare_role(
    role: RoleName, old: Mapping[str, object], new: Mapping[str, object]
) -> RoleModels:
    others = tuple(one for one in find_changes(old, new) if one.name != "model")
    return RoleModels(role=role, before=str(old["model"]), after=str(new["model"]), others=others)


def find_changes(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[SettingChange]:
    """Yield the settings that differ."""
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield SettingChange(name=name, before=before, after=after)


DifferenceKind = Literal["outcome", "updated", "semantic", "label"]
DIFFERENCE_KINDS: tuple[DifferenceKind, ...] = get_args(DifferenceKind)
CACHED_COMPARISONS = 4
"""The number of comparisons to cache for further pages."""


class SampleDifference(NamedTuple):
    """A sample that differs between two sides."""

    sample: str
    before: str
    """Its outcome on the earlier side, or `not there`."""
    after: str
    kinds: tuple[DifferenceKind, ...]
    """The kinds of difference; empty if only one side has the sample."""


class DifferenceFilter(Value):
    """The filter of differences: only those that meet all conditions are shown."""

    kind: DifferenceKind | None = None
    before: str | None = None
    """An outcome, or `not there`."""
    after: str | None = None
    text: str = ""
    """Part of an id; case does not matter."""


@dataclass(frozen=True)
class SideDifferences:
    """All differences between two sides."""

    differences: tuple[SampleDifference, ...]
    """The samples in the order of the later side; samples only in the earlier side come last."""
    shared: int
    """The number of samples in both sides."""

    @cached_property
    def moves(self) -> list[OutcomeMove]:
        """Count the samples whose outcomes differ, by both outcomes, most frequent first."""
        found = Counter((one.before, one.after) for one in self.differences)
        return [
            OutcomeMove(before=before, after=after, samples=number)
            for (before, after), number in found.most_common()
            if before != after
        ]

    @cached_property
    def kinds(self) -> Mapping[DifferenceKind, int]:
        """Return the number of samples that differ in each way."""
        found = Counter(kind for one in self.differences for kind in one.kinds)
        return {kind: found[kind] for kind in DIFFERENCE_KINDS}

    @cached_property
    def one_sided(self) -> int:
        """Return the number of samples in only one side."""
        return sum(not one.kinds for one in self.differences)

    def select(self, by: DifferenceFilter) -> Sequence[SampleDifference]:
        """Return the differences that match a filter."""
        everything = by == DifferenceFilter()
        return self.differences if everything else [o for o in self.differences if _matches(o, by)]


def compare_sides(before: ComparisonSide, after: ComparisonSide) -> SideDifferences:
    """Return the samples that differ between two sides, recomputed if either side has changed."""
    return _compare_cached(before, before.stamp, after, after.stamp)


@lru_cache(CACHED_COMPARISONS)
def _compare_cached(
    before: ComparisonSide, _: object, after: ComparisonSide, __: object
) -> SideDifferences:
    return find_differences(before.samples.read_all(), after.samples.read_all())


def find_differences(
    before: Iterable[ComparedSample], after: Iterable[ComparedSample]
) -> SideDifferences:
    """Return the samples that differ between an earlier and a later side."""
    old = {row[0]: row for row in before}
    found, shared = list[SampleDifference](), 0
    for row in after:
        was = old.pop(row[0], None)
        shared += was is not None
        kinds = _find_kinds(was, row) if was else ()
        if was is None or kinds:
            found.append(SampleDifference(row[0], was[2] if was else NOT_THERE, row[2], kinds))
    gone = (SampleDifference(row[0], row[2], NOT_THERE, ()) for row in old.values())
    return SideDifferences((*found, *gone), shared)


def _find_kinds(old: ComparedSample, new: ComparedSample) -> tuple[DifferenceKind, ...]:
    _, label, outcome, updated, semantic = old
    _, other_label, other_outcome, other_updated, other_semantic = new
    differs = (
        outcome != other_outcome,
        updated != other_updated and not _is_same_text(updated, other_updated),
        semantic != other_semantic and not _is_same_text(semantic, other_semantic),
        label != other_label,
    )
    return tuple(compress(DIFFERENCE_KINDS, differs))


def _is_same_text(old: str | None, new: str | None) -> bool:
    """Return whether two texts are equal, either as JSON in any key order or by digest."""
    if not old or not new:
        return False
    if old.startswith("{") and new.startswith("{"):
        return len(old) == len(new) and json.loads(old) == json.loads(new)
    return _digest_text(old) == _digest_text(new)


def _digest_text(text: str) -> str:
    return hash_texts(json.loads(text)) if text.startswith("{") else text


def _matches(one: SampleDifference, by: DifferenceFilter) -> bool:
    return (
        (by.kind is None or by.kind in one.kinds)
        and by.before in (None, one.before)
        and by.after in (None, one.after)
        and by.text.casefold() in one.sample.casefold()
    )

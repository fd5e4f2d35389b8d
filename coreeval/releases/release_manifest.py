"""release.json: what a release is, where it comes from, and the digest of each of its files."""

from typing import Literal

from coreeval.evaluation.annotation.ratings import CriterionResult
from coreeval.releases.folders import InsidePath, PlainName, RelativePath, VersionName
from coreeval.runs.manifest import ConfigSource, Cost, Fingerprints, KnowledgeUsed
from coreeval.runs.quality import Findings, Quality
from coreeval.schema import Rung, Value, Window
from coreeval.tools.cutoffs import LatestDate, TargetDates, TargetFreshness

SCHEMA_VERSION = 1
Withheld = Literal["", "review", "takedown"]
"""Why the new texts of a sample are left out, though the run has them; empty: they are not."""


class ParentRelease(Value):
    """The release that one follows."""

    version: VersionName
    digest: str
    """sha256 of its release.json: the releases make a chain."""
    path: RelativePath | None = None
    """Where it was, relative to the release; None if it stood elsewhere."""


class FileDigest(Value):
    """A file as it was when the release was made."""

    sha256: str
    bytes: int


class Licence(Value):
    """On what terms the benchmark's own texts may be passed on."""

    name: str
    url: str | None = None
    redistribute: bool = False
    source: str
    """Who says so: `config`, or what the built-in table rests on."""


class ReviewState(Value):
    """What a person decided about the samples that ask for it."""

    required: bool = False
    """Whether the release waited for it."""
    listed: int = 0
    approved: int = 0
    rejected: int = 0
    pending: int = 0


class TakedownState(Value):
    """The list of what may not be published, as it stood when the release was made."""

    entries: int = 0
    sha256: str = ""
    withheld: int = 0
    """Accepted samples that it took out of the updated arm."""


class PublishedRatings(Value):
    """What people said of the run's texts, blind to their arm (docs/annotation.md)."""

    study: str
    scored_at: str
    scale: str
    items: int
    raters: int
    criteria: tuple[CriterionResult, ...]


class ChangeCounts(Value):
    """How many there are beside the parent's."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    kept: int = 0


class Changelog(Value):
    """What is different from the parent release; all is added where there is none."""

    samples: ChangeCounts
    """Of the updated arm, by id and texts."""
    facts: ChangeCounts
    """Replaced facts, by sample, field, new triple and evidence; a fact is never `changed`."""


class ReleaseManifest(Value):
    """The manifest of one release."""

    schema_version: Literal[1] = 1
    name: str
    version: VersionName
    created_at: str
    run: str
    """Name of the run: `<config name>/<UTC start>`, or the directory's name."""
    now: str
    """The run's clock: everything dated uses it."""
    task: str
    split: PlainName
    parent: ParentRelease | None = None
    window: Window
    window_start: LatestDate | None = None
    cutoffs: tuple[TargetDates, ...] | None = None
    after_cutoff: tuple[TargetFreshness, ...] = ()
    models: dict[str, object]
    ruled: tuple[str, ...] = ()
    """Roles that rules played, not models."""
    prompts: dict[str, str]
    fingerprints: Fingerprints
    source: ConfigSource
    knowledge: KnowledgeUsed
    counts: dict[str, int]
    kept: int = 0
    """Samples that the run took from the release it was made from."""
    still_stale: int | None = None
    """Samples of the updated arm whose evidence is older than the run asked for, or from before a
    new target's cutoff: their renewal found no news that is new enough. None if the run followed no
    release."""
    bad_rows: int = 0
    notes: tuple[str, ...] = ()
    cost: Cost = Cost()
    quality: Quality
    findings: Findings | None = None
    """None if the run had no report, and in releases from before this was kept."""
    arms: dict[str, int]
    """Rows of each file by its folder: updated, semantic, provenance, samples, original."""
    on_reject: Literal["drop", "semantic", "original"] = "drop"
    """What stands in the updated arm for a rejected sample."""
    snippets: bool = True
    """Whether provenance quotes the news."""
    licence: Licence
    review: ReviewState = ReviewState()
    takedown: TakedownState = TakedownState()
    annotation: PublishedRatings | None = None
    """None if nobody rated its texts."""
    changelog: Changelog
    files: dict[InsidePath, FileDigest]
    """Every file but release.json and release.sha256, by its path in the release."""


class SampleRow(Value):
    """One row of samples/: how a sample of the benchmark stands in a release."""

    id: str
    split: str
    outcome: str
    attempts: int
    semantic_status: str
    label: int
    label_text: str
    rung: Rung = "none"
    original_label: str = ""
    """What the blind judge said about the original; empty if it was not asked."""
    original_sha256: str
    """See `texts_sha256`."""
    updated_sha256: str | None = None
    """None for a sample that is not in the updated arm; so for the semantic one."""
    semantic_sha256: str | None = None
    newest_evidence: str | None = None
    """ISO time at which the newest piece of its evidence was published; None without any."""
    oldest_evidence: str | None = None
    kept_from: str | None = None
    """Version of the release that its texts were taken from; None if the run made them."""
    withheld: Withheld = ""
    reason: str = ""
    """Why it was not accepted; empty if that would quote what may not be passed on."""


class FactRow(Value):
    """One row of provenance/: a replaced fact with its evidence."""

    id: str
    field: str
    before_head: str
    before_relation: str
    before_tail: str
    after_head: str
    after_relation: str
    after_tail: str
    evidence_id: str
    url: str
    domain: str
    published_at: str
    published_precision: str
    snippet: str
    """Empty in a release without snippets."""
    snippet_sha256: str
    """Of the snippet, be it left out."""
    after_cutoff: tuple[str, ...] | None = None


class ArmRow(Value):
    """One row of an arm: a sample's texts in it."""

    id: str
    fields: dict[str, str]
    label: int
    label_text: str
    outcome: str
    attempts: int
    semantic_status: str

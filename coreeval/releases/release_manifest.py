"""release.json: the description and origin of a release, and the digest of each of its files."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coreeval.evaluation.annotation.ratings import CriterionResult
from coreeval.releases.folders import InsidePath, PlainName, RelativePath, VersionName
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import (
    Cost,
    Fingerprints,
    KnowledgeUsed,
    ModelSettings,
    SampleCounts,
)
from coreeval.runs.quality import Findings, Quality
from coreeval.runs.sources import SourceTerms
from coreeval.schema import (
    Count,
    Outcome,
    Precision,
    Rung,
    SemanticStatus,
    Value,
    Window,
    ZonedTime,
)
from coreeval.tools.cutoffs import LatestDate, TargetDates, TargetFreshness

SCHEMA_VERSION = 1


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Withheld = Literal["", "review", "takedown"]
"""The reason that a sample's new texts are withheld; empty if they are published."""


class ParentRelease(Value):
    """The release that another one follows."""

    version: VersionName
    digest: str
    """sha256 of its release.json, which links the releases into a chain."""
    path: RelativePath | None = None
    """Its path relative to the release; None if it was in another place."""


class FileDigest(Value):
    """A file at the time of the release."""

    sha256: str
    bytes: int


class Licence(Value):
    """The terms on which the benchmark's own texts may be redistributed."""

    name: str
    url: str | None = None
    redistribute: bool = False
    source: str
    """The source of the licence: `config`, or the reference in the built-in table."""


class ReviewState(Value):
    """Human decisions about the samples that require one."""

    required: bool = False
    """Whether the release waited for the review."""
    listed: Count = 0
    approved: Count = 0
    rejected: Count = 0
    pending: Count = 0


class TakedownState(Value):
    """The takedown list at the time of the release."""

    entries: Count = 0
    sha256: str = ""
    withheld: Count = 0
    """Samples that the list removed from the new arms."""


class PublishedRatings(Value):
    """Human ratings of the release's texts, blind to their arm (docs/annotation.md)."""

    study: str
    scored_at: str
    scale: str
    items: int
    omitted: int = 0
    """The number of rated texts that the release does not contain; their ratings do not count."""
    raters: int
    criteria: tuple[CriterionResult, ...]


class ChangeCounts(Value):
    """The number of changes from the parent."""

    added: Count = 0
    removed: Count = 0
    changed: Count = 0
    kept: Count = 0


class Changelog(Value):
    """The changes from the parent release; without a parent, everything counts as added."""

    samples: ChangeCounts
    """Changes to the updated arm, by id and texts."""
    facts: ChangeCounts
    """Changes to replaced facts, by sample, field, new triple and evidence; never `changed`."""


class ReleaseManifest(Value):
    """The manifest of one release."""

    schema_version: Literal[1] = 1
    name: str
    version: VersionName
    created_at: ZonedTime
    run: str
    """The run's name: `<config name>/<UTC start>`, or its directory's name."""
    now: ZonedTime
    """The run's clock, used for everything dated."""
    task: str
    split: PlainName
    parent: ParentRelease | None = None
    window: Window
    window_start: LatestDate | None = None
    cutoffs: tuple[TargetDates, ...] | None = None
    after_cutoff: tuple[TargetFreshness, ...] = ()
    models: ModelSettings
    ruled: tuple[str, ...] = ()
    """Roles played by rules rather than models."""
    prompts: dict[str, str]
    fingerprints: Fingerprints
    source: ConfigSource
    knowledge: KnowledgeUsed
    counts: SampleCounts
    kept: Count = 0
    """Samples that the run kept from the release it follows."""
    still_stale: Count | None = None
    """Samples of the updated arm whose evidence is older than the run required, or precedes a new
    target's cutoff: their renewal found no news that is recent enough. None if the run followed no
    release."""
    bad_rows: Count = 0
    notes: tuple[str, ...] = ()
    cost: Cost = Cost()
    quality: Quality
    findings: Findings | None = None
    """Findings about targets; None if the run had no report, and in releases made before they were
    recorded."""
    arms: dict[str, int]
    """Number of rows by folder: updated, semantic, provenance, samples, original."""
    semantic_left_out: Count = 0
    """Reworded samples that are left out because they have whole texts of the benchmark, which may
    not be redistributed."""
    on_reject: Literal["drop", "semantic", "original"] = "drop"
    """The substitute for a rejected sample in the updated arm."""
    snippets: bool = True
    """Whether provenance quotes the news."""
    licence: Licence
    sources: tuple[SourceTerms, ...] = ()
    """The sources and terms of the facts in provenance; empty also in releases made before sources
    were recorded."""
    review: ReviewState = ReviewState()
    takedown: TakedownState = TakedownState()
    annotation: PublishedRatings | None = None
    """Human ratings; None if nobody rated the texts."""
    changelog: Changelog
    files: dict[InsidePath, FileDigest]
    """Every file except release.json and release.sha256, by its path in the release."""

    @property
    def published(self) -> int:
        """The accepted samples in the updated arm; withheld samples and substitutes do not count.

        `review.rejected` also counts samples that were never accepted, and samples that are on the
        takedown list too. So this number is no difference of the others.
        """
        return round(Fraction(self.quality.acceptance.estimate or 0) * self.counts["total"])

    @model_validator(mode="after")
    def _check_published(self) -> Self:
        if not 0 <= (self.quality.acceptance.estimate or 0) <= 1:
            raise ValueError("quality.acceptance: it is no share")
        if (self.still_stale or 0) > self.published:
            raise ValueError("still_stale: more samples than were accepted and published")
        return self


class SampleRow(Value):
    """One row of samples/: the state of a benchmark sample in a release."""

    id: str
    split: str
    outcome: Outcome
    attempts: int
    semantic_status: SemanticStatus
    label: int
    label_text: str
    rung: Rung = "none"
    original_label: str = ""
    """The label that the blind judge gave the original; empty if the judge was not asked, or
    answered in words, which are a text."""
    original_sha256: Sha256
    """Digest of the original texts; see `texts_sha256`."""
    updated_sha256: Sha256 | None = None
    """Digest of the updated texts; None if the sample is not in the updated arm. The semantic
    digest works the same way."""
    semantic_sha256: Sha256 | None = None
    newest_evidence: ZonedTime | None = None
    """ISO time at which the newest piece of its evidence was published; None without evidence."""
    oldest_evidence: ZonedTime | None = None
    kept_from: str | None = None
    """Version of the release that its texts were taken from; None if the run made them."""
    withheld: Withheld = ""
    reason: str = ""
    """The reason that it was not accepted, in words of CoreEval's code; empty if only a model, an
    endpoint or a text could tell it."""


def count_left_out(rows: Iterable[SampleRow]) -> int:
    """Return how many samples lack a reworded text only because it has texts of the benchmark."""
    return sum(row.semantic_status == "licence" and not row.withheld for row in rows)


class IdentifierRow(Value):
    """One row of original/ in a release that may not redistribute the benchmark's texts."""

    id: str
    label: int
    label_text: str
    sha256: Sha256
    """Digest of the original texts; see `texts_sha256`."""


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
    published_at: ZonedTime
    published_precision: Precision
    snippet: str
    """A quotation from the news; empty in a release without snippets."""
    snippet_sha256: Sha256
    """sha256 of the snippet, even if the snippet is left out."""
    after_cutoff: tuple[str, ...] | None = None
    text_sha256: str = ""
    """sha256 of the article's text; empty without a text. Like the columns below, it is missing in
    releases made before evidence had a depth."""
    evidence_depth: str = ""
    source: str = "gdelt"
    licence: str = ""


class ArmRow(Value):
    """One row of an arm: a sample's texts in it."""

    id: str
    fields: dict[str, str]
    label: int
    label_text: str
    outcome: str
    attempts: int
    semantic_status: str

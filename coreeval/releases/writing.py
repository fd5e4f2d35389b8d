"""Writes the files of a release."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import yaml

from coreeval.evaluation.report.report_file import read_report
from coreeval.releases.annotation.kept import said_of
from coreeval.releases.arms import shard_of, write_arms
from coreeval.releases.changelog import changelog_text, changes
from coreeval.releases.dataset_info import with_dataset_info
from coreeval.releases.diff import outline
from coreeval.releases.findings import findings_of
from coreeval.releases.originals import write_originals
from coreeval.releases.parents import named_parent
from coreeval.releases.portable import portable
from coreeval.releases.quality import quality_of
from coreeval.releases.release import (
    DIGEST,
    MANIFEST,
    TASK,
    Release,
    read_facts,
    read_samples,
    sha256_of,
)
from coreeval.releases.release_card import release_card
from coreeval.releases.release_manifest import (
    FileDigest,
    Findings,
    Quality,
    ReleaseManifest,
    ReviewState,
    SampleRow,
    TakedownState,
    Withheld,
)
from coreeval.releases.review import review_of
from coreeval.releases.sample_rows import sample_rows, write_samples
from coreeval.releases.sides import side_of
from coreeval.releases.sources import Manner, Sources
from coreeval.releases.stale import horizon_of, stale_samples
from coreeval.releases.withholding import withheld_samples
from coreeval.tools.clock import utc_now
from coreeval.tools.files import write_json, write_text
from coreeval.tools.stores.run_store import RunStore


def write_release(made_of: Sources, how: Manner, draft: Path) -> None:
    """Write all files of a release into a folder; the manifest with their digests comes last.

    Raises:
        ReviewOpen: it waits for a person.
        OSError: a file cannot be written.
    """
    with closing(RunStore.open(made_of.files.require_store(), now=utc_now)) as store:
        review = review_of(made_of.files, made_of.run, store)
        if how.require_review:
            review.require_decided()
        withheld = withheld_samples(store, made_of.takedown, review.rejected)
        arms = _write_tables(made_of, store, draft, withheld, how.snippets)
        quality = quality_of(
            store, made_of.task, withheld=withheld, followed=_followed_quality(made_of)
        )
    found = _Found(arms, quality, review.state(required=how.require_review), withheld)
    manifest = _manifest(made_of, how, draft, found)
    private = {"schedule", "telemetry"}
    config = portable(made_of.config.model_dump(mode="json", exclude=private), made_of.base)
    write_text(draft / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    write_json(draft / TASK, made_of.task.model_dump(mode="json"))
    card = with_dataset_info(release_card(made_of.task, manifest), draft, made_of.split)
    write_text(draft / "README.md", card)
    before, made = made_of.parent, Release(path=draft, manifest=manifest)
    diff = outline(side_of(before), side_of(made)) if before else None
    write_text(draft / "CHANGELOG.md", changelog_text(manifest, diff))
    whole = manifest.model_copy(update={"files": _digests(draft)})
    write_json(draft / MANIFEST, whole.model_dump(mode="json"))
    write_text(draft / DIGEST, f"{sha256_of(draft / MANIFEST)}  {MANIFEST}\n")


def _followed_quality(made_of: Sources) -> Quality | None:
    """Return the quality of the release that the run kept samples of, where it is the parent."""
    followed, parent = made_of.run.parent, made_of.parent
    if followed is None or parent is None or followed.digest != parent.digest:
        return None
    return parent.manifest.quality


def _write_tables(
    made_of: Sources,
    store: RunStore,
    draft: Path,
    withheld: Mapping[str, Withheld],
    snippets: bool,
) -> dict[str, int]:
    """Write the arms and the tables beside them; return their rows."""
    shard, on_reject = shard_of(made_of.split), made_of.on_reject
    arms = write_arms(
        store,
        made_of.task,
        draft,
        split=made_of.split,
        on_reject=on_reject,
        without={
            "updated": withheld,
            "semantic": [each for each, why in withheld.items() if why == "review"],
        },
        snippets=snippets,
    )
    originals = write_originals(
        store,
        made_of.task,
        draft / "original" / shard,
        redistribute=made_of.licence.redistribute,
    )
    rows = sample_rows(store, on_reject=on_reject, withheld=withheld)
    samples = write_samples(draft / "samples" / shard, rows)
    return arms | {"original": originals, "samples": samples}


@dataclass(frozen=True)
class _Found:
    """What was measured on the way."""

    arms: dict[str, int]
    quality: Quality
    review: ReviewState
    withheld: Mapping[str, Withheld]


def _manifest(made_of: Sources, how: Manner, draft: Path, found: _Found) -> ReleaseManifest:
    """Return the manifest but for the digests."""
    run, shard = made_of.run, shard_of(made_of.split)
    said = portable(run.model_dump(mode="json"), made_of.base)
    shared = {key: said[key] for key in said.keys() & ReleaseManifest.model_fields.keys()}
    parent = made_of.parent
    findings = _findings(made_of)
    own = {
        "version": how.version,
        "created_at": how.moment.isoformat(timespec="seconds"),
        "split": made_of.split,
        "parent": parent and named_parent(parent, how.target),
        "ruled": tuple(made_of.config.models.rule_based_roles),
        "quality": found.quality,
        "findings": findings and portable(findings.model_dump(mode="json"), made_of.base),
        "arms": found.arms,
        "snippets": how.snippets,
        "still_stale": _still_stale(made_of, read_samples(draft / "samples" / shard)),
        "review": found.review,
        "annotation": said_of(made_of.files, run),
        "on_reject": made_of.on_reject,
        "licence": made_of.licence,
        "takedown": TakedownState(
            entries=len(made_of.takedown),
            sha256=made_of.takedown.fingerprint,
            withheld=sum(why == "takedown" for why in found.withheld.values()),
        ),
        "changelog": changes(
            parent,
            read_samples(draft / "samples" / shard),
            read_facts(draft / "provenance" / shard),
        ),
        "files": {},
    }
    return ReleaseManifest.model_validate(shared | own)


def _still_stale(made_of: Sources, samples: Iterator[SampleRow]) -> int | None:
    """Return how many samples should have been renewed and rest on old evidence all the same."""
    followed, parent = made_of.run.parent, made_of.parent
    same = followed and parent and followed.digest == parent.digest
    # without the release that the run follows nobody knows which targets were new
    before = parent.manifest.cutoffs if parent and same else made_of.run.cutoffs
    horizon = horizon_of(made_of.run, before)
    return None if horizon is None else sum(1 for _ in stale_samples(samples, horizon))


def _findings(made_of: Sources) -> Findings | None:
    """Return what the run's report says of targets, if there is one.

    Raises:
        RunCorrupt: it is damaged.
    """
    report = read_report(made_of.files)
    return findings_of(report, where=made_of.files.report_json) if report else None


def _digests(draft: Path) -> dict[str, FileDigest]:
    files = sorted(path for path in draft.rglob("*") if path.is_file())
    return {
        path.relative_to(draft).as_posix(): FileDigest(
            sha256=sha256_of(path), bytes=path.stat().st_size
        )
        for path in files
    }

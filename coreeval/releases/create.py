"""Makes a release of a run: selects its samples and ratings, and writes its files.

Names, texts and single ratings of raters are not published.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError

from coreeval.agents.kinds import item_kind
from coreeval.config import ModelsConfig
from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import GateNotMet, ReleaseError, RunError, RunLocked
from coreeval.evaluation.annotation.criteria import STUDIES, RatedText
from coreeval.evaluation.annotation.rating_scores import score_part
from coreeval.evaluation.annotation.rating_study import RatedArm
from coreeval.evaluation.annotation.ratings import Annotation
from coreeval.releases.comparable import release_comparable
from coreeval.releases.diff import compare_digests, count_changes, format_changelog
from coreeval.releases.findings import read_published_findings
from coreeval.releases.folders import VERSION_NAME, create_release_folder, refuse_existing_version
from coreeval.releases.gates.check import require_gates
from coreeval.releases.gates.limits import Gates
from coreeval.releases.release import (
    DIGEST,
    MANIFEST,
    TASK,
    Release,
    hash_file,
    read_facts,
    read_release,
    read_samples,
)
from coreeval.releases.release_card import release_card
from coreeval.releases.release_manifest import (
    FileDigest,
    PublishedRatings,
    ReleaseManifest,
    ReviewState,
    SampleRow,
    TakedownState,
    Withheld,
    count_left_out,
)
from coreeval.releases.review import build_review
from coreeval.releases.review.review import open_reviewed_releases
from coreeval.releases.sample_tables import (
    add_dataset_info,
    iter_sample_rows,
    write_originals,
    write_samples,
)
from coreeval.releases.sources import (
    Parent,
    ReleaseOptions,
    ReleaseSources,
    find_horizon,
    find_parent,
    is_accepted,
    iter_stale_samples,
    list_series,
    load_named_parent,
    refuse_earlier_date,
)
from coreeval.releases.withheld import find_withheld_samples
from coreeval.runs.arms import shard_name, write_arms
from coreeval.runs.copying import refuse_unfinished_takedown
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.runs.open import explain_unfinished
from coreeval.runs.quality import Findings, Quality, measure_quality
from coreeval.runs.sources import count_sources
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.cutoffs import TargetFreshness, count_by_target
from coreeval.tools.files import hold_lock, write_json, write_text
from coreeval.tools.local_paths import strip_paths
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import (
    HOME_VARIABLE,
    RunFiles,
    Workspace,
    command,
    leads_elsewhere,
)


def publish_ratings(
    made_of: ReleaseSources, store: RunStore, samples: Iterator[SampleRow]
) -> PublishedRatings | None:
    """Return the results of a run's ratings of published texts; None if none of these was rated.

    They have no names, texts or single ratings.

    Args:
        made_of: The run, with its task.
        store: The run's store.
        samples: The release's table of samples.

    Raises:
        ReleaseError: the run's annotation.json is damaged, or belongs to another run.
    """
    whole = read_ratings(made_of.files, made_of.run)
    if whole is None:
        return None
    texts = _find_rated_texts(whole, store, samples)
    omitted = whole.items - len(texts)
    found = score_part(whole, texts, STUDIES[made_of.task.kind]) if omitted else whole
    if found is None:
        return None
    shared = found.model_dump(include=PublishedRatings.model_fields.keys() - {"raters", "omitted"})
    counts = {"raters": len(found.raters), "omitted": omitted}
    return PublishedRatings.model_validate(shared | counts)


def _find_rated_texts(
    whole: Annotation, store: RunStore, samples: Iterator[SampleRow]
) -> dict[str, RatedText]:
    """Return the rated texts that a release contains unchanged, by item."""
    rated = {each.sample for each in whole.ratings}
    rows = {row.id: row for row in samples if row.id in rated}
    found = dict[str, RatedText]()
    for each in whole.ratings:
        row = rows.get(each.sample)
        if row is None or each.text_sha256 != _digests_by_arm(row)[each.arm]:
            continue
        sample, result = store.sample(each.sample), store.result(each.sample)
        assert result is not None
        arms = {"original": sample.fields, "semantic": result.semantic, "updated": result.updated}
        found[each.item] = RatedText(arms[each.arm] or {}, each.label)
    return found


def _digests_by_arm(row: SampleRow) -> Mapping[RatedArm, str | None]:
    """Return the digests of a sample's own texts in a release, without substitutes."""
    return {
        "original": None if row.semantic_status == "policy" else row.original_sha256,
        "semantic": row.semantic_sha256,
        "updated": row.updated_sha256 if is_accepted(row) else None,
    }


def read_ratings(files: RunFiles, run: Manifest) -> Annotation | None:
    """Return the human ratings of a run's texts; None if there are none.

    Raises:
        ReleaseError: the file is damaged, or belongs to another run.
    """
    try:
        content = read_bytes(files.annotation, most_bytes=MOST_DATA_BYTES)
        found = Annotation.model_validate_json(content)
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise _unusable_ratings(
            files.annotation, f"the file is damaged ({type(error).__name__})"
        ) from None
    if found.run != run.run:
        raise _unusable_ratings(files.annotation, f"the file is about the run {found.run}")
    return found


def _unusable_ratings(path: Path, problem: str) -> ReleaseError:
    return ReleaseError(
        f"the human ratings cannot be included in the release: {problem}",
        where=str(path),
        hint="score the sheets again (coreeval annotate score), or remove the file",
    )


def write_release(made_of: ReleaseSources, how: ReleaseOptions, draft: Path) -> None:
    """Write all files of a release into a folder, the manifest with their digests last.

    Raises:
        ReviewOpen: a person has yet to decide about samples.
        OSError: a file cannot be written.
    """
    with RunStore.open(made_of.files.require_store(), now=utc_now) as store:
        review = build_review(made_of.files, made_of.run, store)
        if how.require_review:
            review.require_decided()
        withheld = find_withheld_samples(store, made_of.takedown, review.rejected)
        arms = _write_tables(made_of, store, draft, withheld, how.snippets)
        quality = measure_quality(
            store, made_of.task, withheld=withheld, followed=_followed_quality(made_of)
        )
        table = draft / "samples" / shard_name(made_of.split)
        ratings = publish_ratings(made_of, store, read_samples(table))
        dated = (fresh for key, fresh in store.freshness() if key not in withheld)
        fresh = count_by_target(dated, made_of.run.cutoffs or ())
        findings = read_published_findings(made_of, store, withheld)
    state = review.state(required=how.require_review)
    found = _Measurements(arms, quality, fresh, findings, state, withheld, ratings)
    manifest = _manifest(made_of, how, draft, found)
    private = {"schedule", "telemetry"}
    config = strip_paths(made_of.config.model_dump(mode="json", exclude=private), *made_of.bases)
    write_text(draft / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    write_json(draft / TASK, made_of.task.model_dump(mode="json"))
    card = add_dataset_info(release_card(made_of.task, manifest), draft, made_of.split)
    write_text(draft / "README.md", card)
    before, made = made_of.parent, Release(path=draft, manifest=manifest)
    diff = compare_digests(release_comparable(before), release_comparable(made)) if before else None
    write_text(draft / "CHANGELOG.md", format_changelog(manifest, diff))
    whole = manifest.model_copy(update={"files": _digests(draft)})
    write_json(draft / MANIFEST, whole.model_dump(mode="json"))
    write_text(draft / DIGEST, f"{hash_file(draft / MANIFEST)}  {MANIFEST}\n")


def _followed_quality(made_of: ReleaseSources) -> Quality | None:
    """Return the quality of the release that the run kept samples from, if it is the parent."""
    followed, parent = made_of.run.parent, made_of.parent
    if followed is None or parent is None or followed.digest != parent.digest:
        return None
    return parent.manifest.quality


def _write_tables(
    made_of: ReleaseSources,
    store: RunStore,
    draft: Path,
    withheld: Mapping[str, Withheld],
    snippets: bool,
) -> dict[str, int]:
    """Write the arms and the other tables, and return their numbers of rows."""
    shard, on_reject = shard_name(made_of.split), made_of.on_reject
    redistribute = made_of.licence.redistribute
    arms = write_arms(
        store,
        made_of.task,
        draft,
        split=made_of.split,
        on_reject=on_reject,
        without=withheld,
        redistribute=redistribute,
        snippets=snippets,
        bases=made_of.bases,
    )
    originals = write_originals(
        store, made_of.task, draft / "original" / shard, redistribute=redistribute
    )
    rows = iter_sample_rows(
        store, on_reject=on_reject, withheld=withheld, redistribute=redistribute
    )
    samples = write_samples(draft / "samples" / shard, rows)
    return arms | {"original": originals, "samples": samples}


@dataclass(frozen=True)
class _Measurements:
    """The measurements for the manifest."""

    arms: dict[str, int]
    quality: Quality
    after_cutoff: tuple[TargetFreshness, ...]
    findings: Findings | None
    review: ReviewState
    withheld: Mapping[str, Withheld]
    ratings: PublishedRatings | None


_LOCAL = {"source": {"project"}}
"""What a run's manifest says about this machine alone."""


def _manifest(
    made_of: ReleaseSources, how: ReleaseOptions, draft: Path, found: _Measurements
) -> ReleaseManifest:
    """Return the manifest without the digests of the files."""
    run, shard = made_of.run, shard_name(made_of.split)
    run = run.model_copy(update={"after_cutoff": found.after_cutoff})
    said = strip_paths(run.model_dump(mode="json", exclude=_LOCAL), *made_of.bases)
    shared = {key: said[key] for key in said.keys() & ReleaseManifest.model_fields.keys()}
    parent = made_of.parent
    findings = found.findings
    own = {
        "version": how.version,
        "created_at": how.moment.isoformat(timespec="seconds"),
        "split": made_of.split,
        "parent": parent and load_named_parent(parent, how.target),
        "ruled": tuple(ModelsConfig.model_validate(run.models).rule_based_roles),
        "quality": found.quality,
        "findings": findings and strip_paths(findings.model_dump(mode="json"), *made_of.bases),
        "arms": found.arms,
        "snippets": how.snippets,
        "semantic_left_out": count_left_out(read_samples(draft / "samples" / shard)),
        "still_stale": _still_stale(made_of, read_samples(draft / "samples" / shard)),
        "review": found.review,
        "annotation": found.ratings,
        "on_reject": made_of.on_reject,
        "licence": made_of.licence,
        "sources": count_sources(
            (fact.source, fact.licence) for fact in read_facts(draft / "provenance" / shard)
        ),
        "takedown": TakedownState(
            entries=len(made_of.takedown),
            sha256=made_of.takedown.fingerprint,
            withheld=sum(why == "takedown" for why in found.withheld.values()),
        ),
        "changelog": count_changes(
            parent,
            read_samples(draft / "samples" / shard),
            read_facts(draft / "provenance" / shard),
        ),
        "files": {},
    }
    return ReleaseManifest.model_validate(shared | own)


def _still_stale(made_of: ReleaseSources, samples: Iterator[SampleRow]) -> int | None:
    """Count the samples that were due for renewal but still use old evidence."""
    followed, parent = made_of.run.parent, made_of.parent
    same = followed and parent and followed.digest == parent.digest
    # without the release that the run follows, it is not known which targets were new
    before = parent.manifest.cutoffs if parent and same else made_of.run.cutoffs
    horizon = find_horizon(made_of.run, before)
    return None if horizon is None else sum(1 for _ in iter_stale_samples(samples, horizon))


def _digests(draft: Path) -> dict[str, FileDigest]:
    files = sorted(path for path in draft.rglob("*") if path.is_file())
    return {
        path.relative_to(draft).as_posix(): FileDigest(
            sha256=hash_file(path), bytes=path.stat().st_size
        )
        for path in files
    }


_VERSION = re.compile(VERSION_NAME)


def make_release(
    run: Path,
    *,
    version: str,
    out: Path | None = None,
    parent: Parent = "latest",
    snippets: bool = True,
    takedown: Path | None = None,
    require_review: bool = False,
    gates: Gates | None = None,
    allow_empty_arm: bool = False,
    now: Clock = utc_now,
) -> Release:
    """Make an immutable release from a run's dataset.

    Args:
        run: Directory of a complete run.
        version: Name of the release.
        out: The release's directory; by default `releases/<name>/<version>` in the workspace.
        parent: The release to follow; `latest` is the one that the run was made from, or else the
            latest with the same name.
        snippets: Whether provenance quotes the news.
        takedown: A list that replaces the one in the run's config.
        require_review: Whether a person must first decide about all listed samples.
        gates: Limits that the release must meet before it gets its name.
        allow_empty_arm: Whether to make the release even if no sample has a new text.
        now: The clock that dates the release.

    Raises:
        RunStateError: there is no run.
        ReleaseError: the version exists, the run is unfinished, the parent is missing, or nothing
            but the run names the workspace to write into.
        ReviewOpen: a person has yet to decide about samples.
        GateNotMet: a limit is not met, or no sample has a new text; nothing is left behind.
        RunLocked: another process is using the run, or is making a release in the same folder.
        RunError: the release cannot be written; nothing is left under its name.
    """
    _check_version(version)
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    _refuse_unfinished(files, manifest)
    if not out:
        _refuse_elsewhere(files, manifest)
    shelf = Workspace(Path(manifest.workspace)).releases / manifest.name
    target = out.resolve() if out else shelf / version
    refuse_existing_version(target)
    folders = (shelf, target.parent)
    before = find_parent(parent, manifest.name, folders, followed=manifest.parent)
    moment = now()
    if before:
        refuse_earlier_date(before, moment)
    busy = RunLocked("another process is using this run", where=str(run), hint="wait until it ends")
    try:
        with hold_lock(files.lock, busy), create_release_folder(target) as draft:
            manifest = read_manifest(files.manifest)  # another command may have changed the run
            refuse_unfinished_takedown(files)
            _refuse_unfinished(files, manifest)
            made_of = ReleaseSources.of(files, manifest, before, takedown)
            _refuse_dropped_takedowns(made_of, folders)
            _refuse_private_texts(made_of, run)
            how = ReleaseOptions(version, moment, target, snippets, require_review)
            write_release(made_of, how, draft)
            if not allow_empty_arm:
                _refuse_empty(read_release(draft), run)
            if gates:
                require_gates(read_release(draft), gates)
            if require_review and not _is_elsewhere(files, manifest):
                open_reviewed_releases(manifest).add(hash_file(draft / MANIFEST))
    except OSError as error:
        raise RunError(
            f"cannot write the release: {error.strerror or error}",
            where=str(error.filename or target),
            hint="check the disk, then run the same command again; this attempt left nothing "
            "behind",
        ) from None
    return read_release(target)


def _refuse_empty(draft: Release, run: Path) -> None:
    """Refuse a release without new texts; substitutes for rejected samples do not count.

    Raises:
        GateNotMet: no sample has a new text.
    """
    if any(map(is_accepted, draft.samples())):
        return
    counts = draft.manifest.counts
    left_out = ", but all of these are withheld" if counts["accepted"] else ""
    raise GateNotMet(
        f"the release would contain no new text: {counts['accepted']} of {counts['total']} "
        f"samples are accepted{left_out}",
        where=str(run),
        hint=f"to see why: {command('status', run)}; to release it anyway: "
        f"{command('release', run)} --version {draft.manifest.version} --allow-empty-arm",
    )


def _check_version(version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise ReleaseError(
            f"{version!r} is not a valid version",
            hint="use up to 64 letters, digits and . _ + -, starting with a letter or digit, for "
            "example 2026.47",
        )


def _refuse_unfinished(files: RunFiles, manifest: Manifest) -> None:
    if why := explain_unfinished(files, manifest):
        raise ReleaseError(
            why,
            where=str(files.root),
            hint=f"finish it first: {command('resume', files.root)}",
        )


def _refuse_elsewhere(files: RunFiles, manifest: Manifest) -> None:
    """Refuse to write to a workspace that only the manifest names, because others may have made it.

    Raises:
        ReleaseError: the named workspace does not know the run.
    """
    if _is_elsewhere(files, manifest):
        raise ReleaseError(
            "only the run's manifest names this workspace; nothing in the workspace refers to "
            "the run",
            where=manifest.workspace,
            hint="set the release's folder with --out DIR, or the workspace with "
            f"{HOME_VARIABLE}=DIR",
        )


def _is_elsewhere(files: RunFiles, manifest: Manifest) -> bool:
    return leads_elsewhere(Path(manifest.workspace), files.root, manifest.payer)


def _refuse_private_texts(made_of: ReleaseSources, run: Path) -> None:
    """Refuse to publish documents with more than an excerpt of publishers' texts.

    Raises:
        ReleaseError: the run's config allows such documents.
    """
    private = made_of.config.knowledge.documents == "private"
    if private and item_kind(made_of.task).publishes_news:
        raise ReleaseError(
            "the run's documents contain publishers' texts, which a release must not redistribute",
            where=str(run),
            hint="refresh with knowledge.documents: excerpts (coreeval docs tasks)",
        )


def _refuse_dropped_takedowns(made_of: ReleaseSources, folders: Iterable[Path]) -> None:
    """Refuse to drop the takedown list of an earlier release: it applies to all later ones.

    A release without a parent begins a series of its own.

    Raises:
        ReleaseError: the parent or a release in the folders had a list, and this release has none.
    """
    parent = made_of.parent
    if parent is None or len(made_of.takedown):
        return
    earlier = (parent, *list_series(made_of.run.name, folders))
    if listed := next((each for each in earlier if each.manifest.takedown.entries), None):
        raise ReleaseError(
            f"release {listed.manifest.version} applied a takedown list of "
            f"{listed.manifest.takedown.entries} entries, but this release has no takedown list",
            where=str(listed.path),
            hint="pass the list with --takedown FILE, or set knowledge.takedown in the config",
        )

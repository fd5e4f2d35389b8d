"""Making a release of a run."""

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from coreeval.agents.takedown import NOTHING, Takedown, load_takedown
from coreeval.config import Config, load_config
from coreeval.errors import ReleaseError, RunError, RunLocked
from coreeval.releases.arms import OnReject, shard_of, write_arms
from coreeval.releases.changelog import changelog_text, changes
from coreeval.releases.draft import appearing, refuse_taken
from coreeval.releases.licences import licence_of
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.releases.originals import write_originals
from coreeval.releases.parents import Parent, find_parent, named_parent, refuse_before
from coreeval.releases.portable import portable
from coreeval.releases.quality import quality_of
from coreeval.releases.release import (
    DIGEST,
    MANIFEST,
    TASK,
    Release,
    read_facts,
    read_release,
    read_samples,
    sha256_of,
)
from coreeval.releases.release_card import release_card
from coreeval.releases.release_manifest import (
    FileDigest,
    Licence,
    Quality,
    ReleaseManifest,
    TakedownState,
    Withheld,
)
from coreeval.releases.sample_rows import sample_rows, write_samples
from coreeval.releases.withholding import withheld_samples
from coreeval.schema import Task
from coreeval.tasks import fingerprint, load_task
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import write_json, write_text
from coreeval.tools.locks import held
from coreeval.tools.stores.runs import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def make_release(
    run: Path,
    *,
    version: str,
    out: Path | None = None,
    parent: Parent = "latest",
    snippets: bool = True,
    takedown: Path | None = None,
    now: Clock = utc_now,
) -> Release:
    """Make an immutable release of a run's dataset.

    Args:
        run: Directory of a complete run.
        version: Name of the release.
        out: The release's directory; by default `releases/<name>/<version>` in the workspace.
        parent: The release that it follows; `latest` is the one that the run was made from, else
            the latest of its name.
        snippets: Whether provenance quotes the news.
        takedown: A list in place of the one that the run's config names.
        now: Dates the release.

    Raises:
        RunStateError: there is no run.
        ReleaseError: the version exists, the run is unfinished, the parent is not there.
        RunLocked: somebody works on the run, or makes a release beside this one.
        RunError: it cannot be written; nothing is left under its name.
    """
    _check_version(version)
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    _refuse_unfinished(files, manifest)
    shelf = Workspace(Path(manifest.workspace)).releases / manifest.name
    target = out.resolve() if out else shelf / version
    refuse_taken(target)
    folders = (shelf, target.parent)
    before = find_parent(parent, manifest.name, folders, followed=manifest.parent)
    moment = now()
    if before:
        refuse_before(before, moment)
    busy = RunLocked("another process works on this run", where=str(run), hint="wait for it")
    try:
        with held(files.lock, busy), appearing(target) as draft:
            made_of = _Sources.of(files, manifest, before, takedown)
            _refuse_forgotten(made_of)
            name = _Name(version, moment, target)
            _write(made_of, name, draft, snippets=snippets)
    except OSError as error:
        raise RunError(
            f"the release cannot be written: {error.strerror or error}",
            where=str(error.filename or target),
            hint="see to the disk, then give the same command again: nothing is left of this try",
        ) from None
    return read_release(target)


def _check_version(version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise ReleaseError(
            f"{version!r} cannot be a version",
            hint="up to 64 letters, digits and . _ + -, the first a letter or a digit: 2026.47",
        )


def _refuse_unfinished(files: RunFiles, manifest: Manifest) -> None:
    if manifest.status != "complete":
        raise ReleaseError(
            f"the run is unfinished ({manifest.status}): {manifest.counts['pending']} of "
            f"{manifest.counts['total']} samples are pending",
            where=str(files.root),
            hint=f"finish it first: {command('resume', files.root)}",
        )


@dataclass(frozen=True)
class _Name:
    """What tells a release from others of the same run."""

    version: str
    moment: datetime
    target: Path


@dataclass(frozen=True, kw_only=True)
class _Sources:
    """What a release is made of."""

    run: Manifest
    config: Config
    task: Task
    licence: Licence
    takedown: Takedown
    parent: Release | None
    store: Path

    @classmethod
    def of(
        cls, files: RunFiles, run: Manifest, parent: Release | None, takedown: Path | None
    ) -> "_Sources":
        config = load_config(files.config)
        listed = takedown or config.knowledge.takedown
        return cls(
            run=run,
            config=config,
            task=_task_of(run, config),
            licence=licence_of(config.dataset),
            takedown=load_takedown(Path(listed)) if listed else NOTHING,
            parent=parent,
            store=files.require_store(),
        )

    @property
    def split(self) -> str:
        return self.config.dataset.split

    @property
    def on_reject(self) -> OnReject:
        """What stands in for rejected samples: no originals that may not be passed on."""
        asked = self.config.run.on_reject
        return "drop" if asked == "original" and not self.licence.redistribute else asked

    @property
    def base(self) -> Path:
        """The folder of the config, from which published paths start."""
        return Path(self.run.source.path).parent


def _task_of(run: Manifest, config: Config) -> Task:
    task = load_task(config.task, config.dataset.target)
    if fingerprint(task) != run.fingerprints.task:
        raise ReleaseError(
            "the task has changed since the run",
            where=config.task,
            hint="put the task's file back as it was, or refresh with the new one",
        )
    return task


def _refuse_forgotten(made_of: _Sources) -> None:
    """Refuse to forget a list that the parent respected: it holds for every later release.

    Raises:
        ReleaseError: there is none now.
    """
    parent = made_of.parent
    entries = parent.manifest.takedown.entries if parent else 0
    if parent and entries and not len(made_of.takedown):
        raise ReleaseError(
            f"the parent {parent.manifest.version} respected a takedown list of {entries} entries, "
            "and this release has none",
            where=str(parent.path),
            hint="name the list: --takedown FILE, or knowledge.takedown in the config",
        )


def _write(made_of: _Sources, name: _Name, draft: Path, *, snippets: bool) -> None:
    """Write all files of a release; its manifest, which has their digests, comes last."""
    with closing(RunStore.open(made_of.store, now=utc_now)) as store:
        withheld = withheld_samples(store, made_of.takedown)
        arms = _write_tables(made_of, store, draft, withheld, snippets)
        quality = quality_of(store, made_of.task, withheld=withheld)
    manifest = _manifest(made_of, name, draft, arms=arms, quality=quality, withheld=withheld)
    manifest = manifest.model_copy(update={"snippets": snippets})
    config = portable(made_of.config.model_dump(mode="json"), made_of.base)
    write_text(draft / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    write_json(draft / TASK, made_of.task.model_dump(mode="json"))
    write_text(draft / "README.md", release_card(made_of.task, manifest))
    changelog = changelog_text(manifest.name, manifest.version, made_of.parent, manifest.changelog)
    write_text(draft / "CHANGELOG.md", changelog)
    whole = manifest.model_copy(update={"files": _digests(draft)})
    write_json(draft / MANIFEST, whole.model_dump(mode="json"))
    write_text(draft / DIGEST, f"{sha256_of(draft / MANIFEST)}  {MANIFEST}\n")


def _write_tables(
    made_of: _Sources,
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


def _manifest(
    made_of: _Sources,
    name: _Name,
    draft: Path,
    *,
    arms: dict[str, int],
    quality: Quality,
    withheld: Mapping[str, Withheld],
) -> ReleaseManifest:
    """Return the manifest but for the digests."""
    run, shard = made_of.run, shard_of(made_of.split)
    said = portable(run.model_dump(mode="json"), made_of.base)
    shared = {key: said[key] for key in said.keys() & ReleaseManifest.model_fields.keys()}
    parent = made_of.parent
    own = {
        "version": name.version,
        "created_at": name.moment.isoformat(timespec="seconds"),
        "split": made_of.split,
        "parent": parent and named_parent(parent, name.target),
        "ruled": tuple(made_of.config.models.ruled),
        "quality": quality,
        "arms": arms,
        "on_reject": made_of.on_reject,
        "licence": made_of.licence,
        "takedown": TakedownState(
            entries=len(made_of.takedown),
            sha256=made_of.takedown.fingerprint,
            withheld=sum(why == "takedown" for why in withheld.values()),
        ),
        "changelog": changes(
            parent,
            read_samples(draft / "samples" / shard),
            read_facts(draft / "provenance" / shard),
        ),
        "files": {},
    }
    return ReleaseManifest.model_validate(shared | own)


def _digests(draft: Path) -> dict[str, FileDigest]:
    files = sorted(path for path in draft.rglob("*") if path.is_file())
    return {
        path.relative_to(draft).as_posix(): FileDigest(
            sha256=sha256_of(path), bytes=path.stat().st_size
        )
        for path in files
    }

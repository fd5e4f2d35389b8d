"""Making a release of a run."""

import re
from pathlib import Path

from coreeval.errors import GateNotMet, ReleaseError, RunError, RunLocked
from coreeval.releases.folders import VERSION_NAME, create_release_folder, refuse_existing_version
from coreeval.releases.gates.check import require_gates
from coreeval.releases.gates.limits import Gates
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.releases.release import Release, read_release
from coreeval.releases.sources import (
    Parent,
    ReleaseOptions,
    ReleaseSources,
    find_parent,
    refuse_earlier_date,
)
from coreeval.releases.staleness import is_accepted
from coreeval.releases.write import write_release
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import hold_lock
from coreeval.tools.workspace import (
    HOME_VARIABLE,
    RunFiles,
    Workspace,
    command,
    leads_elsewhere,
)

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
    """Make an immutable release of a run's dataset.

    Args:
        run: Directory of a complete run.
        version: Name of the release.
        out: The release's directory; by default `releases/<name>/<version>` in the workspace.
        parent: The release that it follows; `latest` is the one that the run was made from, else
            the latest of its name.
        snippets: Whether provenance quotes the news.
        takedown: A list in place of the one that the run's config names.
        require_review: Whether it waits until a person has decided about all listed samples.
        gates: Limits that it must keep before it has its name.
        allow_empty_arm: Whether it may be made although no sample has a new text.
        now: Dates the release.

    Raises:
        RunStateError: there is no run.
        ReleaseError: the version exists, the run is unfinished, the parent is not there, or only
            the run says which workspace it would be put into.
        ReviewOpen: it waits for a person.
        GateNotMet: it is beyond a limit, or no sample has a new text; nothing is left of it.
        RunLocked: somebody works on the run, or makes a release beside this one.
        RunError: it cannot be written; nothing is left under its name.
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
    busy = RunLocked("another process works on this run", where=str(run), hint="wait for it")
    try:
        with hold_lock(files.lock, busy), create_release_folder(target) as draft:
            made_of = ReleaseSources.of(files, manifest, before, takedown)
            _refuse_dropped_takedowns(made_of)
            how = ReleaseOptions(version, moment, target, snippets, require_review)
            write_release(made_of, how, draft)
            if not allow_empty_arm:
                _refuse_empty(read_release(draft), run)
            if gates:
                require_gates(read_release(draft), gates)
    except OSError as error:
        raise RunError(
            f"the release cannot be written: {error.strerror or error}",
            where=str(error.filename or target),
            hint="see to the disk, then give the same command again: nothing is left of this try",
        ) from None
    return read_release(target)


def _refuse_empty(draft: Release, run: Path) -> None:
    """Refuse a release without any new text: what stands in for rejected samples is not new.

    Raises:
        GateNotMet: it has none.
    """
    if any(map(is_accepted, draft.samples())):
        return
    counts, withheld = draft.manifest.counts, draft.manifest.takedown.withheld
    withheld += draft.manifest.review.rejected
    left_out = f", and {withheld} of them are left out" if counts["accepted"] else ""
    raise GateNotMet(
        "the release would have no new text: "
        f"{counts['accepted']} of {counts['total']} samples are accepted{left_out}",
        where=str(run),
        hint=f"see why: {command('status', run)}; to release it all the same: --allow-empty-arm",
    )


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


def _refuse_elsewhere(files: RunFiles, manifest: Manifest) -> None:
    """Refuse to write where only the manifest says: it may come from somebody else.

    Raises:
        ReleaseError: the workspace that it names does not know the run.
    """
    if leads_elsewhere(Path(manifest.workspace), files.root, manifest.payer):
        raise ReleaseError(
            "only the run's manifest says that this is its workspace, and nothing there knows it",
            where=manifest.workspace,
            hint="say where the release belongs: --out DIR, or the workspace by "
            f"{HOME_VARIABLE}=DIR",
        )


def _refuse_dropped_takedowns(made_of: ReleaseSources) -> None:
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

"""The directory of a run, of which somebody is taken out so that it can be resumed."""

from collections.abc import Iterator
from pathlib import Path

from coreeval.agents.name_finder import NameFinder
from coreeval.releases.arms import shard_of
from coreeval.releases.forgetting.caches import forget_places
from coreeval.releases.forgetting.documents import count_in
from coreeval.releases.forgetting.found import Found
from coreeval.releases.forgetting.run_rows import found_in, look, reopen_stages, take_out
from coreeval.releases.manifest import full_counts, read_manifest, write_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command

_ARMS = ("updated", "semantic", "control", "provenance")
_SHARD = shard_of("*")
"""Every file of an arm, whatever its split is called."""


def written_by(files: RunFiles) -> list[Path]:
    """Return what a run has written of its results: `resume` writes it again."""
    shards = (path for arm in _ARMS for path in sorted(files.dataset.glob(f"{arm}/{_SHARD}")))
    others = (files.dataset / "README.md", files.report_html, files.report_json, files.items)
    return [path for path in (*shards, *others) if path.is_file() and not path.is_symlink()]


def forget_run(files: RunFiles, finder: NameFinder, *, dry: bool) -> Iterator[Found]:
    """Take somebody out of a run's stores and results.

    Where its results are no more what they were, what was written of them is deleted and the run
    is one that was interrupted.

    Raises:
        RunError: a store cannot be used, is damaged, or another process uses it.
        RunStateError: the manifest is damaged.
    """
    passes = [each for each in (files, files.control) if each.store.exists()]
    named = {each: look(each.store, finder) for each in passes}
    written = written_by(files)
    naming = [path for path in written if count_in(path, finder)]
    affected = bool(naming) or any(each.unfinished for each in named.values())
    if affected and not dry:
        _interrupt(files)
        reopen_stages(files.store)
    for each, found in named.items():
        if not dry:
            take_out(each.store, found)
        yield from found_in(each.store, found)
        yield from forget_places(each.checkpoints, finder, found.gone, dry=dry)
    if not affected:
        return
    if not dry:
        _count_anew(files)
        for path in written:
            path.unlink(missing_ok=True)
    yield Found(
        kind="results of the run",
        path=files.root,
        count=len(written),
        action="deleted",
        to_do=command("resume", files.root),
    )


def _interrupt(files: RunFiles) -> None:
    if not files.manifest.exists():  # it was killed at its start
        return
    manifest = read_manifest(files.manifest)
    if manifest.status == "complete":
        write_manifest(files.manifest, manifest.model_copy(update={"status": "interrupted"}))


def _count_anew(files: RunFiles) -> None:
    """Let the manifest say how the samples stand now."""
    if not files.manifest.exists():
        return
    manifest, store = read_manifest(files.manifest), RunStore.open(files.store, now=utc_now)
    try:
        counts, bad = full_counts(store.total(), store.counts()), len(store.bad_rows())
    finally:
        store.close()
    write_manifest(files.manifest, manifest.model_copy(update={"counts": counts, "bad_rows": bad}))

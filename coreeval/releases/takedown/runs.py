"""Removes a person from a run's directory: from run.db and its results. The run stays resumable.

A sample whose original text names the person is removed from the run and replaced by a bad row, so
that the counts still add up. A sample whose new text or news names the person is open again, and
`resume` asks about it again. An open sample that was offered such news starts again, with a new
search; a failed one does so on `retry`. Other texts about samples are blanked. The calls of a
removed sample keep their cost, under a neutral id.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from coreeval.agents.name_finder import NameFinder
from coreeval.errors import CoreEvalError
from coreeval.releases.takedown.calls import (
    UNREADABLE_FILE,
    TextMatches,
    erase_checkpoints,
    open_database,
    report_copy,
)
from coreeval.releases.takedown.documents import DAMAGED, count_matches, report_unreadable
from coreeval.releases.takedown.run_rows import (
    RunMatches,
    erase_rows,
    find_matches,
    iter_found,
    reopen_stages,
)
from coreeval.runs.arms import ANY_SHARD
from coreeval.runs.manifest import Manifest, full_counts, read_original_manifest, write_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_triggers import RUN_SCHEMA
from coreeval.tools.workspace import RunFiles, command

_ARMS = ("updated", "semantic", "control", "provenance")
"""Pattern for the files of an arm in any split."""


_SCORED = ("membership", "exchangeability")
"""The detectors that keep the texts as token numbers."""


def list_results(files: RunFiles) -> list[Path]:
    """Return the result files of a run, which `resume` or the detector writes again."""
    shards = (path for arm in _ARMS for path in sorted(files.dataset.glob(f"{arm}/{ANY_SHARD}")))
    others = (files.dataset / "README.md", files.report_html, files.report_json, files.items)
    scores = (
        path for name in _SCORED for path in sorted(files.detector_folder(name).glob("*.jsonl"))
    )
    return [
        path for path in (*shards, *others, *scores) if path.is_file() and not path.is_symlink()
    ]


def erase_from_run(files: RunFiles, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    """Erase the names from a run's stores and results.

    If this changes the results, the result files are deleted and the run becomes an interrupted
    one. Damaged files are reported, and the others are still searched; if a store is damaged, only
    result files with a name are deleted, because the others cannot be made again before this is
    repeated with a restored store. If the manifest is damaged, the run becomes an interrupted one
    when this is repeated with a restored manifest.

    In a copy of a run in PostgreSQL, whose store only the original may change, only result files
    with a name are deleted, too, and the store is reported if it has the name.

    Raises:
        RunError: a store cannot be used now, or is in use by another process.
    """
    damaged, unread_manifest = dict[Path, Exception](), dict[Path, Exception]()
    manifest: Manifest | None = None  # also if the run was killed at its start
    with _noting(unread_manifest, files.manifest):
        manifest = read_original_manifest(files.manifest) if files.manifest.exists() else None
    named, copies = _find_in_stores(files, finder, damaged)
    naming, unread = _find_in_results(files, finder)
    affected = bool(naming) or any(each.unfinished for each in named.values())
    affected = affected or (files in named and _was_damaged(files.store, manifest))
    reopened = affected or (files in named and _has_no_stage(files.store))
    gone = naming if damaged or copies else list_results(files) if affected else []
    if reopened and not dry and manifest and manifest.status == "complete":
        manifest = manifest.model_copy(update={"status": "interrupted"})
        write_manifest(files.manifest, manifest)
    if affected and not dry:
        if files in named:
            reopen_stages(files.store)
        for path in gone:
            path.unlink(missing_ok=True)
    for each, found in (*named.items(), *copies.items()):
        yield from _erase_from_stores(each, found, finder, damaged, dry=dry)
    if reopened and not dry and manifest and files in named and files.store not in damaged:
        _update_counts(files, manifest)
    if affected:
        yield TextMatches(
            kind="results of the run",
            path=files.root,
            count=len(gone),
            action="deleted",
            to_do=_find_next_step(files, {*damaged, *unread_manifest, *copies}, manifest),
        )
    yield from (_report_manifest(*each) for each in unread_manifest.items())
    left = {path: error for path, error in unread.items() if path not in gone}
    yield from (report_unreadable(*each) for each in (damaged | left).items())


def _find_in_stores(
    files: RunFiles, finder: NameFinder, damaged: dict[Path, Exception]
) -> tuple[Mapping[RunFiles, RunMatches], Mapping[RunFiles, RunMatches]]:
    """Return the matches of each pass whose store can be read; note the damaged stores.

    The second part has the stores that can only be read, because this folder is a copy.
    """
    named, copies = dict[RunFiles, RunMatches](), dict[RunFiles, RunMatches]()
    for each in (files, files.control):
        if has_store(each.store):
            with _noting(damaged, each.store):
                found = find_matches(each.store, finder)
                (copies if found.original else named)[each] = found
    return named, copies


def _find_in_results(
    files: RunFiles, finder: NameFinder
) -> tuple[Sequence[Path], Mapping[Path, Exception]]:
    """Return the result files that name the person, and the errors of damaged ones."""
    naming, unread = list[Path](), dict[Path, Exception]()
    for path in list_results(files):
        with _noting(unread, path):
            if count_matches(path, finder):
                naming.append(path)
    return naming, unread


def _erase_from_stores(
    files: RunFiles,
    found: RunMatches,
    finder: NameFinder,
    damaged: dict[Path, Exception],
    *,
    dry: bool,
) -> Iterator[TextMatches]:
    """Erase the matches from the stores of one pass; note the damaged stores."""
    if found.original and found.in_rows:
        yield report_copy(files.store, found.original)
    elif not found.original:
        with _noting(damaged, files.store):
            if not dry:
                erase_rows(files.store, found)
            yield from iter_found(files.store, found)
    with _noting(damaged, files.checkpoints):
        yield from erase_checkpoints(files.checkpoints, finder, found.gone, dry=dry)


@contextmanager
def _noting(damaged: dict[Path, Exception], path: Path) -> Iterator[None]:
    """Note the error of a damaged file in the block, and go on after it."""
    try:
        yield
    except DAMAGED as error:
        damaged[path] = error


def list_searched(files: RunFiles) -> set[Path]:
    """Return the paths under which `erase_from_run` may report that a run is not searched."""
    passes = (files, files.control)
    stores = (path for each in passes for path in (each.store, each.checkpoints))
    return {files.root, files.manifest, *stores, *list_results(files)}


_REPEATED_NOTE = (
    "the run replays a cassette, which also contains the names and would restore them: delete the "
    "run and the cassette"
)


def _find_next_step(files: RunFiles, damaged: Collection[object], manifest: Manifest | None) -> str:
    """Return the command that makes the results again; empty if damage prevents that."""
    if manifest and manifest.cassette:
        return _REPEATED_NOTE
    return "" if damaged else command("resume", files.root)


def _report_manifest(path: Path, error: Exception) -> TextMatches:
    said = error.message if isinstance(error, CoreEvalError) else error
    return TextMatches(
        kind=UNREADABLE_FILE,
        path=path,
        count=1,
        action="reported",
        to_do=f"{said}; restore it from a backup, then run this command again, or delete the run",
    )


def _was_damaged(store: Path, manifest: Manifest | None) -> bool:
    """Return whether the store was damaged when a takedown deleted results of the run.

    The run has been an interrupted one since, but the restored store says that its report exists.
    """
    if manifest is None or manifest.status != "interrupted":
        return False
    with open_database(store, dry=True, known=RUN_SCHEMA.known) as database:
        query = "SELECT 1 FROM stages WHERE name = 'report'"
        return database.execute(query).fetchone() is not None


def _has_no_stage(store: Path) -> bool:
    """Return whether all stages of a run are open.

    Its manifest may still say that it is complete, if it was damaged when a takedown reopened the
    stages, and was then restored.
    """
    with open_database(store, dry=True, known=RUN_SCHEMA.known) as database:
        return database.execute("SELECT 1 FROM stages LIMIT 1").fetchone() is None


def _update_counts(files: RunFiles, manifest: Manifest) -> None:
    """Update the sample counts in the manifest."""
    with RunStore.open(files.store, now=utc_now) as store:
        counts, bad = full_counts(store.total(), store.counts()), len(store.bad_rows())
    write_manifest(files.manifest, manifest.model_copy(update={"counts": counts, "bad_rows": bad}))

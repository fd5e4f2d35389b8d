"""Where a person may be named: the stores, runs, releases and files below some folders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.errors import CoreEvalError, RunCorrupt, RunStateError, UsageError
from coreeval.releases.forgetting.caches import CACHE
from coreeval.releases.forgetting.run_folder import written_by
from coreeval.releases.release import MANIFEST
from coreeval.tools.gdelt.index.store_catalog import DATABASE
from coreeval.tools.stores.heartbeat import refuse_link
from coreeval.tools.workspace import RunFiles, Workspace

_CALLS = "calls.db"
_BESIDE = ("-wal", "-shm", "-journal")
_OF_THE_RUN = ("config.yaml", "manifest.json", "run.lock")
"""Files whose words decide what a run is: what they name is told, and the run would not be one."""


@dataclass
class Places:
    """What is there to look through."""

    calls: list[Path] = field(default_factory=list)
    runs: list[RunFiles] = field(default_factory=list)
    news: list[Path] = field(default_factory=list)
    caches: list[Path] = field(default_factory=list)
    releases: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    fixed: list[Path] = field(default_factory=list)
    """Files of which it is only told who stands in them."""
    refused: dict[Path, CoreEvalError] = field(default_factory=dict)
    """Runs and stores that are not opened, because a link in them leads elsewhere."""
    workspace: Path = field(default_factory=Path)
    given: list[Path] = field(default_factory=list)
    """The folders and files that the user named."""

    @property
    def number(self) -> int:
        """How many places there are."""
        folders = (*self.news, *self.caches, *self.releases)
        return len([*self.calls, *self.runs, *folders, *self.files, *self.fixed])

    def is_from(self, path: Path, benchmark: Path) -> bool:
        """Tell whether a file is of a benchmark that a run's config names.

        Nothing in the workspace is, nor what the user named, whatever the config says.
        """
        if path.is_relative_to(self.workspace) or not path.is_relative_to(benchmark):
            return False
        return not any(
            path.is_relative_to(given) and given.is_relative_to(benchmark) for given in self.given
        )


def places_in(workspace: Workspace, given: Sequence[Path], listed: Path) -> Places:
    """Find what is below a workspace and some further folders or files, but for takedown lists.

    Args:
        workspace: Whose stores and runs are looked through, and whose own list is not.
        given: Further folders or files.
        listed: The list that somebody is put on.

    Raises:
        UsageError: there is no such file or folder.
    """
    found = Places(workspace=workspace.root.resolve(), given=[path.resolve() for path in given])
    seen = set[Path]()
    for path in given:
        if not path.exists():
            raise UsageError("there is nothing here", where=str(path), hint="name what is there")
    for root in (workspace.root, *given):
        if root.exists():
            _walk(root.resolve(), found, seen)
    lists = {workspace.takedown.resolve(), listed.resolve()}
    found.files = [path for path in found.files if path not in lists]
    return found


def _walk(path: Path, found: Places, seen: set[Path]) -> None:
    """Sort a file, or a folder with all below it, into the places; links are not followed."""
    if path in seen:
        return
    seen.add(path)
    if path.is_symlink() or not path.is_dir():
        (_sort_link if path.is_symlink() else _sort_file)(path, found)
        return
    names = {each.name for each in path.iterdir()}
    if DATABASE in names:
        found.news.append(path)
    elif CACHE in names:
        found.caches.append(path)
    elif MANIFEST in names:
        found.releases.append(path)
    elif "run.db" in names:
        _sort_run(path, found, seen)
    else:
        for each in sorted(path.iterdir()):
            _walk(each, found, seen)


def _sort_link(path: Path, found: Places) -> None:
    """Leave a link alone, and report one in the place of a store."""
    if path.name == _CALLS:
        try:
            refuse_link(path)
        except RunCorrupt as error:
            found.refused[path] = error


def _sort_file(path: Path, found: Places) -> None:
    if path.name == _CALLS:
        found.calls.append(path)
    elif not path.name.endswith((".lock", *(f"{_CALLS}{end}" for end in _BESIDE))):
        found.files.append(path)


def _sort_run(path: Path, found: Places, seen: set[Path]) -> None:
    try:
        files = RunFiles(path)
    except RunStateError as error:
        found.refused[path] = error
        return
    found.runs.append(files)
    own = {file for each in (files, files.control) for file in _databases(each)}
    written = set(written_by(files))
    for path in sorted(files.root.rglob("*")):
        seen.add(path)
        if path.is_symlink() or not path.is_file() or path in own or path in written:
            continue
        (found.fixed if path.name in _OF_THE_RUN else found.files).append(path)


def _databases(files: RunFiles) -> Iterator[Path]:
    for path in (files.store, files.checkpoints):
        yield from (path, *(path.with_name(path.name + end) for end in _BESIDE))

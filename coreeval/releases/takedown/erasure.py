"""Removes a person from all places of a workspace, or only reports where it would do so.

The places are the stores, runs, releases and files below some folders.
"""

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from coreeval.agents.name_finder import NameFinder
from coreeval.errors import CoreEvalError, RunCorrupt, RunError, RunStateError, UsageError
from coreeval.releases.takedown.batch_folders import find_batch_files, list_locators, report_missing
from coreeval.releases.takedown.calls import (
    CACHE_DATABASE,
    UNREADABLE_FILE,
    ReportProgress,
    TextMatches,
    erase_cache_entries,
    erase_calls,
    open_database,
)
from coreeval.releases.takedown.documents import (
    DAMAGED,
    UNREADABLE,
    count_matches,
    erase_in_document,
    report_unreadable,
)
from coreeval.releases.takedown.names import add_names
from coreeval.releases.takedown.news_store import erase_news
from coreeval.releases.takedown.project_configs import (
    Claim,
    NamedFiles,
    Reach,
    find_named_files,
    has_catalog,
    list_beside,
    list_existing,
    report_unknown,
)
from coreeval.releases.takedown.runs import erase_from_run, list_results, list_searched
from coreeval.releases.takedown.scores import erase_scores, list_scores
from coreeval.runs.copying import mark_takedown, unmark_takedown
from coreeval.runs.open import lock_runs
from coreeval.tools.files import is_plain_file, iter_tree
from coreeval.tools.gdelt.index.store_catalog import DATABASE
from coreeval.tools.gdelt.own_files import find_own_entries
from coreeval.tools.json_cache import find_value_files
from coreeval.tools.outputs import DIGEST, MANIFEST
from coreeval.tools.stores.heartbeat import SIDE_FILES, refuse_special_file
from coreeval.tools.stores.places import marker_of
from coreeval.tools.workspace import RunFiles, Workspace, is_workspace

_CALL_DATABASE = "calls.db"
_CALL_MARKER = marker_of(Path(_CALL_DATABASE)).name
_RUN_STORES = ("run.db", marker_of(Path("run.db")).name)
_RELEASE = {MANIFEST, DIGEST}
"""The files that a release always has."""
_RUN_FILES = ("config.yaml", "task.yaml", "series.json", "manifest.json", "run.lock")
"""Files that define a run; names in them are only reported, because a change would break the
run."""


@dataclass
class Places:
    """The places to search."""

    calls: list[Path] = field(default_factory=list)
    runs: list[RunFiles] = field(default_factory=list)
    news: list[Path] = field(default_factory=list)
    caches: list[Path] = field(default_factory=list)
    releases: list[Path] = field(default_factory=list)
    scores: list[Path] = field(default_factory=list)
    """Folders with scores of texts, which contain the texts as token numbers."""
    files: list[Path] = field(default_factory=list)
    fixed: list[Path] = field(default_factory=list)
    """The files in which names are only reported."""
    batches: set[Path] = field(default_factory=set)
    """The files of batches, wherever they are."""
    away: list[Path] = field(default_factory=list)
    """Folders of batches that are missing or cannot be read."""
    refused: dict[Path, Exception] = field(default_factory=dict)
    """Runs and stores that are not opened because a link in them leads elsewhere, and folders that
    cannot be read."""
    workspace: Path = field(default_factory=Path)
    project: Path = field(default_factory=Path)
    """The folder that has the workspace, or a link to it."""
    given: list[Path] = field(default_factory=list)
    """The folders and files that the user named."""
    lists: set[Path] = field(default_factory=set)
    """The takedown lists of the workspace and of this command."""

    @property
    def number(self) -> int:
        """Return the number of places."""
        folders = (*self.news, *self.caches, *self.releases, *self.scores)
        return len([*self.calls, *self.runs, *folders, *self.files, *self.fixed])

    def list_made(self) -> set[Path]:
        """Return the runs and releases."""
        return {each.root for each in self.runs} | {*self.releases}


def find_places(workspace: Workspace, given: Sequence[Path], listed: Path) -> Places:
    """Find the places below a workspace and further folders or files.

    Args:
        workspace: The workspace whose stores and runs are searched; its own list is not.
        given: Further folders or files.
        listed: The takedown list that receives the names.

    Raises:
        UsageError: a given file or folder does not exist.
    """
    found = Places(
        workspace=workspace.root.resolve(),
        project=workspace.root.absolute().parent,
        given=[path.resolve() for path in given],
        lists={workspace.takedown.resolve(), listed.resolve()},
    )
    seen = set[Path]()
    if workspace.scores.is_dir() and not workspace.scores.is_symlink():
        found.scores.append(workspace.scores.resolve())
        seen.update(list_scores(workspace.scores.resolve()))
    for path in given:
        if not path.exists():
            raise UsageError(
                "nothing found here", where=str(path), hint="pass an existing file or folder"
            )
    for root in (workspace.root, *given):
        if root.exists():
            _walk(root.resolve(), found, seen)
    locators = list_locators(found.runs)
    for store in found.calls:
        root = workspace.root if store.parent == found.workspace else store.parent
        try:
            each = find_batch_files(Workspace(root), locators)
        except RunError as error:
            found.refused[store] = error
            continue
        found.files += [path for path in each.files if path not in seen]
        found.away += each.missing
        found.batches.update(each.files)
        seen.update(each.files)
    return found


def _walk(root: Path, found: Places, seen: set[Path]) -> None:
    """Sort a file, or a folder with its contents, into the places without following links.

    A folder may come from somebody else. So a store or release in it exempts nothing but its own
    files, and what cannot be read, or has too long a path, is reported. Folders may be nested
    however deeply.
    """
    waiting = [(root, found)]
    while waiting:
        path, places = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            inside = _sort(path, places, seen)
            if inside is not None:
                waiting += [(each, inside) for each in sorted(path.iterdir(), reverse=True)]
        except FileNotFoundError:  # another process has just deleted it
            continue
        except OSError as error:
            places.refused[path] = error


def _sort(path: Path, found: Places, seen: set[Path]) -> Places | None:
    """Sort a file or folder; return the places to sort a folder's contents into."""
    if path.is_symlink() or not path.is_dir():
        sort = _sort_link if path.is_symlink() else _sort_file
        sort(path, found)
        return None
    names = {each.name for each in path.iterdir() if each not in seen}
    if not names.isdisjoint((DATABASE, CACHE_DATABASE)):
        _sort_stores(path, found, seen)
    if not names.isdisjoint(_RUN_STORES):
        return _sort_run(path, found, seen)
    if names >= _RELEASE and path != found.workspace:
        return _sort_release(path, found)
    return found


def _sort_stores(folder: Path, found: Places, seen: set[Path]) -> None:
    """Sort the news store and the cache in a folder, if any; their own files are then seen."""
    if _is_store(folder / DATABASE, {"files", "segments"}):
        found.news.append(folder)
        seen.update(folder / name for name in (DATABASE, *_list_side_files(DATABASE)))
        seen.update(find_own_entries(folder))
    if _is_store(folder / CACHE_DATABASE, {"Cache"}):
        found.caches.append(folder)
        seen.update(folder / name for name in (CACHE_DATABASE, *_list_side_files(CACHE_DATABASE)))
        seen.update(folder / name for name in find_value_files(folder))


def _is_store(path: Path, tables: Set[str]) -> bool:
    """Return whether a file is a database with these tables, or cannot be read as one.

    Other programs use the same names for their files.
    """
    if not path.is_symlink() and not path.is_file():
        return False
    try:
        with open_database(path, dry=True, known=None) as database:
            listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {name for (name,) in listed} >= tables
    except RunError:  # reported when it is searched
        return True


def _list_side_files(database: str) -> list[str]:
    return [database + end for end in SIDE_FILES]


def _sort_release(folder: Path, found: Places) -> Places:
    """Sort a release, whose files are only reported; runs and stores in it are searched."""
    found.releases.append(folder)
    return replace(found, releases=[], scores=[], files=[], fixed=[], away=[])


def _sort_link(path: Path, found: Places) -> None:
    """Skip a link, but report one in the place of a store."""
    if path.name == _CALL_DATABASE:
        try:
            refuse_special_file(path)
        except RunCorrupt as error:
            found.refused[path] = error


def _sort_file(path: Path, found: Places) -> None:
    if path.name == _CALL_DATABASE:
        found.calls.append(path)
    elif path.name == _CALL_MARKER:
        found.calls.append(path.with_name(_CALL_DATABASE))
    elif path.name not in _list_side_files(_CALL_DATABASE) and not _is_lock(path):
        found.files.append(path)


def _is_lock(path: Path) -> bool:
    return (path.name == "lock" or path.name.endswith(".lock")) and path.stat().st_size == 0


def _sort_run(path: Path, found: Places, seen: set[Path]) -> Places | None:
    try:
        files = RunFiles(path)
    except RunStateError as error:
        found.refused[path] = error
        return None
    found.runs.append(files)
    seen.update(list_results(files))
    for each in (files, files.control):
        seen.update(_databases(each))
        fixed = {each.root / name for name in _RUN_FILES} - seen
        found.fixed += sorted(file for file in fixed if is_plain_file(each.root, file.name))
        seen |= fixed
    return found


def _databases(files: RunFiles) -> Iterator[Path]:
    yield marker_of(files.store)
    for path in (files.store, files.checkpoints):
        yield from (path, *map(path.with_name, _list_side_files(path.name)))


_RELEASE_NOTE = (
    "a published release is left unchanged: resume its run, make a new version with coreeval "
    "release, then withdraw this version everywhere"
)
LATE = "made meanwhile"
"""The kind for a run or release that appeared while names were erased."""
UNFINISHED = "another takedown"
"""The kind for a run from which an earlier takedown has not erased another person's name."""
_UNFINISHED_NOTE = (
    "an earlier takedown of another person was stopped: run it again; until then, no copy can be "
    "made of this run"
)
_LATE_NOTE = "it was not checked: run this command again once the other command has ended"
_NEWS_NOTE = (
    "a run's config names it as news, and it is left unchanged: name it as an argument to clean it"
)
_NAME_NOTE = (
    "you chose its name, or it has the name of your config: rename it (and the config, if it has "
    "the same name), or delete it"
)
_FILE_NOTE = "it defines the run: delete the run to remove the name"
_MOST_BYTES = 1 << 40
"""More bytes than any benchmark file has; a special file of the system may have no end."""
_Work = tuple[Path, Iterator[TextMatches]]


@dataclass(frozen=True)
class Erasure:
    """Removal of a person from all places below some folders.

    Args:
        workspace: The workspace whose stores and runs are searched.
        given: Further folders or files.
        finder: Finds the names.
        listed: The takedown list that receives the names.
        tell: Receives each place before it is searched.
    """

    workspace: Workspace
    given: Sequence[Path]
    finder: NameFinder
    listed: Path
    tell: ReportProgress

    def count_all(self) -> list[TextMatches]:
        """Return the changes that would be made.

        Raises:
            RunError: a store cannot be used now.
        """
        return list(_Search(self._find(), self.finder, self.tell).work(dry=True))

    def erase_all(self) -> list[TextMatches]:
        """Add the names to the list, erase them, and return what was done.

        Runs that began before the names were listed may contain them. So the places are found after
        that, and runs and releases that appear even later are reported.

        Call it again to continue after an interruption. A damaged place is reported, and the
        others are still processed; no copy can be made of a run with damaged stores or results.

        Raises:
            RunLocked: another process uses one of the runs, the call store or a news store.
            RunError: a store cannot be used now, as on a full disk.
        """
        with ExitStack() as stack:
            known = self._find()
            stack.enter_context(lock_runs(known.runs))  # rejected before anything is changed
            mark_takedown(known.runs, self.finder.names)  # before a copy can read the list
            add_names(self.listed, self.finder.names)
            places = self._find()
            stack.enter_context(lock_runs([each for each in places.runs if each not in known.runs]))
            mark_takedown(places.runs, self.finder.names)
            done = list(_Search(places, self.finder, self.tell).work(dry=False))
            runs = list(dict.fromkeys([*known.runs, *places.runs]))
            unread = {each.path for each in done if each.kind == UNREADABLE_FILE}
            whole = [each for each in runs if unread.isdisjoint(list_searched(each))]
            marked = unmark_takedown(whole, self.finder.names)
            late = self._find().list_made() - places.list_made()
        reported = [*((UNFINISHED, path, _UNFINISHED_NOTE) for path in marked),
                    *((LATE, path, _LATE_NOTE) for path in sorted(late))]  # fmt: skip
        return done + [
            TextMatches(kind=kind, path=path, count=1, action="reported", to_do=note)
            for kind, path, note in reported
        ]

    def _find(self) -> Places:
        return find_places(self.workspace, self.given, self.listed)


@dataclass(frozen=True)
class _Search:
    """One search of the places, or one erasure."""

    places: Places
    finder: NameFinder
    tell: ReportProgress

    def work(self, *, dry: bool) -> Iterator[TextMatches]:
        """Erase the names from all places, or only look, and yield what is found."""
        yield from (report_unreadable(*refused) for refused in self.places.refused.items())
        yield from map(report_missing, self.places.away)
        yield from report_unknown(self._named)
        left = self._named.left
        inputs = {path: left[path] for path in list_existing(left)}
        for path, found in (*self._taken(inputs, dry=dry), *self._unchanged_files(inputs)):
            self.tell(str(path))
            try:
                yield from found
            except DAMAGED as error:
                yield report_unreadable(path, error)
        yield from self._report_names()

    def _report_names(self) -> Iterator[TextMatches]:
        """Yield the folders, and unchanged files, whose own names contain the person's name."""
        changed = {*self.places.files}  # reported where they are searched
        found = dict[Path, None]()
        for root in (self.places.workspace, *self.places.given):
            paths = iter_tree(root) if root.is_dir() else ()
            for path in paths:
                if isinstance(path, Path) and self.finder.finds(path.name) and path not in changed:
                    found[path] = None
        for path in found:
            kind = "name of a folder" if path.is_dir() else "name of a file"
            yield TextMatches(kind=kind, path=path, count=1, action="reported", to_do=_NAME_NOTE)

    def _taken(self, inputs: Iterable[Path], *, dry: bool) -> Iterator[_Work]:
        """Yield the places to erase the names from, with the work on each; `inputs` are left."""
        places, finder = self.places, self.finder
        runs = {files.root: files for files in places.runs}
        named = (path for path in list_existing(self._named.news) if has_catalog(path))
        stores = dict.fromkeys((*places.news, *named))
        belongs = [self._is_list, *map(self._is_of, inputs)]
        files = [path for path in places.files if not any(each(path) for each in belongs)]
        yield from ((path, erase_calls(path, finder, dry=dry)) for path in places.calls)
        yield from ((path, erase_from_run(run, finder, dry=dry)) for path, run in runs.items())
        yield from ((path, erase_cache_entries(path, finder, dry=dry)) for path in places.caches)
        yield from ((path, erase_news(path, finder, dry=dry)) for path in stores)
        yield from ((path, erase_in_document(path, finder, dry=dry)) for path in files)
        yield from ((path, erase_scores(path, dry=dry)) for path in places.scores)

    def _unchanged_files(self, inputs: Mapping[Path, Claim]) -> Iterator[_Work]:
        """Yield the places that are only reported, with the search of each."""
        for path in self.places.fixed:
            yield path, self._report("settings of a run", path, _FILE_NOTE)
        for path in self.places.releases:
            yield path, self._report("release", path, _RELEASE_NOTE)
        for path, claim in inputs.items():
            belongs, is_given = self._is_of(path), path in self.places.given
            kind, note = claim.describe(is_project=is_given)
            for file in filter(belongs, self.places.files) if is_given else (path,):
                yield file, self._report(kind, file, note, belongs)
        for path in list_existing(self._named.news):
            if not has_catalog(path):
                yield path, self._report("files of news", path, _NEWS_NOTE, self._is_elsewhere)

    def _is_list(self, path: Path) -> bool:
        """Return whether a file is a takedown list, in which names stay."""
        is_named = path in self.places.lists or path in self._named.lists
        return is_named or (path.name == "takedown.txt" and is_workspace(path.parent))

    def _is_elsewhere(self, path: Path) -> bool:
        """Return whether a file is neither in the workspace nor given, so not searched yet."""
        return not any(map(path.is_relative_to, (self.places.workspace, *self.places.given)))

    def _is_of(self, source: Path) -> Callable[[Path], bool]:
        """Return whether files belong to a benchmark, or articles, that a config names.

        Files in the workspace, of runs and batches, or named by the user never do. A folder that is
        both the project and the source itself does not count as named by the user.
        """
        places = self.places
        around = self._named.around & {source}
        runs = {each.root for each in places.runs} - {source}
        inside = (each for each in ({*places.given} - around) | runs if each.is_relative_to(source))
        own = {places.workspace, *places.batches, *inside}
        return lambda path: path.is_relative_to(source) and own.isdisjoint((path, *path.parents))

    def _report(
        self, kind: str, path: Path, to_do: str, belongs: Callable[[Path], bool] = lambda _: True
    ) -> Iterator[TextMatches]:
        """Yield the number of matches in a file or folder that is left unchanged."""
        count = 0
        for file in _iter_files(path):
            if isinstance(file, OSError):
                yield report_unreadable(Path(file.filename or path), file)
            elif belongs(file) and not self._is_list(file):
                try:
                    count += count_matches(file, self.finder)
                except (*UNREADABLE, CoreEvalError) as error:
                    yield report_unreadable(file, error)
        if count:
            yield TextMatches(kind=kind, path=path, count=count, action="reported", to_do=to_do)

    @cached_property
    def _named(self) -> NamedFiles:
        """The files that configs name: those of the runs, beside the workspace, or given."""
        places = self.places
        folders = (places.project, *places.given)
        inside = (path for path in places.files if path.suffix in (".yaml", ".yml"))
        files = (*chain(*map(list_beside, folders)), *inside)
        return find_named_files(
            places.runs, files, Reach(places.workspace, places.project, places.given)
        )


def _iter_files(path: Path) -> Iterator[Path | OSError]:
    """Yield the nonempty files without following links, or the error of an unreadable folder."""
    for each in iter_tree(path):
        if isinstance(each, OSError):
            yield each
            continue
        try:
            found = each.lstat()
        except FileNotFoundError:  # another process has just deleted it
            continue
        if stat.S_ISREG(found.st_mode) and 0 < found.st_size < _MOST_BYTES:
            yield each

"""Taking somebody out of all places, or looking where that would be done."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from coreeval.agents.name_finder import NameFinder
from coreeval.config import Config, load_config
from coreeval.errors import CoreEvalError, RunCorrupt, UsageError
from coreeval.releases.forgetting.caches import forget_cached
from coreeval.releases.forgetting.call_store import forget_calls
from coreeval.releases.forgetting.documents import (
    MALFORMED,
    UNREADABLE,
    count_in,
    forget_in_document,
    unreadable,
)
from coreeval.releases.forgetting.found import Found, Tell
from coreeval.releases.forgetting.listed import put_on_list
from coreeval.releases.forgetting.news_store import forget_news
from coreeval.releases.forgetting.places import Places
from coreeval.releases.forgetting.run_folder import forget_run
from coreeval.releases.references import at_rest
from coreeval.tools.gdelt.index.store_catalog import DATABASE

_OF_A_RELEASE = (
    "it is published and stays as it is: resume its run, make a new version with coreeval release, "
    "then withdraw this one wherever it is"
)
_OF_A_BENCHMARK = "it is yours and stays as it is: while it names them, new runs read it again"
_OF_A_FILE = "it decides what the run is: delete the run if the name must go"
_ENDLESS = 1 << 40
"""Bytes of which no file of a benchmark is: what a system shows as one may have no end."""
_DAMAGED = (*MALFORMED, RunCorrupt, UsageError)
"""What work on a damaged place raises. A full disk or another process raises something else: there
the same command goes on later."""
_Work = tuple[Path, Iterator[Found]]


@dataclass(frozen=True)
class Forgetting:
    """One look through the places, or one taking out.

    Args:
        places: Where to look.
        finder: Whom for.
        listed: The takedown list that they are put on.
        tell: Told of each place before it is looked at.
    """

    places: Places
    finder: NameFinder
    listed: Path
    tell: Tell

    def look(self) -> list[Found]:
        """Return what would be done, and do nothing.

        Raises:
            RunError: a store cannot be used now.
        """
        return list(self._work(dry=True))

    def take_out(self) -> list[Found]:
        """Put them on the list, take them out, and return what was done.

        What was stopped goes on when it is called again. A damaged place is reported, and the
        others are worked on.

        Raises:
            RunLocked: somebody works on one of the runs, with the call store or a news store.
            RunError: a store cannot be used now, as on a full disk.
        """
        with ExitStack() as stack:
            stack.enter_context(at_rest(self.places.runs))
            put_on_list(self.listed, self.finder.names)
            return list(self._work(dry=False))

    def _work(self, *, dry: bool) -> Iterator[Found]:
        yield from (unreadable(*refused) for refused in self.places.refused.items())
        benchmarks = list(self._benchmarks())
        for path, found in (*self._taken(benchmarks, dry=dry), *self._kept(benchmarks)):
            self.tell(str(path))
            try:
                yield from found
            except _DAMAGED as error:
                yield unreadable(path, error)

    def _taken(self, benchmarks: Sequence[Path], *, dry: bool) -> Iterator[_Work]:
        """Yield the places of which they are taken out, with the work on each."""
        places, finder = self.places, self.finder
        runs = {files.root: files for files in places.runs}
        stores = dict.fromkeys((*places.news, *self._stores()))
        files = [path for path in places.files
                 if not any(places.is_from(path, each) for each in benchmarks)]  # fmt: skip
        yield from ((path, forget_calls(path, finder, dry=dry)) for path in places.calls)
        yield from ((path, forget_run(run, finder, dry=dry)) for path, run in runs.items())
        yield from ((path, forget_cached(path, finder, dry=dry)) for path in places.caches)
        yield from ((path, forget_news(path, finder, dry=dry)) for path in stores)
        yield from ((path, forget_in_document(path, finder, dry=dry)) for path in files)

    def _kept(self, benchmarks: Sequence[Path]) -> Iterator[_Work]:
        """Yield the places of which it is only told, with the look into each."""
        for path in self.places.fixed:
            yield path, self._reported("settings of a run", path, _OF_A_FILE)
        for path in self.places.releases:
            yield path, self._reported("release", path, _OF_A_RELEASE)
        for path in benchmarks:
            yield path, self._reported("benchmark", path, _OF_A_BENCHMARK, self._is_of(path))

    def _is_of(self, benchmark: Path) -> Callable[[Path], bool]:
        return lambda path: self.places.is_from(path, benchmark)

    def _reported(
        self, kind: str, path: Path, to_do: str, belongs: Callable[[Path], bool] = lambda _: True
    ) -> Iterator[Found]:
        """Yield how much of a file or folder names them, of which nothing is taken."""
        count = 0
        for file in _files_in(path):
            if isinstance(file, OSError):
                yield unreadable(Path(file.filename or path), file)
            elif belongs(file):
                try:
                    count += count_in(file, self.finder)
                except (*UNREADABLE, OSError, CoreEvalError) as error:
                    yield unreadable(file, error)
        if count:
            yield Found(kind=kind, path=path, count=count, action="reported", to_do=to_do)

    def _benchmarks(self) -> Iterator[Path]:
        """Yield the user's own files from which the runs were made, each once."""
        named = {Path(config.dataset.path).resolve() for config in self._configs()}
        yield from sorted(path for path in named if path.exists())

    def _stores(self) -> Iterator[Path]:
        """Yield the news stores that the runs' configs name."""
        named = {Path(each.knowledge.path) for each in self._configs() if each.knowledge.path}
        yield from sorted(path.resolve() for path in named if (path / DATABASE).exists())

    def _configs(self) -> Iterator[Config]:
        for files in self.places.runs:
            with suppress(CoreEvalError):  # one that cannot be read is among the fixed files
                yield load_config(files.config)


def _files_in(path: Path) -> Iterator[Path | OSError]:
    """Yield the files with something in them, no link followed; or why a folder cannot be read."""
    if path.is_file():
        yield path
        return
    errors = list[OSError]()
    for folder, _, names in os.walk(path, onerror=errors.append):
        for file in (Path(folder, name) for name in sorted(names)):
            try:
                found = file.lstat()
            except FileNotFoundError:  # another process has just deleted it
                continue
            except OSError as error:
                errors.append(error)
                continue
            if stat.S_ISREG(found.st_mode) and 0 < found.st_size < _ENDLESS:
                yield file
    yield from errors

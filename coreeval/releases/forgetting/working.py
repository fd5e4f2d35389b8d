"""Taking somebody out of all places, or looking where that would be done."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import Config, load_config
from coreeval.errors import CoreEvalError
from coreeval.releases.forgetting.caches import forget_cached
from coreeval.releases.forgetting.call_store import forget_calls
from coreeval.releases.forgetting.documents import count_in, forget_in_document
from coreeval.releases.forgetting.found import Found, Tell
from coreeval.releases.forgetting.listed import put_on_list
from coreeval.releases.forgetting.names import Finder
from coreeval.releases.forgetting.news_store import forget_news
from coreeval.releases.forgetting.places import Places
from coreeval.releases.forgetting.run_folder import forget_run
from coreeval.releases.references import at_rest
from coreeval.tools.gdelt.parts.catalogue import DATABASE

_OF_A_RELEASE = (
    "it is published and stays as it is: resume its run, make a new version with coreeval release, "
    "then withdraw this one wherever it is"
)
_OF_A_BENCHMARK = "it is yours and stays as it is: while it names them, new runs read it again"
_OF_A_FILE = "it decides what the run is: delete the run if the name must go"


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
    finder: Finder
    listed: Path
    tell: Tell

    def look(self) -> list[Found]:
        """Return what would be done, and do nothing.

        Raises:
            RunError: a store cannot be used or is damaged.
        """
        return list(self._work(dry=True))

    def take_out(self) -> list[Found]:
        """Put them on the list, take them out, and return what was done.

        What was stopped goes on when it is called again.

        Raises:
            RunLocked: somebody works on one of the runs, with the call store or a news store.
            RunError: a store cannot be used or is damaged.
        """
        with ExitStack() as stack:
            stack.enter_context(at_rest(self.places.runs))
            put_on_list(self.listed, self.finder.names)
            return list(self._work(dry=False))

    def _work(self, *, dry: bool) -> Iterator[Found]:
        places, finder = self.places, self.finder
        benchmarks = list(self._benchmarks())
        for path in places.calls:
            yield from self._told(path, forget_calls(path, finder, dry=dry))
        for files in places.runs:
            yield from self._told(files.root, forget_run(files, finder, dry=dry))
        for folder in places.caches:
            yield from self._told(folder, forget_cached(folder, finder, dry=dry))
        for store in dict.fromkeys((*places.news, *self._stores())):
            yield from self._told(store, forget_news(store, finder, dry=dry))
        for path in places.files:
            if not _is_below(path, benchmarks):
                yield from self._told(path, forget_in_document(path, finder, dry=dry))
        for path in places.fixed:
            yield from self._told(path, self._reported("settings of a run", [path], _OF_A_FILE))
        for folder in places.releases:
            told = self._reported("release", _files_in(folder), _OF_A_RELEASE, folder)
            yield from self._told(folder, told)
        for path in benchmarks:
            told = self._reported("benchmark", _files_in(path), _OF_A_BENCHMARK, path)
            yield from self._told(path, told)

    def _told(self, path: Path, found: Iterator[Found]) -> Iterator[Found]:
        self.tell(str(path))
        yield from found

    def _reported(
        self, kind: str, files: Sequence[Path], to_do: str, place: Path | None = None
    ) -> Iterator[Found]:
        """Yield how much of some files names them, which nothing is done about."""
        count = sum(count_in(path, self.finder) for path in files)
        if count:
            where = place or files[0]
            yield Found(kind=kind, path=where, count=count, action="reported", to_do=to_do)

    def _benchmarks(self) -> Iterator[Path]:
        """Yield the user's own files from which the runs were made, each once."""
        named = {Path(config.dataset.path) for config in self._configs()}
        yield from sorted(path for path in named if path.exists())

    def _stores(self) -> Iterator[Path]:
        """Yield the news stores that the runs' configs name."""
        named = {Path(each.knowledge.path) for each in self._configs() if each.knowledge.path}
        yield from sorted(path.resolve() for path in named if (path / DATABASE).exists())

    def _configs(self) -> Iterator[Config]:
        for files in self.places.runs:
            with suppress(CoreEvalError):  # one that cannot be read is among the fixed files
                yield load_config(files.config)


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == each or path.is_relative_to(each.resolve()) for each in folders)


def _files_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [each for each in sorted(path.rglob("*")) if each.is_file()]

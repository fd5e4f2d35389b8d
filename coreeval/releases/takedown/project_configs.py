"""The user's own files that the configs of runs and projects name: benchmarks, articles and news.

Only the keys of these files are read, so that a config of another version, with a mistake in
another key or not for a refresh protects and names them, too.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coreeval.config.load import read_mapping
from coreeval.config.user_files import read_text
from coreeval.errors import ConfigError, RunStateError
from coreeval.paths import expand_home
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.runs.own_config import locate_recorded
from coreeval.tools.gdelt.index.store_catalog import DATABASE
from coreeval.tools.terminal import brief, one_line
from coreeval.tools.workspace import RunFiles

BENCHMARK = "benchmark"
ARTICLES = "articles"
LIST = "takedown list"
DOUBTED = "file of a config elsewhere"
"""The kind of a benchmark, articles or list that the user must confirm."""
_LEFT_NOTES = {
    BENCHMARK: "it is your file and is left unchanged: new runs will read the name again",
    ARTICLES: "it is your file and is left unchanged: texts that name someone on the list are not "
    "used",
    LIST: "it is left unchanged, so that the name stays on this list",
}
_PROJECT_NOTE = (
    "your project is in the same folder as its benchmark or articles, so the file is left "
    "unchanged: to erase the name from it, name it, or a folder below this one, as an argument"
)
_UNREAD_NOTE = (
    "so the benchmark and the news that this config names may be unknown: correct it or restore it "
    "from a backup, then run this command again; of a run, you can instead name the news store as "
    "an argument and then delete the run"
)
_MISSING_NOTE = (
    "a run's config names this folder of news, which is missing: if it was moved, run this command "
    "again with its new place as an argument"
)


@dataclass(frozen=True)
class Reach:
    """The places in which a config can name files for a takedown."""

    workspace: Path
    project: Path
    """The folder that has the workspace, or a link to it."""
    given: Sequence[Path]
    """The folders and files that the user named."""

    def is_own(self, config: Path) -> bool:
        """Return whether a config is beside the workspace or in it, so may name any place."""
        beside = config.parent.resolve() == self.project.resolve()
        return beside or config.is_relative_to(self.workspace)

    def has(self, config: Path, place: Path) -> bool:
        """Return whether a config may name a place; others must be given, and so must the place."""
        return self.is_own(config) or all(
            any(map(each.is_relative_to, self.given)) for each in (config, place)
        )


@dataclass(frozen=True)
class Claim:
    """What a config says about a place, which may be missing."""

    kind: str
    place: Path
    config: Path
    trust: int
    """0 for a config beside the workspace or in it, 1 for a place in the config's own folder, and
    otherwise 2: a config that somebody else made may then keep your files from being changed."""
    is_around: bool
    """Whether the place is a folder that has the config, so is a project, too."""

    def describe(self, *, is_project: bool = False) -> tuple[str, str]:
        """Return the kind to report for files that are left, and what the user can do."""
        config = one_line(str(brief(self.config)))
        if self.trust > 1:
            return DOUBTED, (
                f"{config} names it as {self.kind}, so it is left unchanged, although this config "
                "is neither beside the workspace nor of a run in it, and the file is not in the "
                "config's folder: if the config, or its run, is not yours, remove it and run this "
                "command again"
            )
        kind, note = self.kind, _LEFT_NOTES[self.kind]
        if is_project:
            kind, note = "file of a project", _PROJECT_NOTE
        return kind, f"{note} ({config} names it as {self.kind})"


@dataclass(frozen=True)
class NamedFiles:
    """The files and folders that configs name, which may be missing, with links resolved."""

    around: set[Path]
    """The folders of projects."""
    left: dict[Path, Claim] = field(default_factory=dict)
    """The benchmarks, articles and other takedown lists, which are not changed."""
    lists: set[Path] = field(default_factory=set)
    """The takedown lists that configs beside the workspace or in it name."""
    news: set[Path] = field(default_factory=set)
    """The places of news that runs name: stores, or files from which stores are made."""
    unread: dict[Path, ConfigError] = field(default_factory=dict)
    """Configs that are missing or damaged, so that files that they name may not be known."""


def find_named_files(runs: Sequence[RunFiles], files: Iterable[Path], reach: Reach) -> NamedFiles:
    """Return the files that the configs of runs, and those among some YAML files, name.

    A benchmark is the user's own, even if no run was made from a config yet, or its run is
    elsewhere.
    """
    search = _Search(reach, NamedFiles({reach.project.resolve()}))
    of_runs = {each.config for each in runs}
    for file in dict.fromkeys(each for each in files if each not in of_runs):
        search.add_from_project(file)
    for each in runs:
        search.add_from_run(each)
    return search.choose()


def list_beside(folder: Path) -> list[Path]:
    """Return the YAML files in a folder."""
    return sorted(folder.glob("*.y*ml"))


def list_existing(paths: Iterable[Path]) -> list[Path]:
    """Return the paths at which there is something."""
    return sorted(path for path in paths if os.access(path, os.F_OK))


def has_catalog(news: Path) -> bool:
    """Return whether a place of news is a store, not files from which a store is made."""
    return os.access(news / DATABASE, os.F_OK)


def report_unknown(named: NamedFiles) -> Iterator[TextMatches]:
    """Yield a report on each config that cannot be read, and on each missing place of news."""
    notes = {path: f"{error.message}, {_UNREAD_NOTE}" for path, error in named.unread.items()}
    missing = named.news - {*list_existing(named.news)}
    notes |= dict.fromkeys(sorted(missing), _MISSING_NOTE)
    for path, note in notes.items():
        yield TextMatches(kind=UNREADABLE_FILE, path=path, count=1, action="reported", to_do=note)


@dataclass(frozen=True)
class _Search:
    """The search for the files that configs name."""

    reach: Reach
    found: NamedFiles
    claims: list[Claim] = field(default_factory=list)

    def choose(self) -> NamedFiles:
        """Return what was found; of the claims on a place, the most trusted one counts."""
        for each in sorted(self.claims, key=lambda claim: claim.trust):
            is_around = each.is_around and each.place in self.reach.given
            if each.place not in self.found.left or (
                is_around and each.place not in self.found.around
            ):
                self.found.left[each.place] = each
            if is_around:
                self.found.around.add(each.place)
        return self.found

    def add_from_project(self, file: Path) -> None:
        """Add the files that a YAML file names, if it is a config."""
        text = _read_plain_file(file)
        if "dataset" not in text:
            return
        try:
            raw = read_mapping(file)
            if _is_config(raw):
                self._add(raw, file, beside=file)
        except ConfigError as error:
            if {"name", "dataset"} <= {line.partition(":")[0] for line in text.splitlines()}:
                self.found.unread[file] = error

    def add_from_run(self, files: RunFiles) -> None:
        """Add the present files that a run's own config names, and its config file by now."""
        manifest: Manifest | None = None
        with suppress(RunStateError):  # reported when the run is searched
            manifest = read_manifest(files.manifest)
        at = locate_recorded(manifest.source) if manifest else str
        try:
            raw = read_mapping(files.config)
            self._add(raw, files.config, at)
            self._add_news(files, _list_texts(_list_keys(raw, "knowledge").get("path")), at)
            if any("path" not in _list_keys(raw, key) for key in ("dataset", "knowledge")):
                raise ConfigError(
                    "keys of the benchmark and the news are missing", where=str(files.config)
                )
        except ConfigError as error:
            self.found.unread[files.config] = error
            if manifest and manifest.knowledge.path:
                self._add_news(files, [manifest.knowledge.path], at)
        if manifest and manifest.source.exists:
            with suppress(ConfigError):  # the run's own config has all that it used
                raw, now = read_mapping(manifest.source.file), manifest.source
                if _is_config(raw):
                    self._add(raw, now.file, now.locate, beside=files.config)

    def _add(
        self,
        raw: Mapping[str, Any],
        file: Path,
        at: Callable[[str], str] = str,
        *,
        beside: Path | None = None,
    ) -> None:
        """Add what a config says.

        Args:
            raw: Its keys.
            file: The config.
            at: Returns the present path of a file that it names.
            beside: The file whose place decides what the config may name; None for a run's own
                config, which may be in a benchmark that is not its project.
        """
        news = _list_keys(raw, "knowledge")
        articles = _list_keys(news, "articles")
        named = (
            (BENCHMARK, _list_keys(raw, "dataset").get("path")),
            (ARTICLES, articles.get("files")),
            (ARTICLES, articles.get("ccnews")),
            (LIST, news.get("takedown")),
        )
        judged = beside or file
        is_own = self.reach.is_own(judged)
        for kind, said in named:
            for place in (_resolve(file.parent, path, at) for path in _list_texts(said)):
                if kind == LIST and is_own:
                    self.found.lists.add(place)
                elif self.reach.has(judged, place):
                    around = beside is not None and file.resolve().is_relative_to(place)
                    trust = 0 if is_own else 1 if place.is_relative_to(judged.parent) else 2
                    self.claims.append(Claim(kind, place, file, trust, around))

    def _add_news(self, files: RunFiles, paths: Sequence[str], at: Callable[[str], str]) -> None:
        """Add a run's news; of a run elsewhere, no folder that is neither a store nor given."""
        for place in (_resolve(files.root, path, at) for path in paths):
            is_other = os.access(place, os.F_OK) and not has_catalog(place)
            if self.reach.has(files.config, place) or not is_other:
                self.found.news.add(place)


def _is_config(raw: Mapping[str, Any]) -> bool:
    """Return whether a mapping looks like a config; other programs have a `dataset`, too."""
    return "name" in raw and {"format", "path"} <= _list_keys(raw, "dataset").keys()


def _list_keys(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = values.get(key)
    return inner if isinstance(inner, dict) else {}


def _list_texts(value: object) -> Sequence[str]:
    return [
        each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)
    ]


def _resolve(folder: Path, path: str, at: Callable[[str], str]) -> Path:
    try:
        return Path(os.path.realpath(folder / expand_home(at(path))))
    except ValueError:
        raise ConfigError(f"no file can have the path {path!r}", where=str(folder)) from None


def _read_plain_file(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read, as then no run can begin from it."""
    try:
        return read_text(file) if file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return ""

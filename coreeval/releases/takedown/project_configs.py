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
from coreeval.tools.workspace import RunFiles

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
class NamedFiles:
    """The files and folders that configs name, which may be missing, with links resolved."""

    benchmarks: set[Path] = field(default_factory=set)
    articles: set[Path] = field(default_factory=set)
    news: set[Path] = field(default_factory=set)
    """The places of news that runs name: stores, or files from which stores are made."""
    around: set[Path] = field(default_factory=set)
    """The benchmarks and articles that are folders with the project's config that names them."""
    unread: dict[Path, ConfigError] = field(default_factory=dict)
    """Configs that are missing or damaged, so that files that they name may not be known."""


def find_named_files(runs: Iterable[RunFiles], files: Iterable[Path]) -> NamedFiles:
    """Return the files that the configs of runs, and those among some YAML files, name.

    A benchmark is the user's own, even if no run was made from a config yet, or its run is
    elsewhere.
    """
    found, seen = NamedFiles(), set[Path]()
    for each in runs:
        _add_from_run(found, each)
        seen.add(each.config)
    for file in dict.fromkeys(each for each in files if each not in seen):
        text = _read_plain_file(file)
        if "dataset" not in text:
            continue
        try:
            _add_from_config(found, file, is_of_run=False)
        except ConfigError as error:
            if any(line.startswith("dataset:") for line in text.splitlines()):
                found.unread[file] = error
    return found


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


def _add_from_run(found: NamedFiles, files: RunFiles) -> None:
    """Add the present files of a run; those of its config file if its own config is damaged."""
    manifest: Manifest | None = None
    with suppress(RunStateError):  # reported when the run is searched
        manifest = read_manifest(files.manifest)
    at = locate_recorded(manifest.source) if manifest else str
    try:
        _add_from_config(found, files.config, at, is_of_run=True)
    except ConfigError as error:
        found.unread[files.config] = error
        if manifest is None:
            return
        if manifest.knowledge.path:
            found.news.add(_resolve(files.root, manifest.knowledge.path, at))
        with suppress(ConfigError):  # `found.unread` has the run
            _add_from_config(found, manifest.source.file, manifest.source.locate, is_of_run=False)


def _add_from_config(
    found: NamedFiles, file: Path, at: Callable[[str], str] = str, *, is_of_run: bool
) -> None:
    """Add the files that a config names.

    Raises:
        ConfigError: it cannot be read, or is a run's own and does not have all keys of these files.
    """
    raw = read_mapping(file)
    dataset, news = _list_keys(raw, "dataset"), _list_keys(raw, "knowledge")
    articles = _list_keys(news, "articles")
    named = {
        "benchmarks": _list_texts(dataset.get("path")),
        "articles": [*_list_texts(articles.get("files")), *_list_texts(articles.get("ccnews"))],
        "news": _list_texts(news.get("path")) if is_of_run else [],
    }
    for kind, paths in named.items():
        places = {_resolve(file.parent, path, at) for path in paths}
        getattr(found, kind).update(places)
        if not is_of_run:
            found.around.update(each for each in places if file.resolve().is_relative_to(each))
    if is_of_run and ("path" not in dataset or "path" not in news):
        raise ConfigError("keys of the benchmark and the news are missing", where=str(file))


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

"""The user's own files that the configs of runs and projects name: benchmarks, articles and news.

Only the keys of these files are read, so that a config of another version, with a mistake in
another key or not for a refresh protects and names them, too.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coreeval.config.load import read_mapping
from coreeval.config.user_files import read_text
from coreeval.errors import ConfigError, RunStateError
from coreeval.paths import expand_home
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches
from coreeval.runs.config_source import list_small_configs
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.runs.own_config import locate_recorded
from coreeval.tools.workspace import RunFiles


@dataclass(frozen=True)
class NamedFiles:
    """The files and folders that configs name, which may be missing, with links resolved."""

    benchmarks: set[Path] = field(default_factory=set)
    articles: set[Path] = field(default_factory=set)
    news: set[Path] = field(default_factory=set)
    """The places of news that runs name: stores, or files from which stores are made."""
    unread: dict[Path, ConfigError] = field(default_factory=dict)
    """Configs that are missing or damaged, so that files that they name may not be known."""


def find_named_files(runs: Iterable[RunFiles], folders: Iterable[Path]) -> NamedFiles:
    """Return the files that the configs of runs, and the config files in some folders, name.

    A benchmark is the user's own, even if no run was made from a config yet, or its run is
    elsewhere.
    """
    found = NamedFiles()
    for files in runs:
        _add_from_run(found, files)
    for file in {file: None for folder in folders for file in list_small_configs(folder)}:
        try:
            _add_from_config(found, file, is_of_run=False)
        except ConfigError as error:
            if _looks_like_config(file):
                found.unread[file] = error
    return found


def report_config(path: Path, error: ConfigError) -> TextMatches:
    """Return the report about a config that cannot be read."""
    return TextMatches(
        kind=UNREADABLE_FILE,
        path=path,
        count=1,
        action="reported",
        to_do=f"{error.message}, so the benchmark and the news that this config names may be "
        "unknown: correct it or restore it from a backup, then run this command again; of a run, "
        "you can instead name the news store as an argument and then delete the run",
    )


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
        "benchmarks": [] if dataset.get("format") == "hf" else _list_texts(dataset.get("path")),
        "articles": [*_list_texts(articles.get("files")), *_list_texts(articles.get("ccnews"))],
        "news": _list_texts(news.get("path")) if is_of_run else [],
    }
    for kind, paths in named.items():
        getattr(found, kind).update(_resolve(file.parent, path, at) for path in paths)
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


def _looks_like_config(file: Path) -> bool:
    """Return whether a file that is not YAML seems to be a config, not another program's file."""
    try:
        return any(line.startswith("dataset:") for line in read_text(file).splitlines())
    except (OSError, UnicodeDecodeError):
        return False

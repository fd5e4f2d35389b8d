"""Shell completions: runs, releases, pages, tasks, roles and providers.

A shell starts the program whenever Tab is pressed, and zsh evaluates its output. So these functions
only read names, and leave out names that a shell could misread.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import typer

VARIABLE: Final = "_COREEVAL_COMPLETE"
"""The variable with which a shell requests completions."""
PROVIDERS: Final = ("anthropic", "hf", "openai", "plugin", "replay")
"""The providers of `coreeval.models.providers`, whose import takes longer than a completion may."""
_SAFE: Final = re.compile(r"[\w./@+][\w./@+:-]*", re.ASCII)
"""Names without spaces, quotes or expansions that cannot be read as an option."""
_MOST: Final = 200
"""The most runs or releases that are offered (own choice)."""
_WORDS: Final = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
T = TypeVar("T")
Completion = tuple[str, str]
"""A word and its description, which zsh and fish show."""


def read_words() -> list[str] | None:
    """Return the words of the command line to complete; None if no shell requests completions."""
    if VARIABLE not in os.environ:
        return None
    return next((os.environ[name].split() for name in _WORDS if name in os.environ), [])


def unless_completing(find: Callable[[T], T]) -> Callable[[typer.Context, T], T]:
    """Return a callback that resolves an argument, but leaves it unchanged during completion."""

    def resolve(context: typer.Context, given: T) -> T:
        return given if context.resilient_parsing else find(given)

    return resolve


def complete_runs(incomplete: str) -> list[Completion]:
    """Return `latest`, ids and names of the runs here; after `NAME/`, the starts of its runs."""
    from coreeval.runs.names import LATEST, list_run_folders, short_id
    from coreeval.tools.workspace import workspace_for

    folders = list_run_folders(workspace_for(Path.cwd()))[:_MOST]
    titles = {folder: "/".join(folder.parts[-2:]) for folder in folders}
    if "/" in incomplete:
        return _keep((title, short_id(folder)) for folder, title in titles.items())
    newest = [(LATEST, f"the newest run, {titles[folder]}") for folder in folders[:1]]
    ids = [(short_id(folder), title) for folder, title in titles.items()]
    names = dict.fromkeys(folder.parent.name for folder in folders)
    return _keep([*newest, *ids, *((name, f"the newest run of {name}") for name in names)])


def complete_releases() -> list[Completion]:
    """Return `latest` and the directories of the releases in this workspace."""
    found = [(_relative(folder), folder.parent.name) for folder in _list_releases()]
    return _keep([("latest", "the newest release"), *found] if found else [])


def complete_runs_and_releases(incomplete: str) -> list[Completion]:
    """Return the runs here and the directories of their releases."""
    releases = [(_relative(folder), "release") for folder in _list_releases()]
    return [*complete_runs(incomplete), *_keep(releases)]


def complete_run_names() -> list[Completion]:
    """Return the names of the benchmarks with runs here."""
    from coreeval.tools.workspace import workspace_for

    found = workspace_for(Path.cwd()).runs.glob("*/*/manifest.json")
    return _keep((name, "") for name in sorted({path.parent.parent.name for path in found}))


def complete_pages() -> list[Completion]:
    """Return the pages of the documentation, each with its title."""
    from coreeval.cli.docs import list_pages, read_title

    return _keep((path.stem, read_title(path)) for path in list_pages())


def complete_tasks() -> list[Completion]:
    """Return the built-in tasks."""
    from coreeval.tasks import BUILT_IN

    return _keep((name, "") for name in BUILT_IN)


def complete_roles() -> list[Completion]:
    """Return the roles of a refresh."""
    from coreeval.config.models import ROLES

    return _keep((name, "") for name in ROLES)


def complete_providers() -> list[Completion]:
    """Return the providers of models, each as a prefix with its colon."""
    return _keep((f"{name}:", "") for name in PROVIDERS)


def _list_releases() -> list[Path]:
    from coreeval.tools.workspace import workspace_for

    found = workspace_for(Path.cwd()).releases.glob("*/[!.]*/release.json")
    return sorted((path.parent for path in found), reverse=True)[:_MOST]


def _relative(folder: Path) -> str:
    return os.path.relpath(folder)


def _keep(found: Iterable[Completion]) -> list[Completion]:
    """Return words that a shell reads literally, with notes in plain characters."""
    return list(_plain(found))


def _plain(found: Iterable[Completion]) -> Iterator[Completion]:
    for word, told in found:
        if _SAFE.fullmatch(word):
            yield word, re.sub(r"[^\w ./,:-]", "", told, flags=re.ASCII)

"""The user's own files that the configs of a project name, which a takedown only reports."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from coreeval.config import load_config
from coreeval.config.load import load_item_config
from coreeval.errors import CoreEvalError
from coreeval.runs.config_source import list_small_configs


def list_project_inputs(folder: Path) -> Iterator[Path]:
    """Yield the benchmarks and articles that the config files in a folder name.

    They are the user's own, even if no run was made from a config yet, or its run is elsewhere.
    """
    for file in list_small_configs(folder):
        with suppress(CoreEvalError):  # no config for a refresh
            config = load_config(file)
            articles = config.knowledge.articles
            named = (config.dataset.path, *articles.files, *articles.ccnews)
            yield from (Path(path) for path in named)
            continue
        with suppress(CoreEvalError):  # no config for items either
            yield Path(load_item_config(file).dataset.path)

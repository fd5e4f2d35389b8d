"""The user's own files that the configs of a project name, which a takedown only reports."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from coreeval.config.load import read_input_paths
from coreeval.errors import ConfigError
from coreeval.runs.config_source import list_small_configs


def list_project_inputs(folder: Path) -> Iterator[Path]:
    """Yield the benchmarks and articles that the config files in a folder name.

    They are the user's own, even if no run was made from a config yet, or its run is elsewhere.
    """
    for file in list_small_configs(folder):
        with suppress(ConfigError):  # it is not YAML
            yield from map(Path, read_input_paths(file))

"""The takedown lists that the config of a run names."""

import os

from coreeval.config import Config
from coreeval.config.load import read_takedown_path
from coreeval.runs.manifest import ConfigSource


def name_takedown_lists(config: Config, source: ConfigSource | None = None) -> list[str]:
    """Return the takedown lists that a run's own config names, and its config file by now.

    A list adds people and never removes one, so both apply, even if the file is of another
    benchmark by now.

    Args:
        config: The run's own config.
        source: The run's config file, which may be gone; None for a new run.

    Raises:
        ConfigError: the config file is not YAML.
    """
    named = [config.knowledge.takedown]
    if source and source.exists and os.access(source.file, os.R_OK):
        named.append(read_takedown_path(source.file, source.overrides))
    return list(dict.fromkeys(filter(None, named)))

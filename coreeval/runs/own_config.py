"""The config of an existing run, and its takedown lists, in the project in which the run is now."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from coreeval.config import ROLES, Config, ModelsConfig, load_config
from coreeval.config.load import read_config_name, read_takedown_path, relocate_config
from coreeval.errors import CoreEvalError
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import Manifest
from coreeval.tools.terminal import brief
from coreeval.tools.workspace import RunFiles, Workspace


def load_own_config(files: RunFiles, manifest: Manifest, overrides: Iterable[str] = ()) -> Config:
    """Return a run's own config; after a move or copy of its project, with paths to the new files.

    Models keep their names, under which their answers are stored.

    Args:
        files: The run's files.
        manifest: The run's manifest, from `read_manifest`.
        overrides: `key.path=value` settings that override the config's.

    Raises:
        ConfigError: the config cannot be read.
    """
    return relocate_config(
        load_config(files.config, overrides), locate_recorded(manifest.source), str
    )


def load_config_file(source: ConfigSource, frozen: Config) -> Config:
    """Return the current config file of a run, which must exist, with the run's overrides.

    Args:
        source: The config file.
        frozen: The run's own config, whose names of models are used for the same files.

    Raises:
        ConfigError: the config cannot be read.
    """
    now = load_config(source.file, source.overrides)
    return relocate_config(now, source.locate, use_names_of(frozen.models, source))


def load_same_name(source: ConfigSource, frozen: Config) -> Config | None:
    """Return the current config file of a run; None if it is missing or has another name.

    Args:
        source: The config file.
        frozen: The run's own config.

    Raises:
        ConfigError: the config cannot be read.
    """
    if not source.exists or read_config_name(source.file, source.overrides) != frozen.name:
        return None
    return load_config_file(source, frozen)


def load_same_benchmark(source: ConfigSource, frozen: Config) -> Config | None:
    """Return the current config file of a run, perhaps with a new licence.

    None if it is missing or of another benchmark, or if it has other keys of `dataset`.

    Args:
        source: The config file.
        frozen: The run's own config.

    Raises:
        ConfigError: the config cannot be read.
    """
    now = load_same_name(source, frozen)
    if now is None:
        return None
    dataset = now.dataset.model_copy(update={"licence": frozen.dataset.licence})
    return now if dataset == frozen.dataset else None


def locate_recorded(source: ConfigSource) -> Callable[[str], str]:
    """Return a function that returns the present path of a file in a run's own config."""
    return partial(source.locate, named=cache(lambda: _list_named(source)))


def locate_batches(manifest: Manifest) -> Callable[[str], str]:
    """Return a function that returns the present path of a recorded folder of a run's batches."""
    outside, workspace = locate_recorded(manifest.source), Workspace(Path(manifest.workspace))
    return lambda told: outside(told) if Path(told).is_absolute() else workspace.find_path(told)


def record_batches(manifest: Manifest, folder: str) -> str:
    """Return the folder of a run's batches to be recorded, for `locate_batches`; "" if none."""
    recorded = Workspace(Path(manifest.workspace)).record_path(folder)
    return manifest.source.record(recorded) if Path(recorded).is_absolute() else recorded


def _list_named(source: ConfigSource) -> set[str]:
    """Return the absolute paths that the current config file names; none if it cannot be read."""
    found = set[str]()

    def note(path: str) -> str:
        found.add(path)
        return path

    with suppress(CoreEvalError):
        relocate_config(load_config(source.file, source.overrides), note)
    return found


def use_names_of(models: ModelsConfig, source: ConfigSource) -> Callable[[str], str]:
    """Return a function that returns the name of the model in a file, for models of a run."""
    known = (*map(models.for_role, ROLES), *models.targets)
    names = {each.place: each.name for each in known if each.is_on_this_machine}

    def find_name(path: str) -> str:
        place = source.locate(path)
        return names.get(place, source.record(place))

    return find_name


def iter_config_remarks(source: ConfigSource) -> Iterator[str]:
    """Yield what the user must know about the place of a run's config file."""
    if source.found and source.file == source.recorded:
        yield (
            "this run is in another workspace than at its start, and its config is not beside that "
            f"workspace: it still uses the config, the .env, the takedown list and the other files "
            f"in {brief(source.file.parent)}"
        )
    elif source.found and not source.moved:
        yield f"the config file of this run was renamed: it is now {brief(source.file)}"
    elif source.moved:
        start, here = source.moved
        yield (
            f"this run was started in {start}; it now uses the config, the .env, the takedown list "
            f"and the other files in {brief(Path(here))}"
        )
    elif source.is_of_other:
        yield (
            f"{brief(source.file)} describes another benchmark by now: a licence, budget or pace "
            "that was set in another file does not apply to this run"
        )
    elif source.path and not source.exists:
        yield (
            f"the config file of this run is missing: {brief(source.file)}; a takedown list, "
            "licence or budget that was set in another file does not apply to this run"
        )


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
        now = read_takedown_path(source.file, source.overrides)
        named.append(now and source.locate(now))
    return list(dict.fromkeys(filter(None, named)))

"""Loads a config from YAML: overrides, paths, and errors with the user's own keys."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from coreeval.config.credentials import hide_credentials, refuse_credentials
from coreeval.config.models import ROLES, ModelsConfig, TargetConfig
from coreeval.config.prices import share_prices
from coreeval.config.run import Config
from coreeval.config.standalone import (
    ITEM_FORMATS,
    RUN_KEYS,
    ItemConfig,
    SeriesConfig,
    SeriesModelsConfig,
    extract_series_config,
    is_item_config,
    is_series_config,
)
from coreeval.config.user_files import (
    UNREADABLE_HINT,
    YAML_HINT,
    YamlError,
    describe_unreadable,
    parse_yaml,
    read_text,
    suggest_file,
)
from coreeval.config.validation import explain_validation_error
from coreeval.errors import ConfigError
from coreeval.paths import expand_home

V = TypeVar("V", bound=BaseModel)
ConfigLike = Path | str | Mapping[str, object] | Config
"""The path of a YAML config, or a config in memory: a mapping with the same keys, or a value."""
IN_MEMORY = Path("<config>")
"""The placeholder for the path of a config in memory."""


@dataclass(frozen=True, kw_only=True)
class LoadedConfig:
    """A config and its origin."""

    config: Config
    path: Path | None
    """The absolute path of its file; None if it was given in memory."""
    folder: Path
    """The folder of its `.env` and its workspace: the file's folder, or the current one."""
    overrides: tuple[str, ...]

    @property
    def source(self) -> Path:
        """Return the path of its file, or the placeholder."""
        return self.path or IN_MEMORY


def read_config(given: ConfigLike, overrides: Iterable[str] = ()) -> LoadedConfig:
    """Return a config, read from a file or given in memory, with absolute paths.

    Relative paths of a config in memory start at the current folder.

    Args:
        given: The config.
        overrides: `key.path=value` settings that override the config's.

    Raises:
        ConfigError: the file does not exist or is not YAML, or the config has an unknown key or a
            value of the wrong kind.
    """
    changes = tuple(overrides)
    if isinstance(given, str | Path):
        path = Path(given).resolve()
        loaded = load_config(path, changes)
        return LoadedConfig(config=loaded, path=path, folder=path.parent, overrides=changes)
    plain = given.model_dump(mode="json") if isinstance(given, Config) else _to_plain(given)
    if not isinstance(plain, dict):
        raise ConfigError(f"a config is a path, a mapping or a Config, not {type(given).__name__}")
    raw, where = _override(plain, str(IN_MEMORY), changes)
    folder = Path.cwd()
    loaded = _parse_run_config(raw, where=where, file=IN_MEMORY, base=folder)
    return LoadedConfig(config=loaded, path=None, folder=folder, overrides=changes)


def _to_plain(value: object) -> Any:  # noqa: ANN401 - a config is plain data until it is checked
    """Return a copy of nested mappings and sequences as dicts and lists, and paths as texts."""
    if isinstance(value, Mapping):
        return {key: _to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def load_config(path: Path, overrides: Iterable[str] = ()) -> Config:
    """Read a YAML config, apply `key.path=value` overrides and make its paths absolute.

    Raises:
        ConfigError: the file does not exist or is not YAML, or it has an unknown key or a value of
            the wrong kind.
    """
    raw, where = read_with_overrides(path, overrides)
    return _parse_run_config(raw, where=where, file=path, base=path.parent)


def _parse_run_config(raw: dict[str, Any], *, where: str, file: Path, base: Path) -> Config:
    """Return the config of a run from a mapping; `file` is the path for commands.

    Raises:
        ConfigError: it is not the config of a run, or has an unknown key or a value of the wrong
            kind.
    """
    if is_item_config(raw):
        raise ConfigError(
            "this config tests targets on a benchmark of items: there is nothing to refresh",
            where=where,
            hint=f"{ItemConfig.command} {file}",
        )
    if is_series_config(raw):
        raise ConfigError(
            "this config only asks targets about series: there is nothing to refresh",
            where=where,
            hint=f"{SeriesConfig.command} {file}",
        )
    return parse_config(raw, where=where, base=base)


def load_item_config(path: Path, overrides: Iterable[str] = ()) -> ItemConfig:
    """Read the YAML config for asking about items, in the same way as `load_config`.

    Raises:
        ConfigError: the file does not exist or is not YAML; it has an unknown key or a value of the
            wrong kind; or it is the config of a run.
    """
    raw, where = read_with_overrides(path, overrides)
    if not is_item_config(raw) and raw.keys() & RUN_KEYS:
        raise ConfigError(
            "this config is for a run: it has a task or knowledge, but no benchmark of items",
            where=where,
            hint=f"use coreeval refresh {path}; for the PCR of items, set dataset.format to "
            f"one of {', '.join(ITEM_FORMATS)}",
        )
    config = check_values(ItemConfig, raw, where=where)
    return share_prices(_resolve_items(config, path.parent))


def load_series_config(path: Path, overrides: Iterable[str] = ()) -> SeriesConfig:
    """Read the YAML config for asking about series, or that part of a run's config.

    Raises:
        ConfigError: the file does not exist or is not YAML; it has an unknown key or a value of the
            wrong kind; or it names no series.
    """
    raw, where = read_with_overrides(path, overrides)
    if raw.keys() & RUN_KEYS and not is_item_config(raw):
        return extract_series_config(parse_config(raw, where=where, base=path.parent), where=where)
    return parse_series_config(raw, where=where, base=path.parent)


def parse_series_config(raw: object, *, where: str, base: Path) -> SeriesConfig:
    """Return a config for asking about series from plain data.

    Args:
        raw: Plain data, as read from YAML.
        where: The location to name in an error.
        base: The folder that relative paths are resolved against.

    Raises:
        ConfigError: an unknown key or a value of the wrong kind.
    """
    config = check_values(SeriesConfig, raw, where=where)
    return share_prices(_resolve_series(config, base))


def read_with_overrides(path: Path, overrides: Iterable[str]) -> tuple[dict[str, Any], str]:
    """Return a file's mapping with `key.path=value` overrides, and its name for errors."""
    return _override(read_mapping(path), str(path), list(overrides))


def _override(raw: dict[str, Any], name: str, changes: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Apply overrides to a mapping; return it, and its name for errors."""
    for change in changes:
        _apply_override(raw, change)
    keys = ", ".join(change.partition("=")[0] for change in changes)
    refuse_credentials(raw, where=f"{name} with {keys}" if changes else name)
    return raw, f"{name} with {', '.join(changes)}" if changes else name


_TAKEDOWN_KEYS = ("knowledge", "knowledge.takedown")


def read_takedown_path(path: Path, overrides: Iterable[str]) -> str | None:
    """Return the absolute path of the takedown list that a file names; its other keys may be wrong.

    Raises:
        ConfigError: the file is not YAML, or an override of the list cannot be used.
    """
    told = [each for each in overrides if each.partition("=")[0] in _TAKEDOWN_KEYS]
    knowledge = read_with_overrides(path, told)[0].get("knowledge")
    listed = knowledge.get("takedown") if isinstance(knowledge, dict) else None
    return _resolve_path(path.parent, listed) if listed and isinstance(listed, str) else None


def read_config_name(path: Path, overrides: Iterable[str]) -> object:
    """Return the name in a config file, whose other keys may be wrong; None in a file without data.

    Raises:
        ConfigError: the file is not YAML.
    """
    told = [each for each in overrides if each.partition("=")[0] == "name"]
    values = read_with_overrides(path, told)[0]
    return values.get("name") if "dataset" in values else None


def read_input_paths(path: Path) -> list[str]:
    """Return the absolute paths of the benchmark and articles that a config file names.

    Its other keys may be wrong.

    Raises:
        ConfigError: the file is not YAML.
    """
    values = read_mapping(path)
    articles = _find_value(values, "knowledge", "articles")
    lists = [_find_value(articles, name) for name in ("files", "ccnews")]
    named = [_find_value(values, "dataset", "path")]
    for each in lists:
        named += each if isinstance(each, list) else []
    return [_resolve_path(path.parent, each) for each in named if each and isinstance(each, str)]


def _find_value(values: object, *keys: str) -> object:
    """Return the value at a key path of nested mappings; None if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def read_mapping(path: Path, *, written_by: str = "coreeval init") -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Args:
        path: The file.
        written_by: The command that writes such a file.

    Raises:
        ConfigError: the file does not exist or contains something else.
    """
    try:
        raw = parse_yaml(read_text(path))
    except FileNotFoundError:
        near = suggest_file(path)
        raise ConfigError(
            "config file not found",
            where=str(path),
            hint=f"{f'{near} if not, ' if near else ''}write one with: {written_by}",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the config: {describe_unreadable(error)}",
            where=str(path),
            hint=UNREADABLE_HINT,
        ) from None
    except YamlError as error:
        raise ConfigError(
            f"this is not YAML: {hide_credentials(str(error))}", where=str(path), hint=YAML_HINT
        ) from None
    if not isinstance(raw, dict):
        raise ConfigError("the config must be a mapping of keys to values", where=str(path))
    return raw


def parse_config(raw: Mapping[str, Any], *, where: str, base: Path) -> Config:
    """Return a config from a mapping; its relative paths are resolved against `base`."""
    config = check_values(Config, raw, where=where)
    return share_prices(relocate_config(config, lambda path: _resolve_path(base, path)))


def check_values(model: type[V], raw: object, *, where: str) -> V:
    """Return plain data as a config value, after checking that it contains no likely credential.

    Args:
        model: The type to validate against.
        raw: Plain data, as read from YAML.
        where: The location to name in an error.

    Raises:
        ConfigError: it contains a likely credential, an unknown key, or a value of the wrong
            kind.
    """
    refuse_credentials(raw, where=where)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise explain_validation_error(error, model, where) from None


def parse_target(text: str, *, base: Path) -> TargetConfig:
    """Return a target from `provider:name`, or from a mapping with further settings.

    Raises:
        ConfigError: it is neither, or has an unknown key or a value of the wrong kind.
    """
    try:
        said = parse_yaml(text)
    except YamlError as error:
        raise ConfigError(
            f"the target is not YAML: {hide_credentials(str(error))}", where="--target"
        ) from None
    if not isinstance(said, str | dict):
        shown = hide_credentials(text)
        raise ConfigError(f"a target is provider:name or a mapping, not {shown!r}")
    target = check_values(TargetConfig, said, where="--target")
    return target.resolve(lambda path: _resolve_path(base, path))


def relocate_config(
    config: Config, at: Callable[[str], str], rename: Callable[[str], str] | None = None
) -> Config:
    """Return a config with each of its paths replaced by what `at` returns for it.

    `rename` returns the name to use for a model that is a file, under which its answers are stored;
    without it, the name is the path.
    """
    dataset, changes = config.dataset, dict[str, object]()
    if dataset.format != "hf":
        changes["dataset"] = dataset.model_copy(update={"path": at(dataset.path)})
    if config.task.endswith((".yaml", ".yml")):
        changes["task"] = at(config.task)
    if config.prompts:
        changes["prompts"] = at(config.prompts)
    news = config.knowledge
    listed = {"path": news.path, "cutoffs": news.cutoffs, "takedown": news.takedown}
    files: dict[str, object] = {name: at(path) for name, path in listed.items() if path}
    articles = news.articles
    texts = {"files": tuple(map(at, articles.files)), "ccnews": tuple(map(at, articles.ccnews))}
    files["articles"] = articles.model_copy(update=texts)
    changes["knowledge"] = news.model_copy(update=files)
    changes["models"] = _resolve_models(config.models, at, rename)
    changes["run"] = config.run.resolve(at)
    if config.detect.asks_series:
        changes["detect"] = config.detect.resolve(at)
    return config.model_copy(update=changes)


def _resolve_series(config: SeriesConfig, base: Path) -> SeriesConfig:
    def at(path: str) -> str:
        return _resolve_path(base, path)

    targets = tuple(target.resolve(at) for target in config.models.targets)
    changes: dict[str, object] = {
        "models": SeriesModelsConfig(targets=targets),
        "detect": config.detect.resolve(at),
    }
    if config.run.prices:
        changes["run"] = config.run.model_copy(update={"prices": at(config.run.prices)})
    if config.cutoffs:
        changes["cutoffs"] = at(config.cutoffs)
    return config.model_copy(update=changes)


def _resolve_items(config: ItemConfig, base: Path) -> ItemConfig:
    def at(path: str) -> str:
        return _resolve_path(base, path)

    models, run, detect = config.models, config.run, config.detect.resolve(at)
    changes: dict[str, object] = {
        "dataset": config.dataset.model_copy(update={"path": at(config.dataset.path)}),
        "models": models.model_copy(
            update={
                "targets": tuple(target.resolve(at) for target in models.targets),
                "rewriter": models.rewriter and models.rewriter.resolve(at),
            }
        ),
    }
    if run.prices:
        changes["run"] = run.model_copy(update={"prices": at(run.prices)})
    if detect is not config.detect:
        changes["detect"] = detect
    return config.model_copy(update=changes)


def _resolve_models(
    models: ModelsConfig, at: Callable[[str], str], rename: Callable[[str], str] | None
) -> ModelsConfig:
    """Make the paths of `replay:FILE` and of `ca_file` absolute."""
    changes: dict[str, object] = {
        role: own.resolve(at, rename) for role in ROLES if (own := getattr(models, role))
    }
    changes["default"] = models.default.resolve(at, rename)
    changes["targets"] = tuple(target.resolve(at, rename) for target in models.targets)
    return models.model_copy(update=changes)


def _resolve_path(base: Path, path: str) -> str:
    return os.path.realpath(base / expand_home(path))


def _apply_override(raw: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set takes key.path=value, not {override!r}")
    *parents, last = key.split(".")
    place = raw
    for parent in parents:
        inner = place.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {key}: {parent} is not a mapping")
        place = inner
    try:
        place[last] = parse_yaml(text)
    except YamlError as error:
        raise ConfigError(
            f"--set {key}: the value is not YAML: {hide_credentials(str(error))}"
        ) from None


def find_changed_keys(before: Config, after: Config) -> list[str]:
    """Return the key paths in which two configs differ, sorted."""
    old, new = _flatten(before.model_dump(mode="json")), _flatten(after.model_dump(mode="json"))
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _flatten(value: object, prefix: str = "") -> dict[str, object]:
    """Return nested mappings and lists as one mapping of key paths."""
    if isinstance(value, dict):
        parts = [
            _flatten(inner, f"{prefix}.{key}" if prefix else key) for key, inner in value.items()
        ]
    elif isinstance(value, list):
        parts = [_flatten(inner, f"{prefix}[{n}]") for n, inner in enumerate(value)]
    else:
        return {prefix: value}
    return {key: inner for part in parts for key, inner in part.items()}

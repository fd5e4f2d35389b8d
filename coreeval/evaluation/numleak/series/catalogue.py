"""Which series there are: the built-in definitions, families of them, and a user's own files."""

from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import yaml
from pydantic import ValidationError

from coreeval.config.load import explain_validation_error
from coreeval.config.user_files import YAML_HINT, YamlError, parse_yaml, read_text
from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.tasks.task_file import suggest_name

BUNDLED: Final = "statsmodels"
"""Stands for all series that the library brings: nothing is downloaded for them."""
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DOCS: Final = "docs/series.md"


@cache
def known() -> tuple[SeriesDefinition, ...]:
    """Return the built-in definitions by family, those without one last."""
    built_in = [definition_of(name, base=Path()) for name in _ids()]
    return tuple(sorted(built_in, key=lambda one: (one.family or "~", one.id)))


def expand(names: Iterable[str]) -> list[str]:
    """Return ids and paths with each family name replaced by its members, none twice."""
    found = dict[str, None]()
    for name in names:
        found |= dict.fromkeys(_members(name) or [name])
    return list(found)


def families() -> dict[str, list[str]]:
    """Return the members of each built-in family, and of all that an installed library brings."""
    found = dict[str, list[str]]()
    for one in known():
        if one.family:
            found.setdefault(one.family, []).append(one.id)
    return found | {BUNDLED: [one.id for one in known() if one.source.package == BUNDLED]}


def definition_of(name_or_path: str, *, base: Path) -> SeriesDefinition:
    """Return the built-in definition of an id, or the one in a YAML file.

    Raises:
        ConfigError: there is no such series, or a mistake in its file.
    """
    return _parsed(place_of(name_or_path, base=base))


def place_of(name_or_path: str, *, base: Path) -> Path:
    """Return the YAML file of a series.

    Raises:
        ConfigError: it is neither a built-in id nor a path.
    """
    if name_or_path in _ids():
        return _folder() / f"{name_or_path}.yaml"
    path = Path(name_or_path).expanduser()
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return base / path
    names = [*_ids(), *families()]
    raise ConfigError(
        f"there is no built-in series {name_or_path!r}",
        hint=f"{suggest_name(name_or_path, names)} (built in: {', '.join(names)}; "
        "a definition of your own ends in .yaml)",
    )


def _members(name: str) -> list[str] | None:
    return None if name in _ids() or name.endswith((".yaml", ".yml")) else families().get(name)


def _folder() -> Path:
    return Path(str(resources.files("coreeval.evaluation.numleak.series"))) / "built_in"


@cache
def _ids() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _folder().glob("*.yaml")))


def _built_in(path: Path) -> object:
    """Return the values of a file of ours; libyaml reads it ten times as fast."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def _parsed(path: Path) -> SeriesDefinition:
    try:
        raw = _built_in(path) if path.parent == _folder() else parse_yaml(read_text(path))
    except FileNotFoundError:
        hint = f"built in: {', '.join(_ids())}"
        raise ConfigError("there is no such series file", where=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the series file cannot be read: {error}", where=str(path)) from None
    except YamlError as error:
        raise ConfigError(f"this is not YAML: {error}", where=str(path), hint=YAML_HINT) from None
    if not isinstance(raw, dict):
        raise ConfigError(
            "a series is a mapping of keys to values", where=str(path), hint=f"see {_DOCS}"
        )
    try:
        return SeriesDefinition.model_validate(raw)
    except ValidationError as error:
        raise explain_validation_error(error, SeriesDefinition, str(path), docs=_DOCS) from None

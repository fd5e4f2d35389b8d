"""Tables of facts that others published, each with its source; and a user's own on top."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from coreeval.config.credentials import hide_credentials, refuse_credentials
from coreeval.config.user_files import HINT, YamlError, parse_yaml, read_text
from coreeval.errors import ConfigError

Fact = TypeVar("Fact")


def built_in(file: str, form: TypeAdapter[dict[str, Fact]]) -> Mapping[str, Fact]:
    """Return a table that comes with the package; libyaml reads it ten times as fast."""
    text = resources.files("coreeval.tools").joinpath(file).read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return form.validate_python(yaml.load(text, Loader=loader))


def user_table(path: Path, form: TypeAdapter[dict[str, Fact]], *, hint: str) -> Mapping[str, Fact]:
    """Return a table of a user's own.

    Raises:
        ConfigError: the file cannot be read, a row of it is not as `hint` says, or it holds what
            looks like a credential.
    """
    try:
        raw = parse_yaml(read_text(path)) or {}
        rows = list(raw.values()) if isinstance(raw, dict) else raw
        refuse_credentials(rows, where=str(path))
        return form.validate_python(raw)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"this is not UTF-8: {error}", where=str(path)) from None
    except YamlError as error:
        problem = hide_credentials(str(error))
        raise ConfigError(f"this is not YAML: {problem}", where=str(path), hint=HINT) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, said = ".".join(map(str, first["loc"])), str(first["msg"])
        message = f"{place}: {said.removeprefix('Value error, ')}"
        raise ConfigError(message, where=str(path), hint=hint) from None

"""Reading a file of gates, and the one that comes with the package."""

from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from coreeval.config.load import explain_validation_error, read_mapping
from coreeval.releases.gates.limits import Gates, GatesFile

DEFAULT = "default"
"""Asks for the default gates in a file's place."""
DOCS = "docs/gates.md"
PRINT = "coreeval gate --print-config > gates.yaml"
"""How a file to start from is had."""


def default_text() -> str:
    """Return the default gates as a file with the reason for each limit."""
    return resources.files("coreeval.releases.gates").joinpath("defaults.yaml").read_text("utf-8")


def default_gates() -> Gates:
    """Return the default gates."""
    return _checked(yaml.safe_load(default_text()), "the default gates")


def gates_named(said: str | None, *, base: Path) -> Gates | None:
    """Return the gates that are asked for: a file, from `base`, or `default`; None for none.

    Raises:
        ConfigError: as `load_gates`.
    """
    if said is None:
        return None
    return default_gates() if said == DEFAULT else load_gates(base / Path(said).expanduser())


def load_gates(path: Path) -> Gates:
    """Read a file of gates.

    Raises:
        ConfigError: no such file, no YAML, an unknown gate, or a limit that cannot be.
    """
    return _checked(read_mapping(path, written_by=PRINT), str(path))


def _checked(raw: dict[str, Any], where: str) -> Gates:
    try:
        return GatesFile.model_validate(raw).gates
    except ValidationError as error:
        raise explain_validation_error(error, GatesFile, where, docs=DOCS) from None

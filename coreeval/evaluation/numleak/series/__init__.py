"""Dated series as data: their definitions, the sources of their values, and their readers."""

from coreeval.evaluation.numleak.series.catalogue import (
    expand_families,
    find_definition,
    list_definitions,
    list_families,
    open_series,
    read_series,
)
from coreeval.evaluation.numleak.series.definition import Series, SeriesDefinition, Unit

__all__ = [
    "Series",
    "SeriesDefinition",
    "Unit",
    "expand_families",
    "find_definition",
    "list_definitions",
    "list_families",
    "open_series",
    "read_series",
]

"""Dated series as data: what one is, where its values are, and how they are read."""

from coreeval.evaluation.numleak.series.catalogue import definition_of, expand, families, known
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.series.opening import open_series, read_series
from coreeval.evaluation.numleak.series.series import Series
from coreeval.evaluation.numleak.series.units import Unit

__all__ = [
    "Series",
    "SeriesDefinition",
    "Unit",
    "definition_of",
    "expand",
    "families",
    "known",
    "open_series",
    "read_series",
]

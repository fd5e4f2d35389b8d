"""Dated series as data: what one is, where its values are, and how they are read."""

from coreeval.evaluation.numleak.series.definition import SeriesDefinition, Unit
from coreeval.evaluation.numleak.series.opening import expand, known, open_series
from coreeval.evaluation.numleak.series.series import Series

__all__ = ["Series", "SeriesDefinition", "Unit", "expand", "known", "open_series"]

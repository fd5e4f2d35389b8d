"""Statistics of recorded answers about a series: pure functions over points and comparisons."""

from coreeval.evaluation.numleak.statistics.estimation import adjust_together, measure
from coreeval.evaluation.numleak.statistics.measurements import (
    AuditSettings,
    Metric,
    SeriesMeasurements,
)
from coreeval.evaluation.numleak.statistics.metrics import pearson_r, signature

__all__ = [
    "AuditSettings",
    "Metric",
    "SeriesMeasurements",
    "adjust_together",
    "measure",
    "pearson_r",
    "signature",
]

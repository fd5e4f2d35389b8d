"""What recorded answers about a series show: pure functions over points and comparisons."""

from coreeval.evaluation.numleak.statistics.estimation import adjust_together, measure
from coreeval.evaluation.numleak.statistics.measurements import (
    AuditSettings,
    Baseline,
    Chance,
    CrossSeries,
    Lift,
    Metric,
    Null,
    Ranks,
    Repeats,
    SeriesMeasurements,
    Signature,
)
from coreeval.evaluation.numleak.statistics.metrics import (
    mae,
    parse_rate,
    pearson_r,
    sign_accuracy,
    signature,
    within_tolerance,
)

__all__ = [
    "AuditSettings",
    "Baseline",
    "Chance",
    "CrossSeries",
    "Lift",
    "Metric",
    "Null",
    "Ranks",
    "Repeats",
    "SeriesMeasurements",
    "Signature",
    "adjust_together",
    "mae",
    "measure",
    "parse_rate",
    "pearson_r",
    "sign_accuracy",
    "signature",
    "within_tolerance",
]

"""What recorded answers about a series show: pure functions over points and comparisons."""

from coreeval.evaluation.numleak.statistics.measured import (
    Baseline,
    Chance,
    CrossSeries,
    Lift,
    Measured,
    Metric,
    Null,
    Ranks,
    Repeats,
    Settings,
    Signature,
)
from coreeval.evaluation.numleak.statistics.measuring import adjusted_together, measure
from coreeval.evaluation.numleak.statistics.metrics import (
    mae,
    parse_rate,
    pearson_r,
    sign_accuracy,
    signature,
    within_tolerance,
)

__all__ = [
    "Baseline",
    "Chance",
    "CrossSeries",
    "Lift",
    "Measured",
    "Metric",
    "Null",
    "Ranks",
    "Repeats",
    "Settings",
    "Signature",
    "adjusted_together",
    "mae",
    "measure",
    "parse_rate",
    "pearson_r",
    "sign_accuracy",
    "signature",
    "within_tolerance",
]

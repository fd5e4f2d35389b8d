"""One YAML file becomes one frozen, checked value; nothing below it reads files or flags.

Unknown keys are errors that name the nearest known one. Keys (secrets) are never part of it.
"""

from coreeval.config.item_values import ItemConfig
from coreeval.config.leak_values import LeakConfig
from coreeval.config.numleak_values import NumleakConfig, PeriodConfig, Probe
from coreeval.config.reading import (
    changed_keys,
    load_config,
    load_item_config,
    load_series_config,
    parse_config,
    parse_series_config,
    parse_target,
    series_part,
)
from coreeval.config.series_values import SeriesConfig
from coreeval.config.telemetry import TelemetryConfig
from coreeval.config.values import (
    METHODS,
    ROLES,
    Config,
    DatasetConfig,
    Method,
    ModelConfig,
    ModelsConfig,
    PcrConfig,
    PriceConfig,
    TargetConfig,
)

AnyConfig = Config | ItemConfig | SeriesConfig
"""Whatever names models, prices and a budget."""
__all__ = [
    "METHODS",
    "ROLES",
    "AnyConfig",
    "Config",
    "DatasetConfig",
    "ItemConfig",
    "LeakConfig",
    "Method",
    "ModelConfig",
    "ModelsConfig",
    "NumleakConfig",
    "PcrConfig",
    "PeriodConfig",
    "PriceConfig",
    "Probe",
    "SeriesConfig",
    "TargetConfig",
    "TelemetryConfig",
    "changed_keys",
    "load_config",
    "load_item_config",
    "load_series_config",
    "parse_config",
    "parse_series_config",
    "parse_target",
    "series_part",
]

"""One YAML file becomes one frozen, checked value; nothing below it reads files or flags.

Unknown keys are errors that name the nearest known one. Keys (secrets) are never part of it.
"""

from coreeval.config.defence_values import DefencesConfig, WordsConfig
from coreeval.config.item_values import ItemConfig
from coreeval.config.leak_values import LeakConfig
from coreeval.config.model_values import METHODS, Method, ModelConfig, PriceConfig
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
    ROLES,
    Config,
    DatasetConfig,
    ModelsConfig,
    PcrConfig,
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
    "DefencesConfig",
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
    "WordsConfig",
    "changed_keys",
    "load_config",
    "load_item_config",
    "load_series_config",
    "parse_config",
    "parse_series_config",
    "parse_target",
    "series_part",
]

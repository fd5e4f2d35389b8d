"""A YAML file becomes one frozen, checked value; code below this package reads no files or flags.

Unknown keys are errors that suggest the nearest known key. Secrets are never part of a config.
"""

from coreeval.config.load import (
    IN_MEMORY,
    ConfigLike,
    LoadedConfig,
    find_changed_keys,
    load_config,
    load_item_config,
    load_series_config,
    parse_config,
    parse_series_config,
    parse_target,
    read_config,
)
from coreeval.config.models import (
    METHODS,
    ROLES,
    Method,
    ModelConfig,
    ModelsConfig,
    PriceConfig,
    TargetConfig,
)
from coreeval.config.numleak import (
    DefencesConfig,
    InstructionConfig,
    LeakConfig,
    NumleakConfig,
    PeriodConfig,
    Probe,
)
from coreeval.config.run import Config, DatasetConfig, PcrConfig, RunConfig, TelemetryConfig
from coreeval.config.standalone import ItemConfig, SeriesConfig, extract_series_config

AnyConfig = Config | ItemConfig | SeriesConfig
"""Any config that names models, prices and a budget."""
__all__ = [
    "IN_MEMORY",
    "METHODS",
    "ROLES",
    "AnyConfig",
    "Config",
    "ConfigLike",
    "DatasetConfig",
    "DefencesConfig",
    "InstructionConfig",
    "ItemConfig",
    "LeakConfig",
    "LoadedConfig",
    "Method",
    "ModelConfig",
    "ModelsConfig",
    "NumleakConfig",
    "PcrConfig",
    "PeriodConfig",
    "PriceConfig",
    "Probe",
    "RunConfig",
    "SeriesConfig",
    "TargetConfig",
    "TelemetryConfig",
    "extract_series_config",
    "find_changed_keys",
    "load_config",
    "load_item_config",
    "load_series_config",
    "parse_config",
    "parse_series_config",
    "parse_target",
    "read_config",
]

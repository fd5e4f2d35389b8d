"""One YAML file becomes one frozen, checked value; nothing below it reads files or flags.

Unknown keys are errors that name the nearest known one. Keys (secrets) are never part of it.
"""

from coreeval.config.item_values import ItemConfig
from coreeval.config.reading import (
    changed_keys,
    load_config,
    load_item_config,
    parse_config,
    parse_target,
)
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

__all__ = [
    "METHODS",
    "ROLES",
    "Config",
    "DatasetConfig",
    "ItemConfig",
    "Method",
    "ModelConfig",
    "ModelsConfig",
    "PcrConfig",
    "PriceConfig",
    "TargetConfig",
    "changed_keys",
    "load_config",
    "load_item_config",
    "parse_config",
    "parse_target",
]

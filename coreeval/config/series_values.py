"""Asking targets about dated series: a config of its own beside that of a run."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from coreeval.config.numleak_values import NumleakConfig
from coreeval.config.values import AskingConfig, TargetConfig, refuse_twice
from coreeval.schema import Value


class SeriesModelsConfig(Value):
    """Who is asked."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    """Models, and `offline:NAME` of the embedded personas."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        refuse_twice(self.targets)
        return self


class SeriesDetectConfig(Value):
    """What is measured."""

    numleak: NumleakConfig


class SeriesConfig(Value):
    """Everything that asking about series may vary."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    models: SeriesModelsConfig
    run: AskingConfig = AskingConfig()
    detect: SeriesDetectConfig
    cutoffs: str | None = None
    """File of training cutoffs that come before the built-in ones."""

"""The configs for asking targets about items or dated series, without a run."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from coreeval.config.base import Count, Section
from coreeval.config.models import (
    ModelConfig,
    TargetConfig,
    require_distinct_targets,
    require_tested_target,
)
from coreeval.config.numleak import NumleakConfig
from coreeval.config.run import Config, StandaloneRunConfig
from coreeval.errors import ConfigError

ItemFormat = Literal["fineval", "finqa", "alphafin", "ectsum", "jsonl"]
ITEM_FORMATS: tuple[ItemFormat, ...] = get_args(ItemFormat)
_BOTH: tuple[ItemFormat, ...] = ("finqa", "ectsum", "jsonl")
"""Formats that a run can refresh, too."""
RUN_KEYS = {"task", "knowledge"}
"""Keys only in the config of a run."""


class ItemDatasetConfig(Section):
    """The location of the items, and how to read them."""

    format: ItemFormat
    """The benchmark or format of the items."""
    path: str
    """A folder with a file for each split, relative to the config."""


class ItemModelsConfig(Section):
    """The models that are asked, and the model that paraphrases items."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    """The models to test; at least one is needed."""
    rewriter: ModelConfig | None = None
    """Writes paraphrases; it is not needed for other modifications."""

    @model_validator(mode="after")
    def _check_models(self) -> Self:
        require_distinct_targets(self.targets)
        require_tested_target(self.targets)
        embedded = [target.model for target in self.targets if target.is_embedded]
        if embedded:
            raise ValueError(
                f"{embedded[0]} cannot be tested on items: it is a small classifier of labelled "
                "samples, but items need a text answer; use coreeval evaluate RUN"
            )
        if self.rewriter and self.rewriter.is_rule_based:
            raise ValueError(
                f"rewriter: only a model can write paraphrases, not {self.rewriter.model}"
            )
        return self


class ItemPcrConfig(Section):
    """The comparison; missing fields default to the benchmark's, as in the CAP paper."""

    train_split: str | None = None
    """The train split. None: the benchmark's train split; `train` for `jsonl`."""
    test_split: str | None = None
    """The test split. None: the benchmark's test split; `test` for `jsonl`."""
    samples: Count = 500
    """The maximum number of items to draw from each split, at random with the seed `run.seed`."""
    modification: Literal["option_shuffle", "year_shift", "paraphrase"] | None = None
    """How an item is modified. None: the usual modification for the benchmark; `jsonl` needs this
    key."""
    modified: str | None = None
    """A folder of recorded modified items, instead of a modification."""
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    """The minimum similarity of a paraphrase to its item. None: 0.9."""
    answer: Literal["text", "letter"] = "text"
    """What is scored if there are options: the whole answer or the chosen letter."""
    metric: str | None = None
    """How performance is measured (docs/scoring.md). None: the usual metric for the benchmark;
    `jsonl` needs this key."""
    consistency: str | None = None
    """How consistency is measured (docs/scoring.md). None: the usual measure for the benchmark;
    `jsonl` needs this key."""
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """The minimum cosine similarity at which two answers are taken to mean the same. None: 0.95."""
    embeddings: str = "minilm"
    """The embeddings for paraphrases and for cosine consistency. Using a provider needs your
    consent (docs/models.md) and is refused under a budget."""
    alpha: Annotated[float, Field(ge=0)] | None = None
    """The constant that keeps the ratio finite. None: 0.01, or 0.001 for `ectsum`."""
    scale: Literal["tanh", "linear", "sigmoid"] = "tanh"
    """How a ratio is mapped to the PCR (docs/pcr.md)."""
    exchangeable_splits: bool = False
    """Whether the splits are random parts of one pool; `true` is your assurance that they are
    (docs/pcr.md)."""

    @model_validator(mode="after")
    def _check_modification(self) -> Self:
        if self.modified and self.modification:
            raise ValueError("use either modified (recorded items) or modification")
        return self


class ItemDetectConfig(Section):
    """What is measured."""

    pcr: ItemPcrConfig = ItemPcrConfig()
    """What is compared."""

    def resolve(self, at: Callable[[str], str]) -> Self:
        """Return it with absolute paths."""
        if not self.pcr.modified:
            return self
        modified = self.pcr.model_copy(update={"modified": at(self.pcr.modified)})
        return self.model_copy(update={"pcr": modified})


class ItemConfig(Section):
    """All settings for asking about items."""

    command: ClassVar[str] = "coreeval detect pcr"
    """The command that asks."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Letters, digits, `.`, `_` and `-`."""
    dataset: ItemDatasetConfig
    """The items."""
    models: ItemModelsConfig
    """The models to test, and the model that writes paraphrases."""
    run: StandaloneRunConfig = StandaloneRunConfig()
    """The settings for sending the questions."""
    detect: ItemDetectConfig = ItemDetectConfig()
    """What is measured."""


class SeriesModelsConfig(Section):
    """The models that are asked."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    """The models to test, and embedded personas as `offline:NAME`."""

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        require_distinct_targets(self.targets)
        return self


class SeriesDetectConfig(Section):
    """What is measured."""

    numleak: NumleakConfig
    """The series and the questions."""

    def resolve(self, at: Callable[[str], str]) -> "SeriesDetectConfig":
        """Return it with absolute paths."""
        return SeriesDetectConfig(numleak=self.numleak.resolve(at))


class SeriesConfig(Section):
    """All settings for asking about series."""

    command: ClassVar[str] = "coreeval detect numleak"
    """The command that asks."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Letters, digits, `.`, `_` and `-`."""
    models: SeriesModelsConfig
    """The models to test."""
    run: StandaloneRunConfig = StandaloneRunConfig()
    """The settings for sending the questions."""
    detect: SeriesDetectConfig
    """What is measured."""
    cutoffs: str | None = None
    """A file of training cutoffs that override the built-in ones (docs/cutoffs.md)."""


def is_item_config(raw: Mapping[str, Any]) -> bool:
    """Return whether a config asks about items; those in `_BOTH` do if nothing is refreshed."""
    dataset = raw.get("dataset")
    named = dataset.get("format") if isinstance(dataset, dict) else None
    return named in ITEM_FORMATS and not (named in _BOTH and raw.keys() & RUN_KEYS)


def is_series_config(raw: Mapping[str, Any]) -> bool:
    """Return whether a config asks about series and nothing else."""
    detect = raw.get("detect")
    return (
        isinstance(detect, dict) and "numleak" in detect and not raw.keys() & {*RUN_KEYS, "dataset"}
    )


def extract_series_config(config: Config, *, where: str) -> SeriesConfig:
    """Return the part of a run's config about series.

    Raises:
        ConfigError: it names no series or no target.
    """
    if config.detect.numleak is None:
        hint = "detect: {numleak: {series: [fama-french]}}"
        raise ConfigError("detect.numleak is missing: name a series", where=where, hint=hint)
    if not config.models.targets:
        raise ConfigError("models.targets is empty: name a target", where=where)
    shared = config.run.model_dump(include=set(StandaloneRunConfig.model_fields))
    return SeriesConfig(
        name=config.name,
        models=SeriesModelsConfig(targets=config.models.targets),
        run=StandaloneRunConfig(**shared),
        detect=SeriesDetectConfig(numleak=config.detect.numleak),
        cutoffs=config.knowledge.cutoffs,
    )

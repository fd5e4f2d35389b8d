"""The configs of asking targets about items or dated series alone, without a run."""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from coreeval.config.base import Count, Section
from coreeval.config.models import (
    ModelConfig,
    TargetConfig,
    require_distinct_targets,
    require_tested_target,
)
from coreeval.config.numleak import NumleakConfig
from coreeval.config.run import StandaloneRunConfig

ItemFormat = Literal["fineval", "finqa", "alphafin", "ectsum", "jsonl"]
ITEM_FORMATS: tuple[ItemFormat, ...] = get_args(ItemFormat)


class ItemDatasetConfig(Section):
    """The location of the items, and how to read them."""

    format: ItemFormat
    path: str
    """A folder with a file for each split, relative to the config."""


class ItemModelsConfig(Section):
    """The models that are asked, and the model that paraphrases items."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    rewriter: ModelConfig | None = None
    """Writes paraphrases; not needed for other modifications."""

    @model_validator(mode="after")
    def _check_models(self) -> Self:
        require_distinct_targets(self.targets)
        require_tested_target(self.targets)
        embedded = [target.model for target in self.targets if target.is_embedded]
        if embedded:
            raise ValueError(
                f"{embedded[0]} cannot be asked: it is a small classifier of labelled samples, and "
                "items want an answer in words; coreeval evaluate RUN asks it"
            )
        if self.rewriter and self.rewriter.is_rule_based:
            raise ValueError(
                f"rewriter: only a model writes paraphrases, not {self.rewriter.model}"
            )
        return self


class ItemPcrConfig(Section):
    """What is compared; fields that are absent default to the benchmark's, as in the CAP paper."""

    train_split: str | None = None
    test_split: str | None = None
    samples: Count = 500
    """The most items of each split that are asked about."""
    modification: Literal["option_shuffle", "year_shift", "paraphrase"] | None = None
    modified: str | None = None
    """A folder of recorded modified items, instead of a modification."""
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    """The least similarity of a paraphrase to its item."""
    answer: Literal["text", "letter"] = "text"
    """What is scored if there are options: the whole answer, as in the CAP paper, or the letter
    that it chooses; an answer without a clear choice stays as it is."""
    metric: str | None = None
    consistency: str | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """The least cosine similarity at which two answers mean the same."""
    embeddings: str = "minilm"
    """The embeddings for paraphrases and for cosine consistency."""
    alpha: Annotated[float, Field(ge=0)] | None = None
    scale: Literal["tanh", "linear", "sigmoid"] = "tanh"
    exchangeable_splits: bool = False
    """Whether the splits are random parts of one pool, which rules out a gap in difficulty."""

    @model_validator(mode="after")
    def _check_modification(self) -> Self:
        if self.modified and self.modification:
            raise ValueError("modified items are recorded or made: give modified or modification")
        return self


class ItemDetectConfig(Section):
    """What is measured."""

    pcr: ItemPcrConfig = ItemPcrConfig()


class ItemConfig(Section):
    """All settings for asking about items."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    dataset: ItemDatasetConfig
    models: ItemModelsConfig
    run: StandaloneRunConfig = StandaloneRunConfig()
    detect: ItemDetectConfig = ItemDetectConfig()


class SeriesModelsConfig(Section):
    """The models that are asked."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    """Models, and embedded personas as `offline:NAME`."""

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        require_distinct_targets(self.targets)
        return self


class SeriesDetectConfig(Section):
    """What is measured."""

    numleak: NumleakConfig


class SeriesConfig(Section):
    """All settings for asking about series."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    models: SeriesModelsConfig
    run: StandaloneRunConfig = StandaloneRunConfig()
    detect: SeriesDetectConfig
    cutoffs: str | None = None
    """A file of training cutoffs that override the built-in ones."""
